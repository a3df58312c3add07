"""The law of the squared singular values of linear networks: density, support, mass at points."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import UsageError
from tpcalc.meanfield.maps.edge import checked_rank
from tpcalc.meanfield.operations import checked_family
from tpcalc.meanfield.spectra.spectrum import FAMILIES, POWERS, weight_spectrum
from tpcalc.shown import Shown

TINY, DEEPEST = 1e-9, 12


@dataclass(frozen=True)
class WeightLaw(Shown):
    """The spectrum of W^T W, or of J J^T for a product of so many free weights.

    With M(z) = sum_k m_k z^-k, M^-1(m) = (1 + m) / (m S(m)) is a polynomial in m over m: M solves
    an algebraic equation, the density is -Im (1 + M) / (pi z) above the real axis.

    Args:
        family: As in ``weight_spectrum``.
        rank: Rank over width, gamma.
        variance: sigma^2 of the entries times the fan-in, or the squared singular value.
        depth: Number of factors, at most 12.

    Raises:
        StudyError: Another family, too many factors, or a rank or variance that is none.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 3 and
        appendix A.10; its edges are those of Marchenko and Pastur, (1 +- sqrt(gamma))^2.

    Example:
        >>> law = WeightLaw("gaussian", 0.25)
        >>> law.support, law.atoms
        ((0.25, 2.25), ((0.0, 0.75),))
    """

    family: str
    rank: float
    variance: float = 1.0
    depth: int = 1

    def __post_init__(self) -> None:
        checked_family(self.family, FAMILIES)
        checked_rank(self.rank, "WeightLaw")
        hint = "Its equation has a degree; Spectrum has moments of any number of factors."
        checks.whole(self.depth, "depth", least=1, most=DEEPEST, hint=hint)
        checks.real(self.variance, "variance", above=0)

    @property
    def _powers(self) -> tuple[int, int]:
        """Powers of 1 + m and of gamma + m in m M^-1(m), over sigma^2L."""
        a, b = POWERS[self.family]
        return 1 - a * self.depth, -b * self.depth

    @property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        """Points that carry mass, each with its mass."""
        rank = float(self.rank)
        found = ((0.0, 1.0 - rank),) if rank < 1 else ()
        # What so many free projections of this rank have in common.
        common = 1.0 - self.depth * (1.0 - rank)
        if self.family == "orthogonal" and common > 0:
            return (*found, (self._top, common))
        return found

    @property
    def support(self) -> tuple[float, float] | None:
        """Where the density is not 0; None where points carry all."""
        if self.family == "orthogonal" and (self.depth == 1 or self.rank == 1):
            return None
        over, under = self._powers
        one, gamma, m = [1.0, 1.0], [1.0, float(self.rank)], [1.0, 0.0]
        # d log M^-1 / dm = p / (1 + m) + q / (gamma + m) - 1 / m is 0 at the edges.
        parts = (over * np.polymul(gamma, m), under * np.polymul(one, m), -np.polymul(one, gamma))
        turning = [x.real for x in np.roots(sum(parts)) if abs(x.imag) < TINY * (1 + abs(x))]
        above = [self._inverse(x) for x in turning if x > TINY]
        beyond = [self._inverse(x) for x in turning if x < -1 - TINY]
        inside = [self._inverse(x) for x in turning if -1 + TINY < x < -float(self.rank) - TINY]
        high = max(above or beyond or [self._top])
        low = min(inside) if self.depth == 1 and inside else 0.0
        return round(low, 15) + 0.0, round(high, 15)

    def density(self, at: Any) -> Array:
        """The density, apart from points that carry mass.

        Args:
            at: Places above 0.

        Example:
            >>> WeightLaw("gaussian", 0.25).density([0.1, 1.0]).round(6).tolist()
            [0.0, 0.154101]
        """
        places = checks.reals(at, "at").astype(np.float64)
        support = self.support
        found = np.zeros(places.shape)
        if support is None:
            return found
        for index, place in np.ndenumerate(places):
            if support[0] < place < support[1]:
                found[index] = self._branch(place) / np.pi / place
        return found

    def stieltjes(self, z: complex) -> complex:
        """G(z), the mean of 1 / (z - t).

        Args:
            z: Above the real axis.

        Raises:
            UsageError: On or below it.

        Example:
            >>> round(WeightLaw("orthogonal", 0.5, 2.0).stieltjes(1j).imag, 9)
            -0.6
        """
        if not complex(z).imag > 0:
            raise UsageError(f"z is {z}; it lies above the real axis.")
        # From far away, where M is near m_1 / z, the root is followed down to z.
        path = complex(z).real + 1j * np.geomspace(1e4 * (1 + abs(z)) * self._size, z.imag, 400)
        m = (float(self.rank) * float(self.variance)) ** self.depth / path[0]
        for place in path:
            roots = self._roots(place) - float(self.rank)
            m = roots[int(np.argmin(np.abs(roots - m)))]
        return complex((1 + m) / z)

    def moments(self, order: int) -> tuple[float, ...]:
        """m_1, m_2, ... of the density and the points, by the S-transform.

        Args:
            order: How many.

        Example:
            >>> [round(m, 9) for m in WeightLaw("gaussian", 0.25, 4.0).moments(3)]
            [1.0, 5.0, 29.0]
        """
        count = checks.whole(order, "order", least=1)
        law = weight_spectrum(self.family, self.rank, count, self.variance).power(self.depth)
        return tuple(map(float, law.moments[:count]))

    def _branch(self, place: float) -> float:
        """|Im M| on the real axis.

        Of complex roots it is the one with which the arguments of the factors of M^-1(m) add up to
        0, the argument of z, and not to another multiple of 2 pi: so it is above the upper edge,
        where all of them are 0, and it stays so.
        """
        roots = self._roots(place)
        roots = roots[roots.imag > 1e-14 * np.abs(roots)]
        if not roots.size:
            return 0.0
        over, under = self._powers
        m = roots - float(self.rank)
        turns = np.abs(over * np.angle(1 + m) + under * np.angle(roots) - np.angle(m))
        right = roots[turns < 1.0]
        if not right.size:
            return 0.0
        return float(right[int(np.argmin(np.angle(right)))].imag)

    @property
    def _top(self) -> float:
        return float(self.variance) ** self.depth

    @property
    def _size(self) -> float:
        support = self.support
        return max(support[1] if support else self.atoms[-1][0], 1.0)

    def _inverse(self, m: float) -> float:
        over, under = self._powers
        if m == 0:
            return inf
        whole = (1 + m) ** over * (float(self.rank) + m) ** under / m
        return float(whole) * self._top

    def _roots(self, z: complex) -> Any:
        """All m + gamma with M^-1(m) = z."""
        over, under = self._powers
        gamma = float(self.rank)
        # In u = m + gamma, of which many roots meet at 0 as z does: there they keep their digits.
        left: Any = np.concatenate([[1.0], np.zeros(under)])
        right: Any = np.array([1.0, -gamma])
        for _ in range(abs(over)):
            if over > 0:
                left = np.polymul(left, [1.0, 1.0 - gamma])
            else:
                right = np.polymul(right, [1.0, 1.0 - gamma])
        return np.roots(np.polysub(self._top * np.asarray(left), z * np.asarray(right)))
