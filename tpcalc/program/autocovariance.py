"""``check_autocovariance``: whether numbers are the autocovariance of something random."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError

if TYPE_CHECKING:
    pass

ROUNDING = 1e-10  # eigenvalues that are 0 up to rounding, beside the largest
FINEST = 2**17  # angles at least at which a spectral density is looked at


def check_autocovariance(
    row: Array, name: str, depth: int | None, *, endless: bool = False
) -> None:
    """Refuse numbers c_0, c_1, ... whose Toeplitz matrix has a negative eigenvalue.

    Source: Levinson, Durbin: errors of prediction; without end the spectral density.

    Example:
        >>> import numpy as np
        >>> check_autocovariance(np.array([1.0, 0.6]), "c", 2)
        >>> try:
        ...     check_autocovariance(np.array([1.0, 0.6]), "c", None, endless=True)
        ... except EvaluationError as error:
        ...     print(error.message)  # 1 + 1.2 cos(t) < 0
        no endless Gaussian sequence has the autocovariance c.
    """
    if not (_density(row) if endless else _predicts(row)):
        which = ("endless ", "") if depth is None else ("", f" of {depth} numbers")
        raise EvaluationError(
            f"no {which[0]}Gaussian sequence{which[1]} has the autocovariance {name}.",
            hint="An estimate that divides all sums by the same length is one of a sequence.",
        )


def _density(row: Array) -> bool:
    import numpy as np

    density = 2 * np.fft.rfft(row, max(FINEST, 64 * len(row))).real - row[0]
    return bool(density.min() >= -ROUNDING * density.max())


def _predicts(row: Array) -> bool:
    """Whether each number is predicted by those before it with an error that is none below 0."""
    import numpy as np

    error = float(row[0]) + ROUNDING * float(2 * np.abs(row).sum() - row[0])
    predictor = np.zeros(len(row))
    for m in range(1, len(row)):
        partial = float(row[m] - predictor[: m - 1] @ row[m - 1 : 0 : -1]) / error
        if not abs(partial) < 1:
            return False
        predictor[: m - 1] -= partial * predictor[: m - 1][::-1].copy()
        predictor[m - 1] = partial
        error *= 1 - partial**2
    return True
