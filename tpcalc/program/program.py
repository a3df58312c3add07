"""``Program``: a verified straight-line list of nodes, the builder that makes one, parts of one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

from tpcalc import checks
from tpcalc.errors import ProgramError, UnknownName, UsageError
from tpcalc.names import WITHOUT, cell_name, fits, is_wanted
from tpcalc.program.base import cone, input_of, leaf_of, references, renumbered, repeat_of, scale_of
from tpcalc.program.check import Checker
from tpcalc.program.family import Family
from tpcalc.program.nodes import Node
from tpcalc.program.text import to_text
from tpcalc.program.types import Dim, Ref, Type
from tpcalc.shown import Shown


@dataclass(frozen=True)
class Program(Shown):
    """A Tensor Program: nodes in order of computation, with named outputs.

    Make one with ``Builder``, the DSL (``tp.program``) or ``parse``; they verify it.

    Args:
        dims: Dimension classes (each goes to infinity as ratio * n).
        nodes: The nodes; a node refers to earlier ones by index.
        outputs: Named results, in order.
        where: For each node the user's source line, or None. Not part of equality.
        unused: Names of inputs that were declared and that no output needs. Not part of equality.

    Example:
        >>> from tpcalc.program.nodes import Data
        >>> builder = Builder()
        >>> builder.output("eta", builder.add(Data("eta", (2,))))
        >>> builder.finish().outputs
        (('eta', 0),)
    """

    dims: tuple[Dim, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, Ref], ...]
    where: tuple[str | None, ...] = field(default=(), compare=False, repr=False)
    unused: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @staticmethod
    def checked(checker: Checker, where: tuple[str | None, ...] = ()) -> Program:
        """The program of what a checker has taken."""
        checker.finish()
        program = Program(
            tuple(checker.dims.values()),
            tuple(checker.nodes),
            tuple(checker.outputs.items()),
            where,
        )
        program.__dict__["types"] = tuple(checker.types)  # checked part by part
        return program

    @cached_property
    def types(self) -> tuple[Type, ...]:
        """The type of each node; computing them checks the whole program.

        Raises:
            ProgramError: A declaration, node or output that does not fit; the message names it.
        """
        checker = Checker()
        for dim in self.dims:
            checker.dim(dim)
        for index, node in enumerate(self.nodes):
            checker.node(node, self.place(index))
        for name, ref in self.outputs:
            checker.output(name, ref)
        checker.finish()
        return tuple(checker.types)

    @cached_property
    def has_blocks(self) -> bool:
        """Whether any of its values has finite axes."""
        return any(found.axes for found in self.types)

    @cached_property
    def repeats(self) -> tuple[Ref, ...]:
        """The nodes that close a block which is repeated along the depth."""
        return tuple(ref for ref, node in enumerate(self.nodes) if repeat_of(node) is not None)

    @cached_property
    def dim(self) -> Mapping[str, Dim]:
        """Dimension classes by name."""
        return {dim.name: dim for dim in self.dims}

    @cached_property
    def families(self) -> Mapping[str, Family]:
        """What is drawn at random, by name, in order of first use."""
        nodes = (node.family for node in map(input_of, self.nodes) if node is not None)
        return {family.name: family for family in nodes}

    @cached_property
    def groups(self) -> tuple[Family, ...]:
        """The families of start vectors."""
        return tuple(one for one in self.families.values() if len(one.width) == 1)

    @cached_property
    def group(self) -> Mapping[str, Family]:
        """The families of start vectors by name."""
        return {family.name: family for family in self.groups}

    @cached_property
    def inputs(self) -> Mapping[str, Ref]:
        """Leaves by name, the cells of a family as ``name[index]``."""
        leaves = enumerate(map(leaf_of, self.nodes))
        return {node.name: ref for ref, node in leaves if node is not None}

    @cached_property
    def output(self) -> Mapping[str, Ref]:
        """Outputs by name."""
        return dict(self.outputs)

    def ref(self, name: str) -> Ref:
        """The node of a named output.

        Raises:
            UnknownName: With the nearest names.
        """
        checks.one_of("output", name, self.output)
        return self.output[name]

    def place(self, ref: Ref) -> str:
        """A node for a message: its index, the outputs it carries, the user's line."""
        name, line = self._output_of.get(ref), self.line_of(ref)
        return f"%{ref}" + (f" ({name})" if name else "") + (f" at {line}" if line else "")

    def line_of(self, ref: Ref) -> str | None:
        """The user's line that a node comes from."""
        return self.where[ref] if ref < len(self.where) else None

    @cached_property
    def _output_of(self) -> Mapping[Ref, str]:
        """The first output that names each node."""
        return {ref: name for name, ref in reversed(self.outputs)}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its numbers should know of its start vectors."""
        return tuple(
            f"the covariance of {group.name} was given with the smallest eigenvalue "
            f"{-group.moved:.3g}; that is within rounding of its entries, and it counts as 0"
            for group in self.groups
            if group.moved
        )

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols in its powers of n, and ``"L"`` where there are powers of the depth."""
        found: set[str] = set()
        for node in map(scale_of, self.nodes):
            if node is not None:
                found |= node.n_power.symbols | node.depth_power.symbols
                if node.depth_power.terms:
                    found.add("L")
        return frozenset(found)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical text, 64 hex digits."""
        return hashlib.sha256(to_text(self).encode()).hexdigest()

    def __str__(self) -> str:
        return to_text(self)


class Builder:
    """Builds a program node by node; equal nodes are shared, ill-typed ones refused at once."""

    def __init__(self, dims: Iterable[Dim] = (Dim("n"),)) -> None:
        self._checker = Checker()
        self._where: list[str | None] = []
        self.line: str | None = None
        self._known: dict[Node, Ref] = {}
        for dim in dims:
            self.dim(dim)

    @staticmethod
    def copy(program: Program) -> Builder:
        """A builder that starts with all nodes of a program, at the same indices."""
        builder = Builder(program.dims)
        for ref, node in enumerate(program.nodes):
            builder._checker.node(node, program.place(ref))
            builder._known.setdefault(node, ref)
        builder._where = [*program.where, *[None] * (len(program.nodes) - len(program.where))]
        for name, ref in program.outputs:
            builder.output(name, ref)
        return builder

    def dim(self, dim: Dim) -> None:
        """Declare a dimension class."""
        if self._checker.dims.get(dim.name) != dim:
            self._checker.dim(dim)

    def add(self, node: Node, where: str | None = None) -> Ref:
        """Append a node (or find the equal one) and return its index."""
        found = self._known.get(node)
        if found is not None:
            return found
        where = where or self.line
        place = f"%{len(self._checker.nodes)}" + (f" at {where}" if where else "")
        self._checker.node(node, place)
        self._where.append(where)
        self._known[node] = len(self._checker.nodes) - 1
        return len(self._checker.nodes) - 1

    def output(self, name: str, ref: Ref) -> None:
        """Name a result."""
        if self._checker.outputs.get(name) != ref:
            self._checker.output(name, ref)

    def type(self, ref: Ref) -> Type:
        """The type of a node."""
        return self._checker.types[ref]

    def dim_of(self, name: str) -> Dim:
        """A declared dimension class."""
        return self._checker.dims[name]

    def node(self, ref: Ref) -> Node:
        """The node at an index."""
        return self._checker.nodes[ref]

    def line_of(self, ref: Ref) -> str | None:
        """The user's line that a node comes from."""
        return self._where[ref]

    @property
    def outputs(self) -> Mapping[str, Ref]:
        """Outputs named so far."""
        return self._checker.outputs

    def __len__(self) -> int:
        return len(self._checker.nodes)

    def finish(self, *, keep_unused: bool = True) -> Program:
        """The program built so far; with ``keep_unused=False`` only what an output needs."""
        program = Program.checked(self._checker, tuple(self._where))
        return program if keep_unused else prune(program)


def prune(program: Program) -> Program:
    """Drop the nodes that no output needs."""
    tops = {ref for _, ref in program.outputs}
    keep = cone(program.nodes, tops)
    for ref in program.repeats:  # a value of a repetition says nothing without its block
        if any(keep[other] for other in references(program.nodes[ref])):
            keep = cone(program.nodes, tops := {*tops, ref})
    kept = [ref for ref, needed in enumerate(keep) if needed]
    new = {ref: index for index, ref in enumerate(kept)}
    where = program.where or (None,) * len(program.nodes)
    pruned = Program(
        program.dims,
        tuple(renumbered(program.nodes[ref], new.__getitem__) for ref in kept),
        tuple((name, new[ref]) for name, ref in program.outputs),
        tuple(where[ref] for ref in kept),
        (*program.unused, *(name for name, ref in program.inputs.items() if not keep[ref])),
    )
    pruned.__dict__["types"] = tuple(program.types[ref] for ref in kept)  # without indices
    return pruned


def cells(program: Program, name: str, outputs: Sequence[str] | None = None) -> list[str]:
    """The names of the cells of an output, or of those that are wanted."""
    axes = program.types[program.ref(name)].axes
    found = [cell_name(name, cell) for cell in product(*(range(size) for _, size in axes))]
    return [own for own in found if outputs is None or is_wanted((name, own), outputs)]


def selected(program: Program, outputs: Sequence[str] | None) -> Program:
    """The program with the outputs that are wanted, and what they need."""
    if not program.outputs:
        raise ProgramError("the program has no outputs.", hint="Name results with t.output.")
    if outputs is None:
        return program
    known = [cell for name, _ in program.outputs for cell in (name, *cells(program, name))]
    for pattern in outputs:
        own = pattern.removeprefix(WITHOUT)
        if not any(fits(cell, own) for cell in known):
            raise UnknownName("output", own, known)
    kept = tuple((name, ref) for name, ref in program.outputs if cells(program, name, outputs))
    if not kept:
        raise UsageError("outputs leaves none of the outputs.", hint="Leave fewer of them out.")
    return prune(replace(program, outputs=kept))


def restricted(program: Program, names: Iterable[str]) -> Program:
    """The program with some of its outputs, in its own order, and what they need."""
    wanted = set(names)
    kept = tuple(output for output in program.outputs if output[0] in wanted)
    return prune(replace(program, outputs=kept))


def matching(names: Sequence[str], wanted: bool | Sequence[str]) -> list[str]:
    """The names that are wanted: all, none, or those that fit a pattern."""
    if isinstance(wanted, bool):
        return list(names) if wanted else []
    return [name for name in names if is_wanted((name,), wanted)]
