"""Chains of any smooth activation: the dual of each layer as its Hermite series.

With a_k(s) = E phi(s x) he_k(x) for orthonormal he_k, inputs of sizes s, s' and correlation rho
have E phi phi' = sum_k a_k(s) a_k(s') rho^k, and s s' E phi' phi' is its derivative by rho. The
coefficients come from the trapezoid rule at nodes in log s, and from these, by interpolation, to
all inputs; they are analytic there. What is left out after a degree is known by Parseval.

Source: Daniely, Frostig, Singer, Toward deeper understanding of neural networks (2016), section 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine.chains_tables import EPS, NUMBERS, ROUNDINGS, Chain, Gram, forms_of, pair_of

if TYPE_CHECKING:
    from tpcalc.engine.chains_tiles import Pair

RANGE = 12.5  # of x: beyond it a Gaussian is 1e-34
TOLERANCE = 4e-15  # of values and slopes, in units of those of an input with itself
RATIO = 1e12  # of the largest variance to the smallest
START, DEGREE = 128, 1024  # degrees of series: the first one, the largest
NEGLIGIBLE, EMPTY, SAME = 1e-16, 1e-15, 1e-12
SHIFT = 1e-3  # of differences of slopes


CUT = 2e-16  # of terms of tables, relative to the largest
MORE = (1.0, 1.5, 2.25, 3.4)  # times the nodes in sizes
ABRUPT = "it changes too abruptly with the size of inputs"
LONG = 128  # terms from which tables may be shorter
COUNTS = (16, 24, 36, 54, 80, 120)  # of their degrees


class NotSettled(Exception):
    """A function whose series is not known to the tolerance; the message says why."""


@lru_cache(maxsize=24)
def _rule(step: float, degree: int) -> tuple[Array, Array, Array]:
    """Nodes, weights, and orthonormal Hermite polynomials (nodes, degree + 1)."""
    x: Array = step * np.arange(-round(RANGE / step), round(RANGE / step) + 1.0)
    found = np.empty((degree + 1, x.size))
    found[0], found[1] = 1.0, x
    for k in range(1, degree):
        found[k + 1] = (x * found[k] - math.sqrt(k) * found[k - 1]) / math.sqrt(k + 1)
    weights = np.exp(-x * x / 2) * (step / math.sqrt(2 * math.pi))
    return x, weights, np.ascontiguousarray(found.T)


@dataclass(frozen=True)
class Smooth:
    """A function with its slope, of arrays: smooth, or so on either side of 0."""

    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    powers: tuple[float, ...] = ()  # coefficients of a polynomial, the constant first
    kinked: bool = False  # at 0, and smooth on either side of it

    @property
    def tolerance(self) -> float:
        """What values and slopes may miss beside rounding."""
        return 0.0 if self.powers else 2 * TOLERANCE


@dataclass(frozen=True, eq=False)
class Layer:
    """What is known of one layer at the variances of all inputs."""

    coefficients: Array  # (inputs, terms)
    parity: int  # of the terms: all (0), the odd (1) or the even degrees (2)
    moments: Array  # (4, inputs): mean squares of phi, phi', phi'', phi'''
    growth: Array  # (2, inputs): derivatives of the first two by q
    # to inputs from nodes; coefficients there; the squares of all terms and k times these
    nodes: tuple[Array, Array, Array] | None = None


Terms = tuple[Array, Array, Index]
NONE = np.zeros((1, 1)), np.zeros((1, 1)), np.zeros(1, np.int64)
Short = tuple[Terms, Terms, float, float]
"""Values and slopes in x = scale rho + shift."""


def layer_of(function: Smooth, q: Array, largest: float) -> Layer:
    """The series at variances q, for correlations up to a size.

    Raises:
        NotSettled: The tolerance is not met.
    """
    if function.powers:
        return _finite(function.powers, np.sqrt(q))
    sizes = np.sqrt(q)
    step = _step(function, float(sizes.max()))
    for more in MORE:
        to, at = nodes(sizes, more)
        moments, growth = _moments(function, at, step)
        whole = np.array([moments[0], at**2 * moments[1]])  # of squares, and k times these
        found, parity = _terms(partial(_coefficients, function.value, at, step), whole, largest)
        shares = found / np.sqrt(whole[:1].T)
        if at is sizes or ends(np.hstack([shares, np.log(moments[:2].T)])):
            break
    else:
        raise NotSettled(ABRUPT)
    own = at_inputs(to, moments)
    coefficients = (to @ shares) * np.sqrt(own[:1].T)
    return Layer(coefficients, parity, own, growth @ to.T, (to, found, whole))


def _terms(coefficients: Callable[[int], Array], whole: Array, largest: float) -> tuple[Array, int]:
    """Coefficients up to the degree that leaves nothing, and which degrees these are."""
    degree = START
    while True:
        found = coefficients(degree)
        left = _left(found, whole) * largest ** np.arange(degree + 1.0)
        enough = np.flatnonzero(left <= TOLERANCE)
        if enough.size:
            break
        if degree == DEGREE:
            raise NotSettled(f"{DEGREE} terms of its series leave {left[-1]:.1g}")
        degree *= 2
    stop = int(enough[0]) + 1
    size = np.abs(found).max(axis=0)
    for kept in (1, 0):
        if (size[1 - kept :: 2] < EMPTY * size.max()).all():
            return found[:, kept:stop:2], 2 - kept
    return found[:, :stop], 0


def ends(rows: Array) -> bool:
    """Whether numbers at nodes of sizes are those of a series that ends with them."""
    if len(rows) == 1:
        return True
    size = np.abs(to_series(len(rows)) @ rows.reshape(len(rows), -1)).max(axis=1)
    return bool(size[-2:].max() <= TOLERANCE * size.max())


def at_inputs(to: Array, moments: Array) -> Array:
    """Mean squares of inputs from those at nodes; the first two keep their digits at any size."""
    found: Array = moments @ to.T
    found[:2] = np.exp(np.log(moments[:2]) @ to.T)
    return found


def _finite(powers: tuple[float, ...], sizes: Array) -> Layer:
    """The series of a polynomial: E x^j he_k = j! / (2^m m! sqrt k!), m = (j - k) / 2."""
    a = np.zeros((len(powers) + 3, sizes.size))
    for j, factor in enumerate(powers):
        for k in range(j % 2, j + 1, 2):
            m = (j - k) // 2
            whole = math.factorial(j) / (2**m * math.factorial(m) * math.sqrt(math.factorial(k)))
            a[k] += factor * whole * sizes**j
    q, found, rows = sizes**2, [], a
    for _ in range(4):  # coefficients of each derivative, times a power of the size
        found.append(rows)
        rows = np.sqrt(np.arange(1.0, len(rows)))[:, None] * rows[1:]
    moments = np.array([(row * row).sum(axis=0) / q**i for i, row in enumerate(found)])
    crossed = [
        (low[: len(up)] * up).sum(axis=0) / q for low, up in zip(found[:2], found[2:], strict=True)
    ]
    growth = np.array([moments[1] + crossed[0], moments[2] + crossed[1] / q])
    return Layer(a.T, 0, moments, growth)


def _left(coefficients: Array, whole: Array) -> Array:
    """The share of values and slopes that terms behind a degree have, at the most."""
    squares = coefficients * coefficients
    found = np.zeros(squares.shape[1])
    degrees = np.arange(squares.shape[1], dtype=float)
    for weights, size in zip((np.ones_like(degrees), degrees), whole, strict=True):
        left = 1.0 - np.cumsum(squares * weights, axis=1) / size[:, None]
        found = np.maximum(found, left.max(axis=0))
    return found


def nodes(sizes: Array, more: float) -> tuple[Array, Array]:
    """A matrix from values at nodes to those at all sizes, and these nodes, more if asked for."""
    low, high = math.log(sizes.min()), math.log(sizes.max())
    half, count = (high - low) / 2, 1
    if half > SAME:  # poles of most functions lie at least 90 degrees off the real line
        ratio = math.pi / (2 * half)
        count = int(more * 36 / math.log(ratio + math.sqrt(1 + ratio * ratio))) + 3
    if count >= sizes.size:
        return np.eye(sizes.size), sizes
    angles = np.pi * (np.arange(count) + 0.5) / count
    matrix = np.cos(np.multiply.outer(np.arange(count), angles)) * (2 / count)
    matrix[0] /= 2
    places = (np.log(sizes) - (low + high) / 2) / max(half, SAME)
    to = np.cos(np.multiply.outer(np.arccos(np.clip(places, -1, 1)), np.arange(count))) @ matrix
    return to, np.exp((low + high) / 2 + half * np.cos(angles))


@lru_cache(maxsize=16)
def to_series(count: int) -> Array:
    """From values at Chebyshev nodes to coefficients."""
    turns = np.multiply.outer(np.arange(count), 2 * np.arange(count) + 1) % (4 * count)
    found: Array = np.cos(np.pi * turns / (2 * count)) * (2 / count)
    found[0] /= 2
    return found


def chebyshev_nodes(count: int) -> Array:
    """Chebyshev nodes on [0, 1]."""
    found: Array = (np.cos(np.pi * (np.arange(count) + 0.5) / count) + 1) / 2
    return found


def terms_of(parts: Array, unit: Array, to: Array) -> Terms:
    """Symmetric matrices over nodes by their eigenvectors, of each degree: rows of all inputs.

    ``unit`` is what entries are counted in; ``to`` leads from nodes to inputs. Returns the factors
    of either input, (terms, inputs), and where each degree starts.
    """
    factors, vectors = np.linalg.eigh((parts + parts.swapaxes(1, 2)) / 2)
    most = float(np.abs(parts).max())
    rows, signs, begins = [], [], [0]
    for lam, columns in zip(factors, vectors, strict=True):
        kept = np.flatnonzero(np.abs(lam) > CUT * most)
        rows.append(np.sqrt(np.abs(lam[kept]))[:, None] * (to @ columns[:, kept]).T * unit)
        signs.append(np.sign(lam[kept]))
        begins.append(begins[-1] + kept.size)
    right = np.concatenate(rows)
    return np.concatenate(signs)[:, None] * right, right, np.array(begins)


def padded(rows: Array) -> Array:
    """The same in front of some zeros: loops read whole registers."""
    found: Array = np.append(rows.ravel(), np.zeros(8))[: rows.size].reshape(rows.shape)
    return found


def cut(series: Array) -> Array:
    """Without the degrees at the end that are rounding."""
    size = np.abs(series).max(axis=(1, 2))
    return series[: int(np.flatnonzero(size > 2 * CUT * size.max())[-1]) + 1]


def _outer(rows: Array) -> Array:
    return rows[:, :, None] * rows[:, None]


def _shortened(layer: Layer, low: float, high: float) -> Short | None:
    """Values and slopes by tables in the correlation, from its least to its largest; if shorter."""
    if layer.nodes is None or layer.coefficients.shape[1] < LONG:
        return None
    short = tabled(layer, low, high)
    if short is None:
        return None
    values, slopes, *_ = short
    long = values[2][-1] + slopes[2][-1] + 3 * (values[2].size + slopes[2].size)
    return None if long > layer.coefficients.shape[1] else short


def tabled(layer: Layer, low: float, high: float) -> Short | None:
    """Values and slopes by tables in the correlation; None if these do not end."""
    assert layer.nodes is not None
    to, found, whole = layer.nodes
    half, middle = max((high - low) / 2, SAME), (high + low) / 2
    degrees = np.arange(found.shape[1]) * (2.0 if layer.parity else 1.0) + (layer.parity == 1)
    for count in COUNTS:
        rho = middle + half * (2 * chebyshev_nodes(count) - 1)
        powers = np.power.outer(rho, degrees)
        bent = degrees * np.power.outer(rho, np.maximum(degrees - 1, 0.0))
        parts = [
            np.tensordot(to_series(count), (found * by[:, None]) @ found.T, 1) / unit
            for by, unit in zip((powers, bent), _outer(np.sqrt(whole)), strict=True)
        ]
        ends = [np.abs(part).max(axis=(1, 2)) for part in parts]
        if all(end[-2:].max() <= TOLERANCE * end.max() for end in ends):
            break
    else:
        return None
    units = np.sqrt(layer.moments[:2])
    values, slopes = (
        terms_of(cut(part), unit, to) for part, unit in zip(parts, units, strict=True)
    )
    return values, slopes, 1 / half, -middle / half


def _step(function: Smooth, size: float) -> float:
    """The step of a rule that one of half the step agrees with, at the largest size."""
    step, one = 0.25, np.array([size])
    coarse = _coefficients(function.value, one, step, START)
    while True:
        fine = _coefficients(function.value, one, step / 2, START)
        if float(np.linalg.norm(coarse - fine)) <= TOLERANCE * float(np.linalg.norm(fine)):
            return step
        step, coarse = step / 2, fine
        if step < 1 / 64:
            raise NotSettled("two rules for its averages do not agree")


def _coefficients(value: Callable[[Array], Array], sizes: Array, step: float, degree: int) -> Array:
    """a_k at sizes, of shape (sizes, degree + 1)."""
    x, weights, hermite = _rule(step, degree)
    return (values(value, np.multiply.outer(sizes, x)) * weights) @ hermite


def values(function: Callable[[Array], Array], at: Array) -> Array:
    """A function at some places; constants are of their shape."""
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(function(at), dtype=float), at.shape)


def _moments(function: Smooth, sizes: Array, step: float) -> tuple[Array, Array]:
    """Mean squares of the function and its derivatives, and how the first two grow with q.

    The second and third derivative are differences: they are in errors alone.
    """
    x, weights, _ = _rule(step, START)
    z = np.multiply.outer(sizes, x)
    value, slope = values(function.value, z), values(function.slope, z)
    up, down = values(function.slope, z + SHIFT), values(function.slope, z - SHIFT)
    second, third = (up - down) / (2 * SHIFT), (up - 2 * slope + down) / SHIFT**2
    squares = value * value * weights
    whole = squares.sum(axis=1)
    if not (np.isfinite(whole).all() and (whole > 0).all() and slope.any(axis=1).all()):
        raise NotSettled("its mean square is no positive number")
    if not (squares[:, [0, -1]] <= NEGLIGIBLE * whole[:, None]).all():
        raise NotSettled("it grows too fast")
    moments = [whole, *((part * part) @ weights for part in (slope, second, third))]
    growth = [moments[1] + (value * second) @ weights, moments[2] + (slope * third) @ weights]
    return np.array(moments), np.array(growth)


def rounds_of(function: Smooth, terms: int) -> float:
    """What values and slopes of a series may miss, of their own size."""
    return EPS * (ROUNDINGS + math.sqrt(terms)) + function.tolerance


def lost_of(layer: Layer, q: Array, rounds: float) -> Array:
    """What slopes miss more: coefficients are as exact as values, of which a constant is a part."""
    roots = np.sqrt(layer.moments[:2])
    found: Array = rounds * np.maximum(roots[0] / np.sqrt(q) - roots[1], 0.0)
    return found


Do = Callable[[Callable[[Index], None], tuple[int, int]], None]
"""Does something for all tiles; which part of how many it is."""


@dataclass(eq=False)
class Lengths:
    """Both kernels of every input with itself, and their errors."""

    q: Array
    w: Array
    q_error: Array
    w_error: Array

    def advanced(self, form: Array, layer: Layer, rounds: float) -> Array:
        """The numbers of inputs that a layer reads; what is here becomes that after it."""
        keep, m, s = form
        (v, g, *_), (n0, n1, n2, n3) = layer.moments, np.sqrt(np.maximum(layer.moments, 0.0))
        off = self.q_error + EPS * self.q
        table = np.zeros((NUMBERS, v.size))
        table[3], table[5], table[7] = n0, n1, n2
        table[4], table[6] = 0.5 * (n2 * off + rounds * n0), 0.5 * (n3 * off + rounds * n1)
        value, slope = m * v + s, keep + m * g
        error, turned = m * (np.abs(layer.growth) * off + rounds * layer.moments[:2])
        self.w_error = slope * self.w_error + self.w * turned + error
        self.q = keep * self.q + value
        self.w = slope * self.w + value
        self.q_error = keep * self.q_error + error + EPS * self.q
        self.w_error += EPS * self.w
        if not (np.isfinite(self.q).all() and np.isfinite(self.w).all()):
            raise NotSettled("its kernels leave the range of float64")
        return table


class Pairs:
    """All pairs of inputs, layer by layer: their planes, and what tiles say of correlations."""

    def __init__(self, pair: Pair, q: Array, chain: Chain, out: dict[str, Array], do: Do) -> None:
        from tpcalc.engine.chains_tiles import COLUMNS, ROWS

        if not (q.min() > 0 and q.max() <= RATIO * q.min()):
            raise NotSettled("inputs are of very different sizes")
        self.pair, self.same, self.do, self.parts = pair, pair[3], do, chain.depth + 2
        self.readout = 0.0 if chain.residual is None else 1.0
        shape = len(pair[0]), len(pair[1])
        state = tuple(one if one.size else np.empty(shape) for one in out.values())
        self.state = *state, *(np.empty(shape) for _ in range(3))
        self.spans = np.zeros((-(-shape[0] // ROWS), -(-shape[1] // COLUMNS), 2))

    def sides(self, rows: Array) -> tuple[Array, Array]:
        """Numbers of all inputs, in the last axis, as those of rows and of columns."""
        if self.same:
            return rows, rows
        count = len(self.pair[0])
        return np.ascontiguousarray(rows[..., :count]), np.ascontiguousarray(rows[..., count:])

    def rowed(self, terms: Terms) -> Terms:
        """Terms with those of rows in the order that loops read them in."""
        rows, columns = self.sides(terms[0])[0], self.sides(terms[1])[1]
        return np.ascontiguousarray(rows.T), padded(columns), terms[2]

    def run(self, loop: Any, *given: Any, place: int) -> None:
        """A loop over all tiles, the part of a number."""
        after = self.state, self.spans
        self.do(lambda tiles: loop(*given, tiles, *after), (place, self.parts))

    def ended(self, own: Lengths) -> Array:
        """The errors of all tiles, after the readout."""
        from tpcalc.engine.chains_layers import run_ends

        w, error = own.w + self.readout * own.q, own.w_error + self.readout * own.q_error
        ends = self.sides(np.array([own.q, w, own.q_error, error]))
        worst = np.zeros((*self.spans.shape[:2], 4))
        given = self.same, ends, self.readout
        last = self.parts - 1, self.parts
        self.do(lambda tiles: run_ends(*given, tiles, self.state, worst), last)
        return worst


def run_layers(gram: Gram, chain: Chain, function: Smooth, out: dict[str, Array], do: Do) -> Array:
    """Fill both kernels of a chain, whose activation is ``function``; the errors of all tiles."""
    from tpcalc.engine import chains_layers as loops

    pair = pair_of(gram)
    rounding = EPS * (4 + pair[0].shape[1] / 8)
    first = np.array([gram.factor * chain.first_weight, chain.first_bias, rounding])
    others = pair[5][: 0 if pair[3] else len(pair[1])]
    q = first[0] * np.concatenate([pair[4], others]) + first[1]
    pairs, own = Pairs(pair, q, chain, out, do), Lengths(q, q, rounding * q, rounding * q)
    sides, spans = pairs.sides, pairs.spans
    spans[..., 0], spans[..., 1] = 1.0, -1.0
    pairs.run(loops.run_starts, pair, sides(q), first, place=0)
    for place, form in enumerate(forms_of(chain, 1.0), 1):
        low, high = float(spans[..., 0].min()), float(spans[..., 1].max())
        layer, over = layer_of(function, own.q, max(-low, high, 0.0)), sides(1 / np.sqrt(own.q))
        short = _shortened(layer, min(low, high), high)
        terms = layer.coefficients.shape[1]
        rounds = rounds_of(function, terms)
        lost = 0.5 * lost_of(layer, own.q, rounds)
        table = own.advanced(form, layer, rounds)
        table[6] += lost
        mine, columns = sides(np.ascontiguousarray(layer.coefficients.T))
        series = np.ascontiguousarray(mine.T), padded(columns)
        numbers = sides(table), over, sides(1 / np.sqrt(own.q)), form
        tabled = short or (NONE, NONE, 1.0, 0.0)
        brief = *map(pairs.rowed, tabled[:2]), *tabled[2:]
        given = pair, 3 if short else layer.parity, series, brief, *numbers
        pairs.run(loops.run_series, *given, place=place)
    return pairs.ended(own)
