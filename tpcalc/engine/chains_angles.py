"""Chains of activations that are smooth on either side of 0: a table of each layer in the angle.

Two inputs have h = s x, h' = s' y for Gaussians of correlation cos a. In polar coordinates of their
plane the four sectors between the lines where an argument changes its sign are smooth, so that
E phi'(h) phi'(h') is analytic in the angle a from 0 to pi, and in the logarithms of both sizes. A
layer has its Chebyshev series in a, each degree as a sum over eigenvectors of products of a number
of either input. E phi phi' follows from the mean of slopes over correlations from cos a to 1, by
which distances of inputs keep their digits, see ``chains_wedges``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.polynomial.legendre import leggauss

from tpcalc.arrays import Array
from tpcalc.engine.chains_series import (
    ABRUPT,
    MORE,
    NEGLIGIBLE,
    TOLERANCE,
    Do,
    Layer,
    Lengths,
    NotSettled,
    Pairs,
    Smooth,
    Terms,
    at_inputs,
    chebyshev_nodes,
    cut,
    ends,
    nodes,
    terms_of,
    to_series,
    values,
)
from tpcalc.engine.chains_tables import EPS, ROUNDINGS, Chain, Gram, forms_of, inverse, pair_of

FAR, PANEL = 13.0, 20  # of radii; nodes of a panel
RADII = (24, 32, 48, 64, 96, 128, 260, 520, 1040)  # nodes of rules that are tried
MOST, FINE = 128, 1040  # of rules of Gauss; of the panels that they come from
ANGLES = (20, 28, 40, 56, 80, 112, 160)
FACTORS = (30, 44, 64, 90, 128, 180, 256)  # degrees in s cos a
DEGREES = (20, 24, 28, 34, 40, 50, 64, 90)  # of series in the angle
SHIFT = 1e-4  # relative, of differences of slopes
FAINT = 1e-9  # of directions of radii
FIRST = 25  # degrees of the first layer
ROWS = 2500  # of values along rays that are handled at once
LARGE = 2e7  # values along rays times degrees: some tenths of a second
STEEP = 1.2  # the steepest place beside the steepest node
LEAST = 1e-3  # of the largest angle


_legendre = lru_cache(maxsize=32)(leggauss)


def _panels(count: int, power: int) -> tuple[Array, Array]:
    """A rule for r^power exp(-r^2 / 2) / (2 pi) from 0 on, of panels of equal lengths."""
    at, fine = _legendre(PANEL)
    length = FAR * PANEL / count
    x = (length * (np.arange(count // PANEL)[:, None] + (at + 1) / 2)).ravel()
    weight = np.tile(fine, count // PANEL) * (length / 2) * np.exp(-x * x / 2)
    return x, weight * x**power / (2 * math.pi)


@lru_cache(maxsize=2 * len(RADII))
def _gauss(count: int, power: int) -> tuple[Array, Array]:
    """Its Gauss rule, from the recursion of its polynomials; of many nodes panels are as good."""
    if count > MOST:
        return _panels(count, power)
    x, weight = _panels(FINE, power)
    found = np.zeros((count + 1, x.size))
    found[0] = np.sqrt(weight / weight.sum())
    jacobi = np.zeros((count + 1, count + 1))
    for k in range(count):
        after = x * found[k]
        jacobi[k, k] = after @ found[k]
        for _ in range(2):  # orthogonal to rounding
            after = after - (found[: k + 1] @ after) @ found[: k + 1]
        jacobi[k + 1, k] = jacobi[k, k + 1] = np.linalg.norm(after)
        found[k + 1] = after / jacobi[k + 1, k]
    places, vectors = np.linalg.eigh(jacobi[:count, :count])
    return places, vectors[0] ** 2 * weight.sum()


@dataclass(frozen=True, eq=False)
class _Rays:
    """Slopes on either side of 0 at a radius times c, 0 <= c <= top, by Chebyshev's series in c.

    Of shape (2, degrees, directions of radii), with the roots of the weights of the radii.
    """

    series: Array
    top: float
    angles: int  # nodes of a sector


def _rays(function: Smooth, top: float, largest: float) -> _Rays:
    def slopes(c: Array, count: int) -> Array:
        x, w = _gauss(count, 1)
        z = np.multiply.outer(c, x)
        return values(function.slope, np.array([z, -z])) * np.sqrt(w)

    def squares(count: int) -> Array:
        up, down = slopes(top * np.array([1.0, 0.5, 0.1]), count)
        return np.array([up @ up.T, up @ down.T, down @ down.T])

    radii = _settled(squares, RADII)
    for degrees in FACTORS:
        found = slopes(top * chebyshev_nodes(degrees), radii)
        if ends(np.moveaxis(found, 1, 0)):
            series = to_series(degrees) @ found
            break
    else:
        raise NotSettled("it is not smooth on either side of 0")
    # only inner products over radii count: a direction of size 1e-9 is 1e-18 of them
    _, factors, turned = np.linalg.svd(series.reshape(-1, radii), full_matrices=False)
    series = series @ turned[factors > FAINT * factors[0]].T
    angles, one = largest * np.array([0.02, 0.3, 1.0]), np.array([top])
    count = _settled(lambda count: _slopes(_Rays(series, top, count), one, angles), ANGLES)
    return _Rays(series, top, count)


def _settled(rule: Callable[[int], Array], counts: tuple[int, ...]) -> int:
    """The first number of nodes whose results those of the next one agree with."""
    last = rule(counts[0])
    for before, count in pairwise(counts):
        found = rule(count)
        if float(np.abs(found - last).max()) <= TOLERANCE * float(np.abs(found).max()):
            return before
        last = found
    raise NotSettled("two rules for its averages do not agree")


def _slopes(rays: _Rays, sizes: Array, angles: Array) -> Array:
    """E phi'(h) phi'(h'), of shape (angles, sizes, sizes)."""
    _, degrees, radii = rays.series.shape
    at = np.clip(np.multiply.outer(sizes / rays.top, chebyshev_nodes(degrees)), 0.0, 1.0)
    whole = chebyshev.chebvander(2 * at - 1, degrees - 1) @ np.concatenate([*rays.series], axis=1)
    own = to_series(degrees) @ whole  # of each size in the ray
    y, weight = _legendre(rays.angles)
    found: Any = 0.0
    for turn in (np.cos, np.sin):
        width = (math.pi - angles if turn is np.cos else angles)[:, None] / 2
        ray = np.clip(turn(angles[:, None] / 2 + width * y), 0.0, 1.0)
        basis = chebyshev.chebvander(2 * ray - 1, degrees - 1) * np.sqrt(width * weight)[..., None]
        step = max(1, ROWS // (sizes.size * y.size))  # angles whose values stay in cache
        parts = []
        for start in range(0, angles.size, step):
            some = basis[start : start + step].reshape(-1, degrees) @ own
            both = some.reshape(sizes.size, -1, y.size, 2, radii)
            # the other input has the rays in the other order, and in one sector the other sign
            other = both[:, :, ::-1] if turn is np.cos else both[:, :, ::-1, ::-1]
            shape = *both.shape[:2], -1
            parts.append(
                other.reshape(shape).swapaxes(0, 1) @ both.reshape(shape).transpose(1, 2, 0)
            )
        found = found + np.concatenate(parts)
    return np.asarray(found)


@dataclass(frozen=True, eq=False)
class _Sizes:
    """Averages of single inputs at some sizes."""

    layer: Layer
    value: Array  # (sizes, nodes)
    tilted: Array  # h phi'(h), likewise
    weights: Array


def _averages(function: Smooth, sizes: Array, count: int) -> _Sizes:
    """Mean squares of phi, phi', h phi', h phi'' (over q, q^2); how the first two grow with q."""
    x, w = _gauss(count, 0)
    weights = np.concatenate([w, w]) * math.sqrt(2 * math.pi)
    z = np.multiply.outer(sizes, np.concatenate([x, -x]))
    value, slope = values(function.value, z), values(function.slope, z)
    up, down = (values(function.slope, z * (1 + by)) for by in (SHIFT, -SHIFT))
    tilted, bend, q = z * slope, (up - down) / (2 * SHIFT), sizes**2
    squares = tilted * tilted * weights
    whole = squares.sum(axis=1)
    if not (np.isfinite(whole).all() and (whole > 0).all()):
        raise NotSettled("its slope has no positive mean square")
    if not (squares[:, [x.size - 1, -1]] <= NEGLIGIBLE * whole[:, None]).all():
        raise NotSettled("it grows too fast")
    rows = [(value, 1.0), (slope, 1.0), (tilted, q**2), (bend, q**2)]
    moments = np.array([(part * part) @ weights / unit for part, unit in rows])
    growth = np.array([(value * tilted) @ weights, (slope * bend) @ weights]) / q
    return _Sizes(Layer(np.empty(0), 0, moments, growth), value, tilted, weights)


def _means(largest: float, count: int) -> Array:
    """From values at angles to averages over correlations from that of the angle to 1."""
    at, (y, weight) = largest * chebyshev_nodes(count), _legendre(count)
    inner = np.multiply.outer(at, (y + 1) / 2)
    rule = np.multiply.outer(at / 2, weight) * np.sin(inner) / (2 * np.sin(at / 2) ** 2)[:, None]
    basis = chebyshev.chebvander(2 * inner / largest - 1, count - 1)
    found: Array = np.einsum("kp,kpn->kn", rule, basis) @ to_series(count)
    return found


@dataclass(frozen=True, eq=False)
class _Tables:
    """Of a layer: slopes and their means by the angle, gaps of sizes; numbers of single inputs."""

    layer: Layer
    scale: float
    means: Terms
    slopes: Terms
    bends: Terms
    steep: float  # how much slopes bend by the angle, relative to their size
    rough: float  # the size of a gap


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Shares of slopes at Chebyshev nodes in the angle and at nodes of sizes."""

    to: Array
    sizes: Array
    known: _Sizes
    found: Array  # (angles, sizes, sizes)
    steep: float  # the largest derivative by the angle


def _at_nodes(function: Smooth, q: Array, largest: float, least: int) -> _Nodes:
    """Of a layer at variances q, for angles up to a largest one; of more degrees than ``least``."""
    own = np.sqrt(q)
    top = own[[int(own.argmax())]]
    line = _settled(lambda count: _averages(function, top, count).layer.moments[:2], RADII)
    rays = _rays(function, float(top[0]), largest)
    for more in MORE:
        to, sizes = nodes(own, more)
        known = _averages(function, sizes, line)
        found = _by_angle(rays, sizes, np.sqrt(known.layer.moments[1]), largest, least)
        if sizes is own or ends(np.moveaxis(found, 1, 0)):
            break
    else:
        raise NotSettled(ABRUPT)
    bent = chebyshev.chebder(to_series(len(found)) @ found.reshape(len(found), -1))
    turned = chebyshev.chebvander(2 * chebyshev_nodes(len(found)) - 1, len(found) - 2) @ bent
    return _Nodes(to, sizes, known, found, STEEP * 2 / largest * float(np.abs(turned).max()))


def _tables(function: Smooth, q: Array, largest: float, form: Array, least: int) -> _Tables:
    """Of a layer at variances q, for angles up to a largest one; of more degrees than ``least``."""
    largest = min(max(largest * (1 + 1e-9), LEAST), math.pi)
    at = _at_nodes(function, q, largest, least)
    count, to, known = len(at.found), at.to, at.known
    series = np.tensordot(to_series(count), at.found, 1)
    means = np.tensordot(to_series(count) @ _means(largest, count), at.found, 1)
    moments = at_inputs(to, known.layer.moments)
    gaps, rough = _gaps(known, at.sizes, form)
    return _Tables(
        Layer(np.empty(0), 0, moments, (to @ known.layer.growth.T).T),
        2 / largest,
        terms_of(cut(means), np.sqrt(moments[1]), to),
        terms_of(cut(series), np.sqrt(moments[1]), to),
        terms_of(gaps[None], np.ones(len(q)), to),
        at.steep,
        rough,
    )


def angle_tables(function: Smooth, q: Array) -> tuple[Array, Terms, Terms, float]:
    """Mean squares, values and slopes in x = 2 angle / pi - 1, how much slopes turn with angles."""
    at = _at_nodes(function, q, math.pi, 0)
    count, known, sizes = len(at.found), at.known, at.sizes
    moments, unit = at_inputs(at.to, known.layer.moments), np.sqrt(known.layer.moments[:2])
    means = np.tensordot(_means(math.pi, count), at.found, 1)
    gap = 1 - np.cos(math.pi * chebyshev_nodes(count))
    tilt = sizes * unit[1] / unit[0]
    shares = known.value / unit[0][:, None]
    values = (shares * known.weights) @ shares.T - np.multiply.outer(tilt, tilt) * (
        gap[:, None, None] * means
    )
    terms = [
        terms_of(cut(np.tensordot(to_series(count), part, 1)), np.sqrt(own), at.to)
        for part, own in zip((values, at.found), moments[:2], strict=True)
    ]
    return moments, terms[0], terms[1], at.steep


def _by_angle(rays: _Rays, sizes: Array, unit: Array, largest: float, least: int) -> Array:
    """Shares of slopes at Chebyshev nodes up to the largest angle, so many that the series ends."""
    for count in [one for one in DEGREES if one > least]:
        if count * sizes.size * rays.angles * rays.series.shape[1] > LARGE:
            raise NotSettled("its tables are too large")
        found = _slopes(rays, sizes, largest * chebyshev_nodes(count))
        found /= np.multiply.outer(unit, unit)
        if ends(found):
            return found
    raise NotSettled(f"{DEGREES[-1]} degrees of its series in the angle are too few")


def _gaps(known: _Sizes, sizes: Array, form: Array) -> tuple[Array, float]:
    """What inputs of one direction lose, over the squared difference of logarithms of sizes."""
    keep, m, s = form
    delta = np.subtract.outer(np.log(sizes), np.log(sizes))
    same = delta == 0
    delta[same] = 1.0
    value, weights = known.value, known.weights
    apart = (value[:, None] - value[None]) / delta[..., None]
    apart[same] = known.tilted[np.nonzero(same)[0]]
    after = np.sqrt(keep * sizes**2 + m * known.layer.moments[0] + s)
    total = np.add.outer(after, after)
    # of squares of sizes after the layer
    rise = m * np.einsum("ijk,ijk,k->ij", apart, value[:, None] + value[None], weights)
    slow = np.where(same, np.add.outer(sizes, sizes) / 2, np.subtract.outer(sizes, sizes) / delta)
    rise += keep * slow * np.add.outer(sizes, sizes)
    found = m * (apart * apart) @ weights + keep * slow * slow - (rise / total) ** 2
    rough = m * float((known.layer.moments[0] + known.layer.moments[2] * sizes**4).max())
    return found / 2, rough + keep * float(sizes.max()) ** 2


def run_layers(gram: Gram, chain: Chain, function: Smooth, out: dict[str, Array], do: Do) -> Array:
    """Fill both kernels of a chain, whose activation is ``function``; the errors of all tiles."""
    from tpcalc.engine import chains_wedges

    if not chain.first_weight > 0:
        raise NotSettled("inputs do not count")
    weight = gram.factor * chain.first_weight
    pair = pair_of(_with_bias(gram, chain.first_bias / weight))
    rounding = EPS * (4 + pair[0].shape[1] / 8)
    q = weight * np.concatenate([pair[4], pair[5][: 0 if pair[3] else len(pair[1])]])
    pairs, own = Pairs(pair, q, chain, out, do), Lengths(q, q, rounding * q, rounding * q)
    sides, spans, least = pairs.sides, pairs.spans, FIRST
    pairs.run(chains_wedges.run_versines, inverse(pair), sides(np.sqrt(q)), rounding, place=0)
    for place, form in enumerate(forms_of(chain, 1.0), 1):
        # a function of the largest 1 - rho
        largest = 2 * math.asin(math.sqrt(min(float(spans[..., 1].max()) / 2, 1.0)))
        layer = _tables(function, own.q, largest, form, least)
        least = layer.slopes[2].size
        begin, loose = np.sqrt(own.q), own.q_error / (2 * own.q)
        numbers = own.advanced(form, layer.layer, EPS * ROUNDINGS + 2 * TOLERANCE)
        numbers[0], numbers[1], numbers[2] = begin, 1 / np.sqrt(own.q), np.log(begin)
        numbers[3], numbers[7] = own.q_error / (2 * own.q), loose
        tables = map(pairs.rowed, (layer.means, layer.slopes, layer.bends))
        steps = np.array([*form, layer.steep, layer.rough])
        work = pair, layer.scale, *tables, sides(numbers), steps, place == chain.depth
        pairs.run(chains_wedges.run_angles, *work, place=place)
    return pairs.ended(own)


def _with_bias(gram: Gram, square: float) -> Gram:
    """The bias of the first layer as a coordinate of all inputs."""
    if square == 0:
        return gram

    def longer(rows: Array) -> Array:
        return np.column_stack([rows, np.full(len(rows), math.sqrt(square))])

    others = None if gram.others is None else longer(gram.others)
    return Gram(longer(gram.inputs), others, gram.factor)
