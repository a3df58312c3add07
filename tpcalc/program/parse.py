"""Reading a program back from its canonical text (see ``text`` for the form)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache

from tpcalc.errors import ProgramError, ScaleError, TpcalcError
from tpcalc.functions import Fn
from tpcalc.functions.numbers import Number
from tpcalc.functions.parse import AtomOf, parse_fn, parse_number
from tpcalc.orders import Ex, parse_ex
from tpcalc.program.check import Checker
from tpcalc.program.nodes import (
    Dim,
    Group,
    InputMatrix,
    InputScalar,
    InputVector,
    LinComb,
    MatMul,
    Moment,
    Node,
    Nonlin,
    OuterNonlin,
    Ref,
    ScalarFn,
    Scale,
)
from tpcalc.program.program import Program
from tpcalc.program.text import HEADER, SCHEMA

__all__ = ["from_text", "header_version"]

_NAME = r'("(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z0-9_.]*(?:\[[A-Za-z0-9_.,-]*\])?)'
_FN = r"\{([^{}]*)\}"


def from_text(text: str, atoms: AtomOf) -> Program:
    r"""The program that a canonical text denotes; ``from_text(to_text(p), atoms) == p``.

    Args:
        text: What ``to_text`` prints. Blank lines and lines that start with ``#`` are skipped.
        atoms: ``atoms(name, params)``: the named function; raises ``UnknownName``.

    Raises:
        ProgramError: A line that cannot be read, or a program that is ill-typed; the message
            carries the line number.
        TpcalcError: From ``atoms`` (``UnknownName``, say), with the line number.

    Example:
        >>> from_text("tpcalc program 1\ndim n 1\n", lambda name, params: None).dims
        (Dim(name='n', ratio=Fraction(1, 1)),)
    """
    reader = _Reader(atoms)
    started = False
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        try:
            if started:
                reader.line(line)
            else:
                header_version(line)
                started = True
        except (ProgramError, ScaleError) as error:
            place = f"line {number}" + (f" ({error.where})" if error.where else "")
            raise ProgramError(error.message, where=place, hint=error.hint) from None
        except TpcalcError as error:  # from the catalogue of functions
            error.where = error.where or f"line {number}"
            raise
    if not started:
        raise ProgramError("an empty text is not a program.", where="line 1")
    return reader.finish()


def header_version(line: str) -> int:
    """The schema version of a text, from its first line.

    Raises:
        ProgramError: The line is no header, or of a version that this release does not read.
    """
    found = re.fullmatch(rf"{HEADER} ([0-9]+)", line)
    if found is None:
        raise ProgramError(
            f"{_shown(line)} is not the first line of a program.",
            hint=f"It must be '{HEADER} {SCHEMA}'. tp.parse reads what str(program) prints; a file "
            "that tp.save wrote is read by tp.load.",
        )
    if int(found[1]) != SCHEMA:
        raise ProgramError(
            f"the text has schema version {found[1]}; this release reads version {SCHEMA}.",
            hint="Read it with the release of tpcalc that wrote it, and print it again.",
        )
    return SCHEMA


def _shown(line: str) -> str:
    return repr(line if len(line) <= 60 else line[:57] + "...")


class _Reader:
    """Collects the parts of a program line by line."""

    def __init__(self, atoms: AtomOf) -> None:
        self._checker = Checker()
        self._nodes: list[Node] = []
        # A program repeats a few functions and exponents thousands of times.
        self._fn: Callable[[str, int, int], Fn] = cache(
            lambda text, vectors, scalars: parse_fn(text, vectors, scalars, atoms)
        )
        self._ex: Callable[[str], Ex] = cache(parse_ex)

    def line(self, line: str) -> None:
        found = _NODE.fullmatch(line)
        if found is not None:
            if int(found[1]) != len(self._nodes):
                raise ProgramError(
                    f"node %{found[1]} stands where %{len(self._nodes)} must come.",
                    hint="Nodes are numbered from %0 without gaps.",
                )
            node = self._node(found[2], found[3], line)
            self._checker.node(node, f"%{found[1]}")
            self._nodes.append(node)
            return
        word, _, rest = line.partition(" ")
        if word == "dim":
            name, ratio = _match(_DIM, rest, line, "dim NAME RATIO")
            self._checker.dim(Dim(_unquote(name), _exact(ratio)))
        elif word == "group":
            self._checker.group(_read_group(rest, line))
        elif word == "output":
            name, ref = _match(_OUTPUT, rest, line, "output NAME %REF")
            self._checker.output(_unquote(name), int(ref))
        else:
            raise ProgramError(
                f"{_shown(line)} is no dimension, group, node or output.",
                hint="A line starts with 'dim', 'group', '%INDEX =' or 'output'.",
            )

    def _node(self, word: str, rest: str, line: str) -> Node:
        reader = _READERS.get(word)
        if reader is None:
            raise ProgramError(
                f"there is no node called {word!r}.", hint=f"Known: {', '.join(_READERS)}."
            )
        pattern, form, build = reader
        return build(self, _match(pattern, rest, line, f"%INDEX = {word} {form}"))

    def finish(self) -> Program:
        checked = self._checker
        program = Program(
            tuple(checked.dims.values()),
            tuple(checked.groups.values()),
            tuple(self._nodes),
            tuple(checked.outputs.items()),
        )
        program.__dict__["types"] = tuple(checked.types)  # checked line by line
        return program

    def vector(self, parts: list[str]) -> Node:
        return InputVector(_unquote(parts[0]), int(parts[1]))

    def matrix(self, parts: list[str]) -> Node:
        return InputMatrix(_unquote(parts[0]), _unquote(parts[1]), _unquote(parts[2]), parts[3])

    def scalar(self, parts: list[str]) -> Node:
        return InputScalar(_unquote(parts[0]), parse_number(parts[1]), parse_number(parts[2]))

    def matmul(self, parts: list[str]) -> Node:
        return MatMul(int(parts[0]), int(parts[2]), parts[1] == ".T")

    def nonlin(self, parts: list[str]) -> Node:
        vectors, scalars = _ref_lists(parts[1], 2)
        return Nonlin(self._fn(parts[0], len(vectors), len(scalars)), vectors, scalars)

    def moment(self, parts: list[str]) -> Node:
        vectors, scalars = _ref_lists(parts[1], 2)
        return Moment(self._fn(parts[0], len(vectors), len(scalars)), vectors, scalars)

    def outer(self, parts: list[str]) -> Node:
        rows, cols, scalars = _ref_lists(parts[1], 3)
        fn = self._fn(parts[0], len(rows) + len(cols), len(scalars))
        return OuterNonlin(fn, rows, cols, scalars, int(parts[2]))

    def scalar_fn(self, parts: list[str]) -> Node:
        (scalars,) = _ref_lists(parts[1], 1)
        return ScalarFn(self._fn(parts[0], 0, len(scalars)), scalars)

    def scale(self, parts: list[str]) -> Node:
        return Scale(int(parts[0]), self._ex(parts[1]), self._ex(parts[2]))

    def lincomb(self, parts: list[str]) -> Node:
        numbers: list[Number] = []
        scalars: list[Ref | None] = []
        vectors: list[Ref] = []
        for term in parts[0].split(" + "):
            found = _TERM.fullmatch(term)
            if found is None:
                raise ProgramError(
                    f"{_shown(term)} is not a term of a linear combination.",
                    hint="A term is NUMBER*%VECTOR or NUMBER*%SCALAR*%VECTOR.",
                )
            numbers.append(parse_number(found[1]))
            scalars.append(None if found[2] is None else int(found[2]))
            vectors.append(int(found[3]))
        return LinComb(tuple(numbers), tuple(scalars), tuple(vectors))


def _match(pattern: re.Pattern[str], rest: str, line: str, form: str) -> list[str]:
    found = pattern.fullmatch(rest)
    if found is None:
        raise ProgramError(f"{_shown(line)} cannot be read.", hint=f"The form is: {form}.")
    return list(found.groups())


def _unquote(name: str) -> str:
    if not name.startswith('"'):
        return name
    try:
        return str(json.loads(name))
    except ValueError:
        raise ProgramError(f"the quoted name {_shown(name)} cannot be read.") from None


def _exact(text: str) -> Fraction:
    number = parse_number(text)
    if isinstance(number, Fraction):
        return number
    raise ProgramError(f"the ratio {text} must be exact.", hint="Write it as 1/2, not 0.5.")


def _read_group(rest: str, line: str) -> Group:
    form = "group NAME on DIM mean NUMBERS [cov ROW; ROW; ...]"
    name, dim, mean, cov = _match(_GROUP, rest, line, form)
    rows = None if cov is None else tuple(_numbers(row) for row in cov.split(";"))
    return Group(_unquote(name), _unquote(dim), _numbers(mean), rows)


def _numbers(text: str) -> tuple[Number, ...]:
    return tuple(parse_number(part.strip()) for part in text.split(","))


def _ref_lists(text: str, count: int) -> list[tuple[Ref, ...]]:
    """Lists of nodes separated by ``;``; lists left out at the end are empty."""
    lists: list[tuple[Ref, ...]] = []
    for part in text.split(";"):
        refs: list[Ref] = []
        for item in part.split(",") if part.strip() else ():
            found = _REF.fullmatch(item.strip())
            if found is None:
                raise ProgramError(
                    f"{_shown(item.strip())} is not a node.", hint="Nodes are written %0, %1, ..."
                )
            refs.append(int(found[1]))
        lists.append(tuple(refs))
    if len(lists) > count:
        raise ProgramError(f"({text}) holds {len(lists)} lists of nodes; at most {count} fit here.")
    return lists + [()] * (count - len(lists))


_NODE = re.compile(r"%([0-9]+) = ([a-z]+) (.*)")
_REF = re.compile(r"%([0-9]+)")
_TERM = re.compile(r"([^*%]+)\*(?:%([0-9]+)\*)?%([0-9]+)")
_DIM = re.compile(rf"{_NAME} (\S+)")
_GROUP = re.compile(rf"{_NAME} on {_NAME} mean ([0-9eE+./, -]+)(?: cov ([0-9eE+./,; -]+))?")
_OUTPUT = re.compile(rf"{_NAME} %([0-9]+)")

_FORMS: tuple[tuple[str, str, str, Callable[[_Reader, list[str]], Node]], ...] = (
    ("vector", rf"{_NAME} ([0-9]+)", "GROUP MEMBER", _Reader.vector),
    ("matrix", rf"{_NAME} {_NAME} {_NAME} ([a-z]+)", "NAME ROWS COLS LAW", _Reader.matrix),
    ("scalar", rf"{_NAME} (\S+) std (\S+)", "NAME VALUE std STD", _Reader.scalar),
    ("matmul", r"%([0-9]+)(\.T)? %([0-9]+)", "%MATRIX[.T] %VECTOR", _Reader.matmul),
    ("nonlin", rf"{_FN} \(([^()]*)\)", "{FUNCTION} (VECTORS; SCALARS)", _Reader.nonlin),
    ("lincomb", r"(.+)", "NUMBER*%VECTOR + NUMBER*%SCALAR*%VECTOR + ...", _Reader.lincomb),
    ("moment", rf"{_FN} \(([^()]*)\)", "{FUNCTION} (VECTORS; SCALARS)", _Reader.moment),
    (
        "outer",
        rf"{_FN} \(([^()]*)\) %([0-9]+)",
        "{FUNCTION} (ROWS; COLS; SCALARS) %VECTOR",
        _Reader.outer,
    ),
    ("scalarfn", rf"{_FN} \(([^()]*)\)", "{FUNCTION} (SCALARS)", _Reader.scalar_fn),
    ("scale", r"%([0-9]+) n\^\((.*)\) L\^\((.*)\)", "%OF n^(POWER) L^(POWER)", _Reader.scale),
)
_READERS = {word: (re.compile(pattern), form, build) for word, pattern, form, build in _FORMS}
