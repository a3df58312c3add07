"""``Prediction``: what networks of infinite width say of new inputs, once trained on others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tpcalc import checks
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.results.estimate import Estimate, Method
from tpcalc.shown import Shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

EPS = 2.0**-52
TIMES = "Give time= (gradient flow), or rate= with steps= (descent); not both."


@dataclass(frozen=True, eq=False)
class Prediction(Shown):
    """Outputs at new inputs, as a law over the networks.

    Args:
        mean: Of the outputs, of shape (M, K) for K columns of targets.
        mean_error: How far each mean may be off, of shape (M, K), by the errors of kernels and by
            rounding.
        covariance: Of the outputs at the M new inputs, the same for all columns; None where the
            kernels between the new inputs were not given.
        covariance_error: How far its entries may be off.
        kind: ``"nngp"``: Bayesian inference; ``"ntk"``: training all layers.
        ridge: What was added to the diagonal of the kernel.
        time: Of gradient flow; infinity: until the end.
        steps: Of gradient descent; None: of gradient flow.
        rate: Of gradient descent.
        largest_rate: Below it descent converges: 2 over the largest eigenvalue.
        method: As of the kernels.
    """

    mean: NDArray[Any]
    mean_error: NDArray[Any]
    covariance: NDArray[Any] | None
    covariance_error: float
    kind: str
    ridge: float
    time: float
    steps: int | None
    rate: float | None
    largest_rate: float
    method: Method

    @property
    def deviation(self) -> NDArray[Any]:
        """The standard deviation at each new input, of shape (M,).

        Raises:
            UsageError: There is no covariance.
        """
        import numpy as np

        return np.asarray(np.sqrt(np.clip(np.diagonal(self._spread), 0.0, None)))

    def samples(self, count: int, seed: int = 0) -> NDArray[Any]:
        """Outputs of networks.

        Args:
            count: How many networks.
            seed: For the draws.

        Returns:
            Of shape (count, M, K).

        Raises:
            UsageError: There is no covariance, or a number that is none.
        """
        import numpy as np

        count, seed = checks.whole(count, "count", least=1), checks.seed(seed)
        values, vectors = np.linalg.eigh(self._spread)
        root = vectors * np.sqrt(np.clip(values, 0.0, None))
        rows, columns = self.mean.shape
        noise = np.random.default_rng(seed).standard_normal((count, rows, columns))
        return np.asarray(self.mean + np.einsum("ij,cjk->cik", root, noise))

    @property
    def classes(self) -> NDArray[Any]:
        """The column of the largest mean at each new input, of shape (M,)."""
        found: NDArray[Any] = self.mean.argmax(axis=1)
        return found

    @property
    def _spread(self) -> NDArray[Any]:
        if self.covariance is None:
            raise UsageError(
                "the covariance of the outputs needs the kernels between the new inputs.",
                hint="Give own=tp.kernel(net, Z).",
            )
        return self.covariance


class Held(Protocol):
    """What is asked of a ``Kernel``."""

    symmetric: bool
    method: Method
    nngp: NDArray[Any] | None

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


class Regression:
    """Kernels of inputs whose targets are known."""

    __slots__ = ()

    def predict(
        self: Held,
        targets: Any,
        cross: Held,
        own: Held | None = None,
        *,
        kind: str | None = None,
        ridge: float = 0.0,
        time: float | None = None,
        rate: float | None = None,
        steps: int | None = None,
    ) -> Prediction:
        """What networks say of new inputs, once they were trained on these or know their targets.

        With the NNGP outputs are conditioned on the targets, which come with noise of the variance
        ``ridge``. With the NTK all layers are trained by df/dt = -K (f - y), or by steps
        f - rate K (f - y), from outputs whose covariance is the NNGP; a ridge is added to K.

        Args:
            targets: Of the N inputs, of shape (N,) or (N, C).
            cross: The kernels of M new inputs with the N: ``tp.kernel(net, Z, X)``.
            own: The kernels of the new inputs, ``tp.kernel(net, Z)``: for covariances.
            kind: ``"nngp"`` or ``"ntk"``; by default the NTK where it is there.
            ridge: Added to the diagonal.
            time: Of gradient flow; None, or infinity: until the end.
            rate: Of gradient descent, with ``steps``.
            steps: How many.

        Returns:
            Means and covariances with their errors, samples and classes.

        Raises:
            UsageError: Arguments that do not fit each other.
            EvaluationError: The kernel is singular within its error, or descent diverges.

        Source:
            Lee et al., Wide neural networks of any depth evolve as linear models, arXiv:1902.06720,
            equations (9), (14) and (15).

        Example:
            >>> import tpcalc as tp
            >>> net, x, z = tp.MLP(2, "erf"), [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 1.0]]
            >>> found = tp.kernel(net, x).predict([1.0, -1.0], tp.kernel(net, z, x))
            >>> found.mean[:, 0].round(9).tolist()
            [1.0, 0.0]
        """
        which = kind or self.kinds[-1]
        least = float(checks.real(ridge, "ridge", least=0))
        last = time is None or time == math.inf
        end = None if last else float(checks.real(time, "time", least=0))
        speed = None if rate is None else float(checks.real(rate, "rate", above=0))
        count = None if steps is None else checks.whole(steps, "steps", least=0)
        for other in (one for one in (cross, own) if one is not None):
            checks.of_type(other, Regression, "a kernel")
        return predicted(self, targets, cross, own, which, least, end, speed, count)

    def log_likelihood(self: Held, targets: Any, ridge: float = 0.0) -> Estimate:
        """The marginal likelihood: the log density of targets under the NNGP, with noise.

        Args:
            targets: Of the N inputs, of shape (N,) or (N, C); columns are independent.
            ridge: The variance of the noise.

        Raises:
            UsageError: Arguments that do not fit each other.
            EvaluationError: The kernel is singular within its error.

        Source:
            Rasmussen, Williams, Gaussian processes for machine learning, equation (2.30).
        """
        least = float(checks.real(ridge, "ridge", least=0))
        return likelihood(Trained.of(self, "nngp", least), targets)


@dataclass(frozen=True, eq=False)
class Trained:
    """A kernel of inputs that are trained on, as eigenvectors, and how training weighs them."""

    kernel: Held
    kind: str
    ridge: float
    values: NDArray[Any]
    vectors: NDArray[Any]

    @classmethod
    def of(cls, kernel: Held, kind: str, ridge: float) -> Trained:
        """The eigenvectors of a kernel."""
        import numpy as np

        if not kernel.symmetric:
            raise UsageError("the kernel is between two sets of inputs.", hint="Leave out X2.")
        values, vectors = np.linalg.eigh(kernel.matrix(kind))
        return cls(kernel, kind, ridge, values, vectors)

    @property
    def sizes(self) -> NDArray[Any]:
        """The roots of the diagonal, of which entries have relative errors."""
        import numpy as np

        diagonal = np.diagonal(self.kernel.matrix(self.kind))
        return np.asarray(np.sqrt(np.clip(diagonal, 0.0, None)))

    @property
    def off(self) -> float:
        """The Frobenius norm of the error of the kernel, with rounding."""
        rounding = len(self.values) * EPS * float(abs(self.values).max(initial=0.0))
        return self.kernel.worst * float((self.sizes**2).sum()) + rounding

    def inverse(self) -> tuple[NDArray[Any], float]:
        """1 / (eigenvalue + ridge), and the largest slope of that function.

        Raises:
            EvaluationError: An eigenvalue is not told from 0.
        """
        import numpy as np

        least = float(self.values.min(initial=np.inf)) + self.ridge
        if least <= self.off:
            raise EvaluationError(
                f"the smallest eigenvalue of the {self.kind.upper()} is {least:.2g}, known to "
                f"{self.off:.1g}.",
                hint="Add a ridge, leave out inputs that are equal, or give a finite time.",
            )
        return 1.0 / (self.values + self.ridge), 1.0 / (least - self.off) ** 2

    def flow(self, time: float) -> tuple[NDArray[Any], float]:
        """(1 - exp(-eigenvalue t)) / eigenvalue, and its slope at the most, t^2 / 2."""
        import numpy as np

        x = np.clip(self.values, 0.0, None) + self.ridge
        found = np.where(x > 0, -np.expm1(-x * time) / np.where(x > 0, x, 1.0), time)
        return found, time**2 / 2

    def descent(self, rate: float, steps: int) -> tuple[NDArray[Any], float]:
        """(1 - (1 - rate eigenvalue)^steps) / eigenvalue, and its slope at the most."""
        import numpy as np

        x = np.clip(self.values, 0.0, None) + self.ridge
        left = 1.0 - rate * x
        size = float(abs(left).max(initial=1.0))
        if size > 1 and steps * math.log(size) > 700:
            raise EvaluationError(
                f"descent diverges: the rate is {rate:g}, and it converges below "
                f"{2 / float(x.max()):.4g}.",
                hint="Take a smaller rate or fewer steps.",
            )
        sums = np.where(x > 0, (1.0 - left**steps) / np.where(x > 0, x, 1.0), rate * steps)
        return sums, (rate * steps) ** 2 / 2 * max(size, 1.0) ** steps


def predicted(
    kernel: Held, targets: Any, cross: Held, own: Held | None, kind: str, ridge: float,
    time: float | None, rate: float | None, steps: int | None,
) -> Prediction:  # fmt: skip
    """The law of outputs at new inputs."""
    import numpy as np

    trained = Trained.of(kernel, kind, ridge)
    y = _targets(targets, kernel)
    c = _cross(cross, kernel, kind)
    if (rate is None) != (steps is None) or (rate is not None and time is not None):
        raise UsageError("the length of the training is not clear.", hint=TIMES)
    inverse = rate is None and time is None
    if rate is not None and steps is not None:
        weights, slope = trained.descent(rate, steps)
    else:
        weights, slope = trained.inverse() if time is None else trained.flow(time)
    moved = (trained.vectors * weights) @ trained.vectors.T
    beta, b = moved @ y, c @ moved
    sizes, mine = trained.sizes, _sizes(cross, own, c, kind)
    error = cross.worst * np.outer(mine, sizes @ abs(beta))
    if inverse:  # of c A^-1 y: c A^-1 dA A^-1 y
        error += kernel.worst * np.outer(abs(b) @ sizes, sizes @ abs(beta))
        rounding = len(y) * EPS * float(abs(trained.values).max())
        error += rounding * np.outer(np.linalg.norm(b, axis=1), np.linalg.norm(beta, axis=0))
    else:  # functions of matrices are as steep in the Frobenius norm as those of numbers
        norms = np.linalg.norm(c, axis=1), np.linalg.norm(y, axis=0)
        error += slope * trained.off * np.outer(*norms)
    covariance, off = None, 0.0
    if own is not None:
        covariance, off = _covariance(trained, b, cross, own, slope * trained.off * _norm(c))
    largest = 2.0 / float(max(trained.values.max(initial=0.0) + ridge, 1e-300))
    methods = [one.method for one in (kernel, cross, own) if one is not None]
    end = math.inf if inverse else time if time is not None else math.nan
    return Prediction(
        b @ y, error, covariance, off, kind, ridge, end, steps, rate, largest, max(methods)
    )


def _covariance(
    trained: Trained, b: NDArray[Any], cross: Held, own: Held, off: float
) -> tuple[NDArray[Any], float]:
    """Of f(z) - B f(x), with the noise of the targets for Bayesian inference."""
    import numpy as np

    if own.nngp is None or cross.nngp is None or trained.kernel.nngp is None:
        raise UsageError("covariances need NNGPs.", hint="Leave out kinds= of tp.kernel.")
    k, kz, kzz = (one.matrix("nngp") for one in (trained.kernel, cross, own))
    if kzz.shape != (len(b), len(b)) or not own.symmetric:
        raise UsageError(f"own is of {own.shape} inputs, and cross of {len(b)} new ones.")
    if trained.kind == "nngp":
        k = k + trained.ridge * np.eye(len(k))
    left = b @ kz.T
    found = kzz - left - left.T + b @ k @ b.T
    top = [float(abs(np.diagonal(one)).max(initial=0.0)) for one in (kzz, k)]
    norms = float(np.linalg.norm(b, axis=1).max(initial=0.0)), _norm(kz), _norm(k)
    worst = max(one.worst for one in (trained.kernel, cross, own)) + len(k) * EPS
    sums = float(abs(b).sum(axis=1).max(initial=0.0))
    entries = worst * (math.sqrt(top[0]) + sums * math.sqrt(top[1])) ** 2
    return (found + found.T) / 2, entries + 2 * off * (norms[1] + norms[0] * norms[2])


def _norm(rows: NDArray[Any]) -> float:
    """The largest size of a row."""
    import numpy as np

    return float(np.linalg.norm(rows, axis=1).max(initial=0.0))


def _sizes(cross: Held, own: Held | None, c: NDArray[Any], kind: str) -> NDArray[Any]:
    """Roots of the kernels of new inputs with themselves, at the least."""
    import numpy as np

    if own is not None and kind in own.kinds:
        return np.asarray(np.sqrt(np.clip(np.diagonal(own.matrix(kind)), 0.0, None)))
    return np.full(len(c), math.sqrt(abs(c).max(initial=0.0)))


def _targets(targets: Any, kernel: Held) -> NDArray[Any]:
    y = checks.inputs(targets, "targets") if _depth(targets) > 1 else None
    if y is None:
        y = checks.inputs([[one] for one in targets], "targets")
    if len(y) != kernel.shape[0]:
        raise UsageError(f"{len(y)} targets for {kernel.shape[0]} inputs.")
    return y


def _depth(targets: Any) -> int:
    import numpy as np

    return np.ndim(targets)


def _cross(cross: Held, kernel: Held, kind: str) -> NDArray[Any]:
    if cross.shape[1] != kernel.shape[0]:
        raise UsageError(
            f"cross is of {cross.shape[0]} x {cross.shape[1]} inputs, and {kernel.shape[0]} are "
            "trained on.",
            hint="Give tp.kernel(net, Z, X), the new inputs first.",
        )
    return cross.matrix(kind)


def likelihood(trained: Trained, targets: Any) -> Estimate:
    """The logarithm of the probability density of targets, summed over their columns."""
    import numpy as np

    y = _targets(targets, trained.kernel)
    weights, _ = trained.inverse()
    inner = trained.vectors.T @ y
    alpha = trained.vectors @ (weights[:, None] * inner)
    count, columns = y.shape
    determinant = float(np.log(trained.values + trained.ridge).sum())
    fit = float((inner * inner * weights[:, None]).sum())
    value = -0.5 * (fit + columns * (determinant + count * math.log(2 * math.pi)))
    sizes = trained.sizes
    first = float(((sizes @ abs(alpha)) ** 2).sum())
    inverse = abs((trained.vectors * weights) @ trained.vectors.T)
    error = 0.5 * trained.kernel.worst * (first + columns * float(sizes @ inverse @ sizes))
    rounding = len(y) * EPS * float(abs(trained.values).max())
    error += 0.5 * rounding * (float((alpha * alpha).sum()) + columns * float(weights.sum()))
    return Estimate(value, error, trained.kernel.method)
