"""Networks of a setting at their start, and one step of SGD, in terms of effective weights.

A network holds W = n^(-a) w, so that a step multiplies each gradient by one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tpcalc.finite.networks.gradients import Gradients
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.finite.training.scales import Start, Step
from tpcalc.networks.network import INPUT
from tpcalc.program.marks import Mark
from tpcalc.program.program import Program

__all__ = ["begun", "marks_of", "take"]

# A trial's network is the network of this seed; that of trial 0 has the seed itself.
_TRIALS = 64


def begun(
    program: Program,
    start: Start,
    std: float,
    width: int,
    seed: int = 0,
    trial: int = 0,
    device: str = "cpu",
    dtype: str = "float64",
) -> DrawnNetwork:
    """A network at its start.

    The entries of w^l are N(mean_l, std^2) in the layers 1..L and N(mean_{L+1}, 1) in the last;
    those of the first layer, weights and biases, are divided by sqrt(d + 1), so that inputs with
    entries of order one give preactivations of order one.

    Args:
        program: The network.
        start: Scales and means.
        std: Standard deviation of the entries of the layers 1..L.
        width: The width n.
        seed: The seed.
        trial: Number of the trial.
        device: As for ``DrawnNetwork``.
        dtype: As for ``DrawnNetwork``.

    Source: Hajjar, Chizat, Giraud, section 6.1.
    """
    inputs = prod(size for _, size in program.types[program.inputs[INPUT]].axes)
    last = max(mark.layer for mark in marks_of(program).values())

    def entries(mark: Mark) -> tuple[float, float]:
        layer = mark.layer - 1
        spread = 1.0 if mark.layer == last else std
        if mark.layer == 1:
            spread /= (inputs + 1) ** 0.5
        if mark.bias:
            return spread * start.biases[layer], 0.0
        return spread * start.weights[layer], start.means[layer] / spread

    return DrawnNetwork(program, width, seed + (trial << _TRIALS), device, dtype, entries)


def marks_of(program: Program) -> dict[str, Mark]:
    """The marks of what is trained, by name."""
    marks = ((name, family.mark) for name, family in program.families.items())
    return {name: mark for name, mark in marks if mark is not None and mark.trained}


def take(gradients: Gradients, step: Step, rates: Sequence[float]) -> None:
    """One step of SGD, in place.

    Args:
        gradients: The derivatives of the loss.
        step: The scales of the step.
        rates: Base learning rates of the layers 1..L+1.
    """
    scaled: dict[str, float] = {}
    kept: dict[str, float] = {}
    for name, mark in marks_of(gradients.network.program).items():
        layer = mark.layer - 1
        scaled[name] = rates[layer] * (step.biases if mark.bias else step.weights)[layer]
        if not mark.bias:
            kept[name] = step.kept[layer]
    gradients.step(scaled, kept)
