"""What is typed: values of symbols (``a=1/2``, ``a=0:1``), numbers, activations, variances."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tpcalc.doors import numbers
from tpcalc.doors.numbers import exact
from tpcalc.errors import StudyError, UsageError, short

if TYPE_CHECKING:
    from tpcalc.functions import Expr

RANGE = re.compile(r"([^:]+):([^:]+)(?::([^:]+))?")
STEPS, MOST = 13, 1000  # of a ladder
ANY = re.compile(r".+")
NAME = re.compile(r"[^\W\d]\w*(\[[\d, ]+\])?")  # a symbol, or an output such as f[0,0]
COMMA = re.compile(r",(?![^\[]*\])")  # outside of brackets


def point(flag: str, typed: Iterable[str]) -> dict[str, Fraction]:
    """Values by name.

    Example:
        >>> point("--at", ["a=1/2,b=0.1", "p=2"])
        {'a': Fraction(1, 2), 'b': Fraction(1, 10), 'p': Fraction(2, 1)}
        >>> point("--given", ["f[0,0]=1/2,b=1"])
        {'f[0,0]': Fraction(1, 2), 'b': Fraction(1, 1)}
    """
    return {name: rational(flag, value) for name, value in pairs(flag, _parts(typed), "NAME=VALUE")}


def box(flag: str, typed: Iterable[str]) -> dict[str, tuple[Fraction, Fraction]]:
    """Intervals by name.

    Example:
        >>> box("--box", ["a=0:1", "c=-1:1/2"])["c"]
        (Fraction(-1, 1), Fraction(1, 2))
    """
    found = {}
    for name, value in pairs(flag, _parts(typed), "NAME=LOW:HIGH"):
        low, colon, high = value.partition(":")
        if not colon:
            raise _misfit(flag, f"{name}={value}", "NAME=LOW:HIGH")
        found[name] = (rational(flag, low), rational(flag, high))
        if found[name][0] >= found[name][1]:
            raise UsageError(
                f"{flag}: {name} runs from {low.strip()} to {high.strip()}, which is no interval.",
                hint="Write the lower end first.",
            )
    if len(found) < 2:
        raise UsageError(
            f"{flag}: a phase diagram is over two symbols or more; {len(found)} given.",
            hint=f"Write {flag} a=0:1 {flag} c=-1:1, with the symbols of --param.",
        )
    return found


def rational(flag: str, text: str) -> Fraction:
    """An exact number."""
    try:
        return exact(text, what=flag)
    except StudyError:
        raise UsageError(
            f"{flag}: {short(text)!r} is not a number.",
            hint=f"Write it as 1/2, 0.5 or -3, {numbers.RANGE}.",
        ) from None


def listed(flag: str, text: str) -> list[float]:
    """Numbers with commas between them.

    Example:
        >>> listed("--rates", "0.1, 1/2")
        [0.1, 0.5]
    """
    return [float(rational(flag, part.strip())) for part in text.split(",")]


def ladder(flag: str, text: str) -> list[float]:
    """Numbers that are evenly spaced in their logarithm.

    Example:
        >>> ladder("--lr", "0.01:100:5")
        [0.01, 0.1, 1.0, 10.0, 100.0]
    """
    form = RANGE.fullmatch(text)
    if form is None:
        raise _misfit(flag, text, "LOW:HIGH or LOW:HIGH:COUNT")
    low, high = (float(rational(flag, end)) for end in form.groups()[:2])
    count = rational(flag, form[3] or str(STEPS))
    if not (0 < low < high and count in range(2, MOST + 1)):
        raise UsageError(
            f"{flag}: {text} is no range of {count} rates.",
            hint=f"Write {flag} 1e-3:10, two rising numbers above 0, with 2 to {MOST} rates.",
        )
    found: list[float] = np.geomspace(low, high, int(count)).tolist()
    return found


def words(flag: str, text: str, known: Iterable[str]) -> tuple[str, ...]:
    """Words with commas between them.

    Example:
        >>> words("--symbolic", "p,L", ("p", "L"))
        ('p', 'L')
    """
    known = tuple(known)
    found = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    strange = [word for word in found if word not in known]
    if strange or not found:
        raise UsageError(f"{flag}: {text!r} names none of {', '.join(known)}.")
    return found


def _parts(typed: Iterable[str]) -> Iterator[str]:
    return (part.strip() for text in typed for part in COMMA.split(text))


def pairs(
    flag: str, typed: Iterable[str], form: str, names: re.Pattern[str] = NAME
) -> Iterator[tuple[str, str]]:
    """Names with what is typed of each, in a form such as ``NAME=VALUE``."""
    sign, seen = form.removeprefix("NAME")[0], set()
    for part in typed:
        name, _, value = (word.strip() for word in part.partition(sign))
        if not names.fullmatch(name) or not value:
            raise _misfit(flag, part, form)
        if name in seen:
            raise UsageError(f"{flag}: {name} is given twice.")
        seen.add(name)
        yield name, value


def _misfit(flag: str, text: str, form: str) -> UsageError:
    return UsageError(f"{flag}: {text!r} is not of the form {form}.")


def activation(text: str) -> Any:
    """What a typed activation stands for: a name or a formula as it is, ``file.py:name`` loaded.

    Args:
        text: What was typed.

    Raises:
        StudyError: The file cannot be run, or holds none.

    Example:
        >>> activation("gelu")
        'gelu'
    """
    from tpcalc.study.program_file import load_activation, split_model

    place = split_model(text)
    return text if place is None else load_activation(*place)[1]


_DIGITS = 12


def kept(tau: Expr, biases: Fraction, share: Fraction) -> Fraction:
    """The variance with which a layer keeps preactivations of the second moment 1.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> kept(lookup("relu").fn.expr, Fraction(0), Fraction(1, 4))
        Fraction(8, 1)
    """
    from tpcalc.errors import UsageError
    from tpcalc.meanfield.maps.layer_map import LayerMap

    if biases >= 1:
        raise UsageError(
            "--weights: no weights keep a second moment of 1 with such biases.",
            hint="Give the variance of the weights.",
        )
    second = LayerMap(tau, 1.0).length(1.0).value
    return Fraction(f"{float((1 - biases) / share) / second:.{_DIGITS}g}")
