"""Every error a user can meet, in one tree.

::

    TpcalcError                      code, message, where, hint
    ├── StudyError        TPC1xx     a bad file, flag or data set
    │   └── UsageError               a flag or argument that does not fit
    ├── TraceError        TPC2xx     misuse of the DSL
    │   ├── UnknownName              a name that nothing carries (the nearest ones are listed)
    │   │   └── UnknownAttribute     the same behind a dot: an AttributeError as well
    │   └── DimMismatch              a vector or matrix on the wrong dimension class
    ├── ProgramError      TPC3xx     not a Tensor Program, or a text that does not parse
    ├── ScaleError        TPC4xx     powers of n that the question cannot take
    │   └── Undecided                a comparison of powers that comes before its unknown
    ├── LimitError        TPC5xx     no limit, or none that the rules cover
    │   └── NotDifferentiable
    ├── EvaluationError   TPC6xx     a number could not be computed
    │   ├── MissingBackend
    │   ├── OutOfMemory
    │   ├── Exploded
    │   ├── TaskFailed
    │   ├── TooLong
    │   └── Incomplete           an answer without a number that was asked for
    ├── Interrupted       TPC701     a run that its user ended
    │   └── Terminated    TPC703     a run that the system ended
    └── Fault             TPC702     what tpcalc should not have done

Wording: what was wrong, where, why the theory forbids it, what to do. The text of an error is one
line of at most 200 characters; what was cut is in its ``message`` and its ``hint``.
"""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

LARGE = 10_000  # characters of a text of somebody else that are looked at
LONGEST = 200  # characters of an error in all
QUOTED = (80, 40, 20)  # characters of what a text quotes: fewer where it is still too long
WORD, PLACE, ADVICE = 40, 80, 90  # of a word, of where, and of a hint that are kept in any case

_QUOTE = re.compile(rf"""(?<!\w)(['"`])(.+?)\1(?!\w)|\S{{{WORD + 1},}}""")
_LIST = re.compile(r"((?:\S+, ){3})(?:\S+, )+\S+?\.?(?=[:;?]?(?:\s|$))")


def short(text: str, most: int = 60) -> str:
    """A text for a message, cut where it is long.

    Example:
        >>> short("a + b + c", 7)
        'a + ...'
    """
    return text if len(text) <= most else text[: most - 3] + "..."


def one_line(text: object) -> str:
    r"""A text without line breaks, and without what a terminal cannot show.

    Example:
        >>> one_line("two\nlines\x00")
        'two lines\\x00'
    """
    line = " ".join(str(text).split())
    if len(line) > LARGE:
        line = f"{line[: LARGE // 2]}...{line[-LARGE // 2 :]}"
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def raised(error: BaseException) -> str:
    """Kind and text of an error of a user's code, whatever its text does.

    Example:
        >>> raised(ValueError("no such thing"))
        'ValueError: no such thing'
    """
    try:
        text = short(str(error).strip(), LARGE)
    except BaseException:  # the code of its text is the user's, too
        text = "(an error without a text)"
    kind = short(type(error).__name__)
    return f"{kind}: {text}" if text else kind


def _quoted(text: str, most: int) -> str:
    """A text whose quotes and words are cut where they are long; of a path the end is kept."""

    def cut(found: re.Match[str]) -> str:
        sign, held = (found[1], found[2]) if found[1] else ("", found[0])
        room = most if sign else max(most, WORD)
        if len(held) <= room:
            return found[0]
        held = f"...{held[3 - room :]}" if "/" in held else short(held, room)
        return f"{sign}{held}{sign}"

    return _QUOTE.sub(cut, text)


def _fitted(code: str, where: str, message: str, hint: str) -> str:
    """An error on one line: where it is too long, its quotes are cut first, then its lists."""
    where, message, hint = (_quoted(one_line(part), QUOTED[0]) for part in (where, message, hint))
    for most in QUOTED:
        where, message = _quoted(where, most), _quoted(message, most)
        if len(line := _line(code, where, message, hint)) <= LONGEST:
            return line
    where, message, hint = (_LIST.sub(r"\1...", part) for part in (where, message, hint))
    where = where if len(where) <= PLACE else f"...{where[3 - PLACE :]}"
    spare = LONGEST - len(_line(code, where, message, " "))
    hint = textwrap.shorten(hint, max(ADVICE, spare), placeholder="...")
    room = LONGEST - len(_line(code, where, "", hint))
    return _line(code, where, textwrap.shorten(message, room, placeholder="..."), hint)


def _line(code: str, where: str, message: str, hint: str) -> str:
    return f"{code}{f' {where}:' if where else ''} {message}{f' {hint}' if hint else ''}"


class TpcalcError(Exception):
    """Base of all errors raised on purpose.

    Args:
        message: What was wrong and why.
        where: The node, file or user line it concerns.
        hint: What to do about it.
    """

    code = "TPC000"
    exit_code = 3

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.message = message
        self.where = where
        self.hint = hint
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (type(self), self.args, self.__dict__)  # from another process

    def __str__(self) -> str:
        return _fitted(self.code, self.where or "", self.message, self.hint or "")

    @property
    def __notes__(self) -> list[str]:
        """What a traceback shows beside the line: the whole text, where some of it is cut."""
        whole = one_line(f"{self.where}: {self.told}" if self.where else self.told)
        return [] if whole in str(self) else [whole]

    @__notes__.setter
    def __notes__(self, _: list[str]) -> None:  # by what sends errors to other processes
        pass

    @property
    def told(self) -> str:
        """What was wrong and what to do, without code and place."""
        return f"{self.message} {self.hint}" if self.hint else self.message


@contextmanager
def placed(where: str, kinds: type[TpcalcError] = TpcalcError) -> Iterator[None]:
    """Errors of some kinds say where they came up, unless they say it themselves."""
    try:
        yield
    except kinds as error:
        error.where = error.where or where
        raise


def _revived(kind: type[TpcalcError], args: tuple[Any, ...], facts: dict[str, Any]) -> TpcalcError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error


class StudyError(TpcalcError):
    """A file, flag or data set that cannot be used."""

    code = "TPC100"


class UsageError(StudyError):
    """A flag or argument that does not fit, alone or beside the others."""

    code = "TPC101"
    exit_code = 2


class TraceError(TpcalcError):
    """A program that is written wrongly in the DSL."""

    code = "TPC200"


class UnknownName(TraceError):
    """A name that nothing carries; the nearest known names are listed.

    Args:
        kind: What the name should have been (``"activation"``).
        name: The name asked for.
        known: The names that exist.
        where: Where it was asked.
        instead: What to write, where that is known; else the nearest names are listed.
    """

    code = "TPC201"
    exit_code = 2

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str],
        *,
        where: str | None = None,
        instead: str | None = None,
    ) -> None:
        names = sorted(known)
        near = []
        if isinstance(name, str):  # something else may be asked for by mistake
            near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
        if instead:
            hint = instead
        elif near:
            hint = f"Did you mean {', '.join(repr(word) for word in near)}?"
        elif names:
            hint = f"Known: {', '.join(names[:12])}{', ...' if len(names) > 12 else '.'}"
        else:
            hint = "There is none."
        self.kind = kind
        self.name = name
        super().__init__(f"there is no {kind} called {name!r}.", where=where, hint=hint)


class UnknownAttribute(UnknownName, AttributeError):  # type: ignore[misc]  # both name it
    """An attribute that a value of a program does not have; what to write instead is said."""


class DimMismatch(TraceError):
    """A vector or matrix on the wrong dimension class."""

    code = "TPC202"


class ProgramError(TpcalcError):
    """A node list that is not a Tensor Program, or a text that does not parse."""

    code = "TPC300"


class ScaleError(TpcalcError):
    """Powers of n that the question cannot take."""

    code = "TPC400"


class Undecided(ScaleError):
    """A comparison of powers that holds an unknown before the output that decides it."""


class LimitError(TpcalcError):
    """No limit, or none that the implemented rules cover."""

    code = "TPC500"


class NotDifferentiable(LimitError):
    """A derivative that is not a function (the derivative of a jump)."""

    code = "TPC501"


class EvaluationError(TpcalcError):
    """A number that could not be computed."""

    code = "TPC600"
    exit_code = 4


class MissingBackend(EvaluationError):
    """An optional library that is not installed."""

    code = "TPC601"
    exit_code = 5


class OutOfMemory(EvaluationError):
    """A run that would not fit in the memory of this machine."""

    code = "TPC602"


class Exploded(EvaluationError):
    """Numbers that left the floating-point range during a run."""

    code = "TPC603"


class TaskFailed(EvaluationError):
    """One of many tasks that failed, and failed again."""

    code = "TPC604"


class TooLong(EvaluationError):
    """A run that would take longer than is allowed."""

    code = "TPC605"


class Incomplete(EvaluationError):
    """An answer without a number that was asked for, or not to its error target; it is printed."""

    code = "TPC606"


class Interrupted(TpcalcError):
    """A run that its user ended."""

    code = "TPC701"
    exit_code = 130  # what a shell reports for Ctrl-C


class Terminated(Interrupted):
    """A run that the system ended (SIGTERM)."""

    code = "TPC703"
    exit_code = 143


class Fault(TpcalcError):
    """Something that tpcalc should not have done, whatever it was asked."""

    code = "TPC702"
    exit_code = 70  # of a fault of the software, as of old (sysexits.h)
