"""Everything about one parameterization of a network, and about two of them side by side."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.results.orders import OrderTable, Verdict
from tpcalc.results.tables import FiniteTable, LimitTable
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
