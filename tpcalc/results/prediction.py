"""``Prediction``: what networks of infinite width say of new inputs, once trained on others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tpcalc import checks
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.results.estimate import Estimate, Method
from tpcalc.results.trained import EPS, Held, Trained
from tpcalc.shown import Shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

TIMES = "Give time= (gradient flow), or rate= with steps= (descent); not both."


@dataclass(frozen=True, eq=False)
class Prediction(Shown):
    """Outputs at new inputs, as a law over the networks.

    Args:
        mean: Of the outputs, of shape (M, K) for K columns of targets.
        mean_error: How far each mean may be off, of shape (M, K), by the errors of kernels and by
            rounding. Where the kernels between new inputs were not given: of new inputs whose
            kernels with themselves are no larger than the largest of those trained on.
        covariance: Of the outputs at the M new inputs, the same for all columns; None where the
            kernels between the new inputs were not given.
        covariance_error: How far its entries may be off.
        kind: ``"nngp"``: Bayesian inference, or for a finite time training the readout alone;
            ``"ntk"``: training all layers.
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
        """The class of each new input, of shape (M,): the column of its largest mean.

        Of targets in one column it is 1 where the mean is above 0, and 0 elsewhere.
        """
        found: NDArray[Any] = _columns(self.mean).argmax(axis=1)
        return found

    def accuracy(self, targets: Any) -> Estimate:
        """The share of new inputs that are put into the class of their targets.

        Args:
            targets: The class of each new input, of shape (M,), or targets in the columns of those
                trained on: the largest one is the class, of one column the sign.

        Returns:
            The share; its error is the share of inputs whose class the errors of means leave open.

        Raises:
            UsageError: Targets of other inputs, or no classes.
        """
        import numpy as np

        given = checks.reals(targets, "targets")
        rows, columns = self.mean.shape
        if given.shape not in ((rows,), (rows, columns)):
            raise UsageError(
                f"targets have shape {given.shape}; the prediction is of {rows} inputs in "
                f"{columns} columns.",
                hint="Give the class of each new input, or its row of targets.",
            )
        if numbered := given.ndim == 1 and columns > 1:
            for end in (given.min(), given.max()):
                checks.whole(end.item(), "a class", least=0, most=columns - 1)
        truth = given if numbered else _columns(given.reshape(rows, columns)).argmax(axis=1)
        values, errors, every = _columns(self.mean), _columns(self.mean_error), np.arange(rows)
        found = values.argmax(axis=1)
        least, rivals = (values - errors)[every, found], values + errors
        rivals[every, found] = -np.inf
        unclear = float(np.mean(least <= rivals.max(axis=1)))
        return Estimate(float(np.mean(found == truth)), unclear, self.method)

    @property
    def _spread(self) -> NDArray[Any]:
        if self.covariance is None:
            raise UsageError(
                "the covariance of the outputs needs the kernels between the new inputs.",
                hint="Give own=tp.kernel(net, Z).",
            )
        return self.covariance


def _columns(values: NDArray[Any]) -> NDArray[Any]:
    """A column for each class: one column is beside another of zeros."""
    import numpy as np

    return values if values.shape[1] > 1 else np.hstack([np.zeros_like(values), values])


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
        import numpy as np

        which = kind or self.kinds[-1]
        least = float(checks.real(ridge, "ridge", least=0))
        last = time is None or time == math.inf
        end = None if last else float(checks.real(time, "time", least=0))
        speed = None if rate is None else float(checks.real(rate, "rate", above=0))
        count = None if steps is None else checks.whole(steps, "steps", least=0)
        _check_fit(self, cross, own)
        with np.errstate(all="ignore"):  # what is not finite is refused
            found = predicted(self, targets, cross, own, which, least, end, speed, count)
        _check_finite("means leave", found.mean)
        return found

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
        import numpy as np

        least = float(checks.real(ridge, "ridge", least=0))
        with np.errstate(all="ignore"):
            found = likelihood(Trained(self, "nngp", least), targets)
        _check_finite("the likelihood leaves", found.value)
        return found


def predicted(
    kernel: Held, targets: Any, cross: Held, own: Held | None, kind: str, ridge: float,
    time: float | None, rate: float | None, steps: int | None,
) -> Prediction:  # fmt: skip
    """The law of outputs at new inputs."""
    import numpy as np

    trained = Trained(kernel, kind, ridge)
    y = _targets(targets, len(trained.matrix))
    c = _cross(cross, kernel, kind)
    if (rate is None) != (steps is None) or (rate is not None and time is not None):
        raise UsageError("the length of the training is not clear.", hint=TIMES)
    inverse = rate is None and time is None
    if rate is not None and steps is not None:
        function = trained.descent(rate, steps)
    else:
        function = trained.inverse() if time is None else trained.flow(time)
    beta, b, slope = function.of(y), function.of(c.T).T, function.slope
    sizes, mine = trained.sizes, _sizes(cross, own, c, trained, kind)
    norms = [np.linalg.norm(one, axis=axis) for one, axis in ((c, 1), (b, 1), (y, 0), (beta, 0))]
    # Functions of matrices are as steep in the Frobenius norm as those of numbers; and what beta
    # = A^-1 y is off by is (A + dA)^-1 dA beta.
    steep, held = (math.sqrt(slope), norms[1::2]) if inverse else (slope, norms[::2])
    turned, away = (steep * trained.off * one for one in held)
    reach = sizes @ abs(beta) + float(np.linalg.norm(sizes)) * away
    error = cross.worst * np.outer(mine, reach)
    if inverse:
        error += kernel.worst * np.outer(abs(b) @ sizes, reach)
        error += trained.rounding * np.outer(norms[1], norms[3] + away)
    else:
        error += np.outer(norms[0], away)
    error += (len(y) + 8) * EPS * np.outer(norms[0], norms[3])  # of the products
    error[np.isnan(error)] = np.inf
    covariance, off = None, 0.0
    if own is not None:
        covariance, off = _covariance(trained, b, cross, own, float(turned.max()))
    largest = 2.0 / max(trained.largest, 1e-300)
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
    if trained.kind == "nngp":
        k = k + trained.ridge * np.eye(len(k))
    rest = k @ b.T - kz.T  # 0 for Bayesian inference: errors of b count by their squares
    found = kzz - kz @ b.T + b @ rest
    top = [math.sqrt(float(abs(np.diagonal(one)).max(initial=0.0))) for one in (kzz, k)]
    worst = max(one.worst for one in (trained.kernel, cross, own)) + (len(k) + 8) * EPS
    sums = float(abs(b).sum(axis=1).max(initial=0.0))
    error = worst * (top[0] + sums * top[1]) ** 2
    moved = worst * len(k) * top[1] ** 2  # the kernel, and the row of a new input
    row = worst * math.sqrt(len(k)) * top[0] * top[1]
    error += 2 * off * (_norm(rest.T) + moved * _norm(b) + row)
    return (found + found.T) / 2, error + off**2 * (float(np.linalg.norm(k)) + moved)


def _norm(rows: NDArray[Any]) -> float:
    """The largest size of a row."""
    import numpy as np

    return float(np.linalg.norm(rows, axis=1).max(initial=0.0))


def _sizes(
    cross: Held, own: Held | None, c: NDArray[Any], trained: Trained, kind: str
) -> NDArray[Any]:
    """Roots of the kernels of new inputs with themselves; without these as of what is known."""
    import numpy as np

    if own is not None and kind in own.kinds:
        return np.asarray(np.sqrt(np.clip(np.diagonal(own.matrix(kind)), 0.0, None)))
    sizes = trained.sizes  # a kernel of two inputs is no larger than these roots
    least = abs(c / np.where(sizes > 0, sizes, np.inf)).max(axis=1)
    return np.asarray(np.maximum(least, sizes.max()))


def _targets(targets: Any, rows: int) -> NDArray[Any]:
    """A column for each independent output; correlated ones stand below each other."""
    given = checks.reals(targets, "targets")
    if given.ndim not in (1, 2):
        raise UsageError(f"targets have shape {given.shape}.", hint="Give (N,), or (N, C).")
    wide = given.ndim == 1 or (len(given) < rows == given.size)
    y = checks.inputs(given.reshape(-1, 1) if wide else given, "targets")
    if len(y) != rows:
        raise UsageError(f"{len(y)} targets for {rows} inputs.")
    return y


def _check_fit(kernel: Held, cross: Held, own: Held | None) -> None:
    """Kernels of one network, of inputs that fit."""
    for name, other in (("cross", cross), ("own", own or cross)):
        checks.of_type(other, type(kernel), name)
        for here, there in zip(kernel.model.split("; "), other.model.split("; "), strict=False):
            if here != there:
                raise UsageError(
                    f"{name} is of another network: {there}, not {here}.",
                    hint="Give tp.kernel the same arguments for all inputs.",
                )
    if own is not None and (own.shape != (cross.shape[0],) * 2 or not own.symmetric):
        sizes = f"{own.shape[0]} x {own.shape[1]} inputs, not of the {cross.shape[0]}"
        raise UsageError(f"own is of {sizes} new ones.", hint="Give tp.kernel(net, Z).")


def _check_finite(what: str, values: Any) -> None:
    import numpy as np

    if not np.isfinite(values).all():
        raise EvaluationError(f"{what} the range of float64.", hint="Scale the targets.")


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

    y = _targets(targets, len(trained.matrix))
    function, sizes, off = trained.inverse(), trained.sizes, trained.off
    alpha, inverse = function.of(y), function.of(np.eye(len(y)))
    count, columns = y.shape
    fit, size = float((y * alpha).sum()), float((alpha * alpha).sum())
    value = -0.5 * (fit + columns * (function.log_determinant + count * math.log(2 * math.pi)))
    first = float(((sizes @ abs(alpha)) ** 2).sum()) + columns * float(sizes @ abs(inverse) @ sizes)
    error = trained.kernel.worst * first
    error += trained.rounding * (size + columns * float(np.trace(inverse)))
    error += off**2 * (math.sqrt(function.slope) * size + columns * function.slope / 2)
    return Estimate(value, error / 2, trained.kernel.method)
