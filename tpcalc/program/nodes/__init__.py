"""The node types of a Tensor Program: frozen records, one file each.

A file holds the record, its line of ``grammar`` and its rule of types; everything else that is said
of all nodes (references, text, JSON, equality) is read off the fields. A node refers to earlier
nodes by their index (``Ref``). Powers of the width and of the depth are written out in ``Scale``;
nothing else carries one.
"""

from __future__ import annotations

from tpcalc.program.family import Family as Family
from tpcalc.program.nodes.data import Data as Data
from tpcalc.program.nodes.input import Input as Input
from tpcalc.program.nodes.input import members as members
from tpcalc.program.nodes.lincomb import LinComb as LinComb
from tpcalc.program.nodes.matmul import MatMul as MatMul
from tpcalc.program.nodes.moment import Moment as Moment
from tpcalc.program.nodes.nonlin import Nonlin as Nonlin
from tpcalc.program.nodes.outer import OuterNonlin as OuterNonlin
from tpcalc.program.nodes.rename import Rename as Rename
from tpcalc.program.nodes.repeat import Carry as Carry
from tpcalc.program.nodes.repeat import Repeat as Repeat
from tpcalc.program.nodes.row import RowNonlin as RowNonlin
from tpcalc.program.nodes.scale import Scale as Scale
from tpcalc.program.nodes.stack import Stack as Stack
from tpcalc.program.types import Dim as Dim
from tpcalc.program.types import Kind as Kind
from tpcalc.program.types import Ref as Ref
from tpcalc.program.types import Type as Type

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
