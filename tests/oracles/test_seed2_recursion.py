"""Covariances of residual networks of infinite width at the start, by the recursion over blocks."""

from __future__ import annotations

from math import cosh, exp, log, pi, sqrt

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import ProgramError, StudyError, TraceError
from tpcalc.program.along import along_of
from tpcalc.questions.depth.limit import start_program
from tpcalc.questions.depth.shape import block_at_start

RES1 = {"nonlin": "pre"}
RES3 = {"nonlin": "between", "layers": 2}


def start(depth: int, alpha: object, act: str = "relu", **shape: object) -> tuple[float, float]:
    found = tp.limit(tp.ResNet("L", act, alpha=alpha, **shape), depths=[depth])
    assert not found.notes and not found.lacking
    return tuple(found.at(name, depth).value for name in ("D^2", "Dp^2"))


def test_S2_10_A9_explosion_of_independent_blocks() -> None:
    forward, backward = start(1000, "1/4", **RES3)
    assert log(1 + forward) == pytest.approx(15.68769, rel=1e-6)
    assert log(1 + forward) / log(100) == pytest.approx(3.40654, rel=2e-6)
    assert backward == pytest.approx(forward, rel=1e-9)


def test_S2_10_A10_identity_of_independent_blocks() -> None:
    assert sqrt(start(1000, 1, **RES3)[0]) == pytest.approx(0.0223635, rel=1e-5)


@pytest.mark.parametrize(
    ("hurst", "expected"),
    [("0.2", -0.340246), ("0.35", -0.187748), ("0.8", 0.515717), ("0.9", 0.741101)],
)
def test_S2_17_A12_fractional_noise(hurst: str, expected: float) -> None:
    assert along_of(f"fgn({hurst})").autocovariance(2)[1] == pytest.approx(expected, abs=5e-7)


def test_S2_17_A12_sums_of_fractional_noise() -> None:
    for depth in (100, 5000):  # beyond 100 lags by a series
        row = along_of("fgn(4/5)").autocovariance(depth)
        weights = [depth, *(2 * (depth - lag) for lag in range(1, depth))]
        assert row @ weights == pytest.approx(depth**1.6, rel=1e-10)


@pytest.mark.parametrize(
    ("depth", "expected"), [(2, (0.466205, 0.414862)), (4, (0.420832, 0.326735))]
)
def test_S2_19_A13_fractional_noise_of_few_blocks(
    depth: int, expected: tuple[float, float]
) -> None:
    assert start(depth, "0.8", hurst="0.8", **RES3) == pytest.approx(expected, abs=6e-7)


def test_S2_19_A13_fractional_noise_of_many_blocks() -> None:
    found = start(1000, "0.8", hurst="0.8", **RES3)
    assert [sqrt(value) for value in found] == pytest.approx([0.450069, 0.182568], abs=6e-7)


def test_S2_19_A14_independent_blocks_at_the_critical_scale() -> None:
    exact = (1 + 1 / 2000) ** 1000 - 1
    for shape in ({}, {"hurst": "1/2"}):
        assert start(1000, "1/2", **RES3, **shape) == pytest.approx((exact, exact), rel=1e-12)
    assert tp.limit(tp.ResNet("L", "relu", **RES3), depths=["oo"]).at(
        "D^2", "oo"
    ).value == pytest.approx(0.6487212707)


def test_S2_19_A24_res_1_of_rough_matrices() -> None:
    expected = {"0.2": (0.878, 1.036), "0.25": (0.506, 0.450), "0.3": (0.322, 0.233)}
    for alpha, values in expected.items():
        found = [sqrt(start(depth, alpha, hurst="0.1", **RES1)[0]) for depth in (250, 2000)]
        assert found == pytest.approx(values, abs=6e-4)


def test_S2_16_A25_smooth_matrices() -> None:
    smooth, steps = {"along": "rbf(1/10)"}, {"along": "rbf_increments(1/10)"}
    expected = (0.094465, 0.072495)
    for depth in (250, 2000):
        assert start(depth, 1, **RES3, **smooth) == pytest.approx(expected, rel=3e-4)
    assert start(2000, 1, **RES3, **smooth) == pytest.approx(expected, abs=6e-7)
    assert start(1000, 2, **RES3, **smooth)[0] == pytest.approx(9.058e-8, rel=1e-4)
    found = start(2000, 1, **RES3, **steps)
    assert found == pytest.approx((0.040465, 0.045632), abs=6e-7)


SHAPES = [
    {"nonlin": "between", "layers": 2, "hurst": "0.8"},
    {"nonlin": "between", "layers": 2, "along": "rbf(1/3)", "center": True},
    {"nonlin": "between", "layers": 2, "along": "given(1, 1/2, -1/8)", "multiplier": 2},
    {"nonlin": "pre", "hurst": "0.3", "weight_variance": 3},
    {"nonlin": "pre"},
    {"nonlin": "post", "hurst": "0.7"},
    {"nonlin": "post", "hurst": "0.7", "center": True, "weight_variance": 2},
]


@pytest.mark.parametrize("act", ["relu", "leaky_relu:0.8", "tanh", "identity"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_S2_19_the_recursion_agrees_with_the_program_of_four_blocks(
    act: str, shape: dict[str, object]
) -> None:
    net = tp.ResNet("L", act, alpha="4/5", **shape)
    found = tp.limit(net, depths=[4])
    program = tp.limit(start_program(block_at_start(net), 4), seed=0)
    for name in ("R^2", "D^2", "Rp^2", "Dp^2"):
        value = found.at(name, 4)
        bound = 2 * value.stderr + 1e-12 * value.value
        assert value.value == pytest.approx(program[name].value, abs=bound)


@pytest.mark.parametrize("shape", [RES1, RES3])
def test_S2_19_six_blocks(shape: dict[str, object]) -> None:
    net = tp.ResNet("L", "relu", alpha="1/2", hurst="0.65", **shape)
    found, program = tp.limit(net, depths=[6]), start_program(block_at_start(net), 6)
    limit = tp.limit(program, seed=0)
    for name in ("D^2", "Dp^2"):
        value = found.at(name, 6)
        score = limit[name].z(value.value)
        assert abs(score) < 5


def test_blocks_of_another_shape_are_sampled() -> None:
    net = tp.ResNet("L", "tanh", alpha=1, nonlin="post", layers=2, hurst="0.8")
    found = tp.limit(net, depths=[2, "oo"], samples=2**12, replicates=8)
    assert "no closed recursion" in found.notes[0]
    assert found.at("D^2", 2).value > 0 and found.at("D^2", "oo").value == 0


def test_no_limit_is_said() -> None:
    found = tp.limit(tp.ResNet("L", "relu", alpha="1/4", **RES3), depths=["oo"])
    assert not found.rows and "there is no limit" in found.lacking[0].reason


DEEP = """tpcalc program 2
dim n 1
family x : n
family "W{l}" : n*n along LAW
%0 : n = input x
%1 : n = carry %0 over l:L
%2 : n*n = input "W{l}"
%3 : n = matmul %2 %1
%4 : n = scale %3 n^(-1/2) L^(-1/2)
%5 : n = sum 1*%1 + 1*%4
%6 : n = repeat %1 to %5
output y %6
"""


@pytest.mark.parametrize(
    "law", ["fresh", "fgn(3/4)", "fgn(H)", "rbf(1/10)", "rbf_increments(1/10)", "given(1, 1/2)"]
)
def test_S2_1_laws_along_the_depth_read_back(law: str) -> None:
    text = DEEP.replace("LAW", law)
    program = tp.parse(text)
    assert str(program) == text and str(along_of(law)) == law


@pytest.mark.parametrize("law", ["fgn(2)", "fgn", "rbf(0)", "given(1/2)", "noise(1)"])
def test_laws_along_the_depth_that_are_none(law: str) -> None:
    with pytest.raises(ProgramError, match="law"):
        tp.parse(DEEP.replace("LAW", law))


def test_correlated_matrices_are_asked_for_where_they_can_be() -> None:
    with pytest.raises(StudyError, match="of a depth that is the symbol"):
        tp.ResNet(4, hurst="3/4")
    with pytest.raises(StudyError, match="both"):
        tp.ResNet("L", hurst="3/4", along="fgn(1/4)")
    with pytest.raises(StudyError, match="one layer"):
        tp.ResNet("L", nonlin="between")
    with pytest.raises(ProgramError, match="holds a symbol"):
        tp.at_depth(tp.parse(DEEP.replace("LAW", "fgn(H)")), 2)
    with pytest.raises(ProgramError, match="Gaussian"):
        tp.parse(DEEP.replace("n*n along LAW", "n*n uniform along fgn(3/4)"))

    @tp.program
    def outside(t: tp.Tracer) -> None:
        t.output("y", t.matrix("W", along="fgn(3/4)") @ t.gaussian("x"))

    with pytest.raises(TraceError, match="outside of a block"):
        outside.build()


def test_S2_8_gradients_by_a_forward_pass() -> None:
    """<p_0, z> = <p_L, q_L(z)>, and with z random |q_L|^2 is |p_0|^2 (equations 9 and 10)."""
    count, front = 3, sqrt(1 / 3)

    @tp.program
    def probe(t: tp.Tracer) -> None:
        h, z, last = t.gaussian("h"), t.gaussian("z"), t.gaussian("p")
        q, p = z, last
        v, w = ([t.matrix(f"{name}{k}") for k in range(count)] for name in "VW")
        kept = []
        for k in range(count):
            u = tp.n**-0.5 * (w[k] @ h)
            slope = tp.step(u)
            kept.append(slope)
            q = q + front * (tp.n**-0.5 * (v[k] @ (slope * (tp.n**-0.5 * (w[k] @ q)))))
            h = h + front * (tp.n**-0.5 * (v[k] @ tp.relu(u)))
        for k in reversed(range(count)):
            back = kept[k] * (tp.n**-0.5 * (v[k].T @ p))
            p = p + front * (tp.n**-0.5 * (w[k].T @ back))
        for name, pair in (("pz", (p, z)), ("pq", (last, q)), ("q", (q, q)), ("p", (p, p))):
            t.output(name, t.inner(*pair))
        t.output("moved", t.inner(q - z, q - z))

    rows = {row.name: row.values for row in tp.simulate(probe, [32], 4, seed=1).rows}
    assert rows["pz"] == pytest.approx(rows["pq"], rel=1e-12)
    found = tp.limit(probe, outputs=["q", "p", "moved"], samples=2**12, replicates=16, seed=0)
    exact = tp.limit(tp.ResNet("L", "relu", **RES3), depths=[count])
    for name, square in (("q", "Rp^2"), ("p", "Rp^2"), ("moved", "Dp^2")):
        bound = 5 * found[name].stderr + 1e-8
        assert found[name].value == pytest.approx(exact.at(square, count).value, abs=bound)


def limit_of(act: str, alpha: object, **shape: object) -> dict[str, tuple[float, float]]:
    found = tp.limit(
        tp.ResNet("L", act, alpha=alpha, **shape), depths=["oo"], places=(0.0, 0.5, 1.0)
    )
    assert not found.lacking and found.along("R^2", "oo").values[-1] == found.at("R^2", "oo").value
    return {row.name: (row.estimate.value, row.estimate.stderr) for row in found.rows}


def near(found: tuple[float, float], value: float, least: float = 1e-12) -> bool:
    return abs(found[0] - value) <= max(found[1], least)


def test_limits_of_independent_blocks_are_those_that_training_starts_from() -> None:
    """relu less its average: C' = (1/2 - 1/(2 pi)) C, D' = D / 2; gelu as a run has it."""
    post = {"nonlin": "post", "center": True}
    found = limit_of("relu", "1/2", **post)
    assert near(found["R^2"], exp(0.5 - 0.5 / pi)) and near(found["Rp^2"], exp(0.5))
    assert near(limit_of("identity", "1/2", nonlin="post")["D^2"], exp(1) - 1)
    data = tp.Samples(((1.0,),), ((1.0,),))
    run = tp.Training(tp.ResNet("L", "gelu", **post), "depth-mup", data, steps=1)
    own, found = tp.limit(run, depths=["oo"]), limit_of("gelu", "1/2", **post)
    assert near(found["R^2"], own.at("x[0,0]", "oo").value)
    assert near(found["Rp^2"], own.at("dx[0,0]", "oo").value)
    assert near(limit_of("gelu", "1/2", **RES3)["R^2"], fine("gelu", "1/2"), 1e-9)


def fine(act: str, alpha: object, **shape: object) -> float:
    """R^2 of many blocks, without its parts in 1/L and 1/L^2."""
    net = tp.ResNet("L", act, alpha=alpha, **{**RES3, **shape})
    found = tp.limit(net, depths=(250, 500, 1000))
    one, two, four = (found.at("R^2", depth).value for depth in (250, 500, 1000))
    return (one - 6 * two + 8 * four) / 3


def test_limits_of_what_blocks_add_alike() -> None:
    """relu at alpha = 1 without mean subtraction: cosh^2(1 / sqrt(2 pi)), the adjoint stays."""
    found = limit_of("relu", 1, nonlin="post")
    assert near(found["R^2"], cosh(1 / sqrt(2 * pi)) ** 2, 1e-10) and near(found["Rp^2"], 1.0)


def test_limits_of_smooth_weights() -> None:
    """Covariances of all pairs of blocks on a grid of midpoints, until they stay."""
    for act in ("identity", "relu"):
        found = limit_of(act, 1, along="rbf(1/4)", **RES3)
        sizes = [smooth(n, act, 0.25) for n in (100, 200)]
        assert near(found["R^2"], (4 * sizes[1] - sizes[0]) / 3, 1e-6)


def smooth(n: int, act: str, scale: float) -> float:
    t = (np.arange(n) + 0.5) / n
    law = np.exp(-0.5 * ((t[:, None] - t) / scale) ** 2)
    kernel = np.ones((n + 1, n + 1))
    for _ in range(30):
        middle = (kernel[1:, 1:] + kernel[:-1, 1:] + kernel[1:, :-1] + kernel[:-1, :-1]) / 4
        both, size = law * middle, np.sqrt(np.outer(np.diag(middle), np.diag(middle)))
        c = np.clip(both / size, -1, 1)
        relu = size * (np.sqrt(1 - c * c) + c * (pi - np.arccos(c))) / (2 * pi)
        added = law * (both if act == "identity" else relu) / n**2
        kernel[1:, 1:] = 1 + np.cumsum(np.cumsum(added, axis=0), axis=1)
    return float(kernel[-1, -1])


def test_limits_of_fractional_noise() -> None:
    """res-3 at alpha = H: V adds the averages m of relu over the depth, W those of none.

    K(p) = 1 + H (2 H - 1) times the integral of |s - t|^(2 H - 2) m(s) m(t), m^2 = K / (2 pi).
    """
    found = limit_of("relu", "4/5", hurst="4/5", **RES3)
    sizes = []
    for n in (200, 400):
        lags = np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)
        power = 1.6  # cells of the integral in closed form
        cells = ((lags + 1) ** power - 2 * lags**power + np.abs(lags - 1) ** power) / 2 / n**power
        kernel = np.ones(n + 1)
        for _ in range(40):
            mean = np.sqrt((kernel[1:] + kernel[:-1]) / (4 * pi))
            sums = np.cumsum(np.cumsum(cells * np.outer(mean, mean), axis=0), axis=1)
            kernel = np.concatenate([[1.0], 1 + np.diag(sums)])
        sizes.append(kernel[-1])
    assert near(found["R^2"], (4 * sizes[1] - sizes[0]) / 3, 2e-6)
    assert found["Dp^2"] == (0.0, 0.0)  # gradients are those of the identity there
    one, two = (
        tp.limit(tp.ResNet("L", "relu", alpha="4/5", hurst="4/5", **RES3), depths=[depth])
        for depth in (1000, 4000)
    )
    ends = [found["R^2"][0], *(table.at("R^2", L).value for table, L in ((two, 4000), (one, 1000)))]
    assert ends == sorted(ends)
