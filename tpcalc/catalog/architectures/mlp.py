"""The multilayer perceptron: L hidden layers of one width, fully connected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.catalog.architecture import (
    ArchitectureFamily,
    activation_of,
    bias_variance_of,
    chosen,
    named,
    root,
    row_of,
    spread,
)
from tpcalc.catalog.writer import Writer
from tpcalc.errors import StudyError
from tpcalc.functions import Expr
from tpcalc.orders import Ex
from tpcalc.passes.unroll import Model
from tpcalc.program.nodes import Ref
from tpcalc.results import checks
from tpcalc.sources import Source

__all__ = ["BIASES", "ENTRY", "MLP", "biased_layers"]

BIASES = ("none", "first", "hidden", "all")
NORMS = ("none", "layer")
VARIANCES = ("factors", "initial")


def biased_layers(bias: str, depth: int) -> range:
    """The layers that have a bias.

    Args:
        bias: ``"none"``, ``"first"``, ``"hidden"`` or ``"all"``.
        depth: Number of hidden layers L.

    Example:
        >>> list(biased_layers("first", 2)), list(biased_layers("all", 2))
        ([1], [1, 2, 3])
    """
    last = {"none": 0, "first": 1, "hidden": depth, "all": depth + 1}
    return range(1, last[bias] + 1)


@dataclass(frozen=True)
class MLP:
    """A fully connected network with ``depth`` hidden layers of width n.

    h^1 = W^1 x + b^1, x^l = act(h^l), h^{l+1} = W^{l+1} x^l + b^{l+1},
    f_k = (W^{L+1} x^L + b^{L+1})_k, with W^l = sigma_w n^(-a_l) w^l and w^l N(0, 1) at the start,
    and the same for biases with sigma_b; biases share the power of their layer, unless the
    parameterization gives them their own. The readout has 1.

    The standard deviations sigma_w and sigma_b of the hidden layers are factors in front of the
    trained w^l and b^l, so that an update of W^l carries sigma_w^2; or initial ones, which only
    the entries at the start have. The latter is the former with a learning rate divided by the
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
        bias_variance: sigma_b^2 of the hidden layers; None: 1 where there are biases. A number
            above 0 gives all hidden layers biases where ``bias`` is ``"none"``; 0 means none.
            With ``"initial"`` 0 lets all biases there are start at 0, the readout's too.
        variances: ``"factors"``: in front of trained weights; ``"initial"``: of their start alone.
        weight_rate: Factors of the learning rates of the weights: a number or its text, or one for
            each of the layers 1..L+1; 0: not trained.
        bias_rate: Those of the biases.
        norm: ``"layer"``: the preactivations of each layer are centred and divided by their
            standard deviation over the coordinates, x^l = act(LN(h^l)); ``"none"``: they are not.

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
        depth = checks.whole(self.depth, "depth", least=1, hint="It counts the hidden layers.")
        bias = chosen(self.bias, "bias", BIASES, "MLP")
        chosen(self.norm, "norm", NORMS, "MLP")
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
        values = {
            "depth": depth,
            "bias": "hidden" if biases and bias == "none" else bias,
            "weight_variance": weights,
            "bias_variance": biases,
            "weight_rate": row_of(self.weight_rate, depth + 1, "weight_rate", "MLP"),
            "bias_rate": row_of(self.bias_rate, depth + 1, "bias_rate", "MLP"),
            "_activation": activation_of(self.act, "MLP"),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

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
    def activation(self) -> Expr:
        """The activation, an expression of ``Var(0)``."""
        return self._activation

    @property
    def hidden(self) -> int:
        """The number of hidden layers."""
        return self.depth

    @property
    def tokens(self) -> int:
        """An input is one vector."""
        return 1

    @property
    def positions(self) -> int:
        """The readout is applied once."""
        return 1

    @property
    def biased(self) -> bool:
        """Whether it has biases."""
        return self.bias != "none"

    @property
    def words(self) -> str:
        """The architecture in a phrase."""
        layers = f"{self.depth} hidden layer" + ("s" if self.depth > 1 else "")
        normalised = "normalised layers and " if self.norm == "layer" else ""
        biases = {
            "none": "without biases",
            "first": "with a bias in the first layer",
            "hidden": "with biases in the hidden layers",
            "all": "with biases in all layers",
        }
        return (
            f"a network of {layers} with {normalised}{named(self.act)}, {biases[self.bias]}"
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

    def model(
        self,
        dimension: int,
        outputs: int,
        a: Sequence[Ex],
        bias_a: Sequence[Ex] | None = None,
        mean: Sequence[Fraction | float] = (),
    ) -> Model:
        """The forward program of one input.

        Args:
            dimension: Number of input features d (finite).
            outputs: Number of outputs K (finite).
            a: The exponents a_1..a_{L+1}.
            bias_a: Those of the biases; None: the same.
            mean: The means of the entries of w^l at the start, for l = 1..L+1 and 0 for l = 1;
                empty: all 0.

        Returns:
            A template for ``unroll``, with h, x and their gradients watched (and the normalised
            preactivations ``hhat``), and the contribution of each layer's last update: ``dW_x`` of
            its weights, ``dB`` of its bias.

        Raises:
            StudyError: Means for another depth, or one for the first layer.

        Source: Hajjar, Chizat, Giraud, equation (2.1); section 5.1 for the means.
        """
        spreads = self.weight_variances
        biased = Fraction(1) if self.bias_variance is None else Fraction(self.bias_variance)
        initial = self.variances == "initial"
        if initial and mean:  # the factor in front multiplies the mean too
            mean = (
                *(m / root(v or 1) for m, v in zip(mean, spreads, strict=False)),
                *mean[self.depth :],
            )
        writer = Writer("MLP", self.depth, a, bias_a, mean)
        inputs = writer.datum(dimension)
        # Weights that start at 0 have no factor, and are put at 0 after the backward pass.
        biases = root(biased or 1)
        x = -1
        for layer, variance in enumerate(spreads, start=1):
            weights = root(variance or 1)
            faster, shift = self.rates[layer - 1]
            if initial:
                faster, shift = faster / (variance or 1), shift / (biased or 1)
            writer.rated(layer, faster, shift)
            if variance == 0:
                writer.at_zero(f"W{layer}")
            if biased == 0:
                writer.at_zero(f"b{layer}")
            if layer == 1:
                terms = writer.of_data(inputs, writer.group("W1", dimension, 1), weights)
            else:
                terms = writer.product(layer, writer.matrix(layer), x, weights)
            if layer in biased_layers(self.bias, self.depth):
                terms.append(writer.bias(layer, biases))
            h = writer.total(terms)
            x = writer.activated(layer, h, self._activation, self.norm)
            writer.contributes(layer, h)
        writer.rated(self.depth + 1, *self.rates[-1])
        for k in range(outputs):
            self._output(writer, k, outputs, x)
        return writer.model()

    def _output(self, writer: Writer, k: int, outputs: int, x: Ref) -> None:
        layer, first = self.depth + 1, len(writer.parameters)
        f = writer.output(writer.readout(layer, k, outputs), x)
        if self.bias == "all":
            f = writer.shifted(f, layer, k)
            if self.bias_variance == 0:
                writer.at_zero(f"b{layer}[{k}]")
        writer.contributes(layer, f, "" if outputs == 1 else f",{k}", first)
        writer.outputs.append(f)


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
