"""A derivation: the graph under construction, how powers are compared, and the claims it rests on.

A rule that takes more than forms prove records a claim: that a number is not 0, that a law has no
mass at a kink. The claims on the way to an answer are tested before it is given
(``evaluate.settle``). A law that turns out to sit on a kink is known as such from then on, and the
program is derived again; what cannot be told is refused, or no bound is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Any

from tpcalc.errors import TpcalcError
from tpcalc.exponents import Ex
from tpcalc.exponents.chamber import Power
from tpcalc.functions import Expr, Fn
from tpcalc.functions.form import least
from tpcalc.limit.building import Building
from tpcalc.limit.certainty import Certainty
from tpcalc.limit.chains import has_moments
from tpcalc.limit.columns import divisions, readouts
from tpcalc.limit.expand import is_positive
from tpcalc.limit.graph import Expect, LNode, LRef, function_of
from tpcalc.limit.law import Laws
from tpcalc.limit.parity import union
from tpcalc.limit.series import Asked, Explosion, Ranking, Series
from tpcalc.limit.zeros import ZEROS, Zeros
from tpcalc.program.base import references, renumbered
from tpcalc.program.nodes import Data, Ref
from tpcalc.program.types import Axes

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
    """What is known of claims in all derivations of one question."""

    verdicts: dict[Claim, Verdict] = field(default_factory=dict)  # claims that were tested
    # vectors that sit on points for a part of the coordinates
    atoms: set[tuple[int, tuple[float, ...]]] = field(default_factory=set)
    # vectors that do not, though no form says so
    clear: set[tuple[int, tuple[float, ...]]] = field(default_factory=set)
    negative: set[int] = field(default_factory=set)  # numbers that are below 0
    # numbers that may be on a point, or on either side of it
    near: set[tuple[int, tuple[float, ...]]] = field(default_factory=set)
    # what expansions of functions have in common, by depth
    shapes: dict[object, int] = field(default_factory=dict)
    templates: dict[Power, dict[object, list[Any]]] = field(default_factory=dict)
    # by axis of stacks the class of each cell; those of one class have equal powers
    classes: dict[str, dict[int, int]] = field(default_factory=dict)
    # the axes along which data and start vectors are read class by class; None: nobody has looked
    # yet
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


@dataclass(frozen=True, slots=True)
class Piece:
    """A term of an expanded function: its power of n and a function of the listed nodes."""

    power: Power
    fn: Fn
    vectors: tuple[LRef, ...]
    scalars: tuple[LRef, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """An expanded function whose pieces number the terms of the arguments' series.

    ``asked`` holds what was asked of the laws of the arguments, with the answers.
    """

    parts: tuple[Piece, ...]
    bounds: Series[Expr]  # what is left besides
    asked: tuple[tuple[Asked, int], ...]


@dataclass
class Context(Building):
    """A derivation."""

    ranking: Ranking = field(kw_only=True)  # how powers are compared and how many terms are kept
    # what stands for symbols of its exponents
    values: dict[str, Ex | Fraction] = field(kw_only=True)
    # what is known of claims from other derivations
    record: Record = field(default_factory=Record, kw_only=True)
    # families of fluctuations that are roots wherever they can be. After these an average of a
    # chain of products has the first matrix that serves.
    preferred: frozenset[str] | None = field(default=None, kw_only=True)
    starts: dict[str, bool] = field(default_factory=dict)  # whether groups are read as blocks
    given: dict[object, Data] = field(default_factory=dict)  # by numbers and axes
    forced: dict[LRef, str] = field(default_factory=dict)  # the families of averages with one root
    keys: list[int] = field(default_factory=list)
    positive: dict[LRef, bool] = field(default_factory=dict)
    bare: list[bool] = field(default_factory=list)  # see ``factors``; of the first nodes
    claims: dict[Ref, dict[Claim, None]] = field(default_factory=dict)
    below: list[int] = field(default_factory=list)  # of each node of the program
    holders: list[Ref] = field(default_factory=list)  # the nodes with claims
    templates: dict[object, list[Template]] = field(default_factory=dict)
    shapes: dict[object, int] = field(default_factory=dict)
    exploded: list[Explosion] = field(default_factory=list)
    uncovered: dict[Ref, TpcalcError] = field(default_factory=dict)  # nodes that no rule covers
    fresh: Iterator[int] = field(default_factory=count)
    updated: dict[str, int] = field(default_factory=dict)  # axes of start vectors without data
    exact: list[Zeros] = field(default_factory=list)  # of the first nodes
    certainty: Certainty = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.certainty = Certainty(self)
        if self.record.divided is None:
            self.record.classes |= divisions(self.program) if self.program.has_blocks else {}
            self.record.divided = frozenset(self.record.classes)
        if self.program.has_blocks:
            self.updated = readouts(self.program)
        if not self.ranking.chamber.point:  # with symbols each derivation records what it compares
            self.shapes = self.record.shapes
            self.templates = self.record.templates.setdefault(self.ranking.depth, {})

    def divided(self, axes: Axes) -> list[str]:
        """The axes along which data are read class by class."""
        return [name for name, _ in axes if name in (self.record.divided or ())]

    def zeros(self, ref: LRef) -> Zeros:
        """Where a block is exactly 0."""
        while len(self.exact) <= ref:
            here = len(self.exact)
            self.exact.append(
                ZEROS(self.nodes[here], here, self.axes, self.exact.__getitem__)
                if self.axes[here] or self.program.has_blocks
                else None
            )
        return self.exact[ref]

    @property
    def laws(self) -> Laws:
        """What forms say of the laws of vectors."""
        return self.certainty.laws

    def key(self, ref: LRef) -> int:
        """A number for a node that is the same in every derivation of one question."""
        while len(self.keys) <= ref:
            self.keys.append(self.record.key(self.nodes[len(self.keys)], self.keys))
        return self.keys[ref]

    def claim(
        self,
        kind: str,
        node: LRef,
        ref: Ref,
        text: str,
        points: tuple[float, ...] = (0.0,),
        power: Fraction = Fraction(1),
        plain: bool = False,
        sources: tuple[LRef, ...] = (),
    ) -> None:
        """Record what the value of a node of the program rests on: nothing where no points are."""
        if not points:
            return
        claim = Claim(kind, node, self.key(node), points, text, power, plain, sources)
        self.claims.setdefault(ref, {})[claim] = None

    def claim_mean(self, piece: Piece, ref: Ref, kind: str = "mean") -> None:
        """Record that a function has a mean, or a mean square, if its form does not show it."""
        fn = piece.fn
        if not has_moments(self, fn, piece.vectors, piece.scalars):
            plain = kind == "mean" and least(fn.expr) >= 0
            square = fn if plain else Fn(fn.expr**2, fn.vectors, fn.scalars)
            node = self.add(Expect(square, piece.vectors, piece.scalars), None)
            self.claim(kind, node, ref, fn.text)

    def at(self, power: Ex) -> Fraction | None:
        return self.ranking.chamber.at(power)

    def claims_below(self, refs: Iterable[Ref]) -> dict[Claim, None]:
        """What the values of some nodes of the program rest on."""
        needed = 0
        for ref in refs:
            while len(self.below) <= ref:
                self._look(len(self.below))
            needed |= self.below[ref]
        holders = (ref for place, ref in enumerate(self.holders) if needed >> place & 1)
        return {claim: None for ref in holders for claim in self.claims[ref]}

    def _look(self, ref: Ref) -> None:
        """The nodes with claims at or below one, as bits."""
        found = union(self.below[other] for other in references(self.program.nodes[ref]))
        if ref in self.claims:
            found |= 1 << len(self.holders)
            self.holders.append(ref)
        self.below.append(found)

    def is_hidden(self, claim: Claim) -> bool:
        """Whether a claim is about what only smaller terms decide."""
        return self.missing[claim.node] == "hidden"

    def is_positive(self, node: LRef) -> bool:
        """Whether a vector stays away from 0 by its form."""
        found = self.positive.get(node)
        if found is None:
            here = function_of(self.nodes[node])
            found = here is not None and is_positive(here.fn.expr)
            self.positive[node] = found
        return found

    def is_atom(self, node: LRef, points: tuple[float, ...]) -> bool:
        """Whether a test found a vector on one of the points for a part of the coordinates."""
        return bool(self.record.atoms) and (self.key(node), points) in self.record.atoms

    def is_negative(self, node: LRef) -> bool:
        """Whether a test found a number below 0."""
        return bool(self.record.negative) and self.key(node) in self.record.negative

    def is_clear(self, node: LRef, points: tuple[float, ...]) -> bool:
        """Whether a vector is nowhere there: its form shows it, or a test found so."""
        return self.certainty.steep.proves(node) or self.is_found_clear(node, points)

    def is_found_clear(self, node: LRef, points: tuple[float, ...]) -> bool:
        """Whether a test found none of a vector there, though its form does not show it."""
        return bool(self.record.clear) and (self.key(node), points) in self.record.clear

    def shape(self, series: Series[LRef]) -> int:
        """A number for the powers of a series; equal for equal powers, looked up once for each."""
        if series.shape is None:
            key = (
                tuple(power for power, _ in series.terms),
                series.rest,
                series.soft,
                series.drift,
            )
            object.__setattr__(series, "shape", self.shapes.setdefault(key, len(self.shapes)))
        assert series.shape is not None
        return series.shape
