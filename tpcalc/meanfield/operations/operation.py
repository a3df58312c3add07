"""What all operations have in common."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite
from numbers import Integral
from typing import Protocol

from tpcalc.errors import StudyError
from tpcalc.meanfield.state import State

Number = Fraction | float


class Operation(Protocol):
    """What a layer does."""

    @property
    def name(self) -> str:
        """For messages and tables."""
        ...

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer."""
        ...


def required(holds: bool, where: str, said: str, hint: str) -> None:
    """Refuse the description of a layer unless it makes sense.

    Example:
        >>> required(2 > 0, "Dense", "the variance is 2.", "It is larger than 0.")
    """
    if not holds:
        raise StudyError(said, where=where, hint=hint)


def positive(value: Number) -> bool:
    """Whether a number is finite and larger than 0.

    Example:
        >>> positive(0.5), positive(float("nan"))
        (True, False)
    """
    return finite(value) and value > 0


def finite(value: Number) -> bool:
    """Whether a number is finite as a float.

    Example:
        >>> finite(0.5), finite(Fraction(10**400))
        (True, False)
    """
    try:
        return isfinite(value)
    except OverflowError:
        return False


def whole(value: Number) -> bool:
    """Whether a number is whole; 3.0 is no name for 3.

    Example:
        >>> whole(3), whole(2.5), whole(Fraction(3))
        (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)
