"""Loops over vector registers: what the compiler does not keep there in loops over arrays.

It does not know that rows which are read do not overlap those that are written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

LANES = 8  # of a register
WORD, REAL = ir.IntType(64), ir.DoubleType()


def loaded(builder: Any, address: Any, kind: Any) -> Any:
    """What stands at a place."""
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=8)


def spread(builder: Any, value: Any, kind: Any) -> Any:
    """A number in all lanes."""
    none = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(none, value, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, none, mask)


class Loop:
    """A loop over an integer, from a start by steps, with values that it carries along."""

    def __init__(self, builder: Any, start: Any, stop: Any, step: int, carried: list[Any]) -> None:
        self.builder, self.step = builder, step
        before, self.body = builder.block, builder.append_basic_block()
        self.end = builder.append_basic_block()
        self.stop = stop
        builder.cbranch(builder.icmp_signed("<", start, stop), self.body, self.end)
        builder.position_at_end(self.body)
        self.index = builder.phi(WORD)
        self.index.add_incoming(start, before)
        self.values, self.before, self.starts = [], before, carried
        for one in carried:
            value = builder.phi(one.type)
            value.add_incoming(one, before)
            self.values.append(value)

    def closed(self, values: list[Any]) -> list[Any]:
        """End its body; what it carries out of it."""
        builder, last = self.builder, self.builder.block
        after = builder.add(self.index, WORD(self.step))
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


def in_registers(
    builder: Any, width: Any, many: int, block: Callable[[Any, Any, int], None]
) -> None:
    """Columns up to a width, many at once and then one register; whole ones are read."""
    whole = builder.and_(builder.add(width, WORD(LANES - 1)), WORD(-LANES))
    most = builder.and_(whole, WORD(-many))
    block(WORD(0), most, many)
    block(most, whole, LANES)


def stored(builder: Any, value: Any, address: Any) -> None:
    """Put a value at a place."""
    builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=8)
