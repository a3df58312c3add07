"""Maps of low rank: two maps with fewer coordinates in between."""

from __future__ import annotations

from fractions import Fraction
from statistics import NormalDist
from typing import Any

from tpcalc.activations.entries import lookup
from tpcalc.dsl.operands import as_rational, misuse
from tpcalc.dsl.vectors import Vector, nonlin
from tpcalc.functions import Fn, Var
from tpcalc.functions.expr import substitute
from tpcalc.functions.numbers import Number, root
from tpcalc.networks.layers.given import part, tracer, word
from tpcalc.networks.maps import ONE, Linear, Side
from tpcalc.networks.own import Layer
from tpcalc.networks.tracer import NetworkTracer

FAMILIES = {  # the laws of A, which reads, and of C, which writes
    "gaussian": ("gaussian", "orthogonal"),
    "orthogonal": ("orthogonal", "orthogonal"),
    "gaussian-gaussian": ("gaussian", "gaussian"),
    "padded": ("", "orthogonal"),
}
BIASES = ("", "span", "shared")


class LowRank(Layer):
    """A map of low rank with a bias in its span: C (A x + b).

    C has orthonormal columns and A independent Gaussian entries (``"gaussian"``), both are Haar
    (``"orthogonal"``) or Gaussian (``"gaussian-gaussian"``), or A keeps some coordinates of x and
    sets all others to 0 (``"padded"``). From a finite side A is always Gaussian, as its columns
    are few.

    Args:
        t: The tracer of the network.
        out: What the map goes to: a width (``t.n``).
        into: What it comes from: a width, or the name of a finite axis (``"in"``).
        rank: The rank over the width that it goes to, at most 1.
        family: ``"gaussian"``, ``"orthogonal"``, ``"gaussian-gaussian"`` or ``"padded"``.
        bias: ``"span"``: b has a number for each direction; ``"shared"``: one for all of them;
            empty: none.
        factors: In front of the weights and of the bias.
        name: Its name, where no class keeps it.

    Raises:
        TraceError: A rank above 1 or above what it reads, a family or a bias that there is not.

    Source: On the initialisation of wide low-rank feedforward neural networks, equation 2 and
        section 3.

    Example:
        >>> import tpcalc as tp
        >>> @tp.network
        ... def net(t, x):
        ...     h = t.linear(t.n, "in", name="u")(x)
        ...     h = tp.layers.LowRank(t, t.n, t.n, "1/4", bias="span", name="w")(tp.tanh(h))
        ...     return t.linear(t.outputs, t.n, name="v")(h)
        >>> [(mark.label, mark.role) for mark in net.marks][1:4]
        [('w.right', 'hidden'), ('w.bias', 'bias'), ('w.left', 'hidden')]
    """

    def __init__(
        self,
        t: NetworkTracer,
        out: str,
        into: Side,
        rank: Number | str,
        family: str = "gaussian",
        bias: str = "",
        factors: tuple[Number, Number] = (ONE, ONE),
        *,
        name: str = "",
    ) -> None:
        dims = tracer(t, "LowRank").recorder.dims
        reads, writes = FAMILIES[word(family, "the family", "LowRank", tuple(FAMILIES))]
        share = as_rational(rank, "the rank")
        if not 0 < share <= 1 or out not in dims:
            raise misuse(
                f"the rank of a map to {out!r} is {rank} of the width.",
                "It is above 0 and at most 1, and the map goes to a width (t.n).",
            )
        inner, read = share * dims[out].ratio, dims[into].ratio if into in dims else None
        if read is not None and inner > read and family in ("orthogonal", "padded"):
            raise misuse(
                f"the rank is {inner} n, more than the {read} n coordinates that {family} "
                "weights read.",
                "The rank is at most the smaller width.",
            )
        self.bias = word(bias, "the bias", "LowRank", BIASES)
        self.factors = factors
        self.mask: Vector | None = None
        self.right: Linear[Any] | None = None
        between = width(t, inner)
        if read is None:
            first = (factors[0], ONE)
            self.right = t.linear(between, into, name=part(name, "right"), factors=first)
        elif reads:
            first = (factors[0] * root(1 / read), ONE)
            self.right = t.linear(between, into, name=part(name, "right"), factors=first, law=reads)
        else:
            between = str(into)
            if inner < read:
                self.mask = _mask(t, between, inner / read, part(name, "mask"))
        size = (root(1 / dims[out].ratio), ONE)
        self.shift = t.parameter(part(name, "bias")) if bias else None
        self.left = t.linear(out, between, name=part(name, "left"), factors=size, law=writes)

    def __call__(self, x: Any, given: Number = 0) -> Vector:
        """The map applied.

        Args:
            x: What it reads; every cell of its other axes is mapped alike.
            given: A number that is added to A x in all directions.
        """
        z = self.factors[0] * x if self.right is None else self.right(x)
        if self.shift is not None:
            self.shift.named(f"{self.left.tracer.parameters.index(self.shift)}.bias")
            wide = (z.dim,) if self.bias == "span" else ()
            z = z + self.factors[1] * self.left.tracer.at(self.shift.drawn(wide))
        z = z + given
        if self.mask is not None:
            z = self.mask * z
        found: Vector = self.left(z)
        return found


def width(t: NetworkTracer, ratio: Number) -> str:
    """The width of ``ratio`` times n."""
    ratio = as_rational(ratio, "a width")
    return t.n if ratio == 1 else t.dim(f"d{ratio.numerator}_{ratio.denominator}", ratio)


def _mask(t: NetworkTracer, dim: str, share: Fraction, name: str) -> Vector:
    """Ones on a share of the coordinates: where a Gaussian vector lies below its quantile."""
    below = NormalDist().inv_cdf(float(share)) - Var(0)
    step = substitute(lookup("step").fn.expr, {Var(0): below})
    return nonlin(Fn(step, 1), [t.gaussian(name or f"mask{len(t.maps) + 1}", dim)])
