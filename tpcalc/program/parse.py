"""Reading a program back from its canonical text (see ``text`` for the form)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache

from tpcalc.errors import ProgramError, ScaleError, TpcalcError, UnknownName, short
from tpcalc.exponents import Ex, parse_ex
from tpcalc.functions.numbers import Number
from tpcalc.functions.parse import AtomOf, parse_fn, parse_number
from tpcalc.functions.rows import RowFn
from tpcalc.program.check import Checker
from tpcalc.program.family import Family, Mark
from tpcalc.program.laws import LAWS
from tpcalc.program.nodes import NODE_TYPES
from tpcalc.program.program import Program
from tpcalc.program.text import AXES, HEADER, NAME, SCHEMA, Names, form_of, quoted, read_axes
from tpcalc.program.types import AXIS, Dim, Type

RowOf = Callable[[str], RowFn]


def no_rows(name: str) -> RowFn:
    """A catalogue without functions of rows."""
    raise UnknownName("row function", name, ())


def from_text(text: str, atoms: AtomOf, rows: RowOf = no_rows) -> Program:
    r"""The program that a canonical text denotes; ``from_text(to_text(p), atoms) == p``.

    Example:
        >>> from_text("tpcalc program 2\ndim n 1\n", lambda name, params: None).dims
        (Dim(name='n', ratio=Fraction(1, 1)),)
    """
    reader = Reader(atoms, rows)
    read_lines(text, reader, HEADER, SCHEMA)
    return reader.finish()


def read_lines(text: str, reader: Reader, header: str, schema: int) -> None:
    """Hand the lines of a text to a reader, the header first."""
    started = False
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        try:
            if started:
                reader.line(line)
            else:
                header_version(line, header, schema)
                started = True
        except (ProgramError, ScaleError) as error:
            place = f"line {number}" + (f" ({error.where})" if error.where else "")
            raise ProgramError(error.message, where=place, hint=error.hint) from None
        except TpcalcError as error:  # from the catalogue of functions
            error.where = error.where or f"line {number}"
            raise
    if not started:
        raise ProgramError("an empty text is not a program.", where="line 1")


def header_version(line: str, header: str = HEADER, schema: int = SCHEMA) -> int:
    """The schema version of a text, from its first line."""
    found = re.fullmatch(rf"{header} ([0-9]{{1,18}})", line)
    if found is None:
        raise ProgramError(
            f"{short(line)!r} is not the first line of a program.",
            hint=f"It must be '{header} {schema}'. tp.parse reads what str(program) prints; a file "
            "that tp.save wrote is read by tp.load.",
        )
    if int(found[1]) != schema:
        raise ProgramError(
            f"the text has schema version {found[1]}; this release reads version {schema}.",
            hint="Read it with the release of tpcalc that wrote it, and print it again.",
        )
    return schema


class Reader:
    """Collects the parts of a program line by line."""

    def __init__(self, atoms: AtomOf, rows: RowOf) -> None:
        self.checker = Checker()
        # A program repeats a few functions and exponents thousands of times.
        fn = cache(lambda text, vectors, scalars: parse_fn(text, vectors, scalars, atoms))
        self.names = Names(fn, cache(parse_ex), {}, rows)
        self.parts: dict[str, tuple[re.Pattern[str], str, Callable[..., None]]] = {
            "dim": (_DIM, "dim NAME RATIO", self._dim),
            "family": (_FAMILY, "family NAME : TYPE [LAW] [along LAW] [mean NUMBERS] "
                       "[cov ROW; ROW; ...] "
                       "[param LABEL ROLE LAYER [rate NUMBER] [speed n^(EXPONENT)] "
                       "[start NUMBER] [init n^(EXPONENT)] [group NAME] [of NAME]]",
                       self._family),
            "output": (_OUTPUT, "output NAME %REF", self._output),
        }  # fmt: skip

    def line(self, line: str) -> None:
        """Take one line."""
        word, _, rest = line.partition(" ")
        if word.startswith("%"):
            pattern, form, take = _NODE, "%INDEX : TYPE = NODE", self._node
            rest = line
        elif word in self.parts:
            pattern, form, take = self.parts[word]
        else:
            raise ProgramError(
                f"{short(line)!r} is no dimension, input, node or output.",
                hint="A line starts with 'dim', 'family', '%INDEX :' or 'output'.",
            )
        found = pattern.fullmatch(rest)
        if found is None:
            raise ProgramError(f"{short(line)!r} cannot be read.", hint=f"The form is: {form}.")
        take(*found.groups())

    def _node(self, index: str, type_: str, word: str, rest: str) -> None:
        count = len(self.checker.nodes)
        if int(index) != count:
            raise ProgramError(
                f"node %{index} stands where %{count} must come.",
                hint="Nodes are numbered from %0 without gaps.",
            )
        node = form_of(kind_of(word, _WORDS)).read(rest, self.names)
        found = self.checker.node(node, f"%{index}")
        if str(found) != type_:
            raise ProgramError(
                f"the type of the node is {found}; {type_} is written.",
                where=f"%{index}",
                hint="The type follows from the operands: write that, or change them.",
            )

    def _dim(self, name: str, ratio: str) -> None:
        number = parse_number(ratio)
        if not isinstance(number, Fraction):
            raise ProgramError(
                f"the ratio {ratio} must be exact.", hint="Write it as 1/2, not 0.5."
            )
        self.checker.dim(Dim(quoted(name), number))

    def _family(
        self,
        name: str,
        type_: str,
        law: str,
        along: str,
        mean: str,
        cov: str,
        param: str,
        *of: str,
    ) -> None:
        found = _type(type_)
        rows = None if cov is None else tuple(_numbers(row) for row in cov.split(";"))
        means = _numbers(mean) if mean else ()
        mark = None
        if param is not None:
            role, layer, rate, speed, start, init, group, whole = of
            mark = Mark(
                quoted(param),
                role,
                int(layer),
                Fraction(1) if rate is None else parse_number(rate),
                Fraction(1) if start is None else parse_number(start),
                "" if group is None else quoted(group),
                None if init is None else parse_ex(init),
                Ex() if speed is None else parse_ex(speed),
                "" if whole is None else quoted(whole),
            )
        family = Family(
            quoted(name),
            found.width,
            found.axes,
            law or "gaussian",
            means,
            rows,
            mark=mark,
            along=along or "",
        )
        self.checker.family(family)
        self.names.families[family.name] = family

    def _output(self, name: str, ref: str) -> None:
        self.checker.output(quoted(name), int(ref))

    def finish(self) -> Program:
        """The program."""
        return Program.checked(self.checker)


def kind_of(word: str, words: Mapping[str, type]) -> type:
    """The class of nodes that a word begins."""
    if word not in words:
        raise ProgramError(f"there is no node called {word!r}.", hint=f"Known: {', '.join(words)}.")
    return words[word]


def _type(text: str) -> Type:
    width = re.split(r"\[", text)[0]
    names = () if width in ("", "()") else tuple(width.split("*"))
    return Type(names, read_axes(text.removeprefix(width)))


def _numbers(text: str) -> tuple[Number, ...]:
    return tuple(parse_number(part.strip()) for part in text.split(","))


_TYPE = rf"\(\)|{AXIS}(?:\*{AXIS})*(?:{AXES})?|{AXES}"
_NODE = re.compile(r"%([0-9]{1,18}) : (\S*) = ([a-z]+) (.*)")
_DIM = re.compile(rf"({NAME}) (\S+)")
_FAMILY = re.compile(
    rf"({NAME}) : ({_TYPE})(?: ({'|'.join(LAWS)}))?"
    r"(?: along ([a-z_]+(?:\([^()]*\))?))?"
    r"(?: mean ([0-9eE+./, -]+?))?(?: cov ([0-9eE+./,; -]+?))?"
    rf"(?: param ({NAME}) ([a-z]+) ([0-9]{{1,18}})(?: rate ([0-9eE+./-]+))?"
    r"(?: speed n\^\(([^()]+)\))?"
    rf"(?: start ([0-9eE+./-]+))?(?: init n\^\(([^()]+)\))?(?: group ({NAME}))?"
    rf"(?: of ({NAME}))?)?"
)
_OUTPUT = re.compile(rf"({NAME}) %([0-9]{{1,18}})")
_WORDS = {form_of(kind).word: kind for kind in NODE_TYPES}
