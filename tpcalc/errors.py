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
    └── EvaluationError   TPC6xx     a number could not be computed
        ├── MissingBackend
        ├── OutOfMemory
        ├── Exploded
        ├── TaskFailed
        └── TooLong

Wording: what was wrong, where, why the theory forbids it, what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def short(text: str, most: int = 60) -> str:
    """A text for a message, cut where it is long.

    Example:
        >>> short("a + b + c", 7)
        'a + ...'
    """
    return text if len(text) <= most else text[: most - 3] + "..."


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
        super().__init__(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (type(self), self.args, self.__dict__)  # from another process

    def __str__(self) -> str:
        place = f" {self.where}:" if self.where else ""
        return f"{self.code}{place} {self.told}"

    @property
    def told(self) -> str:
        """What was wrong and what to do, without code and place."""
        return f"{self.message} {self.hint}" if self.hint else self.message


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
            shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
            hint = f"Known: {shown}."
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
