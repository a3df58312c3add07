"""Nodes of a limit graph as one class, for readings that ask a single node."""

from __future__ import annotations

from tpcalc.limit.graph import (
    Apply,
    Combine,
    Draw,
    Expect,
    Fluctuation,
    LNode,
    Noise,
    Number,
    OuterExpect,
    Product,
    ScalarApply,
    Start,
    Twice,
)
from tpcalc.program.base import Table
from tpcalc.program.views import only, view

__all__ = [
    "average_of",
    "fluctuation_of",
    "function_of",
    "is_drawn",
    "noise_of",
    "number_of",
    "outer_of",
    "product_of",
    "scalar_function_of",
    "start_of",
    "sum_of",
    "the_fluctuation",
    "the_product",
    "the_start",
    "twice_of",
]

average_of: Table[Expect | None] = view(Expect)
fluctuation_of: Table[Fluctuation | None] = view(Fluctuation)
function_of: Table[Apply | None] = view(Apply)
noise_of: Table[Noise | None] = view(Noise)
number_of: Table[Number | None] = view(Number)
outer_of: Table[OuterExpect | None] = view(OuterExpect)
product_of: Table[Product | None] = view(Product)
scalar_function_of: Table[ScalarApply | None] = view(ScalarApply)
start_of: Table[Start | None] = view(Start)
sum_of: Table[Combine | None] = view(Combine)
twice_of: Table[Twice | None] = view(Twice)
the_fluctuation: Table[Fluctuation] = only(Fluctuation)
the_product: Table[Product] = only(Product)
the_start: Table[Start] = only(Start)


def _yes(node: LNode) -> bool:
    return True


def _no(node: LNode) -> bool:
    return False


is_drawn: Table[bool] = Table({Draw: _yes, Fluctuation: _yes}, _no)
"""Whether a node is a Gaussian scalar."""
