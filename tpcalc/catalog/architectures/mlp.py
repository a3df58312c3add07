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
    spread,
    variances_of,
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
    variance, and that is how it is written.

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
        variances: ``"factors"``: in front of trained weights; ``"initial"``: of their start alone.
        norm: ``"layer"``: the preactivations of each layer are centred and divided by their
            standard deviation over the coordinates, x^l = act(LN(h^l)); ``"none"``: they are not.

    Raises:
        StudyError: A depth below 1, an unknown word, a variance that is none.
        UnknownName: No such activation.
        TraceError: An activation that is not a function of an expression.

    Source: Hajjar, Chizat, Giraud, equation (2.1); Jacot, Gabriel, Hongler, section 3, for the
        factors; Ba, Kiros, Hinton, Layer normalization, equation (3).

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
    _activation: Expr = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        depth = checks.whole(self.depth, "depth", least=1, hint="It counts the hidden layers.")
        bias = chosen(self.bias, "bias", BIASES, "MLP")
        chosen(self.norm, "norm", NORMS, "MLP")
        chosen(self.variances, "variances", VARIANCES, "MLP")
        weights = variances_of(self.weight_variance, depth, "weight_variance", "MLP")
        biases = bias_variance_of(self.bias_variance, "MLP")
        if biases == 0 and bias != "none":
            raise StudyError(
                f"bias_variance is 0, and bias is {bias!r}.",
                where="MLP",
                hint="Biases of variance 0 are none: leave bias out.",
            )
        values = {
            "depth": depth,
            "bias": "hidden" if biases and bias == "none" else bias,
            "weight_variance": weights,
            "bias_variance": biases,
            "_activation": activation_of(self.act, "MLP"),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def weight_variances(self) -> tuple[Fraction, ...]:
        """The variances of the weights of the layers 1..L."""
        found = variances_of(self.weight_variance, self.depth, "weight_variance", "MLP")
        return found if isinstance(found, tuple) else (found,) * self.depth

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
            f"{' at the start' if self.variances == 'initial' else ''}"
        )

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
        biased = Fraction(self.bias_variance or 1)
        initial = self.variances == "initial"
        if initial and mean:  # the factor in front multiplies the mean too
            mean = (
                *(m / root(v) for m, v in zip(mean, spreads, strict=False)),
                *mean[self.depth :],
            )
        writer = Writer("MLP", self.depth, a, bias_a, mean)
        inputs = writer.datum(dimension)
        biases = root(biased)
        x = -1
        for layer, variance in enumerate(spreads, start=1):
            weights = root(variance)
            if initial:
                writer.slowed(layer, variance, biased)
            if layer == 1:
                terms = writer.of_data(inputs, writer.group("W1", dimension, 1), weights)
            else:
                terms = writer.product(layer, writer.matrix(layer), x, weights)
            if layer in biased_layers(self.bias, self.depth):
                terms.append(writer.bias(layer, biases))
            h = writer.total(terms)
            x = writer.activated(layer, h, self._activation, self.norm)
            writer.contributes(layer, h)
        for k in range(outputs):
            self._output(writer, k, outputs, x)
        return writer.model()

    def _output(self, writer: Writer, k: int, outputs: int, x: Ref) -> None:
        layer, first = self.depth + 1, len(writer.parameters)
        f = writer.output(writer.readout(layer, k, outputs), x)
        if self.bias == "all":
            f = writer.shifted(f, layer, k)
        writer.contributes(layer, f, "" if outputs == 1 else f",{k}", first)
        writer.outputs.append(f)


ENTRY = ArchitectureFamily(
    "mlp",
    MLP,
    text="the multilayer perceptron: L hidden layers of one width, fully connected",
    source=Source(
        "Hajjar, Chizat, Giraud, Training integrable parameterizations", "equation (2.1)"
    ),
)
