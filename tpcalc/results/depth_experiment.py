"""What networks of many blocks do along their depth: profiles, best rates, reference numbers."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.results.estimate import Estimate
from tpcalc.results.tables import Provenance
from tpcalc.results.transfer import Transfer

__all__ = ["DepthExperiment", "Profile", "Reference"]


@dataclass(frozen=True, slots=True)
class Profile:
    """A number along the depth.

    Args:
        recipe: The parameterization of the depth.
        depth: The number of blocks, ``"oo"`` the limit.
        width: ``"oo"``, or the width of networks.
        step: The training step.
        what: ``"size"``, the root mean square of the stream; ``"distance"``, that of how far it
            moves between two places; ``"slope"``, d log(distance) / d log(place).
        place: The share of the depth, of distances how far the places are apart.
        value: The number.

    Example:
        >>> from tpcalc.results.estimate import Method
        >>> Profile("depth-mup", "oo", "oo", 1, "size", 0.5, Estimate(1, 0, Method.EXACT)).place
        0.5
    """

    recipe: str
    depth: str
    width: str
    step: int
    what: str
    place: float
    value: Estimate


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference number.

    Args:
        where: Where it stands.
        what: As of a profile, or ``"rate"``, the best learning rate.
        recipe: The parameterization of the depth.
        depth: The number of blocks, ``"oo"`` the limit.
        value: The number.
        step: Of a profile the training step.
        place: Of a profile its place.
        digits: The unit of its last digit.
    """

    where: str
    what: str
    recipe: str
    depth: str
    value: float
    step: int = 0
    place: float = 0.0
    digits: float = 1e-6


@dataclass(frozen=True, slots=True)
class DepthExperiment:
    """Networks of many blocks, at infinite width and as networks beside it.

    Args:
        name: Its name.
        title: What it is about.
        source: Where it was published.
        profiles: Numbers along the depth.
        transfer: Best learning rates; None: they are not asked.
        references: Reference numbers.
        lacking: What has no numbers, with the reason.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
    """

    name: str
    title: str
    source: str
    profiles: tuple[Profile, ...]
    transfer: Transfer | None
    references: tuple[Reference, ...]
    lacking: tuple[tuple[str, str], ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()

    def beside(self, one: Reference) -> Estimate | None:
        """What was found of a reference number, at infinite width; None: it was not asked.

        Args:
            one: The reference number.
        """
        if one.what == "rate":
            for best in self.transfer.optima if self.transfer else ():
                if (best.recipe, best.depth, best.width) == (one.recipe, one.depth, "oo"):
                    off = 0.0 if best.low is None else best.rate - best.low
                    return Estimate(best.rate, off, best.loss.method)
            return None
        for row in self.profiles:
            own = (row.recipe, row.depth, row.width, row.step, row.what)
            same = own == (one.recipe, one.depth, "oo", one.step, one.what)
            if same and abs(row.place - one.place) < 1e-12:
                return row.value
        return None
