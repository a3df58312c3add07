"""Numbers of a family of modules as functions of the width: a factor times a power of n."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isfinite, log

from tpcalc.errors import ScaleError
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions.numbers import Number

GRID = 12  # the largest denominator of a power
NEAR = 1e-6  # relative; of what is a power without further terms
LATE = 2e-3  # of local powers at the last widths, where further terms fade
LOGS = (-1, -0.5, 0.5, 1)  # powers of log n that are told by name
HINT = "A number of a family is c n^p, up to what vanishes."


@dataclass(frozen=True)
class Scaling:
    """A number times a power of the width n."""

    number: Number  # what stands in front
    power: Fraction = Fraction(0)  # the power of n

    @property
    def ex(self) -> Ex:
        """Its power as an exponent."""
        return as_ex(self.power)

    @property
    def text(self) -> str:
        """As inits, rates and settings are written: ``"0.02 n^(-1/2)"``.

        Example:
            >>> Scaling(Fraction(1, 2)).text, Scaling(2.5, Fraction(-1, 2)).text
            ('1/2', '2.5 n^(-1/2)')
        """
        return f"{self.number} n^({self.power})" if self.power else str(self.number)

    def at(self, width: int) -> float:
        """Its value at a width."""
        return float(self.number * width ** float(self.power))


def scaling(values: Mapping[int, float], what: str, where: str | None = None) -> Scaling:
    """A number as a function of the width, from its values at some widths.

    Example:
        >>> scaling({n: 2 / n**0.5 for n in (64, 128, 320)}, "a factor").text
        '2 n^(-1/2)'
    """
    widths = sorted(values)
    numbers = [float(values[n]) for n in widths]
    if len(set(numbers)) == 1:
        return Scaling(_plain(numbers[0]))
    shown = ", ".join(f"{value:.6g}" for value in numbers)
    named = f"{what} is {shown} at widths {', '.join(map(str, widths))}"
    if not all(map(isfinite, numbers)) or 0 in numbers or min(numbers) < 0 < max(numbers):
        raise ScaleError(f"{named}: no number times a power of n.", where=where, hint=HINT)
    local = _local(numbers, widths)
    power = Fraction(local[-1]).limit_denominator(GRID)
    if max(abs(one - float(power)) for one in local) < NEAR:
        return Scaling(_plain(numbers[-1] / widths[-1] ** float(power)), power)
    late = max(abs(one - float(power)) for one in local[-2:])
    if late > LATE:
        word = "changes with the logarithm of n"
        word = word if _logarithmic(numbers, widths) else "no number times a power of n"
        raise ScaleError(f"{named}: {word}.", where=where, hint=HINT)
    return Scaling(numbers[-1] / widths[-1] ** float(power), power)


def _local(numbers: list[float], widths: list[int]) -> list[float]:
    pairs = zip(pairwise(numbers), pairwise(widths), strict=True)
    return [log(b / a) / log(n / m) for (a, b), (m, n) in pairs]


def _logarithmic(numbers: list[float], widths: list[int]) -> bool:
    """Whether a power of log n explains them, or c + d log n."""
    pairs = zip(pairwise(numbers), pairwise(widths), strict=True)
    slopes = [(b - a) / log(n / m) / numbers[-1] for (a, b), (m, n) in pairs]
    logs = [log(n) for n in widths]
    rests = [[one / by**q for one, by in zip(numbers, logs, strict=True)] for q in LOGS]
    alike = (slopes, *(_local(rest, widths) for rest in rests))
    return any(max(one) - min(one) < NEAR for one in alike)


def _plain(value: float) -> Number:
    """A short fraction where it is one up to rounding."""
    found = Fraction(value).limit_denominator(10**6)
    return found if abs(float(found) - value) <= 1e-14 * abs(value) else value
