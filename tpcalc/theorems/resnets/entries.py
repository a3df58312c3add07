"""What the theorems ask of the law of an entry: moments, symmetry, a sub-Gaussian proxy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isclose, isfinite
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import UsageError
from tpcalc.program.laws import LAWS
from tpcalc.results import Hypothesis
from tpcalc.shown import Shown


@dataclass(frozen=True)
class Entries(Shown):
    """The law of the entries of sqrt(d) V.

    Args:
        name: What it is called.
        mean: E X.
        variance: E X^2, of mean 0.
        third: E X^3.
        fourth: E X^4.
        symmetric: Whether X and -X have one law.
        above: E max(X, 0)^2 / E X^2: 1/2 of a symmetric law.
        proxy: An s with E exp(c X) <= exp(c^2 s^2 / 2) for all c; None: none is known.
        independent: Whether the entries of a matrix are.

    Source: Marion, Fermanian, Biau, Vert, Assumption A1.
    """

    name: str
    mean: float
    variance: float
    third: float
    fourth: float
    symmetric: bool
    above: float
    proxy: float | None
    independent: bool = True

    @property
    def assumed(self) -> Hypothesis:
        """That they are independent and sub-Gaussian."""
        words = f"{self.name} entries"
        if not self.independent:
            words += " depend on each other"
        elif self.proxy is None:
            words += " are not sub-Gaussian"
        else:
            words += f", s = {self.proxy:g}"
        met = self.independent and self.proxy is not None
        return Hypothesis("independent sub-Gaussian entries", met, words)


def entries_of(law: str | Any) -> Entries:
    """The law of entries, from the catalogue or from ``scipy.stats``.

    Args:
        law: A row of ``program/laws``, or a frozen distribution of ``scipy.stats``.

    Returns:
        Its moments; of a distribution by quadrature, and without a sub-Gaussian proxy.

    Raises:
        UnknownName: There is no such row.
        UsageError: No distribution, or one without a variance.

    Source: Marion, Fermanian, Biau, Vert, Assumption A1 and the examples after it.

    Example:
        >>> from scipy import stats
        >>> found = entries_of(stats.expon(loc=-1))
        >>> round(found.above, 6), found.symmetric  # 2/e, not 1/2
        (0.735759, False)
    """
    if isinstance(law, str):
        checks.one_of("law of entries", law, LAWS)
        row = LAWS[law]
        numbers = 0.0, 1.0, 0.0, float(row.fourth)
        return Entries(row.name, *numbers, True, 0.5, row.proxy, row.draw is not None)
    if not hasattr(law, "ppf"):
        raise UsageError(
            f"{checks.shown(law)} is no law of entries.",
            hint=f"A name ({', '.join(LAWS)}), or a distribution: scipy.stats.expon(loc=-1).",
        )
    name = getattr(law, "dist", law).name  # one that is not frozen has no dist
    low, high = law.support()
    mean, variance = float(law.mean()), float(law.var())
    if not isfinite(variance):
        raise UsageError(
            f"{name} entries have no variance, and every theorem asks for one.",
            hint="Take a law with more moments; A1 asks for a sub-Gaussian one.",
        )
    third, fourth = _central(law)
    above = float(law.expect(lambda x: x**2, lb=max(low, 0.0), ub=high)) / (variance + mean**2)
    points = np.linspace(0.0512, 0.9488, 20)  # at none of them a discrete law jumps
    middle = law.ppf(points) + law.ppf(1 - points)
    symmetric = bool(np.allclose(middle, 0.0, atol=1e-8)) and isclose(-low, high)
    return Entries(str(name), mean, variance, third, fourth, symmetric, above, None)


def _central(law: Any) -> tuple[float, float]:
    """The third and fourth central moment; those that are not there are infinite."""
    m1, m2, m3, m4 = (float(law.moment(k)) for k in (1, 2, 3, 4))
    third = m3 - 3 * m1 * m2 + 2 * m1**3 if isfinite(m3) else inf
    fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4 if isfinite(m4) else inf
    return third, fourth


def vector_of(value: Sequence[float], name: str) -> Array:
    """A vector that is not 0."""
    found = checks.reals(value, name).astype(float)
    if found.ndim != 1 or not np.isfinite(found).all() or not found.any():
        hint = "A vector of finite numbers, not all 0: [1, 0]."
        raise UsageError(f"{name} is {checks.shown(value)}.", hint=hint)
    return found


def cross_moment(h: Sequence[float], entries: Entries) -> float:
    """E |V h|^2 <h, V h> / |h|^4 of a matrix with entries X / sqrt(d): 0 where X is symmetric.

    Args:
        h: A vector, shape (d,).
        entries: The law of X.

    Returns:
        The moment, from the third moment of X.

    Raises:
        UsageError: A vector that is 0, or a law without a third moment.

    Source: Marion, Fermanian, Biau, Vert, Lemma 15 (E3), which needs symmetric entries.

    Example:
        >>> from scipy import stats
        >>> round(cross_moment([1, 1, 1, 1], entries_of(stats.expon(loc=-1))), 6)
        0.25
    """
    x = vector_of(h, "h")
    if not isfinite(entries.third):
        raise UsageError(
            f"{entries.name} entries have no third moment.", hint="Take a law with more moments."
        )
    return float(x.sum() * (x**3).sum() * entries.third / len(x) ** 1.5 / (x @ x) ** 2)
