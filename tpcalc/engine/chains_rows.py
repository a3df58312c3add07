"""Series over rows of pairs: each coefficient is a product of a number of either input.

Numbers of columns come from a second cache: four rows read them once.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tpcalc.arrays import Array, Index
from tpcalc.engine.kernels_compile import FLAGS, inner
from tpcalc.engine.registers import REAL, WORD, Loop, in_registers, loaded, spread, stored

FOUR = 4  # rows


class _Rows:
    """Some rows in a block of columns: their x, and their sums of terms."""

    def __init__(self, builder: Any, args: Any, rows: list[Any], at: Any, lanes: int) -> None:
        x, between, *_, self.own, self.next, self.stride, table, self.pitch = args
        self.builder, self.kind = builder, ir.VectorType(REAL, lanes)
        self.table, self.rows = builder.add(table, at), rows
        self.x = [loaded(builder, place, self.kind) for place in self.places(x, between, at)]
        self.none = [ir.Constant(self.kind, [0.0] * lanes)] * len(rows)

    def places(self, start: Any, between: Any, at: Any) -> list[Any]:
        """Of rows of an array."""
        place = self.builder.add(start, at)
        return [self.builder.add(place, self.builder.mul(k, between)) for k in self.rows]

    def add(self, a: Any, b: Any, c: Any) -> Any:
        product = self.builder.fmul(a, b, flags=FLAGS)
        return self.builder.fadd(product, c, flags=FLAGS)

    def with_term(self, k: Any, totals: list[Any]) -> list[Any]:
        place = self.builder.add(self.table, self.builder.mul(k, self.pitch))
        b = loaded(self.builder, place, self.kind)
        places = self.places(self.own, self.next, self.builder.mul(k, self.stride))
        own = [spread(self.builder, loaded(self.builder, one, REAL), self.kind) for one in places]
        return [self.add(a, b, total) for a, total in zip(own, totals, strict=True)]

    def store(self, found: list[Any], start: Any, between: Any, at: Any) -> None:
        for value, place in zip(found, self.places(start, between, at), strict=True):
            stored(self.builder, value, place)


def _chebyshev(rows: _Rows, args: Any, at: Any) -> None:
    builder, count = rows.builder, len(rows.rows)
    _, _, _, _, out, after, degrees, number, *_ = args
    twice = [builder.fadd(x, x) for x in rows.x]
    each = Loop(builder, WORD(0), number, 1, rows.none * 2)
    m = builder.sub(builder.sub(number, WORD(1)), each.index)
    place = builder.add(degrees, builder.mul(m, WORD(8)))
    first, stop = (loaded(builder, builder.add(place, WORD(k)), WORD) for k in (0, 8))
    terms = Loop(builder, first, stop, 1, rows.none)
    totals = terms.closed(rows.with_term(terms.index, terms.values))
    newest, before = each.values[:count], each.values[count:]
    last, found = builder.icmp_signed("==", m, WORD(0)), []
    for k, total in enumerate(totals):
        factor = builder.select(last, rows.x[k], twice[k])
        found.append(rows.add(factor, newest[k], builder.fsub(total, before[k])))
    rows.store(each.closed([*found, *newest])[:count], out, after, at)


def _powers(rows: _Rows, args: Any, at: Any) -> None:
    builder, count = rows.builder, len(rows.rows)
    _, _, _, _, out, after, also, number, *_ = args
    each = Loop(builder, WORD(0), number, 1, rows.none * 2)
    k = builder.sub(builder.sub(number, WORD(1)), each.index)
    values, slopes = each.values[:count], each.values[count:]
    slopes = [rows.add(*one) for one in zip(slopes, rows.x, values, strict=True)]
    values = [builder.fmul(value, x) for value, x in zip(values, rows.x, strict=True)]
    found = each.closed([*rows.with_term(k, values), *slopes])
    rows.store(found[:count], out, after, at)
    rows.store(found[count:], also, after, at)


def _series(write: Any) -> Any:
    """Sums of terms along rows of an array x, into one with rows as far apart as those of the next.

    Places, and how far rows are apart: of x, with its numbers of rows and columns; of the result,
    with places of degrees or of derivatives and their number; of the terms of rows, with how far
    these are apart; of the terms of columns.
    """

    @intrinsic
    def summed(
        typing_context: Any, x: Any, between: Any, rows: Any, columns: Any, out: Any, after: Any,
        more: Any, number: Any, own: Any, following: Any, stride: Any, table: Any, pitch: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def block(some: list[Any], start: Any, stop: Any, lanes: int) -> None:
                place = Loop(builder, start, stop, lanes, [])
                at = builder.mul(place.index, WORD(8))
                write(_Rows(builder, args, some, at, lanes), args, at)
                place.closed([])

            fours = builder.and_(args[2], WORD(-FOUR))
            for first, last, step in ((WORD(0), fours, FOUR), (fours, args[2], 1)):
                several = Loop(builder, first, last, step, [])
                some = [builder.add(several.index, WORD(k)) for k in range(step)]
                in_registers(builder, args[3], 64 // (step + 1) // 8 * 8, partial(block, some))
                several.closed([])
            return context.get_dummy_value()

        return types.void(*[types.int64] * 13), generate

    return summed


_by_degree, _by_power = _series(_chebyshev), _series(_powers)


@inner
def clenshaw(x: Array, own: Array, table: Array, degrees: Index, start: int, out: Array) -> None:
    """sum_m T_m(x) sum_r a_r b_r over the terms r of each degree m, of all rows of x.

    Whole registers are read and written.
    """
    _by_degree(
        x.ctypes.data, x.strides[0], x.shape[0], x.shape[1], out.ctypes.data, out.strides[0],
        degrees.ctypes.data, degrees.size - 1, own.ctypes.data, own.strides[0], own.strides[1],
        table.ctypes.data + 8 * start, table.strides[0],
    )  # fmt: skip


@inner
def horner(x: Array, own: Array, table: Array, start: int, out: Array, slope: Array) -> None:
    """sum_k a_k b_k x^k and its derivative by x, likewise."""
    _by_power(
        x.ctypes.data, x.strides[0], x.shape[0], x.shape[1], out.ctypes.data, out.strides[0],
        slope.ctypes.data, table.shape[0], own.ctypes.data, own.strides[0], own.strides[1],
        table.ctypes.data + 8 * start, table.strides[0],
    )  # fmt: skip
