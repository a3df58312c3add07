"""What is said of first steps beside their sizes: of decay, and of clipping."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from tpcalc.results import Exponent

CLIPS = "clipped"
SHARE = "decay takes a share of order {} of {} in a step, beside what its gradient adds"
CLIPPED = (
    "the norm of all gradients by what is trained has size {}, by {}, and clipping divides by what "
    "is above its limit: bounds hold where this norm is as large as its own bound"
)
LOOSE = "clipping divides by a norm of gradients of which a bound is known"
BY_WEIGHT = "the decay decides: in the step the weight is larger than its gradient"


def by_size(text: str, sizes: Mapping[str, Fraction | None]) -> tuple[str, ...]:
    """A line for each size, from the smallest, with the parameters that have it.

    Example:
        >>> by_size("{} by {}", {"u": Fraction(0), "v": Fraction(-1), "w": Fraction(0)})
        ('n^(-1) by v', '1 by u, w')
    """
    found: dict[Fraction, list[str]] = {}
    for name, size in sizes.items():
        if size is not None:
            found.setdefault(size, []).append(name)
    lines = ((Exponent.number(size).size("n"), ", ".join(found[size])) for size in sorted(found))
    return tuple(text.format(*line) for line in lines)
