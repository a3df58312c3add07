"""The innermost loops of panels: tiles of sums that stay in vector registers.

Written as LLVM code: numba has no vector types, and what its compiler makes of plain loops adds up
a register at the end of every stretch. Addresses of rows and columns come in arrays, so that rows
may lie anywhere. Meanwhile other rows are fetched: memory and arithmetic are busy at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["ACROSS", "DOWN", "LANES", "add_short_tile", "add_tile", "dot_tile", "fetch"]

LANES = 8  # numbers in a vector; where registers are shorter the compiler takes several
ACROSS = 4  # columns of a tile
DOWN = 6  # rows of a tile of inner products
LINE = 64  # bytes of a cache line

WORD, FLOAT, BYTE = ir.IntType(64), ir.DoubleType(), ir.IntType(8)
VECTOR = ir.VectorType(FLOAT, LANES)
CONTRACT = ("contract",)


def _at(builder: Any, base: Any, *offsets: Any) -> Any:
    for offset in offsets:
        base = builder.add(base, offset)
    return base


def _load(builder: Any, address: Any, kind: Any) -> Any:
    """Numbers at an address, as float64."""
    found = builder.load(builder.inttoptr(address, kind.as_pointer()), align=4)
    entry = kind.element if isinstance(kind, ir.VectorType) else kind
    if entry in (FLOAT, WORD):
        return found
    return builder.fpext(found, VECTOR)


def _store(builder: Any, value: Any, address: Any) -> None:
    builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=8)


def _words(builder: Any, address: Any, count: int) -> list[Any]:
    """The first addresses of an array of them."""
    return [_load(builder, _at(builder, address, WORD(8 * i)), WORD) for i in range(count)]


def _prefetch(builder: Any, address: Any, lines: int) -> None:
    place, number = BYTE.as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [place, number, number, number])
    found = builder.module.declare_intrinsic("llvm.prefetch", [place], kind)
    for line in range(lines):
        own = builder.inttoptr(_at(builder, address, WORD(line * LINE)), place)
        # Into the second cache: the first has few places for misses, which arithmetic needs.
        builder.call(found, [own, number(0), number(2), number(1)])


def _loop(
    builder: Any, count: Any, start: Sequence[Any], step: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """Repeat a step, at least once, on values that stay in registers."""
    before, body, after = (
        builder.block,
        builder.append_basic_block("tile"),
        builder.append_basic_block("done"),
    )
    builder.branch(body)
    builder.position_at_end(body)
    index = builder.phi(WORD)
    held = [builder.phi(value.type) for value in start]
    found = step(index, held)
    following = builder.add(index, WORD(1))
    for phi, first, later in zip(
        [index, *held], [WORD(0), *start], [following, *found], strict=True
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(later, body)
    builder.cbranch(builder.icmp_signed("<", following, count), body, after)
    builder.position_at_end(after)
    return found


def _multiply_add(builder: Any, total: Any, one: Any, two: Any) -> Any:
    product = builder.fmul(one, two, flags=CONTRACT)
    return builder.fadd(total, product, flags=CONTRACT)


def _shuffled(builder: Any, one: Any, two: Any, lanes: Sequence[int]) -> Any:
    number = ir.IntType(32)
    mask = ir.Constant(ir.VectorType(number, len(lanes)), [number(lane) for lane in lanes])
    return builder.shuffle_vector(one, two, mask)


def _sums(builder: Any, vectors: Sequence[Any]) -> Any:
    """The sums of eight vectors, as one."""
    halves = (
        ((0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)),
        ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)),
        ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)),
    )
    held = list(vectors)
    for low, high in halves:
        held = [
            builder.fadd(_shuffled(builder, a, b, low), _shuffled(builder, a, b, high))
            for a, b in zip(held[::2], held[1::2], strict=True)
        ]
    return held[0]


def _broadcast(builder: Any, value: Any) -> Any:
    whole = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), value, ir.IntType(32)(0))
    return _shuffled(builder, whole, whole, [0] * LANES)


@intrinsic
def fetch(typing_context: Any, address: Any) -> Any:
    """Ask for the cache line at an address; never faults."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _prefetch(builder, args[0], 1)
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _entry(data: Any) -> tuple[Any, int]:
    """The type of a number of stored rows, and its bytes."""
    return (FLOAT, 8) if data.dtype == types.float64 else (ir.FloatType(), 4)


@intrinsic
def dot_tile(
    typing: Any, data: Any, rows: Any, columns: Any, count: Any, out: Any, width: Any, ahead: Any
) -> Any:
    """Add inner products of six rows and four columns to ``out``, rows ``width`` bytes apart.

    ``data`` says what rows consist of, ``rows`` and ``columns`` where their addresses are; of each
    ``count`` vectors are read. Three lines for each vector are fetched from ``ahead`` on.
    """
    entry, size = _entry(data)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, rows, columns, count, out, width, ahead = args
        p, x = _words(builder, rows, DOWN), _words(builder, columns, ACROSS)

        def step(index: Any, held: list[Any]) -> list[Any]:
            _prefetch(builder, _at(builder, ahead, builder.mul(index, WORD(3 * LINE))), 3)
            near = builder.mul(index, WORD(8 * LANES))
            far = builder.mul(index, WORD(size * LANES))
            y = [_load(builder, _at(builder, one, near), VECTOR) for one in x]
            found = []
            for i, row in enumerate(p):
                a = _load(builder, _at(builder, row, far), ir.VectorType(entry, LANES))
                own = held[i * ACROSS : (i + 1) * ACROSS]
                found += [_multiply_add(builder, s, a, b) for s, b in zip(own, y, strict=True)]
            return found

        found = _loop(builder, count, [ir.Constant(VECTOR, None)] * (DOWN * ACROSS), step)
        for i in range(0, DOWN, 2):
            sums = _sums(builder, found[i * ACROSS : (i + 2) * ACROSS])
            for row in (0, 1):
                own = _shuffled(builder, sums, sums, range(row * ACROSS, (row + 1) * ACROSS))
                place = _at(builder, out, builder.mul(width, WORD(i + row)))
                _store(builder, builder.fadd(own, _load(builder, place, own.type)), place)
        return context.get_dummy_value()

    return types.void(data, *[types.int64] * 6), generate


def _add_tile(vectors: int) -> Any:
    @intrinsic
    def tile(
        typing: Any, data: Any, rows: Any, count: Any, first: Any, table: Any, width: Any,
        columns: Any, ahead: Any,
    ) -> Any:  # fmt: skip
        """Add rows times a table, rows ``width`` bytes apart, to a few vectors of four columns.

        ``data`` says what rows consist of, ``rows`` (``count`` of them) and ``columns`` where their
        addresses are; ``first`` is the sample to begin with. Two lines for each row are fetched
        from ``ahead`` on.
        """
        entry, size = _entry(data)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, rows, count, first, table, width, columns, ahead = args
            near, far = builder.mul(first, WORD(8)), builder.mul(first, WORD(size))
            places = [
                _at(builder, column, near, WORD(8 * LANES * v))
                for column in _words(builder, columns, ACROSS)
                for v in range(vectors)
            ]

            def step(index: Any, held: list[Any]) -> list[Any]:
                _prefetch(builder, _at(builder, ahead, builder.mul(index, WORD(2 * LINE))), 2)
                row = _load(builder, _at(builder, rows, builder.mul(index, WORD(8))), WORD)
                own = _at(builder, table, builder.mul(index, width))
                kind = ir.VectorType(entry, LANES)
                p = [
                    _load(builder, _at(builder, row, far, WORD(v * LANES * size)), kind)
                    for v in range(vectors)
                ]
                found = []
                for j in range(ACROSS):
                    factor = _load(builder, _at(builder, own, WORD(8 * j)), FLOAT)
                    c, sums = _broadcast(builder, factor), held[j * vectors : (j + 1) * vectors]
                    found += [_multiply_add(builder, s, c, a) for s, a in zip(sums, p, strict=True)]
                return found

            start = [_load(builder, place, VECTOR) for place in places]
            for value, place in zip(_loop(builder, count, start, step), places, strict=True):
                _store(builder, value, place)
            return context.get_dummy_value()

        return types.void(data, *[types.int64] * 7), generate

    return tile


add_tile, add_short_tile = _add_tile(4), _add_tile(2)
