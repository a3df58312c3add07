"""Verdicts on training, read off the sizes of outputs and of their changes.

Every question is one-sided. That something does not explode, or does not move, follows from an
upper bound; that it explodes, or moves, needs a leading term. What is not known stays undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tpcalc.limit.graph import LRef
from tpcalc.limit.scales import Scale
from tpcalc.orders.chamber import Power

__all__ = ["Answer", "Judgement", "explodes", "judgement", "moves"]

Sign = Callable[[Power], int]
Question = Callable[[Scale, Sign], bool | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question about several sizes.

    Args:
        holds: Whether it is so; None: bounds alone do not tell.
        fact: What decided it.
        node: The leading coefficient that a yes rests on, where it is not provably different
            from 0.
    """

    holds: bool | None
    fact: str
    node: LRef | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict.

    Args:
        verdict: ``"unstable"``, ``"trivial"``, ``"kernel"``, ``"feature-learning"`` or
            ``"undecided"``.
        fact: What decided it.
    """

    verdict: str
    fact: str


def explodes(sizes: Mapping[str, Scale], sign: Sign) -> Answer:
    """Whether a quantity grows with the width.

    Args:
        sizes: By name.
        sign: The sign of an exponent; with symbols it records the answer.

    Example:
        >>> from fractions import Fraction
        >>> from tpcalc.orders.chamber import Chamber
        >>> explodes({"f": Scale(Fraction(1, 2), certain=True)}, Chamber().sign)
        Answer(holds=True, fact='f is of size n^(1/2)', node=None)
    """
    return _any(sizes, sign, _grows)


def moves(changes: Mapping[str, Scale], sign: Sign) -> Answer:
    """Whether a change does not vanish with the width.

    Args:
        changes: Sizes of changes, by name.
        sign: The sign of an exponent; with symbols it records the answer.

    Example:
        >>> from fractions import Fraction
        >>> from tpcalc.orders.chamber import Chamber
        >>> moves({"f[1]-f[0]": Scale(Fraction(0), bound=True, strict=True)}, Chamber().sign)
        Answer(holds=False, fact='f[1]-f[0] is o(1)', node=None)
    """
    return _any(changes, sign, _stays)


def judgement(exploded: Answer, outputs: Answer | None, features: Answer | None) -> Judgement:
    """The verdict that three answers make.

    Args:
        exploded: Whether h or f grows.
        outputs: Whether f moves; None where it was not asked, because something grows or may grow.
        features: Whether the last features move; None where it was not asked, because f does not.

    Source: Yang and Hu, Feature Learning in Infinite-Width Neural Networks, section 3.2.

    Example:
        >>> judgement(Answer(False, ""), Answer(False, "f[1]-f[0] is o(1)"), None).verdict
        'trivial'
    """
    if exploded.holds is None or exploded.holds:
        return Judgement("unstable" if exploded.holds else "undecided", exploded.fact)
    if outputs is None or outputs.holds is None:
        return Judgement("undecided", (outputs or exploded).fact)
    if not outputs.holds:
        return Judgement("trivial", outputs.fact)
    if features is None or features.holds is None:
        return Judgement("undecided", (features or outputs).fact)
    word = "feature-learning" if features.holds else "kernel"
    return Judgement(word, f"{outputs.fact}, {features.fact}")


def _any(sizes: Mapping[str, Scale], sign: Sign, question: Question) -> Answer:
    """Yes if it is so of one; no if of none, with the last one as the evidence."""
    unknown = None
    fact = ""
    for name, size in sizes.items():
        holds = question(size, sign)
        fact = f"{name} is {_text(size)}"
        if holds:
            return Answer(True, fact, None if size.certain else size.node)
        if holds is None and unknown is None:
            unknown = Answer(None, f"{fact}, and no lower bound is known")
    return unknown or Answer(False, fact)


def _grows(size: Scale, sign: Sign) -> bool | None:
    if size.power is None:
        return None if size.bound else False
    if sign(size.power) <= 0:
        return False
    return True if _known(size) else None


def _stays(size: Scale, sign: Sign) -> bool | None:
    if size.power is None:
        return None if size.bound else False
    here = sign(size.power)
    if here < 0 or (here == 0 and size.bound and size.strict):
        return False
    return True if _known(size) else None


def _known(size: Scale) -> bool:
    """Whether the size is that of a leading term; that of a fluctuation is an upper bound."""
    return not size.bound and (size.certain or not size.noise)


def _text(size: Scale) -> str:
    if size.power is None:
        return "without a known bound" if size.bound else "identically 0"
    text = "1" if size.power == 0 else f"n^({size.power})"
    if size.bound:
        return f"{'o' if size.strict else 'O'}({text})"
    return f"of size {text}" if _known(size) else f"O({text})"
