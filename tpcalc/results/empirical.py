"""``EmpiricalKernel``: kernels of networks that were drawn, beside those of infinite width."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.results.estimate import Method, normal_score
from tpcalc.results.kernel import KINDS, Kernel
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUNDING = 1e-12  # of networks that were run in float64, relative
CHANCE = 0.01


@dataclass(frozen=True)
class KernelGap(Shown):
    """Where drawn kernels are farthest from their limit, in standard errors.

    Attributes:
        kind: ``"nngp"`` or ``"ntk"``.
        row: Of the entry.
        column: Of the entry.
        limit: The entry at infinite width.
        drawn: Its mean over networks.
        stderr: The standard error of that.
        z: Their distance in combined standard errors, of a Gaussian: the largest of all entries.
        largest_by_chance: That of as many Gaussians is larger once in 100 times.
    """

    kind: str
    row: int
    column: int
    limit: float
    drawn: float
    stderr: float
    z: float
    largest_by_chance: float


@dataclass(frozen=True, eq=False)
class EmpiricalKernel(Shown):
    """Kernels of networks of one width, drawn at random, beside their limit.

    A network of finite width has another mean kernel, which differs by about 1 / width: with
    networks enough it is seen. Take wider ones, and distances fall.

    Args:
        rows: For each kind the entry that is farthest from the limit.
        limit: The kernels of infinite width.
        nngp: Products of outputs of each network, of shape (networks, N, N); None if not asked for.
        ntk: The tangent kernel of each network, of that shape, or None.
        width: Of the networks; None if it was not said.
        provenance: What they were drawn from and with; None of arrays that were given.
    """

    rows: tuple[KernelGap, ...]
    limit: Kernel
    nngp: NDArray[Any] | None
    ntk: NDArray[Any] | None
    width: int | None = None
    provenance: Provenance | None = None

    @classmethod
    def beside(
        cls,
        limit: Kernel,
        *,
        nngp: Any = None,
        ntk: Any = None,
        width: int | None = None,
        provenance: Provenance | None = None,
    ) -> EmpiricalKernel:
        """Kernels that were found elsewhere, say of modules of torch, beside their limit.

        Args:
            limit: What ``tp.kernel`` gave for the same inputs.
            nngp: For each network the products of its outputs, of shape (networks, N, N).
            ntk: Its tangent kernel, of that shape.
            width: Of the networks.
            provenance: What they were drawn with.

        Returns:
            Both, with their distances.

        Raises:
            UsageError: There are no arrays, they do not fit the limit, or are of one network alone.

        Example:
            >>> import numpy as np
            >>> import tpcalc as tp
            >>> limit = tp.kernel(tp.MLP(1, "identity"), np.eye(2), scale=1, kinds="nngp")
            >>> f = np.random.default_rng(0).normal(size=(400, 2))
            >>> EmpiricalKernel.beside(limit, nngp=f[:, :, None] * f[:, None]).agrees
            True
        """
        given = {"nngp": nngp, "ntk": ntk}
        draws = {kind: _draws(one, limit, kind) for kind, one in given.items() if one is not None}
        if not draws:
            raise UsageError("no kernels of networks are given.", hint="Give nngp=, ntk= or both.")
        rows = tuple(_gap(kind, limit, own) for kind, own in draws.items())
        return cls(rows, limit, draws.get("nngp"), draws.get("ntk"), width, provenance)

    @property
    def agrees(self) -> bool:
        """Whether no entry is farther from the limit than chance explains, once in 100 times."""
        return all(row.z <= row.largest_by_chance for row in self.rows)

    def mean(self, kind: str) -> NDArray[Any]:
        """The mean over networks.

        Args:
            kind: ``"nngp"`` or ``"ntk"``.
        """
        return _moments(self._drawn(kind))[0]

    def stderr(self, kind: str) -> NDArray[Any]:
        """The standard errors of that mean.

        Args:
            kind: ``"nngp"`` or ``"ntk"``.
        """
        return _moments(self._drawn(kind))[1]

    def z(self, kind: str) -> NDArray[Any]:
        """Its distance from the limit in combined standard errors, for each entry.

        Those of few networks are reduced to those of a Gaussian, by the tail of Student's t, and
        those of an NNGP are no smaller than Gaussian outputs with the covariance of the limit have.

        Args:
            kind: ``"nngp"`` or ``"ntk"``.
        """
        import numpy as np

        draws = self._drawn(kind)
        score = np.vectorize(lambda t: normal_score(float(t), (1.0, len(draws) - 1)), otypes="d")
        return np.asarray(score(_distances(self.limit, kind, draws)))

    def _drawn(self, kind: str) -> NDArray[Any]:
        checks.one_of("kernel", kind, KINDS)
        found: NDArray[Any] | None = getattr(self, kind)
        if found is None:
            raise UsageError(f"the {kind.upper()} of networks was not asked for.")
        return found


def _draws(given: Any, limit: Kernel, kind: str) -> NDArray[Any]:
    found, shape = checks.reals(given, kind), limit.matrix(kind).shape
    if not limit.symmetric or found.shape[1:] != shape or len(found) < 2:
        raise UsageError(
            f"{kind} has shape {found.shape}; two networks or more are needed, and for each a "
            f"matrix of {shape[0]} x {shape[0]}, as the limit is one of inputs with themselves.",
        )
    return found


def _moments(draws: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The mean and its standard error."""
    return draws.mean(axis=0), draws.std(axis=0, ddof=1) / math.sqrt(len(draws))


def _distances(limit: Kernel, kind: str, draws: NDArray[Any]) -> NDArray[Any]:
    """Of means from the limit, in combined standard errors; 0 where both are the same number."""
    import numpy as np

    matrix, (mean, stderr) = limit.matrix(kind), _moments(draws)
    sizes = np.sqrt(np.clip(np.diagonal(matrix), 0.0, None))
    if kind == "nngp":  # products of Gaussians scatter most where their mean is large
        stderr = np.maximum(stderr, np.hypot(np.outer(sizes, sizes), matrix) / len(draws) ** 0.5)
    own = limit.worst / 3 if limit.method is Method.PARTICLES else limit.worst
    error = np.hypot(stderr, (own + ROUNDING) * np.outer(sizes, sizes))
    gap = abs(mean - matrix)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gap == 0, 0.0, gap / error)


def _gap(kind: str, limit: Kernel, draws: NDArray[Any]) -> KernelGap:
    import numpy as np
    from scipy.special import ndtri

    distances, (mean, stderr) = _distances(limit, kind, draws), _moments(draws)
    row, column = (int(k) for k in np.unravel_index(distances.argmax(), distances.shape))
    count = len(mean) * (len(mean) + 1) // 2
    chance = -float(ndtri(-math.expm1(math.log1p(-CHANCE) / count) / 2))
    z = normal_score(float(distances[row, column]), (1.0, len(draws) - 1))
    own, drawn, error = (float(one[row, column]) for one in (limit.matrix(kind), mean, stderr))
    return KernelGap(kind, row, column, own, drawn, error, z, chance)
