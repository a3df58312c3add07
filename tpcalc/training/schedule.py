"""What a schedule is: the factors of the learning rate, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.functions.numbers import Number
from tpcalc.sources import Source

Factors = str | Sequence[Number | str] | Callable[[int], Number]
"""What stands for a schedule: a text, a factor for each step, or a function of the step."""


@dataclass(frozen=True)
class RateSchedule:
    """An entry of the catalogue: how the learning rate goes over a stretch of steps.

    Example:
        >>> from tpcalc.training.schedules import lookup
        >>> [str(lookup("linear").curve(Fraction(step, 4))) for step in range(4)]
        ['1', '3/4', '1/2', '1/4']
    """

    name: str  # the name it is listed under
    # curve(s): the factor when a share s of the stretch is done, from 0 to 1; behind the stretch it
    # stays at curve(1)
    curve: Callable[[Fraction], Number] = field(repr=False)
    text: str  # what it is, in one line
    source: Source  # where it is defined
    aliases: tuple[str, ...] = ()  # other names
