"""Functions of a kernel of inputs that are trained on: its inverse, flow and descent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from tpcalc.errors import EvaluationError
from tpcalc.results.estimate import Method

if TYPE_CHECKING:
    from numpy.typing import NDArray

EPS = 2.0**-52
SMALL = 256  # inputs of which all eigenvectors take no time


class Held(Protocol):
    """What is asked of a ``Kernel``."""

    symmetric: bool
    method: Method
    model: str
    nngp: NDArray[Any] | None
    _spectra: dict[Any, Any]  # what was found of its matrices

    @property
    def kinds(self) -> tuple[str, ...]:
        """Which kernels there are."""

    @property
    def shape(self) -> tuple[int, int]:
        """Of inputs."""

    @property
    def worst(self) -> float:
        """The error of all entries."""

    def matrix(self, kind: str) -> NDArray[Any]:
        """One of the kernels."""

    def self_adjoint(self, kind: str) -> NDArray[Any]:
        """The same, which must be symmetric."""

    def eigenvectors(self, kind: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Of one of the kernels, behind the eigenvalues."""


@dataclass(frozen=True, eq=False)
class Function:
    """A function f(A) of a kernel A with its ridge, by eigenvectors, or the inverse by a factor."""

    slope: float  # of f at the most, where the true eigenvalues may lie
    vectors: NDArray[Any] | None
    weights: NDArray[Any] | None  # f at the eigenvalues
    factor: Any = None  # of Cholesky
    log_determinant: float = math.nan  # of the inverse: that of A

    def of(self, y: NDArray[Any]) -> NDArray[Any]:
        """The function times columns."""
        if self.vectors is None or self.weights is None:
            from scipy.linalg import cho_solve

            found: NDArray[Any] = cho_solve(self.factor, y, check_finite=False)
            return found
        told: NDArray[Any] = self.vectors @ (self.weights[:, None] * (self.vectors.T @ y))
        return told


@dataclass(frozen=True, eq=False)
class Trained:
    """A kernel of inputs that are trained on, with what is added to its diagonal."""

    kernel: Held
    kind: str
    ridge: float

    @cached_property
    def matrix(self) -> NDArray[Any]:
        """The kernel, which is symmetric."""
        return self.kernel.self_adjoint(self.kind)

    @cached_property
    def sizes(self) -> NDArray[Any]:
        """The roots of the diagonal, of which entries have relative errors."""
        import numpy as np

        return np.asarray(np.sqrt(np.clip(np.diagonal(self.matrix), 0.0, None)))

    @cached_property
    def rounding(self) -> float:
        """Of the matrix in what is computed of it, in the Frobenius norm."""
        import numpy as np

        return (len(self.matrix) + 8) * EPS * (float(np.linalg.norm(self.matrix)) + self.ridge)

    @cached_property
    def off(self) -> float:
        """The Frobenius norm of the error of the kernel, with rounding."""
        return self.kernel.worst * float((self.sizes**2).sum()) + self.rounding

    @cached_property
    def largest(self) -> float:
        """The largest eigenvalue, with the ridge."""
        import numpy as np

        if len(self.matrix) <= SMALL or (self.kind, "vectors") in self.kernel._spectra:
            return float(self.kernel.eigenvectors(self.kind)[0][-1]) + self.ridge
        from scipy.sparse.linalg import eigsh

        asked: dict[str, Any] = {"v0": np.ones(len(self.matrix)), "return_eigenvectors": False}
        return float(eigsh(self.matrix, 1, which="LA", **asked)[0]) + self.ridge

    def inverse(self) -> Function:
        """1 / (eigenvalue + ridge); the last one is kept.

        Raises:
            EvaluationError: An eigenvalue is not told from 0.
        """
        place, kept = (self.kind, "inverse"), self.kernel._spectra
        if place not in kept or kept[place][0] != self.ridge:
            kept[place] = self.ridge, self._factored() or self._inverted()
        found: Function = kept[place][1]
        return found

    def _factored(self) -> Function | None:
        """By Cholesky, if that is enough to bound the smallest eigenvalue."""
        import numpy as np
        from scipy.linalg import LinAlgError, cho_factor, lapack

        if len(self.matrix) <= SMALL or (self.kind, "vectors") in self.kernel._spectra:
            return None
        try:
            whole = self.matrix + self.ridge * np.eye(len(self.matrix))
            factor, lower = cho_factor(whole, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return None
        half = np.tril(lapack.dpotri(factor, lower=1)[0])
        norm = math.sqrt(2 * np.linalg.norm(half) ** 2 - np.linalg.norm(np.diagonal(half)) ** 2)
        least = 1 / norm - self.off  # of the matrix itself: the inverse is rounded
        if not least > 2 * self.off:
            return None
        determinant = 2 * float(np.log(np.diagonal(factor)).sum())
        return Function((least - self.off) ** -2, None, None, (factor, lower), determinant)

    def _inverted(self) -> Function:
        import numpy as np

        values, vectors = self.kernel.eigenvectors(self.kind)
        least = float(values.min()) + self.ridge
        if least <= self.off:
            raise EvaluationError(
                f"the smallest eigenvalue of the {self.kind.upper()} is {least:.2g}, known to "
                f"{self.off:.1g}.",
                hint="Add a ridge, leave out inputs that are equal, or give a finite time.",
            )
        found = values + self.ridge
        determinant = float(np.log(found).sum())
        return Function((least - self.off) ** -2, vectors, 1.0 / found, None, determinant)

    @property
    def _ends(self) -> tuple[float, float]:
        """Between what the true eigenvalues lie, with the ridge."""
        values = self.kernel.eigenvectors(self.kind)[0]
        ends = float(values[0]) - self.off, float(values[-1]) + self.off
        return max(ends[0], 0.0) + self.ridge, max(ends[1], 0.0) + self.ridge

    def flow(self, time: float) -> Function:
        """(1 - exp(-eigenvalue t)) / eigenvalue; it is steepest at the smallest eigenvalue."""
        import numpy as np

        values, vectors = self.kernel.eigenvectors(self.kind)
        x = np.clip(values, 0.0, None) + self.ridge
        found = np.where(x > 0, -np.expm1(-x * time) / np.where(x > 0, x, 1.0), time)
        z = self._ends[0] * time
        slope = (1 - (1 + z) * math.exp(-z)) / self._ends[0] ** 2 if z >= 1e-3 else time * time / 2
        return Function(slope, vectors, found)

    def descent(self, rate: float, steps: int) -> Function:
        """(1 - (1 - rate eigenvalue)^steps) / eigenvalue."""
        import numpy as np

        values, vectors = self.kernel.eigenvectors(self.kind)
        x = np.clip(values, 0.0, None) + self.ridge
        size = max(abs(1.0 - rate * end) for end in self._ends)
        if size > 1 and steps * math.log(size) > 700:
            raise EvaluationError(
                f"descent diverges: the rate is {rate:g}, and it converges below "
                f"{2 / float(x.max()):.4g}.",
                hint="Take a smaller rate or fewer steps.",
            )
        small = np.minimum(rate * x, 0.5)  # of which 1 - (1 - z)^steps would lose digits
        gone = np.where(rate * x > 0.5, 1.0 - (1.0 - rate * x) ** steps,
                        -np.expm1(steps * np.log1p(-small)))  # fmt: skip
        sums = np.where(x > 0, gone / np.where(x > 0, x, 1.0), rate * steps)
        slope = steps**2 / 2 * max(size, 1.0) ** steps  # a power of k is k times as steep
        slope = slope if size >= 1 else min(slope, 1 / (1 - size) ** 2)
        return Function(rate**2 * slope, vectors, sums)
