"""The numba side of ``planes``: a pair of inputs through all stages, a row of positions at a time.

Positions p of one input and q of another have a half versine v = (1 - rho) / 2 and a tangent
kernel t in units of both sizes. A sum of taps, g_p = sum_k c_kp W_k x_(s(p, k)) + b, has

    v' = sum_k (4 h h' v_k + (h - h')^2),  t' = sum_k 4 h h' t_k,  2 h = c_kp |x_(s(p, k))| / |g_p|

with a tap more for the bias, whose v is 0: nothing is subtracted, so that nearly equal patches keep
their digits; phi = a |z| + b z as in ``chains_loops``. Behind averages over positions planes hold K
and T themselves, and h = c_kp / 2 without squares.

A row is over all q of one input, or over other inputs where only q = p is read.
"""

from __future__ import annotations

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine.chains_tables import EPS
from tpcalc.engine.chains_tiles import NEAR
from tpcalc.engine.kernels_compile import bits, exact, inlined, inner, uncounted, uncounted_index
from tpcalc.engine.planes_bends import (
    APART,
    BEGIN,
    BENT,
    CORNER,
    END,
    FIRST,
    FRESH,
    HELD,
    KIND,
    PENDING,
    PITCH,
    PLAIN,
    RATE,
    ROOT,
    SAME,
    SIZE,
    TABLE,
    TANGENT,
    VALUE,
    WIDE,
    Numbers,
    Where,
    begun,
    bent,
    finish_row,
    measure,
    place_of,
)
from tpcalc.engine.planes_taps import TAP, first_taps, plain_taps, scaled_taps

DATA, SUM, MEAN, TIMES = range(4)  # inputs; sums of taps, and what is applied; averages; products
# Columns of a tap: the planes that it reads, and their pitch; how far off it is in each row, or
# FAR; where its places are; whether it is a bias.
FROM_VALUE, FROM_TANGENT, FROM_PITCH, FROM_SIZE, SHIFT, PLACES, BIAS = range(7)
FAR = 2**40
Program = tuple[Index, Array, Index, Array, Index, Array]
"""Stages, their numbers, taps, their rates, places, and coefficients of averages."""


@inner
def _square(v: Array, mine: float, other: Array, side: float) -> None:
    for q in range(v.size):
        gap = mine - side * other[q]
        v[q] += 0.25 * (gap * gap)


@inner
def _data_row(
    stage: Index, x: Array, columns: Array, where: Where, p: int, rate: float, v: Array, t: Array
) -> None:
    """Half versines of a position with others and what they miss to 1; or K of inputs."""
    over, i, j, _, width = where
    v[:], t[:] = 0.0, 1.0
    for c in range(x.shape[2]):
        other = columns[p, c][j : j + width] if over else columns[j, c]
        if stage[PLAIN]:
            _add(v, x[i, p, c], other)
        else:
            _square(v, x[i, p, c], other, 1.0)
    opposite = 0
    for q in range(width):
        t[q] = rate * v[q] if stage[PLAIN] else 1.0 - v[q]
        opposite += 1 if t[q] < NEAR else 0
    if opposite and not stage[PLAIN]:
        t[:] = 0.0
        for c in range(x.shape[2]):
            _square(t, x[i, p, c], columns[p, c][j : j + width] if over else columns[j, c], -1.0)


@inner
def _add(v: Array, a: float, other: Array) -> None:
    for q in range(v.size):
        v[q] += a * other[q]


@inner
def _fixed(stage: Index, taps: Index, rates: Array, fixed: Array) -> None:
    """Rows of what taps without a place read: zeros, and of each bias its value and tangent."""
    scaled, first = not stage[PLAIN], not stage[PLAIN] and stage[FIRST]
    fixed[:] = 0.0
    row = 1
    for k in range(stage[BEGIN], stage[END]):
        if taps[k, BIAS]:
            fixed[row] = 0.0 if scaled else 1.0
            fixed[row + 1] = 1.0 if first else rates[k]
            row += 4


@inner
def _scattered(
    stage: Index, tap: Index, places: Index, at: int, width: int, room: Array, far: Array
) -> None:
    """What a tap reads that is no shift, one after the other."""
    between = tap[FROM_TANGENT] - tap[FROM_VALUE]
    for plane in range(4 if stage[PLAIN] and not stage[FRESH] else 2):
        start = tap[FROM_VALUE] + plane * between + at * tap[FROM_PITCH]
        for q in range(width):
            far[plane, q] = room[start + max(places[tap[PLACES] + q], 0)]


@inner
def _sum_errors(job: Index, taken: int, width: int, to: int, also: int) -> None:
    """The same taps of errors, whose planes lie behind those of values and tangents."""
    for k in range(0, TAP * taken, TAP):
        further = 2 * (job[k + 1] - job[k])
        job[k], job[k + 1] = job[k] + further, job[k + 1] + further
    plain_taps(to, also, width, job.ctypes.data, taken)


@inner
def _sum_row(
    stage: Index, where: Where, p: int, taps: Index, places: Index, room: Array, table: Array,
    fixed: Array, far: Array, job: Index, to: int, also: int, further: int,
) -> None:  # fmt: skip
    """The taps of a row, and those of errors, which lie behind both."""
    over, count, width = where[0], where[3], where[4]
    scaled, size, base = not stage[PLAIN], stage[SIZE], stage[TABLE]
    origin, numbers, none = room.ctypes.data, table.ctypes.data, fixed.ctypes.data
    pitch, bias, used, gathered = 8 * fixed.shape[1], 0, 0, 0
    for k in range(stage[BEGIN], stage[END]):
        place, at = k - stage[BEGIN], places[taps[k, PLACES] + p]
        own, other = place_of(where, base + place * size * count, size, p)
        h, x, y = table[own], none, none
        if taps[k, BIAS]:
            bias += 1
            x = none + (4 * bias - 3) * pitch
            y = x + pitch
        elif at >= 0 and (over or taps[k, SHIFT] != FAR):
            start = at * taps[k, FROM_PITCH] + (0 if over else taps[k, SHIFT])
            x = origin + 8 * (taps[k, FROM_VALUE] + start)
            y = origin + 8 * (taps[k, FROM_TANGENT] + start)
        elif at >= 0:
            x, y = far.ctypes.data + gathered * pitch, far.ctypes.data + (gathered + 1) * pitch
            _scattered(stage, taps[k], places, at, width, room, far[gathered : gathered + 4])
            gathered += 4
        elif not scaled:
            continue
        job[used], job[used + 1], job[used + 2] = x, y, numbers + 8 * other
        job[used + 3] = bits(h)
        used += TAP
    given, taken = job.ctypes.data, used // TAP
    if not scaled:
        plain_taps(to, also, width, given, taken)
    elif stage[FIRST]:
        first_taps(to, also, width, given, taken)
    else:
        scaled_taps(to, also, width, given, taken)
    if stage[PLAIN] and not stage[FRESH]:
        _sum_errors(job, taken, width, to + further, also + further)


@inner
def _average(
    stage: Index, form: Array, program: Program, numbers: Numbers, where: Where, room: Array,
    spare: Array,
) -> None:  # fmt: skip
    """Averages over positions, of rows and then of columns."""
    between = stage[TANGENT] - stage[VALUE]
    wide = where[0], where[1], where[2], where[3], stage[SIZE]
    places, weights, tap = program[4], program[5], program[2][stage[BEGIN]]
    size, pitch, ends = stage[SIZE], stage[PITCH], tap[PLACES]
    buffer = spare[0][: tap[FROM_SIZE]]
    for p in range(size):
        for plane in range(2 if stage[FRESH] else 4):
            start = tap[FROM_VALUE] + plane * (tap[FROM_TANGENT] - tap[FROM_VALUE])
            to = stage[VALUE] + plane * (stage[TANGENT] - stage[VALUE]) + p * pitch
            buffer[:] = 0.0
            for n in range(places[ends + p], places[ends + p + 1]):
                row = start + places[n] * tap[FROM_PITCH]
                _add(
                    buffer,
                    abs(weights[n]) if plane > 1 else weights[n],
                    room[row : row + buffer.size],
                )
            for q in range(size):
                found = 0.0
                for n in range(places[ends + q], places[ends + q + 1]):
                    found += (abs(weights[n]) if plane > 1 else weights[n]) * buffer[places[n]]
                room[to + q] = found
        if stage[FRESH]:
            to = stage[VALUE] + 2 * between + p * pitch
            e, f = room[to : to + size], room[to + between : to + between + size]
            begun(stage, form, numbers[3], wide, p, ROOT, e, f)


@inner
def _product(
    stage: Index, form: Array, taps: Index, room: Array, where: Where, p: int, v: Array, t: Array,
    e: Array, f: Array,
) -> None:  # fmt: skip
    """Products of what is independent, and of noise that each place of an input has for itself."""
    v[:], t[:], e[:], f[:] = form[APART], 0.0, 0.0, 0.0
    over, i, j, _, width = where
    own = i - j if over else p
    if (over and 0 <= own < width) or (i == j and not over):
        v[own] = form[SAME]
    for k in range(stage[BEGIN], stage[END]):
        tap, between = taps[k], taps[k, FROM_TANGENT] - taps[k, FROM_VALUE]
        start = tap[FROM_VALUE] + p * tap[FROM_PITCH]
        x, y = room[start : start + width], room[start + between : start + between + width]
        start += 2 * between
        g, h = room[start : start + width], room[start + between : start + between + width]
        for q in range(width):
            f[q] = abs(v[q]) * h[q] + f[q] * (abs(x[q]) + g[q]) + abs(t[q]) * g[q] + e[q] * h[q]
            e[q] = abs(v[q]) * g[q] + e[q] * (abs(x[q]) + g[q]) + EPS * abs(v[q] * x[q])
            f[q] += e[q] * abs(y[q]) + 2.0 * EPS * abs(t[q] * x[q])
            t[q] = t[q] * x[q] + v[q] * y[q]
            v[q] *= x[q]


@inlined
def _first_half(
    stage: Index, form: Array, taps: Index, numbers: Numbers, where: Where, p: int, room: Array,
    v: Array, t: Array, e: Array, f: Array,
) -> None:  # fmt: skip
    """Rows that are no sums, and errors that are no sums of errors."""
    if stage[FRESH]:
        e[:], f[:] = 0.0, 0.0
    if stage[KIND] == TIMES:
        _product(stage, form, taps, room, where, p, v, t, e, f)
    if stage[KIND] == DATA:
        _data_row(stage, numbers[0], numbers[1], where, p, form[RATE], v, t)
        begun(stage, form, numbers[3], where, p, 0, e, f)


@inlined
def _stage(
    s: int, own: bool, program: Program, numbers: Numbers, where: Where, room: Array, fixed: Array,
    far: Array, job: Index, spare: Array,
) -> None:  # fmt: skip
    """The planes of a stage."""
    stage, form, taps, places = program[0][s], program[1][s], program[2], program[4]
    wide = where[0], where[1], where[2], where[3], where[4] if where[0] else stage[SIZE]
    width, later, table = wide[4], own and stage[PLAIN] and stage[BENT] > 0, numbers[2]
    followed = width if stage[WIDE] else 0
    between = stage[TANGENT] - stage[VALUE]
    if stage[KIND] == SUM:
        _fixed(stage, taps, program[3], fixed)
    quick = not (stage[PLAIN] or stage[FIRST] or stage[HELD]) and stage[BENT] == CORNER
    for turn in range(2 if later else 1):
        for p in range(stage[SIZE]):
            a, b = stage[VALUE] + p * stage[PITCH], stage[TANGENT] + p * stage[PITCH]
            to, also = room.ctypes.data + 8 * a, room.ctypes.data + 8 * b
            if turn == 0 and stage[KIND] == SUM:
                further = 16 * between
                _sum_row(
                    stage, wide, p, taps, places, room, table, fixed, far, job, to, also, further
                )
            if quick:
                bent(to, also, width, form, form[RATE])
                continue
            c, d = b + between, b + 2 * between
            v, t = room[a : a + width], room[b : b + width]
            e, f = room[c : c + followed], room[d : d + followed]
            if turn == 0:
                _first_half(stage, form, taps, numbers, wide, p, room, v, t, e, f)
            if stage[KIND] != DATA and turn == int(later) and stage[BENT] != PENDING:
                finish_row(stage, form, numbers, wide, p, v, t, e, f, spare)
        if later and turn == 0:
            measure(stage, form, numbers[3], wide, room, spare)


@inner
def _numbers(given: Numbers) -> Numbers:
    a, b, c, d, labels, terms, begins = given
    found = uncounted(a), uncounted(b), uncounted(c), uncounted(d)
    return *found, uncounted_index(labels), uncounted(terms), uncounted_index(begins)


@inner
def _program(given: Program) -> Program:
    stages, forms, taps, rates, places, weights = given
    found = uncounted_index(stages), uncounted(forms), uncounted_index(taps), uncounted(rates)
    return *found, uncounted_index(places), uncounted(weights)


@exact
def run_planes(
    given: Program, known: Numbers, over: bool, own: bool, pairs: Index, shift: int,
    rooms: tuple[Array, Array, Array], nngp: Array, ntk: Array, wrong: Array,
) -> None:  # fmt: skip
    """Some pairs of inputs, or of one with a stretch of others; ``own``: their sizes are found."""
    program, numbers, room = _program(given), _numbers(known), uncounted(rooms[0])
    rows, spare, stages = uncounted(rooms[1]), uncounted(rooms[2]), program[0]
    last, count, taps = stages[-1], numbers[0].shape[0], (rows.shape[0] - 1) // 8
    fixed, far, job = rows[: 4 * taps + 1], rows[4 * taps + 1 :], np.empty(TAP * taps, np.int64)
    for n in range(pairs.shape[0]):
        i, j, width = pairs[n, 0], pairs[n, 1], pairs[n, 2]
        where = over, i, j, count, width
        for s in range(stages.shape[0]):
            if stages[s, KIND] == MEAN:
                _average(stages[s], program[1][s], program, numbers, where, room, spare)
            else:
                _stage(s, own, program, numbers, where, room, fixed, far, job, spare)
        size, between = last[SIZE] if nngp.size else 0, last[TANGENT] - last[VALUE]
        for p in range(size):
            for q in range(p if own else 0, p + 1 if own else width if over else size):
                row, column = i * size + p, 0 if own else (j - shift) * size + q
                to = last[VALUE] + p * last[PITCH] + (0 if over and own else q)
                nngp[row, column], ntk[row, column] = room[to], room[to + between]
                wrong[0, row, column] = room[to + 2 * between]
                wrong[1, row, column] = room[to + 3 * between]
