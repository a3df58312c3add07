"""What all operations have in common."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite
from typing import Protocol

from tpcalc.errors import StudyError
from tpcalc.signal.state import State

__all__ = ["Number", "Operation", "required"]

Number = Fraction | float


class Operation(Protocol):
    """What a layer does."""

    @property
    def name(self) -> str:
        """For messages and tables."""
        ...

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: Those of the layers that it reads.
        """
        ...


def required(holds: bool, where: str, said: str, hint: str) -> None:
    """Refuse the description of a layer unless it makes sense.

    Args:
        holds: Whether it does.
        where: The operation.
        said: What is wrong.
        hint: What to give instead.

    Raises:
        StudyError: It does not.

    Example:
        >>> required(2 > 0, "Dense", "the variance is 2.", "It is larger than 0.")
    """
    if not holds:
        raise StudyError(said, where=where, hint=hint)


def positive(value: Number) -> bool:
    """Whether a number is finite and larger than 0.

    Args:
        value: The number.

    Example:
        >>> positive(0.5), positive(float("nan"))
        (True, False)
    """
    return isfinite(value) and value > 0
