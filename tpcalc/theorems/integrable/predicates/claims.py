"""What a theorem says of sizes, beside the orders that are derived from the program.

A bound never contradicts what lies below it: it contradicts an order only from below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.exponents import Ex
from tpcalc.program.program import Program, restricted
from tpcalc.questions.orders import width_orders
from tpcalc.questions.verdict.sizes import power
from tpcalc.results import Claim, OrderRow, Verdict
from tpcalc.theorems.integrable.predicates.case import Case


@dataclass(frozen=True)
class Size:
    """The order of a quantity as a row of a table has it.

    Example:
        >>> Size(Ex.number(-0.5), False).words
        'at most n^(-1/2)'
    """

    n: Ex | None  # the growth exponent; None where it is identically 0, or where nothing is known
    exact: bool  # whether it is reached

    @property
    def value(self) -> Fraction | None:
        """The exponent as a number; None where it holds symbols or there is none."""
        return None if self.n is None else self.n.constant

    @property
    def zero(self) -> bool:
        """Whether it is identically 0."""
        return self.n is None and self.exact

    @property
    def words(self) -> str:
        """It in words."""
        if self.n is None:
            return "identically 0" if self.exact else "of unknown size"
        return power(self.n) if self.exact else f"at most {power(self.n)}"

    def below(self, most: Fraction) -> bool | None:
        """Whether it is certainly smaller than a power, or certainly not."""
        if self.zero:
            return True
        if self.value is None:
            return None
        if self.value < most:
            return True
        return False if self.exact else None

    def equal(self, to: Fraction) -> bool | None:
        """Whether it is certainly of a power, or certainly not."""
        if self.zero:
            return False
        if self.value is None:
            return None
        if self.exact:
            return self.value == to
        return False if self.value < to else None


def _size(row: OrderRow) -> Size:
    return Size(row.n.exact, row.n.is_zero if row.n.exact is None else row.status == "exact")


def rows(verdict: Verdict | None) -> Mapping[str, Size]:
    """The orders of a verdict by name."""
    if verdict is None:
        return {}
    return {row.name: _size(row) for row in (*verdict.updates, *verdict.rows)}


def sizes(case: Case, names: Iterable[str]) -> dict[str, Size]:
    """The orders that are known of some quantities."""
    known = rows(case.verdict)
    return {name: known[name] for name in names if name in known}


def bounds(program: Program, names: Iterable[str], verify: bool = False) -> dict[str, Size]:
    """The orders of some outputs of a program, and of nothing else."""
    found = width_orders(restricted(program, names), verify=verify)
    return {name: Size(order.n, order.status == "exact") for name, order in found.items()}


def _joined(answers: Iterable[bool | None]) -> bool | None:
    every = list(answers)
    if False in every:
        return False
    return None if None in every else True


def _said(sizes: Mapping[str, Size]) -> str:
    """The largest of some sizes in words; all of them where they cannot be compared."""
    if any(size.n is not None and size.value is None for size in sizes.values()):
        return ", ".join(dict.fromkeys(size.words for size in sizes.values()))
    unknown = [size for size in sizes.values() if size.n is None and not size.exact]
    if unknown:
        return unknown[0].words
    known = [size for size in sizes.values() if size.value is not None]
    if not known:
        return "identically 0"
    return max(known, key=lambda size: (size.value or Fraction(0), size.exact)).words


def _claim(
    text: str,
    stated: str,
    sizes: Mapping[str, Size],
    answer: Callable[[Size], bool | None],
) -> Claim:
    if not sizes:
        return Claim(text, stated, "")
    agrees = _joined(answer(size) for size in sizes.values()) if stated else None
    return Claim(text, stated, _said(sizes), agrees)


def vanishing(text: str, sizes: Mapping[str, Size], stated: str = "tends to 0") -> Claim:
    """A claim that quantities tend to 0.

    Example:
        >>> vanishing("f_1", {"f[1,1]": Size(Ex.number(-0.5), False)}).agrees
        True
    """
    return _claim(text, stated, sizes, lambda size: size.below(Fraction(0)))


def of_order_one(text: str, sizes: Mapping[str, Size], stated: str) -> Claim:
    """A claim that quantities neither vanish nor explode.

    Example:
        >>> of_order_one("f_1", {"f[1,1]": Size(Ex(), False)}, "order one").agrees
    """
    return _claim(text, stated, sizes, lambda size: size.equal(Fraction(0)))


def finite(text: str, sizes: Mapping[str, Size], stated: str = "stays finite") -> Claim:
    """A claim that quantities do not explode.

    Example:
        >>> finite("f_2", {"f[2,1]": Size(Ex(), False)}).agrees
        True
    """

    def stays(size: Size) -> bool | None:
        if size.value is not None and size.value == 0:
            return True
        return size.below(Fraction(0))

    return _claim(text, stated, sizes, stays)


def of_power(text: str, sizes: Mapping[str, Size], exponent: Ex) -> Claim:
    """A claim of an exact order, with its word: vanishing, order one, exploding.

    Example:
        >>> of_power("the update", {"dW_x[2,1,1]": Size(Ex(), True)}, Ex.number(1)).agrees
        False
    """
    value = exponent.constant
    if value is None:
        return _claim(text, power(exponent), sizes, lambda size: None)
    word = "exploding" if value > 0 else "vanishing"
    stated = f"{power(exponent)}: {word}" if value else power(exponent)
    return _claim(text, stated, sizes, lambda size: size.equal(value))
