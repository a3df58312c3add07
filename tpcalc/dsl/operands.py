"""What all handles share: what they refuse, with the line of the user's own code that asked.

A handle stands for a value that the program computes later, at any width. So it has no truth
value, no length and no digits; each such request gets an error that says what to write instead.
"""

from __future__ import annotations

import operator
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache, lru_cache
from numbers import Real
from pathlib import Path
from traceback import walk_tb
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from tpcalc.doors import numbers
from tpcalc.errors import StudyError, TpcalcError, TraceError, UnknownAttribute
from tpcalc.functions import Expr
from tpcalc.functions.numbers import Number as Number
from tpcalc.functions.numbers import as_number, is_finite


def user_line(within: CodeType | None = None, frame: FrameType | None = None) -> str | None:
    """File name (without folders) and line of the innermost frame that the user wrote.

    The frames of this package, of the standard library and of installed packages are passed over;
    nothing is looked for outside of a function whose code is given, or inside of a given frame.
    """
    frame = frame or sys._getframe(1)
    while frame is not None and frame.f_code is not within:
        author, name = _author_of(frame)
        if author == "user":
            return f"{name}:{frame.f_lineno}"
        frame = None if author == "launcher" else frame.f_back
    return None


def _author_of(frame: FrameType) -> tuple[str, str]:
    filename = frame.f_code.co_filename
    if filename == "<string>":  # a method that a dataclass or torch generated, or python -c
        module = frame.f_globals.get("__name__")
        if module is None or str(module).startswith("tpcalc."):
            return "package", filename
    return _author(filename)


@lru_cache(maxsize=1024)
def _author(filename: str) -> tuple[str, str]:
    """Who wrote a file (the user, or one whose lines tell the user nothing), and its short name."""
    path = Path(filename)
    package = Path(user_line.__code__.co_filename).parents[1]
    author = "user"
    if package in path.parents:
        # Below the command line lie only the scripts that started it.
        author = "launcher" if path.relative_to(package).parts[0] == "cli" else "package"
    elif (
        {"site-packages", "dist-packages"} & set(path.parts)
        or filename.startswith("<frozen")
        or Path(os.__file__).parent in path.parents
    ):
        author = "library"
    return author, path.name


def line_of(function: object) -> str | None:
    """Where a Python function is written; None for anything else."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    return f"{_author(code.co_filename)[1]}:{code.co_firstlineno}"


def misuse(
    message: str,
    hint: str | None = None,
    *,
    kind: type[TraceError] = TraceError,
    where: str | None = None,
) -> TraceError:
    """An error about what the user wrote, with the line."""
    return kind(message, where=where or user_line(), hint=hint)


def locate(error: TpcalcError) -> None:
    """Give an error that names no line the user's line that led to it."""
    if error.where is not None and re.search(r":\d", error.where):
        return
    line = last_user_line(error.__traceback__) or user_line()
    if line is not None:
        error.where = f"{error.where} at {line}" if error.where else line


def line_in_stack(stack: str) -> str | None:
    """The innermost line of the user in the text of a stack, its innermost frame at last.

    Example:
        >>> line_in_stack('File "model.py", line 7, in forward')
        'model.py:7'
    """
    for path, line in reversed(re.findall(r'File "([^"]+)", line (\d+)', stack)):
        author, name = _author(path)
        if author == "user":
            return f"{name}:{line}"
    return None


def last_user_line(traceback: TracebackType | None) -> str | None:
    """The innermost line of the user in a traceback."""
    return next((line for author, line in _inner_lines(traceback) if author == "user"), None)


def raising_line(traceback: TracebackType | None) -> str | None:
    """The line of the user that raised an error, or called the library that did."""
    own = ((author, line) for author, line in _inner_lines(traceback) if author != "library")
    author, line = next(own, ("", ""))
    return line if author == "user" else None


def _inner_lines(traceback: TracebackType | None) -> Iterator[tuple[str, str]]:
    """Who wrote the lines of a traceback, and these, the innermost first."""
    for frame, number in reversed(list(walk_tb(traceback))):
        author, name = _author_of(frame)
        yield author, f"{name}:{number}"


# numpy's scalars carry numpy's operators: they are sent back to Python's.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
    "power": operator.pow,
    "matmul": operator.matmul,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


class Operand:
    """Base of vectors, matrices, scalars and powers of n."""

    __slots__ = ()
    noun: ClassVar[str] = "a value"

    others: ClassVar[str] = (
        "Functions come from tpcalc: tp.{0}(x), where there is one, else tp.function({0!r}, ...)."
    )

    no_number: ClassVar[str] = (
        "Functions of it come from tpcalc (tp.tanh, not math.tanh or np.tanh); its value comes "
        "from tp.limit or tp.simulate."
    )

    def _refuse(self, what: str, hint: str) -> TraceError:
        return misuse(f"{self.noun} of a program {what}.", hint)

    if not TYPE_CHECKING:  # a checker of types knows what there is

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self.noun, name, (), instead(name) or self.others.format(name))

    def _foreign(self, library: str, name: str) -> TraceError:
        """The error for a function of another library."""
        return self._refuse(
            f"holds no numbers and cannot go through {library}'s {name}",
            instead(name) or self.others.format(name),
        )

    def __bool__(self) -> NoReturn:
        raise self._refuse(
            "has no truth value: it stands for every width and every draw",
            "Choices between coordinates are activations: tp.relu, tp.step; those between programs "
            "depend on Python values.",
        )

    def _compare(self, other: object) -> NoReturn:
        raise self._refuse(
            "cannot be compared: it has no value before the program is run",
            "max(x, 0) is tp.relu(x), a jump is tp.step(x - y), identity is `is`.",
        )

    __lt__ = __le__ = __gt__ = __ge__ = _compare
    __eq__ = _compare
    __ne__ = _compare
    __hash__ = object.__hash__

    def __len__(self) -> NoReturn:
        raise self._refuse(
            "has no length: its dimension goes to infinity",
            "Finite dimensions are Python lists of vectors.",
        )

    def __iter__(self) -> NoReturn:
        raise self._refuse(
            "cannot be run through: its coordinates are infinitely many",
            "Finite dimensions are Python lists of vectors.",
        )

    def __getitem__(self, index: object, value: object = None) -> NoReturn:
        raise self._refuse(
            "has no entry to take: coordinates are exchangeable and infinitely many",
            "Finite dimensions are Python lists of vectors; averages are t.mean and t.moment.",
        )

    __setitem__ = __getitem__

    def __contains__(self, item: object) -> NoReturn:
        self.__iter__()

    def _number(self, digits: object = None) -> NoReturn:
        raise self._refuse("is not a number", self.no_number)

    __float__ = __int__ = __complex__ = __index__ = __round__ = _number

    def __format__(self, spec: str) -> str:
        return self._number() if spec else str(self)

    def __abs__(self) -> NoReturn:
        raise self._refuse("has no built-in abs", "Write tp.abs(x).")

    def _no_operation(self, other: object = None) -> NoReturn:
        raise self._refuse("has no //, %, &, | and ~", "It has +, -, *, /, ** and, of a matrix, @.")

    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = _no_operation
    __and__ = __rand__ = __or__ = __ror__ = __invert__ = _no_operation

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise self._refuse(
            "is not an array: numpy cannot hold it", "Keep the handles in a Python list."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [item.item() if getattr(item, "shape", None) == () else item for item in inputs]
        found = _OPERATORS.get(ufunc.__name__)
        if method == "__call__" and found and not options:
            arrays = [item for item in plain if not isinstance(item, Operand | Real)]
            if not arrays:
                return found(*plain)
            raise misuse(
                f"{noun(arrays[0])} and {self.noun} of a program meet in numpy's {ufunc.__name__}.",
                "Finite dimensions are written out: one handle for each entry, in a Python loop.",
            )
        raise self._foreign("numpy", "sum" if method == "reduce" else ufunc.__name__)

    def __array_function__(self, function: Any, *call: object) -> NoReturn:
        raise self._foreign("numpy", function.__name__)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: object, args: Any = (), kwargs: object = None
    ) -> Any:
        if hasattr(args[0], "new_tensor"):  # a tensor comes first: the handle's own operator
            return NotImplemented
        handles = (item for item in _flat(args) if isinstance(item, Operand))
        raise next(handles)._foreign("torch", function.__name__)


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        yield from _flat(value) if isinstance(value, list | tuple) else (value,)


@cache
def _instead() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("instead.toml").read_text(encoding="utf-8"))


def instead(word: str) -> str | None:
    """What to write in place of a word that there is not."""
    return _instead().get(word)


def no_attribute(kind: str, name: str, known: Iterable[str], told: str | None) -> AttributeError:
    """The error for what is asked of a value behind a dot, with what to write instead."""
    if name.startswith("_"):
        return AttributeError(f"{kind} has no attribute {name!r}")
    kind = f"attribute of {kind}"
    return UnknownAttribute(kind, name, known, where=user_line(), instead=told)


_CALL = re.compile(r"\w*(?:Tracer|Arrays)\.(\w+)\(\) (.+)")


@contextmanager
def recording() -> Iterator[None]:
    """Run a user's function of a tracer: errors name its lines, and calls that do not fit."""
    try:
        yield
    except TpcalcError as error:
        locate(error)
        raise
    except TypeError as error:
        call = _CALL.fullmatch(str(error))
        if call is None:
            raise
        word = re.search(r"keyword argument '(\w+)'", call[2])
        where = last_user_line(error.__traceback__)
        hint = instead(f"{word[1]}=") if word else None
        raise misuse(f"t.{call[1]}() {call[2]}.", hint, where=where) from error


def noun(value: object) -> str:
    """A value for a message."""
    if isinstance(value, Operand):
        return value.noun
    if value is None:
        return "None"
    if isinstance(value, str):
        return f"the text {value!r}"
    if isinstance(value, Real):
        return f"the number {_short(value)}"
    if isinstance(value, Expr):
        return f"the function {value.text}"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"an array of shape {tuple(shape)}"
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


def unsupported(verb: str, left: object, right: object) -> TraceError:
    """The error for two operands that do not go together."""
    nouns = {getattr(side, "noun", "") for side in (left, right)}
    if "a power of n" in nouns:
        hint = "A power of n or L only multiplies or divides."
    elif "a matrix" in nouns:
        hint = "A matrix is only applied: W @ x; a sum of matrices is (W @ x) + (V @ x)."
    else:
        hint = (
            "Vectors, scalars, powers of n and real numbers go together; finite dimensions are "
            "written out, one handle for each entry."
        )
    return misuse(f"{noun(left)} and {noun(right)} cannot be {verb}.", hint)


def number_or_none(value: object) -> Number | None:
    """A real number as Fraction (where it is exact) or float; None for anything else."""
    if isinstance(value, Operand):
        return None
    if not isinstance(value, Real) and getattr(value, "shape", None) == ():
        value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, Real):
        return None
    if not is_finite(value):
        raise misuse(
            f"the number {_short(value)} is not finite, or too large for a float.",
            "Check the computation that it comes from.",
        )
    return as_number(value)


def _short(value: object) -> str:
    try:
        text = str(value)
    except ValueError:  # Python prints no integer of more than 4300 digits
        return "of more than 4300 digits"
    return text if len(text) <= 40 else f"{text[:20]}... ({len(text)} digits)"


def number(value: object, what: str) -> Number:
    """A real number; of a text the exact one."""
    if isinstance(value, str):
        return as_rational(value, what)
    try:
        found = number_or_none(value)
    except TraceError as error:
        raise misuse(f"{what}: {error.message}", error.hint) from None
    if found is None:
        raise misuse(f"{what} must be a real number, not {noun(value)}.")
    return found


def as_rational(value: object, what: str) -> Fraction:
    """An exact number: an integer, a Fraction, a text such as ``"1/2"`` or a short decimal.

    Example:
        >>> as_rational(-0.25, "the exponent"), as_rational("1/3", "the exponent")
        (Fraction(-1, 4), Fraction(1, 3))
    """
    if isinstance(value, str):
        try:
            return numbers.exact(value, what=what)
        except StudyError as error:
            raise misuse(error.message, error.hint) from None
    found = number(value, what)
    if isinstance(found, float):
        # The decimal that the user sees is what is meant: 0.1 is 1/10.
        found = Fraction(repr(found))
        if found.denominator > 10**6:
            raise misuse(
                f"{what} must be exact, and the float {value} is not a short decimal.",
                "Write a Fraction, or a text such as '1/3'.",
            )
    return found
