"""Rows of sums of taps, eight columns at a time: what loops over arrays cannot keep in registers.

The compiler does not know that rows of taps do not overlap those that they are summed into.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tpcalc.engine.kernels_compile import FLAGS

LANES = 8
TAP = 4  # numbers of a tap: where its values, tangents and the numbers of columns are, and h
_WORD, _REAL = ir.IntType(64), ir.DoubleType()
_LANES = ir.VectorType(_REAL, LANES)


def _loaded(builder: Any, address: Any, kind: Any) -> Any:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=8)


def _spread(builder: Any, value: Any) -> Any:
    """A number in all lanes."""
    one = builder.insert_element(ir.Constant(_LANES, ir.Undefined), value, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_LANES, ir.Undefined), mask)


class _Loop:
    """A loop over an integer, from 0 by steps, with values that it carries along."""

    def __init__(self, builder: Any, stop: Any, step: int, carried: list[Any]) -> None:
        self.builder, self.step = builder, step
        before, self.body = builder.block, builder.append_basic_block()
        self.end = builder.append_basic_block()
        self.stop = stop
        builder.cbranch(builder.icmp_signed("<", _WORD(0), stop), self.body, self.end)
        builder.position_at_end(self.body)
        self.index = builder.phi(_WORD)
        self.index.add_incoming(_WORD(0), before)
        self.values, self.before, self.starts = [], before, carried
        for one in carried:
            value = builder.phi(one.type)
            value.add_incoming(one, before)
            self.values.append(value)

    def closed(self, values: list[Any]) -> list[Any]:
        """End its body; what it carries out of it."""
        builder, last = self.builder, self.builder.block
        after = builder.add(self.index, _WORD(self.step))
        self.index.add_incoming(after, last)
        for phi, value in zip(self.values, values, strict=True):
            phi.add_incoming(value, last)
        builder.cbranch(builder.icmp_signed("<", after, self.stop), self.body, self.end)
        builder.position_at_end(self.end)
        found = []
        for start, value in zip(self.starts, values, strict=True):
            phi = builder.phi(start.type)
            phi.add_incoming(start, self.before)
            phi.add_incoming(value, last)
            found.append(phi)
        return found


def _taps(square: bool, both: bool) -> Any:
    """Sums of taps of a row; ``square``, ``both``: whether v and t take squares of differences."""

    @intrinsic
    def summed(typing_context: Any, v: Any, t: Any, width: Any, table: Any, count: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            to_v, to_t, stop, given, taps = args
            zero = ir.Constant(_LANES, [0.0] * LANES)
            rows = _Loop(builder, stop, LANES, [])
            at = builder.mul(rows.index, _WORD(8))
            each = _Loop(builder, taps, 1, [zero, zero])
            place = builder.add(given, builder.mul(each.index, _WORD(8 * TAP)))
            x, y, other = (
                _loaded(
                    builder,
                    builder.add(_loaded(builder, builder.add(place, _WORD(8 * k)), _WORD), at),
                    _LANES,
                )
                for k in range(3)
            )
            h = _spread(builder, _loaded(builder, builder.add(place, _WORD(24)), _REAL))
            four = ir.Constant(_LANES, [4.0] * LANES)
            a = builder.fmul(builder.fmul(four, h), other)
            gap = builder.fsub(h, other)
            found = []
            for total, value, taken in zip(each.values, (x, y), (square, both), strict=True):
                total = builder.fadd(total, builder.fmul(a, value, flags=FLAGS), flags=FLAGS)
                if taken:
                    own = builder.fmul(gap, gap, flags=FLAGS)
                    total = builder.fadd(total, own, flags=FLAGS)
                found.append(total)
            for to, value in zip((to_v, to_t), each.closed(found), strict=True):
                builder.store(
                    value, builder.inttoptr(builder.add(to, at), _LANES.as_pointer()), align=8
                )
            rows.closed([])
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64, types.int64, types.int64), generate

    return summed


scaled_taps, first_taps, plain_taps = _taps(True, False), _taps(True, True), _taps(False, False)
