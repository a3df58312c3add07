"""Claims: what a derivation rests on besides the form of the program.

A rule that takes more than forms prove records it here: that a number is not 0, that a law has no
mass at a kink. The claims on the way to an answer are tested before it is given
(``evaluate.settle``). A law that turns out to sit on a kink is known as such from then on, and the
program is derived again; what cannot be told is refused, or no bound is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tpcalc.limit.graph import LNode, LRef
from tpcalc.program.base import references, renumbered

MEANS = {
    "clear": "a function with a kink or a jump is read where {text} may be {points}",
    "told": "whether {text} is {points} on a part of the coordinates decides a function there",
    "away": "a function with a kink or a jump is read at a number, {text}, that may be {points}",
    "side": "a function with a kink or a jump is read at a number, {text}, that may be {points}",
    "nonzero": "it rests on a power of a number, {text}, that may be 0",
    "mean": "no mean of {text} is known to exist",
    "zero": "symmetry makes the mean of {text} 0 if it exists, which is not known",
    "divided": "it rests on a division by a number, {text}, that may be 0",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that an answer rests on.

    Args:
        kind: ``"clear"``: no part of the coordinates of a vector is at one of the points;
            ``"told"``: where it is at one of them can be told;
            ``"nonzero"``: a scalar that is divided by, or a power of it taken, is not 0;
            ``"away"``: a scalar is at none of the points, where a function jumps or has a kink;
            ``"side"``: the same of the number that a vector is on all coordinates; whether it is
            below 0 is put down;
            ``"mean"``: a scalar, of what no limit theorem covers, is finite. Limits do not rest on
            it, as what evaluates them finds out;
            ``"zero"``: the same of a mean square, where the mean is 0 by symmetry.
        node: The vector or scalar in the limit graph.
        key: What stands for the node in all derivations of one question.
        points: The points; of ``"nonzero"`` it is 0.
        text: What is read there, in words.
        power: Of ``"nonzero"`` the power that is taken.
        plain: Of ``"clear"``: whether forms show a direction of its own with a given number in
            front, so that only exact zeros speak against it.
        sources: Then the products that brought such directions; of one of them the vector must not
            be a sum of those that were multiplied before.
    """

    kind: str
    node: LRef = field(compare=False)
    key: int
    points: tuple[float, ...]
    text: str = field(compare=False)
    power: Fraction = Fraction(1)
    plain: bool = field(default=False, compare=False)
    sources: tuple[LRef, ...] = field(default=(), compare=False)

    @property
    def is_moment(self) -> bool:
        """Whether it is that a moment exists."""
        return self.kind in ("mean", "zero")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a claim.

    Args:
        holds: True: it holds. False: it does not, and the derivation knows. None: it cannot be
            told, so that nothing can rest on it.
        text: The evidence.
        mean: Whether a negative power of a random number may have a mean.
        sure: Whether samples confirm it; else nothing but its form does.
        negative: Of a number, whether it is below 0.
    """

    holds: bool | None
    text: str
    mean: bool = True
    sure: bool = True
    negative: bool = False


@dataclass
class Record:
    """What is known of claims in all derivations of one question.

    Attributes:
        verdicts: Claims that were tested.
        atoms: Vectors that sit on points for a part of the coordinates.
        clear: Vectors that do not, though no form says so.
        negative: Numbers that are below 0.
        near: Numbers that may be on a point, or on either side of it.
        shapes, templates: What expansions of functions have in common, by depth.
        classes: By axis of stacks the class of each cell; those of one class have equal powers.
        divided: The axes along which data and start vectors are read class by class; None: nobody
            has looked yet.
    """

    verdicts: dict[Claim, Verdict] = field(default_factory=dict)
    atoms: set[tuple[int, tuple[float, ...]]] = field(default_factory=set)
    clear: set[tuple[int, tuple[float, ...]]] = field(default_factory=set)
    negative: set[int] = field(default_factory=set)
    near: set[tuple[int, tuple[float, ...]]] = field(default_factory=set)
    shapes: dict[object, int] = field(default_factory=dict)
    templates: dict[Fraction, dict[object, list[Any]]] = field(default_factory=dict)
    classes: dict[str, dict[int, int]] = field(default_factory=dict)
    divided: frozenset[str] | None = None
    _keys: dict[LNode, int] = field(default_factory=dict)

    @property
    def is_broken(self) -> bool:
        """Whether some claim does not hold, or cannot be told."""
        return any(verdict.holds is None for verdict in self.verdicts.values())

    def key(self, node: LNode, keys: Sequence[int]) -> int:
        """A number for a node that is the same in every derivation."""
        refs = references(node)
        named = renumbered(node, {ref: keys[ref] for ref in refs}.__getitem__) if refs else node
        return self._keys.setdefault(named, len(self._keys))

    def without_mean(self, claims: Iterable[Claim]) -> str:
        """Why no mean of what rests on some claims is known to exist; empty where it is."""
        for claim in claims:
            verdict = self.verdicts.get(claim)
            if verdict is not None and not verdict.mean:
                return (
                    f"it rests on a division by a random number, {claim.text}, that comes near 0: "
                    "no mean is known to exist"
                )
        return ""

    def fault(self, claims: Iterable[Claim]) -> str:
        """What nothing can rest on among claims, in words; empty where all hold."""
        for claim in claims:
            verdict = self.verdicts.get(claim)
            if verdict is not None and verdict.holds is None:
                points = " or ".join(f"{point:g}" for point in claim.points)
                divided = claim.kind == "nonzero" and claim.power < 0
                words = MEANS["divided" if divided else claim.kind]
                return f"{words.format(text=claim.text, points=points)} ({verdict.text})"
        return ""

    def doubts(self, claims: Iterable[Claim]) -> tuple[str, ...]:
        """What an answer takes from the form of the program alone, in words."""
        weak = [c for c in claims if c in self.verdicts and not self.verdicts[c].sure]
        return tuple(
            dict.fromkeys(
                f"taken from the form of the program, as samples do not tell: {c.text} is at "
                f"{c.points[0]:g} on no part of the coordinates"
                if c.kind in ("clear", "told")
                else f"assumed, as it cannot be sampled: {c.text} is not {c.points[0]:g}"
                for c in weak
            )
        )

    def settle(self, claim: Claim, verdict: Verdict) -> None:
        """Put down what a test says of a claim."""
        self.verdicts[claim] = verdict
        if verdict.holds is False and claim.kind in ("clear", "side"):
            self.atoms.add((claim.key, claim.points))
        if verdict.holds and verdict.sure and claim.kind == "told":
            self.clear.add((claim.key, claim.points))
        if verdict.holds is None and claim.kind == "side":
            self.near.add((claim.key, claim.points))
        if verdict.holds and verdict.negative and claim.kind == "side":
            self.negative.add(claim.key)


def for_limits(claims: Iterable[Claim]) -> dict[Claim, None]:
    """What a limit rests on: whether means are finite is seen where they are evaluated."""
    return {claim: None for claim in claims if claim.kind != "mean"}


# Tests claims on a graph and puts down what becomes of them: whether an atom was found.
Trial = Callable[[Any, Iterable[Claim]], bool]
