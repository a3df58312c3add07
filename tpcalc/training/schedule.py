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

    Args:
        name: The name it is listed under.
        curve: ``curve(s)``: the factor when a share s of the stretch is done, from 0 to 1; behind
            the stretch it stays at ``curve(1)``.
        text: What it is, in one line.
        source: Where it is defined.
        aliases: Other names.

    Example:
        >>> from tpcalc.training.schedules import lookup
        >>> [str(lookup("linear").curve(Fraction(step, 4))) for step in range(4)]
        ['1', '3/4', '1/2', '1/4']
    """

    name: str
    curve: Callable[[Fraction], Number] = field(repr=False)
    text: str
    source: Source
    aliases: tuple[str, ...] = ()
