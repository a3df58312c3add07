"""What theorems ask of the law of an entry, and Lemmas 15, 19, 20, 21: what such matrices do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, isclose, isfinite, prod, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import UsageError
from tpcalc.program.laws import LAWS
from tpcalc.results import Bound, Hypothesis
from tpcalc.shown import Rows, Shown
from tpcalc.theorems.closed import RESNETS


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


SIXTH = "its proof expands a cube, so the printed bound is one of the sixth moment; this is derived"


def lemma_15(alpha: float, width: int, constant: float, entries: Entries) -> tuple[Bound, ...]:
    """Conditional moments of Y1 = alpha^2 |V g|^2 / |h|^2 and Y2 = 2 alpha <h, V g> / |h|^2.

    Args:
        alpha: What stands in front of a block.
        width: d.
        constant: C.
        entries: The law of the entries.

    Returns:
        E Y2, E Y1, E Y1 Y2, E Y2^2, E Y2^4, E Y1^4 and E Y1^2.

    Source: Marion, Fermanian, Biau, Vert, Lemma 15 (E1) to (E7); (E3) with symmetric entries, (E6)
        with the eighth moment of Lemma 21, corrected.

    Example:
        >>> from tpcalc.theorems.resnets.entries import entries_of
        >>> rows = lemma_15(0.1, 100, 1.0, entries_of("uniform"))
        >>> [str(row).splitlines()[0] for row in rows][:3]
        ['E Y2 = 0', '0.005 < E Y1 < 0.01', 'E Y1 Y2 = 0']
    """
    s, a2, d = entries.proxy or 1.0, alpha**2, width
    proxy = entries.assumed
    even = Hypothesis("symmetric entries", entries.symmetric, entries.name)
    fourth, _, eighth = lemma_21(width, entries)
    rows = (
        ("E Y2", 0.0, 0.0, (), True, "E1"),
        ("E Y1", a2 / 2, a2, (), False, "E2"),
        ("E Y1 Y2", 0.0, 0.0, (even,), True, "E3"),
        ("E Y2^2", None, 4 * a2 / d, (), False, "E4"),
        ("E Y2^4", None, 2048 * s**4 * a2**2 / d**2, (proxy,), False, "E5"),
        ("E Y1^4", None, constant * (eighth.upper or 0.0) * a2**4, (proxy,), False, "E6"),
        ("E Y1^2", None, sqrt(constant) * (fourth.upper or 0.0) * a2**2, (proxy,), False, "E7"),
    )
    return Rows(
        Bound(of, low, high, 1.0, conditions, RESNETS.at(f"Lemma 15 ({item})"), exact)
        for of, low, high, conditions, exact, item in rows
    )


def lemma_19(s: float) -> float:
    """The sub-Gaussian diameter of an s^2-sub-Gaussian number is at most sqrt(2) s.

    Args:
        s: The proxy.

    Returns:
        The bound.

    Source: Marion, Fermanian, Biau, Vert, Definition 18 and Lemma 19.

    Example:
        >>> round(lemma_19(1.0), 6)
        1.414214
    """
    return sqrt(2) * s


def lemma_20(width: int, t: float, entries: Entries) -> Bound:
    """The probability that <V x, y> is at least t |x| |y|, at most.

    Args:
        width: d.
        t: Above 0.
        entries: The law of the entries.

    Returns:
        An upper bound on the probability.

    Raises:
        UsageError: Another t.

    Source: Marion, Fermanian, Biau, Vert, Lemma 20.

    Example:
        >>> from tpcalc.theorems.resnets.entries import entries_of
        >>> round(lemma_20(100, 0.5, entries_of("rademacher")).upper, 6)
        0.003861
    """
    checks.real(t, "t", above=0)
    proxy = entries.assumed
    chance = 2 * exp(-width * t**2 / (4 * (entries.proxy or 1.0) ** 2))
    return Bound(f"P(<Vx, y> >= {t:g})", None, chance, 1.0, (proxy,), RESNETS.at("Lemma 20"))


def lemma_21(width: int, entries: Entries) -> tuple[Bound, Bound, Bound]:
    """Bounds on E |V x|^4, E |V x|^6 and E |V x|^8 for |x| = 1.

    Args:
        width: d.
        entries: The law of the entries.

    Returns:
        The fourth moment as printed, the sixth with what is printed for the eighth, and the eighth
        as it follows from the same ingredients.

    Source: Marion, Fermanian, Biau, Vert, Lemma 21, corrected.

    Example:
        >>> from tpcalc.theorems.resnets.entries import entries_of
        >>> [round(one.upper, 4) for one in lemma_21(1000, entries_of("gaussian"))]
        [1.128, 1.3871, 1.8295]
    """
    s, d = entries.proxy or 1.0, checks.whole(width, "width", least=1)
    proxy = entries.assumed
    fourth = 1 + 128 * s**4 / d
    sixth = 1 + 384 * s**4 / d + 3072 * s**6 / d**2
    eighth = 1 + 768 * s**4 / d + (49152 * s**8 + 12288 * s**6) / d**2 + 98304 * s**8 / d**3
    where = RESNETS.at("Lemma 21")
    return (
        Bound("E |Vx|^4", None, fourth, 1.0, (proxy,), where),
        Bound("E |Vx|^6", None, sixth, 1.0, (proxy,), where, notes=(SIXTH,)),
        Bound("E |Vx|^8", None, eighth, 1.0, (proxy,), where, notes=(SIXTH,)),
    )


def moment_of_gaussian(width: int, m: int) -> float:
    """E |V x|^(2m) for |x| = 1 and Gaussian entries: prod over i < m of (1 + 2 i / d).

    Args:
        width: d.
        m: Half the power.

    Returns:
        The moment, rounded as floats are.

    Source: Marion, Fermanian, Biau, Vert, Lemma 21, of the Gaussian law.

    Example:
        >>> moment_of_gaussian(4, 2)
        1.5
    """
    d = checks.whole(width, "width", least=1)
    return prod(1 + 2 * i / d for i in range(checks.whole(m, "m", least=0)))
