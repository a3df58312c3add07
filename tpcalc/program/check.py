"""``Checker``: what a program must satisfy, checked part by part in its order."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from tpcalc.doors.budget import spend_nodes
from tpcalc.errors import ProgramError
from tpcalc.functions.numbers import is_finite
from tpcalc.program.base import Table, input_of, leaf_of, references
from tpcalc.program.family import Family, check_family
from tpcalc.program.nodes import NODE_TYPES, Carry, Data, Input, Node, Repeat
from tpcalc.program.types import Dim, Kind, Ref, Type, Typing, bare

_IS_NODE: Table[bool] = Table(dict.fromkeys(NODE_TYPES, lambda node: True), lambda node: False)

MANY = 2**12  # nodes
LARGE = 10**5  # entries of a value


class Checker:
    """Takes the parts of a program one after the other and refuses the first that does not fit."""

    def __init__(self) -> None:
        self.dims: dict[str, Dim] = {}
        self.families: dict[str, Family] = {}
        self.nodes: list[Node] = []
        self.types: list[Type] = []
        self.outputs: dict[str, Ref] = {}
        self.within: dict[Ref, Ref] = {}
        self._open: Ref | None = None  # the carry of the block that is being written
        self._leaves: set[tuple[str, int | None]] = set()

    def dim(self, dim: Dim) -> None:
        """Take a dimension class."""
        where = f"dimension {dim.name!r}"
        if not bare(dim.name):
            raise ProgramError("a dimension class is called by a word.", where=where)
        if not is_finite(dim.ratio) or dim.ratio <= 0:
            raise ProgramError(
                f"the ratio {dim.ratio} is not above 0: a dimension class grows as ratio * n.",
                where=where,
            )
        if dim.name in self.dims:
            raise ProgramError(
                f"declared twice, with ratios {self.dims[dim.name].ratio} and {dim.ratio}.",
                where=where,
                hint="Give the second one another name.",
            )
        self.dims[dim.name] = dim

    def family(self, family: Family) -> None:
        """Take a family of inputs, where it is not there already."""
        known = self.families.get(family.name)
        if known is family:
            return
        if known is not None and known != family:
            same = known.type == family.type
            how = "with another law" if same else f"as {known.type} and as {family.type}"
            raise ProgramError(
                f"the input {family.name!r} is declared twice, {how}; one name stands for one "
                "random object.",
                hint="Use the first one, or give the second another name.",
            )
        if known is None:
            check_family(family, tuple(self.dims))
            if (family.name, None) in self._leaves:
                raise _twice(family.name)
            self.families[family.name] = family

    def node(self, node: Node, place: str) -> Type:
        """Take a node; returns its type."""
        before = Typing(self.types, place)
        if not _IS_NODE(node):
            raise before.fail(f"{type(node).__name__} is not a node of the language.")
        for ref in references(node):
            if not 0 <= ref < len(self.types):
                raise before.fail(f"%{ref} is not an earlier node.")
        if (leaf := leaf_of(node)) is not None:
            self._leaf(leaf, before)
        count = len(self.nodes)
        if count >= MANY and not count & (count - 1):  # a loop of the user may never end
            spend_nodes(f"a program of more than {count} nodes", count)
        found = node.type(before)
        cells = prod(size for _, size in found.axes)
        if cells > LARGE:
            spend_nodes(f"a value of {cells} entries", cells)
        block = self._block(node, before)
        if block is not None:
            self.within[len(self.nodes)] = block
        self.nodes.append(node)
        self.types.append(found)
        return found

    def _block(self, node: Node, before: Typing) -> Ref | None:
        """The block that a node belongs to, None outside of all."""
        placed = _PLACED(node)
        if placed is not None:
            return placed(self, node, before)
        if not self.within:
            return None
        blocks = {self.within[ref] for ref in references(node) if ref in self.within}
        self._check_open(blocks, before)
        return next(iter(blocks), None)

    def _check_open(self, blocks: set[Ref], before: Typing) -> None:
        for ref in blocks - {self._open}:
            raise before.fail(
                f"it takes a value of one repetition of the block that %{ref} opens.",
                hint="What leaves a block is what it carries; a value of every repetition can be "
                "an output.",
            )

    def _opened(self, node: Carry, before: Typing) -> Ref:
        if self._open is not None:
            raise before.fail(
                f"a block is repeated inside the one that %{self._open} opens.",
                hint="Close that one first; one block holds as many layers as it needs.",
            )
        if node.count < 0 or not bare(node.layer):
            raise before.fail(f"{node.layer!r} is repeated {node.count} times.",
                              hint="A block is repeated at least once.")  # fmt: skip
        self._open = len(self.nodes)
        return self._open

    def _closed(self, node: Repeat, before: Typing) -> None:
        if self._open is None or node.carry != self._open:
            raise before.fail(f"%{node.carry} is not the carry of the block that is open.")
        self._open = None

    def _drawn(self, node: Input, before: Typing) -> Ref | None:
        if not node.family.along:
            return None
        if self._open is None:
            raise before.fail(
                f"{node.name!r} is drawn anew along the depth, outside of a repeated block.",
                hint="It stands between a carry and its repeat.",
            )
        return self._open

    def finish(self) -> None:
        """Check that nothing is left open."""
        if self._open is not None:
            raise ProgramError(
                "a block is repeated from here on and has no end.",
                where=f"%{self._open}",
                hint="A repeat closes it: %INDEX : TYPE = repeat CARRY to NEXT.",
            )

    def _leaf(self, node: Input | Data, before: Typing) -> None:
        """Check that a name stands for one thing, and stands there once."""
        drawn = input_of(node)
        leaf = (node.name, None) if drawn is None else (drawn.family.name, drawn.cell)
        try:
            if drawn is not None:
                self.family(drawn.family)
            if leaf in self._leaves or (leaf[0] in self.families) == (drawn is None):
                raise _twice(node.name)
        except ProgramError as error:
            place = before.place + (f" ({error.where})" if error.where else "")
            raise ProgramError(error.message, where=place, hint=error.hint) from None
        self._leaves.add(leaf)

    def output(self, name: str, ref: Ref) -> None:
        """Take a named result."""
        where = f"output {name!r}"
        if not name:
            raise ProgramError("an output needs a name.", where=where)
        if name in self.outputs:
            raise ProgramError(
                "named twice.", where=where, hint="Give the second one another name."
            )
        if not 0 <= ref < len(self.types):
            raise ProgramError(f"%{ref} is not a node of the program.", where=where)
        if self.types[ref].kind is Kind.MATRIX:
            raise ProgramError(
                f"%{ref} is a matrix, and the limit of a matrix is not a random variable.",
                where=where,
                hint="Name a product of it with a vector.",
            )
        self.outputs[name] = ref


_PLACED: Table[Callable[[Checker, Any, Typing], Ref | None] | None] = Table(
    {
        Carry: lambda node: Checker._opened,
        Repeat: lambda node: Checker._closed,
        Input: lambda node: Checker._drawn,
    },
    lambda node: None,
)


def _twice(name: str) -> ProgramError:
    return ProgramError(
        f"the input {name!r} is declared twice; one name stands for one object.",
        hint="Use the first one, or give the second another name.",
    )
