"""The text of a limit graph: as that of a program, with targets in place of outputs.

::

    tpcalc limit 1
    dim n 1
    family u : n mean 0
    family W : n*n
    %0 : n = start u 0
    %1 : n = product W %0
    %2 : () = expect {tanh(x0)**2} (%1)
    target f n^(-1/2) %2
    target h n^(0) %1 moments 0 %2

``0`` stands for a target that vanishes. A line ``apart %3 %7`` names two fluctuations that may be
correlated and are drawn independently.
"""

from __future__ import annotations

import re
from fractions import Fraction

from tpcalc.functions import Atom
from tpcalc.functions.indicator import AT_ZERO
from tpcalc.functions.numbers import Number
from tpcalc.functions.parse import AtomOf
from tpcalc.limit.graph import LimitGraph, LNode, LRef, Root, Rows, Start, Target, Twice
from tpcalc.program.base import Table, input_of
from tpcalc.program.family import Family
from tpcalc.program.parse import Reader, kind_of, no_rows, read_lines
from tpcalc.program.text import (
    NAME,
    Field,
    Form,
    Names,
    check_names,
    declared,
    form_of,
    name_text,
    quoted,
)
from tpcalc.program.types import Axes, Type

__all__ = ["from_text", "to_text"]

HEADER, SCHEMA = "tpcalc limit", 1
_ROOTS = (Start, Rows, Twice)


def to_text(graph: LimitGraph) -> str:
    """The text of a limit graph; ``from_text`` reads it back exactly."""
    check_names(graph.nodes)
    laws = {name: "orthogonal" for name in graph.orthogonal}
    axes = dict(graph.matrix_axes)
    matrices = [
        Family(name, (rows, cols), axes.get(name, ()), laws.get(name, "gaussian"))
        for name, rows, cols in graph.matrices
    ]
    drawn = (node.family for node in map(input_of, graph.nodes) if node is not None)
    families = (*graph.groups, *matrices, *dict.fromkeys(drawn))
    lines = [f"{HEADER} {SCHEMA}", *declared(graph.dims, families)]
    for ref, (node, dim) in enumerate(zip(graph.nodes, graph.vector_dim, strict=True)):
        type_ = Type(() if dim is None else (dim,), graph.axes[ref] if graph.axes else ())
        lines.append(f"%{ref} : {type_} = {_form(type(node)).write(node)}")
    for name, target in graph.targets:
        line = f"target {name_text(name)} n^({target.power}) {_at(target.node)}"
        if target.moments is not None:
            line += f" moments {' '.join(map(_at, target.moments))}"
        lines.append(line)
    lines += [f"apart %{a} %{b}" for a, b in sorted(graph.apart)]
    return "\n".join(lines) + "\n"


def from_text(text: str, atoms: AtomOf) -> LimitGraph:
    """The limit graph that a text denotes.

    Raises:
        ProgramError: A line that cannot be read; the message carries its number.
    """

    def known(name: str, params: tuple[Number, ...]) -> Atom:
        # At a kink a limit asks where its argument is 0, which no program does.
        return AT_ZERO if name == AT_ZERO.name else atoms(name, params)

    reader = _Reader(known, no_rows)
    read_lines(text, reader, HEADER, SCHEMA)
    return reader.graph()


def _at(ref: LRef | None) -> str:
    return "0" if ref is None else f"%{ref}"


def _ref(text: str) -> LRef | None:
    return None if text == "0" else int(text[1:])


def _form(kind: type) -> Form:
    return form_of(kind, _EXTRA)


def _written(root: Root) -> str:
    return form_of(type(root)).write(root)


_root_text: Table[str] = Table({str: lambda name: f"matrix {name_text(name)}"}, _written)


def _root(text: str, names: Names) -> Root:
    word, _, rest = text.partition(" ")
    if word == "matrix":
        return quoted(rest)
    found: Root = form_of(_ROOT_WORDS[word]).read(rest, names)
    return found


_EXTRA = {"Root": Field(r"[a-z]+ [^()]+?", _root_text, _root)}
_ROOT_WORDS = {form_of(kind).word: kind for kind in _ROOTS}
_WORDS = {_form(kind).word: kind for kind in LNode.__args__}
_TARGET = re.compile(
    rf"({NAME}) n\^\(([-0-9/]+)\) (0|%[0-9]+)(?: moments (0|%[0-9]+) (0|%[0-9]+))?"
)
_APART = re.compile(r"%([0-9]+) %([0-9]+)")


class _Reader(Reader):
    """Collects a limit graph line by line."""

    def __init__(self, *catalogue: object) -> None:
        super().__init__(*catalogue)  # type: ignore[arg-type]
        self._nodes: list[LNode] = []
        self._dims: list[str | None] = []
        self._axes: list[Axes] = []
        self._targets: list[tuple[str, Target]] = []
        self._apart: set[tuple[LRef, LRef]] = set()
        del self.parts["output"]
        form = "target NAME n^(POWER) %NODE [moments %NODE %NODE]"
        self.parts["target"] = (_TARGET, form, self._target)
        self.parts["apart"] = (_APART, "apart %NODE %NODE", self._two)

    def _node(self, index: str, type_: str, word: str, rest: str) -> None:
        self._nodes.append(_form(kind_of(word, _WORDS)).read(rest, self.names))
        width, _, inside = type_.removesuffix("]").partition("[")
        pairs = (pair.split(":") for pair in inside.split(",") if pair)
        self._dims.append(width if width not in ("", "()") else None)
        self._axes.append(tuple((name, int(size)) for name, size in pairs))

    def _target(self, name: str, power: str, node: str, mean: str, square: str) -> None:
        moments = None if mean is None else (_ref(mean), _ref(square))
        self._targets.append((quoted(name), Target(Fraction(power), _ref(node), moments)))

    def _two(self, one: str, other: str) -> None:
        self._apart.add((int(one), int(other)))

    def graph(self) -> LimitGraph:
        """The graph."""
        families = self.checker.families.values()
        matrices = [family for family in families if len(family.width) == 2]
        return LimitGraph(
            tuple(self._nodes),
            tuple(self._targets),
            tuple(self._dims),
            tuple(self.checker.dims.values()),
            tuple(family for family in families if len(family.width) == 1),
            tuple((family.name, *family.width) for family in matrices),  # type: ignore[misc]
            frozenset(family.name for family in matrices if family.law == "orthogonal"),
            frozenset(self._apart),
            tuple(self._axes) if any(self._axes) else (),
            tuple((family.name, family.axes) for family in matrices if family.axes),
        )
