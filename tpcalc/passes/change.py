"""Changes of values along changes of what they are computed from, by the backward pass twice.

With probes v_l the gradient of sum_l <v_l, y_l> by x is sum_l J_l^T v_l, which is linear in the
probes: the gradient of its inner product with u by v_l is J_l u. So the rules of the backward pass
are those of derivatives forward as well, and what the probes touched is not part of the result.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from math import prod

from tpcalc.exponents import Ex, as_ex
from tpcalc.functions.fn import INNER
from tpcalc.functions.numbers import Number
from tpcalc.passes import sums
from tpcalc.passes.backward import backward
from tpcalc.passes.sums import fresh, ratio, renamed, total
from tpcalc.program.nodes import Family, Input, Kind, Moment, Ref, Scale
from tpcalc.program.program import Builder

PROBE = "<probe>"
Outer = Sequence[tuple[Ref, Ref]]  # rows r and columns c of a change sum r c^T of a matrix
Direction = Ref | Outer


class Changes:
    """The derivatives of what is watched, along one change of the parameters or another."""

    def __init__(
        self,
        builder: Builder,
        parameters: Iterable[Ref],
        watched: Iterable[Ref],
        given: Container[Ref] = (),
    ) -> None:
        self._builder, self._probes = builder, dict[Ref, Ref]()
        for ref in dict.fromkeys(watched):
            kind = builder.type(ref)
            family = Family(f"{PROBE}{ref}", kind.width, kind.axes)
            self._probes[ref] = builder.add(Input(family))
        pairs = self._probes.items()
        probed = [one for ref, own in pairs for one in inner_products(builder, ref, ref, own)]
        self._back = backward(builder, [(ref, None) for ref in probed], [*parameters], given)

    def along(self, directions: Mapping[Ref, Direction]) -> dict[Ref, Ref]:
        """The derivatives; what does not change has none."""
        terms: list[Ref] = []
        for ref, change in directions.items():
            gradient = self._back.of(ref)
            if gradient is not None:
                terms += inner_products(self._builder, ref, gradient, change)
        if not terms:
            return {}
        forth = backward(self._builder, [(ref, None) for ref in terms], [*self._probes.values()])
        found = forth.adjoints
        return {ref: found[own] for ref, own in self._probes.items() if own in found}


def inner_products(out: Builder, ref: Ref, left: Direction, right: Direction) -> Iterator[Ref]:
    """<left, right> over all coordinates and cells of a node, as terms of a sum."""
    if isinstance(left, Ref) and isinstance(right, Ref):
        yield _of_vectors(out, ref, left, right)
    elif not isinstance(left, Ref) and not isinstance(right, Ref):
        yield from (_of_pairs(out, ref, one, other) for one in left for other in right)


def _of_vectors(out: Builder, ref: Ref, left: Ref, right: Ref) -> Ref:
    cells = dict(out.type(ref).axes)
    held = {name for own in (left, right) for name, _ in out.type(own).axes}
    times = prod(size for name, size in cells.items() if name not in held)
    over = tuple(name for name in cells if name in held)
    if out.type(left).kind is Kind.SCALAR:
        return total(out, [(times, left, right, over)])
    pair = out.add(Moment(INNER, (left, right)))
    whole = total(out, [(times * ratio(out, left), None, pair, over)])
    return out.add(Scale(whole, as_ex(1)))


def _of_pairs(out: Builder, matrix: Ref, pair: tuple[Ref, Ref], other: tuple[Ref, Ref]) -> Ref:
    family = dict(out.type(matrix).axes)
    taken = {*family, *(name for ref in pair for name, _ in out.type(ref).axes)}
    axes = dict.fromkeys(name for ref in other for name, _ in out.type(ref).axes)
    names = {name: fresh(f"{name}'", taken) for name in axes if name not in family}
    sides = zip(pair, other, strict=True)
    rows, cols = (out.add(Moment(INNER, (one, renamed(out, ref, names)))) for one, ref in sides)
    held = {name for ref in (rows, cols) for name, _ in out.type(ref).axes}
    times: Number = prod(size for name, size in family.items() if name not in held)
    times *= ratio(out, pair[0]) * ratio(out, pair[1])
    return out.add(Scale(total(out, [(times, rows, cols, tuple(sorted(held)))]), as_ex(2)))


def changes(builder: Builder, along: Mapping[Ref, Ref], watched: Iterable[Ref]) -> dict[Ref, Ref]:
    """The derivative of vectors along a change of others."""
    return Changes(builder, along, watched).along(along)


def scaled(builder: Builder, direction: Direction, power: Ex) -> Direction:
    """A change times a power of n."""
    if isinstance(direction, Ref):
        return sums.scaled(builder, direction, power)
    return tuple((sums.scaled(builder, row, power), col) for row, col in direction)
