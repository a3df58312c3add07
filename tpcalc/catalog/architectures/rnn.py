"""The recurrent network: one layer of weights applied at every token of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.catalog.architecture import (
    ArchitectureFamily,
    Number,
    activation_of,
    bias_variance_of,
    chosen,
    named,
    root,
    spread,
    variance_of,
)
from tpcalc.catalog.writer import Writer
from tpcalc.errors import StudyError
from tpcalc.functions import Expr
from tpcalc.orders import Ex
from tpcalc.passes.unroll import Model
from tpcalc.program.nodes import Ref
from tpcalc.results import checks
from tpcalc.sources import Source

__all__ = ["ENTRY", "RNN"]

OUTPUTS = ("last", "all")


@dataclass(frozen=True)
class RNN:
    """A recurrent network over sequences of ``length`` tokens, with a state of width n.

    h_s = W x_{s-1} + U xi_s + b, x_s = act(h_s), x_0 = 0, f_s = v . x_s for the tokens
    s = 1..T, with U = sigma_u n^(-a_1) u, W = sigma_w n^(-a_2) w, v = n^(-a_3) v', b a multiple
    sigma_b of N(0, 1) draws, and the same weights at every token. An input is a row of T d
    numbers, token by token. For the parameterization it has two hidden layers: layer 1 is U and b,
    layer 2 is W, layer 3 is the readout v.

    Args:
        length: Number of tokens T, at least 1.
        act: Activation, by catalogue name or as a function of an expression.
        weight_variance: sigma_w^2 of the recurrent weights W: a number or its text.
        input_variance: sigma_u^2 of the input weights U: a number or its text.
        bias_variance: sigma_b^2 of the bias; None or 0: no bias.
        outputs: ``"last"``: f is read off the last token; ``"all"``: off every token, T times as
            many outputs, token by token.

    Raises:
        StudyError: A length below 1, an unknown word, a variance that is none.
        UnknownName: No such activation.
        TraceError: An activation that is not a function of an expression.

    Source: Yang, Wide feedforward or recurrent neural networks of any architecture are Gaussian
        processes (2019), section 2.

    Example:
        >>> RNN(3, "erf", weight_variance=2).words
        'a recurrent network over 3 tokens with erf, without a bias, weight variance 2'
    """

    length: int
    act: str | Callable[[Expr], Expr] = "erf"
    weight_variance: Fraction | float | str = Fraction(1)
    input_variance: Fraction | float | str = Fraction(1)
    bias_variance: Fraction | float | str | None = None
    outputs: str = "last"
    _activation: Expr = field(init=False, repr=False, compare=False)
    _factors: tuple[Number, Number, Number] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        length = checks.whole(self.length, "length", least=1, hint="It counts the tokens.")
        chosen(self.outputs, "outputs", OUTPUTS, "RNN")
        weights = variance_of(self.weight_variance, "weight_variance", "RNN")
        inputs = variance_of(self.input_variance, "input_variance", "RNN")
        biases = bias_variance_of(self.bias_variance, "RNN")
        values = {
            "length": length,
            "weight_variance": weights,
            "input_variance": inputs,
            "bias_variance": biases,
            "_activation": activation_of(self.act, "RNN"),
            "_factors": (root(inputs), root(weights), root(biases or Fraction(1))),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def activation(self) -> Expr:
        """The activation, an expression of ``Var(0)``."""
        return self._activation

    @property
    def hidden(self) -> int:
        """The number of hidden layers for the parameterization: U with b, and W."""
        return 2

    @property
    def tokens(self) -> int:
        """The vectors that an input is made of."""
        return self.length

    @property
    def positions(self) -> int:
        """The number of tokens that the readout is applied to."""
        return self.length if self.outputs == "all" else 1

    @property
    def biased(self) -> bool:
        """Whether it has biases."""
        return bool(self.bias_variance)

    @property
    def words(self) -> str:
        """The architecture in a phrase."""
        tokens = f"{self.length} token" + ("s" if self.length > 1 else "")
        bias = "with a bias" if self.bias_variance else "without a bias"
        inputs = "" if self.input_variance == 1 else f", input variance {self.input_variance}"
        read = ", read off every token" if self.outputs == "all" else ""
        return (
            f"a recurrent network over {tokens} with {named(self.act)}, {bias}"
            f"{spread(self.weight_variance, self.bias_variance)}{inputs}{read}"
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
            dimension: Number of numbers in a sequence: T times the dimension of a token.
            outputs: Number of outputs K of the readout; those of ``outputs="all"`` are numbered
                token by token.
            a: The exponents a_1, a_2, a_3.
            bias_a: Those of the biases, of which the first counts; None: the same.
            mean: The means of the entries of u (0), w, v' at the start; empty: all 0.

        Returns:
            A template for ``unroll``, with h, x and their gradients watched; the layer in their
            names is the token. What an update of shared weights contributes at one token is not
            told apart: there are no ``dW_x`` and ``dB``.

        Raises:
            StudyError: A dimension that is no multiple of T; means for another number of layers,
                or one for the first layer.

        Source: Yang, Wide feedforward or recurrent neural networks, section 2.
        """
        if dimension % self.length:
            raise StudyError(
                f"an input has {dimension} numbers, which {self.length} tokens cannot share.",
                where="RNN",
                hint="A row holds the tokens one after the other, all of one dimension.",
            )
        writer = Writer("RNN", self.hidden, a, bias_a, mean)
        inputs = writer.datum(dimension)
        features = self._features(writer, inputs, dimension // self.length)
        readouts = [writer.readout(3, k, outputs) for k in range(outputs)]
        for x in features if self.outputs == "all" else features[-1:]:
            writer.outputs.extend(writer.output(v, x) for v in readouts)
        return writer.model()

    def _features(self, writer: Writer, inputs: Sequence[Ref], size: int) -> list[Ref]:
        """x_1..x_T."""
        from_input, from_state, from_bias = self._factors
        columns = writer.group("U", size, 1)
        bias = [writer.bias(1, from_bias)] if self.bias_variance else []
        matrix = writer.matrix(2) if self.length > 1 else -1
        features: list[Ref] = []
        for token in range(self.length):
            data = inputs[token * size : (token + 1) * size]
            terms = writer.of_data(data, columns, from_input) + bias
            if features:
                terms = writer.product(2, matrix, features[-1], from_state) + terms
            h = writer.total(terms)
            features.append(writer.activated(token + 1, h, self._activation, "none"))
        return features


ENTRY = ArchitectureFamily(
    "rnn",
    RNN,
    text="the recurrent network: one layer of weights applied at every token of a sequence",
    source=Source(
        "Yang, Wide feedforward or recurrent neural networks of any architecture are Gaussian "
        "processes",
        "section 2",
        "1910.12478",
    ),
)
