"""Conditions on the start: stable (nothing explodes), not trivial (nothing vanishes).

A start is trivial where h_0 tends to 0 in some layer; learning is trivial where f_t tends to f_0.
Only the first is asked of an initialization.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from operator import attrgetter

from tpcalc.results import Claim, Hypothesis
from tpcalc.theorems.integrable.predicates.case import Case
from tpcalc.theorems.integrable.predicates.setting import fully_connected
from tpcalc.theorems.integrable.predicates.statement import theorem

HALF = Fraction(1, 2)
_is_lipschitz = attrgetter("activation.lipschitz")
ONE_WAY = (
    "the condition is sufficient; it is necessary where the other one of the two is met, and not "
    "beyond: a layer that explodes may make up for one that vanishes"
)
TWO_WORDS = "this is about the start; whether learning is trivial is another question"


def _words(case: Case) -> Iterator[str]:
    if _is_nontrivial(case):
        return
    if not _is_stable(case):
        yield ONE_WAY
    yield TWO_WORDS


def _plain_scales(case: Case) -> Hypothesis:
    """The exponents are numbers, and nothing but them is in the scales of the start."""
    text = "numbers a_l, centred weights, biases that share the a_l of their layer"
    row = case.exponents(0)
    found = ""
    if any(value.constant is None for value in row.a):
        found = "an exponent a_l holds a symbol"
    elif any(mean != 0 for mean in row.mean):
        found = "the initial weights are not centred"
    elif any(row.bias_a[layer - 1] != row.a[layer - 1] for layer in case.biased):
        found = "biases have exponents of their own"
    return Hypothesis(text, not found, found or f"a = ({', '.join(map(str, row.a))})")


def _is_stable(case: Case) -> bool:
    first, *above = (value.constant for value in case.exponents(0).a)
    return first == 0 and all(a is not None and a >= HALF for a in above)


def _is_nontrivial(case: Case) -> bool:
    first, *above = (value.constant for value in case.exponents(0).a[:-1])
    return first is not None and first <= 0 and all(a is not None and a <= HALF for a in above)


def _start(case: Case, what: str, bad: str, condition: bool, other: bool) -> Iterator[Claim]:
    """What the condition says of the start, beside the verdict; nothing where it is one way."""
    stated = f"none {bad}" if condition else f"one {bad}" if other else ""
    verdict = case.verdict
    if verdict is None:
        yield Claim(what, stated, "")
        return
    here = verdict.initial == bad
    derived = f"one {bad}" if here else f"none {bad}"
    agrees = here is not condition if stated else None
    if verdict.initial == "explodes" and not here:
        derived, agrees = "one explodes", None
    elif verdict.verdict == "undecided" and not here:
        derived, agrees = "not decided", None
    yield Claim(what, stated, derived, agrees)


@theorem(
    "the start is stable: a_1 = 0 and a_l >= 1/2 above",
    "Appendix B.3",
    (_plain_scales, _is_lipschitz),
    setting=fully_connected,
    holds=_is_stable,
    notes=lambda case: () if _is_stable(case) or _is_nontrivial(case) else (ONE_WAY,),
)
def stable_init(case: Case) -> Iterator[Claim]:
    """Whether the start is stable: neither h_0 nor f_0 explodes, by the exponents a alone.

    Returns:
        The answer; its claim is what ``check`` derives of the start.

    Source: Hajjar, Chizat, Giraud, Appendix B.3: a_1 = 0, a_l >= 1/2 for the layers above.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> stable_init(MLP(3, "relu"), "mup").answer
        'holds'
        >>> stable_init(MLP(3, "relu"), "ac:0,0,1;0,0,0", derive=False).answer
        'does not hold'
    """
    return _start(case, "h_0 and f_0", "explodes", _is_stable(case), _is_nontrivial(case))


@theorem(
    "the start is not trivial: a_1 <= 0 and a_l <= 1/2 in hidden layers above",
    "Appendix B.3",
    (_plain_scales, _is_lipschitz),
    setting=fully_connected,
    holds=_is_nontrivial,
    notes=_words,
)
def nontrivial_init(case: Case) -> Iterator[Claim]:
    """Whether the start is not trivial: h_0 tends to 0 in no layer, by the exponents a alone.

    Returns:
        The answer; its claim is what ``check`` derives of the start.

    Source: Hajjar, Chizat, Giraud, Appendix B.3: a_1 <= 0, a_l <= 1/2 for the hidden layers above.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> nontrivial_init(MLP(3, "relu"), "ntk").answer
        'holds'
        >>> nontrivial_init(MLP(3, "relu"), "naive-ip", derive=False).answer
        'does not hold'
    """
    return _start(case, "h_0", "vanishes", _is_nontrivial(case), _is_stable(case))
