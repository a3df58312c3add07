"""The multilayer perceptron: L hidden layers of one width, fully connected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc import checks
from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import StudyError
from tpcalc.functions import Expr
from tpcalc.networks.architecture import (
    NORMS,
    ArchitectureFamily,
    Catalogued,
    Number,
    activated,
    bias_variance_of,
    chosen,
    root,
    row_of,
    spread,
)
from tpcalc.networks.maps import Linear, Side
from tpcalc.networks.tracer import NetworkTracer
from tpcalc.sources import Source

BIASES = ("none", "first", "hidden", "all")
VARIANCES = ("factors", "initial")


def biased_layers(bias: str, depth: int) -> range:
    """The layers that have a bias.

    Example:
        >>> list(biased_layers("first", 2)), list(biased_layers("all", 2))
        ([1], [1, 2, 3])
    """
    last = {"none": 0, "first": 1, "hidden": depth, "all": depth + 1}
    return range(1, last[bias] + 1)


@dataclass(frozen=True)
class MLP(Catalogued):
    """A fully connected network with ``depth`` hidden layers of width n.

    h^1 = W^1 x + b^1, x^l = act(h^l), h^{l+1} = W^{l+1} x^l + b^{l+1},
    f_k = (W^{L+1} x^L + b^{L+1})_k, with W^l = sigma_w n^(-a_l) w^l and w^l N(0, 1) at the start,
    and the same for biases with sigma_b; biases share the power of their layer, unless the
    parameterization gives them their own. The weights of the readout have 1, its bias sigma_b.

    The standard deviations sigma_w and sigma_b are factors in front of the trained w^l and b^l, so
    that an update of W^l carries sigma_w^2; or initial ones, which only the entries at the start
    have. The latter is the former with a learning rate divided by the
    variance, and that is how it is written; initial ones may be 0.

    Learning rates have factors of their own, ``weight_rate`` and ``bias_rate``. With the widths of
    a network, ``variances="initial", weight_rate=(d, n_1, ..., n_L)``, the tangent kernel in NTK
    parameterization is that of the standard one at these widths, where weights and biases have one
    rate. (A kernel divides inputs by d^(1/2); training does not, and has 1 in place of d.)

    Args:
        depth: Number of hidden layers L, at least 1.
        act: Activation, by catalogue name (``"relu"``, ``"leaky_relu:0.2"``) or as a function of
            an expression.
        bias: Which layers have a bias: ``"none"``, ``"first"``, ``"hidden"`` (all but the
            readout) or ``"all"``.
        weight_variance: sigma_w^2 of the hidden layers: a number or its text, or one for each of
            the L hidden layers (a sequence, or a text with commas).
        bias_variance: sigma_b^2 of all biases there are, the readout's too; None: 1. A number
            above 0 gives all hidden layers biases where ``bias`` is ``"none"``; 0 means none.
            With ``"initial"`` 0 lets all biases start at 0.
        variances: ``"factors"``: in front of trained weights; ``"initial"``: of their start alone.
        weight_rate: Factors of the learning rates of the weights: a number or its text, or one for
            each of the layers 1..L+1; 0: not trained.
        bias_rate: Those of the biases.
        norm: ``"layer"``: the preactivations of each layer are centred and divided by their
            standard deviation over the coordinates, x^l = act(LN(h^l)); ``"rms"``: divided by the
            root of their mean square; ``"none"``: neither.

    Raises:
        StudyError: A depth below 1, an unknown word, a variance that is none.
        UnknownName: No such activation.
        TraceError: An activation that is not a function of an expression.

    Source: Hajjar, Chizat, Giraud, equation (2.1); Jacot, Gabriel, Hongler, section 3, for the
        factors; Sohl-Dickstein, Novak, Schoenholz, Lee, On the infinite width limit of neural
        networks with a standard parameterization (2001.07301), for widths as rates; Ba, Kiros,
        Hinton, Layer normalization, equation (3).

    Example:
        >>> MLP(2, "relu").words
        'a network of 2 hidden layers with relu, without biases'
        >>> MLP(2, "erf", weight_variance="9/4", bias_variance=0.01).bias
        'hidden'
    """

    kind, size, normed = "network", ("of", "depth", "hidden layer"), "layers"
    depth: int
    act: str | Callable[[Expr], Expr] = "relu"
    bias: str = "none"
    weight_variance: Fraction | float | str | Sequence[Fraction | float | str] = Fraction(1)
    bias_variance: Fraction | float | str | None = None
    norm: str = "none"
    variances: str = "factors"
    weight_rate: Fraction | float | str | Sequence[Fraction | float | str] = Fraction(1)
    bias_rate: Fraction | float | str | Sequence[Fraction | float | str] = Fraction(1)
    _activation: Expr = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        depth = checks.whole(
            self.depth, "depth", least=1, each=checks.PART, hint="It counts the hidden layers."
        )
        bias = chosen(self.bias, "bias", BIASES, "MLP")
        chosen(self.norm, "norm", tuple(NORMS), "MLP")
        chosen(self.variances, "variances", VARIANCES, "MLP")
        weights = row_of(self.weight_variance, depth, "weight_variance", "MLP")
        biases = bias_variance_of(self.bias_variance, "MLP")
        if self.variances == "factors":
            if 0 in (weights if isinstance(weights, tuple) else (weights,)):
                raise StudyError(
                    f"weight_variance is {self.weight_variance}.",
                    where="MLP",
                    hint="A factor 0 cuts the layer off for good; weights that start at 0 and are "
                    "trained have variances='initial'.",
                )
            if biases == 0 and bias != "none":
                raise StudyError(
                    f"bias_variance is 0, and bias is {bias!r}.",
                    where="MLP",
                    hint="Biases with a factor 0 are none: leave bias out. Biases that start at 0 "
                    "and are trained have variances='initial'.",
                )
        self._settle(
            depth=depth,
            bias="hidden" if biases and bias == "none" else bias,
            weight_variance=weights,
            bias_variance=biases,
            weight_rate=row_of(self.weight_rate, depth + 1, "weight_rate", "MLP"),
            bias_rate=row_of(self.bias_rate, depth + 1, "bias_rate", "MLP"),
        )

    @property
    def weight_variances(self) -> tuple[Fraction, ...]:
        """The variances of the weights of the layers 1..L."""
        return _every(self.weight_variance, self.depth)

    @property
    def rates(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The factors of the learning rates of weights and biases of the layers 1..L+1."""
        return tuple(
            zip(
                _every(self.weight_rate, self.depth + 1),
                _every(self.bias_rate, self.depth + 1),
                strict=True,
            )
        )

    @property
    def words(self) -> str:
        """The architecture in a phrase."""
        biases = {
            "none": "without biases",
            "first": "with a bias in the first layer",
            "hidden": "with biases in the hidden layers",
            "all": "with biases in all layers",
        }
        return (
            f"{self._begun}, {biases[self.bias]}"
            f"{spread(self.weight_variance, self.bias_variance)}"
            f"{' at the start' if self.variances == 'initial' else ''}{self._rated}"
        )

    @property
    def complete(self) -> bool:
        """Whether all of its weights are drawn at the start and trained."""
        shifted = biased_layers(self.bias, self.depth)
        rates = [rate for rate, _ in self.rates] + [self.rates[layer - 1][1] for layer in shifted]
        drawn = 0 not in self.weight_variances and (self.bias_variance != 0 or not self.biased)
        return drawn and all(rate != 0 for rate in rates)

    @property
    def _rated(self) -> str:
        """Factors of learning rates as the end of a sentence."""
        said = ""
        for what, rates in (("weight", self.weight_rate), ("bias", self.bias_rate)):
            if rates != 1 and (what == "weight" or self.biased):
                row = rates if isinstance(rates, tuple) else (rates,)
                said += f", {what} rates times {', '.join(map(str, row))}"
        return said

    def forward(self, t: NetworkTracer, x: Scalar) -> Scalar:
        """The outputs; h, x and normalised preactivations are reported.

        Args:
            t: Makes parameters.
            x: The input.

        Source: Hajjar, Chizat, Giraud, equation (2.1).
        """
        value: Vector | Scalar = x
        for layer, variance in enumerate(self.weight_variances, start=1):
            h = self._map(t, layer, t.n, "in" if layer == 1 else t.n, variance)(value)
            value = activated(t, layer, h, self._activation, self.norm)
        f: Scalar = self._map(t, self.depth + 1, t.outputs, t.n, Fraction(1))(value)
        return f

    def _map(
        self, t: NetworkTracer, layer: int, out: str | int, into: str, variance: Fraction
    ) -> Linear[Side]:
        """The weights of a layer, with its bias."""
        shifted = Fraction(1) if self.bias_variance is None else Fraction(self.bias_variance)
        at_zero = shifted == 0
        if at_zero:
            shifted = Fraction(1)
        weights, biases = root(variance or 1), root(shifted)
        faster, shift = self.rates[layer - 1]
        starts: tuple[Number, Number] = (Fraction(1), Fraction(1))
        if self.variances == "initial":
            faster, shift = faster / (variance or 1), shift / shifted
            starts = (weights if variance else Fraction(0), Fraction(0) if at_zero else biases)
        return t.linear(
            out,
            into,
            layer in biased_layers(self.bias, self.depth),
            name=f"W{layer}",
            bias_name=f"b{layer}",
            label=str(layer),
            layer=layer,
            factors=(weights, biases),
            rates=(faster, shift),
            starts=starts,
        )


def _every(value: object, layers: int) -> tuple[Fraction, ...]:
    """A checked row, spread over the layers."""
    return value if isinstance(value, tuple) else (Fraction(str(value)),) * layers


ENTRY = ArchitectureFamily(
    "mlp",
    MLP,
    text="the multilayer perceptron: L hidden layers of one width, fully connected",
    source=Source(
        "Hajjar, Chizat, Giraud, Training integrable parameterizations", "equation (2.1)"
    ),
)
