"""Linear blocks at infinite width, by depth: cases of spec 1 and its recursion at L = 8."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from depth_run import FOUR, Reference, deep_run, outputs

import tpcalc as tp
from tpcalc.questions.depth.sampled import sampled
from tpcalc.results import DepthArray, DepthTable, Method

XI, Y0 = (1.3, 0.7), 0.9
KAPPA, CHI = 1.3 * 0.7, -0.9  # xi_0 xi_1; f_0 - y_0
POINTS = [(0.5, 0.5), (0.75, 0.25), (1.0, 0.0), (1.25, -0.25), (0.4, 0.6), (0.5, 0.7)]
WHERE = (0.0, 0.25, 0.5, 0.75, 1.0)


def two(alpha: object, gamma: object, *depths: object, **settings: object) -> DepthTable:
    """The run of case A2; its second target moves nothing that is asked."""
    return tp.limit(deep_run(XI, (Y0, 0.0), alpha, gamma, **settings), depths=depths, places=WHERE)


@pytest.mark.parametrize("point", POINTS)
def test_S1_9_10_every_number_at_8_blocks(point: tuple[float, float]) -> None:
    """Outputs, both kernels and all coefficients against those of the specification."""
    blocks = 8
    places = [layer / blocks for layer in range(blocks + 1)]
    want = Reference(blocks, *FOUR, *point, a=1.2, eta=0.7)
    run = deep_run(*FOUR, *point, a=1.2, eta=0.7, steps=4)
    found = tp.limit(run, depths=(blocks,), places=places)
    get = {array.name: array.values for array in found.arrays}
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(outputs(found, blocks)[:4], want.f, **close)
    for layer in range(1, blocks + 1):
        np.testing.assert_allclose(
            get["features"][layer - 1, :4, :4], want.C0[:, :, layer], **close
        )
        np.testing.assert_allclose(get["gradients"][layer], want.C1[:, :, layer], **close)
    for ket, d in enumerate((want.D0, want.D1)):
        for base, name in enumerate(("inputs", "outputs")):
            np.testing.assert_allclose(get[name][ket, :, :4, 0], d[:, :, 0, base, 0].T, **close)
        scaled = math.sqrt(blocks) * np.moveaxis(d[:, :, 1:], (3, 1, 4, 0, 2), (0, 1, 2, 3, 4))
        shape = get["coefficients"][ket][:, :, 1:, :4, :4]
        np.testing.assert_allclose(shape, scaled, **close)


@pytest.mark.parametrize("point", POINTS[:4])
def test_S1_2_9_10_programs_of_8_blocks_say_the_same(point: tuple[float, float]) -> None:
    """The limit rules on the unrolled program against the recursion over the depth."""
    run = deep_run(FOUR[0][:3], FOUR[1][:3], *point, a=1.2, eta=0.7)
    closed = tp.limit(run, depths=(8,), places=(0, 0.5, 1))
    rows, along = sampled(run, 8, (0, 0.5, 1), 0, {})
    arrays = [one for one in along if isinstance(one, DepthArray)]
    assert {row.name for row in rows} == set(closed.names)
    for row in rows:
        assert row.estimate.method is Method.EXACT
        assert row.estimate.value == pytest.approx(closed.at(row.name, 8).value, rel=1e-10)
    assert [one.name for one in arrays] == ["features", "gradients", "preactivations", "distances"]
    for array in arrays:
        np.testing.assert_allclose(
            array.values, closed.along(array.name, 8).values, rtol=1e-10, atol=1e-10
        )


def test_S1_9_A1() -> None:
    found = two(0.5, 0.5, 64, "oo")
    assert found.at("x[0,0]", 64).value == pytest.approx(4.558512969835, rel=1e-12)
    assert found.at("x[0,0]", "oo").value == pytest.approx(1.69 * math.e, rel=1e-12)


F1 = {
    (0.5, 0.5, 32): 2.126016888,
    (0.75, 0.25, 64): 0.926126609,
    (1.0, 0.0, 64): 0.831692737,
    (0.5, 0.7, 64): 0.946784228,
    (0.5, 0.3, 64): 4.997157113,
    (0.75, 0.75, 64): 0.115765826,
    (1.25, -0.25, 64): 0.820576106,
    (0.4, 0.6, 64): 7.554808993,
}


@pytest.mark.parametrize("case", F1)
def test_S1_10_16_A2(case: tuple[float, float, int]) -> None:
    alpha, gamma, blocks = case
    found = two(alpha, gamma, blocks).at("f[1,0]", blocks).value
    closed = -CHI * KAPPA * blocks ** (1 - alpha - gamma)
    closed *= (1 + blocks ** (-2 * alpha)) ** (blocks - 1)
    assert found == pytest.approx(F1[case], abs=6e-10)
    assert found == pytest.approx(closed, rel=1e-13)


def test_S1_11_16_A3() -> None:
    assert two(0.5, 0.5, "oo").at("f[1,0]", "oo").value == pytest.approx(0.819 * math.e, rel=1e-12)
    for alpha in (Fraction(5, 8), Fraction(3, 4), Fraction(7, 8), Fraction(1)):
        found = two(alpha, 1 - alpha, "oo").at("f[1,0]", "oo")
        assert found.value == pytest.approx(0.819, rel=1e-12)
    found = two(0.5, 0.5, 64, "oo", a=1.5, eta=0.4)
    assert found.at("f[1,0]", "oo").value == pytest.approx(6.993410085, abs=1e-8)
    assert found.at("f[1,0]", 64).value == pytest.approx(6.499779961, abs=1e-8)


def test_S1_11_A4() -> None:
    found = tp.limit(
        deep_run(XI, (Y0, 0.0), 0.5, 0.5), depths=(256, "oo"), places=(0, 1 / 256, 0.5)
    )
    for depth, moved in (("oo", 0.675151360), (256, 0.671869574)):
        (value,) = found.along("outputs", depth).values[0, 2, 1]
        assert value == pytest.approx(moved, abs=6e-10)
    assert found.along("gradients", "oo").values[0, 0, 0] == pytest.approx(2.201808281, abs=6e-10)
    assert found.along("gradients", 256).values[1, 0, 0] == pytest.approx(2.188972542, abs=6e-10)


def test_S1_11_13_A4_coefficients_of_the_limit() -> None:
    """Gamma_{1,0,0,1}(p, q) = -kappa r e^r, r = min(p, q)."""
    found = two(0.5, 0.5, "oo").along("coefficients", "oo").values[0, 1, :, :, 1, 0]
    r = np.minimum.outer(WHERE, WHERE)
    np.testing.assert_allclose(found, -KAPPA * r * np.exp(r), atol=1e-11)
    held = two(0.5, 0.5, "oo").along("features", "oo").values[:, 1, 1]
    p = np.array(WHERE)
    size = CHI**2 * KAPPA**2 * math.e
    np.testing.assert_allclose(held, np.exp(p) * (0.49 + size * (2 / 3 * p**3 + p**2)), rtol=1e-11)


def test_S1_15_A5() -> None:
    found = two(0.5, 0.5, 128, 256, "oo")
    for depth, value in (("oo", 9.592442526), (128, 9.322009613), (256, 9.455784444)):
        assert found.at("x[1,0]", depth).value == pytest.approx(value, abs=6e-10)
    closed = math.e * 0.49 + 5 / 3 * math.e**2 * CHI**2 * KAPPA**2
    assert found.at("x[1,0]", "oo").value == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize(
    ("alpha", "values"),
    [
        (0.5, (0, 2.56877, -0.08755, -0.17850)),
        (0.75, (0, 1.24197, 0.06585, -0.18022)),
        (1.0, (0, 0.94231, 0.03942, -0.16018)),
    ],
)
def test_S1_9_10_A6(alpha: float, values: tuple[float, ...]) -> None:
    found = tp.limit(deep_run(*FOUR, alpha, 1 - alpha, a=1.2, eta=0.7), depths=(8,), places=(1,))
    np.testing.assert_allclose(outputs(found, 8), values, atol=1e-5)
    (kernel,) = found.along("features", 8).values
    want = {
        0.5: ((3.758859, 13.072054, 0.442175, 1.702772), -0.046996),
        1.0: ((1.194831, 1.737183, 0.081397, 0.367510), 0.334664),
    }.get(alpha)
    if want is not None:
        np.testing.assert_allclose(np.diagonal(kernel), want[0], atol=1e-6)
        assert kernel[3, 1] == pytest.approx(want[1], abs=1e-6)


def test_S1_11_A7() -> None:
    found = tp.limit(deep_run(*FOUR, 0.5, 0.5, a=1.2, eta=0.7), depths=["oo"], places=(1,))
    values = np.array((0, 3.4036, -0.0221, -0.4063))
    np.testing.assert_allclose(outputs(found, "oo"), values, rtol=2e-3, atol=5e-5)
    kernel = np.diagonal(found.along("features", "oo").values[0])
    np.testing.assert_allclose(kernel, (4.2207, 25.405, 0.5546, 2.950), rtol=2e-3)


@pytest.mark.parametrize("alpha", ["5/8", "3/4", 1])
def test_S1_12_A8(alpha: object) -> None:
    gamma = {"5/8": "3/8", "3/4": "1/4", 1: 0}[alpha]
    found = tp.limit(deep_run(*FOUR, alpha, gamma, a=1.2, eta=0.7), depths=["oo"], places=(1,))
    want = (0, 0.806400, 0.011259, -0.109615)
    np.testing.assert_allclose(outputs(found, "oo"), want, atol=1e-6)
    kernel = np.diagonal(found.along("features", "oo").values[0])
    np.testing.assert_allclose(kernel, (1, 1.290281, 0.087308, 0.374871), atol=1e-6)


def test_S1_12_A8_independent_solver() -> None:
    """The ordinary differential equation of section D.3 by scipy."""
    from scipy.integrate import solve_ivp

    xi, y = FOUR
    s = 1.2**2 * 0.7
    xs, ds, f = [], [], []
    for t in range(4):

        def ahead(p, x):
            return -s * sum((d(p) * (w(p) @ x) for w, d in zip(xs, ds, strict=True)), np.zeros(2))

        def back(q, d):
            p = 1 - q
            return -s * sum(
                (w(p) * (e(p) @ d) for w, e in zip(xs[:-1], ds, strict=True)), np.zeros(2)
            )

        tight = {"rtol": 1e-12, "atol": 1e-13, "dense_output": True, "method": "DOP853"}
        xs_t = solve_ivp(ahead, (0, 1), (xi[t], 0.0), **tight)
        f.append(xs_t.y[1, -1])
        xs.append(xs_t.sol)
        ds_t = solve_ivp(back, (0, 1), (0.0, f[-1] - y[t]), **tight)
        ds.append(lambda p, sol=ds_t.sol: sol(1 - p))
    found = tp.limit(deep_run(*FOUR, "3/4", "1/4", a=1.2, eta=0.7), depths=["oo"])
    np.testing.assert_allclose(outputs(found, "oo"), f, atol=1e-10)
    # What is answered says how far it may be off, and it is not further.
    assert max(found.at(f"f[{t},0]", "oo").stderr for t in range(4)) < 1e-10


def test_S1_11_12_A9() -> None:
    ones = (1.0,) * 4
    found = tp.limit(deep_run(ones, ones, 0.5, 0.5, eta=0.25), depths=(64, "oo"), places=(1,))
    np.testing.assert_allclose(outputs(found, "oo"), (0, 0.67957, 0.94801, 0.99979), atol=6e-6)
    np.testing.assert_allclose(outputs(found, 64), (0, 0.66396, 0.93532, 0.99724), atol=6e-6)
    kernel = np.diagonal(found.along("features", "oo").values[0])
    np.testing.assert_allclose(kernel, (2.71828, 3.48797, 4.46434, 4.69096), atol=2e-5)
    found = tp.limit(deep_run(ones, ones, 1, 0, eta=0.25), depths=["oo"], places=(1,))
    np.testing.assert_allclose(outputs(found, "oo"), (0, 0.25, 0.451467, 0.623085), atol=1e-6)
    kernel = np.diagonal(found.along("features", "oo").values[0])
    np.testing.assert_allclose(kernel, (1, 1.0625, 1.252708, 1.507316), atol=1e-6)


def test_S1_14_A10() -> None:
    """Gaps of 1/L at alpha = 1/2: they halve when the depth doubles, and lead to the limit."""
    ones, depths = (1.0,) * 5, (16, 32, 64, 128, 256)
    found = tp.limit(deep_run(ones, ones, 0.5, 0.5, eta=0.1), depths=(*depths, "oo"), places=WHERE)
    last = np.array([found.at("f[4,0]", depth).value for depth in (*depths, "oo")])
    np.testing.assert_allclose(last[:4], (0.716612, 0.740716, 0.753246, 0.759632), atol=1e-6)
    ratios = np.diff(last[:-1])[:-1] / np.diff(last[:-1])[1:]
    assert (abs(ratios - 2) < (0.1, 0.05, 0.03)).all()
    gaps = last[-1] - last[:-1]
    assert (abs(gaps[:-1] / gaps[1:] - 2) < 0.06).all()
    for name in ("features", "gradients", "distances"):  # at grid points too, Theorem C.3
        off = [
            abs(found.along(name, d).values - found.along(name, "oo").values).max() for d in depths
        ]
        assert (abs(np.divide(off[:-1], off[1:]) - 2) < 0.2).all()


def test_S1_14_A10_slow_convergence_is_not_extrapolated() -> None:
    """At alpha = 3/4 gaps are L^(-1/2): extrapolation in 1/L gives .845, the limit is .819."""
    depths = (64, 128, 256)
    found = two("3/4", "1/4", *depths, "oo")
    one, two_, three = (found.at("f[1,0]", depth).value for depth in depths)
    naive = (8 * three - 6 * two_ + one) / 3
    limit = found.at("f[1,0]", "oo")
    assert naive == pytest.approx(0.845, abs=2e-3)
    assert limit.value == pytest.approx(0.819, abs=1e-12) and limit.stderr < 1e-11
    assert (three - limit.value) / (one - limit.value) == pytest.approx(0.5, abs=0.03)


def test_S1_19_A12() -> None:
    for alpha, want in (
        (0.5, (1.3066, 1.3350, 1.3427)),
        (1.0, (1.1725, 1.1578, 1.1539)),
        (1.25, (2.118, 2.873, 3.980)),
    ):
        found = two(alpha, 1 - alpha, 32, 128, 512)
        rms = [found.along("preactivations", d).values[2, 1, 1] ** 0.5 for d in (32, 128, 512)]
        np.testing.assert_allclose(rms, want, atol=6e-5 if alpha < 1.25 else 6e-4)
    assert rms[2] / rms[1] == pytest.approx(4**0.25, abs=0.04)
    faithful = two(1.0, 0.0, "oo").along("preactivations", "oo").values[2, 1, 1] ** 0.5
    assert faithful == pytest.approx(1.1526, abs=5e-4)  # to which the second row goes
    beyond = two("5/4", "-1/4", "oo")
    assert "preactivations" not in {array.name for array in beyond.arrays}  # they grow like L^(1/4)


def test_S1_21_A26() -> None:
    """Distances of features; the closed form of the limit at t = 1."""
    from scipy.integrate import quad

    steps = [1 / 4, 1 / 8, 1 / 16, 1 / 32, 1e-4, 2e-4]
    places = [0.5, *(0.5 + one for one in steps)]

    def distance(table: DepthTable, depth: object) -> np.ndarray:
        return table.along("distances", depth).values[0, 1:, 1, 1] ** 0.5

    run = deep_run(XI, (Y0, 0.0), 0.5, 0.5)
    found = tp.limit(run, depths=(512, "oo"), places=places)
    limit = distance(found, "oo")
    np.testing.assert_allclose(limit[:4], (1.123836, 0.635167, 0.393136, 0.258029), atol=6e-7)
    np.testing.assert_allclose(
        distance(found, 512)[:4], (1.119280, 0.632639, 0.391587, 0.257019), atol=6e-7
    )
    slope = math.log(limit[5] / limit[4]) / math.log(2)
    assert slope == pytest.approx(0.5004, abs=6e-5)
    size = CHI**2 * KAPPA**2

    def u(p: float) -> float:
        return p * math.exp(p)

    def v(p: float) -> float:
        return math.exp(p) * (0.49 + size * math.e * (2 / 3 * p**3 + p**2))

    for step, value in zip(steps[:4], limit, strict=False):
        noise = quad(v, 0.5, 0.5 + step)[0]
        drift = quad(lambda q: (u(q) - u(0.5)) ** 2 * math.exp(1 - q), 0.5, 0.5 + step)[0]
        drift += (u(0.5 + step) - u(0.5)) ** 2 * math.exp(0.5 - step)
        assert value**2 == pytest.approx(noise + size * drift, rel=1e-10)
    flat = tp.limit(deep_run(XI, (Y0, 0.0), 1, 0), depths=(512, "oo"), places=places[:5])
    np.testing.assert_allclose(distance(flat, "oo"), 0.819 * np.array(steps[:4]), rtol=1e-9)
    np.testing.assert_allclose(
        distance(flat, 512), (0.206214, 0.103475, 0.052119, 0.026441), atol=6e-7
    )


def test_S1_32_A30() -> None:
    """The rate that fits a sample in one step: f_1 is linear in it."""
    for gamma, power, want in (
        (0.5, 0.0, (0.438462, 0.376528, 0.368958)),
        (0.0, -0.5, (0.155020, 0.047066, 0.016306)),
    ):
        run = deep_run((1.0, 1.0), (1.0, 1.0), 0.5, gamma)
        found = tp.limit(run, depths=(8, 64, 512))
        rates = [1 / found.at("f[1,0]", depth).value for depth in (8, 64, 512)]
        np.testing.assert_allclose(rates, want, atol=6e-7)
        closed = [L**power * (1 + 1 / L) ** (1 - L) for L in (8, 64, 512)]
        np.testing.assert_allclose(rates, closed, rtol=1e-12)
    best = tp.limit(deep_run((1.0, 1.0), (1.0, 1.0), 0.5, 0.5), depths=["oo"]).at("f[1,0]", "oo")
    assert 1 / best.value == pytest.approx(math.exp(-1), rel=1e-12)


def test_S1_15_A31() -> None:
    """The features' kernel is the forward one; what is printed is chi_t chi_s."""
    found = two(0.5, 0.5, "oo", steps=2)
    chi = found.at("f[1,0]", "oo").value
    forward = found.along("features", "oo")
    assert forward.values[-1, 1, 1] == pytest.approx(9.592442526, abs=6e-10)
    assert found.at("x[1,0]", "oo").value == forward.values[-1, 1, 1]
    printed = found.along("gradients", "oo").values[-1, 1, 1]
    assert printed == pytest.approx(chi**2, rel=1e-11)
    assert abs(printed - forward.values[-1, 1, 1]) > 1e9 * forward.errors.max()
