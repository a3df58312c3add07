"""Nodes of a limit graph as one class, for readings that ask a single node."""

from __future__ import annotations

from tpcalc.limit.graph import (
    Expect,
    Fluctuation,
    Noise,
    Number,
    OuterExpect,
    Product,
    Start,
    Starts,
    Twice,
)
from tpcalc.program.base import Table, only, view
from tpcalc.program.nodes import Data, Input, Nonlin, Rename, Stack

average_of: Table[Expect | None] = view(Expect)
data_of: Table[Data | None] = view(Data)
fluctuation_of: Table[Fluctuation | None] = view(Fluctuation)
function_of: Table[Nonlin | None] = view(Nonlin)
noise_of: Table[Noise | None] = view(Noise)
number_of: Table[Number | None] = view(Number)
outer_of: Table[OuterExpect | None] = view(OuterExpect)
product_of: Table[Product | None] = view(Product)
rename_of: Table[Rename | None] = view(Rename)
stack_of: Table[Stack | None] = view(Stack)
start_of: Table[Start | None] = view(Start)
starts_of: Table[Starts | None] = view(Starts)
twice_of: Table[Twice | None] = view(Twice)
the_fluctuation: Table[Fluctuation] = only(Fluctuation)
the_product: Table[Product] = only(Product)
the_start: Table[Start] = only(Start)
is_drawn: Table[bool] = Table(
    {Input: lambda node: True, Fluctuation: lambda node: True}, lambda node: False
)
"""Whether a node is a Gaussian scalar."""
