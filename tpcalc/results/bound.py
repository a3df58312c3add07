"""A bound of a theorem: its value, and apart from it whether its conditions are met."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.results.theorem import Hypothesis
from tpcalc.shown import Shown
from tpcalc.sources import Source


@dataclass(frozen=True, slots=True)
class Bound(Shown):
    """A number between bounds.

    Args:
        of: What it is: ``"R^2"``, ``"E D^2"``.
        lower: A lower bound; None: none is stated.
        upper: An upper bound; None: none is stated.
        probability: With which probability at least both hold; 1 of expectations.
        conditions: What the theorem asks, each with whether it is met. The value is that of the
            formula in any case.
        source: Where it is stated.
        exact: Whether both are the number itself.
        notes: What a reader should know besides.

    Example:
        >>> found = Bound("D^2", None, 0.5, 0.9, (), Source("Marion et al.", "Proposition 2"))
        >>> found.admissible
        True
    """

    of: str
    lower: float | None
    upper: float | None
    probability: float
    conditions: tuple[Hypothesis, ...]
    source: Source
    exact: bool = False
    notes: tuple[str, ...] = ()

    @property
    def admissible(self) -> bool:
        """Whether all conditions are met: only then the theorem states the bound."""
        return all(condition.met for condition in self.conditions)

    @property
    def violated(self) -> tuple[Hypothesis, ...]:
        """The conditions that are not met."""
        return tuple(condition for condition in self.conditions if not condition.met)

    @property
    def stated(self) -> str:
        """The bound as a formula, with its probability."""
        if self.exact:
            return f"{self.of} = {self.lower:.6g}"
        low = "" if self.lower is None else f"{self.lower:.6g} < "
        high = "" if self.upper is None else f" < {self.upper:.6g}"
        chance = "" if self.probability == 1 else f" with probability >= {self.probability:g}"
        return f"{low}{self.of}{high}{chance}"
