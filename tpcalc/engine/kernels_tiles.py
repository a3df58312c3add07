"""The innermost loops of panels: tiles of sums that stay in vector registers.

Written as LLVM code: numba has no vector types, and what its compiler makes of plain loops adds up
a register at the end of every stretch. Every number of a row is read once for all columns of a
tile. Meanwhile other rows are fetched, at the samples where these are read: memory and arithmetic
are busy at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 8  # numbers in a vector; where registers are shorter the compiler takes several
DOWN = (12, 4, 1)  # rows of a tile of inner products
HIGH, ACROSS, WIDE = 8, 4, 2  # rows, columns and vectors of samples of a tile of sums
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


def _prefetch(builder: Any, address: Any) -> None:
    place, number = BYTE.as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [place, number, number, number])
    found = builder.module.declare_intrinsic("llvm.prefetch", [place], kind)
    own = builder.inttoptr(address, place)
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


def _broadcast(builder: Any, value: Any) -> Any:
    undefined = ir.Constant(VECTOR, ir.Undefined)
    whole = builder.insert_element(undefined, value, ir.IntType(32)(0))
    return _shuffled(builder, whole, undefined, [0] * LANES)


@intrinsic
def transpose(typing: Any, columns: Any, count: Any, out: Any, width: Any) -> Any:
    """Write ``count`` times eight samples of eight columns sample by sample.

    ``columns`` has the addresses of the columns; samples in ``out`` are ``width`` bytes apart.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        columns, count, out, width = args
        given = [_load(builder, _at(builder, columns, WORD(8 * j)), WORD) for j in range(LANES)]

        def step(index: Any, held: list[Any]) -> list[Any]:
            near = builder.mul(index, WORD(LINE))
            found = [_load(builder, _at(builder, column, near), VECTOR) for column in given]
            for half in (1, 2, 4):  # two by two, then blocks of two by two, then of four by four
                low = [lane + (LANES - half) * bool(lane & half) for lane in range(LANES)]
                high = [lane + half for lane in low]
                for i in (lane for lane in range(LANES) if not lane & half):
                    pair = found[i], found[i + half]
                    found[i] = _shuffled(builder, *pair, low)
                    found[i + half] = _shuffled(builder, *pair, high)
            place = _at(builder, out, builder.mul(index, builder.mul(width, WORD(LANES))))
            for value in found:
                _store(builder, value, place)
                place = _at(builder, place, width)
            return []

        _loop(builder, count, [], step)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


@intrinsic
def fetch(typing_context: Any, address: Any) -> Any:
    """Ask for the cache line at an address; never faults."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _prefetch(builder, args[0])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _entry(data: Any) -> tuple[Any, int]:
    """The type of a number of stored rows, and its bytes."""
    return (FLOAT, 8) if data.dtype == types.float64 else (ir.FloatType(), 4)


def _dots(
    builder: Any, entry: Any, size: int, down: int, vectors: int, args: Sequence[Any]
) -> None:
    """Code of a tile of ``down`` rows and ``vectors`` times eight columns."""
    rows, pitch, columns, count, out, width, ahead, room = args

    def step(index: Any, held: list[Any]) -> list[Any]:
        near = builder.mul(index, WORD(vectors * LANES * LINE))
        far = builder.mul(index, WORD(size * LANES))
        later, row = _at(builder, ahead, far), _at(builder, rows, far)
        places = []
        for i in range(down):
            _prefetch(builder, later)
            place = row
            if size < 8:
                place = _at(builder, room, WORD(i * LINE))
                _store(builder, _load(builder, row, ir.VectorType(entry, LANES)), place)
            places.append(place)
            later, row = _at(builder, later, pitch), _at(builder, row, pitch)
        found = list(held)
        for t in range(LANES):
            samples = [
                _at(builder, columns, near, WORD((t * vectors + v) * LINE)) for v in range(vectors)
            ]
            own = [_load(builder, sample, VECTOR) for sample in samples]
            for i, place in enumerate(places):
                number = _load(builder, _at(builder, place, WORD(8 * t)), FLOAT)
                factor = _broadcast(builder, number)
                for v, x in enumerate(own, start=i * vectors):
                    found[v] = _multiply_add(builder, found[v], factor, x)
        return found

    start = [ir.Constant(VECTOR, None)] * (down * vectors)
    for v, value in enumerate(_loop(builder, count, start, step)):
        row = builder.mul(width, WORD(v // vectors))
        place = _at(builder, out, row, WORD(v % vectors * LINE))
        _store(builder, builder.fadd(value, _load(builder, place, VECTOR)), place)


@intrinsic
def dot_tile(
    typing: Any, data: Any, down: Any, vectors: Any, rows: Any, pitch: Any, columns: Any,
    count: Any, out: Any, width: Any, ahead: Any, room: Any,
) -> Any:  # fmt: skip
    """Add inner products of ``down`` rows with one or two vectors of columns to ``out``.

    ``data`` says what rows consist of; they begin at ``rows``, ``pitch`` bytes apart, and there is
    one tile for each of ``DOWN``. The columns lie sample by sample; ``count`` times eight samples
    are read. Rows of ``out`` are ``width`` bytes apart, as many rows from ``ahead`` on are fetched.
    ``room``: a line for each row, where numbers of single precision become double.
    """
    entry, size = _entry(data)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, down, vectors, *rest = args
        for shape in product(DOWN, (1, 2)):
            same = (
                builder.icmp_signed("==", given, WORD(own))
                for given, own in zip((down, vectors), shape, strict=True)
            )
            with builder.if_then(builder.and_(*same)):
                _dots(builder, entry, size, *shape, rest)
        return context.get_dummy_value()

    return types.void(data, *[types.int64] * 10), generate


@intrinsic
def add_tile(
    typing: Any, data: Any, panel: Any, first: Any, table: Any, sums: Any, count: Any
) -> Any:
    """Add eight rows times a table to sixteen samples of ``count`` times four columns.

    ``data`` says what rows consist of; their addresses are in ``panel``, after them those of eight
    rows that are fetched; ``first`` is the sample to begin with. ``table`` has the coefficients of
    eight rows and four columns after those of others, ``sums`` the samples of a column after those
    of another: what is read soon after it was written is never a multiple of a page away, for which
    a processor would wait.
    """
    entry, size = _entry(data)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, panel, first, table, sums, count = args
        far, kind = builder.mul(first, WORD(size)), ir.VectorType(entry, LANES)
        rows = []
        for i in range(HIGH):
            row, later = (
                _at(builder, _load(builder, _at(builder, panel, WORD(8 * m)), WORD), far)
                for m in (i, i + HIGH)
            )
            for line in range(WIDE * size // 8):
                _prefetch(builder, _at(builder, later, WORD(line * LINE)))
            rows += [
                _load(builder, _at(builder, row, WORD(v * LANES * size)), kind) for v in range(WIDE)
            ]

        def step(index: Any, held: list[Any]) -> list[Any]:
            factors = _at(builder, table, builder.mul(index, WORD(8 * HIGH * ACROSS)))
            own = _at(builder, sums, builder.mul(index, WORD(LINE * ACROSS * WIDE)))
            places = [_at(builder, own, WORD(LINE * m)) for m in range(ACROSS * WIDE)]
            found = [_load(builder, place, VECTOR) for place in places]
            for i in range(HIGH):
                for j in range(ACROSS):
                    place = _at(builder, factors, WORD(8 * (i * ACROSS + j)))
                    factor = _broadcast(builder, _load(builder, place, FLOAT))
                    for v in range(WIDE):
                        m = j * WIDE + v
                        found[m] = _multiply_add(builder, found[m], factor, rows[i * WIDE + v])
            for value, place in zip(found, places, strict=True):
                _store(builder, value, place)
            return []

        _loop(builder, count, [], step)
        return context.get_dummy_value()

    return types.void(data, *[types.int64] * 5), generate
