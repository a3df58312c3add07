"""What ``planes_loops`` does to the sums of a row: functions, norms, and the form that others read.

|z| and z keep half versines. All else has planes of covariances, with those of their errors (see
``chains_layers``): closed duals, functions by tables in the correlation, or in the angle if they
have a kink, as |z| and z have among the others. A slope at a kink turns with the angle, which a
covariance near that of equal vectors hardly knows: equal ones are known by labels.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine.chains_duals import CLOSED, closed
from tpcalc.engine.chains_layers import advance, lengths
from tpcalc.engine.chains_rows import clenshaw
from tpcalc.engine.chains_tables import EPS, NUMBERS
from tpcalc.engine.chains_tiles import (
    SMALL,
    TINY,
    angle,
    angle_small,
    arc,
    arc_small,
    whole,
)
from tpcalc.engine.chains_wedges import turned
from tpcalc.engine.kernels_compile import inlined, inner, pointer

SPARE = 7  # rows of a thread
# What is applied: |z| and z, a closed dual and those behind it, tables in the correlation or in the
# angle; variances are wanted, as those tables are still to be made.
CORNER, FIRST_CLOSED = 1, 2
TABLED = FIRST_CLOSED + len(CLOSED)
KINKED, PENDING = TABLED + 1, TABLED + 2
# Columns of a stage: what it is; whether it works with K, and whether its plane holds that; its
# positions; its taps; its planes, and the pitch of their rows; numbers of inputs in it; its
# function; whether it reads inputs alone; where its tables are; whether all that it reads has
# versines, so that its errors begin as products of lengths; whether errors have planes, behind the
# others; where the table is of what parameters add to T, below 0 if there is none.
(KIND, PLAIN, HELD, SIZE, BEGIN, END, VALUE, TANGENT, PITCH, TABLE, SIZES, BENT, FIRST, TABLES,
 FRESH, WIDE, LIFTED) = range(17)  # fmt: skip
# Numbers of a stage: kappa, tau and base of a |z| + b z (see ``chains_loops``); the rates of the
# weights that read it, and of those that it has where it reads inputs; how far its v may be off;
# of a closed dual its shape (see ``chains_duals``) and the three numbers of a layer of a chain; eps
# of a norm, below 0 if there is none; what values and slopes may miss; what parameters add to T
# before the function; what a product is multiplied by, at one place of one input, and elsewhere;
# how far T may be off at first; of what parameters add to T the rate, and how much it is off by
# errors of K, by those of sizes, and besides. Of tables kappa is how much slopes turn with angles.
KAPPA, TURN, BASE, STRENGTH, RATE, OWN, OFF, SHAPE = range(8)
STEP = SHAPE + 4
NORM, ROUNDS, TILT, SAME, APART, BEGUN, LIFT = range(STEP + 3, STEP + 10)
# Numbers of an input at a position of a stage with errors, behind those of ``chains_layers``: its
# size, and half of what its square may be off. Tables have their own in the first three.
LOST, THIRD, OVER, LENGTH = range(4)
ROOT, LOOSE = NUMBERS, NUMBERS + 1

Numbers = tuple[Array, Array, Array, Array, Index, Array, Index]
"""Of inputs: coordinates, those with inputs or positions last, taps, sizes and variances; labels,
which are those of other positions where the same is read; terms of tables, and where they are."""
Where = tuple[bool, int, int, int, int]
"""Whether rows are over inputs, the input of rows, the first or the one of columns, how many there
are, and the length of rows."""


@inner
def place_of(where: Where, base: int, size: int, p: int) -> tuple[int, int]:
    """Where the first number of a row itself stands in a table, and those of its columns."""
    over, i, j, count, _ = where
    if over:
        return base + p * count + i, base + p * count + j
    return base + i * size + p, base + j * size


@inner
def columns_of(where: Where, base: int, place: int, size: int, p: int, table: Array) -> Array:
    """Number ``place`` of a row's columns."""
    start = place_of(where, base + place * size * where[3], size, p)[1]
    found: Array = table[start : start + where[4]]
    return found


@inner
def number_of(where: Where, base: int, place: int, size: int, p: int, table: Array) -> float:
    """That of the row itself."""
    found: float = table[place_of(where, base + place * size * where[3], size, p)[0]]
    return found


@inlined
def _corner(u: float, kappa: float, turn: float, base: float) -> Any:
    """Of a |z| + b z: the half versine after it, and the slope; a negative u is u - 1."""
    far = max(1.0 - u, 0.0) if u >= 0.0 else -u
    near = (u >= 0.0) & (u <= 0.5)
    s = u if near else far
    root = math.sqrt(s)
    x = kappa * root * angle(s)
    after = (s if near else base + turn * s) - 0.5 * kappa * s * root * arc(s)
    return (after if after > 0.0 else 0.0), (1.0 - x if near else x - turn)


@inner
def bent(to: int, also: int, width: int, form: Array, rate: float) -> None:
    """A row, in whole registers, through a |z| + b z, with what weights of a rate add."""
    v, t = pointer(to), pointer(also)  # places: parts of arrays would be counted
    kappa, turn, base, far = form[KAPPA], form[TURN], form[BASE], 0
    for q in range(width):
        far += 0 if (v[q] >= 0.0) & (v[q] <= SMALL) else 1
    for q in range(whole(width) if far else 0):
        after, slope = _corner(v[q], kappa, turn, base)
        t[q] = t[q] * slope + rate * (1.0 - 2.0 * after)
        v[q] = after
    for q in range(0 if far else whole(width)):
        root = math.sqrt(v[q])
        after = v[q] - 0.5 * kappa * v[q] * root * arc_small(v[q])
        t[q] = t[q] * (1.0 - kappa * root * angle_small(v[q])) + rate * (1.0 - 2.0 * after)
        v[q] = after


@inner
def _entered(v: Array, t: Array, rate: float, bent: bool) -> None:
    """A row of sums of inputs, t of them 1 - v: tangent kernels, and v - 1 for ``bent``."""
    for q in range(v.size):
        near = v[q] <= 0.5
        other = t[q]
        t[q] = rate * (1.0 - 2.0 * v[q] if near else 2.0 * other - 1.0)
        v[q] = v[q] if near | (not bent) else -max(other, TINY)


@inner
def _held(
    stage: Index, form: Array, table: Array, where: Where, p: int, v: Array, t: Array, e: Array,
    f: Array,
) -> None:  # fmt: skip
    """K and T of a row of versines, with what weights of a rate read, and their errors."""
    size, base, rate = stage[SIZE], stage[SIZES], form[RATE]
    mine = number_of(where, base, 0, size, p, table)
    others = columns_of(where, base, 0, size, p, table)
    for q in range(v.size):
        unit = mine * others[q]
        k = unit * (1.0 - 2.0 * v[q])
        t[q] = unit * t[q] + rate * k
        v[q] = k
    begun(stage, form, table, where, p, 0, e, f)


@inner
def begun(
    stage: Index, form: Array, table: Array, where: Where, p: int, place: int, e: Array, f: Array
) -> None:
    """Errors of K and T before anything has been done to them: products of lengths."""
    size, base = stage[SIZE], stage[SIZES]
    mine = number_of(where, base, place, size, p, table)
    others = columns_of(where, base, place, size, p, table)
    for q in range(e.size):
        e[q], f[q] = form[OFF] * (mine * others[q]), form[BEGUN] * (mine * others[q])


@inner
def _tabled(
    at: int, stage: Index, numbers: Numbers, where: Where, p: int, x: Array, out: Array
) -> None:
    """A row by the table whose head is at a place."""
    begins, count = numbers[6], stage[SIZE] * where[3]
    place, terms, first, number = begins[at], begins[at + 1], begins[at + 2], begins[at + 3]
    own, other = place_of(where, 0, stage[SIZE], p)
    rows = numbers[5][place : place + 2 * terms * count].reshape(2 * terms, count)
    mine, degrees = rows[:terms, own : own + 1].T, begins[first : first + number]
    clenshaw(x.reshape(1, x.size), mine, rows[terms:], degrees, other, out.reshape(1, x.size))


@inner
def _turned(
    stage: Index, kappa: float, numbers: Numbers, where: Where, p: int, k: Array, e: Array,
    n1: Array, turns: Array, x: Array,
) -> None:  # fmt: skip
    """Half versines, or angles, of a row for a kink; how much slopes turn with errors of K."""
    size, base, table, labels = stage[SIZE], stage[SIZES], numbers[3], numbers[4]
    own, other = place_of(where, base, size, p)
    over, loose = (
        number_of(where, base, OVER, size, p, table),
        number_of(where, base, LOOSE, size, p, table),
    )
    overs, ends = (
        columns_of(where, base, OVER, size, p, table),
        columns_of(where, base, LOOSE, size, p, table),
    )
    for q in range(k.size):
        unit, same = over * overs[q], labels[own] == labels[other + q]
        e[q] += abs(k[q]) * (loose + ends[q])
        rho = 1.0 if same else min(max(k[q] * unit, -1.0), 1.0)
        off = unit * (e[q] + EPS * abs(k[q]))
        turns[q] = 0.0 if same else kappa * n1[q] * unit * turned(off, 1.0 - rho * rho)
        x[q] = 0.5 - 0.5 * rho
    for q in range(k.size if stage[BENT] == KINKED else 0):
        v = x[q]
        part = v if v <= 0.5 else 1.0 - v
        turn = math.sqrt(part) * angle(part)
        x[q] = 2.0 / math.pi * (turn if v <= 0.5 else math.pi - turn) - 1.0


@inner
def _lift(
    stage: Index, form: Array, numbers: Numbers, where: Where, p: int, k: Array, e: Array,
    spare: Array,
) -> None:  # fmt: skip
    """What parameters add to T, and how far that may be off, in the last rows."""
    size, base, table, x = stage[SIZE], stage[SIZES], numbers[3], spare[4][: k.size]
    if stage[BENT] < TABLED:
        over = number_of(where, base, ROOT, size, p, table)
        roots = columns_of(where, base, ROOT, size, p, table)
        for q in range(k.size):
            unit = over * roots[q]
            x[q] = min(max(k[q] / unit, -1.0), 1.0) if unit > 0.0 else 0.0
    out = spare[5][: k.size]
    _tabled(stage[LIFTED], stage, numbers, where, p, x, out)
    loose = number_of(where, base, LOOSE, size, p, table)
    ends = columns_of(where, base, LOOSE, size, p, table)
    for q in range(k.size):
        wrong = form[LIFT + 1] * (e[q] + EPS * abs(k[q])) + form[LIFT + 3]
        spare[6, q] = form[LIFT] * (wrong + form[LIFT + 2] * (loose + ends[q]))
        out[q] *= form[LIFT]


@inner
def _duals(
    stage: Index, form: Array, numbers: Numbers, where: Where, p: int, k: Array, own: Array,
    n0: Array, n1: Array, spare: Array,
) -> None:  # fmt: skip
    """Values and slopes of a row, in the first rows; half versines or angles are there by now."""
    size, base, table, bend = stage[SIZE], stage[SIZES], numbers[3], stage[BENT]
    value, slope, x = spare[0][: k.size], spare[1][: k.size], spare[4][: k.size]
    b0, b1 = columns_of(where, base, 0, size, p, table), columns_of(where, base, 1, size, p, table)
    b2 = columns_of(where, base, 2, size, p, table)
    if bend == CORNER:
        for q in range(k.size):
            after, turn = _corner(x[q], form[KAPPA], form[TURN], form[BASE])
            value[q], slope[q] = own[3] * n0[q] * (1.0 - 2.0 * after), own[5] * n1[q] * turn
    elif bend < TABLED:
        row, shape = bend - FIRST_CLOSED, form[SHAPE:STEP]
        closed(row, shape, k, value, slope, (own[0], own[1], own[2]), b0, b1, b2)
    else:
        if bend == TABLED:
            for q in range(k.size):
                x[q] = min(max(k[q] * (own[OVER] * b2[q]), -1.0), 1.0)
        _tabled(stage[TABLES], stage, numbers, where, p, x, value)
        _tabled(stage[TABLES] + 4, stage, numbers, where, p, x, slope)


@inner
def _bent_sums(
    stage: Index, form: Array, numbers: Numbers, where: Where, p: int, v: Array, t: Array,
    e: Array, f: Array, spare: Array,
) -> None:  # fmt: skip
    """A row of sums through its function, errors followed."""
    size, base, width, table, bend = stage[SIZE], stage[SIZES], v.size, numbers[3], stage[BENT]
    own, value, slope = spare[2], spare[0][:width], spare[1][:width]
    for k in range(NUMBERS):
        own[k] = number_of(where, base, k, size, p, table)
    r = number_of(where, base, ROOT, size, p, table)
    others = columns_of(where, base, ROOT, size, p, table)
    for q in range(width):
        unit = r * others[q]
        e[q] += form[OFF] * unit
        f[q] += form[OFF] * (unit + abs(t[q])) + form[BEGUN] * unit
    n0, p0 = columns_of(where, base, 3, size, p, table), columns_of(where, base, 4, size, p, table)
    n1, p1 = columns_of(where, base, 5, size, p, table), columns_of(where, base, 6, size, p, table)
    n2 = columns_of(where, base, 7, size, p, table)
    if bend in (CORNER, KINKED):
        n2, own[7] = spare[3][:width], own[5]
        _turned(stage, form[KAPPA], numbers, where, p, v, e, n1, n2, spare[4][:width])
    _duals(stage, form, numbers, where, p, v, own, n0, n1, spare)
    if stage[LIFTED] >= 0:
        _lift(stage, form, numbers, where, p, v, e, spare)
    advance(v, t, e, f, value, slope, own, n0, p0, n1, p1, n2, form[STEP : STEP + 3])
    more = form[RATE] - 1.0  # the step has a rate of 1
    for q in range(width):
        t[q] += more * v[q]
        f[q] += max(more, 0.0) * e[q]
    if stage[LIFTED] >= 0:
        for q in range(width):
            t[q] += spare[5][q]
            f[q] += spare[6][q]


@inlined
def _plain_row(
    stage: Index, form: Array, numbers: Numbers, where: Where, p: int, v: Array, t: Array,
    e: Array, f: Array, spare: Array,
) -> None:  # fmt: skip
    """A row of K and T."""
    if form[TILT] > 0.0:
        for q in range(v.size):
            t[q] += form[TILT]
    if stage[BENT]:
        _bent_sums(stage, form, numbers, where, p, v, t, e, f, spare)
        return
    if stage[FRESH]:
        begun(stage, form, numbers[3], where, p, ROOT, e, f)
    for q in range(v.size):
        t[q] += form[RATE] * v[q]
        f[q] += form[RATE] * e[q]


@inlined
def finish_row(
    stage: Index, form: Array, numbers: Numbers, where: Where, p: int, v: Array, t: Array,
    e: Array, f: Array, spare: Array,
) -> None:  # fmt: skip
    """What is applied to the sums of a row, in the form in which others read it."""
    if stage[PLAIN]:
        _plain_row(stage, form, numbers, where, p, v, t, e, f, spare)
        return
    rate = 0.0 if stage[HELD] else form[RATE]
    if stage[FIRST]:
        _entered(v, t, form[OWN], stage[BENT] == CORNER)
    if stage[BENT]:
        bent(v.ctypes.data, t.ctypes.data, v.size, form, rate)
    else:
        for q in range(v.size):
            t[q] += rate * (1.0 - 2.0 * v[q])
    if stage[HELD]:
        _held(stage, form, numbers[3], where, p, v, t, e, f)


@inner
def measure(
    stage: Index, form: Array, table: Array, where: Where, room: Array, spare: Array
) -> None:
    """What pairs read of an input's positions, from their variances."""
    count, size, bend = where[3], stage[SIZE], stage[BENT]
    between, q = stage[TANGENT] - stage[VALUE], spare[3][:size]
    loose, rounding = spare[4][:size], 0.0
    for p in range(size):
        place = stage[VALUE] + p * stage[PITCH] + (0 if where[0] else p)
        q[p] = max(room[place], 0.0)
        loose[p] = room[place + 2 * between] / q[p] + form[OFF] if q[p] > 0.0 else 0.0
        rounding = max(rounding, loose[p])
    if FIRST_CLOSED <= bend < TABLED:
        numbers, last = np.empty((NUMBERS, size)), np.empty((5, size))
        step = form[STEP : STEP + 3].reshape(1, 3)
        lengths(bend - FIRST_CLOSED, form[SHAPE:STEP], q, rounding, step, numbers, last)
    for p in range(size):
        place, r = place_of(where, stage[SIZES], size, p)[0], math.sqrt(q[p])
        own = table[place :: size * count]
        own[ROOT], own[LOOSE], over = r, 0.5 * loose[p], 1.0 / r if r > 0.0 else 0.0
        if FIRST_CLOSED <= bend < TABLED:
            for k in range(NUMBERS):
                own[k] = numbers[k, p]
            continue
        if bend == CORNER:
            length, norm = r * form[STRENGTH], form[NORM]
            if norm >= 0.0:
                length = r / math.sqrt(q[p] + norm) if q[p] + norm > 0.0 else 0.0
            n1 = length * over
            own[3], own[5], own[7] = length, n1, length * over * over
            own[LOST], own[THIRD] = form[ROUNDS] * n1, n1 * over * over if norm >= 0.0 else 0.0
        own[OVER] = over
        own[4] = 0.5 * (own[7] * loose[p] * q[p] + form[ROUNDS] * own[3])
        own[6] = 0.5 * (own[THIRD] * loose[p] * q[p] + own[LOST])
