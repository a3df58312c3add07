"""Outputs that grow: their limits after the power of n is taken out, and where it begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from tpcalc.errors import ScaleError
from tpcalc.limit.claims import Trial
from tpcalc.limit.derive import Cover
from tpcalc.limit.derive import cover as derived
from tpcalc.program.program import Program
from tpcalc.results import Explosion, NotCovered, ScalarRow, VectorRow

GROWING = "growing"


def rescaled_growth(
    program: Program, values: Mapping[str, Fraction] | None, cover: Cover, trial: Trial
) -> Cover:
    """The same with the scalars that grow after their power of n is taken out."""
    powers = {row.name: row.n_power for row in cover.uncovered if row.n_power.exact is not None}
    if not powers:
        return cover
    found = derived(program, values, powers, trial)
    rows = (
        replace(row, bound=row.bound or f"O({powers[row.name].size('n')})")
        if row.name in powers
        else row
        for row in found.uncovered
    )
    return replace(found, uncovered=tuple(rows))


def explosion(
    names: Sequence[str], rows: Sequence[ScalarRow | VectorRow], uncovered: Sequence[NotCovered]
) -> Explosion | None:
    """What a training run reads that first grows; h is read by a function that is not covered."""
    powers = {row.name: row.n_power.constant for row in (*rows, *uncovered)}
    sizes = [(name, power) for name in names if (power := powers.get(name)) is not None]
    lost = any(isinstance(row.error, ScaleError) and row.n_power.exact is None for row in uncovered)
    return Explosion.first(sizes, ("f", "x", "h") if lost else ("f", "x"))
