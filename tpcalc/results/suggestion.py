"""``Suggestion``: rates, inits and multipliers of a module at which every parameter learns."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.results.exponent import Exponent
from tpcalc.results.first_order import StableEdit
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown


@dataclass(frozen=True, slots=True)
class SuggestedParameter:
    """A parameter of a module: its rate and its start as they are, and as they should be.

    Args:
        name: Its name in the module.
        line: Where it is written.
        script: Where its optimizer is.
        group: The group of its optimizer, in words.
        given: The p of its rate n^p.
        rate: The p that it should have.
        std: Of the standard deviation at its start; -oo where it starts at one value.
        start: That should stand in front of it.
        before: What its steps do, of ``ParameterMove.word``.
        after: What they do then.
        where: What decides the rate: a read point or the output.
        axis: Of its shape one that is ``per`` times the width.
        per: This factor; 0 where no axis grows so.

    Example:
        >>> half = Exponent.of("-1/2")
        >>> row = SuggestedParameter("w", "", "", "", half, half, half, Exponent.of("0"), "", "")
        >>> row.is_right
        True
    """

    name: str
    line: str
    script: str
    group: str
    given: Exponent
    rate: Exponent
    std: Exponent
    start: Exponent
    before: str
    after: str
    where: str = ""
    axis: int = 0
    per: float = 0.0

    @property
    def is_right(self) -> bool:
        """Whether nothing of it has to change."""
        return self.given == self.rate and not self.start.constant


@dataclass(frozen=True, slots=True)
class SuggestedFactor:
    """A power of n in front of what a function reads.

    Args:
        what: What reads it.
        line: Where it is written.
        power: The p of n^p.
    """

    what: str
    line: str
    power: Exponent


@dataclass(frozen=True, slots=True)
class Suggestion(Shown):
    """Rates, inits and multipliers of a module at which every parameter learns.

    ``tp.torch.param_groups`` and ``tp.torch.init_`` take it in place of factors by name.

    Args:
        before: What the network does, of ``FirstOrder.word``, by bounds.
        after: What it does then.
        rows: Its parameters.
        factors: What to write besides.
        others: What else would do.
        base: The width at which rates and starts are those that were tuned.
        width: The one that factors are shown at.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
    """

    before: str
    after: str
    rows: tuple[SuggestedParameter, ...]
    factors: tuple[SuggestedFactor, ...]
    others: tuple[StableEdit, ...]
    base: int
    width: int
    provenance: Provenance
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> SuggestedParameter:
        """A parameter.

        Args:
            name: Its name.

        Raises:
            KeyError: There is none.
        """
        return {row.name: row for row in self.rows}[name]

    @property
    def is_right(self) -> bool:
        """Whether there is nothing to change."""
        return not self.factors and all(row.is_right for row in self.rows)

    def rates(self, width: int) -> dict[str, float]:
        """Factors of learning rates by parameter, from the base to a width."""
        return {row.name: self.factor(row.rate, width) for row in self.rows}

    def starts(self, width: int) -> dict[str, float]:
        """Factors of the parameters that start otherwise, from what a module of a width has."""
        rows = (row for row in self.rows if row.start.constant)
        return {row.name: self.factor(row.start, width) for row in rows}

    def factor(self, power: Exponent, width: int) -> float:
        """What a power of n is at a width, where it is 1 at the base."""
        return float((width / self.base) ** float(power.constant or 0))


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
