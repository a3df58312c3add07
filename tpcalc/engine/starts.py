"""Factors of covariances of start vectors, singular ones included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpcalc.errors import ProgramError

__all__ = ["factor"]

RELATIVE_RANK = 1e-12


def factor(cov: NDArray[np.float64], name: str) -> tuple[tuple[float, ...], ...]:
    """A factor F with F F^T = cov, one column for each rank, in the order of the members.

    Members keep their order, so the first draws (the best ones of a quasi-random sequence) serve
    the first members; a member that depends on earlier ones costs no draw. Repeated inputs make
    such covariances every day.

    Args:
        cov: Shape (m, m), symmetric positive semidefinite.
        name: Of the group, for messages.

    Returns:
        m rows of ``rank`` numbers.

    Raises:
        ProgramError: The matrix is not positive semidefinite.

    Example:
        >>> factor(np.array([[1.0, 1.0], [1.0, 1.0]]), "g")
        ((1.0,), (1.0,))
    """
    size = len(cov)
    scale = float(np.max(np.diag(cov), initial=0.0))
    tolerance = RELATIVE_RANK * scale * max(size, 1)
    residual = np.array(cov, dtype=np.float64)
    columns: list[NDArray[np.float64]] = []
    for index in range(size):
        pivot = residual[index, index]
        if pivot < -1e-8 * scale:
            raise ProgramError(
                f"the covariance of group {name!r} is not positive semidefinite (member {index}).",
                hint="Check its entries: |cov(i, j)| <= sqrt(cov(i, i) cov(j, j)) at least.",
            )
        if pivot <= tolerance:
            if np.max(np.abs(residual[index])) > 1e-6 * scale:
                raise ProgramError(
                    f"the covariance of group {name!r} is not positive semidefinite "
                    f"(member {index})."
                )
            continue
        column = residual[:, index] / np.sqrt(pivot)
        column[:index] = 0.0
        columns.append(column)
        residual -= np.outer(column, column)
    if not columns:
        return tuple(() for _ in range(size))
    return tuple(tuple(row) for row in np.column_stack(columns).tolist())
