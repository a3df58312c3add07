"""The residual network: an input map, L blocks that add to one stream, and a readout of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.catalog.architecture import (
    NORMS,
    ArchitectureFamily,
    Number,
    activated,
    activation_of,
    bias_variance_of,
    chosen,
    named,
    normalised,
    root,
    spread,
    variance_of,
)
from tpcalc.catalog.values import exact
from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import StudyError
from tpcalc.functions import Expr
from tpcalc.networks.network import Architecture
from tpcalc.networks.tracer import NetworkTracer
from tpcalc.results import checks
from tpcalc.sources import Source

__all__ = ["ENTRY", "ResNet"]


@dataclass(frozen=True)
class ResNet(Architecture):
    """A residual network with ``depth`` blocks of one layer, of width n.

    h^1 = W^1 x, x^l = act(h^l), h^{l+1} = h^l + L^(-alpha) (W^{l+1} x^l + b^{l+1}) for l = 1..L,
    f_k = (W^{L+2} h^{L+1})_k, with W^{l+1} = sigma_w n^(-a_{l+1}) w^{l+1} in the blocks and
    W^l = n^(-a_l) w^l in the input map and the readout; w^l, b^l are N(0, 1) at the start. The
    activation comes before the weights of its block, the readout reads the stream itself. The
    number of blocks is finite: L^(-alpha) is a number. The parameterization is asked for L + 1
    hidden layers, h^1..h^{L+1}.

    Args:
        depth: Number of blocks L, at least 1.
        act: Activation, by catalogue name or as a function of an expression.
        alpha: The power of 1/L in front of a block: a number or its text.
        weight_variance: sigma_w^2 of the blocks: a number or its text.
        bias_variance: sigma_b^2 of the blocks; None or 0: no biases.
        norm: ``"layer"``: x^l = act(LN(h^l)), the stream centred and divided by its standard
            deviation over the coordinates at the entrance of each block; ``"rms"``: divided by the
            root of its mean square; ``"none"``: neither.

    Raises:
        StudyError: A depth below 1, an unknown word, an alpha or a variance that is none.
        UnknownName: No such activation.
        TraceError: An activation that is not a function of an expression.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, section 6.3, with the activation before the
        weights (section 8) and without mean subtraction.

    Example:
        >>> ResNet(4, "relu", alpha=1).words
        'a residual network of 4 blocks with relu, each times 4^(-1), without biases'
    """

    depth: int
    act: str | Callable[[Expr], Expr] = "relu"
    alpha: Fraction | float | str = Fraction(1, 2)
    weight_variance: Fraction | float | str = Fraction(1)
    bias_variance: Fraction | float | str | None = None
    norm: str = "none"
    _activation: Expr = field(init=False, repr=False, compare=False)
    _factors: tuple[Number, Number] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        depth = checks.whole(self.depth, "depth", least=1, hint="It counts the blocks.")
        chosen(self.norm, "norm", tuple(NORMS), "ResNet")
        weights = variance_of(self.weight_variance, "weight_variance", "ResNet")
        biases = bias_variance_of(self.bias_variance, "ResNet")
        alpha = self._power()
        values = {
            "depth": depth,
            "alpha": alpha,
            "weight_variance": weights,
            "bias_variance": biases,
            "_activation": activation_of(self.act, "ResNet"),
            "_factors": (
                _branch(depth, alpha, weights),
                _branch(depth, alpha, biases or Fraction(1)),
            ),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _power(self) -> Fraction:
        try:
            return exact(self.alpha, what="alpha")
        except StudyError as error:
            raise StudyError(error.message, where="ResNet", hint=error.hint) from None

    @property
    def activation(self) -> Expr:
        """The activation, an expression of ``Var(0)``."""
        return self._activation

    @property
    def heading(self) -> str:
        """The same for the heading of a page."""
        blocks = f"{self.depth} block" + ("s" if self.depth > 1 else "")
        return f"{named(self.act)} residual network of {blocks}"

    @property
    def words(self) -> str:
        """The architecture in a phrase."""
        blocks = f"{self.depth} block" + ("s" if self.depth > 1 else "")
        factor = f"{self.depth}^(-{self.alpha})"
        biases = "with" if self.bias_variance else "without"
        return (
            f"a residual network of {blocks} with {normalised(self.norm, 'stream')}"
            f"{named(self.act)}, each times {factor}, {biases} "
            f"biases{spread(self.weight_variance, self.bias_variance)}"
        )

    def forward(self, t: NetworkTracer, x: Scalar) -> Scalar:
        """The outputs; h and x are reported. x^{L+1}, what the readout reads, is h^{L+1}.

        Args:
            t: Makes parameters.
            x: The input.

        Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, section 6.3.
        """
        h: Vector = t.linear(t.n, "in", name="W1", label="1")(x)
        for layer in range(1, self.depth + 1):
            branch = t.linear(
                t.n,
                t.n,
                bool(self.bias_variance),
                name=f"W{layer + 1}",
                bias_name=f"b{layer + 1}",
                label=str(layer + 1),
                factors=self._factors,
            )
            h = h + branch(activated(t, layer, h, self._activation, self.norm))
        last = self.depth + 1
        t.watch("h", last, h)
        t.watch("x", last, h)
        f: Scalar = t.linear(t.outputs, t.n, name=f"W{last + 1}", label=str(last + 1))(h)
        return f


def _branch(depth: int, alpha: Fraction, variance: Fraction) -> Number:
    """L^(-alpha) times a standard deviation, exact where the product is rational."""
    try:
        factor, deviation = root(depth, -alpha), root(variance)
        twice = 2 * alpha
        if isinstance(factor, float) and isinstance(deviation, float) and twice.denominator == 1:
            return root(variance * Fraction(depth) ** -twice.numerator)
        return factor * deviation
    except OverflowError:
        raise StudyError(
            f"{depth}^({-alpha}), the factor of a block, is outside the range of a float.",
            where="ResNet",
            hint="alpha is 1/2 or 1 as a rule.",
        ) from None


ENTRY = ArchitectureFamily(
    "resnet",
    ResNet,
    text="the residual network: an input map, L blocks that add to one stream, a readout of it",
    source=Source(
        "Yang, Yu, Zhu, Hayou, Tensor Programs VI: Feature Learning in Infinite-Depth Neural "
        "Networks",
        "section 6.3",
        "2310.02244",
    ),
)
