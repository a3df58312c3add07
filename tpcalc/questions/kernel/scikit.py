"""``KernelFunction``: the kernel of a network as scikit-learn takes it."""

from __future__ import annotations

from typing import Any

import cloudpickle
import numpy as np
from sklearn.gaussian_process.kernels import Kernel as Covariance

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.networks.network import Architecture
from tpcalc.questions.kernel.kernel import kernel
from tpcalc.results.kernel import KINDS
from tpcalc.training.parameterizations import Parameterization

SIDE = 64  # inputs whose kernels with themselves are found together


class KernelFunction(Covariance):  # type: ignore[misc]
    """The NNGP or the NTK of a network as a kernel of scikit-learn.

    It has no hyperparameters of its own, and is added to and multiplied with other kernels:
    ``ConstantKernel() * tp.KernelFunction(net) + WhiteKernel()``. Estimators that take a function
    (``SVC(kernel=...)``, ``KernelRidge``) take it as well. Errors of entries are those that
    ``tp.kernel`` says; scikit-learn has no place for them.

    Args:
        network: The network, as of ``tp.kernel``.
        kind: ``"nngp"`` (Bayesian networks) or ``"ntk"`` (trained ones).
        parameterization: As of ``tp.kernel``.
        scale: The factor of inner products of inputs; None: 1/d.

    Source: Rasmussen, Williams, Gaussian processes for machine learning, chapter 2; Jacot, Gabriel,
        Hongler, Neural Tangent Kernel (1806.07572).

    Example:
        >>> from sklearn.gaussian_process import GaussianProcessRegressor
        >>> import tpcalc as tp
        >>> covariance = KernelFunction(tp.MLP(2, "erf"))
        >>> found = GaussianProcessRegressor(covariance, alpha=1e-6).fit([[0.0, 1.0]], [2.0])
        >>> found.predict([[0.0, 1.0]]).round(3).tolist()
        [2.0]
    """

    def __init__(
        self,
        network: Architecture,
        kind: str = "nngp",
        parameterization: Parameterization | str = "ntk",
        scale: float | None = None,
    ) -> None:
        self.network, self.kind = network, kind
        self.parameterization, self.scale = parameterization, scale

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        checks.one_of("kernel", self.kind, KINDS)
        how: dict[str, Any] = {"parameterization": self.parameterization, "scale": self.scale}
        found = np.array(kernel(self.network, X, Y, self.kind, **how).matrix(self.kind))
        return (found, np.empty((*found.shape, 0))) if eval_gradient else found

    def diag(self, X: Any) -> Array:
        """The kernel of each input with itself.

        Args:
            X: Inputs, of shape (N, d).
        """
        parts = (self(X[start : start + SIDE]) for start in range(0, len(X), SIDE))
        return np.concatenate([np.diagonal(one) for one in parts])

    def is_stationary(self) -> bool:
        """No: it depends on more than differences of inputs."""
        return False

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (cloudpickle.dumps(self.get_params(deep=False)),)

    def __repr__(self) -> str:
        return f"{self.kind.upper()}({self.network!r})"


def _restored(data: bytes) -> KernelFunction:
    """Networks may hold functions, which Python's own pickles do not take."""
    return KernelFunction(**cloudpickle.loads(data))
