"""``Sweep``: one question over a grid of settings, as one table."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown

Row = dict[str, str | int | float | bool | None]
QUANTITY = ("name", "recipe", "depth", "width", "multiplier", "rate", "statistic")
SHOWN = ("value", "verdict", "z")
PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Sweep(Shown):
    """The answers of all cells of a grid.

    Args:
        question: What was asked in each.
        axes: The keys of the grid, in their order.
        cells: How many cells it has.
        rows: The table, cell by cell, with the same columns in each row: the axes; what a number or
            a word is of, where a cell has several; it (``value``, ``verdict``, ``z``); what is
            known of it; ``problem``: why a cell has no answer. None: nothing, or no finite number.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.

    Example:
        >>> row = {"model.param": "mup", "verdict": "feature-learning", "problem": ""}
        >>> Sweep("check", ("model.param",), 1, (row,), Provenance("0", "")).rows[0]["verdict"]
        'feature-learning'
    """

    question: str
    axes: tuple[str, ...]
    cells: int
    rows: tuple[Row, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()
