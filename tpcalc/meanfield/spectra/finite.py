"""Squared singular values of linear networks of finite width, by exact recursions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tpcalc import checks
from tpcalc.errors import EvaluationError, StudyError
from tpcalc.meanfield.operations import checked_family

Rows = tuple[tuple[float, float], tuple[float, float]]


class FiniteMoments(NamedTuple):
    """Moments of the spectrum of J J^T over the law of the weights.

    Args:
        first: E Tr X / N.
        first_squared: E (Tr X / N)^2.
        second: E Tr X^2 / N.
    """

    first: float
    first_squared: float
    second: float

    @property
    def variance(self) -> float:
        """The mean over networks of the variance within one."""
        return self.second - self.first_squared

    @property
    def relative_variance(self) -> float:
        """The same over the mean squared mean, for networks whose mean is not 1."""
        return self.second / self.first_squared - 1


def finite_moments(
    family: str, width: int, rank: int, depth: int, variance: float | None = None
) -> FiniteMoments:
    """The moments for a linear network of finite width.

    Args:
        family: ``"gaussian"``, ``"orthogonal"`` or ``"gaussian-gaussian"``, as in
            ``weight_spectrum``.
        width: N.
        rank: r, a number of columns.
        depth: Number of layers.
        variance: sigma^2; by default N / r, with which the mean stays 1.

    Returns:
        The means of m_1, of m_1^2 and of m_2 over the law of the weights.

    Raises:
        StudyError: Another family, or a rank that is 0 or above the width.
        EvaluationError: Moments leave the floating-point range.

    Source: Second moments of Gaussian and Haar matrices, layer after layer, for
        X' = W X W^T; On the initialisation of wide low-rank feedforward neural networks, figures
        2 and 3, are this.

    Example:
        >>> found = finite_moments("gaussian-gaussian", 500, 125, 5)
        >>> round(found.variance, 3), round(found.first, 12)
        (25.611, 1.0)
    """
    n, r = checks.whole(width, "width", least=1), checks.whole(rank, "rank", least=0)
    if not 1 <= r <= n:
        why = "no weights of rank 0 carry a signal" if r == 0 else "ranks end at the width"
        raise StudyError(
            f"the rank is {rank} and the width {width}; {why}.", where="finite_moments"
        )
    checked_family(family, _LAYERS)
    factor = n / r if variance is None else float(checks.real(variance, "variance", above=0))
    rows = _LAYERS[family](float(n), float(r))
    mean, first, second = 1.0, 1.0, 1.0 / n  # E Tr X / N, E (Tr X / N)^2, E Tr X^2 / N^2
    scale = factor * r / n
    try:
        for _ in range(checks.whole(depth, "depth", least=1)):
            first, second = (scale**2 * (x * first + y * second) for x, y in rows)
            mean *= scale
    except OverflowError:
        first = float("inf")
    if not 0 < first < float("inf"):
        raise EvaluationError("moments leave the floating-point range.", hint="Take fewer layers.")
    return FiniteMoments(mean, first, second * n)


def finite_variance(family: str, width: int, rank: int, depth: int) -> float:
    """The variance of a linear network of finite width, weights scaled so that the mean stays 1.

    Args:
        family: As in ``finite_moments``.
        width: N.
        rank: r, a number of columns.
        depth: Number of layers.

    Returns:
        E [Tr X^2 / N - (Tr X / N)^2] for X = J J^T.

    Raises:
        StudyError: Another family, or a rank above the width.

    Example:
        >>> round(finite_variance("gaussian", 1000, 250, 10), 6)
        40.783973
    """
    return finite_moments(family, width, rank, depth).variance


def _gaussian(n: float, r: float) -> Rows:
    """C A with orthonormal C, on which traces do not depend."""
    return (1.0, 2 / r), (1 / r, (r + 1) / r)


def _orthogonal(n: float, r: float) -> Rows:
    """U V^T: the trace of V^T X V for a Haar V of r columns, and of its square."""
    if n == 1:
        return (1.0, 0.0), (0.0, 1.0)
    a = r * ((n + 1) * r - 2) / (n * (n - 1) * (n + 2))
    b = r * (n - r) / (n * (n - 1) * (n + 2))
    scale = (n / r) ** 2
    return (scale * a, 2 * scale * b), (scale * b, scale * (a + b))


def _both(n: float, r: float) -> Rows:
    """C A with Gaussian C and A: the step of A, then that of C, whose fan-in is r."""
    (a, b), (c, d) = _gaussian(n, r)
    (e, f), (g, h) = _gaussian(r, n)
    return (e * a + f * c, e * b + f * d), (g * a + h * c, g * b + h * d)


_LAYERS: dict[str, Callable[[float, float], Rows]] = {
    "gaussian": _gaussian,
    "orthogonal": _orthogonal,
    "gaussian-gaussian": _both,
}
