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

A node is written by the ``grammar`` of its class, a template that is printed and read by the types
of the fields: it has the word of the node, then fields in ``<>``: ``matmul <matrix><transpose?.T>
<vector>``; after ``?`` stands what is written around a field that is left out where it is empty,
``|`` for itself. One that ends in ``+ ...`` writes its tuples side by side, term by term. A field
is printed and read by what it is annotated with, so a node needs its template and nothing else.
Types are printed, and checked when the text is read. ``parse`` reads it back exactly. Source lines
(``Program.where``) are not printed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Protocol

from tpcalc.errors import ProgramError, short
from tpcalc.exponents import Ex
from tpcalc.functions import Atom, Call, Fn
from tpcalc.functions.expr import walk
from tpcalc.functions.numbers import number_text
from tpcalc.functions.parse import parse_number
from tpcalc.functions.rows import RowFn
from tpcalc.program.family import Family
from tpcalc.program.nodes import Node
from tpcalc.program.types import AXIS, Axes, Dim, Ref, Type, axes_text

# A name of these letters stands for itself; any other is quoted as in JSON.
_BARE = r"[A-Za-z_][A-Za-z0-9_.']*(?:\[[A-Za-z0-9_.,-]*\])?"
NAME = rf'"(?:[^"\\]|\\.)*"|{_BARE}'
_NUMBER = r"[-+]?[0-9][-+0-9eE./]*"
AXES = rf"\[{AXIS}:[0-9]{{1,18}}(?:,{AXIS}:[0-9]{{1,18}})*\]"
_MORE = " + ..."


@dataclass(frozen=True)
class Names:
    """What the words of a text stand for, while it is read."""

    fn: Callable[[str, int, int], Fn]
    ex: Callable[[str], Ex]
    families: dict[str, Family]
    row: Callable[[str], RowFn]

    def family(self, text: str) -> Family:
        """The family of a name."""
        name = quoted(text)
        if name not in self.families:
            raise ProgramError(
                f"the input {name!r} is not declared.",
                hint=f"Declared: {', '.join(self.families) or 'none'}.",
            )
        return self.families[name]


def name_text(name: str) -> str:
    """A name as it is written."""
    return name if re.fullmatch(_BARE, name) else json.dumps(name)


def quoted(text: str) -> str:
    """The name that a word writes."""
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text)).encode().decode()  # half a sign is none
    except (ValueError, RecursionError):
        raise ProgramError(f"the quoted name {short(text)!r} cannot be read.") from None


def listed(items: Iterable[object], write: Callable[[Any], str] = str) -> str:
    """Items with commas between them."""
    return ", ".join([write(item) for item in items])


def _items(text: str, read: Callable[[str], Any]) -> tuple[Any, ...]:
    return tuple(read(item.strip()) for item in text.split(",")) if text.strip() else ()


def read_axes(text: str) -> Axes:
    """Axes that are written in brackets."""
    pairs = (item.split(":") for item in text.strip("[]").split(",") if item)
    return tuple((name, int(size)) for name, size in pairs)


@dataclass(frozen=True)
class Field:
    """How what a field holds is matched, written and read."""

    pattern: str
    write: Callable[[Any], str]
    read: Callable[[str, Names], Any]


def _ref(ref: int) -> str:
    return f"%{ref}"


_REF = Field(r"%[0-9]{1,18}", _ref, lambda text, _: int(text[1:]))
_FIELDS = {
    "Ref": _REF,
    "tuple[Ref, ...]": Field(
        r"(?:%[0-9]{1,18}(?:, *%[0-9]{1,18})*)?",
        lambda refs: listed(refs, _ref),
        lambda text, _: _items(text, lambda item: int(item[1:])),
    ),
    "str": Field(NAME, name_text, lambda text, _: quoted(text)),
    "int": Field(r"[0-9]{1,18}", str, lambda text, _: int(text)),
    "Count": Field(
        "L|[1-9][0-9]*",
        lambda count: str(count or "L"),
        lambda text, _: 0 if text == "L" else int(text),
    ),
    "Number": Field(_NUMBER, number_text, lambda text, _: parse_number(text)),
    "int | None": Field(
        r"(?: [0-9]{1,18})?",
        lambda cell: "" if cell is None else f" {cell}",
        lambda text, _: int(text) if text else None,
    ),
    "tuple[Number, ...]": Field(
        rf"{_NUMBER}(?:, {_NUMBER})*",
        lambda numbers: listed(numbers, number_text),
        lambda text, _: _items(text, parse_number),
    ),
    "Axes": Field(rf"(?:{AXES})?", axes_text, lambda text, _: read_axes(text)),
    "tuple[int, ...]": Field(
        r"[0-9]{1,18}(?:, *[0-9]{1,18})*", listed, lambda text, _: _items(text, int)
    ),
    "tuple[str, ...]": Field(rf"{AXIS}(?:, *{AXIS})*", listed, lambda text, _: _items(text, str)),
    "tuple[tuple[str, str], ...]": Field(
        rf"{AXIS}>{AXIS}(?:, *{AXIS}>{AXIS})*",
        lambda pairs: listed(pairs, ">".join),
        lambda text, _: _items(text, lambda item: tuple(item.split(">"))),
    ),
    "Ex": Field(r".*?", str, lambda text, names: names.ex(text) if text else Ex()),
    "Fn": Field(r"\{[^{}]*\}", lambda fn: f"{{{fn.text}}}", lambda text, _: text[1:-1]),
    "RowFn": Field(AXIS, lambda row: row.name, lambda text, names: names.row(text)),
    "Family": Field(
        NAME, lambda family: name_text(family.name), lambda text, names: names.family(text)
    ),
}
# The items of fields that are written side by side.
_ITEMS = {
    "tuple[Number, ...]": Field(_NUMBER, number_text, lambda text, _: parse_number(text)),
    "tuple[Ref, ...]": _REF,
    "tuple[Ref | None, ...]": Field(
        r"(?:\*%[0-9]{1,18})?",
        lambda ref: "" if ref is None else f"*%{ref}",
        lambda text, _: int(text[2:]) if text else None,
    ),
    "tuple[tuple[str, ...], ...]": Field(
        rf"(?: over {AXIS}(?:, {AXIS})*)?",
        lambda axes: f" over {', '.join(axes)}" if axes else "",
        lambda text, _: _items(text.removeprefix(" over "), str),
    ),
}


# What is not written of a field that may be left out.
_EMPTY = (False, (), Ex())


def _optional(one: Field | None, around: str) -> Field:
    """A field that is written with words around it, or not at all."""
    before, _, after = around.partition("|")
    if one is None:  # a word alone
        return Field(f"(?:{re.escape(before)})?", lambda on: before if on else "", _said)
    start, end = len(before), -len(after) or None

    def write(value: Any) -> str:
        return "" if value in _EMPTY else f"{before}{one.write(value)}{after}"

    def read(text: str, names: Names) -> Any:
        return one.read(text[start:end], names)

    pattern = f"(?:{re.escape(before)}{one.pattern}{re.escape(after)})?"
    return Field(pattern, write, read)


def _said(text: str, _: Names) -> bool:
    return bool(text)


def _named(annotation: str) -> str:
    """An annotation by the names of the table."""
    return annotation.replace("LRef", "Ref").replace("Fraction | float", "Number")


class Form:
    """The template of one class of nodes."""

    def __init__(self, kind: type, extra: Mapping[str, Field]) -> None:
        template: str = kind.grammar  # type: ignore[attr-defined]
        self.kind, self.template = kind, template
        self.word, _, rest = template.partition(" ")
        self._many = rest.endswith(_MORE)
        table = _ITEMS if self._many else {**_FIELDS, **extra}
        types = {one.name: _named(str(one.type)) for one in fields(kind)}
        pieces = re.split(r"<(\w+)(?:\?([^>]*))?>", rest.removesuffix(_MORE))
        self._literals = pieces[::3]
        self._fields = [
            (name, table[types[name]] if word is None else _optional(table.get(types[name]), word))
            for name, word in zip(pieces[1::3], pieces[2::3], strict=True)
        ]
        pattern = re.escape(self._literals[0])
        for (_, one), after in zip(self._fields, self._literals[1:], strict=True):
            pattern += f"({one.pattern}){re.escape(after)}"
        self._pattern = re.compile(pattern)
        writes = [one.write for _, one in self._fields]
        self._writers = list(zip(writes, self._literals[1:], strict=True))
        self._optional = [one.name for one in fields(kind) if one.default == ()]
        self._counted = [name for name, text in types.items() if text == "tuple[Ref, ...]"]

    def write(self, node: Any) -> str:
        """A node as text."""
        values = [getattr(node, name) for name, _ in self._fields]
        if not self._many:
            return f"{self.word} {self._one(values)}"
        rows = zip(*[value or [()] * len(values[0]) for value in values], strict=True)
        return f"{self.word} {' + '.join([self._one(row) for row in rows])}"

    def _one(self, values: Iterable[Any]) -> str:
        parts = [self._literals[0]]
        for value, (write, after) in zip(values, self._writers, strict=True):
            parts += (write(value), after)
        return "".join(parts)

    def read(self, text: str, names: Names) -> Any:
        """The node that a text writes."""
        if not self._many:
            found = self._match(text, names)
        else:
            rows = [self._match(term, names) for term in text.split(" + ")]
            columns = {name: tuple(row[name] for row in rows) for name, _ in self._fields}
            found = {
                name: () if name in self._optional and not any(column) else column
                for name, column in columns.items()
            }
        if "fn" in found:
            arguments = {name: len(found[name]) for name in self._counted}
            scalars, forms = arguments.pop("scalars"), found.get("forms")
            vectors = max(forms) + 1 if forms else sum(arguments.values())
            found["fn"] = names.fn(found["fn"], vectors, scalars)
        return self.kind(**found)

    def _match(self, text: str, names: Names) -> dict[str, Any]:
        match = self._pattern.fullmatch(text)
        if match is None:
            raise ProgramError(
                f"{short(f'{self.word} {text}')!r} cannot be read.",
                hint=f"The form is: %INDEX : TYPE = {self.template}.",
            )
        pairs = zip(self._fields, match.groups(), strict=True)
        return {name: one.read(part, names) for (name, one), part in pairs}


_FORMS: dict[type, Form] = {}


def form_of(kind: type, extra: Mapping[str, Field] = MappingProxyType({})) -> Form:
    """The form of a class of nodes; ``extra`` are the kinds of fields that only its room has."""
    if kind not in _FORMS:
        _FORMS[kind] = Form(kind, extra)
    return _FORMS[kind]


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
