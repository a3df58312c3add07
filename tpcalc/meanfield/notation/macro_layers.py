"""The random architectures of a study of the nonlinearity coefficient: macro-layers with skips."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from tpcalc import checks
from tpcalc.errors import StudyError
from tpcalc.integrals.given import Act, whole
from tpcalc.meanfield.activations.calibrate import calibrated
from tpcalc.meanfield.notation.architectures import Design
from tpcalc.meanfield.notation.lines import Line, Lines
from tpcalc.meanfield.operations import Activation, Addition, Input, Number, number
from tpcalc.shown import Shown

COMMON = ("relu", "selu", "gaussian:1/2")
RARE = ("tanh", "even_tanh", "sigmoid", "square", "odd_square")


@dataclass(frozen=True)
class MacroLayers(Shown):
    """Macro-layers of dense layer, bias, addition, normalisation, activation.

    The last one has no activation. Every odd macro-layer from the third on adds what the one two
    before it has.

    Args:
        count: How many.
        activation: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        dilate: d in c tau(d s + h) + b.
        shift: h.
        debias: Whether b makes the mean 0 at unit Gaussians.
        scale: Of the weights, squared in variances.
        bias: Whether there are biases: 5 % of the variance is theirs then.
        norm: ``"none"``, ``"layer"`` or ``"batch"``.
        skip: The weight of skip connections; 0 for none.
        start: Whether they start at the addition (or bias) or at the normalisation of a
            macro-layer.

    Source: Schoenherr, The nonlinearity coefficient, section 3.1.1 (study A).

    Example:
        >>> net = MacroLayers(3, "tanh", skip=1.0).network()
        >>> [line.word.name for line in net.lines][-3:], net.lines[-1].parents
        (['tanh', 'dense', 'addition'], (1, 5))
    """

    count: int
    activation: Act
    dilate: float = 1.0
    shift: float = 0.0
    debias: bool = False
    scale: float = 1.0
    bias: bool = False
    norm: Literal["none", "layer", "batch"] = "none"
    skip: Number = 0
    start: Literal["addition", "norm"] = "addition"

    def __post_init__(self) -> None:
        checks.whole(self.count, "count", least=1)
        number(self, "scale", "the scale of the weights", above=0)
        number(self, "skip", "the weight of skip connections")
        if self.start == "norm" and self.norm == "none":
            raise StudyError("skips start at a normalisation, and there is none.")

    def network(self, batch: int | None = None) -> Lines:
        """The network, for inputs of second moment 1 that are independent.

        Args:
            batch: The size of the batch of batch norm; None: infinite.
        """
        own, w = whole(self.activation), self.scale**2
        tau = Activation(calibrated(own.expr, self.dilate, self.shift, self.debias), own.text)
        weights, biases = (0.95 * w, 0.05 * w) if self.bias else (w, 0)
        design = Design(tau.tau, weights, biases, self.norm, batch=batch)
        found = Lines((Line(Input(), ()),))
        starts: dict[int, int] = {}
        for index in range(1, self.count + 1):
            found = found.chain(design.linear())
            if self.skip and index % 2 and index >= 3:
                found = found.then(Addition((self.skip, 1)), starts[index - 2], found.last)
            before, found = found.last, found.chain(design.normed())
            starts[index] = found.last if self.start == "norm" else before
            found = found.then(tau) if index < self.count else found
        return found


def drawn_macro_layers(seed: int) -> MacroLayers:
    """A random architecture by the rules of the study.

    Args:
        seed: For the draw.

    Returns:
        The architecture, the same for the same seed.

    Source: Schoenherr, The nonlinearity coefficient, section 3.1.1 (study A).

    Example:
        >>> drawn_macro_layers(1) == drawn_macro_layers(1)
        True
    """
    rng = random.Random(checks.seed(seed))

    def coin() -> bool:
        return rng.random() < 0.5

    activation = rng.choice((*COMMON, *COMMON, *RARE))
    residual = coin()
    forced = residual or activation in ("square", "odd_square")
    norm: Literal["none", "layer", "batch"] = "none"
    if forced or coin():
        norm = "layer" if coin() else "batch"
    return MacroLayers(
        count=rng.choice(range(3, 50, 2)),
        activation=activation,
        dilate=1.0 if coin() else rng.choice((1.2, 0.8)),
        shift=0.0 if coin() else rng.choice((0.2, -0.2)),
        debias=coin(),
        scale=1.0 if coin() else rng.choice((0.9, 1.1)),
        bias=coin(),
        norm=norm,
        skip=(1.0 if coin() else rng.uniform(0.01, 1.0)) if residual else 0,
        start="addition" if coin() else ("norm" if norm != "none" else "addition"),
    )
