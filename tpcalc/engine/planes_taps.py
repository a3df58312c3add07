"""Rows of sums of taps."""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tpcalc.engine.kernels_compile import FLAGS
from tpcalc.engine.registers import REAL, WORD, Loop, in_registers, loaded, spread

MANY = 16  # columns at once
TAP = 4  # numbers of a tap: where its values, tangents and the numbers of columns are, and h


def _rows(
    builder: Any, args: Any, start: Any, stop: Any, lanes: int, taken: tuple[bool, bool]
) -> None:
    """Sums of taps from a column to another, so many columns at a time."""
    to, given, taps, kind = args[:2], args[3], args[4], ir.VectorType(REAL, lanes)
    zero, four = ir.Constant(kind, [0.0] * lanes), ir.Constant(REAL, 4.0)
    rows = Loop(builder, start, stop, lanes, [])
    at = builder.mul(rows.index, WORD(8))
    each = Loop(builder, WORD(0), taps, 1, [zero, zero])
    place = builder.add(given, builder.mul(each.index, WORD(8 * TAP)))
    x, y, other = (
        loaded(
            builder,
            builder.add(loaded(builder, builder.add(place, WORD(8 * k)), WORD), at),
            kind,
        )
        for k in range(3)
    )
    h = loaded(builder, builder.add(place, WORD(24)), REAL)
    a = builder.fmul(spread(builder, builder.fmul(four, h), kind), other)
    gap = builder.fsub(spread(builder, h, kind), other)
    found = []
    for total, value, square in zip(each.values, (x, y), taken, strict=True):
        total = builder.fadd(total, builder.fmul(a, value, flags=FLAGS), flags=FLAGS)
        if square:
            own = builder.fmul(gap, gap, flags=FLAGS)
            total = builder.fadd(total, own, flags=FLAGS)
        found.append(total)
    for address, value in zip(to, each.closed(found), strict=True):
        builder.store(value, builder.inttoptr(builder.add(address, at), kind.as_pointer()), align=8)
    rows.closed([])


def _taps(square: bool, both: bool) -> Any:
    """Sums of taps of a row; ``square``, ``both``: whether v and t take squares of differences."""

    @intrinsic
    def summed(typing_context: Any, v: Any, t: Any, width: Any, table: Any, count: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            rows = partial(_rows, builder, args, taken=(square, both))
            in_registers(builder, args[2], MANY, rows)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64, types.int64, types.int64), generate

    return summed


scaled_taps, first_taps, plain_taps = _taps(True, False), _taps(True, True), _taps(False, False)
