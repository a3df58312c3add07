"""Dropout: a random factor for every coordinate, drawn anew for every input and step."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from statistics import NormalDist

from tpcalc.activations.entries.step import STEP
from tpcalc.dsl.operands import as_rational, misuse, noun
from tpcalc.dsl.vectors import Vector, nonlin
from tpcalc.functions import Fn, Var, const
from tpcalc.functions.numbers import Number
from tpcalc.networks.layers.given import block, tracer, word
from tpcalc.networks.own import Layer
from tpcalc.networks.tracer import NetworkTracer

LAWS = ("bernoulli", "gaussian")


class Dropout(Layer):
    """Each coordinate times a random factor of mean 1 and variance p / (1 - p).

    The factors are independent over coordinates, cells, inputs and steps, as in training; queries
    have factors of their own too, for a network has no second mode. The network without dropout is
    that with ``rate=0``, which has the same parameters.

    Args:
        t: The tracer of the network.
        rate: The probability p, from 0 on and below 1.
        law: ``"bernoulli"``: the factor is 0 with probability p, else 1 / (1 - p), as a function of
            a Gaussian; ``"gaussian"``: N(1, p / (1 - p)).
        name: The name of what is drawn.

    Raises:
        TraceError: The rate is no probability below 1, or there is no such law.

    Source: Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov, Dropout (2014), sections 4
        and 10.

    Example:
        >>> import tpcalc as tp
        >>> @tp.network
        ... def net(t, x):
        ...     h = tp.layers.Dropout(t, 0.5)(tp.relu(t.linear(t.n, "in", name="u")(x)))
        ...     return t.linear(t.outputs, t.n, name="v")(h)
        >>> [mark.label for mark in net.marks]
        ['u', 'v']
    """

    def __init__(
        self, t: NetworkTracer, rate: Number = Fraction(1, 2), law: str = LAWS[0], *, name: str = ""
    ) -> None:
        self.tracer = tracer(t, "Dropout")
        self.rate = as_rational(rate, "the rate of Dropout")
        if not 0 <= self.rate < 1:
            raise misuse(f"the rate of Dropout is {rate}.", "It is a probability below 1.")
        self.law, self.name = word(law, "the law", "Dropout", LAWS), name

    def __call__(self, x: Vector) -> Vector:
        """The vector with its coordinates multiplied.

        Args:
            x: A vector, or a block of vectors.

        Raises:
            TraceError: It is something else.
        """
        if not isinstance(block(x, "Dropout"), Vector):
            raise misuse(f"Dropout is applied to {noun(x)}; it takes a vector.")
        if self.rate == 0:
            return x
        drawn = self.tracer.noise(self.name, dim=x.dim, axes=x.axes)
        kept = 1 - self.rate
        if self.law == "gaussian":
            return x * (1 + sqrt(self.rate / kept) * drawn)
        above = -NormalDist().inv_cdf(float(self.rate))  # g > its quantile, with chance 1 - p
        mask = const(1 / kept) * STEP(Var(1) + const(above))
        return nonlin(Fn(Var(0) * mask, 2), [x, drawn])
