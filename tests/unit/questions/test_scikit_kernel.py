"""The kernel of a network in estimators of scikit-learn, beside what is computed here."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import tpcalc as tp
from tpcalc.errors import TpcalcError

RNG = np.random.default_rng(0)
X, Z, Y = RNG.normal(size=(70, 5)), RNG.normal(size=(6, 5)), RNG.normal(size=70)
NET = tp.MLP(2, "erf", weight_variance=2, bias_variance="1/10")


@pytest.mark.parametrize("kind", ["nngp", "ntk"])
def test_gaussian_processes_predict_what_bayesian_inference_does(kind: str) -> None:
    own = tp.KernelFunction(NET, kind)
    mean, deviation = GaussianProcessRegressor(own, alpha=0.1).fit(X, Y).predict(Z, return_std=True)
    if kind == "nngp":
        seen, across, new = tp.kernel(NET, X), tp.kernel(NET, Z, X), tp.kernel(NET, Z)
        found = seen.predict(Y, across, new, kind=kind, ridge=0.1)
        np.testing.assert_allclose(mean, found.mean[:, 0], atol=1e-10)
        np.testing.assert_allclose(deviation, found.deviation, atol=1e-10)
    matrix = tp.kernel(NET, X).matrix(kind)
    np.testing.assert_allclose(own.diag(X), np.diagonal(matrix), rtol=1e-12)
    np.testing.assert_array_equal(own(X), matrix)
    np.testing.assert_array_equal(own(X, X), tp.kernel(NET, X, X).matrix(kind))


def test_sums_and_products_are_fitted() -> None:
    covariance = ConstantKernel(1.0) * tp.KernelFunction(NET) + WhiteKernel(0.5)
    found = GaussianProcessRegressor(covariance).fit(X, Y)
    likelihood = found.log_marginal_likelihood(found.kernel_.theta)
    assert likelihood > found.log_marginal_likelihood(covariance.theta) - 1e-9
    factor, noise = np.exp(found.kernel_.theta)
    told = tp.kernel(NET, X)
    scaled = tp.results.Kernel(  # factor times the NNGP, and noise, by hand
        factor * told.matrix("nngp"), None, told.method, told.error, None, None, (), True, "",
        told.provenance,
    )  # fmt: skip
    assert scaled.log_likelihood(Y, ridge=noise).value == pytest.approx(likelihood, rel=1e-8)


def test_classifiers_take_it_as_a_function_or_its_matrix() -> None:
    labels = (X[:, 0] * X[:, 1] > 0).astype(int)
    found = SVC(kernel=tp.KernelFunction(NET, "ntk")).fit(X, labels).predict(Z)
    precomputed = SVC(kernel="precomputed").fit(tp.kernel(NET, X).ntk, labels)
    assert found.tolist() == precomputed.predict(tp.kernel(NET, Z, X).ntk).tolist()
    nets = [tp.MLP(1, "relu", weight_variance=2), NET]
    grid = {"kernel": [tp.KernelFunction(net, kind) for net in nets for kind in ("nngp", "ntk")]}
    assert 0 < GridSearchCV(SVC(), grid, cv=3).fit(X, labels).best_score_ <= 1


def test_it_is_copied_and_kept() -> None:
    own = tp.KernelFunction(NET, "ntk", scale=1)
    for other in (clone(own), pickle.loads(pickle.dumps(own))):
        assert other == own
        np.testing.assert_array_equal(other(Z), own(Z))
    assert own.set_params(kind="nngp").get_params()["kind"] == "nngp"
    assert repr(own).startswith("NNGP(") and own.n_dims == 0
    with pytest.raises(TpcalcError, match="nothing"):
        tp.KernelFunction(NET, "nothing")(X)
