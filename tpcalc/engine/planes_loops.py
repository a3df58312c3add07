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

import math

import numpy as np
from numba import carray

from tpcalc.arrays import Array, Index
from tpcalc.engine.chains_duals import closed
from tpcalc.engine.chains_layers import advance, lengths
from tpcalc.engine.chains_tables import NUMBERS
from tpcalc.engine.chains_tiles import NEAR, TINY, angle, arc
from tpcalc.engine.kernels_compile import bits, exact, pointer
from tpcalc.engine.planes_taps import TAP, first_taps, plain_taps, scaled_taps

CLOSED = 2
SPARE = 4  # rows of a thread
DATA, SUM, MEAN = range(3)  # inputs; sums of taps, and what is applied; averages over positions
# Columns of a stage: what it is; whether it works with K, and whether its plane holds that; its
# positions; its taps; its planes, and the pitch of their rows; numbers of inputs in it; whether a
# function follows; whether it reads inputs alone; whether errors have
# planes, behind the two. A function is 1 for |z| and z, else a closed dual counted from ``CLOSED``.
KIND, PLAIN, HELD, SIZE, BEGIN, END, VALUE, TANGENT, PITCH, TABLE, SIZES, BENT, FIRST, FOLLOWED = (
    range(14)
)
# Columns of a tap: the planes that it reads, and their pitch; how far off it is in each row, or
# FAR; where its places are; whether it is a bias.
FROM_VALUE, FROM_TANGENT, FROM_PITCH, FROM_SIZE, SHIFT, PLACES, BIAS = range(7)
FAR = 2**40
# Numbers of a stage: kappa, tau and base of a |z| + b z (see ``chains_loops``); the rates of the
# weights that read it, and of those that it has where it reads inputs; how far its v may be off;
# of a closed dual cos 2b (see ``chains_duals``) and the three numbers of a layer of a chain.
KAPPA, TURN, BASE, STRENGTH, RATE, OWN, OFF, COSINE, STEP = range(9)
NORM = STEP + 3

Program = tuple[Index, Array, Index, Array, Index, Array]
"""Stages, their numbers, taps, their rates, places, and coefficients of averages."""
Numbers = tuple[Array, Array, Array, Array, Index]
"""Of inputs: coordinates, those with inputs or positions last, taps, sizes and variances; labels,
which are those of other positions where the same is read."""


@exact
def _bent(to: int, also: int, width: int, form: Array, rate: float) -> None:
    """A row through a |z| + b z, with what weights of a rate add; negative v are v - 1."""
    v, t = pointer(to), pointer(also)  # places: parts of arrays would be counted
    kappa, turn, base = form[KAPPA], form[TURN], form[BASE]
    for q in range(width):
        u = v[q]
        far = 1.0 - u if u >= 0.0 else -u
        near = (u >= 0.0) & (u <= 0.5)
        s = u if near else far
        root = math.sqrt(s)
        x = kappa * root * angle(s)
        bend = 0.5 * kappa * s * root * arc(s)
        after = (s if near else base + turn * s) - bend
        after = after if after > 0.0 else 0.0
        t[q] = t[q] * (1.0 - x if near else x - turn) + rate * (1.0 - 2.0 * after)
        v[q] = after


@exact
def _entered(v: Array, t: Array, rate: float, bent: bool) -> None:
    """A row of sums of inputs, t of them 1 - v: tangent kernels, and v - 1 for ``_bent``."""
    for q in range(v.size):
        near = v[q] <= 0.5
        other = t[q]
        t[q] = rate * (1.0 - 2.0 * v[q] if near else 2.0 * other - 1.0)
        v[q] = v[q] if near | (not bent) else -max(other, TINY)


@exact
def _held(v: Array, t: Array, mine: float, others: Array, rate: float) -> None:
    """K and T of a row of versines; those that weights of a rate read."""
    for q in range(v.size):
        size = mine * others[q]
        k = size * (1.0 - 2.0 * v[q])
        t[q] = size * t[q] + rate * k
        v[q] = k


@exact
def _added(v: Array, t: Array, rate: float) -> None:
    for q in range(v.size):
        t[q] += rate * (1.0 - 2.0 * v[q])


@exact
def _versines(
    k: Array, t: Array, label: int, labels: Index, r: float, others: Array, form: Array,
    worst: Array,
) -> None:  # fmt: skip
    """Versines of K, 0 of equal patches; ``worst``: errors that slopes bring to T in this unit."""
    off, kappa = form[OFF], form[KAPPA]
    for q in range(k.size):
        size = r * others[q]
        over = 1.0 / size if size > 0.0 else 0.0
        v = 0.5 - 0.5 * (k[q] * over)
        v = 0.0 if (v <= 0.0) | (labels[q] == label) else v
        v = 1.0 if v > 1.0 else v
        t[q] *= over
        least = v if v <= 0.5 else 1.0 - v
        wrong = 3.0 * kappa * off * abs(t[q]) / math.sqrt(least if least > off else off)
        wrong = 0.0 if labels[q] == label else wrong
        worst[q] = wrong if wrong > worst[q] else worst[q]
        k[q] = v


Where = tuple[bool, int, int, int, int]
"""Whether rows are over inputs, the input of rows, the first or the one of columns, how many there
are, and the length of rows."""


@exact
def _at(where: Where, base: int, size: int, p: int) -> tuple[int, int]:
    """Where the first number of a row itself stands in a table, and those of its columns."""
    over, i, j, count, _ = where
    if over:
        return base + p * count + i, base + p * count + j
    return base + i * size + p, base + j * size


@exact
def _columns(where: Where, base: int, place: int, size: int, p: int, table: Array) -> Array:
    """Number ``place`` of a row's columns."""
    start = _at(where, base + place * size * where[3], size, p)[1]
    found: Array = table[start : start + where[4]]
    return found


@exact
def _number(where: Where, base: int, place: int, size: int, p: int, table: Array) -> float:
    """That of the row itself."""
    found: float = table[_at(where, base + place * size * where[3], size, p)[0]]
    return found


@exact
def _square(v: Array, mine: float, other: Array, side: float) -> None:
    for q in range(v.size):
        gap = mine - side * other[q]
        v[q] += 0.25 * (gap * gap)


@exact
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


@exact
def _add(v: Array, a: float, other: Array) -> None:
    for q in range(v.size):
        v[q] += a * other[q]


@exact
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


@exact
def _scattered(
    stage: Index, tap: Index, places: Index, at: int, width: int, room: Array, far: Array
) -> None:
    """What a tap reads that is no shift, one after the other."""
    between = tap[FROM_TANGENT] - tap[FROM_VALUE]
    for plane in range(4 if stage[FOLLOWED] else 2):
        start = tap[FROM_VALUE] + plane * between + at * tap[FROM_PITCH]
        for q in range(width):
            far[plane, q] = room[start + max(places[tap[PLACES] + q], 0)]


@exact
def _sum_errors(job: Index, taken: int, width: int, to: int, also: int) -> None:
    """The same taps of errors, whose planes lie behind those of values and tangents."""
    for k in range(0, TAP * taken, TAP):
        further = 2 * (job[k + 1] - job[k])
        job[k], job[k + 1] = job[k] + further, job[k + 1] + further
    plain_taps(to, also, width, job.ctypes.data, taken)


@exact
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
        own, other = _at(where, base + place * size * count, size, p)
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
    if stage[FOLLOWED]:
        _sum_errors(job, taken, width, to + further, also + further)


@exact
def _bent_sums(
    stage: Index, form: Array, numbers: Numbers, where: Where, p: int, v: Array, t: Array,
    worst: Array,
) -> None:  # fmt: skip
    """A row of sums through a |z| + b z."""
    size, base, table = stage[SIZE], stage[SIZES], numbers[3]
    if stage[PLAIN]:
        own, other = _at(where, base, size, p)
        label, labels = numbers[4][own], numbers[4][other : other + v.size]
        others = _columns(where, base, 0, size, p, table)
        _versines(v, t, label, labels, table[own], others, form, worst[: v.size])
    rate = 0.0 if stage[HELD] else form[RATE]
    _bent(v.ctypes.data, t.ctypes.data, v.size, form, rate)
    if not stage[HELD]:
        return
    mine, others = (
        _number(where, base, 2, size, p, table),
        _columns(where, base, 2, size, p, table),
    )
    _held(v, t, mine, others, form[RATE])


@exact
def _closed_sums(
    stage: Index, form: Array, table: Array, where: Where, p: int, v: Array, t: Array, e: Array,
    f: Array, spare: Array,
) -> None:  # fmt: skip
    """A row of sums through a function with a closed dual, errors followed."""
    size, base, width = stage[SIZE], stage[SIZES], v.size
    own, value, slope = spare[2], spare[0][:width], spare[1][:width]
    for k in range(NUMBERS):
        own[k] = _number(where, base, k, size, p, table)
    r, others = (
        _number(where, base, NUMBERS, size, p, table),
        _columns(where, base, NUMBERS, size, p, table),
    )
    for q in range(width):
        e[q] += form[OFF] * (r * others[q])
        f[q] += form[OFF] * (r * others[q] + abs(t[q]))
    b0, b1 = _columns(where, base, 0, size, p, table), _columns(where, base, 1, size, p, table)
    b2, n0 = _columns(where, base, 2, size, p, table), _columns(where, base, 3, size, p, table)
    p0, n1 = _columns(where, base, 4, size, p, table), _columns(where, base, 5, size, p, table)
    p1, n2 = _columns(where, base, 6, size, p, table), _columns(where, base, 7, size, p, table)
    row, turn = stage[BENT] - CLOSED, form[COSINE]
    closed(row, turn, v, value, slope, (own[0], own[1], own[2]), b0, b1, b2)
    advance(v, t, e, f, value, slope, own, n0, p0, n1, p1, n2, form[STEP : STEP + 3])
    more = form[RATE] - 1.0  # the step has a rate of 1
    for q in range(width):
        t[q] += more * v[q]
        f[q] += max(more, 0.0) * e[q]


@exact
def _finish_row(
    stage: Index, form: Array, numbers: Numbers, where: Where, p: int, v: Array, t: Array,
    e: Array, f: Array, spare: Array, worst: Array,
) -> None:  # fmt: skip
    """What is applied to the sums of a row, in the form in which others read it."""
    size, base, rate = stage[SIZE], stage[SIZES], form[RATE]
    if stage[FIRST] and not stage[PLAIN]:
        _entered(v, t, form[OWN], stage[BENT] == 1)
    if stage[BENT] == 1:
        _bent_sums(stage, form, numbers, where, p, v, t, worst)
    elif stage[BENT]:
        _closed_sums(stage, form, numbers[3], where, p, v, t, e, f, spare)
    elif not stage[HELD]:
        _added(v, t, rate)
    elif not stage[PLAIN]:
        mine = _number(where, base, 2, size, p, numbers[3])
        _held(v, t, mine, _columns(where, base, 2, size, p, numbers[3]), rate)
    else:
        for q in range(v.size):
            t[q] += rate * v[q]
        for q in range(f.size):
            f[q] += rate * e[q]


@exact
def _average(stage: Index, program: Program, room: Array, buffer: Array) -> None:
    """Averages over positions, of rows and then of columns."""
    places, weights, tap = program[4], program[5], program[2][stage[BEGIN]]
    size, pitch, ends = stage[SIZE], stage[PITCH], tap[PLACES]
    for p in range(size):
        for plane in range(4 if stage[FOLLOWED] else 2):
            start = tap[FROM_VALUE] + plane * (tap[FROM_TANGENT] - tap[FROM_VALUE])
            to = stage[VALUE] + plane * (stage[TANGENT] - stage[VALUE]) + p * pitch
            buffer[:] = 0.0
            for n in range(places[ends + p], places[ends + p + 1]):
                row = start + places[n] * tap[FROM_PITCH]
                _add(buffer, weights[n], room[row : row + buffer.size])
            for q in range(size):
                found = 0.0
                for n in range(places[ends + q], places[ends + q + 1]):
                    found += weights[n] * buffer[places[n]]
                room[to + q] = found


@exact
def _measure(
    stage: Index, form: Array, table: Array, where: Where, room: Array, spare: Array
) -> None:
    """What pairs read of an input's positions, from their variances."""
    count, size, bent = where[3], stage[SIZE], stage[BENT]
    between, q = stage[TANGENT] - stage[VALUE], spare[3][:size]
    rounding = 0.0
    for p in range(size):
        at = stage[VALUE] + p * stage[PITCH] + (0 if where[0] else p)
        q[p] = max(room[at], 0.0)
        if bent > 1 and q[p] > 0.0:
            rounding = max(rounding, room[at + 2 * between] / q[p] + form[OFF])
    if bent > 1:
        numbers, last = np.empty((NUMBERS, size)), np.empty((5, size))
        step = form[STEP : STEP + 3].reshape(1, 3)
        lengths(bent - CLOSED, form[COSINE], q, rounding, step, numbers, last)
    for p in range(size):
        at, r = _at(where, stage[SIZES], size, p)[0], math.sqrt(q[p])
        if bent > 1:
            for k in range(NUMBERS):
                table[at + k * size * count] = numbers[k, p]
            table[at + NUMBERS * size * count] = r
        else:
            table[at], table[at + size * count] = r, q[p]
            length, norm = r * form[STRENGTH], form[NORM]
            if norm >= 0.0:
                length = r / math.sqrt(q[p] + norm) if q[p] + norm > 0.0 else 0.0
            table[at + 2 * size * count] = length


@exact
def _stage(
    s: int, own: bool, program: Program, numbers: Numbers, where: Where, room: Array, fixed: Array,
    far: Array, job: Index, spare: Array, worst: Array,
) -> None:  # fmt: skip
    """The planes of a stage."""
    stage, form, taps, places = program[0][s], program[1][s], program[2], program[4]
    wide = where[0], where[1], where[2], where[3], where[4] if where[0] else stage[SIZE]
    width, later, table = wide[4], own and stage[PLAIN] and stage[BENT], numbers[2]
    followed = width if stage[FOLLOWED] else 0
    between = stage[TANGENT] - stage[VALUE]
    if stage[KIND] == SUM:
        _fixed(stage, taps, program[3], fixed)
    quick = not (stage[PLAIN] or stage[FIRST] or stage[HELD]) and stage[BENT] == 1
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
                _bent(to, also, width, form, form[RATE])
                continue
            c, d = b + between, b + 2 * between
            v, t = room[a : a + width], room[b : b + width]
            e, f = room[c : c + followed], room[d : d + followed]
            if stage[KIND] == DATA:
                _data_row(stage, numbers[0], numbers[1], wide, p, form[RATE], v, t)
                _data_errors(stage, form, numbers[3], wide, p, e, f)
                continue
            if turn == 1 or not later:
                _finish_row(stage, form, numbers, wide, p, v, t, e, f, spare, worst)
        if later and turn == 0:
            _measure(stage, form, numbers[3], wide, room, spare)


@exact
def _data_errors(
    stage: Index, form: Array, table: Array, where: Where, p: int, e: Array, f: Array
) -> None:
    """Of inner products of inputs, from their lengths."""
    if e.size:
        base, size = stage[SIZES], stage[SIZE]
        r, others = (
            _number(where, base, 0, size, p, table),
            _columns(where, base, 0, size, p, table),
        )
        for q in range(e.size):
            e[q] = form[OFF] * (r * others[q])
            f[q] = form[RATE] * e[q]


@exact
def _loose(whole: Array) -> Array:
    """An array whose parts are not counted, which would take as long as a row."""
    found: Array = carray(pointer(whole.ctypes.data), whole.shape)
    return found


@exact
def _all_loose(given: Numbers) -> Numbers:
    a, b, c, d, labels = given
    return _loose(a), _loose(b), _loose(c), _loose(d), labels


@exact
def run_planes(
    program: Program, numbers: Numbers, over: bool, own: bool, pairs: Index, shift: int,
    room: Array, nngp: Array, ntk: Array, wrong: Array,
) -> float:  # fmt: skip
    """Some pairs of inputs, or of one with a stretch of others; ``own``: their sizes are found."""
    stages, given, whole = program[0], numbers, room
    room, numbers = _loose(whole), _all_loose(given)
    last, count = stages[-1], numbers[0].shape[0]
    taps, widest = (stages[:, END] - stages[:, BEGIN]).max(), stages[:, PITCH].max()
    rows, buffer = np.zeros((8 * taps + 1, widest)), np.empty(stages[:, SIZE].max())
    spare = np.zeros((SPARE, max(widest, stages[:, SIZE].max(), NUMBERS)))
    worst = np.zeros(widest)
    fixed, far, job = rows[: 4 * taps + 1], rows[4 * taps + 1 :], np.empty(TAP * taps, np.int64)
    for n in range(pairs.shape[0]):
        i, j, width = pairs[n, 0], pairs[n, 1], pairs[n, 2]
        where = over, i, j, count, width
        for s in range(stages.shape[0]):
            if stages[s, KIND] == MEAN:
                size = program[2][stages[s, BEGIN], FROM_SIZE]
                _average(stages[s], program, room, buffer[:size])
            else:
                _stage(s, own, program, numbers, where, room, fixed, far, job, spare, worst)
        for q in range(width):
            column = 0 if own else j - shift + q
            nngp[i, column] = room[last[VALUE] + q]
            ntk[i, column] = room[last[TANGENT] + q]
            if last[FOLLOWED]:
                between = last[TANGENT] - last[VALUE]
                wrong[0, i, column] = room[last[TANGENT] + between + q]
                wrong[1, i, column] = room[last[TANGENT] + 2 * between + q]
    return float(worst.max())
