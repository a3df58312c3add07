"""The recurrent network: one layer of weights applied at every token of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from tpcalc import checks
from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.vectors import Vector
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
    spread,
    variance_of,
)
from tpcalc.networks.tracer import NetworkTracer
from tpcalc.sources import Source

OUTPUTS = ("last", "all")


@dataclass(frozen=True)
class RNN(Catalogued):
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
        norm: ``"layer"``: x_s = act(LN(h_s)); ``"rms"``: without centring; ``"none"``: neither.

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

    kind, size, normed = "recurrent network", ("over", "length", "token"), "states"
    counted: ClassVar[str] = "token"
    length: int
    act: str | Callable[[Expr], Expr] = "erf"
    weight_variance: Fraction | float | str = Fraction(1)
    input_variance: Fraction | float | str = Fraction(1)
    bias_variance: Fraction | float | str | None = None
    outputs: str = "last"
    norm: str = "none"
    _activation: Expr = field(init=False, repr=False, compare=False)
    _factors: tuple[Number, Number, Number] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        length = checks.whole(
            self.length, "length", least=1, each=checks.PART, hint="It counts the tokens."
        )
        chosen(self.outputs, "outputs", OUTPUTS, "RNN")
        chosen(self.norm, "norm", tuple(NORMS), "RNN")
        weights = variance_of(self.weight_variance, "weight_variance", "RNN")
        inputs = variance_of(self.input_variance, "input_variance", "RNN")
        biases = bias_variance_of(self.bias_variance, "RNN")
        self._settle(
            length=length,
            weight_variance=weights,
            input_variance=inputs,
            bias_variance=biases,
            _factors=(root(inputs), root(weights), root(biases or Fraction(1))),
        )

    @property
    def axes(self) -> Mapping[str, int]:
        """An input is a sequence of tokens."""
        return {"p": self.length}

    @property
    def words(self) -> str:
        """The architecture in a phrase."""
        bias = "with a bias" if self.bias_variance else "without a bias"
        inputs = "" if self.input_variance == 1 else f", input variance {self.input_variance}"
        read = ", read off every token" if self.outputs == "all" else ""
        return (
            f"{self._begun}, {bias}{spread(self.weight_variance, self.bias_variance)}{inputs}{read}"
        )

    def forward(self, t: NetworkTracer, x: Scalar) -> list[Scalar]:
        """The outputs; h and x are reported, the layer in their names is the token.

        Args:
            t: Makes parameters.
            x: The tokens.

        Source: Yang, Wide feedforward or recurrent neural networks, section 2.
        """
        from_input, from_state, from_bias = self._factors
        enter = t.linear(
            t.n,
            "in",
            bool(self.bias_variance),
            name="U",
            bias_name="b1",
            label="U",
            factors=(from_input, from_bias),
        )
        if self.length > 1:  # a single token has no state before it
            state = t.linear(t.n, t.n, name="W2", label="W", factors=(from_state, Fraction(1)))
        read = t.linear(t.outputs, t.n, name="W3", label="v", layer=3)
        features: list[Vector] = []
        for token in range(self.length):
            h = enter(x.at(p=token))
            if features:
                h = state(features[-1]) + h
            features.append(activated(t, token + 1, h, self._activation, self.norm))
        return [read(one) for one in (features if self.outputs == "all" else features[-1:])]


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
