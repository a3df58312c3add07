"""Hermite coefficients of many functions f(m + s z), by quadrature on shared panels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array
from tpcalc.integrals import rules
from tpcalc.integrals.quadrature.adaptive import EPS
from tpcalc.integrals.quadrature.nodes import gauss_legendre
from tpcalc.integrals.quadrature.one_dimension import PEAK, REACH, Lines, line_bends
from tpcalc.integrals.quadrature.panels import Bends, Panels, panels, split
from tpcalc.integrals.quadrature.shape import Shape

PHASE = 10.0  # half-turns of the highest polynomial that one panel takes, in radians
WITNESSES = 16
CHEAP = 256  # degree up to which all functions are witnesses
ROUNDS = 12
FLOOR = 1e-16
NOISE = 64 * EPS


class Series(NamedTuple):
    """Hermite coefficients of n functions."""

    table: Array  # coefficients on orthonormal polynomials, of shape (degree + 1, n)
    doubt: Array  # for each function a bound on the error of its coefficients, as a Euclidean norm


def expand(function: Shape, mean: Array, spread: Array, degree: int, power: int = 0) -> Series:
    """Expand z^p f(m + s z) in orthonormal Hermite polynomials of z.

    Source: DLMF 18.3 and 18.9(i) (the recurrence, normalised).
    """
    powers = np.zeros((power + 1, len(mean)))
    powers[power] = 1.0
    lines = Lines((function,), mean[None], spread[None], powers)
    bends = line_bends(lines)
    if len(mean) == 1 or (bends.place == bends.place[:1]).all():
        return _together(lines, bends, degree)
    each = []
    for k in range(len(mean)):
        some = slice(k, k + 1)
        one = Lines((function,), mean[None, some], spread[None, some], powers[:, some])
        own = Bends(bends.place[some], bends.first[some], bends.finest[some], bends.base[:, some])
        each.append(_together(one, own, degree))
    return Series(
        np.concatenate([one.table for one in each], axis=1),
        np.concatenate([one.doubt for one in each]),
    )


def _together(lines: Lines, bends: Bends, degree: int) -> Series:
    """Expand functions that bend in the same places."""
    first = bends.first.min(axis=0, keepdims=True)
    leader = Bends(bends.place[:1], first, bends.finest[:1], bends.base[:, :1])
    some = _witnesses(lines, degree)
    witness = Lines(
        lines.shapes, lines.offset[:, some], lines.slope[:, some], lines.powers[:, some]
    )
    with np.errstate(all="ignore"):
        cover = _resolved(witness, bends, panels(leader, lines.offset[:, :1], REACH))
        cover = _cut(cover, PHASE / np.sqrt(degree + 1.0), 1)
        table = _table(lines, bends, cover, degree)
        finer = _table(witness, bends, _cut(cover, np.inf, 2), degree)
    off = np.sqrt(((finer - table[:, some]) ** 2).sum(axis=0))
    norm = np.sqrt((table**2).sum(axis=0))
    share = np.max(off / np.where(norm[some] > 0, norm[some], 1.0), initial=0.0)
    return Series(table, (2.0 * share + 4.0 * EPS) * norm)


def _witnesses(lines: Lines, degree: int) -> NDArray[np.intp]:
    """Functions that are expanded on finer panels as well, to see the error."""
    order = np.argsort(lines.slope[0])
    count = len(order) if degree <= CHEAP else min(len(order), WITNESSES)
    return np.asarray(order[np.unique(np.linspace(0, len(order) - 1, count).astype(int))])


def _resolved(witness: Lines, bends: Bends, cover: Panels) -> Panels:
    """Panels split until they resolve the functions (next to kinks, geometrically)."""
    rule = gauss_legendre()
    done: list[Panels] = []
    for _ in range(ROUNDS):
        half = 0.5 * (cover.upper - cover.lower)
        z = _nodes(cover)
        root = np.exp(-0.25 * z * z) * np.abs(z) ** (len(witness.powers) - 1)
        values = _values(witness, bends, cover).reshape(*z.shape, -1) * root[:, :, None]
        size = np.abs(values).max(axis=(0, 1))
        values = values / np.where(size > 0, size, 1.0)
        judged = half[:, None] * np.abs(np.einsum("pnw,nj->pwj", values, rule.judges)).max(axis=2)
        bad = judged.max(axis=1) > FLOOR + NOISE * half * np.abs(values).max(axis=(1, 2))
        bad &= cover.upper - cover.lower > cover.finest
        done.append(cover.at(~bad))
        if not bad.any():
            break
        cover = split(cover.at(bad))
    else:
        done.append(cover)
    return Panels(*(np.concatenate(parts, axis=-1) for parts in zip(*done, strict=True)))


def _cut(cover: Panels, longest: float, least: int) -> Panels:
    """Cut panels into so many equal parts at least that none is longer than twice this."""
    length = cover.upper - cover.lower
    pieces = np.maximum(np.ceil(length / (2.0 * longest)), least).astype(int)
    index = np.repeat(np.arange(len(length)), pieces)
    number = np.arange(len(index)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    start, step = cover.lower[index], (length / pieces)[index]
    last = number + 1 == pieces[index]
    lower = np.where(number == 0, start, start + number * step)
    upper = np.where(last, cover.upper[index], start + (number + 1) * step)
    return cover.at(index)._replace(lower=lower, upper=upper)


def _table(lines: Lines, bends: Bends, cover: Panels, degree: int) -> Array:
    """Coefficients by one matrix product of values and polynomials."""
    rule = gauss_legendre()
    half = 0.5 * (cover.upper - cover.lower)
    values = _values(lines, bends, cover)
    z = _nodes(cover)
    root = np.sqrt(PEAK) * np.exp(-0.25 * z * z)
    weight = (half[:, None] * rule.weights * root * z ** (len(lines.powers) - 1)).ravel()
    weighted: Array = weight[:, None] * values
    return np.asarray(rules.hermite(z.ravel(), degree, root.ravel()) @ weighted)


def _nodes(cover: Panels) -> Array:
    return cover.anchor[:, None] + cover.offsets


def _values(lines: Lines, bends: Bends, cover: Panels) -> Array:
    """The values at all nodes, of shape (nodes, n); the anchors are shared."""
    offsets = cover.offsets
    place = bends.place[0]
    shared = (cover.anchor[:, None] == place).any(axis=1)[:, None]
    offset, slope = lines.offset[0], lines.slope[0]
    own = offset[None, :] + cover.anchor[:, None] * slope[None, :]
    base = np.where(shared, cover.base[0][:, None], own)
    x = base[:, None, :] + offsets[:, :, None] * slope[None, None, :]
    return lines.shapes[0].values(x).reshape(-1, lines.problems)
