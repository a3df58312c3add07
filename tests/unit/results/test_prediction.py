"""What a kernel says of new inputs, against direct solutions and step-by-step descent."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.stats import multivariate_normal

import tpcalc as tp
from tpcalc.errors import (
    EvaluationError,
    NotDifferentiable,
    OutOfMemory,
    TpcalcError,
    UsageError,
)
from tpcalc.results import Kernel

RNG = np.random.default_rng(0)
X, Z, Y = RNG.normal(size=(12, 6)), RNG.normal(size=(4, 6)), RNG.normal(size=(12, 2))
NET = tp.MLP(2, "erf", weight_variance=2, bias_variance="1/10")
K, CROSS, OWN = tp.kernel(NET, X), tp.kernel(NET, Z, X), tp.kernel(NET, Z)


def both(kernel: Kernel) -> tuple[Any, Any]:
    assert kernel.nngp is not None and kernel.ntk is not None
    return kernel.nngp, kernel.ntk


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_bayesian_inference_solves_its_equations(ridge: float) -> None:
    found = K.predict(Y, CROSS, OWN, kind="nngp", ridge=ridge)
    k, c, o = both(K)[0] + ridge * np.eye(12), both(CROSS)[0], both(OWN)[0]
    assert (np.abs(found.mean - c @ np.linalg.solve(k, Y)) <= found.mean_error + 1e-12).all()
    expected = o - c @ np.linalg.solve(k, c.T)
    np.testing.assert_allclose(found.covariance, expected, atol=1e-12)
    np.testing.assert_allclose(found.deviation, np.sqrt(np.diagonal(expected)), rtol=1e-9)
    alone = K.predict(Y[:, 0], CROSS, kind="nngp", ridge=ridge)
    np.testing.assert_allclose(alone.mean[:, 0], found.mean[:, 0], rtol=1e-12)


def test_descent_is_that_of_its_steps() -> None:
    f, g, rate = np.zeros((4, 2)), np.zeros((12, 2)), 0.05
    theta, c = both(K)[1], both(CROSS)[1]
    for _ in range(30):
        f, g = f - rate * c @ (g - Y), g - rate * theta @ (g - Y)
    found = K.predict(Y, CROSS, OWN, rate=rate, steps=30)
    np.testing.assert_allclose(found.mean, f, atol=1e-13)
    assert rate < found.largest_rate == pytest.approx(2 / np.linalg.eigvalsh(theta)[-1])
    slow = K.predict(Y, CROSS, rate=1e-6, steps=10**6)
    np.testing.assert_allclose(K.predict(Y, CROSS, time=1.0).mean, slow.mean, atol=1e-5)


def test_flow_starts_at_the_prior_and_ends_at_the_solution() -> None:
    start, end = K.predict(Y, CROSS, OWN, time=0.0), K.predict(Y, CROSS, OWN, time=1e5)
    assert not start.mean.any()
    np.testing.assert_array_equal(start.covariance, both(OWN)[0])
    last = K.predict(Y, CROSS, OWN, time=math.inf)
    np.testing.assert_allclose(end.mean, last.mean, rtol=1e-9)
    np.testing.assert_allclose(last.mean, both(CROSS)[1] @ np.linalg.solve(both(K)[1], Y))
    trained = K.predict(Y, K, K)
    np.testing.assert_allclose(trained.mean, Y, atol=1e-9)
    assert trained.deviation.max() < 1e-5


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["flow", "end", "descent"]), st.booleans())
def test_errors_cover_kernels_that_are_off(seed: int, way: str, bayes: bool) -> None:
    """Every entry is moved by as much as it may be off, in any direction."""
    rng, size = np.random.default_rng(seed), 1e-7

    def moved(kernel: Kernel, left: Any, right: Any) -> Kernel:
        found = {}
        for kind in ("nngp", "ntk"):
            own = getattr(kernel, kind)
            signs = rng.choice([-1.0, 1.0], own.shape)
            signs = np.tril(signs) + np.tril(signs, -1).T if kernel.symmetric else signs
            a, b = (np.sqrt(np.diagonal(getattr(one, kind))) for one in (left, right))
            found[kind] = own + size * signs * np.outer(a, b)
        return replace(kernel, error=size, coincident_error=None, **found)

    given_: dict[str, Any] = {"kind": "nngp" if bayes else "ntk", "ridge": 0.1}
    if not bayes:
        given_ |= {"flow": {"time": 2.0}, "descent": {"rate": 0.05, "steps": 20}}.get(way, {})
    exact = K.predict(Y, CROSS, OWN, **given_)
    off = moved(K, K, K).predict(Y, moved(CROSS, OWN, K), moved(OWN, OWN, OWN), **given_)
    assert (np.abs(exact.mean - off.mean) <= 1.001 * off.mean_error).all()
    assert exact.covariance is not None and off.covariance is not None
    assert np.abs(exact.covariance - off.covariance).max() <= 1.001 * off.covariance_error


def test_marginal_likelihood_is_a_density() -> None:
    found = K.log_likelihood(Y, ridge=0.1)
    law = multivariate_normal(np.zeros(12), both(K)[0] + 0.1 * np.eye(12))
    assert found.value == pytest.approx(sum(law.logpdf(column) for column in Y.T), rel=1e-12)
    assert 0 < found.stderr < 1e-9


def test_samples_have_the_law() -> None:
    found = K.predict(Y, CROSS, OWN, kind="nngp", ridge=0.3)
    drawn = found.samples(4000, seed=1)
    assert drawn.shape == (4000, 4, 2)
    z = (drawn.mean(axis=0) - found.mean) / (found.deviation[:, None] / math.sqrt(4000))
    assert np.abs(z).max() < 5
    np.testing.assert_array_equal(drawn, found.samples(4000, seed=1))
    assert found.classes.tolist() == found.mean.argmax(axis=1).tolist()


def test_what_does_not_fit_is_told() -> None:
    with pytest.raises(UsageError, match="3 targets for 12 inputs"):
        K.predict([1, 2, 3], CROSS)
    with pytest.raises(UsageError, match="new inputs first"):
        K.predict(Y, tp.kernel(NET, X, Z))
    with pytest.raises(UsageError, match="length of the training"):
        K.predict(Y, CROSS, time=1.0, rate=0.1, steps=3)
    with pytest.raises(UsageError, match="between the new inputs"):
        K.predict(Y, CROSS).samples(3)
    with pytest.raises(UsageError, match="has no eigenvalues"):
        CROSS.predict(Y, CROSS)
    twice = np.concatenate([X, X[:1]])
    singular, cross = tp.kernel(NET, twice), tp.kernel(NET, Z, twice)
    with pytest.raises(EvaluationError, match="smallest eigenvalue of the NTK is"):
        singular.predict(np.ones(13), cross)
    assert np.isfinite(singular.predict(np.ones(13), cross, ridge=0.1).mean).all()
    with pytest.raises(EvaluationError, match="descent diverges"):
        K.predict(Y, CROSS, rate=50.0, steps=10**5)
    for given_ in (3, np.ones((12, 2, 2)), None, ["a"] * 12):
        with pytest.raises(UsageError, match="targets"):
            K.predict(given_, CROSS)
    for cross in (None, CROSS.ntk):
        with pytest.raises(UsageError, match="not of type Kernel"):
            K.predict(Y, cross)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="inner products of inputs times 1, not"):
        K.predict(Y, tp.kernel(NET, Z, X, scale=1))
    with pytest.raises(UsageError, match="own is of 12 x 12 inputs, not of the 4 new ones"):
        K.predict(Y, CROSS, K)
    with pytest.raises(EvaluationError, match="leaves the range of float64"):
        K.log_likelihood(Y * 1e200)
    with pytest.raises(EvaluationError, match="means leave the range"):
        K.predict(np.where(Y > 0, 1e308, -1e308), CROSS, kind="nngp")
    assert np.isfinite(K.predict(Y, CROSS, time=1e300).mean_error).all()


def test_kernels_that_are_too_large_or_have_no_slope_are_told() -> None:
    for act, layer in (("relu", "at layer 11 of 30"), ("exp", "at layer 1 of 30")):
        with pytest.raises(EvaluationError, match=rf"{layer}: that of row 2 of X"):
            inputs = [[0.1, 0.2], [0.0, 0.0], [0.5, 0.5]]
            tp.kernel(tp.MLP(30, act, weight_variance=1e30), inputs)
    with pytest.raises(EvaluationError, match="row 0 of X2"):
        tp.kernel(tp.MLP(30, "relu", weight_variance=1e30), [[0.1]], [[7.0], [1.0]])
    with pytest.raises(NotDifferentiable, match="kinds='nngp'"):
        tp.kernel(tp.MLP(2, "sign"), X)
    assert tp.kernel(tp.MLP(2, "sign"), X, kinds="nngp").nngp is not None
    with pytest.raises(OutOfMemory, match=r"a kernel of shape \(400000, 400000\) needs about"):
        tp.kernel(tp.ResNet(2, "elu"), np.ones((400_000, 2)))


def test_classes_and_the_share_that_is_right() -> None:
    labels = np.arange(12) % 3
    found = K.predict(np.eye(3)[labels], K, kind="nngp")
    assert found.classes.tolist() == labels.tolist()
    for targets in (labels, np.eye(3)[labels]):
        share = found.accuracy(targets)
        assert (share.value, share.stderr) == (1.0, 0.0)
    assert found.accuracy((labels + 1) % 3).value == 0.0
    open_ = replace(found, mean_error=found.mean_error + 0.6)
    assert open_.accuracy(labels).stderr == 1.0
    signs = np.where(labels > 0, 1.0, -1.0)
    two = K.predict(signs, K)
    assert two.classes.tolist() == (labels > 0).tolist()
    assert two.accuracy(signs).value == two.accuracy(labels > 0).value == 1.0
    with pytest.raises(UsageError, match=r"shape \(3,\); the prediction is of 12 inputs"):
        found.accuracy([0, 1, 2])
    with pytest.raises(UsageError, match="a class is 7"):
        found.accuracy([7] * 12)


def test_new_inputs_in_blocks_share_one_decomposition() -> None:
    many = np.random.default_rng(5).normal(size=(50, 6))
    kernel = tp.kernel(NET, X)
    whole = kernel.predict(Y, tp.kernel(NET, many, X)).mean
    blocks = [kernel.predict(Y, tp.kernel(NET, many[k : k + 20], X)).mean for k in (0, 20, 40)]
    np.testing.assert_allclose(np.concatenate(blocks), whole, rtol=1e-12)
    assert kernel.eigenvectors("ntk")[1] is kernel.eigenvectors("ntk")[1]
    values, vectors = kernel.eigenvectors("ntk")
    np.testing.assert_allclose((vectors * values) @ vectors.T, kernel.ntk, atol=1e-12)
    np.testing.assert_array_equal(values[::-1], kernel.spectrum("ntk"))


def test_kernels_are_written_where_they_are_wanted() -> None:
    rooms = {kind: np.full((12, 12), np.nan) for kind in ("nngp", "ntk")}
    found = tp.kernel(NET, X, out=rooms)
    for kind in found.kinds:
        assert np.shares_memory(getattr(found, kind), rooms[kind])
        np.testing.assert_array_equal(rooms[kind], getattr(K, kind))
    small = {"ntk": np.empty((12, 12), np.float32)}
    rounded = tp.kernel(NET, X, kinds="ntk", out=small)
    sizes = np.sqrt(np.diagonal(both(K)[1]))
    gap = np.abs(rounded.matrix("ntk") - both(K)[1]) / np.outer(sizes, sizes)
    assert 1e-9 < gap.max() <= rounded.error < 1e-7
    assert rounded.ntk is not None and rounded.ntk.dtype == np.float32
    one, other = rounded.predict(Y, CROSS, ridge=0.1), K.predict(Y, CROSS, ridge=0.1)
    assert (np.abs(one.mean - other.mean) <= one.mean_error).all()
    odd = tp.ResNet(2, "elu")  # no chain: what was computed is copied
    found = tp.kernel(odd, X, out=rooms)
    np.testing.assert_array_equal(rooms["nngp"], tp.kernel(odd, X).nngp)


@pytest.mark.parametrize(
    ("out", "match"),
    [
        ({"ntk": np.empty((12, 11))}, "12 x 12 inputs"),
        ({"ntk": np.empty((12, 12), int)}, "float64 or float32"),
        ({"ntk": np.empty((24, 12))[::2]}, "part of another"),
        ({"nothing": np.empty((12, 12))}, "nothing"),
        ([np.empty((12, 12))], "out"),
    ],
)
def test_places_for_kernels_that_do_not_fit_are_told(out: Any, match: str) -> None:
    with pytest.raises(TpcalcError, match=match):
        tp.kernel(NET, X, out=out)


def test_what_float32_cannot_hold_is_told() -> None:
    out = {"ntk": np.empty((12, 12), np.float32)}
    for size, match in ((1e-24, "too small for float32"), (1e24, "not a finite")):
        with pytest.raises(EvaluationError, match=match):
            tp.kernel(tp.MLP(2, "relu"), X * size, out=out)


def test_correlated_outputs_have_a_target_each() -> None:
    net = tp.RNN(2, "erf")
    x, z = np.random.default_rng(3).normal(size=(2, 5, 4))
    found, cross = tp.kernel(net, x), tp.kernel(net, z, x)
    count = found.outputs("ntk")
    y = np.random.default_rng(4).normal(size=(5, count))
    told = found.predict(y, cross, tp.kernel(net, z)).mean
    direct = cross.matrix("ntk") @ np.linalg.solve(found.matrix("ntk"), y.reshape(-1, 1))
    np.testing.assert_allclose(told, direct, rtol=1e-9)


@pytest.mark.parametrize("steps", [2, 3])
def test_prediction_is_the_limit_of_training(steps: int) -> None:
    """The program of a training run knows nothing of kernels; outputs are Gaussian in its limit."""
    rng = np.random.default_rng(0)
    x, z, y, rate = rng.normal(size=(2, 3)), rng.normal(size=(1, 3)), np.array([1.0, -0.5]), 0.2
    net = tp.MLP(1, "erf", weight_variance=2)
    options: dict[str, Any] = {"batch": 2, "lr": rate, "queries": z.tolist(), "watch": ()}
    run = tp.train(net, "ntk", tp.Samples(x.tolist(), y[:, None].tolist()), steps=steps, **options)
    limit = tp.limit(run, outputs=[f"f[{steps},*]"], seed=0)
    seen, new, across = (tp.kernel(net, *one, scale=1) for one in ((x,), (z,), (z, x)))
    how = {"rate": rate / 2, "steps": steps}  # the loss of a run is the mean of (f - y)^2 / 2
    told = [seen.predict(y, seen, seen, **how), seen.predict(y, across, new, **how)]
    mean = np.concatenate([one.mean[:, 0] for one in told])
    error = np.concatenate([one.mean_error[:, 0] for one in told])
    deviation = np.concatenate([one.deviation for one in told])
    for k in range(3):
        found = limit[f"f[{steps},{k}]"]
        assert abs(found.value - mean[k]) <= found.stderr + error[k] + 1e-14
        assert found.std == pytest.approx(deviation[k], abs=(found.std_error or 0.0) + 1e-12)


@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize("kind", ["nngp", "ntk"])
@pytest.mark.parametrize("time", [0.3, 5.0, 80.0])
def test_flow_is_the_exponential_of_the_kernel(kind: str, time: float, ridge: float) -> None:
    """Lee et al. (2019), equations (9) and (13) to (15), with matrices as they stand there."""
    found = K.predict(Y, CROSS, OWN, kind=kind, time=time, ridge=ridge)
    a = K.matrix(kind) + ridge * np.eye(12)
    gone = np.eye(12) - expm(-a * time)
    weights = CROSS.matrix(kind) @ np.linalg.solve(a, gone)
    np.testing.assert_allclose(found.mean, weights @ Y, rtol=1e-9, atol=1e-11)
    k, c, own = both(K)[0], both(CROSS)[0], both(OWN)[0]
    if kind == "nngp":  # the readout alone is trained
        told = own - c @ np.linalg.solve(a, np.eye(12) - expm(-2 * a * time)) @ c.T
    else:
        told = own + weights @ k @ weights.T - weights @ c.T - c @ weights.T
    np.testing.assert_allclose(found.covariance, told, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("kind", ["nngp", "ntk"])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_many_inputs_are_factored_and_few_decomposed(kind: str, ridge: float) -> None:
    """Both ways give the same, and say how far they may be off."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 30)), rng.normal(size=(300, 2))
    z = x[:9] + 0.1
    seen, across, new = tp.kernel(NET, x), tp.kernel(NET, z, x), tp.kernel(NET, z)
    other = replace(seen)
    other.eigenvectors(kind)
    one, two = (k.predict(y, across, new, kind=kind, ridge=ridge) for k in (seen, other))
    assert (np.abs(one.mean - two.mean) <= one.mean_error + two.mean_error).all()
    assert one.mean_error.max() < 1e-9 and two.mean_error.max() <= one.mean_error.max()
    assert one.covariance is not None and two.covariance is not None
    gap = np.abs(one.covariance - two.covariance).max()
    assert gap <= one.covariance_error + two.covariance_error < 1e-7
    assert one.largest_rate == pytest.approx(two.largest_rate, rel=1e-12)
    other.eigenvectors("nngp")
    a, b = (k.log_likelihood(y, ridge=ridge) for k in (seen, other))
    assert abs(a.value - b.value) <= a.stderr + b.stderr < 1e-5
    sizes = np.sqrt(np.diagonal(seen.matrix(kind)))
    signs = rng.choice([-1.0, 1.0], (300, 300))
    signs = np.tril(signs) + np.tril(signs, -1).T
    moved = {kind: seen.matrix(kind) + 1e-8 * signs * np.outer(sizes, sizes)}
    off = replace(seen, error=1e-8, coincident_error=None, **moved)
    told = off.predict(y, across, kind=kind, ridge=ridge)
    assert (np.abs(told.mean - one.mean) <= told.mean_error).all()


def test_many_inputs_that_are_equal_are_told() -> None:
    x = np.random.default_rng(0).normal(size=(300, 6))
    x[250] = x[3]
    found, cross = tp.kernel(NET, x), tp.kernel(NET, Z, x)
    with pytest.raises(EvaluationError, match="smallest eigenvalue of the NTK is"):
        found.predict(np.ones(300), cross)
    near = x.copy()
    near[250] += 1e-5  # too near for the bound of a factor, and known to eigenvectors
    found = tp.kernel(NET, near)
    assert np.isfinite(found.predict(np.ones(300), tp.kernel(NET, Z, near)).mean).all()


@pytest.mark.parametrize("trial", range(6))
def test_rounding_is_within_what_is_stated(trial: int) -> None:
    """With the matrices taken for exact and inputs that nearly coincide, in sixty digits."""
    rng = np.random.default_rng(trial)
    x, z = rng.normal(size=(6, 4)) * 10.0 ** rng.uniform(-2, 0.5), rng.normal(size=(2, 4))
    x[3] = x[0] + 10.0 ** rng.uniform(-5, -1) * rng.normal(size=4)
    net = tp.MLP(3, ("relu", "erf", "gelu")[trial % 3], weight_variance=2)
    exact: dict[str, Any] = {"error": 0.0, "coincident_error": None}
    seen, across = (replace(tp.kernel(net, *one), **exact) for one in ((x,), (z, x)))
    with mp.workdps(60):
        a, c = (mp.matrix(one.matrix("ntk").tolist()) for one in (seen, across))
        values, vectors = mp.eigsy(a)
        rate = 0.9 / float(max(values))
        ways: list[tuple[dict[str, Any], Any]] = [
            ({"time": 1.0}, lambda q: (1 - mp.exp(-q)) / q),
            ({"time": 1e4}, lambda q: (1 - mp.exp(-q * 10**4)) / q),
            ({"rate": rate, "steps": 500}, lambda q: (1 - (1 - mp.mpf(rate) * q) ** 500) / q),
        ]
        if float(min(values)) > 1e-9:
            ways.append(({}, lambda q: 1 / q))
        for how, f in ways:
            told = seen.predict(Y[:6], across, **how)
            true = (
                c
                * vectors
                * mp.diag([f(q) for q in values])
                * vectors.T
                * mp.matrix(Y[:6].tolist())
            )
            gap = [[abs(mp.mpf(told.mean[i, j]) - true[i, j]) for j in range(2)] for i in range(2)]
            assert (np.array(gap, dtype=float) <= told.mean_error).all(), how
