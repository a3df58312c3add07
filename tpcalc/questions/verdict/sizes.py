"""What is known of a size, the one-sided questions that verdicts ask of it, and tables of sizes.

That something does not grow, or vanishes, follows from an upper bound. That it grows, or moves,
needs a leading coefficient that is not 0 by its form or by a test. What has neither stays open:
a coefficient that was not tested, or could not be, is no lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tpcalc.evaluate.witness import Finding
from tpcalc.exponents import Ex, as_ex
from tpcalc.exponents.chamber import Chamber, Power
from tpcalc.limit.graph import LRef
from tpcalc.limit.scales import Scale, Scales
from tpcalc.results import UNKNOWN, ZERO, Exponent, OrderRow

FLUCTUATES = "it rests on an average that fluctuates around an expectation of 0, by symmetry"
LOST = "no bound is known: "
NOT_ZERO = "the leading coefficient is not 0"
RANDOM = "the leading coefficient is random, and not 0"
ASSUMED = "the leading coefficient is assumed to be different from 0; it was not tested"

Sign = Callable[[Power], int]


@dataclass(frozen=True, slots=True)
class Order:
    """The size of a quantity: of that order if exact, at most of it if upper.

    Example:
        >>> half = Ex.number(-0.5)
        >>> Order(half, "exact", "")
        n**(-1/2)
        >>> Order(half, "upper", "")
        O(n**(-1/2))
    """

    # the growth exponent; None where the quantity is identically 0, or nothing is known
    n: Ex | None
    status: str  # "exact" or "upper"
    reason: str  # what decided it
    strict: bool = False  # whether an upper bound is not reached: o(...) in place of O(...)

    @property
    def zero(self) -> bool:
        """Whether the quantity is identically 0."""
        return self.n is None and self.status == "exact"

    @property
    def exponent(self) -> Exponent:
        """The exponent as a record."""
        if self.n is not None:
            return Exponent(self.n)
        return ZERO if self.zero else UNKNOWN

    @property
    def text(self) -> str:
        """The exponent in print."""
        return str(self.exponent)

    @property
    def words(self) -> str:
        """The size in words."""
        if self.n is None:
            return "identically 0" if self.zero else "of a size that is not known"
        how = "" if self.status == "exact" else "smaller than " if self.strict else "at most "
        return f"{how}{power(self.n)}"

    @property
    def formula(self) -> str:
        """The size as a formula."""
        if self.n is None:
            return "identically 0" if self.zero else "without a known bound"
        text = self.exponent.size("n")
        if self.status == "exact":
            return f"of size {text}"
        return f"{'o' if self.strict else 'O'}({text})"

    def __repr__(self) -> str:
        if self.zero:
            return "0"
        size = f"n**({self.exponent})"
        return size if self.status == "exact" else f"{'o' if self.strict else 'O'}({size})"


def power(exponent: Ex) -> str:
    """A power of n in print.

    Example:
        >>> power(Ex.number(-0.5)), power(Ex.number(0))
        ('n^(-1/2)', 'order one')
    """
    return "order one" if exponent == Ex() else f"n^({exponent})"


@dataclass(frozen=True, slots=True)
class Known:
    """What one derivation says of a quantity."""

    order: Order  # its size
    # a leading coefficient that is neither shown to be different from 0 nor tested
    node: LRef | None = None
    lead: Ex | None = None  # its power of n
    more: bool = False  # whether a derivation with more terms may tell more
    random: bool = False  # whether that coefficient stays random

    @property
    def if_led(self) -> Order:
        """The size if the coefficient that was not tested is different from 0."""
        return self.order if self.node is None else Order(self.lead, "exact", ASSUMED)


def known(run: Scales, name: str) -> Known:
    """What a derivation says of an output before any test."""
    size = run.scale(name)
    if size.uncovered is not None:
        return Known(Order(None, "upper", size.uncovered.text), more=True)
    record = run.context.record
    fault = record.fault(run.claims([name])) if record.is_broken else ""
    if fault:
        return Known(Order(None, "upper", f"{LOST}{fault}"), more=True)
    return _known(size)


def _known(size: Scale) -> Known:
    if size.power is None:
        if size.bound:
            return Known(Order(None, "upper", "no bound is known after an explosion"), more=True)
        return Known(Order(None, "exact", "identically 0"))
    n = as_ex(size.power)
    if size.bound:
        how = "o" if size.strict else "O"
        reason = f"what is left after cancellation is {how}(n^({n}))"
        return Known(Order(n, "upper", reason, size.strict), more=True)
    if size.certain:
        return Known(Order(n, "exact", f"{RANDOM if size.random else NOT_ZERO} by its form"))
    if size.noise:
        return Known(Order(n, "upper", FLUCTUATES))
    return Known(Order(n, "upper", ASSUMED), size.node, n, random=size.random)


def after(known: Known, test: Finding) -> Known:
    """What is known after a test of the coefficient."""
    if test.nonzero:
        text = f"{RANDOM if known.random else NOT_ZERO} ({test.text})"
        return Known(Order(known.lead, "exact", text))
    if known.order.n is None:
        return Known(known.order, more=test.deeper)
    reason = f"the leading coefficient may be 0 ({test.text})"
    if test.nonzero is None:
        reason = f"the leading coefficient was not tested: {test.text}"
    return Known(replace(known.order, reason=reason), more=test.deeper)


Question = Callable[[Order, Sign], "bool | None"]


def grows(order: Order, sign: Sign) -> bool | None:
    """Whether a quantity grows with the width; None: what is known does not tell.

    Example:
        >>> from tpcalc.exponents.chamber import Chamber
        >>> half = Ex.number(0.5)
        >>> [grows(Order(half, status, ""), Chamber().sign) for status in ("exact", "upper")]
        [True, None]
    """
    if order.n is None:
        return False if order.zero else None
    if sign(plain(order.n)) <= 0:
        return False
    return True if order.status == "exact" else None


def stays(order: Order, sign: Sign) -> bool | None:
    """Whether a quantity does not vanish with the width; None: what is known does not tell.

    Example:
        >>> from tpcalc.exponents.chamber import Chamber
        >>> strict = Order(as_ex(0), "upper", "", strict=True)
        >>> stays(strict, Chamber().sign), stays(Order(as_ex(0), "upper", ""), Chamber().sign)
        (False, None)
    """
    if order.n is None:
        return False if order.zero else None
    here = sign(plain(order.n))
    if here < 0 or (here == 0 and order.strict and order.status == "upper"):
        return False
    return True if order.status == "exact" else None


def plain(n: Ex) -> Power:
    """A number as a fraction: nothing is recorded of it."""
    return n if n.constant is None else n.constant


@dataclass
class Sizes:
    """Sizes by name, compared at a sample point where they hold symbols."""

    orders: Mapping[str, Order]  # the sizes
    chamber: Chamber = field(default_factory=Chamber)  # the sample point; it records comparisons

    def __getitem__(self, name: str) -> Order:
        return self.orders[name]

    def rows(self, names: Iterable[str]) -> tuple[OrderRow, ...]:
        """Some of them as records."""
        orders = ((name, self[name]) for name in names)
        return tuple(OrderRow(name, o.exponent, o.status, o.reason) for name, o in orders)

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
