"""Kernels of chains against tables of another library, and against 40 digits at hard pairs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numba import njit

from tpcalc.doors.budget import within
from tpcalc.doors.machine import Limits
from tpcalc.engine import chains_tables, chains_tiles
from tpcalc.engine.chains import Chain, Gram, chain_kernels
from tpcalc.errors import EvaluationError, OutOfMemory, TpcalcError

RELU = Chain("abrelu", 0.5, 0.5, 3, 2.0, 0.0, None, 2.0, 0.0)
RELU_BIAS = replace(RELU, weight_variance=1.8, bias_variance=0.1, first_bias=0.1)
RELU_HIDDEN_BIAS = replace(RELU_BIAS, first_bias=0.0)
ABS = replace(RELU, a=1.0, b=0.0, weight_variance=1.0, first_weight=1.0)
ABS_BIAS = replace(ABS, bias_variance=0.01)
NEARLY_ABS = replace(ABS, b=1e-4)
LEAKY = replace(RELU, a=-0.6, b=0.4)
IDENTITY = replace(RELU, a=0.0, b=1.0, weight_variance=1.0)
ERF = Chain("erf", 1.0, 1.0, 3, 2.25, 0.01, None, 2.25, 0.01)
ERF_ODD = replace(ERF, bias_variance=0.0, first_bias=0.0)
ERF_WILD = replace(ERF_ODD, weight_variance=25.0, first_weight=25.0)
ERF_SCALED = replace(ERF, a=2.0, b=0.7, first_bias=0.3)
RESIDUAL = replace(RELU, residual=0.5, first_weight=1.0)
RESIDUAL_BIAS = replace(RESIDUAL, bias_variance=0.1, first_bias=0.2)
RESIDUAL_ERF = replace(ERF, residual=0.5, b=0.8, first_weight=1.0)
CHAINS = {name: chain for name, chain in globals().items() if isinstance(chain, Chain)}


def moments(chain, q, p, c):
    """E phi phi and E phi' phi' in mpmath, for variances q, p and covariance c."""
    a, b = mpf(chain.a), mpf(chain.b)
    if chain.family == "erf":
        square = (1 + 2 * b**2 * q) * (1 + 2 * b**2 * p)
        value = a**2 * 2 / mp.pi * mp.asin(2 * b**2 * c / mp.sqrt(square))
        return value, a**2 * b**2 * 4 / mp.pi / mp.sqrt(square - 4 * b**4 * c**2)
    if q == 0 or p == 0:
        return mpf(0), mpf(0)
    rho = max(min(c / mp.sqrt(q * p), mpf(1)), mpf(-1))
    x = mp.acos(rho)
    bend = 2 / mp.pi * a**2 * (mp.sin(x) - x * mp.cos(x))
    value = mp.sqrt(q * p) * ((a**2 + b**2) * rho + bend)
    return value, a**2 + b**2 - 2 / mp.pi * a**2 * x


def exact(chain, x, y):
    """NNGP and NTK of two inputs by the recursion as it is written, with 40 digits and more."""
    with mp.workdps(60):
        x, y = [mpf(float(v)) for v in x], [mpf(float(v)) for v in y]
        first, bias = mpf(chain.first_weight), mpf(chain.first_bias)
        q, p, c = (first * mp.fdot(s, t) + bias for s, t in ((x, x), (y, y), (x, y)))
        tangent = c
        keep = 0 if chain.residual is None else 1
        factor = mpf(1 if chain.residual is None else chain.residual) ** 2
        for layer in range(chain.depth):
            weight, sigma = mpf(chain.weight_variance), mpf(chain.bias_variance)
            if chain.residual is None and layer == chain.depth - 1:
                weight, sigma = mpf(1), mpf(0)
            weight, sigma = factor * weight, factor * sigma
            value, slope = moments(chain, q, p, c)
            c = keep * c + weight * value + sigma
            tangent = tangent * (keep + weight * slope) + weight * value + sigma
            q = keep * q + weight * moments(chain, q, q, q)[0] + sigma
            p = keep * p + weight * moments(chain, p, p, p)[0] + sigma
        return c, (tangent if chain.residual is None else c + tangent)


def excess(found, kind, chain, x, others):
    """The largest error of row 0, as a multiple of the error that is stated."""
    worst, index = mpf(0), ("nngp", "ntk").index(kind)
    own = exact(chain, x, x)[index]
    for j, y in enumerate(others):
        expected = exact(chain, x, y)
        rho = abs(x @ y) / max(np.linalg.norm(x) * np.linalg.norm(y), 1e-300)
        stated = found.near_error if j and rho >= 0.99 else found.relative_error
        unit = mp.sqrt(own * exact(chain, y, y)[index])
        error = abs(mpf(float(getattr(found, kind)[0, j])) - expected[index])
        if unit:
            worst = max(worst, error / unit / mpf(stated))
        else:
            assert error == 0
    return float(worst)


def mean_in_units_of_errors(chain, inputs):
    """|K_ij| + (K_ii + K_jj) / 2 over sqrt(K_ii K_jj), at most: small inputs have small units."""
    if chain.family == "abrelu" and chain.bias_variance == chain.first_bias == 0:
        return 2.0
    sizes = chain.first_weight * (inputs**2).sum(axis=1) + chain.first_bias
    ratio = math.sqrt(sizes[sizes > 0].max() / sizes[sizes > 0].min())
    return 1 + (ratio + 1 / ratio) / 2


def hard_inputs(seed):
    """An input, and inputs at all distances from it and from its negative."""
    rng = np.random.default_rng(seed)
    x, z = rng.standard_normal((2, 12))
    shifts = [
        side * (scale * x + size * z)
        for side in (1, -1)
        for scale in (1.0, 1.4)
        for size in (0.3, 0.17, 1e-1, 1e-3, 1e-6, 1e-9)
    ]
    return np.array([x, z, *shifts, x, -x, 2 * x, -0.5 * x, 0 * x, x * (1 + 1e-5)])


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2, 10])
@pytest.mark.parametrize("name", CHAINS)
def test_errors_are_within_what_is_stated(name, depth):
    chain = replace(CHAINS[name], depth=depth)
    inputs = hard_inputs(depth)
    found = chain_kernels(Gram(inputs), chain)
    whole = mean_in_units_of_errors(chain, inputs)
    assert found.relative_error < 1e-13 * whole
    assert found.near_error < (1e-9 if name == "ERF_WILD" else 1e-12) * whole
    for kind in ("nngp", "ntk"):
        assert excess(found, kind, chain, inputs[0], inputs) < 1


@settings(max_examples=40, deadline=None)
@given(
    a=st.floats(-2, 2),
    b=st.floats(-2, 2).filter(lambda b: abs(b) > 1e-3),
    weight=st.floats(0.1, 3),
    bias=st.sampled_from([0.0, 0.3]),
    residual=st.sampled_from([None, 0.4]),
    size=st.floats(-8, 0),
    side=st.sampled_from([-1, 1]),
    depth=st.integers(1, 6),
)
def test_any_slopes(a, b, weight, bias, residual, size, side, depth):
    weight /= a * a + b * b
    chain = Chain("abrelu", a, b, depth, weight, bias, residual, 1.0, bias / 2)
    rng = np.random.default_rng(3)
    x, z = rng.standard_normal((2, 4))
    inputs = np.array([x, side * x + 10**size * z])
    found = chain_kernels(Gram(inputs), chain)
    for kind in ("nngp", "ntk"):
        assert excess(found, kind, chain, x, inputs) < 1


@pytest.mark.parametrize("name", CHAINS)
def test_equal_inputs_have_the_kernels_of_one(name):
    rng = np.random.default_rng(0)
    inputs = np.repeat(rng.standard_normal((150, 7)) + 0.3, 2, axis=0)
    found = chain_kernels(Gram(inputs), CHAINS[name])
    again = chain_kernels(Gram(inputs, inputs.copy()), CHAINS[name])
    for kind in ("nngp", "ntk"):
        kernel = getattr(found, kind)
        np.testing.assert_array_equal(kernel, kernel.T)
        if CHAINS[name].family == "abrelu":  # distances of equal inputs are 0
            np.testing.assert_array_equal(np.diag(kernel, 1)[::2], np.diag(kernel)[::2])
            np.testing.assert_array_equal(kernel, getattr(again, kind))
        off = found.relative_error + again.relative_error
        off += found.near_error + again.near_error
        unit = np.diag(kernel)
        assert (np.abs(np.diag(kernel, 1) - unit[:-1])[::2] <= off * unit[:-1][::2]).all()
        assert (np.abs(kernel - getattr(again, kind)) <= off * np.sqrt(np.outer(unit, unit))).all()


@pytest.mark.parametrize("name", CHAINS)
def test_threads_and_kinds_change_no_bit(name):
    rng = np.random.default_rng(1)
    gram = Gram(rng.standard_normal((333, 5)), rng.standard_normal((270, 5)), 0.2)
    one = chain_kernels(gram, CHAINS[name], threads=1)
    three = chain_kernels(gram, CHAINS[name], threads=3)
    np.testing.assert_array_equal(one.nngp, three.nngp)
    np.testing.assert_array_equal(one.ntk, three.ntk)
    for kind, other in (("nngp", "ntk"), ("ntk", "nngp")):
        alone = chain_kernels(gram, CHAINS[name], kinds=(kind,), threads=2)
        np.testing.assert_array_equal(getattr(alone, kind), getattr(one, kind))
        assert getattr(alone, other) is None


@pytest.mark.parametrize("length", [1, 7, 8, 9, 16, 31])
@pytest.mark.parametrize("rows", [1, 63, 65, 257])
def test_shapes(rows, length):
    rng = np.random.default_rng(rows + length)
    inputs, others = rng.standard_normal((rows, length)), rng.standard_normal((300, length))
    found = chain_kernels(Gram(inputs, others, 1 / length), RELU)
    every = np.concatenate([inputs, others])
    square = chain_kernels(Gram(every, None, 1 / length), RELU)
    np.testing.assert_array_equal(found.ntk, square.ntk[:rows, rows:])
    np.testing.assert_array_equal(found.nngp, square.nngp[:rows, rows:])
    norms = np.sqrt((inputs**2).sum(axis=1) / length)
    np.testing.assert_allclose(np.diag(square.nngp)[:rows], norms**2, rtol=1e-13)
    np.testing.assert_allclose(np.diag(square.ntk)[:rows], 4 * norms**2, rtol=1e-13)


def test_many_near_pairs_are_recomputed():
    rng = np.random.default_rng(2)
    inputs = 1.0 + 1e-4 * rng.standard_normal((70, 40))
    found = chain_kernels(Gram(inputs, None, 1 / 40), RELU)
    for j in (1, 69):
        expected = exact(replace(RELU, first_weight=2.0 / 40), inputs[0], inputs[j])
        assert float(found.ntk[0, j]) == pytest.approx(float(expected[1]), rel=3e-15)


def test_zero_inputs_without_bias_have_kernel_zero():
    inputs = np.array([[0.0, 0.0], [1.0, 2.0], [-1.0, -2.0]])
    for chain in (RELU, ABS, IDENTITY, ERF_ODD, RESIDUAL):
        found = chain_kernels(Gram(inputs), chain)
        for kernel in (found.nngp, found.ntk):
            assert (kernel[0] == 0).all()
            assert (kernel[:, 0] == 0).all()
            assert np.isfinite(kernel).all()


def test_no_inputs():
    found = chain_kernels(Gram(np.zeros((0, 3)), np.ones((2, 3))), RELU)
    assert found.nngp.shape == found.ntk.shape == (0, 2)


@pytest.mark.parametrize("kappa", [1 / math.pi, 2 / math.pi, 0.05])
@pytest.mark.parametrize("m0", [0.0, 0.7])
def test_short_polynomials_only_where_they_hold(kappa, m0):
    """The bound on half versines against the map itself, from many starts."""
    m1 = 1 - m0
    base = 1 - math.pi / 2 * kappa
    form = np.array([m0, m1, kappa, 1 - 2 * base, base, 0.0])
    u = np.linspace(-0.5, 0.5, 2**14)
    k, w = np.zeros_like(u), np.zeros_like(u)
    from tpcalc.engine.chains_loops import _plain_layer

    depth = 40
    long = chains_tables._long_layers(depth, m1 * kappa)
    for layer in range(depth):
        if layer >= long:
            assert u.min() >= 0
            assert u.max() <= chains_tiles.SMALL
        _plain_layer(u, k, w, form)
    assert 0 < long <= depth


def test_polynomials_against_mpmath():
    for small, s in [(n % 2 == 0, n * 0.27 / 60) for n in range(1, 60)]:
        with mp.workdps(40):
            x = 2 * mp.asin(mp.sqrt(mpf(s)))
            angle, arc = x / mp.sqrt(mpf(s)), (mp.sin(x) - x * mp.cos(x)) / mpf(s) ** mpf(1.5)
        found = _angles(small, s)
        assert abs(mpf(found[0]) / angle - 1) < 4e-16
        assert abs(mpf(found[1]) / arc - 1) < 4e-16


def _angles(small, s):
    angle, arc = chains_tiles.angle, chains_tiles.arc
    if small:
        angle, arc = chains_tiles.angle_small, chains_tiles.arc_small
    return njit(lambda s: (angle(s), arc(s)))(s)


def test_progress_ends_at_one_and_comes_from_the_calling_thread():
    import threading

    seen = []

    def progress(fraction, text):
        assert threading.current_thread() is threading.main_thread()
        assert "300 x 300" in text
        seen.append(fraction)

    gram = Gram(np.random.default_rng(0).standard_normal((300, 4)))
    for threads in (1, 2):
        seen.clear()
        chain_kernels(gram, RELU, threads=threads, progress=progress)
        assert seen == sorted(seen)
        assert seen[-1] == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_stops_between_jobs(threads):
    def progress(fraction, text):
        raise KeyboardInterrupt

    gram = Gram(np.random.default_rng(0).standard_normal((300, 4)))
    with pytest.raises(KeyboardInterrupt):
        chain_kernels(gram, RELU, threads=threads, progress=progress)
    assert chain_kernels(gram, RELU, threads=threads).nngp.shape == (300, 300)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"family": "tanh"}, "family"),
        ({"depth": 0}, "depth"),
        ({"depth": True}, "depth"),
        ({"depth": 2.0}, "depth"),
        ({"a": math.inf}, "a is inf"),
        ({"weight_variance": -1.0}, "weight_variance"),
        ({"residual": math.nan}, "residual"),
        ({"a": 0.0, "b": 0.0}, "activation is 0"),
        ({"family": "erf", "a": 1.0, "b": 0.0}, "activation is 0"),
    ],
)
def test_bad_chains_are_said(change, text):
    with pytest.raises(TpcalcError, match=text):
        replace(RELU, **change)


def test_bad_calls_are_said() -> None:
    gram = Gram(np.eye(3))
    wild = replace(RELU, depth=400, weight_variance=1000.0)
    for chain in (wild, replace(wild, bias_variance=1.0), replace(wild, residual=1.0)):
        with pytest.raises(EvaluationError, match="range of float64"):
            chain_kernels(gram, chain)
    with within(Limits(memory=100)), pytest.raises(OutOfMemory, match="fewer inputs"):
        chain_kernels(gram, RELU)
