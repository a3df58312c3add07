"""``Recipe``: what to type in a training script of a network of L blocks."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.shown import Shown


@dataclass(frozen=True, slots=True)
class RecipeRow:
    """A number of a training script.

    Args:
        what: What it is.
        power: p of its factor (L / L0)^p.
        at_base: The number at the base depth L0, where it was tuned.
        value: The number at the depth L.

    Example:
        >>> RecipeRow("number in front of a block", "-1/2", 2.0, 0.25).value
        0.25
    """

    what: str
    power: str
    at_base: float
    value: float


@dataclass(frozen=True, slots=True)
class Recipe(Shown):
    """What to type in a training script of a network of L blocks.

    Args:
        name: The parameterization.
        alpha: The power of 1/L in front of a block.
        gamma: The power of 1/L in the updates of its weights.
        depth: L.
        base: L0, the depth at which the numbers were tuned.
        optimizer: The optimizer.
        rows: The numbers.
        notes: What a reader should know besides.
    """

    name: str
    alpha: str
    gamma: str
    depth: int
    base: int
    optimizer: str
    rows: tuple[RecipeRow, ...]
    notes: tuple[str, ...] = ()

    def __getitem__(self, what: str) -> RecipeRow:
        """A number.

        Args:
            what: What it is.

        Raises:
            KeyError: It is not there.
        """
        return {row.what: row for row in self.rows}[what]
