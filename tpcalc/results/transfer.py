"""Whether the best learning rate stays where it is as a network grows: losses, and their least."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.results.estimate import Estimate
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown


@dataclass(frozen=True, slots=True)
class LossRow:
    """The loss of a run.

    Args:
        recipe: The parameterization.
        depth: The number of blocks, ``"oo"`` the limit; "" of a network that has none.
        width: ``"oo"``, or the width of networks.
        multiplier: The number in front of a block, at the base depth.
        rate: The learning rate, at the base depth.
        loss: The loss; None where there is none, with the reason in ``note``.
        note: Why there is none.
    """

    recipe: str
    depth: str
    width: str
    multiplier: float
    rate: float
    loss: Estimate | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The learning rate and the multiplier of the least loss.

    Args:
        recipe: The parameterization.
        depth: The number of blocks, ``"oo"`` the limit; "" of a network that has none.
        width: ``"oo"``, or the width of networks.
        multiplier: The best number in front of a block, of those that were tried.
        rate: The best learning rate.
        low: Below it the loss is known to be larger; None: it is the smallest rate that was tried.
        high: Above it the loss is known to be larger; None: it is the largest rate.
        loss: The loss there.
        slope: d log(rate) / d log(L) since the depth before; None of the first.
        how: ``"minimised"`` of exact losses between the rates that were tried; ``"grid"``: the best
            rate of those that were tried, low and high the nearest that are known to be worse.
        width_slope: d log(rate) / d log(n) since the width before; None of the first.
    """

    recipe: str
    depth: str
    width: str
    multiplier: float
    rate: float
    low: float | None
    high: float | None
    loss: Estimate
    slope: float | None
    how: str
    width_slope: float | None = None


@dataclass(frozen=True, slots=True)
class Transfer(Shown):
    """Losses over learning rates, widths and depths, and where they are least.

    Args:
        rows: The losses.
        optima: The best rates.
        measured: What the loss is, in words.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
    """

    rows: tuple[LossRow, ...]
    optima: tuple[Optimum, ...]
    measured: str
    provenance: Provenance
    notes: tuple[str, ...] = ()

    def best(self, recipe: str, depth: int | str = "", width: int | str = "oo") -> Optimum:
        """The best rate.

        Args:
            recipe: The parameterization.
            depth: The number of blocks, or ``"oo"``; "" of a network that has none.
            width: The width of networks, or ``"oo"``.

        Raises:
            KeyError: It is not there.
        """
        found = {(row.recipe, row.depth, row.width): row for row in self.optima}
        return found[recipe, str(depth), str(width)]
