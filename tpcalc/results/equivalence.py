"""How far two programs are the same: at finite width and in the limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tpcalc.results.estimate import Estimate
from tpcalc.results.tables import Provenance, SlopeRow
from tpcalc.shown import Shown

LimitRelation = Literal[
    "same graph", "both 0", "another power", "equal within errors", "different", "not compared"
]


@dataclass(frozen=True, slots=True)
class EquivalenceRow:
    """One output of two programs.

    Args:
        name: The output.
        gaps: For each width the largest difference over the networks, relative to the size of the
            output (root mean square over networks): both programs have the same initial weights.
        equal: Whether all of them are at rounding level; None where no network was run.
        slope: The log-log slope in n of the relative difference, where there is one.
        relation: What is known of the two limits; ``"both 0"`` says nothing of their
            rates, ``"another power"`` that a vector has another size, n^e, in the two.
        left: The limit of the first program, where it was computed; of a vector E Z^2, or E Z where
            that is further apart.
        right: That of the second.
        z: Their distance in combined standard errors, as of ``Estimate.z``.

    Example:
        >>> EquivalenceRow("f[1,0]", (1e-15,), True, None, "same graph").relation
        'same graph'
    """

    name: str
    gaps: tuple[float, ...]
    equal: bool | None
    slope: SlopeRow | None
    relation: LimitRelation
    left: Estimate | None = None
    right: Estimate | None = None
    z: float | None = None


@dataclass(frozen=True, slots=True)
class Equivalence(Shown):
    """Whether two programs are the same.

    Args:
        rows: The outputs that both have.
        widths: The widths of the networks.
        seeds: How many networks of each.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.

    Example:
        >>> row = EquivalenceRow("f[1,0]", (1e-2, 5e-3), False, None, "same graph")
        >>> found = Equivalence((row,), (64, 256), 1, Provenance("0", "ab"))
        >>> found.at_finite_width, found.in_the_limit
        (False, 'same graph')
    """

    rows: tuple[EquivalenceRow, ...]
    widths: tuple[int, ...]
    seeds: int
    provenance: Provenance
    notes: tuple[str, ...] = ()

    @property
    def at_finite_width(self) -> bool | None:
        """Whether all outputs of networks of one draw are equal up to rounding; None: not run."""
        if any(row.equal is None for row in self.rows):
            return None
        return all(row.equal for row in self.rows)

    @property
    def in_the_limit(self) -> LimitRelation:
        """The weakest that is known of the limits of the outputs."""
        order: tuple[LimitRelation, ...] = (
            "different",
            "another power",
            "not compared",
            "equal within errors",
        )
        found = {row.relation for row in self.rows}
        return next((relation for relation in order if relation in found), "same graph")

    def __getitem__(self, name: str) -> EquivalenceRow:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    __repr__ = Shown.__str__
