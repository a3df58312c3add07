"""``watched``: a training run with all outputs that a verdict and its facts are read from."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from tpcalc.analyses.probe import Probe, probe
from tpcalc.catalog.architecture import Architecture
from tpcalc.catalog.parameterizations import Parameterization
from tpcalc.catalog.training import Rate
from tpcalc.functions import Fn, Var
from tpcalc.program.nodes import Moment
from tpcalc.program.program import Builder, Program, prune
from tpcalc.results import Samples

__all__ = ["Run", "watched"]

KERNEL = Fn(Var(0) * (Var(0) + 2 * Var(1)), 2)  # |x_t|^2 - |x_0|^2 from x_t - x_0 and x_0


@dataclass(frozen=True)
class Run:
    """A training run and the names of what is asked of it.

    Args:
        probe: The run with everything that it watches.
        program: The same with the outputs that are asked.
    """

    probe: Probe
    program: Program

    @property
    def layers(self) -> range:
        """The layers 1..L+1; the last one is the output."""
        return range(1, self.probe.depth + 2)

    @property
    def steps(self) -> range:
        """The steps t = 1..T."""
        return range(1, self.probe.steps + 1)

    def updates(self, layer: int, step: int) -> tuple[str, ...]:
        """What update t - 1 adds to the preactivations of a layer at the query.

        Args:
            layer: From 1 to L + 1.
            step: The step t.
        """
        several = layer > self.probe.depth and self.probe.outputs > 1
        places = [f",{k}" for k in range(self.probe.outputs)] if several else [""]
        weights = [f"dW_x[{layer},{step},{self.probe.query}{place}]" for place in places]
        names = weights + [f"dB[{layer},{step}{place}]" for place in places]
        return tuple(name for name in names if name in self.program.output)  # no gradient, no name

    def kernel(self, layer: int, step: int) -> str:
        """The change of the kernel of a layer at the query.

        Args:
            layer: From 1 to L.
            step: The step t.
        """
        query = self.probe.query
        return f"|x[{layer},{step},{query}]|^2-|x[{layer},0,{query}]|^2"

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """The outputs and their changes, with those of the last features."""
        run = self.probe
        names = list(run.f(0))
        for step in self.steps:
            names += [*run.f(step), *run.changes(step), run.features(run.depth, step)]
        return tuple(names)

    @cached_property
    def first_pass(self) -> tuple[str, ...]:
        """The vectors that first updates are made of: x and dh of the first sample, x at step 1."""
        run = self.probe
        hidden = range(1, run.depth + 1)
        return (
            *(f"x[{layer},0,0]" for layer in hidden),
            *(f"x[{layer},1,{run.query}]" for layer in hidden),
            *(f"dh[{layer},0,0]" for layer in hidden),
            f"dx[{run.depth},0,0]",
        )

    @cached_property
    def asked(self) -> frozenset[str]:
        """All outputs that are asked."""
        run = self.probe
        hidden = range(1, run.depth + 1)
        names = {*self.changes, *self.first_pass}
        names |= {f"h[{layer},{t},{run.query}]" for layer in hidden for t in (0, *self.steps)}
        for step in self.steps:
            names |= {name for layer in self.layers for name in self.updates(layer, step)}
            names |= {run.features(layer, step) for layer in hidden}
            names |= {self.kernel(layer, step) for layer in hidden}
        return frozenset(names)


def watched(
    architecture: Architecture,
    parameterization: Parameterization,
    data: Samples,
    *,
    steps: int,
    lr: Rate = Fraction(1),
    loss: str = "mse",
    batch: int = 1,
    optimizer: str = "sgd",
) -> Run:
    """Write out a training run with the outputs that facts about its layers are read from.

    Args:
        architecture: The network.
        parameterization: Its exponents.
        data: Training data.
        steps: Number of updates.
        lr: The factor of the learning rate, as in ``train``.
        loss: Catalogue name.
        batch: Samples in a step.
        optimizer: Catalogue name.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UsageError: The data are no samples.

    Source: Hajjar, Chizat, Giraud, Definitions B.1 and B.2 (features and kernels).
    """
    found = probe(
        architecture,
        parameterization,
        data,
        steps=steps,
        lr=lr,
        loss=loss,
        batch=batch,
        optimizer=optimizer,
    )
    builder = Builder.copy(found.program)
    names = Run(found, found.program)
    for step in names.steps:
        for layer in range(1, architecture.hidden + 1):
            change = found.program.ref(found.features(layer, step))
            start = found.program.ref(f"x[{layer},0,{found.query}]")
            builder.output(names.kernel(layer, step), builder.add(Moment(KERNEL, (change, start))))
    whole = builder.finish()
    outputs = tuple((name, ref) for name, ref in whole.outputs if name in names.asked)
    kept = Program(whole.dims, whole.groups, whole.nodes, outputs, whole.where)
    return Run(found, prune(kept))
