"""``Estimate``: a number with how it was found and how sure it is, and differences of such."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tpcalc.errors import UsageError
from tpcalc.shown import Shown

# Degrees of freedom from which on Student's t is a Gaussian to the digits that are printed.
MANY = 1e4
TINY = 1e-280  # chances below leave the floats


def normal_score(gap: float, *errors: tuple[float, float]) -> float:
    """The z at which a Gaussian is as rarely beyond as a difference of these errors is.

    A difference over a standard error from few seeds follows Student's t, which is far from 0 much
    more often: of two seeds one in 61 is beyond 39, as of a Gaussian beyond 2.4.

    Source: Welch, The generalization of Student's problem (1947); Satterthwaite (1946), for the
        degrees of freedom of a sum.

    Example:
        >>> round(normal_score(39.1, (1.0, 1)), 2), round(normal_score(2.0, (1.0, math.inf)), 2)
        (2.4, 2.0)
    """
    scale = math.hypot(*(error for error, _ in errors))
    if scale == 0 or not math.isfinite(gap / scale):
        return 0.0 if gap == 0 else math.inf
    t = gap / scale
    parts = [(error / scale) ** 4 / freedom for error, freedom in errors]
    freedom = 1 / sum(parts) if sum(parts) > 1 / MANY else math.inf
    if t == 0 or freedom == math.inf:
        return t
    from scipy.special import ndtri, ndtri_exp, stdtr

    chance = float(stdtr(freedom, -t))
    if chance > TINY:
        return float(-ndtri(chance))
    return float(-ndtri_exp(_log_tail(t, freedom)))


def _log_tail(t: float, freedom: float) -> float:
    """The logarithm of the chance that Student's t is above a large t."""
    from scipy.special import betaln, hyp2f1

    # Half the incomplete beta function, as a series that stays finite where the chance is not a
    # positive number in floats.
    a, b = freedom / 2, 0.5
    x = -2 * math.log(math.hypot(1.0, t / math.sqrt(freedom)))
    series = float(hyp2f1(a, 1 - b, a + 1, math.exp(x)))
    return float(a * x - math.log(2 * a) - betaln(a, b) + math.log(series))


ROUNDING = 1e-9  # relative: the error of a closed form that six digits do not show


class Method(Enum):
    """How a number was found; the largest of several is the least exact."""

    EXACT = "exact"
    QUADRATURE = "quadrature"
    PARTICLES = "particles"
    FINITE = "finite"

    def __lt__(self, other: Method) -> bool:
        return _RANKS[self.value] < _RANKS[other.value]


_RANKS = {method.value: rank for rank, method in enumerate(Method)}


class Status(Enum):
    """What became of the accuracy that was asked; the value says what to do."""

    EXACT = "exact"
    CONVERGED = "the target was met, or none was set"
    RARE = "rare samples may dominate: the standard error may be too small"
    TOLERANCE_NOT_REACHED = "the error target was not met: raise max_samples or rel_error"


@dataclass(frozen=True, slots=True)
class Estimate(Shown):
    """A number with its error.

    Args:
        value: The number. Of a random scalar: its mean over replicates.
        stderr: One standard error (particles, finite); a bound on the error (exact, quadrature),
            which is 0 only where the value is a known number and not one computed in float64.
        method: How it was found.
        status: Whether the accuracy asked for was reached.
        samples: Samples (particles) or draws (finite) behind it; 0 if exact.
        replicates: Independent replicates behind ``stderr``.
        seed: The seed.
        std: Of a random scalar its standard deviation in the limit (or over seeds), else None.
        std_error: The error of ``std``, of the kind of ``stderr``; None where it is not known.
        draws: The value of each replicate or seed.
        formula: The value as a formula, where it has one that fits.

    Example:
        >>> found = Estimate(0.5, 0.01, Method.PARTICLES)
        >>> found.z(0.53), float(found), f"{found:.3f}"
        (3.0, 0.5, '0.500')
    """

    value: float
    stderr: float
    method: Method
    status: Status = Status.CONVERGED
    samples: int = 0
    replicates: int = 0
    seed: int | None = None
    std: float | None = None
    draws: tuple[float, ...] = ()
    formula: str | None = None
    std_error: float | None = None

    @property
    def random(self) -> bool:
        """Whether the scalar itself is random in the limit."""
        return self.std is not None

    @property
    def error(self) -> tuple[float, float]:
        """The standard error with its degrees of freedom, infinitely many where it is a bound."""
        sampled = self.method in (Method.PARTICLES, Method.FINITE) and self.replicates > 1
        return self.stderr, self.replicates - 1 if sampled else math.inf

    def z(self, other: Estimate | float) -> float:
        """Distance to another number in combined standard errors (infinite if both are exact).

        Standard errors from few replicates are uncertain themselves: it is the number of standard
        errors of a Gaussian with the same tail as Student's t.
        """
        value, error = (
            (other.value, other.error) if isinstance(other, Estimate) else (other, (0.0, math.inf))
        )
        gap = abs(self.value - value)
        if gap <= 1e-12 * max(abs(self.value), abs(value), 1.0):
            return 0.0
        return round(normal_score(gap, self.error, error), 12)

    def __float__(self) -> float:
        if self.random:
            raise UsageError(
                "this is random in the limit: it is no number.",
                hint="Its mean is .value, its standard deviation .std.",
            )
        return self.value

    def __round__(self, digits: int | None = None) -> float:
        return round(float(self), digits)

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __str__(self) -> str:
        if self.std is not None:
            error = self.std_error or 0.0
            off = f" ± {error:.1e}" if error > ROUNDING * self.std else ""
            if self.stderr == 0 and self.method is Method.PARTICLES:  # the mean is no sample
                return f"random, mean {self.value:.6g}, sd {self.std:.4g}{off} (particles)"
            return f"random, mean {self._mean}, sd {self.std:.4g}{off}"
        return self._mean

    @property
    def _mean(self) -> str:
        """The value with its error: of a random scalar its mean."""
        small = self.stderr <= ROUNDING * abs(self.value)
        # The spread of samples may be 0 by chance: it is shown.
        sampled = self.method in (Method.PARTICLES, Method.FINITE)
        if (self.stderr == 0 and not sampled) or (small and self.method is Method.EXACT):
            return f"{self.value:.6g} ({self.method.value})"
        if small and self.method is Method.QUADRATURE:
            return f"{self.value:.6g} (quadrature, error <= {self.stderr:.1e})"
        rare = ", rare samples may dominate" if self.status is Status.RARE else ""
        return f"{self.value:.6g} ± {self.stderr:.1e} ({self.method.value}{rare})"


def spread_error(values: Sequence[float]) -> float:
    """The standard error of the standard deviation of independent numbers, by their moments.

    Args:
        values: The numbers, at least two.

    Returns:
        The standard error; 0 of equal numbers.

    Example:
        >>> round(spread_error([-1.0, 0.0, 0.0, 1.0]), 2)
        0.23
    """
    count = len(values)
    mean = sum(values) / count
    unit = max(abs(value - mean) for value in values)  # fourth powers would overflow
    if unit == 0 or not math.isfinite(unit):
        return unit
    away = [(value - mean) / unit for value in values]
    second, fourth = (math.fsum(part**p for part in away) / count for p in (2, 4))
    variance = (fourth - second**2 * (count - 3) / (count - 1)) / count
    return unit * math.sqrt(max(variance, 0.0) / second) / 2


def rounded_up(value: float) -> str:
    """A bound to two digits, never smaller than it is.

    Example:
        >>> rounded_up(1.234e-15), rounded_up(2e-3), rounded_up(0.0999)
        ('1.3e-15', '2e-3', '1e-1')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "unknown"
    mantissa, exponent = (f"{value:.1e}").split("e")
    power = int(exponent)
    if float(f"{mantissa}e{exponent}") < value:
        tenths = round(float(mantissa) * 10) + 1
        mantissa, power = ("1.0", power + 1) if tenths == 100 else (str(tenths / 10), power)
    return f"{mantissa.removesuffix('.0')}e{power}"
