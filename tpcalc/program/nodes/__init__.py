"""The node types of a Tensor Program: frozen records, one file each.

A file holds the record, its line of ``grammar`` and its rule of types; everything else that is said
of all nodes (references, text, JSON, equality) is read off the fields. A node refers to earlier
nodes by their index (``Ref``). Powers of the width and of the depth are written out in ``Scale``;
nothing else carries one.
"""

from __future__ import annotations

from tpcalc.program.family import Family
from tpcalc.program.nodes.data import Data
from tpcalc.program.nodes.input import Input, members
from tpcalc.program.nodes.lincomb import LinComb
from tpcalc.program.nodes.matmul import MatMul
from tpcalc.program.nodes.moment import Moment
from tpcalc.program.nodes.nonlin import Nonlin
from tpcalc.program.nodes.outer import OuterNonlin
from tpcalc.program.nodes.rename import Rename
from tpcalc.program.nodes.repeat import Carry, Repeat
from tpcalc.program.nodes.row import RowNonlin
from tpcalc.program.nodes.scale import Scale
from tpcalc.program.nodes.stack import Stack
from tpcalc.program.types import Dim, Kind, Ref, Type

__all__ = [
    "NODE_TYPES",
    "Carry",
    "Data",
    "Dim",
    "Family",
    "Input",
    "Kind",
    "LinComb",
    "MatMul",
    "Moment",
    "Node",
    "Nonlin",
    "OuterNonlin",
    "Ref",
    "Rename",
    "Repeat",
    "RowNonlin",
    "Scale",
    "Stack",
    "Type",
    "members",
]

Node = (
    Data
    | Input
    | Rename
    | Stack
    | MatMul
    | Nonlin
    | RowNonlin
    | LinComb
    | Moment
    | OuterNonlin
    | Scale
    | Carry
    | Repeat
)

NODE_TYPES: tuple[type[Node], ...] = Node.__args__
