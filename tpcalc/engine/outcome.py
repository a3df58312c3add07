"""What a replicate yields, and the error of one whose numbers left the floating-point range."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tpcalc.arrays import Array
from tpcalc.errors import Exploded


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one replicate yields.

    Args:
        scalars: The results.
        vectors: The coordinates of vectors.
        min_ratio: The smallest residual that became a direction, as a part of its vector.
        storage: The precision of directions that it was found with.
    """

    scalars: tuple[float, ...]
    vectors: tuple[Array, ...]
    min_ratio: float
    storage: str = "float64"


def explosion(value: float, what: str) -> Exploded:
    """The error of a number that is not finite.

    Example:
        >>> explosion(math.inf, "the scalar s").message
        'the scalar s is inf: numbers left the floating-point range.'
    """
    if math.isnan(value):
        return Exploded(
            f"{what} is nan: a function outside its domain (a root below 0), or infinities.",
            hint="Check the domain of the activation, or lower the learning rate.",
        )
    return Exploded(
        f"{what} is {value}: numbers left the floating-point range.",
        hint="Lower the learning rate, if it divides by 0 leave out inputs of zeros.",
    )
