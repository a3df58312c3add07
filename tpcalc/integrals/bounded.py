"""Numbers, or arrays of them, with a bound on their error, carried through arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any

from tpcalc.errors import EvaluationError
from tpcalc.results import Estimate, Method, Status
from tpcalc.shown import Shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EPS = 2.0**-52
NEGLIGIBLE = 2.0**-40


@dataclass(frozen=True, slots=True)
class Bounded(Shown):
    """A number, or an array of them, and how far it may be off.

    Sums, products, quotients and powers bound the error of the result; ``through`` carries it to
    first order. Of a sampled number the error is one standard error, and errors are added as if all
    samples erred the same way. What leaves the range of a float is refused: 0 and infinity would
    stand for numbers that are neither. Of an array each entry is refused on its own: its value is
    NaN and its error infinite.

    Example:
        >>> (Bounded(2.0, 0.5) * Bounded(3.0)).value
        6.0
        >>> (Bounded(2.0, 0.5) * 0).error
        0.0
    """

    value: Any  # the number; an array, float64
    # a bound on its error, of a shape that broadcasts to that of value; one standard error where it
    # is sampled
    error: Any = 0.0
    method: Method = Method.EXACT  # the least exact method behind it
    seed: int | None = None  # the seed, where it is sampled

    __array_ufunc__ = None  # an array times one is one times the array

    def __str__(self) -> str:
        if not self.shape:
            return str(self.estimate())
        import numpy as np

        most = np.max(np.broadcast_to(self.error, self.shape), initial=0, where=self.known)
        kind = "standard errors" if self.method is Method.PARTICLES else "errors"
        return f"{self.value}\n({self.method.value}, {kind} <= {most:.2g})"

    @property
    def shape(self) -> tuple[int, ...]:
        """That of an array; () of a number."""
        return getattr(self.value, "shape", ())

    @property
    def is_zero(self) -> bool:
        """Whether it is a number that is known to be 0."""
        exact = self.method is Method.EXACT and not self.shape
        return exact and bool(self.value == 0 and self.error == 0)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Where there is a number."""
        import numpy as np

        return np.asarray(np.isfinite(self.value) & np.isfinite(self.error))

    def at(self, index: Any) -> Bounded:
        """One number of an array."""
        import numpy as np

        error = np.broadcast_to(self.error, np.shape(self.value))[index]
        if not (np.isfinite(self.value[index]) and np.isfinite(error)):
            raise EvaluationError(
                "an average over the Gaussian does not exist, or is not found.",
                hint="The activation grows too fast, or bends in places that are not declared.",
            )
        return Bounded(float(self.value[index]), float(error), self.method, self.seed)

    def where(self, good: Any) -> Bounded:
        """The array with what is not good as no number."""
        import numpy as np

        kept = (np.where(good, self.value, nan), np.where(good, self.error, inf))
        return Bounded(*kept, self.method, self.seed)

    def __add__(self, other: Bounded | float | NDArray[Any]) -> Bounded:
        right = bounded(other)
        value = self.value + right.value
        return _joined(value, self.error + right.error, self, right)

    __radd__ = __add__

    def __neg__(self) -> Bounded:
        return Bounded(-self.value, self.error, self.method, self.seed)

    def __sub__(self, other: Bounded | float | NDArray[Any]) -> Bounded:
        return self + (-bounded(other))

    def __rsub__(self, other: float | NDArray[Any]) -> Bounded:
        return bounded(other) - self

    def __mul__(self, other: Bounded | float | NDArray[Any]) -> Bounded:
        right = bounded(other)
        if self.is_zero or right.is_zero:
            return Bounded(0.0)
        if self.shape or right.shape:
            import numpy as np

            with np.errstate(all="ignore"):  # of entries that are refused
                return _product(self, right)
        kept(self.value * right.value, self.value and right.value)
        return _product(self, right)

    __rmul__ = __mul__

    def __truediv__(self, other: Bounded | float | NDArray[Any]) -> Bounded:
        right = bounded(other)
        if right.shape:
            right = right.where(abs(right.value) > right.error)
        least = right._apart_from_zero()
        if self.is_zero:
            return Bounded(0.0)
        value = kept(self.value / right.value, 0.0 if self.shape else self.value)
        error = (self.error + abs(value) * right.error) / least + EPS * abs(value)
        return _joined(value, error, self, right)

    def __rtruediv__(self, other: float | NDArray[Any]) -> Bounded:
        return bounded(other) / self

    def __abs__(self) -> Bounded:
        return Bounded(abs(self.value), self.error, self.method, self.seed)

    def power(self, exponent: Fraction | int) -> Bounded:
        """|x|^r with the sign of x, for r >= 0; for r = 0 it is 1."""
        if exponent == 0:
            return Bounded(1.0)
        size, degree = abs(self.value), float(exponent)
        low, value, high = (
            _power(at, degree) for at in (max(size - self.error, 0.0), size, size + self.error)
        )
        kept(value, size)
        sign = -1.0 if self.value < 0 else 1.0
        return _joined(sign * value, max(high - value, value - low), self, self)

    def root(self) -> Bounded:
        """The square root of a number that is not negative."""
        if self.shape:
            import numpy as np

            roots = np.sqrt(np.maximum([self.value, self.value - self.error], 0.0))
            return _joined(roots[0], roots[0] - roots[1], self)
        value = kept(sqrt(max(self.value, 0.0)))
        low = sqrt(max(self.value - self.error, 0.0))
        error = max(sqrt(max(self.value + self.error, 0.0)) - value, value - low)
        rounding = 0.0 if Fraction(value) ** 2 == self.value else EPS * value
        return _joined(value, error + rounding, self)

    def inverse(self) -> Bounded:
        """1 / x."""
        least = self._apart_from_zero()
        value = kept(1 / self.value)
        return _joined(value, self.error / (least * abs(self.value)), self)

    def _apart_from_zero(self) -> Any:
        """How far from 0 it is at least."""
        least = abs(self.value) - self.error
        if not self.shape and least <= 0:
            raise EvaluationError(
                f"a number that divides is {self.value:.3g} with an error up to {self.error:.1g}.",
                hint="Take numbers for which it is not 0.",
            )
        return least

    def estimate(self) -> Estimate:
        """The number as results carry it."""
        exact = self.method is Method.EXACT and self.error == 0
        status = Status.EXACT if exact else Status.CONVERGED
        return Estimate(self.value, self.error, self.method, status, seed=self.seed)


def bounded(value: Bounded | Estimate | Fraction | float | NDArray[Any]) -> Bounded:
    """A number of any kind with its error: that of rounding for a fraction that no float is.

    Example:
        >>> bounded(Fraction(1, 4)).error, bounded(Fraction(1, 3)).error > 0
        (0.0, True)
    """
    if isinstance(value, Bounded):
        return value
    if isinstance(value, Estimate):
        return Bounded(value.value, value.stderr, value.method, value.seed)
    if _is_array(value):
        return Bounded(value)
    found = float(value)
    return Bounded(found, 0.0 if found == value else EPS * abs(found))


def through(function: Callable[..., Estimate], *given: Bounded) -> Bounded:
    """A function of numbers that carry errors: each is moved by its error, one after the other.

    Example:
        >>> square = lambda x: Estimate(x * x, 0.0, Method.EXACT)
        >>> round(through(square, Bounded(3.0, 0.001)).error, 6)
        0.006001
    """
    values = [part.value for part in given]
    own = bounded(function(*values))
    error, zero = own.error, own.is_zero
    sampled = own.method is Method.PARTICLES
    for place, part in enumerate(given):
        # The error of rounding is lost in that of samples.
        if part.error > (NEGLIGIBLE * abs(part.value) if sampled else 0.0):
            near = [*values[:place], part.value + part.error, *values[place + 1 :]]
            moved = bounded(function(*near))
            error += abs(moved.value - own.value)
            zero = zero and moved.is_zero
    # A closed form is 0 by symmetry or independence, whatever the numbers in it are.
    return Bounded(0.0) if zero else _joined(own.value, error, own, *given)


def kept(value: float, factors: float = 0.0) -> float:
    """A number that did not leave the range of a float."""
    if not _is_array(value) and (not isfinite(value) or (value == 0 and factors != 0)):
        raise EvaluationError(
            "a number of the formula leaves the floating-point range.",
            hint="Take smaller numbers: inputs, learning rates, degrees or depths.",
        )
    return value


def _is_array(value: Any) -> bool:
    return bool(getattr(value, "shape", ()))


def _product(left: Bounded, right: Bounded) -> Bounded:
    error = abs(left.value) * right.error + abs(right.value) * left.error
    return _joined(left.value * right.value, error + left.error * right.error, left, right)


def _power(value: float, exponent: float) -> float:
    try:
        return float(value**exponent)
    except OverflowError:
        return float("inf")


def _joined(value: float, error: float, *parts: Bounded) -> Bounded:
    method = max(part.method for part in parts)
    seeds = [part.seed for part in parts if part.seed is not None]
    if _is_array(value):
        found = Bounded(value, error + EPS * abs(value), method, seeds[0] if seeds else None)
        return found.where(found.known)
    kept(value), kept(error)
    rounding = EPS * abs(value) if error > 0 or method is not Method.EXACT else 0.0
    return Bounded(value, error + rounding, method, seeds[0] if seeds else None)
