"""Lemma 14, Propositions 2, 3, 6, 7 and Corollary 4: how far independent blocks carry a stream.

A value is that of the formula; whether its conditions are met stands beside it. Bounds of the paper
on D^2 that its proof shows of R^2 are bounds on R^2.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, expm1, log, log1p, sqrt

from tpcalc import checks
from tpcalc.docstrings import like
from tpcalc.errors import UsageError
from tpcalc.networks.network import Architecture
from tpcalc.results import Bound, Hypothesis
from tpcalc.shown import Rows
from tpcalc.theorems.closed import RESNETS
from tpcalc.theorems.resnets.case import Case, assumptions, case_of

SAFE = "the paper states this of D^2, and proves it of R^2: (R - 1)^2 <= D^2 <= (R + 1)^2"
JENSEN = "the step (22) of its proof has a gap for res-2 and res-3: the side condition is heuristic"

About = tuple[str, tuple[str, ...]]
# What is bounded of a stream, and of its adjoint, with the assumptions that this takes.
STREAM: About = "D^2", ("A1", "A2")
ADJOINT: About = "Dp^2", ("A1", "A3", "A4")

PRINTED = (
    "where C is large the printed condition on alpha_L is too weak for a step of its proof; "
    "alpha_L^2 <= {:.4g} is enough"
)


def _given(network: Architecture, depth: int, width: int, delta: float) -> tuple[Case, float]:
    depth = checks.whole(depth, "depth", least=1, hint="It counts the blocks.")
    checks.whole(width, "width", least=1, hint="It is the number of coordinates.")
    if not 0 < delta < 1:
        raise UsageError(f"delta is {delta}.", hint="A probability between 0 and 1.")
    case = case_of(network)
    return case, depth ** -float(case.beta) * 1.0


def _assumed(case: Case, width: int, *names: str) -> tuple[Hypothesis, ...]:
    found = assumptions(case.network, width)
    return tuple(found[name] for name in names)


def _small(alpha: float, bound: float, text: str) -> Hypothesis:
    square = alpha**2
    return Hypothesis(f"alpha_L^2 <= {text}", square <= bound, f"{square:.4g} against {bound:.4g}")


def lemma_14(network: Architecture, depth: int) -> Bound:
    """E D^2 of the stream: between bounds, and exactly where the constant c is one number.

    Args:
        network: res-1, res-2 or res-3, with independent matrices.
        depth: L.

    Returns:
        Both bounds, which are equal where ``exact`` says so.

    Raises:
        UsageError: Another network.

    Source: Marion, Fermanian, Biau, Vert, Lemma 14.

    Example:
        >>> import tpcalc as tp
        >>> lemma_14(tp.ResNet("L", "relu", nonlin="between", layers=2), 100).stated
        'E D^2 = 0.646668'
    """
    return _expected(network, depth, "Lemma 14", STREAM)


@like(lemma_14)
def proposition_7(network: Architecture, depth: int) -> Bound:
    """E (D^p)^2 of gradients: between bounds, and exactly where the constant c is one number.

    Source: Marion, Fermanian, Biau, Vert, Proposition 7.

    Example:
        >>> import tpcalc as tp
        >>> found = proposition_7(tp.ResNet("L", "relu", nonlin="between", layers=2), 100)
        >>> found.exact, round(found.lower, 6)
        (True, 0.646668)
    """
    return _expected(network, depth, "Proposition 7", ADJOINT)


def _expected(network: Architecture, depth: int, item: str, about: About) -> Bound:
    of, names = about
    case, alpha = _given(network, depth, 1, 0.5)
    conditions = _assumed(case, 1, *names)
    low, high = 0.5, 1.0
    exact = case.c is not None and case.c[0] == case.c[1] and all(one.met for one in conditions)
    if exact and case.c is not None:
        low, high = case.c
    lower, upper = (expm1(depth * log1p(c * alpha**2)) for c in (low, high))
    return Bound(f"E {of}", lower, upper, 1.0, conditions, RESNETS.at(item), exact)


def proposition_2(network: Architecture, depth: int, width: int, delta: float) -> Bound:
    """D^2 <= 2 tau / delta with probability 1 - delta, tau = L^(1 - 2 beta).

    Args:
        network: res-1, res-2 or res-3, with independent matrices.
        depth: L.
        width: d.
        delta: The probability that it does not hold.

    Returns:
        The upper bound, with the conditions and whether each is met.

    Raises:
        UsageError: Another network, a number out of range.

    Source: Marion, Fermanian, Biau, Vert, Proposition 2.

    Example:
        >>> import tpcalc as tp
        >>> net = tp.ResNet("L", "relu", alpha=1, nonlin="between", layers=2)
        >>> proposition_2(net, 1000, 40, 0.1).upper
        0.02
    """
    return _few(network, depth, width, delta, "Proposition 2", STREAM)


@like(proposition_2)
def proposition_6(network: Architecture, depth: int, width: int, delta: float) -> Bound:
    """(D^p)^2 <= 2 tau / delta with probability 1 - delta.

    Source: Marion, Fermanian, Biau, Vert, Proposition 6.

    Example:
        >>> import tpcalc as tp
        >>> net = tp.ResNet("L", "relu", alpha=1, nonlin="between", layers=2)
        >>> proposition_6(net, 1000, 40, 0.1).admissible
        True
    """
    return _few(network, depth, width, delta, "Proposition 6", ADJOINT)


def _few(
    network: Architecture, depth: int, width: int, delta: float, item: str, about: About
) -> Bound:
    of, names = about
    case, alpha = _given(network, depth, width, delta)
    tau = depth * alpha**2
    few = Hypothesis("L alpha_L^2 <= 1", tau <= 1 + 1e-12, f"{tau:.4g}")
    conditions = (*_assumed(case, width, *names), few)
    return Bound(of, None, 2 * tau / delta, 1 - delta, conditions, RESNETS.at(item))


@like(proposition_2)
def proposition_3(network: Architecture, depth: int, width: int, delta: float) -> Rows[Bound]:
    """Bounds on R^2 that hold with probability 1 - delta each: from below, and from above.

    Args:
        delta: The probability that one does not hold.

    Returns:
        Part (i), exp(3/8 tau - sqrt(11 tau / (d delta))), and part (ii),
        exp(tau + sqrt(5 tau / (d delta))), with tau = L alpha_L^2.

    Source: Marion, Fermanian, Biau, Vert, Proposition 3.

    Example:
        >>> import tpcalc as tp
        >>> net = tp.ResNet("L", "relu", nonlin="between", layers=2)
        >>> low, high = proposition_3(net, 1000, 100, 0.25)
        >>> round(low.lower ** 0.5, 5), round(high.upper ** 0.5, 5), low.admissible
        (0.86575, 2.06186, False)
    """
    case, alpha = _given(network, depth, width, delta)
    tau, s, big = depth * alpha**2, case.s, sqrt(case.constant())
    conditions = _assumed(case, width, "A1", "A2")
    below = (
        *conditions,
        Hypothesis("d >= 64", width >= 64, f"d = {width}"),
        _small(
            alpha,
            2 / ((big * s**4 + 4 * big + 16 * s**4) * width),
            "2 / ((sqrt(C) s^4 + 4 sqrt(C) + 16 s^4) d)",
        ),
        _rare(alpha, s, depth, width, delta / 11),
    )
    above = (
        *conditions,
        _small(alpha, 1 / (big * (width + 128 * s**4)), "1 / (sqrt(C) (d + 128 s^4))"),
    )
    enough = 1 / ((2 * big * s**4 + 2 * big + 8 * s**4) * width)
    notes = (SAFE, PRINTED.format(enough), *((JENSEN,) if case.name != "res-1" else ()))
    low = exp(0.375 * tau - sqrt(11 * tau / (width * delta)))
    high = exp(tau + sqrt(5 * tau / (width * delta)))
    both = (
        Bound("R^2", low, None, 1 - delta, below, RESNETS.at("Proposition 3 (i)"), notes=notes),
        Bound("R^2", None, high, 1 - delta, above, RESNETS.at("Proposition 3 (ii)"), notes=(SAFE,)),
    )
    return Rows(both)


def _rare(alpha: float, s: float, depth: int, width: int, bound: float) -> Hypothesis:
    chance = 2 * depth * exp(-width / (64 * alpha**2 * s**2))
    text = "2 L exp(-d / (64 alpha_L^2 s^2)) <= delta / " + ("11" if bound else "")
    return Hypothesis(text, chance <= bound, f"{chance:.4g} against {bound:.4g}")


@like(proposition_2)
def corollary_4(network: Architecture, depth: int, width: int, delta: float) -> Bound:
    """At beta = 1/2 bounds on R^2 that hold together with probability 1 - delta.

    Args:
        network: res-1, res-2 or res-3 with beta = 1/2, with independent matrices.
        delta: The probability that one of them does not hold.

    Returns:
        Both bounds, with the conditions and whether each is met.

    Raises:
        UsageError: Another network, another beta, a number out of range.

    Source: Marion, Fermanian, Biau, Vert, Corollary 4 (iii), with delta / 22 in its side condition.

    Example:
        >>> import tpcalc as tp
        >>> net = tp.ResNet("L", "relu", nonlin="between", layers=2)
        >>> found = corollary_4(net, 10**6, 1000, 0.5)
        >>> round(found.lower, 6), round(found.upper, 6)
        (1.179674, 3.131216)
    """
    case, alpha = _given(network, depth, width, delta)
    if case.beta != Fraction(1, 2):
        raise UsageError(f"beta is {case.beta}.", hint="Corollary 4 (iii) is about beta = 1/2.")
    least = least_depths(width, case.constant(), case.s)[2]
    conditions = (
        *_assumed(case, width, "A1", "A2"),
        Hypothesis("d >= 64", width >= 64, f"d = {width}"),
        Hypothesis("many blocks", depth >= least, f"L = {depth}, at least {least:.1f}"),
        _rare(alpha, case.s, depth, width, delta / 22),
    )
    lower = exp(0.375 - sqrt(22 / (width * delta)))
    upper = exp(1 + sqrt(10 / (width * delta)))
    item = RESNETS.at("Corollary 4 (iii)")
    return Bound("R^2", lower, upper, 1 - delta, conditions, item, notes=(SAFE,))


def least_depths(width: int, constant: float, s: float = 1.0) -> tuple[float, float, float]:
    """The least L at beta = 1/2 that Proposition 3 (i), (ii) and Corollary 4 (iii) ask for.

    Args:
        width: d.
        constant: C.
        s: The sub-Gaussian proxy.

    Returns:
        The three depths, as real numbers.

    Source: Marion, Fermanian, Biau, Vert, Proposition 3 and Corollary 4.

    Example:
        >>> [round(one, 1) for one in least_depths(100, 3457)]
        [15499.1, 13405.5, 21143.5]
    """
    big, four = sqrt(constant), s**4
    return (
        (big * four + 4 * big + 16 * four) * width / 2,
        big * (width + 128 * four),
        (big * four / 2 + 2 * big + 8 * four) * width + 96 * big * four,
    )


def tail_of_the_norm(tau: float, width: int, x: float, *, depth: int = 1, s: float = 1.0) -> Bound:
    """The probability that R^2 is beyond x, at most.

    Args:
        tau: L alpha_L^2.
        width: d.
        x: Above exp(tau): P(R^2 >= x); below exp(3/8 tau): P(R^2 <= x).
        depth: L, which the lower tail depends on.
        s: The sub-Gaussian proxy.

    Returns:
        An upper bound on the probability.

    Raises:
        UsageError: An x between the two.

    Source: Marion, Fermanian, Biau, Vert, proof of Proposition 3.

    Example:
        >>> round(tail_of_the_norm(1.0, 100, 5.0).upper, 4)
        0.1346
    """
    low, high = exp(0.375 * tau), exp(tau)
    if low <= x <= high:
        raise UsageError(
            f"x = {x:g} is between exp(3/8 tau) and exp(tau).",
            hint=f"The tails begin at {low:.6g} and {high:.6g}.",
        )
    if x > high:
        of, chance = f"P(R^2 >= {x:g})", 5 * tau / (width * (log(x) - tau) ** 2)
    else:
        rare = 2 * depth * exp(-width * depth / (64 * tau * s**2))
        of, chance = f"P(R^2 <= {x:g})", 10 * tau / (width * (log(x) - 0.375 * tau) ** 2) + rare
    return Bound(of, None, chance, 1.0, (), RESNETS.at("proof of Proposition 3"))
