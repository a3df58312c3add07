"""Attention: averages over positions, weighted by inner products."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeVar

from tpcalc.activations.rows.softmax import ENTRY as SOFTMAX
from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.operands import misuse, noun
from tpcalc.dsl.powers import n
from tpcalc.dsl.tracer import Tracer
from tpcalc.dsl.vectors import Vector
from tpcalc.functions.numbers import root
from tpcalc.networks.layers.given import part, size_of, tracer, whole, word
from tpcalc.networks.own import Layer
from tpcalc.networks.tracer import NetworkTracer

Scores = TypeVar("Scores", Scalar, Vector)
SCALES = ("1/d", "1/sqrt(d)")
HEAD, FEATURE = "head", "feature"


def attention(
    q: Vector,
    k: Vector,
    v: Vector,
    axis: str = "p",
    scale: str = SCALES[0],
    causal: bool = False,
) -> Vector:
    """Averages of values over positions, weighted by the softmax of scaled scores q . k.

    Args:
        q: Queries, a block of vectors along the axis.
        k: Keys, on the dimension class of the queries.
        v: Values, on any dimension class.
        axis: The axis of positions; other axes (heads) meet by name.
        scale: ``"1/d"``: scores are averages over the d coordinates, as muP has them;
            ``"1/sqrt(d)"``: they are sums over the root of d.
        causal: Whether a position attends to itself and to earlier ones alone.

    Returns:
        A block of vectors along the axis, on the dimension class of the values.

    Raises:
        TraceError: There is no such axis, or no such scale.
        DimMismatch: Queries and keys live on different dimension classes.

    Source: Vaswani et al., Attention is all you need (2017), equation (1); Yang et al., Tensor
        Programs V (2022), definition 4.1, for the scale 1/d.

    Example:
        >>> from tpcalc.dsl.trace import program
        >>> @program
        ... def mixed(t):
        ...     q, k, v = (t.gaussian(name, axes={"p": 3}) for name in "qkv")
        ...     t.output("y", attention(q, k, v))
        >>> str(mixed.types[-1])
        'n[p:3]'
    """
    word(scale, "the scale", "attention", SCALES)
    for value in (q, k, v):
        size_of(value, axis, "attention")
        if not isinstance(value, Vector):
            raise misuse(f"attention is taken of vectors, not of {noun(value)}.")
    t, twin = Tracer(q.recorder), f"{axis}'"
    scores = t.inner(q, k.renamed(**{axis: twin}))
    if scale != SCALES[0]:
        ratio = q.recorder.dims[q.dim].ratio
        scores = root(ratio) * (n ** Fraction(1, 2) * scores)
    shares = causal_softmax(scores, axis, twin) if causal else SOFTMAX(scores, along=twin)
    return t.sum(shares * v.renamed(**{axis: twin}), twin)


def causal_softmax(scores: Scores, axis: str, along: str) -> Scores:
    """The softmax of each row over the cells up to its own; 0 for those after it.

    Args:
        scores: A block of scalars, or of vectors, with both axes, of one size.
        axis: The axis that numbers the rows.
        along: The axis along a row.

    Returns:
        A block with both axes, whose rows sum to 1.

    Raises:
        TraceError: There is no such axis, or they have different sizes.

    Source: Vaswani et al., Attention is all you need (2017), section 3.2.3.

    Example:
        >>> from tpcalc.dsl.trace import program
        >>> @program
        ... def shares(t):
        ...     s = t.data("s", [[1, 2], [0, 0]], ("p", "q"))
        ...     t.output("w", causal_softmax(s, "p", "q"))
        >>> str(shares.types[-1])
        '[p:2,q:2]'
    """
    rows, cells = (size_of(scores, one, "a causal softmax") for one in (axis, along))
    if rows != cells:
        raise misuse(f"a causal softmax of {rows} rows of {cells} cells.", "They are as many.")
    # A row is cut off after its own cell: minus infinity is no number of the language.
    t, seen, found = Tracer(scores.recorder), f"{along}'", []
    for row in range(rows):
        upto = t.constant(
            [[int(cell == place) for cell in range(cells)] for place in range(row + 1)],
            (seen, along),
            "causal mask",
        )
        share = SOFTMAX(t.chosen(scores.at(**{axis: row}), upto, along), along=seen)
        found.append(t.chosen(share, upto, seen))
    shares: Scores = t.stack(found, axis)
    return shares


class Attention(Layer):
    """Self-attention with trained queries, keys, values and outputs, on one width.

    Args:
        t: The tracer of the network.
        heads: The number of heads H; they are a finite axis ``head``. ``t.n``: heads that grow with
            the width, of a fixed size ``dim``, as most large models have them.
        dim: The dimension class d of a head; by default n / H, so that the heads share the width.
            Of heads that grow their size, a number.
        axis: The axis of positions.
        scale: ``"1/d"``, as muP has it, or ``"1/sqrt(d)"``.
        causal: Whether a position attends to itself and to earlier ones alone.
        bias: Whether the maps have biases.
        into: The dimension class that it reads and writes.
        name: Its name, where no class keeps it.

    Raises:
        TraceError: There are no heads, or no such scale.

    Source: Vaswani et al., Attention is all you need (2017), section 3.2.2; Yang et al., Tensor
        Programs V (2022), definition 4.1, for the scale 1/d.

    Example:
        >>> import tpcalc as tp
        >>> class Net(tp.Network):
        ...     axes = {"p": 3}
        ...     def __init__(self, t):
        ...         self.embed, self.read = t.linear(t.n, "in"), t.linear(t.outputs, t.n)
        ...         self.mix = tp.layers.Attention(t, heads=2, causal=True)
        ...     def forward(self, x):
        ...         x = self.embed(x)
        ...         return self.read(x + self.mix(x))
        >>> [mark.label for mark in tp.network(Net).marks]
        ['embed', 'mix.query', 'mix.key', 'mix.value', 'mix.output', 'read']
    """

    def __init__(
        self,
        t: NetworkTracer,
        heads: int | str = 1,
        *,
        dim: str | int | None = None,
        axis: str = "p",
        scale: str = SCALES[0],
        causal: bool = False,
        bias: bool = False,
        into: str = "n",
        name: str = "",
    ) -> None:
        t = tracer(t, "Attention")
        self.axis, self.causal = axis, causal
        self.scale = word(scale, "the scale", "Attention", SCALES)
        ratio = t.recorder.dims[t.recorder.dim_name(into)].ratio
        self.growing = heads == t.n
        if self.growing:
            size = whole(dim, "the size of a head", "Attention with heads that grow")
            axes, dim = {FEATURE: size}, t.dim(f"{into}_{size}", ratio / size)
        else:
            count = whole(heads, "the number of heads", "Attention")
            if isinstance(dim, int):
                raise misuse(
                    f"the dimension class of a head is the number {dim}.",
                    "Name a class, t.dim('d', ...); a number is the size of heads=t.n.",
                )
            axes = {HEAD: count} if count > 1 else {}
            if dim is None:
                dim = into if count == 1 else t.dim(f"{into}_{count}", ratio / count)

        def linear(out: str, of: str, what: str, over: tuple[str, ...] = ()) -> Any:
            return t.linear(out, of, bias, axes=axes, over=over, name=part(name, what))

        self.query = linear(dim, into, "query")
        self.key = linear(dim, into, "key")
        self.value = linear(dim, into, "value")
        self.output = linear(into, dim, "output", tuple(axes))

    def __call__(self, x: Vector) -> Vector:
        """What every position gets of the others.

        Args:
            x: A block of vectors with the axis of positions.

        Raises:
            TraceError: There is no such axis.
        """
        size_of(x, self.axis, "Attention")
        if HEAD in x.axes and self.query.axes:  # they would be taken for the heads
            raise misuse(f"Attention is applied to a block with an axis {HEAD!r} of its own.",
                         "Rename it: x.renamed(head='other').")  # fmt: skip
        q, k, v = self.query(x), self.key(x), self.value(x)
        mix = _heads_that_grow if self.growing else attention
        mixed: Vector = self.output(mix(q, k, v, self.axis, self.scale, self.causal))
        return mixed


def _heads_that_grow(
    q: Vector, k: Vector, v: Vector, axis: str, scale: str, causal: bool
) -> Vector:
    """The same for heads along the coordinates: scores of a head are sums over a finite axis."""
    t, twin, size = Tracer(q.recorder), f"{axis}'", dict(q.axes)[FEATURE]
    factor = Fraction(1, size) if scale == SCALES[0] else root(Fraction(1, size))
    scores = factor * t.sum(q * k.renamed(**{axis: twin}), FEATURE)
    shares = causal_softmax(scores, axis, twin) if causal else SOFTMAX(scores, along=twin)
    return t.sum(shares * v.renamed(**{axis: twin}), twin)
