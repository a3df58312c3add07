"""Nonlinear blocks at infinite width and depth: cases of spec 1, with what is misprinted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from agree import agree
from depth_run import FOUR, Reference, deep_run, outputs, sine
from scipy.integrate import quad
from scipy.optimize import brentq

import tpcalc as tp
from tpcalc.activations.entries import lookup
from tpcalc.functions import Var
from tpcalc.recursions import Trunk, finite, limit, mean_field
from tpcalc.results import DepthTable, Method

SAME = ((1.0,) * 4, (2.0,) * 4)
SIN = lookup("sin").fn.expr
SIZES = {"a": 1.2, "eta": 0.5}
DEPTHS = (8, 16, 32)


def extrapolated(found: DepthTable, name: str) -> tuple[float, float]:
    """A number of the programs of 8, 16 and 32 blocks without its parts in 1/L and 1/L^2."""
    weights = (1 / 3, -2.0, 8 / 3)
    rows = [found.at(name, depth) for depth in DEPTHS]
    value = sum(w * row.value for w, row in zip(weights, rows, strict=True))
    return value, math.hypot(*(w * row.stderr for w, row in zip(weights, rows, strict=True)))


@pytest.mark.parametrize("alpha", [0.5, 0.75])
def test_S1_25_every_number_at_8_blocks(alpha: float) -> None:
    """The corrected recursion for sin against that of the specification, over all layers."""
    blocks = 8
    want = Reference(blocks, *FOUR, alpha, 1 - alpha, 1.2, 0.7, sine)
    found = finite(Trunk(*FOUR, SIN, alpha, 1 - alpha, 1.2, 0.7), blocks)
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(found.outputs[:, 0, 0], want.f, **close)
    for layer in range(1, blocks + 1):
        place = layer / blocks
        kernel = found.features((layer - 1) / blocks).value
        np.testing.assert_allclose(kernel, want.C0[:, :, layer], **close)
        np.testing.assert_allclose(found.gradients(place).value, want.C1[:, :, layer], **close)
        for edge in range(1, blocks + 1):
            for ket, d in enumerate((want.D0, want.D1)):
                for base in (0, 1):
                    value = found.coefficients(place, edge / blocks)[ket][base].value
                    size = math.sqrt(blocks) * d[:, layer, 1:, base, edge - 1]
                    np.testing.assert_allclose(value, size, **close)


@pytest.mark.parametrize("blocks", [2, 8, 31])
def test_S1_25_A23(blocks: int) -> None:
    """The nonlinear recursion of a function that is the identity, written so that it is not."""
    linear = finite(Trunk(*FOUR, Var(0), 0.5, 0.5, 1.2, 0.7), blocks)
    other = finite(Trunk(*FOUR, Var(0) + 0 * Var(0) ** 3 + 1, 0.5, 0.5, 1.2, 0.7), blocks)
    assert linear.trunk.linear and not other.trunk.linear  # the mean 1 is subtracted
    np.testing.assert_allclose(other.outputs, linear.outputs, rtol=1e-12, atol=1e-13)
    for name in ("features", "gradients"):
        for place in (0.0, 0.5, 1.0):
            one, two = getattr(other, name)(place), getattr(linear, name)(place)
            np.testing.assert_allclose(one.value, two.value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("act", ["relu", "abs"])
@pytest.mark.parametrize("blocks", [16, pytest.param(24, marks=pytest.mark.slow)])
def test_S1_7_25_A19(act: str, blocks: int) -> None:
    k, v = {"relu": (0.5 - 0.5 / math.pi, 0.5), "abs": (1 - 2 / math.pi, 1.0)}[act]
    name = "relu" if act == "relu" else abs_
    found = tp.limit(deep_run((1.0, 1.0), (1.0, 1.0), 0.5, 0.5, name), depths=(blocks, "oo"))
    forward, back = ((1 + k / blocks) ** blocks, (1 + v / blocks) ** blocks)
    for what, at_l, at_oo in (("x[0,0]", forward, math.exp(k)), ("dx[0,0]", back, math.exp(v))):
        agree(found.at(what, blocks), at_l, rounding=1e-10)
        assert found.at(what, "oo").value == pytest.approx(at_oo, rel=1e-10)
    edges = np.arange(1, blocks + 1)
    kernel = v / blocks * ((1 + k / blocks) ** (edges - 1) * (1 + v / blocks) ** (blocks - edges))
    if act == "abs" and blocks == 16:
        assert kernel.sum() == pytest.approx(1.893721, abs=6e-7)
    theta = {"relu": 0.762106, "abs": 2.010775}[act]  # of the limit; f_1 = eta Theta for small eta
    assert v * (math.exp(v) - math.exp(k)) / (v - k) == pytest.approx(theta, abs=6e-7)


def abs_(z: object) -> object:
    return tp.abs(z)


def test_S1_25_A20() -> None:
    found = tp.limit(
        deep_run(*SAME, 0.5, 0.5, "sin", **SIZES, steps=4), depths=["oo"], places=(0, 1)
    )
    f = (0, 0.9973, 1.5177, 1.8053)
    np.testing.assert_allclose(outputs(found, "oo")[:4], f, atol=6e-5)
    features = np.diagonal(found.along("features", "oo").values[1])[:4]
    np.testing.assert_allclose(features, (1.6655, 2.9976, 4.630, 5.815), rtol=1.2e-4)
    gradients = np.diagonal(found.along("gradients", "oo").values[0])
    np.testing.assert_allclose(gradients, (8.678, 0.890, 0.150, 0.0211), rtol=2e-3)
    assert found.at("f[3,0]", "oo").stderr < 1e-10
    euler = finite(Trunk(*SAME, SIN, 0.5, 0.5, 1.2, 0.5), 128).outputs[:, 0, 0]
    np.testing.assert_allclose(euler[1:], (0.99946, 1.51858, 1.80537), atol=6e-6)


@pytest.mark.slow
def test_S1_25_A20_as_printed_fails() -> None:
    """Definition E.1 as it is printed: another f_2, and gradients four times as large."""
    wrong = Reference(256, *SAME, 0.5, 0.5, 1.2, 0.5, sine, printed=True)
    assert wrong.f[2] == pytest.approx(1.6624, abs=1e-4)
    assert wrong.C1[1, 1, 1] == pytest.approx(3.30, rel=0.01)
    run = deep_run(SAME[0][:3], SAME[1][:3], 0.5, 0.5, "sin", **SIZES)
    found = tp.limit(run, depths=(*DEPTHS, "oo"), seed=3, samples=2**12)
    for name, bad in (("f[2,0]", wrong.f[2]), ("dx[1,0]", wrong.C1[1, 1, 1])):
        value, error = extrapolated(found, name)
        assert abs(value - found.at(name, "oo").value) < 5 * error
        assert abs(value - bad) > 15 * error


@pytest.mark.slow
def test_S1_26_A21() -> None:
    """The mean-field limit, and that of programs; without the dot term 2.39, and with the average
    of phi'(h_0) apart from the rest .396."""
    limit = mean_field(Trunk(SAME[0][:2], SAME[1][:2], SIN, 1, 0, 1.2, 0.5))
    f = limit.outputs[1, 0, 0]
    b = limit.gradients(0.0).value[1, 1]
    assert limit.errors.max() < 1e-4
    assert f == pytest.approx(0.4542, abs=5e-4)
    assert limit.features(1.0).value[1, 1] == pytest.approx(1.2479, abs=5e-4)
    assert b == pytest.approx(2.02, abs=6e-3)
    run = deep_run(SAME[0][:3], SAME[1][:3], 1, 0, "sin", **SIZES)
    found = tp.limit(run, depths=DEPTHS, seed=5, samples=2**12)
    for name, right, wrong in (("f[1,0]", f, 0.396), ("dx[1,0]", b, 2.39)):
        value, error = extrapolated(found, name)
        assert abs(value - right) < 5 * error
        assert abs(value - wrong) > 10 * error


@pytest.mark.slow
def test_S1_26_A21_two_updates() -> None:
    """Three steps at once: functions of two Gaussians that turn quickly, the third in tables."""
    run = deep_run(SAME[0][:3], SAME[1][:3], 1, 0, "sin", **SIZES)
    found = tp.limit(run, depths=(*DEPTHS, "oo"), seed=5, samples=2**11)
    value, error = extrapolated(found, "f[2,0]")
    limit = found.at("f[2,0]", "oo")
    assert limit.stderr < 3e-3
    assert abs(value - limit.value) < 5 * error + limit.stderr


@pytest.mark.slow
def test_S1_27_A22() -> None:
    """alpha = 3/4: 1.197 at 128 blocks, and what is printed 2.52; simulated 1.189 +- .009."""
    right = finite(Trunk(*SAME, SIN, 0.75, 0.25, 1.2, 0.5), 128)
    wrong = Reference(128, *SAME, 0.75, 0.25, 1.2, 0.5, sine, printed=True)
    value = right.gradients(0.0).value[1, 1]
    assert value == pytest.approx(1.197, abs=1e-3)
    assert wrong.C1[1, 1, 1] == pytest.approx(2.52, abs=0.02)
    run = deep_run(SAME[0][:3], SAME[1][:3], 0.75, 0.25, "sin", **SIZES)
    table = tp.limit(run, depths=(8, 32), seed=1, samples=2**12)
    gaps = {}
    for blocks in (8, 32):
        found = table.at("dx[1,0]", blocks)
        same = finite(Trunk(*SAME, SIN, 0.75, 0.25, 1.2, 0.5), blocks).gradients(0.0).value[1, 1]
        gaps[blocks] = found.value - same, 5 * found.stderr
    # What the recursion leaves out of a block falls faster than 1/L; the other does not come near.
    assert abs(gaps[32][0]) + gaps[32][1] < (abs(gaps[8][0]) - gaps[8][1]) / 4
    bad = Reference(32, *SAME, 0.75, 0.25, 1.2, 0.5, sine, printed=True).C1[1, 1, 1]
    assert abs(table.at("dx[1,0]", 32).value - bad) > 10 * (abs(gaps[32][0]) + gaps[32][1])


@pytest.mark.slow
def test_S1_27_A22_at_128_blocks() -> None:
    """There the program and the recursion are not told apart."""
    run = deep_run(SAME[0][:3], SAME[1][:3], 0.75, 0.25, "sin", **SIZES)
    found = tp.limit(run, depths=(128,), seed=1, samples=2**12).at("dx[1,0]", 128)
    right = finite(Trunk(*SAME, SIN, 0.75, 0.25, 1.2, 0.5), 128).gradients(0.0).value[1, 1]
    assert abs(found.value - right) < 5 * found.stderr < 0.02


def test_S1_27_limit_between_one_half_and_one() -> None:
    """Coefficients on U and n V alone: an ordinary differential equation, by scipy."""
    from scipy.integrate import solve_ivp

    s = 1.2**2 * 0.5
    xi, y = SAME

    def slopes(one, two, both):
        return dict(zip(("c", "11", "22", "2c", "31"), sine(one, two, both), strict=False))

    xs, ds, f = [], [], []
    tight = {"rtol": 1e-11, "atol": 1e-13, "dense_output": True, "method": "DOP853"}
    for t in range(3):

        def ahead(p, x):
            total = np.zeros(2)
            for w, d in zip(xs, ds, strict=True):
                v = slopes(x @ x, w(p) @ w(p), x @ w(p))
                total -= s * v["11"] * (x @ w(p)) * d(p)
            return total

        own = solve_ivp(ahead, (0, 1), (xi[t], 0.0), **tight)
        f.append(own.y[1, -1])
        xs.append(own.sol)

        def back(q, d):
            p, total = 1 - q, np.zeros(2)
            x = xs[-1](p)
            for w, e in zip(xs[:-1], ds, strict=True):
                old = w(p)
                v = slopes(x @ x, old @ old, x @ old)
                c, k = e(p) @ d, x @ old
                total -= s * c * ((v["11"] + v["22"] * k) * old + v["31"] * k * x)
            return total

        end = solve_ivp(back, (0, 1), (0.0, f[-1] - y[t]), **tight)
        ds.append(lambda p, sol=end.sol: sol(1 - p))
    found = tp.limit(deep_run(xi[:3], y[:3], "3/4", "1/4", "sin", **SIZES), depths=["oo"])
    np.testing.assert_allclose(outputs(found, "oo"), f, atol=1e-9)
    value = found.at("dx[1,0]", "oo").value
    assert value == pytest.approx(ds[1](0.0) @ ds[1](0.0), rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("act", ["sin", "gelu"])
def test_programs_of_many_blocks_lead_to_the_limit(act: str) -> None:
    """The programs of L blocks, by samples, against the functional-integral limit."""
    run = deep_run((1.0, 0.8, 0.6), (1.0,) * 3, 0.5, 0.5, act, a=1.2, eta=0.7)
    found = tp.limit(run, depths=(*DEPTHS, "oo"), seed=2, samples=2**12)
    for name in ("f[1,0]", "f[2,0]", "x[2,0]", "dx[1,0]"):
        limit = found.at(name, "oo")
        assert limit.method is Method.QUADRATURE and limit.stderr < 1e-6
        value, error = extrapolated(found, name)
        assert error < 0.03 * abs(limit.value)
        assert abs(value - limit.value) < 5 * error
        assert abs(value - found.at(name, 8).value) > 5 * error  # what is extrapolated matters


def rectified(one: float, two: float, both: float) -> tuple[float, ...]:
    """The averages of relu; of Gaussians that are proportional those of phi'' are left out."""
    size, det = math.sqrt(one * two), max(one * two - both**2, 0.0)
    angle = math.pi - math.atan2(math.sqrt(det), both)
    product = (math.sqrt(det) + angle * both) / (2 * math.pi)
    twice = 1 / (2 * math.pi * math.sqrt(det)) if det > 1e-14 * size**2 else 0.0
    bent = (math.sqrt(det / one) - math.sqrt(two)) / (2 * math.pi * math.sqrt(one))
    slopes = angle / (2 * math.pi)
    return product - size / (2 * math.pi), slopes, twice, bent, -both / one * twice, slopes - 0.25


@pytest.mark.parametrize(
    "inputs", [(1.0, -0.7, 1.2), (1.0, 1.0, 1.0), (1.3, 0.7, 0.4), (1.0, -1.0, 0.5)]
)
def test_S1_25_kinks_where_streams_start_as_one(inputs: tuple[float, ...]) -> None:
    """relu, inputs on one line: the limit, and the recursion of the specification at 32, 64 and
    128 blocks without its parts in 1/L and 1/L^2."""
    xi, y = inputs, (0.5, 1.0, -0.5)
    found = limit(Trunk(xi, y, lookup("relu").fn.expr, rates=0.5))
    assert found.errors.max() < 1e-6
    seen = []
    for blocks in (32, 64, 128):
        want = Reference(blocks, xi, y, eta=0.5, moments=rectified)
        kets = [(want.D0, blocks), (want.D0, blocks // 2), (want.D1, 0), (want.D1, blocks // 2)]
        norms = [want.inner(d[t, at], d[t, at], t) for d, at in kets for t in range(3)]
        ends = want.D1[:, blocks // 2, 0, :, 0].ravel()
        far = math.sqrt(blocks) * want.D1[:, blocks // 2, 1:, :, blocks - 1].ravel()
        seen.append(np.concatenate([want.f, norms, ends, far]))
    extrapolated = np.array((1 / 3, -2.0, 8 / 3)) @ np.array(seen)
    kernels = [
        *(found.features(place).value for place in (1.0, 0.5)),
        *(found.gradients(place).value for place in (0.0, 0.5)),
    ]
    start, end = (part[1].value[:, 0] for part in found.ends(0.5))
    gamma = np.stack([part.value for part in found.coefficients(0.5, 1.0)[1]], axis=-1)
    parts = [found.outputs.ravel(), *map(np.diagonal, kernels), np.stack([start, end], axis=1)]
    value = np.concatenate([part.ravel() for part in (*parts, gamma)])
    np.testing.assert_allclose(value, extrapolated, rtol=1e-4, atol=2e-6 * np.abs(value).max())


@pytest.mark.slow
@pytest.mark.parametrize(("inputs", "powers"), [((1.0, -0.7, 1.2), (1, 2)), ((1.0,) * 3, (0.5, 1))])
def test_programs_of_kinks_lead_to_the_limit(
    inputs: tuple[float, ...], powers: tuple[float, float]
) -> None:
    """Programs feel the kink of blocks where two streams are nearer than L^(-1/2): of one sign
    they come to the limit like L^(-1/2), of two like 1/L."""
    run = deep_run(inputs, (2.0,) * 3, act="relu", eta=0.5)
    found = tp.limit(run, depths=(*DEPTHS, "oo"), seed=1, samples=2**12)
    laws = np.array([[1.0, *(depth**-power for power in powers)] for depth in DEPTHS])
    weights = np.linalg.inv(laws)[0]
    for name in ("f[1,0]", "f[2,0]", "x[2,0]", "dx[1,0]"):
        rows = [found.at(name, depth) for depth in DEPTHS]
        value = weights @ [row.value for row in rows]
        error = math.hypot(*(w * row.stderr for w, row in zip(weights, rows, strict=True)))
        assert abs(value - found.at(name, "oo").value) < 5 * error
        assert abs(value - rows[0].value) > 5 * error


def test_S1_28_A28() -> None:
    """rho = (E phi')^2 / E phi'^2: how alike the gradients of neighbouring blocks are."""
    want = {"identity": 1.0, "relu": 0.5, "leaky": (1.1**2) / (2 * 1.01), "abs": 0.0}
    acts = {  # their slopes
        "identity": lambda z: 0 * z + 1,
        "relu": tp.step,
        "leaky": lambda z: tp.step(z) + 0.1 * tp.step(-z),
        "abs": tp.sign,
    }
    for name, act in acts.items():

        @tp.program
        def blocks(t: tp.Tracer, act=act) -> None:
            x = t.gaussian("x")
            slopes = [act(tp.n**-0.5 * (t.matrix(name) @ x)) for name in ("V", "W")]
            for i, j in ((0, 0), (0, 1)):
                t.output(f"{i}{j}", t.inner(slopes[i], slopes[j]))

        found = tp.limit(blocks)
        ratio = found["01"].value / found["00"].value
        assert ratio == pytest.approx(want[name], abs=1e-9)
        assert found["00"].method is Method.EXACT
    assert want["leaky"] == pytest.approx(0.599010, abs=5e-7)


@pytest.mark.slow
def test_S1_29_A27_growth_without_mean_subtraction() -> None:
    """relu, alpha = 1/2: log q_L / sqrt(L) -> sqrt(2 / pi); alpha = 1: cosh^2(1 / sqrt(2 pi))."""
    run = deep_run((1.0,), (1.0,), 0.5, 0.5, "relu", center=False, steps=0)
    found = tp.limit(run, depths=(64,))
    for depth, want in ((64, 0.6366),):
        value = math.log(found.at("x[0,0]", depth).value) / math.sqrt(depth)
        assert value == pytest.approx(want, abs=6e-5)
    (gap,) = tp.limit(
        deep_run((1.0, 1.0), (1.0, 1.0), 0.5, 0.5, "relu", center=False), depths=["oo"]
    ).lacking
    assert "L^(1/2)" in gap.reason and (gap.depth, gap.name) == ("oo", "")
    run = deep_run((1.0,), (1.0,), 1, 0, "relu", center=False, steps=0)
    found = tp.limit(run, depths=(16, 32, "oo"))
    one, two, limit_ = (found.at("x[0,0]", depth).value for depth in (16, 32, "oo"))
    assert 2 * two - one == pytest.approx(1.167780, abs=1e-3)
    assert limit_ == pytest.approx(math.cosh(1 / math.sqrt(2 * math.pi)) ** 2, rel=1e-9)


def test_S1_26_A21_first_update_in_closed_form() -> None:
    """x_1 = U + A(p) S(V), S(v) = E sin(z + 1.2 v cos z), A' = a exp(-A^2 E S^2 / 2)."""
    z, mass = np.polynomial.hermite_e.hermegauss(120)
    mass = mass / mass.sum()
    s = np.sin(z + 1.2 * np.outer(z, np.cos(z))) @ mass
    size = mass @ s**2
    root = brentq(
        lambda a: quad(lambda x: math.exp(x * x * size / 2), 0, a)[0] - 1.2, 0, 2, xtol=1e-14
    )
    found = mean_field(Trunk(SAME[0][:2], SAME[1][:2], SIN, 1, 0, 1.2, 0.5), passes=3)
    value, error = found.outputs[1, 0, 0], found.readout().error.max()
    assert abs(value - root * (mass @ (s * z))) < error < 1e-4
    assert found.features(1.0).value[1, 1] == pytest.approx(1 + root**2 * size, abs=1e-5)
