"""``Start``: a residual network of infinite width at the start, at any number of blocks.

A block is x + a L^(-alpha) V phi(W x), V or W possibly missing, each correlated along the depth by
a law of its own. Of the stream and of its adjoint covariances of all pairs of blocks follow a
closed recursion: ``engine.residual``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import ceil, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermevander
from scipy.interpolate import CubicSpline
from scipy.special import factorial

from tpcalc.arrays import Array
from tpcalc.doors.budget import spend
from tpcalc.engine import residual
from tpcalc.errors import EvaluationError
from tpcalc.evaluate.closure.gaussians import is_odd
from tpcalc.exponents import as_ex
from tpcalc.functions import Expr, Fn
from tpcalc.functions.form import slopes_of
from tpcalc.functions.tape import values as values_of
from tpcalc.integrals import rules
from tpcalc.program.along import FRESH, along_of
from tpcalc.recursions.limit import limit
from tpcalc.recursions.paths import follow, is_path
from tpcalc.recursions.trunk import Trunk
from tpcalc.results import Estimate, Method

NODES, TERMS = 160, 64  # of quadrature, and of the series in Hermite polynomials
ROUNDING, NEAR_ONE = 1e-15, 4e-9
HALF = Fraction(1, 2)
SEEN = 0.5  # the least correlation of neighbouring steps
COARSE, LEVELS = 128, 5  # depths of recursions that approach the limit: 128, twice that, ...


class Displacement(NamedTuple):
    """How far blocks carry a stream of mean square 1 at the start, and its adjoint."""

    # R^2 = |x_L|^2 / |x_0|^2, which is 1 + D^2 where what random blocks add is uncorrelated with
    # the start
    size: Estimate
    stream: Estimate  # D^2 = |x_L - x_0|^2 / |x_0|^2
    adjoint: Estimate  # R^2 of the adjoint, which starts behind the last block
    gradient: Estimate  # its D^2


@dataclass(frozen=True)
class Start:
    """A residual network at the start.

    Example:
        >>> from tpcalc.functions import Var
        >>> linear = Start(Var(0), Fraction(1, 2), outer="fresh")
        >>> round(linear.at(1000).stream.value, 6)  # (1 + 1/L)^L - 1
        1.716924
    """

    activation: Expr  # phi, an expression of Var(0), of W with entries of variance 1/n
    alpha: Fraction  # the power of 1/L in front of a block
    multiplier: float = 1.0  # a, with all other numbers in front of a block
    outer: str | None = None  # the law of V along the depth; None: there is no V
    inner: str | None = None  # the law of W along the depth; None: there is no W
    centred: bool = False  # whether the average over coordinates is taken off what a block adds
    # the laws of the entries of V and of W, which the limit of the width does not feel
    laws: tuple[str, str] = ("gaussian", "gaussian")

    @property
    def independent(self) -> bool:
        """Whether what blocks add is uncorrelated and of order one when it is summed."""
        alone = self.inner == FRESH and bool(self.centred or is_odd(self.activation))
        return self.alpha == HALF and (self.outer == FRESH or (self.outer is None and alone))

    @property
    def growth(self) -> tuple[float, float] | None:
        """The logarithms of R^2 of the stream and of its adjoint in many independent blocks.

        They are those of (1 + c/L)^L, where phi is linear on both sides of 0; else None.
        """
        kinked = slopes_of(self.activation)
        if kinked is None or not self.independent:
            return None
        up, down = kinked
        mean = (up - down) ** 2 / (2 * pi) if self.centred else 0.0
        square = (up**2 + down**2) / 2
        return self.multiplier**2 * (square - mean), self.multiplier**2 * square

    def limit(self, places: Sequence[float]) -> tuple[Displacement, ...] | None:
        """Its displacements in many blocks; None where no equation of their covariances is known.

        There sums over pairs of blocks are integrals, which recursions over more and more of them
        approach in powers of 1/L; pairs of equal blocks count where blocks are independent alone.

        Args:
            places: As of ``along``.
        """
        if self.independent and (self.centred or is_odd(self.activation)):
            return self._alone(places)
        outer, inner = (None if law is None else along_of(law) for law in (self.outer, self.inner))
        decay = as_ex(0) if outer is None else outer.decay
        fades = None if decay is None else decay.constant
        if not self.independent and (fades is None or fades >= 1 or self.alpha != 1 - fades / 2):
            return None
        smooth = [law for law in (outer, inner) if law is not None and law.decay == as_ex(0)]
        if not self.independent and any(law.at(2, COARSE)[1] < SEEN for law in smooth):
            return None  # it changes within a step
        alike = self.independent or inner is None or inner.decay == as_ex(0)

        def table(depth: int, run: Callable[..., Array]) -> Array:
            rows = self._correlations(depth)
            found = self._run(depth, run, rows if alike else (rows[0], 0 * rows[1]))
            return np.array(found)[:, :: depth // COARSE]

        fine, *others = self._runs
        tables = [table(COARSE << level, fine) for level in range(LEVELS)]
        best = _extrapolated(tables)
        off = np.abs(best - _extrapolated(tables[:-1]))
        off += sum(np.abs(tables[0] - table(COARSE, run)) for run in others)
        off[1] += NEAR_ONE * np.abs(best[1]) * (not others)
        return tuple(_between(best, off, place) for place in places)

    def _alone(self, places: Sequence[float]) -> tuple[Displacement, ...]:
        """The same of independent blocks, by what a run starts from."""
        trunk = Trunk(
            [1.0], [0.0], self.activation, multiplier=self.multiplier, slope=lambda f, y: f + 1.0
        )
        found = limit(trunk, passes=2)
        ends = ((found.features(p), found.gradients(1.0 - p)) for p in places)
        return tuple(
            _displaced([k.value[0, 0] - 1 for k in pair], [k.error[0, 0] for k in pair])
            for pair in ends
        )

    def at(self, depth: int) -> Displacement:
        """Its displacements with a number of blocks."""
        return self.along(depth, (1.0,))[0]

    def along(self, depth: int, places: Sequence[float]) -> tuple[Displacement, ...]:
        """The same on the way: of the stream after, of its adjoint in front of a block."""
        _check_room(depth)
        if is_path(self):
            rules = follow(self, depth)
            method = Method.EXACT if len(rules) == 1 else Method.QUADRATURE
            return self._told(depth, places, rules, method, 0.0)
        runs = self._runs
        moves = [self._run(depth, run, self._correlations(depth)) for run in runs]
        found = [(1.0 + x, x, 1.0 + p, p) for x, p in moves]
        if len(runs) > 1:
            return self._told(depth, places, found, Method.QUADRATURE, 0.0)
        # Of correlations near 1 the angle has half the digits.
        return self._told(depth, places, found, Method.EXACT, NEAR_ONE)

    @staticmethod
    def _told(
        depth: int,
        places: Sequence[float],
        parts: Sequence[tuple[Array, ...]],
        method: Method,
        slopes: float,
    ) -> tuple[Displacement, ...]:
        """What a fine rule gives, with its distance to a coarse one as the error."""
        layers = [round(place * depth) for place in places]
        fine, coarse = (np.array(parts[rule])[:, layers] for rule in (0, -1))
        if not np.isfinite(fine).all():
            raise EvaluationError(
                f"the stream of {depth} blocks leaves the range of floating point.",
                hint="Take fewer blocks, or a larger alpha.",
            )
        errors = np.abs(fine - coarse) + ROUNDING * depth * np.abs(fine)
        errors[2:] += slopes * np.abs(fine[3])
        pairs = zip(fine.T.tolist(), errors.T.tolist(), strict=True)
        return tuple(Displacement(*map(partial(Estimate, method=method), *pair)) for pair in pairs)

    def side(self, depth: int) -> float:
        """The mean square of what a fixed width adds to the adjoint, times n, to leading order.

        Where W^T meets the slope phi'(W x) of a block, an average over coordinates with E phi'' in
        it, which is 0 in the limit of the width, has fluctuations that add up like those of V.
        """
        if self.outer in (None, FRESH) or self.inner in (None, FRESH):
            return 0.0
        kinked = slopes_of(self.activation)
        if kinked is not None:
            bend = (kinked[0] - kinked[1]) / sqrt(2 * pi)
        else:
            nodes, weights = rules.normal(NODES)
            bend = float((values_of(Fn(self.activation, 1).by(0), nodes) * nodes) @ weights)
        lags = np.arange(depth)
        row = along_of(self.outer).autocovariance(depth)
        pairs = 2.0 * float((depth - lags) @ row) - depth * float(row[0])
        front = self.multiplier * float(depth) ** -float(self.alpha)
        return float((front * bend) ** 2 * pairs)

    @property
    def _runs(self) -> tuple[Callable[..., Array], ...]:
        """The forward pass: exact, or by a fine and by a coarse series."""
        kinked = slopes_of(self.activation)
        if kinked is not None:
            return (partial(self._homogeneous, kinked),)
        return partial(self._series, 1), partial(self._series, 2)

    def _correlations(self, depth: int) -> tuple[Array, Array]:
        """Those of V and of W by lag; ones where there is none."""
        outer, inner = (
            np.ones(depth) if law is None else along_of(law).autocovariance(depth)
            for law in (self.outer, self.inner)
        )
        return outer, inner

    def _run(
        self, depth: int, forward: Callable[..., Array], correlations: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        outer, inner = correlations
        size = self.multiplier**2 * float(depth) ** (-2 * float(self.alpha))
        slopes = np.empty(depth * (depth + 1) // 2)
        moved = forward(depth, size, inner, outer, slopes)
        return moved, residual.backward_rows(depth, slopes)[::-1]

    def _homogeneous(
        self, sides: tuple[float, float], depth: int, size: float, *rows: Array
    ) -> Array:
        inner, outer, slopes = rows
        ends = (1.0, *sides, self.centred)
        moved: Array = residual.homogeneous_rows(depth, size, inner, outer, *ends, slopes)
        return moved

    def _series(
        self, part: int, depth: int, size: float, inner: Array, outer: Array, slopes: Array
    ) -> Array:
        dual = _Dual(self.activation, NODES // part, TERMS // part, self.centred)
        row, moved = np.zeros(depth + 1), np.zeros(depth + 1)
        values, derivatives = np.zeros((2, depth, TERMS // part))
        roots = np.empty(depth)
        for k in range(1, depth + 1):
            roots[k - 1] = sqrt(1.0 + row[k - 1])
            values[k - 1], derivatives[k - 1] = dual.at(roots[k - 1])
            residual.forward_row(
                k, size, inner, outer, 1.0, roots, values, derivatives, row, slopes
            )
            moved[k] = row[k]
        return moved


class _Dual:
    """Coefficients of a function and its derivative in normalised Hermite polynomials."""

    def __init__(self, expr: Expr, nodes: int, terms: int, centred: bool) -> None:
        self.functions = [Fn(expr, 1), Fn(expr, 1).by(0)]
        self.nodes, weights = rules.normal(nodes)
        sizes = np.sqrt(factorial(np.arange(terms)))
        self.matrix = (hermevander(self.nodes, terms - 1) / sizes).T * weights
        self.first = int(centred)

    def at(self, root: float) -> tuple[Array, Array]:
        """For an argument of this standard deviation."""
        found = [self.matrix @ values_of(fn, root * self.nodes) for fn in self.functions]
        found[0][: self.first] = 0.0
        return found[0], found[1]


def _check_room(depth: int) -> None:
    spend(
        f"the covariances of all pairs of {depth} blocks",
        memory=8 * depth * (depth + 1),
        hint="Take fewer blocks; exponents in L are asked of tp.check.",
    )


def _extrapolated(tables: Sequence[Array]) -> Array:
    """The limit of numbers at depths of which each is twice the one before, in powers of 1/L."""
    power = 2.0
    while len(tables) > 1:
        tables = [(power * two - one) / (power - 1) for one, two in pairwise(tables)]
        power *= 2
    return tables[0]


def _between(moved: Array, off: Array, place: float) -> Displacement:
    """Displacements of the stream and of its adjoint at a place, from those on a grid."""
    grid = np.linspace(0.0, 1.0, moved.shape[1])
    fine, coarse = (CubicSpline(grid[::k], moved[:, ::k], axis=1)(place) for k in (1, 2))
    return _displaced(fine, np.abs(fine - coarse) + off[:, : 1 + ceil(place * COARSE)].max(axis=1))


def _displaced(moved: Sequence[float], errors: Sequence[float]) -> Displacement:
    """1 + D^2 and D^2 of the stream and of its adjoint."""
    parts = ((k + x, e) for x, e in zip(moved, errors, strict=True) for k in (1.0, 0.0))
    made = (Estimate(float(x), float(e), Method.QUADRATURE) for x, e in parts)
    return Displacement(*made)
