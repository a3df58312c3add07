"""The canonical text of a program: one line for each dimension class, input, node and output.

::

    tpcalc program 2
    dim n 1
    family x : n[k:2] mean 0, 0
    family W : n*n
    %0 : n = input x 1
    %1 : n*n = input W
    %2 : n = matmul %1 %0
    %3 : n = scale %2 n^(-1/2)
    %4 : n = map {tanh(x0)} (%3)
    %5 : () = moment {x0**2} (%4)
    output "second moment" %5

A node is written by the ``grammar`` of its class; types are printed, and checked when the text is
read. ``parse`` reads it back exactly. Source lines (``Program.where``) are not printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from tpcalc.errors import ProgramError
from tpcalc.exponents import Ex
from tpcalc.functions import Atom, Call, Fn
from tpcalc.functions.expr import walk
from tpcalc.functions.numbers import number_text
from tpcalc.program.family import Family
from tpcalc.program.grammar import form_of, listed, name_text
from tpcalc.program.nodes import Node
from tpcalc.program.types import Dim, Ref, Type

SCHEMA = 2
HEADER = "tpcalc program"


class Listing(Protocol):
    """What is written of a program."""

    @property
    def dims(self) -> tuple[Dim, ...]: ...
    @property
    def families(self) -> Mapping[str, Family]: ...
    @property
    def nodes(self) -> tuple[Node, ...]: ...
    @property
    def types(self) -> tuple[Type, ...]: ...
    @property
    def outputs(self) -> tuple[tuple[str, Ref], ...]: ...


def to_text(program: Listing) -> str:
    """The canonical text of a program.

    Example:
        >>> from tpcalc.program.program import Builder
        >>> print(to_text(Builder().finish()), end="")
        tpcalc program 2
        dim n 1
    """
    check_names(program.nodes)
    lines = [f"{HEADER} {SCHEMA}", *declared(program.dims, program.families.values())]
    shown = {type_: str(type_) for type_ in set(program.types)}
    for ref, (node, type_) in enumerate(zip(program.nodes, program.types, strict=True)):
        lines.append(f"%{ref} : {shown[type_]} = {form_of(type(node)).write(node)}")
    lines += [f"output {name_text(name)} %{ref}" for name, ref in program.outputs]
    return "\n".join(lines) + "\n"


def check_names(nodes: Iterable[Any]) -> None:
    """Check that a name stands for one function."""
    atoms: dict[str, Atom] = {}
    seen: set[Fn] = set()
    for node in nodes:
        fn = getattr(node, "fn", None)
        if fn is None or fn in seen:
            continue
        seen.add(fn)
        for part in walk(fn.expr):
            if isinstance(part, Call) and atoms.setdefault(part.atom.text, part.atom) != part.atom:
                raise ProgramError(
                    f"two different functions are called {part.atom.text!r}; the text of the "
                    "program could not tell them apart.",
                    hint="Give one of them another name.",
                )


def declared(dims: Iterable[Dim], families: Iterable[Family]) -> list[str]:
    """The lines of dimension classes and inputs."""
    lines = [f"dim {name_text(dim.name)} {number_text(dim.ratio)}" for dim in dims]
    return [*lines, *map(_family, families)]


def _family(family: Family) -> str:
    line = f"family {name_text(family.name)} : {family.type}"
    if family.law != "gaussian":
        line += f" {family.law}"
    line += f" along {family.along}" if family.along else ""
    if family.mean:
        line += f" mean {listed(family.mean, number_text)}"
    if family.cov is not None:
        line += f" cov {'; '.join(listed(row, number_text) for row in family.cov)}"
    if family.mark is not None:
        mark = family.mark
        line += f" param {name_text(mark.label)} {mark.role} {mark.layer}"
        line += f" rate {number_text(mark.rate)}" if mark.rate != 1 else ""
        line += f" speed n^({mark.speed})" if mark.speed != Ex() else ""
        line += f" start {number_text(mark.start)}" if mark.start != 1 else ""
        line += f" init n^({mark.init})" if mark.init is not None else ""
        line += f" group {name_text(mark.group)}" if mark.group else ""
        line += f" of {name_text(mark.whole)}" if mark.whole else ""
    return line
