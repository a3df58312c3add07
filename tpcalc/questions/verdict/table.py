"""A table of sizes: which vanish, which is the largest, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.exponents.chamber import Chamber
from tpcalc.questions.verdict.sizes import Order, stays


@dataclass
class Sizes:
    """Sizes by name, compared at a sample point where they hold symbols.

    Args:
        orders: The sizes.
        chamber: The sample point; it records comparisons.
    """

    orders: Mapping[str, Order]
    chamber: Chamber = field(default_factory=Chamber)

    def __getitem__(self, name: str) -> Order:
        return self.orders[name]

    def vanishes(self, name: str) -> bool:
        """Whether a quantity certainly tends to 0."""
        return stays(self[name], self.chamber.sign) is False

    def largest(self, names: Iterable[str]) -> str | None:
        """The name with the largest bound at the sample point; None if all are identically 0."""
        best: str | None = None
        value = Fraction(0)
        for name in names:
            order = self[name]
            if order.zero:
                continue
            if order.n is None:
                return name
            here = order.n.at(self.chamber.point)
            if best is None or here > value:
                best, value = name, here
        return best

    def largest_words(self, names: Iterable[str]) -> str:
        """The largest size in words."""
        every = list(names)
        largest = self.largest(every)
        if largest is None:
            return "identically 0"
        found = {order.n for order in map(self.__getitem__, every) if order.n is not None}
        fixed = len(found) == 1 or all(n.constant is not None for n in found)
        return self[largest].words + ("" if fixed else " (the largest at the sample point)")
