"""``Mark``: what makes an input a parameter of a network, or noise in it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tpcalc.errors import ProgramError
from tpcalc.exponents import Ex
from tpcalc.functions.numbers import Number, is_finite

NOISE = "noise"
# What a parameter is, and how many width axes it has.
ROLES = {
    "input": (1,),
    "hidden": (2,),
    "readout": (1,),
    "bias": (0, 1),
    "finite": (0,),
    NOISE: (0, 1),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A trained input: where it stands in its network; or one that is drawn anew for every copy.

    Args:
        label: The name of what it belongs to; the weights of a linear map and its bias share one.
        role: ``"input"`` from a finite side to the width, ``"hidden"`` from width to width,
            ``"readout"`` from the width to a finite side, ``"bias"`` added or multiplied,
            ``"finite"`` between finite sides; ``"noise"``: not trained, drawn anew for every input
            and step.
        layer: Whose exponents it has in a table over layers, from 1.
        rate: A factor of its learning rate.
        start: The standard deviation of its entries at the start where that is written as a factor
            in front of it; 0: it starts at 0.
        group: A name that it shares with others, for settings of their training.
        init: The power of n of these entries as the user writes it; None: the parameterization
            says it.
        speed: A power of n that multiplies its learning rate.
        whole: The fused parameter that it is a part of; empty: it is none.
    """

    label: str
    role: str
    layer: int
    rate: Number = Fraction(1)
    start: Number = Fraction(1)
    group: str = ""
    init: Ex | None = None
    speed: Ex = Ex()
    whole: str = ""

    @property
    def at_zero(self) -> bool:
        """Whether it starts at 0."""
        return self.start == 0

    @property
    def trained(self) -> bool:
        """Whether it is a parameter."""
        return self.role != NOISE

    @property
    def bias(self) -> bool:
        """Whether it has the exponents of biases."""
        return self.role == "bias"


def check_mark(mark: Mark, widths: int, where: str) -> None:
    """Check that a mark is one."""
    if mark.role not in ROLES:
        raise ProgramError(f"a parameter is {', '.join(ROLES)}, not {mark.role!r}.", where=where)
    if widths not in ROLES[mark.role]:
        kinds = " or ".join(("a number", "a vector", "a matrix")[axes] for axes in ROLES[mark.role])
        raise ProgramError(f"a parameter that is {mark.role!r} is {kinds}.", where=where)
    if mark.group in ROLES:
        raise ProgramError(
            f"the group of {mark.label!r} is called {mark.group!r}, as a role is.",
            where=where,
            hint=f"Take a name other than {', '.join(ROLES)}.",
        )
    numbers = is_finite(mark.rate) and is_finite(mark.start) and mark.start >= 0
    if not mark.label or mark.layer < 1 or not numbers:
        raise ProgramError(
            "a parameter has a label, a layer from 1, a finite rate and a deviation from 0, not "
            f"{mark.label!r}, {mark.layer}, {mark.rate}, {mark.start}.",
            where=where,
        )
