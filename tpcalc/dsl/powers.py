"""Powers of the width n and of the depth L, ``tp.n**"1/2"``, and the number l of a repetition."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from tpcalc.dsl.operands import Number, Operand, as_rational, misuse, number_or_none, unsupported
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions.numbers import number_text, whole_power

Numeric = int | float | Fraction


def symbol(name: str) -> Ex:
    """A named exponent, to be given a value later: ``tp.n**tp.symbol("a")``.

    Args:
        name: A Python identifier.

    Returns:
        An exact exponent.

    Raises:
        TraceError: It is not an identifier, or is ``n`` or ``L``, which are the bases.

    Example:
        >>> print(n ** (2 * symbol("a") - 1))
        n**(-1 + 2*a)
    """
    if not isinstance(name, str) or not name.isidentifier() or name in ("n", "L"):
        raise misuse(
            f"an exponent cannot be called {name!r}.",
            "Use letters, digits and underscores, other than n and L alone.",
        )
    return Ex.symbol(name)


def as_exponent(value: object) -> Ex:
    """An exponent from what a user writes after ``**``.

    Example:
        >>> print(as_exponent(-0.5))
        -1/2
    """
    if isinstance(value, Ex):
        return value
    return as_ex(as_rational(value, "the exponent"))


@dataclass(frozen=True, eq=False)
class Power(Operand):
    """A number times a power of n and a power of L.

    Args:
        n_power: The exponent of the width.
        depth_power: The exponent of the depth.
        factor: The number in front.

    Example:
        >>> print(3 * n**-1 * L**"1/2")
        3*n**-1*L**(1/2)
    """

    n_power: Ex = Ex()
    depth_power: Ex = Ex()
    factor: Number = Fraction(1)
    noun: ClassVar[str] = "a power of n"
    others: ClassVar[str] = "Powers are written with **: tp.n**0.5."
    no_number: ClassVar[str] = others

    def __mul__(self, other: Power | Numeric) -> Power:
        if isinstance(other, Power):
            return Power(
                self.n_power + other.n_power,
                self.depth_power + other.depth_power,
                self.factor * other.factor,
            )
        if isinstance(other, Operand):
            return NotImplemented  # the handle's own operator records it
        value = number_or_none(other)
        if value is None:
            raise unsupported("multiplied", self, other)
        return Power(self.n_power, self.depth_power, self.factor * value)

    def __rmul__(self, other: Numeric) -> Power:
        value = number_or_none(other)
        if value is None:
            raise unsupported("multiplied", other, self)
        return self * value

    def __neg__(self) -> Power:
        return self * -1

    def __pos__(self) -> Power:
        return self

    def __truediv__(self, other: Power | Numeric) -> Power:
        if isinstance(other, Power):
            return self * other.inverse()
        if isinstance(other, Operand):
            return NotImplemented
        value = number_or_none(other)
        if value is None:
            raise unsupported("divided", self, other)
        return self * Power(factor=value).inverse()

    def __rtruediv__(self, other: Numeric) -> Power:
        value = number_or_none(other)
        if value is None:
            raise unsupported("divided", other, self)
        return self.inverse() * value

    def inverse(self) -> Power:
        """One over it.

        Raises:
            TraceError: The number in front is 0.
        """
        if self.factor == 0:
            raise misuse("a division by the number 0 (alone, or in front of a power of n).")
        return Power(-self.n_power, -self.depth_power, 1 / self.factor)

    def __pow__(self, exponent: object) -> Power:
        power = as_exponent(exponent)
        return Power(self.n_power * power, self.depth_power * power, self._factor_power(power))

    def _factor_power(self, power: Ex) -> Number:
        if self.factor == 1:
            return self.factor
        exponent = power.constant
        if exponent is None:
            raise misuse(
                f"the number {number_text(self.factor)} cannot be raised to a symbolic exponent.",
                "Raise the power of n alone, and multiply by the number afterwards.",
            )
        if self.factor == 0 and exponent < 0:
            raise misuse("a division by the number 0 (alone, or in front of a power of n).")
        if self.factor < 0 and exponent.denominator != 1:
            raise misuse(f"{number_text(self.factor)} has no real power {exponent}.")
        if exponent.denominator == 1:
            return whole_power(self.factor, int(exponent)) if self.factor else self.factor
        return math.pow(self.factor, exponent)

    def _sum(self, other: object) -> Power:
        raise unsupported("added", self, other)

    def _difference(self, other: object) -> Power:
        raise unsupported("subtracted", self, other)

    __add__ = __radd__ = _sum
    __sub__ = __rsub__ = _difference

    def __matmul__(self, other: object) -> Power:
        raise unsupported("multiplied by @", self, other)

    def __eq__(self, other: object) -> bool:  # type: ignore[override]
        if not isinstance(other, Power):
            return NotImplemented
        return (self.n_power, self.depth_power, self.factor) == (
            other.n_power,
            other.depth_power,
            other.factor,
        )

    def __ne__(self, other: object) -> bool:  # type: ignore[override]
        same = self.__eq__(other)
        return same if same is NotImplemented else not same

    def __hash__(self) -> int:
        return hash((self.n_power, self.depth_power, self.factor))

    def __str__(self) -> str:
        parts = [] if self.factor == 1 else [number_text(self.factor)]
        parts += [
            base if exponent.constant == 1 else f"{base}**{_bracketed(exponent)}"
            for base, exponent in (("n", self.n_power), ("L", self.depth_power))
            if exponent != Ex()
        ]
        return "*".join(parts) or "1"

    __repr__ = __str__


def _bracketed(exponent: Ex) -> str:
    value = exponent.constant
    if value is not None and value.denominator == 1:
        return str(value)
    return f"({exponent})"


n = Power(n_power=Ex.number(1))
L = Power(depth_power=Ex.number(1))


@dataclass(frozen=True)
class Layer:
    """The number l of a repetition where the depth is a symbol: ``f"W{l + 1}"`` is a name.

    Args:
        shift: What is added to it.

    Example:
        >>> f"W{Layer() + 1}"
        'W{l+1}'
    """

    shift: int = 0

    def __add__(self, other: int) -> Layer:
        return Layer(self.shift + other)

    def __sub__(self, other: int) -> Layer:
        return Layer(self.shift - other)

    def __str__(self) -> str:
        return f"{{l{self.shift:+d}}}" if self.shift else "{l}"
