"""Expectations over Gaussians that depend on each other: polynomials first, then the nodes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.quadrature.adaptive import EPS, Integrals
from tpcalc.integrals.quadrature.conditional import Surface, conditional_mean, squared_mean
from tpcalc.integrals.quadrature.families import Family, Pairs, distinct, family
from tpcalc.integrals.quadrature.geometry import Plane, plane, regression
from tpcalc.integrals.quadrature.one_dimension import Lines, line_integrals
from tpcalc.integrals.quadrature.pairs import pair_integrals
from tpcalc.integrals.quadrature.shape import Shape

SMOOTH, KINKED = 1e-12, 1e-10  # errors promised, relative to the natural scale
ROUNDS = 4.0

Matrix = list[list[Array]]
Kind = TypeVar("Kind", np.float64, np.intp)


@dataclass(frozen=True)
class _Frame:
    """Two directions z and w, and E[polynomials | z, w] with a bound on its rounding."""

    plane: Plane
    surface: Surface
    slack: Surface
    natural: Array


def group_mean(shapes: list[Shape], mean: list[Array], cov: Matrix) -> Bounded | None:
    """E[f_1(G_1) f_2(G_2) ...] of jointly Gaussian G."""
    bent = [i for i, one in enumerate(shapes) if one.polynomial is None]
    frame = _frame(bent, shapes, mean, cov)
    if not bent:
        return Bounded(frame.surface[0, 0], frame.slack[0, 0])
    functions = [shapes[i] for i in bent]
    found = _single(functions[0], frame) if len(bent) == 1 else _double(functions, frame)
    if found is None:
        return None
    accuracy = SMOOTH if all(function.smooth for function in functions) else KINKED
    good = found.error <= accuracy * found.size
    return Bounded(found.value, found.error) if np.all(good) else None


def _frame(bent: list[int], shapes: list[Shape], mean: list[Array], cov: Matrix) -> _Frame:
    zero = np.zeros(())
    flat = [i for i in range(len(shapes)) if i not in bent]
    if bent:
        u, v = bent[0], bent[-1]
        pair = plane(mean[u], mean[v], cov[u][u], cov[v][v], cov[u][v])
        turned = [regression(pair, cov[u][u], cov[u][v], cov[j][u], cov[j][v]) for j in flat]
    else:
        pair = plane(zero, zero, zero, zero, zero)
        turned = [(zero, zero) for _ in flat]
    a, b = [one[0] for one in turned], [one[1] for one in turned]
    residual: Matrix = [[] for _ in flat]
    sizes: Matrix = [[] for _ in flat]
    for m, i in enumerate(flat):
        for n, j in enumerate(flat):
            along, across = a[m] * a[n], b[m] * b[n]
            residual[m].append(cov[i][j] - along - across)
            sizes[m].append(np.abs(cov[i][j]) + np.abs(along) + np.abs(across))
    numbers = [shapes[i].polynomial or () for i in flat]
    centres = [mean[i] for i in flat]
    surface = conditional_mean(numbers, centres, a, b, residual)
    bound = conditional_mean(
        [tuple(map(abs, one)) for one in numbers],
        [np.abs(x) for x in centres],
        [np.abs(x) for x in a],
        [np.abs(x) for x in b],
        sizes,
    )
    degree = sum(len(one) for one in numbers)
    slack = {key: ROUNDS * degree * EPS * value for key, value in bound.items()}
    natural = np.ones(())
    for i in flat:
        squared = squared_mean(shapes[i].polynomial or (), mean[i], cov[i][i])
        natural = natural * np.sqrt(squared)
    return _Frame(pair, surface, slack, natural)


def _single(function: Shape, frame: _Frame) -> Integrals:
    """One function that is no polynomial: its moments against powers of z, combined."""
    pair = frame.plane
    mean, spread, index = distinct(pair.u0, pair.su)
    value, error, size = np.zeros(()), np.zeros(()), np.zeros(())
    high = max(key[0] for part in (frame.surface, frame.slack) for key in part)
    for power in range(high + 1):
        factor = frame.surface.get((power, 0), np.zeros(()))
        powers = np.zeros((power + 1, len(mean)))
        powers[power] = 1.0
        lines = Lines((function,), mean[None], spread[None], powers)
        here, off, big = (part[index] for part in line_integrals(lines, np.zeros(len(mean))))
        value = value + factor * here
        error = error + np.abs(factor) * off + frame.slack.get((power, 0), 0.0) * big
        size = size + np.abs(factor) * big
    if np.all(error <= SMOOTH * size):
        return Integrals(value, error, size)
    part = family(function, mean, spread)
    if part is not None:
        size = np.maximum(size, frame.natural * np.sqrt(part.energy.value[index]))
    return Integrals(value, error, size)


def _double(functions: list[Shape], frame: _Frame) -> Integrals | None:
    """Two functions that are no polynomials, on arrays brought to two axes."""
    pair = frame.plane
    parts = [*pair, *frame.surface.values(), frame.natural]
    shown = np.broadcast_shapes(*(part.shape for part in parts))
    families: list[Family] = []
    places = []
    for function, mean, spread in zip(
        functions, (pair.u0, pair.v0), (pair.su, pair.sv), strict=True
    ):
        centres, spreads, index = distinct(mean, spread)
        part = _same(families, function, centres, spreads)
        part = part or family(function, centres, spreads)
        if part is None:
            return None
        families.append(part)
        places.append(_two_axes(index, shown))
    rho = _two_axes(np.broadcast_to(pair.rho, shown), shown)
    flat = Plane(*(_two_axes(part, shown) for part in pair))._replace(rho=rho)
    surface = {key: _two_axes(value, shown) for key, value in frame.surface.items()}
    beside = _two_axes(frame.natural, shown)
    pairs = Pairs(flat, places[0], places[1], surface, beside)
    found = pair_integrals(families[0], families[1], pairs)
    norms = [np.sqrt(part.energy.value) for part in families]
    scale = norms[0][places[0]] * norms[1][places[1]]
    rounding = sum(
        _two_axes(value, shown) * _moment(*key) * scale for key, value in frame.slack.items()
    )
    natural = np.maximum(found.size, scale * beside)
    return Integrals(
        found.value.reshape(shown),
        (found.error + rounding).reshape(shown),
        np.broadcast_to(natural, rho.shape).reshape(shown),
    )


def _same(known: list[Family], function: Shape, mean: Array, spread: Array) -> Family | None:
    for part in known:
        same = part.shape is function and np.array_equal(part.mean, mean)
        if same and np.array_equal(part.spread, spread):
            return part
    return None


def _moment(a: int, b: int) -> float:
    """About the size of z^a w^b beside functions of z and w: the fourth root of E z^4a E w^4b."""
    return 3.0 * sqrt(sqrt(prod(range(4 * a - 1, 0, -2)) * prod(range(4 * b - 1, 0, -2))))


def _two_axes(part: NDArray[Kind], shown: tuple[int, ...]) -> NDArray[Kind]:
    """An array that broadcasts to ``shown``, as one of two axes."""
    if len(shown) > 2:
        return np.broadcast_to(part, shown).reshape(1, -1)
    return part.reshape((1,) * (2 - part.ndim) + part.shape)
