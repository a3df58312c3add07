"""How replicates are run, and what is left of each."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tpcalc.arrays import Array
from tpcalc.errors import Exploded

Mode = Literal["limit", "finite"]
BLOCKS = (512, 256, 128, 64, 32, 16)


@dataclass(frozen=True)
class Setting:
    """How a script is run.

    Args:
        mode: ``"limit"``: particles of the limit; ``"finite"``: a network of finite width.
        width: Samples N of every space (limit); n, so that a space has ratio * n coordinates.
        storage: ``"float64"`` or ``"float32"`` storage of directions.
        tolerance: Residuals below this part of a vector add no direction.
        device: Where torch computes, as ``"cuda"``; None: the compiled passes of the CPU.
    """

    mode: Mode
    width: int
    storage: str = "float64"
    tolerance: float | None = None
    device: str | None = None

    def size(self, ratio: float) -> int:
        """Number of samples or coordinates of a space."""
        return self.width if self.mode == "limit" else round(ratio * self.width)

    def ratio(self, ratio: float) -> float:
        """Dimension of a space over n, exact for sizes that were rounded."""
        return ratio if self.mode == "limit" else self.size(ratio) / self.width

    def block(self, ratios: Iterable[float]) -> int:
        """Samples in a block of all spaces: few where spaces are small, as padding is lost."""
        sizes = [self.size(ratio) for ratio in ratios]
        return min(BLOCKS, key=lambda block: sum(-(-size // block) * block for size in sizes))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one replicate yields."""

    scalars: tuple[float, ...]  # the results
    vectors: tuple[Array, ...]  # the coordinates of vectors
    min_ratio: float  # the smallest residual that became a direction, as a part of its vector
    storage: str = "float64"  # the precision of directions that it was found with


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
