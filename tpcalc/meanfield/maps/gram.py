"""Second moments of any number of inputs: which are some, and what an activation makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import StudyError
from tpcalc.functions import Expr
from tpcalc.integrals.activation_moments import products
from tpcalc.integrals.bounded import Bounded


def checked_gram(gram: Any, where: str) -> Array:
    """A matrix of inner products, as an array."""
    found = checks.reals(gram, "gram").astype(float)
    square = found.ndim == 2 and found.shape[0] == found.shape[1] and np.isfinite(found).all()
    if not square or not np.allclose(found, found.T, rtol=1e-12, atol=0):
        raise StudyError(
            f"second moments of inputs form a symmetric matrix of numbers, not one of the shape "
            f"{found.shape}.",
            where=where,
        )
    low = float(np.linalg.eigvalsh(found)[0])
    if low < -1e-10 * float(np.abs(found.diagonal()).max()):
        raise StudyError(
            f"second moments of inputs have the eigenvalue {low:.3g}.",
            where=where,
            hint="They are averages of products of inputs: no eigenvalue is negative.",
        )
    return found


def applied(tau: Expr, before: Bounded) -> Bounded:
    """E tau(s_a) tau(s_b) for all pairs; each number is moved by its error, one after the other."""
    whole, off = before.value, np.broadcast_to(before.error, before.value.shape)
    rows, columns = np.triu_indices(len(whole))
    p, q, c = whole.diagonal()[rows], whole.diagonal()[columns], whole[rows, columns]
    by_p, by_q, by_c = off.diagonal()[rows], off.diagonal()[columns], off[rows, columns]
    same = rows == columns
    moved = [
        (p, q, c),
        (p + by_p, np.where(same, p + by_p, q), np.where(same, p + by_p, c)),
        (p, np.where(same, q, q + by_q), c),
        (p, q, np.where(same, c, c + by_c)),
    ]
    found = products(tau, *(np.concatenate(column) for column in zip(*moved, strict=True)))
    values = found.value.reshape(len(moved), -1)
    error = np.broadcast_to(found.error, found.value.shape).reshape(len(moved), -1)[0]
    matrix = np.empty((2, *whole.shape))
    matrix[:, rows, columns] = values[0], error + np.abs(values[1:] - values[0]).sum(axis=0)
    matrix[:, columns, rows] = matrix[:, rows, columns]
    return Bounded(matrix[0], matrix[1], max(before.method, found.method))
