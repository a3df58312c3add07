"""Modules as people write them: what reading, judging and measuring are tested on."""

from __future__ import annotations

from modules import convolutional, experts, gpt, library, llama, mlp, recurrent, scan
from modules.rows import BRANCHES, EXPORTS, Row

__all__ = ["BRANCHES", "EXPORTS", "ROWS", "Row", "row"]

ROWS: tuple[Row, ...] = (
    *mlp.ROWS,
    *convolutional.ROWS,
    *gpt.ROWS,
    *llama.ROWS,
    *library.ROWS,
    *recurrent.ROWS,
    *scan.ROWS,
    *experts.ROWS,
)


def row(name: str) -> Row:
    """The row of a name."""
    return {one.name: one for one in ROWS}[name]
