"""Random matrices that are never formed: orthonormal directions on one side, their images on the other.

A matrix Ŵ of shape (d1, d2), d1 = r1 n, d2 = r2 n, entries N(0, 1/n), is known only through the
vectors it was applied to. Each of its two sides keeps

* ``q``: orthonormal directions of the space the side reads from, (1/N) q_i·q_j = δ_ij, and
* ``e``: the images of those directions in the space the side writes to.

A product is four reads: ``multiply`` reads q of its own side and e of the other one and returns
coefficients; ``materialise`` then reads e of the own side and q of the other one. Because a product
is returned as coefficients, sums of products and weight updates are sums of coefficient rows, and
one ``materialise`` at the end forms the vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tpcalc.engine.directions_basis import Basis
from tpcalc.engine.directions_store import SampleSpace, Store, accumulate, materialise
from tpcalc.engine.draws import Draws

__all__ = [
    "Basis",
    "FiniteMatrix",
    "LimitMatrix",
    "MatrixSide",
    "Product",
    "SampleSpace",
    "Store",
    "accumulate",
    "materialise",
]

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Product:
    """The products of one matrix side with B inputs, as coefficients.

    ``Ŵ x_j = sum_i coords[j, i] e_i + sum_i echo[j, i] q'_i`` with e of this side and q' of the
    other side. They stay valid when directions are added later (pad with zeros).

    Args:
        coords: Coefficients on this side's ``e``, shape (B, rows of this side after the call);
            these are also the coordinates of x_j in this side's ``q``, so that
            (1/N) x_j·x_k = coords[j]·coords[k] up to the tolerance.
        echo: Coefficients on the other side's ``q``, shape (B, rows of the other side); the
            correction term of the limit. All zero columns or no columns for a finite matrix.
    """

    coords: NDArray[np.float64]
    echo: NDArray[np.float64]


class MatrixSide:
    """One side of a random matrix: directions and their images.

    ``side.q`` (a ``Basis``) and ``side.e`` (a ``Store``) are what ``materialise`` takes.

    Args:
        space: Where the inputs of this side live.
        output: Where its images live.
        capacity: Largest number of directions.
        dtype: Storage type of both arrays.
        tolerance: Residuals below this part of the vector add no direction.
    """


class LimitMatrix:
    """The limit of a Gaussian matrix, on samples of the coordinates.

    ``space`` sizes are numbers of samples; ratios enter the covariances.

    Args:
        row_space: The space W x lives in.
        col_space: The space x lives in.
        capacity_forward: Largest number of directions of W (inputs of ``transpose=False``).
        capacity_transposed: The same of W^T.
        draws_rows: Fresh normals on ``row_space``.
        draws_cols: Fresh normals on ``col_space``.
        storage: ``"float64"`` or ``"float32"`` (arithmetic is float64 in both).
        tolerance: Residuals below this part of a vector are dropped.

    Attributes:
        forward: The side of W.
        transposed: The side of W^T.
    """

    def side(self, transpose: bool) -> MatrixSide:
        """The side that ``multiply(..., transpose)`` uses."""

    @property
    def min_ratio(self) -> float:
        """The smallest accepted residual, as a part of its vector (1.0 before any product)."""

    def multiply(self, vectors: Sequence[Vector], transpose: bool = False) -> Product:
        """Products of W (or of its transpose) with several vectors.

        Args:
            vectors: Flat float64 vectors of the padded length of the side's input space.
            transpose: Whether to multiply with the transpose.

        Returns:
            Coefficients of the products. Form a vector with
            ``materialise(out, [(side.e, coords[j]), (other.q, echo[j])])``, where
            ``side = matrix.side(transpose)`` and ``other = matrix.side(not transpose)``.

        Raises:
            Exploded: If a vector holds infinities or NaN.
            EvaluationError: If more directions come up than the capacity holds.
        """

    def reset(self, draws_rows: Draws, draws_cols: Draws) -> None:
        """Forget all directions and keep the memory, for the next replicate."""


class FiniteMatrix:
    """A Gaussian matrix of finite size, revealed on the directions that are asked for: exact law.

    The same interface as ``LimitMatrix``; space sizes are the sizes of the vectors, ratios are
    size / n. ``Product.echo`` has zero columns, images are true images.
    """
