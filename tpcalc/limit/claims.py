"""Claims: what a derivation rests on besides the form of the program.

A rule that takes more than forms prove records it here: that a number is not 0, that a law has no
mass at a kink. Every answer is given with the claims on its way, and these are tested before it is
given (``evaluate.settle``). A law that turns out to sit on a kink is known as such from then on, and
the program is derived again; what cannot be told is refused, or no bound is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from tpcalc.limit.graph import LNode, LRef, graph_refs, renamed

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Claim", "Record", "Verdict"]


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that an answer rests on.

    Args:
        kind: ``"clear"``: no part of the coordinates of a vector is at one of the points;
            ``"nonzero"``: a scalar that is divided by, or a power of it taken, is not 0;
            ``"away"``: a scalar is at none of the points, where a function jumps or has a kink.
        node: The vector or scalar in the limit graph.
        key: What stands for the node in all derivations of one question.
        points: The points; of ``"nonzero"`` it is 0.
        text: What is read there, in words.
        power: Of ``"nonzero"`` the power that is taken.
    """

    kind: str
    node: LRef = field(compare=False)
    key: int
    points: tuple[float, ...]
    text: str = field(compare=False)
    power: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a claim.

    Args:
        holds: True: it holds. False: it does not, and the derivation knows. None: it cannot be
            told, so that nothing can rest on it.
        text: The evidence.
    """

    holds: bool | None
    text: str


@dataclass
class Record:
    """What is known of claims in all derivations of one question.

    Attributes:
        verdicts: Claims that were tested.
        atoms: Vectors that sit on points for a part of the coordinates.
    """

    verdicts: dict[Claim, Verdict] = field(default_factory=dict)
    atoms: set[tuple[int, tuple[float, ...]]] = field(default_factory=set)
    _keys: dict[LNode, int] = field(default_factory=dict)

    def key(self, node: LNode, keys: Sequence[int]) -> int:
        """A number for a node that is the same in every derivation."""
        refs = graph_refs(node)
        named = renamed(node, {ref: keys[ref] for ref in refs}) if refs else node
        return self._keys.setdefault(named, len(self._keys))

    def settle(self, claim: Claim, verdict: Verdict) -> None:
        """Put down what a test says of a claim."""
        self.verdicts[claim] = verdict
        if verdict.holds is False:
            self.atoms.add((claim.key, claim.points))
