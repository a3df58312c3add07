"""Arguments of public functions: checked where they come in, and brought to one form."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Collection, Mapping, Set
from contextlib import suppress
from fractions import Fraction
from inspect import signature
from math import isfinite
from numbers import Complex, Rational, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tpcalc.doors import numbers
from tpcalc.doors.budget import spend
from tpcalc.doors.numbers import MOST
from tpcalc.errors import StudyError, TpcalcError, UnknownName, UsageError, raised, short

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")

ENDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "above": ("above", operator.gt),
    "least": ("at least", operator.ge),
    "most": ("at most", operator.le),
}
PART = 1e-3  # seconds that a step, a network or a layer takes at least


def whole(
    value: Any,
    name: str,
    *,
    least: int | None = None,
    most: int = MOST,
    each: float = 1e-6,
    hint: str | None = None,
) -> int:
    """A whole number, numpy's too, or its text; ``each`` is about how many seconds one takes.

    Example:
        >>> whole(3, "steps", least=0), whole("3", "steps")
        (3, 3)
    """
    given, found = f"{name} is {shown(value)}", None
    if isinstance(value, str):
        found = numbers.whole(value)
    elif hasattr(value, "__index__") and not isinstance(value, bool):
        with suppress(TypeError):  # an array has the method, and no use for it
            found = int(value.__index__())
    if found is None:
        raise UsageError(f"{given}; it must be a whole number.", hint=hint)
    _within(found, given, hint, least=-most if least is None else least, most=most)
    spend(f"{name} = {found}", seconds=each * found)
    return found


def seed(value: Any) -> int:
    """The seed of what is random."""
    return whole(value, "seed", least=0, most=2**128, each=0.0)


def real(
    value: Any,
    name: str,
    *,
    hint: str | None = None,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
) -> Fraction | float:
    """A finite real number, or its text, between ends: exact where it is rational, else a float.

    Example:
        >>> real(2, "lr"), real(0.5, "lr", above=0), real("1/2", "lr", least=0, most=1)
        (Fraction(2, 1), 0.5, Fraction(1, 2))
    """
    if isinstance(value, bool) or not isinstance(value, Real | str):
        raise UsageError(f"{name} is {shown(value)}; it must be a number.", hint=hint)
    try:
        found = numbers.exact(value, what=name)
    except StudyError as error:
        text = f"{name} is {shown(value)}; it must be finite, {numbers.RANGE}."
        text = error.message if isinstance(value, str) else text
        raise UsageError(text, hint=hint or error.hint) from None
    _within(found, f"{name} is {short(str(value))}", hint, above=above, least=least, most=most)
    return found if isinstance(value, Rational | str) else float(value)


def _within(found: Fraction | float, given: str, hint: str | None, **ends: float | None) -> None:
    for name, end in ends.items():
        words, holds = ENDS[name]
        if end is not None and not holds(found, end):
            raise UsageError(f"{given}; it must be {words} {end}.", hint=hint)


def text(value: Any, name: str, *, hint: str | None = None) -> str:
    """A text.

    Args:
        value: What was given.
        name: The argument, for messages.
        hint: What to do instead.

    Raises:
        UsageError: It is something else.
    """
    if not isinstance(value, str):
        raise UsageError(f"{name} is {shown(value)}; it must be a text.", hint=hint)
    return value


def names(value: Any, name: str) -> tuple[str, ...]:
    """Several names; a plain text is one name.

    Example:
        >>> names("dh", "watch"), names(["h", "x"], "watch")
        (('dh',), ('h', 'x'))
    """
    if isinstance(value, str):
        return (value,)
    found = tuple(value) if is_row(value) or isinstance(value, Set | Mapping) else (value,)
    for entry in found:
        if not isinstance(entry, str):
            raise UsageError(
                f"{name} is {shown(value)}; it must be a list of names.",
                hint=f"Write it as {name}=['a', 'b'].",
            )
    return found


def one_of(kind: str, name: Any, known: Collection[Any], *, where: str | None = None) -> None:
    """A name among those that there are.

    Example:
        >>> one_of("backend", "lazy", ("lazy", "dense"))
    """
    try:
        there = name in known
    except TypeError:  # a list, say, is no name
        there = False
    if not there:
        raise UnknownName(kind, name, known, where=where)


def sequence(value: Any, name: str, *, hint: str | None = None) -> tuple[Any, ...]:
    """Several things in order: a list, a tuple, an array or a range."""
    if not is_row(value):
        raise UsageError(f"{name} is {shown(value)}; it must be a list.", hint=hint)
    spend(f"reading {name}", memory=64 * len(value) if hasattr(value, "__len__") else 0)
    return tuple(value)


def floats(value: Any, name: str) -> list[float]:
    """Several numbers."""
    return [float(real(one, f"a number of {name}")) for one in sequence(value, name)]


def file(value: Any, name: str = "path") -> Path:
    """The path of a file."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise UsageError(
            f"{name} is {shown(value)}; it must be the path of a file.",
            hint="Give it as a text or a pathlib.Path.",
        )
    return Path(value)


def flag(value: Any, name: str) -> None:
    """True or False."""
    if not isinstance(value, bool):
        raise UsageError(f"{name} is {value!r}.", hint="It is True or False.")


def of_type(value: Any, kind: type[T], name: str, *, hint: str | None = None) -> T:
    """A record of a type.

    Example:
        >>> of_type(Path("a"), Path, "work").name
        'a'
    """
    if not isinstance(value, kind):
        raise UsageError(f"{name} is {shown(value)}, not of type {kind.__name__}.", hint=hint)
    return value


def called(value: Any, name: str, *arguments: Any, hint: str | None = None) -> None:
    """Something to call with such arguments, or None."""
    if value is not None and not callable(value):
        raise UsageError(f"{name} is {shown(value)}; it must be a function.", hint=hint)
    try:
        if value is not None:
            signature(value).bind(*arguments)
    except TypeError as error:
        raise UsageError(
            f"{name} is a function that takes other arguments ({error}).", hint=hint
        ) from error
    except ValueError:
        pass  # some built-in functions do not say what they take


def answer(function: Callable[..., Any], *arguments: Any, name: str) -> Any:
    """What a function of a user gives; what it raises is told as theirs."""
    called(function, name, *arguments)
    try:
        return function(*arguments)
    except TpcalcError:
        raise
    except Exception as error:
        raise UsageError(
            f"{name} is a function that raises {raised(error)}.",
            hint=f"It was called with {', '.join(map(repr, arguments))}.",
        ) from error


def powers(value: Any, known: Set[str] | None = None) -> dict[str, Fraction]:
    """Numbers for the symbols in exponents (``values=``).

    Example:
        >>> powers({"a": 0.1, "b": "1/2"}, {"a", "b"})
        {'a': Fraction(1, 10), 'b': Fraction(1, 2)}
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(
            f"values is {shown(value)}; it must map symbols in exponents to numbers.",
            hint="Write it as values={'a': '1/2'}.",
        )
    found = {}
    for name, number in value.items():
        if not isinstance(name, str) or (known is not None and name not in known):
            raise UnknownName("symbol in the exponents of this program", name, known or ())
        taken = real(number, f"the value of {name!r}", hint="Write it as '1/2' or 0.5.")
        found[name] = taken if isinstance(taken, Fraction) else Fraction(repr(taken))
    return found


def named(value: Any, name: str) -> dict[str, float]:
    """Numbers by the names of outputs (``given=``).

    Example:
        >>> named({"f[0,0]": "1/2"}, "given")
        {'f[0,0]': 0.5}
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(
            f"{name} is {shown(value)}.", hint=f"Write it as {name}={{'f[0,0]': '1/2'}}."
        )
    return {key: float(real(number, f"{name}[{key!r}]")) for key, number in value.items()}


def rows(
    value: Any, kind: str, where: str, *, single: bool = False
) -> tuple[tuple[float, ...], ...]:
    """Rows of finite numbers from nested lists, arrays or data frames.

    Example:
        >>> rows([1, 2], "target", "inline", single=True)
        ((1.0,), (2.0,))
    """
    entries = value.to_numpy() if hasattr(value, "to_numpy") else value
    if not is_row(entries):
        article = "queries" if kind == "query" else f"{kind}s"
        raise StudyError(
            f"the {article} are {shown(value)}, not a list of rows.",
            where=where,
            hint="Pass a list.",
        )
    if hasattr(entries, "mask"):
        entries = reals(entries, f"the list of {kind}s")
    found: list[tuple[float, ...]] = []
    for index, entry in enumerate(entries):
        place = f"{kind} row {index}"
        row = _row((entry,) if single and not is_row(entry) else entry, place, where)
        if not row:
            raise StudyError(f"{place} is empty.", where=where)
        if found and len(row) != len(found[0]):
            raise StudyError(
                f"{place} has {len(row)} numbers, row 0 has {len(found[0])}.",
                where=where,
            )
        found.append(row)
    return tuple(found)


def reals(value: Any, name: str, *, hint: str = "Convert it with numpy first.") -> NDArray[Any]:
    """An array of real numbers.

    Example:
        >>> reals([[1, 2], [3, 4]], "weights").shape
        (2, 2)
    """
    import numpy as np

    try:
        given = np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value)
    except Exception as error:  # of numpy, or of the object itself
        reason = "rows of different lengths" if type(error) is ValueError else raised(error)
        raise UsageError(f"{name} cannot be an array: {reason}.", hint=hint) from None
    if given.dtype.kind == "f":
        with np.errstate(all="ignore"):  # of longer floats that are none as shorter ones
            given = given.astype(np.float64)
    if given.dtype.kind not in "buif" or np.ma.is_masked(value):
        kind = "masked" if np.ma.is_masked(value) else given.dtype
        raise UsageError(
            f"{name} holds {kind} entries; it must hold real numbers, all of them.", hint=hint
        )
    return given


def inputs(value: Any, name: str, dimension: int | None = None) -> NDArray[Any]:
    """Inputs of a network as float64, a row for each.

    Example:
        >>> inputs([[1, 0], [0, 1]], "X").shape
        (2, 2)
    """
    import numpy as np

    if hasattr(value, "inputs") and hasattr(value, "targets"):
        raise UsageError(
            f"{name} has targets besides.", hint=f"Pass its inputs: {name}=data.inputs."
        )
    given = reals(value, name)
    if given.ndim != 2 or given.size == 0:
        raise UsageError(
            f"{name} has shape {given.shape}; it must have a row of features for each input.",
            hint=f"One input of d features is {name}[None, :], inputs of one feature are "
            f"{name}[:, None]."
            if given.ndim == 1 and given.size
            else None,
        )
    found = np.ascontiguousarray(given, dtype=np.float64)
    if not np.isfinite(found).all():
        row, column = (int(index) for index in np.argwhere(~np.isfinite(found))[0])
        raise StudyError(
            f"row {row}, column {column} is {found[row, column]}; every number must be finite.",
            where=name,
            hint="Drop or repair that row.",
        )
    if dimension is not None and found.shape[1] != dimension:
        raise UsageError(
            f"the inputs of {name} have {found.shape[1]} features; {dimension} are needed."
        )
    return found


def _row(row: Any, place: str, where: str) -> tuple[float, ...]:
    if not is_row(row):
        raise StudyError(
            f"{place} is {shown(row)}, not a list of numbers.",
            where=where,
            hint="Each is a row of d numbers, even if d is 1: [[0.5], [1.0]].",
        )
    found = []
    for column, value in enumerate(row):
        place_of = f"{place}, column {column} is {shown(value)}"
        if isinstance(value, str):
            with suppress(StudyError):
                value = numbers.exact(value, what=place_of)
        if not isinstance(value, Real) and (
            isinstance(value, str | bytes | Complex) or is_row(value)
        ):
            raise StudyError(f"{place_of}, not a number.", where=where)
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise StudyError(f"{place_of}, not a number.", where=where) from error
        if not isfinite(number):
            raise StudyError(
                f"{place_of}; every number must be finite.",
                where=where,
                hint="Drop or repair that row.",
            )
        found.append(number)
    return tuple(found)


def is_row(value: Any) -> bool:
    """Whether this holds several entries in order; arrays of no dimension hold a number."""
    if hasattr(value, "ndim"):
        return bool(value.ndim)
    unordered = isinstance(value, str | bytes | Set | Mapping)
    return hasattr(value, "__iter__") and not unordered


def shown(value: Any) -> str:
    """A value for a message."""
    try:
        return short(" ".join(repr(value).split()))
    except Exception:  # a number of 5000 digits, or a repr of somebody else that fails
        return f"a {type(value).__name__} that cannot be printed"
