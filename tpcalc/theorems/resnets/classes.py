"""Corollaries 4 and 8, Propositions 12 and 13: explosion, a random limit, or the identity.

Each answer stands beside the class that the exponents in L of the network's program give.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tpcalc.docstrings import like
from tpcalc.errors import UsageError
from tpcalc.networks.network import Architecture
from tpcalc.program.along import along_of
from tpcalc.questions.depth.check import depth_check
from tpcalc.results import Claim, Hypothesis, Theorem
from tpcalc.results.theorem import confirmed
from tpcalc.shown import Rows
from tpcalc.theorems.closed import RESNETS
from tpcalc.theorems.resnets.case import Case, assumptions, case_of
from tpcalc.theorems.resnets.ode import shown_complex
from tpcalc.training.training import Training

HALF = Fraction(1, 2)
WORDS = {
    "identity": "tends to 0",
    "stationary": "stays between bounds",
    "unstable": "tends to infinity",
    "vanishing": "tends to 1",
}
# Of each its title and place, the power that is critical, and of what: in words, in a verdict.
STATEMENTS = {
    "corollary_4": ("critical beta = 1/2 of outputs", "Corollary 4", HALF, "D", "outputs"),
    "corollary_8": ("critical beta = 1/2 of gradients", "Corollary 8", HALF, "Dp", "gradients"),
    "proposition_12": (
        "critical beta = 1 of smooth matrices",
        "Propositions 12 and 13",
        Fraction(1),
        "D",
        "outputs",
    ),
}


def about_the_start(network: Architecture, width: int | None = None) -> tuple[Theorem, ...]:
    """Corollaries 4 and 8, Propositions 12 and 13 beside what the network's program gives.

    Args:
        network: A network of L blocks.
        width: d; None: any that is large enough.

    Returns:
        Their answers; none of a network that is not res-1, res-2 or res-3.

    Example:
        >>> import tpcalc as tp
        >>> net = tp.ResNet("L", "relu", nonlin="between", layers=2, hurst="3/4")
        >>> [found.answer for found in about_the_start(net)]
        ['outside', 'outside', 'outside']
    """
    try:
        case_of(network)
    except UsageError:
        return Rows(())
    return Rows(one(network, width) for one in (hidden_states, corollary_8, proposition_12))


def hidden_states(network: Architecture, width: int | None, *, derive: bool = True) -> Theorem:
    """Corollary 4: D of independent matrices tends to 0, stays bounded, or tends to infinity.

    Args:
        network: res-1, res-2 or res-3.
        width: d; None: any that is large enough.
        derive: Whether the class is derived from the program besides.

    Returns:
        Hypotheses, and the class beside the one that is derived.

    Raises:
        UsageError: Another network.

    Source: Marion, Fermanian, Biau, Vert, Corollary 4.

    Example:
        >>> import tpcalc as tp
        >>> found = hidden_states(tp.ResNet("L", "relu", nonlin="between", layers=2), 100)
        >>> found.answer, found.claims[0].stated
        ('holds', 'stays between bounds')
    """
    case = case_of(network)
    found = assumptions(network, width)
    wide = {1: 0, 0: 64, -1: 9}[_sign(case.beta - HALF)]
    conditions = (
        found["A1"],
        found["A2"],
        Hypothesis(f"d >= {wide}", width is None or width >= wide, f"d = {width or 'any'}"),
    )
    notes: tuple[str, ...] = ("in probability",)
    derive = derive and (case.beta >= HALF or _wide(width))
    if case.beta < HALF:
        notes += ("d >= 9 is of the proof: growth in probability needs d >= 3, derived",)
    return _answer(case, "corollary_4", conditions, derive, notes)


@like(hidden_states)
def corollary_8(network: Architecture, width: int | None, *, derive: bool = True) -> Theorem:
    """Corollary 8: the same of D^p, the displacement of gradients.

    Source: Marion, Fermanian, Biau, Vert, Corollary 8, whose limit at beta = 1/2 lies between
        e^(1/2) - 1 and e - 1.

    Example:
        >>> import tpcalc as tp
        >>> corollary_8(tp.ResNet("L", "relu", alpha=1, nonlin="between", layers=2), 40).answer
        'holds'
    """
    case = case_of(network)
    found = assumptions(network, width)
    conditions = (found["A1"], found["A3"], found["A4"])
    notes = {
        1: ("in probability",),
        0: ("in expectation: E Dp^2 tends to a number in [e^(1/2) - 1, e - 1]",),
        -1: ("in expectation only",),
    }[_sign(case.beta - HALF)]
    return _answer(case, "corollary_8", conditions, derive, notes)


@like(hidden_states)
def proposition_12(network: Architecture, width: int | None, *, derive: bool = True) -> Theorem:
    """Propositions 12 and 13: of smooth matrices D tends to 0, stays bounded, or grows.

    Args:
        network: res-1, res-2 or res-3, with matrices that are ``rbf(ell)`` along the depth.

    Source: Marion, Fermanian, Biau, Vert, Propositions 12 and 13; growth is proved of the linear
        res-1, whose V_0^T has a positive eigenvalue, and of the maximum over the blocks.

    Example:
        >>> import tpcalc as tp
        >>> net = tp.ResNet("L", "relu", alpha=2, nonlin="between", layers=2, along="rbf(1/10)")
        >>> proposition_12(net, 40).answer
        'holds'
    """
    case = case_of(network)
    found = assumptions(network, width)
    conditions = [found["A5"], found["A6"]]
    paths = [law for law in map(along_of, case.along) if law.row.path is not None]
    if case.beta < 1:
        linear = case.start.inner is None and case.slopes in ((1.0, 1.0),)
        conditions.append(Hypothesis("res-1 without an activation", linear, case.name))
        derive = derive and _wide(width)
        if not paths:
            text = "V_0^T has a positive real eigenvalue"
            found_there = f"of probability below 1 at d = {width}"
            conditions.append(Hypothesis(text, width is None, found_there if width else "d large"))
        for law in paths:
            first = np.linalg.eigvals(law.path_at(np.zeros(1))[0])
            found_there = ", ".join(dict.fromkeys(map(shown_complex, first)))
            real = bool(any(one.real > 0 and not one.imag for one in first))
            text = "V_0^T has a positive real eigenvalue"
            conditions.append(Hypothesis(text, real, f"eigenvalue {found_there}"))
        derive = derive and not any(one < 0 for law in paths for one in law.numbers)
    return _answer(case, "proposition_12", tuple(conditions), derive, ("almost surely",))


def recommended_hurst(network: Architecture) -> tuple[str, bool]:
    """The rule H = beta of matrices that are fractional noise, for beta in (1/2, 1).

    Args:
        network: res-1, res-2 or res-3.

    Returns:
        The law that the rule recommends for the network's beta, and whether the network has it.

    Raises:
        UsageError: Another network.

    Source: Marion, Fermanian, Biau, Vert, section 4.1.

    Example:
        >>> import tpcalc as tp
        >>> net = tp.ResNet("L", "relu", alpha="3/4", nonlin="between", layers=2, hurst="3/4")
        >>> recommended_hurst(net)
        ('fgn(3/4)', True)
    """
    case = case_of(network)
    beta = case.beta
    law = "fresh" if beta <= HALF else "rbf(1/10)" if beta >= 1 else f"fgn({beta})"
    laws = {str(along_of(one)) for one in (case.start.outer, case.start.inner) if one is not None}
    smooth = beta >= 1 and all(one.startswith("rbf(") for one in laws)
    return law, smooth or laws == {law}


def _wide(width: int | None) -> bool:
    """Whether growth is that of infinite width: the product of few numbers may go to 0."""
    return width is None or width >= 3


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


def _answer(
    case: Case,
    name: str,
    conditions: tuple[Hypothesis, ...],
    derive: bool,
    notes: tuple[str, ...],
) -> Theorem:
    title, item, critical, what, field = STATEMENTS[name]
    stated = {1: "identity", 0: "stationary", -1: "unstable"}[_sign(case.beta - critical)]
    derived = ""
    if derive:
        verdict = depth_check(Training(case.network, "mup", steps=0), {})
        derived = str(getattr(verdict, field))
    met = all(one.met for one in conditions)
    # What a theorem does not state of a network, its program does not contradict.
    agrees = None if not derived or not (met or derived == stated) else derived == stated
    words: Callable[[str], str] = lambda one: WORDS.get(one, one)  # noqa: E731
    claims = (Claim(what, words(stated), words(derived), agrees),)
    answer = confirmed(claims) if agrees is not False else "does not hold"
    if not met:
        answer = "outside"
    return Theorem(name, title, RESNETS.at(item), answer, conditions, claims, notes)
