"""Lemmas 15, 19, 20, 21: what matrices with sub-Gaussian entries do to a vector."""

from __future__ import annotations

from math import exp, prod, sqrt

from tpcalc import checks
from tpcalc.results import Bound, Hypothesis
from tpcalc.shown import Rows
from tpcalc.theorems.resnets.entries import Entries
from tpcalc.theorems.resnets.paper import paper

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
        Bound(of, low, high, 1.0, conditions, paper(f"Lemma 15 ({item})"), exact)
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
    return Bound(f"P(<Vx, y> >= {t:g})", None, chance, 1.0, (proxy,), paper("Lemma 20"))


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
    where = paper("Lemma 21")
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
