"""Networks of equal blocks, with the options that studies of signal propagation vary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tpcalc import checks
from tpcalc.errors import StudyError
from tpcalc.integrals.given import Act
from tpcalc.meanfield.notation.lines import Line, Lines
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Input,
    LayerNorm,
    Number,
    Operation,
    SharedBias,
    SpanBias,
    number,
)

NORMS = ("none", "layer", "batch")
BIASES = ("independent", "span", "shared")


@dataclass(frozen=True, slots=True)
class Design:
    """What the layers of an architecture have in common.

    Args:
        activation: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        weights: sigma_w^2: weights have the variance sigma_w^2 / fan-in.
        biases: sigma_b^2; 0 for none.
        norm: ``"none"``, ``"layer"`` or ``"batch"``, before each activation.
        family: The family of the weights, ``"gaussian"`` or ``"orthogonal"``; of low rank those of
            ``tp.layers.LowRank``.
        rank: Rank over width; None for full rank.
        bias: ``"independent"``; with a rank also ``"span"``: in the span of the weights, and
            ``"shared"``: one number for all directions of the span.
        batch: The size of the batch of batch norm; None: infinite.

    Raises:
        StudyError: Words or numbers that make no sense.

    Example:
        >>> [operation.name for operation in Design("relu", 2, 0.1).block()]
        ['dense', 'bias', 'relu']
    """

    activation: Act
    weights: Number = 1
    biases: Number = 0
    norm: Literal["none", "layer", "batch"] = "none"
    family: str = "gaussian"
    rank: Number | None = None
    bias: Literal["independent", "span", "shared"] = "independent"
    batch: int | None = None

    def __post_init__(self) -> None:
        if self.norm not in NORMS or self.bias not in BIASES:
            raise StudyError(
                f"the normalisation is {checks.shown(self.norm)}, the biases are "
                f"{checks.shown(self.bias)}.",
                where="Design",
                hint=f"They are one of {', '.join(NORMS)} and one of {', '.join(BIASES)}.",
            )
        if self.bias != "independent" and self.rank is None:
            raise StudyError(
                f"biases are {checks.shown(self.bias)}, in the span of weights of full rank.",
                where="Design",
                hint="Give a rank, or take 'independent'.",
            )
        number(self, "biases", "the variance of the biases", least=0)

    @property
    def tau(self) -> Activation:
        """The activation."""
        return Activation(self.activation)

    @property
    def whole(self) -> Dense:
        """A dense layer of full rank that keeps lengths as the others do: readin and readout."""
        return Dense(self.weights if self.rank is None else self.rank * self.weights)

    def linear(self) -> list[Operation]:
        """The dense layer with its bias."""
        found: list[Operation] = [Dense(self.weights, self.family, self.rank)]
        if self.biases == 0:
            return found
        if self.bias == "independent" or self.rank is None:
            return [*found, Bias(self.biases)]
        kind = SpanBias if self.bias == "span" else SharedBias
        return [*found, kind(self.biases, self.rank)]

    def normed(self) -> list[Operation]:
        """The normalisation, where there is one."""
        if self.norm == "none":
            return []
        return [LayerNorm() if self.norm == "layer" else BatchNorm(self.batch)]

    def block(self) -> list[Operation]:
        """Dense layer, bias, normalisation, activation."""
        return [*self.linear(), *self.normed(), self.tau]


def mlp(depth: int, design: Design, start: Input | None = None) -> Lines:
    """A fully connected network: blocks of dense layer, bias, normalisation, activation.

    Args:
        depth: How many blocks; a dense layer of full rank that keeps lengths alike follows them.
        design: What they are.
        start: The inputs; by default of second moment 1, independent.

    Returns:
        The network, as ``parse_graph`` would read it.

    Raises:
        StudyError: A depth below 1.

    Example:
        >>> mlp(2, Design("tanh")).last
        5
    """
    depth = checks.whole(depth, "depth", least=1, each=checks.PART)
    checks.of_type(design, Design, "design")
    return _started(start).chain([*design.block() * depth, design.whole])


def resnet(
    depth: int,
    design: Design,
    start: Input | None = None,
    skip: Number = 1,
    branch: Number = 1,
    *,
    place: Literal["block", "unit"] = "block",
) -> Lines:
    """A residual network: x + dense(activation(norm(x))), block after block.

    Args:
        depth: How many blocks; a dense layer comes before them and one after them.
        design: What they are.
        start: The inputs; by default of second moment 1, independent.
        skip: The weight of x.
        branch: The weight of what is added to it.
        place: Where normalisations stand: in the block, or between units, where the sum reads what
            is normalised: norm(x) + dense(activation(norm(x))).

    Returns:
        The network, as ``parse_graph`` would read it.

    Raises:
        StudyError: A depth below 1, or a weight that is 0.
        UnknownName: No such place.

    Example:
        >>> from tpcalc.meanfield.notation.notation import graph_text
        >>> print(graph_text(resnet(1, Design("relu", 2, norm="layer"), skip=0.5)))
        h0 = input(1, 0)
        h1 = dense(h0, 2)
        h2 = layer_norm(h1)
        h3 = relu(h2)
        h4 = dense(h3, 2)
        h5 = 0.5*h1 + 1*h4
        h6 = dense(h5, 2)
    """
    depth = checks.whole(depth, "depth", least=1, each=checks.PART)
    checks.of_type(design, Design, "design")
    net = _started(start).then(design.whole)
    checks.one_of("place", place, ("block", "unit"))
    for _ in range(depth):
        norms = net.chain(design.normed())
        before, net = (norms if place == "unit" else net).last, norms
        net = net.chain([design.tau, *design.linear()])
        net = net.then(Addition((skip, branch)), before, net.last)
    return net.then(design.whole)


def _started(start: Input | None) -> Lines:
    first = Input() if start is None else checks.of_type(start, Input, "start")
    return Lines((Line(first, ()),))
