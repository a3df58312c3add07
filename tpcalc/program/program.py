"""``Program``: a verified straight-line list of nodes, and the builder that makes one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tpcalc.errors import ProgramError, UnknownName
from tpcalc.program.nodes import Dim, Group, Node, Ref
from tpcalc.program.typing import Type, node_refs, type_of

__all__ = ["Builder", "Program"]


@dataclass(frozen=True)
class Program:
    """A Tensor Program: nodes in order of computation, with named outputs.

    Make one with ``Builder``, the DSL (``tp.program``) or ``parse``; they verify it.

    Args:
        dims: Dimension classes (each goes to infinity as ratio * n).
        groups: Gaussian groups of start vectors.
        nodes: The nodes; a node refers to earlier ones by index.
        outputs: Named results, in order.
        where: For each node the user's source line, or None. Not part of equality.
    """

    dims: tuple[Dim, ...]
    groups: tuple[Group, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, Ref], ...]
    where: tuple[str | None, ...] = field(default=(), compare=False, repr=False)

    @cached_property
    def types(self) -> tuple[Type, ...]:
        """The type of each node.

        Raises:
            ProgramError: A node is ill-typed; the message names it.
        """
        types: list[Type] = []
        dims = {dim.name: dim for dim in self.dims}
        groups = {group.name: group for group in self.groups}
        for index, node in enumerate(self.nodes):
            types.append(type_of(node, types, dims, groups, place=self.place(index)))
        return tuple(types)

    @cached_property
    def dim(self) -> Mapping[str, Dim]:
        """Dimension classes by name."""
        return {dim.name: dim for dim in self.dims}

    @cached_property
    def group(self) -> Mapping[str, Group]:
        """Gaussian groups by name."""
        return {group.name: group for group in self.groups}

    @cached_property
    def output(self) -> Mapping[str, Ref]:
        """Outputs by name."""
        return dict(self.outputs)

    def ref(self, name: str) -> Ref:
        """The node of a named output.

        Raises:
            UnknownName: With the nearest names.
        """
        if name not in self.output:
            raise UnknownName("output", name, self.output)
        return self.output[name]

    def place(self, ref: Ref) -> str:
        """A node for a message: its index, the outputs it carries, the user's line."""
        names = [name for name, at in self.outputs if at == ref][:1]
        line = self.where[ref] if ref < len(self.where) else None
        return f"%{ref}" + "".join(f" ({name})" for name in names) + (f" at {line}" if line else "")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical text, 64 hex digits."""
        from tpcalc.program.text import to_text

        return hashlib.sha256(to_text(self).encode()).hexdigest()

    def __str__(self) -> str:
        from tpcalc.program.text import to_text

        return to_text(self)


class Builder:
    """Builds a program node by node; equal nodes are shared, ill-typed ones refused at once."""

    def __init__(self, dims: Iterable[Dim] = (Dim("n"),)) -> None:
        self._dims: dict[str, Dim] = {dim.name: dim for dim in dims}
        self._groups: dict[str, Group] = {}
        self._nodes: list[Node] = []
        self._types: list[Type] = []
        self._where: list[str | None] = []
        self._known: dict[Node, Ref] = {}
        self._outputs: dict[str, Ref] = {}

    @staticmethod
    def copy(program: Program) -> Builder:
        """A builder that starts with all nodes of a program, at the same indices."""
        builder = Builder(program.dims)
        builder._groups = dict(program.group)
        builder._nodes = list(program.nodes)
        builder._types = list(program.types)
        builder._where = [*program.where, *[None] * (len(program.nodes) - len(program.where))]
        builder._known = {node: ref for ref, node in reversed(list(enumerate(program.nodes)))}
        builder._outputs = dict(program.outputs)
        return builder

    def dim(self, dim: Dim) -> None:
        """Declare a dimension class."""
        known = self._dims.setdefault(dim.name, dim)
        if known != dim:
            raise ProgramError(
                f"the dimension {dim.name!r} is declared twice, with ratios {known.ratio} and "
                f"{dim.ratio}."
            )

    def group(self, group: Group) -> None:
        """Declare a Gaussian group."""
        if self._groups.setdefault(group.name, group) != group:
            raise ProgramError(
                f"the Gaussian group {group.name!r} is declared twice, differently.",
                hint="Give the second one another name.",
            )

    def add(self, node: Node, where: str | None = None) -> Ref:
        """Append a node (or find the equal one) and return its index.

        Raises:
            ProgramError: The node is ill-typed.
        """
        found = self._known.get(node)
        if found is not None:
            return found
        place = f"%{len(self._nodes)}" + (f" at {where}" if where else "")
        self._types.append(type_of(node, self._types, self._dims, self._groups, place=place))
        self._nodes.append(node)
        self._where.append(where)
        self._known[node] = len(self._nodes) - 1
        return len(self._nodes) - 1

    def output(self, name: str, ref: Ref) -> None:
        """Name a result."""
        if self._outputs.setdefault(name, ref) != ref:
            raise ProgramError(
                f"the output {name!r} is named twice.", hint="Give the second one another name."
            )

    def type(self, ref: Ref) -> Type:
        """The type of a node."""
        return self._types[ref]

    def dim_of(self, name: str) -> Dim:
        """A declared dimension class."""
        return self._dims[name]

    def node(self, ref: Ref) -> Node:
        """The node at an index."""
        return self._nodes[ref]

    @property
    def outputs(self) -> Mapping[str, Ref]:
        """Outputs named so far."""
        return self._outputs

    def __len__(self) -> int:
        return len(self._nodes)

    def finish(self, *, keep_unused: bool = True) -> Program:
        """The program built so far; with ``keep_unused=False`` only what an output needs."""
        program = Program(
            tuple(self._dims.values()),
            tuple(self._groups.values()),
            tuple(self._nodes),
            tuple(self._outputs.items()),
            tuple(self._where),
        )
        program.__dict__["types"] = tuple(self._types)  # already checked node by node
        return program if keep_unused else prune(program)


def prune(program: Program) -> Program:
    """Drop the nodes that no output needs (and groups that lose all members)."""
    needed = [False] * len(program.nodes)
    for _, ref in program.outputs:
        needed[ref] = True
    for ref in range(len(program.nodes) - 1, -1, -1):
        if needed[ref]:
            for other in node_refs(program.nodes[ref]):
                needed[other] = True
    from tpcalc.program.rename import rename

    return rename(program, needed)


