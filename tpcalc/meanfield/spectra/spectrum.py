"""Squared singular values of products of random matrices, by truncated S-transforms.

With M(u) = sum_k m_k u^k the series of the moments of a spectrum, S(z) = (1 + z) / z M^(-1)(z). For
free factors S-transforms multiply. The first coefficient of S = (1 + s_1 z + ...) / m_1 is minus
the relative variance, so that relative variances add along a product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import derivative
from tpcalc.integrals.activation_moments import average
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.given import of_activation
from tpcalc.meanfield.maps.edge import checked_rank
from tpcalc.meanfield.operations import checked_family
from tpcalc.meanfield.spectra.finite import finite_moments as finite_moments
from tpcalc.meanfield.spectra.finite import finite_variance as finite_variance
from tpcalc.shown import Shown

Series = tuple[Any, ...]
# S(z) = (1 + z)^a (gamma + z)^b / sigma^2 for one layer.
POWERS = {"gaussian": (0, -1), "orthogonal": (1, -1), "gaussian-gaussian": (-1, -1)}
FAMILIES = tuple(POWERS)


@dataclass(frozen=True, slots=True)
class Spectrum(Shown):
    """A law of squared singular values, by its mean and the coefficients of its S-transform.

    Args:
        mean: m_1.
        s: s_1, s_2, ...: S(z) = (1 + s_1 z + s_2 z^2 + ...) / m_1. Fractions stay exact.

    Example:
        >>> half = weight_spectrum("gaussian", Fraction(1, 2), 2, variance=2)
        >>> (half * half).relative_variance, half.moments
        (Fraction(4, 1), (Fraction(1, 1), Fraction(3, 1), Fraction(11, 1)))
    """

    mean: Any
    s: Series

    @property
    def relative_variance(self) -> Any:
        """Variance over squared mean."""
        return -self.s[0]

    @property
    def moments(self) -> Series:
        """m_1, m_2, ..., one more than there are coefficients."""
        order = len(self.s) + 1
        # chi(z) = z S(z) / (1 + z) is the inverse of the series of moments.
        signs: Series = tuple((-1) ** k for k in range(order))
        inverse = _times((1, *self.s), signs, order)
        plain = _reverted(inverse)
        return tuple(c * self.mean ** (k + 1) for k, c in enumerate(plain))

    def __mul__(self, other: Spectrum) -> Spectrum:
        order = min(len(self.s), len(other.s))
        product = _times((1, *self.s), (1, *other.s), order + 1)
        return Spectrum(self.mean * other.mean, product[1:])

    def power(self, count: int) -> Spectrum:
        """The product of so many free copies.

        Args:
            count: How many, at least 1.
        """
        count = checks.whole(count, "count", least=1)
        found = self
        for _ in range(count - 1):
            found = found * self
        return found


def of_moments(moments: Sequence[Any]) -> Spectrum:
    """The spectrum with these moments.

    Args:
        moments: m_1, m_2, ...; two or more, m_1 not 0.

    Returns:
        The spectrum, with one coefficient less than moments.

    Raises:
        UsageError: Fewer than two, or a mean of 0.

    Example:
        >>> of_moments((Fraction(1), Fraction(2), Fraction(5))).s
        (Fraction(-1, 1), Fraction(1, 1))
    """
    moments = [checks.real(one, "a moment") for one in checks.sequence(moments, "moments")]
    if len(moments) < 2 or moments[0] == 0:
        raise UsageError(
            f"moments are {', '.join(map(str, moments)) or 'none'}.",
            hint="Give two or more, the first not 0.",
        )
    mean = moments[0]
    plain = tuple(m / mean ** (k + 1) for k, m in enumerate(moments))
    inverse = _reverted(plain)
    ones: Series = (1, 1, *(0,) * (len(inverse) - 2))
    return Spectrum(mean, _times(inverse, ones, len(inverse))[1:])


def weight_spectrum(
    family: str, rank: Fraction | float, order: int = 3, variance: Fraction | float = 1
) -> Spectrum:
    """W^T W for low-rank weights.

    Args:
        family: ``"gaussian"``: C A with orthonormal C and Gaussian A; ``"orthogonal"``: U V^T with
            Haar U and V; ``"gaussian-gaussian"``: a product of two Gaussian matrices.
        rank: Rank over width, gamma; 1 for full rank.
        order: Coefficients of the S-transform.
        variance: sigma^2 of the entries times the fan-in, or the squared singular value.

    Returns:
        The spectrum, exact where rank and variance are rational.

    Raises:
        StudyError: Another family, or a rank that is none.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 3, Table 1.

    Example:
        >>> weight_spectrum("orthogonal", Fraction(1, 4), 2).s
        (Fraction(-3, 1), Fraction(12, 1))
    """
    checked_family(family, FAMILIES)
    checked_rank(rank, "weight_spectrum")
    variance = checks.real(variance, "variance", above=0)
    order = checks.whole(order, "order", least=1)
    found = tuple((-1 / _exact(rank)) ** k for k in range(order + 1))  # 1 / (1 + z / gamma)
    if POWERS[family][0] > 0:
        found = _times(found, (1, 1, *(0,) * (order - 1)), order + 1)
    elif POWERS[family][0] < 0:
        found = _times(found, tuple((-1) ** k for k in range(order + 1)), order + 1)  # 1 / (1 + z)
    return Spectrum(_exact(rank) * variance, found[1:])


@of_activation
def slope_spectrum(tau: Expr, q: float, order: int = 1) -> Spectrum:
    """D^2, the squared slopes of an activation at preactivations of second moment q.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        q: The second moment.
        order: Coefficients of the S-transform.

    Returns:
        The spectrum of a diagonal matrix of these numbers.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 3.1.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> round(slope_spectrum(lookup("erf").fn.expr, 0.5).relative_variance, 7)
        0.3416408
    """
    slope = derivative(tau, Var(0))
    orders = range(1, checks.whole(order, "order", least=1) + 2)
    return of_moments([average(slope ** (2 * k), Bounded(q)).value for k in orders])


@of_activation
def jacobian(tau: Expr, q: float, weights: Spectrum, depth: int) -> Spectrum:
    """J J^T for the input-output Jacobian of equal layers at a fixed point of their lengths.

    Weights have to be free from the slopes of the layer before: true for ``weight_spectrum``, not
    for orthogonal ones that are padded with columns of 0 (``padded_variance``).

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        q: The fixed point.
        weights: W^T W.
        depth: Number of layers.

    Returns:
        The spectrum after all layers.

    Source: On the initialisation of wide low-rank feedforward neural networks, equations 10, 11.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> gaussian = weight_spectrum("gaussian", 0.25, 1)
        >>> jacobian(lookup("identity").fn.expr, 1.0, gaussian, 5).relative_variance
        20.0
    """
    return (slope_spectrum(tau, q, len(weights.s)) * weights).power(depth)


@of_activation
def padded_variance(tau: Expr, q: float, rank: float, depth: int) -> float:
    """The relative variance where orthonormal columns are padded with columns of 0.

    W^T W is diagonal then, and not free from the slopes of the layer before.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        q: The fixed point.
        rank: Rank over width.
        depth: Number of layers.

    Returns:
        The variance of the squared singular values over their squared mean.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> round(padded_variance(lookup("erf").fn.expr, 0.5, 0.25, 4), 4)
        16.4413
    """
    return float(padded(slope_spectrum(tau, q).relative_variance, rank, depth))


def padded(slopes: Any, rank: Any, depth: int) -> Any:
    """The same by the relative variance of the slopes."""
    b = 1 / rank - 1
    return (slopes + b) * depth + slopes * b * (depth - 1)


def _exact(value: Fraction | float) -> Any:
    return Fraction(value) if isinstance(value, int) else value


def _times(left: Sequence[Any], right: Sequence[Any], order: int) -> Series:
    return tuple(
        sum(left[i] * right[k - i] for i in range(k + 1) if i < len(left) and k - i < len(right))
        for k in range(order)
    )


def _reverted(series: Sequence[Any]) -> Series:
    """The inverse b_1 z + b_2 z^2 + ... of c_1 z + c_2 z^2 + ... with c_1 = 1."""
    order = len(series)
    found: list[Any] = [series[0]]
    for k in range(2, order + 1):
        # The coefficient of z^k in sum_j c_j (b_1 z + ... )^j has to be 0.
        rest = 0
        power: Series = (1, *(0,) * k)
        base: Series = (0, *found, *(0,) * (k - len(found)))
        for j in range(1, k + 1):
            power = _times(power, base, k + 1)
            if j > 1:
                rest = rest + series[j - 1] * power[k]
        found.append(-rest)
    return tuple(found)
