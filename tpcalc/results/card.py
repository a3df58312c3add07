"""Everything about one parameterization of a network, and about two of them side by side."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.results.exponent import PLAIN
from tpcalc.results.orders import OrderTable, Verdict
from tpcalc.results.tables import FiniteTable, LimitTable, ScalarRow
from tpcalc.results.theorem import Theorems
from tpcalc.shown import Shown


@dataclass(frozen=True, slots=True)
class Card(Shown):
    """The answers about one parameterization.

    Args:
        name: The parameterization.
        exponents: Its tables as pairs of words: what, and the powers of the layers.
        check: The verdict on training, with the orders of updates and outputs.
        orders: Orders of features and gradients over the steps.
        limit: Limits of the outputs.
        theorems: What is proved of it elsewhere.
        finite: Networks of finite width, where some were run.

    Example:
        >>> parts = (("nothing moves",), (), (), (), "all t", 3, ())
        >>> from tpcalc.results.tables import Provenance
        >>> verdict = Verdict("trivial", "exact", True, "ok", *parts, Provenance("0", "ab"))
        >>> Card("naive-ip", (("a", "0, 1, 1"),), verdict).check.verdict
        'trivial'
    """

    name: str
    exponents: tuple[tuple[str, str], ...]
    check: Verdict
    orders: OrderTable | None = None
    limit: LimitTable | None = None
    theorems: Theorems | None = None
    finite: FiniteTable | None = None

    def as_text(self) -> str:
        found = self.check
        head = f"{self.name}: {found.verdict} ({found.status}), {found.valid_for}"
        lines = [f"{what}: {powers}" for what, powers in self.exponents]
        lines += [f"- {fact}" for fact in found.facts]
        if self.limit is not None:
            lines += [f"{row.name} -> {_scaled(row)}" for row in self.limit.scalars]
            lines += [f"{row.name}: {row.text}" for row in self.limit.uncovered]
        rows = self.theorems.rows if self.theorems is not None else ()
        lines += [f"{row.name}: {row.answered} ({row.source.item})" for row in rows]
        return "\n".join([head, *(f"  {line}" for line in lines)])

    __repr__ = Shown.__str__


@dataclass(frozen=True, slots=True)
class Contrast(Shown):
    """Two parameterizations of one network, trained on the same data.

    Args:
        left: One.
        right: The other.

    Example:
        >>> Contrast.__slots__
        ('left', 'right')
    """

    left: Card
    right: Card


def _scaled(row: ScalarRow) -> str:
    """A limit behind its power of n."""
    return (
        str(row.estimate) if row.n_power == PLAIN else f"{row.n_power.size('n')} * ({row.estimate})"
    )
