"""Other metrics beside the coefficient: gradients, correlations, Hessians, and rescalings."""

from __future__ import annotations

from dataclasses import replace
from math import log2, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tpcalc as tp
from tpcalc.errors import UnknownName, UsageError

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

s, p, f = tp.signal, tp.signal.practice, tp.signal.functions
HE = s.Design("relu", 2)
RELU = s.mlp(5, HE)
NORMED = s.mlp(2, s.Design("tanh", 2, 0.1, norm="batch", batch=24))


def rows_of(network: Any, operation: str, **options: Any) -> list[Any]:
    return [row for row in p.layer_limits(network, **options) if row.operation == operation]


def scale_free(outputs: Any, targets: Any) -> Any:
    """A loss of outputs over their length."""
    return (outputs * targets).sum(1) / (outputs**2).mean().sqrt()


def setting(network: Any, **options: Any) -> Any:
    return p.setting(network, width=16, inputs=24, **options)


# --------------------------------------------------------------------------- gradients by layer


def test_S4b_35_lengths_of_gradients() -> None:
    network = s.mlp(4, s.Design("tanh", 2, 0.1), s.Input(1, 0.3))
    states, rows = s.propagate(network), p.layer_limits(network)
    for row, state in zip(rows, states, strict=True):
        wanted = sqrt(states[-1].gradient / state.gradient)
        assert row.length.value == pytest.approx(wanted, rel=1e-12)
        assert row.component.value == pytest.approx(wanted, rel=1e-12)
        assert row.nlc.value == pytest.approx(s.nlc(network, row.layer).value, rel=1e-12)
    skips = p.layer_limits(s.resnet(2, s.Design("tanh")))
    assert [row.layer for row in skips if row.length is None] == [2, 3, 5, 6]


def test_S4b_35_components_by_width() -> None:
    text = "x = input()\na = dense(x, 2, width=4)\nb = relu(a)\nc = dense(b, 2, width=1/2)"
    rows = p.layer_limits(s.parse_graph(text), features=2)
    assert [row.component.value / row.length.value for row in rows] == pytest.approx(
        [sqrt(0.5 / size) for size in (2, 4, 4, 0.5)]
    )
    readout = s.parse_graph(text + "\nd = dense(c, 1, outputs=3)")
    assert p.layer_limits(readout)[0].component is None
    row = p.layer_limits(readout, width=300)[0]
    assert row.component.value / row.length.value == pytest.approx(sqrt(0.01))


@pytest.mark.slow
def test_S4b_35_measured_gradients() -> None:
    network = s.mlp(3, s.Design("tanh", 2), s.Input(1, 0))
    found = []
    for seed in range(8):
        drawn = s.network_of(network, 200, 200, seed)
        x = f.gaussian_inputs(200, 200, seed=seed)
        found.append([row.length.value for row in f.gradient_lengths(drawn, x, seed=seed)])
    means = np.mean(found, axis=0)
    errors = np.std(found, axis=0, ddof=1) / sqrt(len(found))
    for row, mean, error in zip(p.layer_limits(network), means, errors, strict=True):
        assert abs(mean - row.length.value) < 5 * error + 0.01 * mean


def test_S4b_39_case36_meanings_of_gradient_lengths() -> None:
    """NLC = GLEN_0 LBIAS where the inputs are independent and outputs have second moment 1."""
    sigmoid = s.activations.calibrated("sigmoid")
    he = s.mlp(19, HE)
    he = he.then(replace(he.lines[1].word, variance=1 / 2))  # outputs of second moment 1
    debiased = s.mlp(19, s.Design(s.activations.calibrated("tanh", debias=True)))
    for network in (s.mlp(19, s.Design(sigmoid)), he, debiased):
        row, *_, last = p.layer_limits(network)
        assert last.square.value == pytest.approx(1)
        assert row.nlc.value == pytest.approx(row.length.value * last.bias.value, rel=1e-8)
    row, *_, last = p.layer_limits(s.mlp(19, s.Design(sigmoid)))
    assert row.nlc.value == pytest.approx(1.021, abs=5e-4)
    assert last.bias.value == pytest.approx(5.743e7, rel=1e-4)
    assert row.length.value == pytest.approx(1.021 / 5.743e7, rel=1e-3)
    # He: gradients keep their lengths while both grow. Debiased: GLEN is the coefficient.
    row, *_, last = p.layer_limits(he)
    assert row.length.value == pytest.approx(1) and last.bias.value > 4
    debiased = s.Design(s.activations.calibrated("relu", debias=True))
    row, *_ = p.layer_limits(s.mlp(19, debiased))
    assert row.length.value == pytest.approx(row.nlc.value, rel=1e-9)


def test_S4b_38_case24_lengths_that_jump() -> None:
    """Wide weights, wider biases and batch norm: GLEN jumps, the coefficient falls evenly."""
    macro = s.Design("relu", 1e6, 1e12, "batch")
    network = s.mlp(9, macro).chain(macro.linear()[1:] + macro.normed())
    rows = p.layer_limits(network, features=3)
    acts = [row for row in rows if row.operation == "relu"]
    wanted = [1.21117**k for k in range(9, -1, -1)]
    found = [rows[0].nlc.value, *(row.nlc.value for row in acts)]
    assert found == pytest.approx(wanted, rel=1e-4)
    assert found[:3] == pytest.approx([5.6087, 4.6308, 3.8234], abs=6e-5)
    inputs, first, bias, norm, act, second, _, third = rows[:8]
    assert first.length.value / norm.length.value == pytest.approx(1e-3, rel=1e-9)
    assert (inputs.length.value, norm.length.value) == pytest.approx((5.609, 5.609), abs=5e-4)
    assert (first.length.value, bias.length.value) == pytest.approx((0.005609,) * 2, abs=5e-7)
    assert act.length.value == pytest.approx(7.932, abs=5e-4)
    assert second.length.value == pytest.approx(0.007932, abs=5e-7)
    assert third.length.value == pytest.approx(4.631, abs=5e-4)
    assert rows[-1].length.value == 1
    shares = [1 - 1 / row.bias.value**2 for row in (first, bias, norm, act, rows[6])]
    assert shares[:4] == pytest.approx([0, 0.999999, 0, 0.31831], abs=5e-6)
    assert 1 - shares[4] == pytest.approx(3.4e-7, rel=0.02)
    # The coefficient is that of activations: between them it stays.
    between = {round(row.nlc.value, 9) for row in rows[1:4]}
    assert len(between) == 1


def test_S4b_40_case26_biased_sawtooth() -> None:
    """1 + c saw(s / c) is c (1 / c + saw(z)), with z of the variance 1 / c^2."""
    wanted = {
        1: (1.73967, 2.00661, 0.75164),
        0.5: (3.46410, 3.60555, 0.92308),
        0.25: (6.92820, 7.0, 0.97959),
        0.1: (17.32051, 17.34935, 0.99668),
        0.05: (34.64102, 34.65545, 0.99917),
    }
    for c, (nlc, bias, chi) in wanted.items():

        def tau(z: Any, c: float = c) -> Any:
            return 1 / c + tp.sawtooth(z)

        inputs, *_, last = p.layer_limits(s.mlp(1, s.Design(tau, c**-2)))
        assert inputs.nlc.value == pytest.approx(nlc, abs=6e-6)
        assert last.bias.value == pytest.approx(bias, abs=6e-6)
        found = s.activations.CovarianceKernel(tau, c**-2).found
        assert found.end_slope.value == pytest.approx(chi, abs=6e-6)
        assert inputs.length.value * c * c == pytest.approx(1, rel=1e-9)  # weights twice, and c
    assert 0.05 * wanted[0.05][0] == pytest.approx(sqrt(3), rel=1e-6)  # like 1 / c


def test_S4b_41_case28_tanh_with_large_weights() -> None:
    wanted = {1: 1.1530, 2: 2.4327, 4: 9.1975, 8: 43.719, 16: 228.15}
    found = {scale: s.plain("tanh", 5, scale**2)[-1].nlc.value for scale in wanted}
    for scale, value in wanted.items():
        assert found[scale] == pytest.approx(value, rel=1e-4)
    assert log2(found[16] / found[8]) == pytest.approx(2.384, abs=5e-4)


def test_S4b_42_variances_by_fan_in_and_fan_out() -> None:
    """Glorot's variance 2 d_k / (d_k + d_l) multiplies q, and lengths by its root."""
    for size in (0.25, 1.0, 4.0):
        for variance, name in ((1, "fan-in"), (2 / (1 + size), "both")):
            text = f"x = input()\na = dense(x, {variance}, width={size})"
            inputs, last = p.layer_limits(s.parse_graph(text))
            assert last.square.value == pytest.approx(variance), name
            assert inputs.length.value == pytest.approx(sqrt(variance))
            assert inputs.component.value == pytest.approx(sqrt(variance * size))
    # A contraction can do no more than double q.
    n = s.activations.LengthKernel("tanh").nlc([sqrt(2)]).value[0]
    assert n == pytest.approx(1.15945, abs=5e-6)


def test_S4b_46_linear_recurrent_network() -> None:
    """d h_T / d x_t falls like (1 - a)^(T - t), with a coefficient and an LBIAS of 1."""
    a, steps, size = 0.3, 8, 20

    class Recurrent:
        def layers(self, x: Any) -> list[Any]:
            parts = list(x.reshape(len(x), steps, size).clone().unbind(1))
            h = torch.zeros_like(parts[0])
            for part in parts:
                h = (1 - a) * h + a * part
            return [*parts, h]

    x = f.gaussian_inputs(200, steps * size)
    lengths = [row.length.value for row in f.gradient_lengths(Recurrent(), x)[:-1]]
    wanted = [a * (1 - a) ** (steps - t) for t in range(1, steps + 1)]
    ends = [own / lengths[-1] for own in lengths]
    assert ends == pytest.approx([own / wanted[-1] for own in wanted], rel=1e-9)
    found = s.nlc(lambda part: Recurrent().layers(part)[-1], x)
    assert found.nlc.value == pytest.approx(1, abs=5 * found.nlc.stderr)
    assert found.bias == pytest.approx(1, abs=0.02)


# --------------------------------------------------------------------------- correlations


def test_S4b_44_case25_correlation_over_neurons() -> None:
    rows = p.layer_limits(s.mlp(3, HE))
    assert rows[-1].correlation.value == pytest.approx(0.60483, abs=5e-6)
    assert rows[-2].correlation.value == pytest.approx(0.42030, abs=5e-6)
    assert rows[0].correlation.value == 0


@pytest.mark.slow
def test_S4b_44_case25_measured() -> None:
    drawn = s.network_of(s.mlp(3, HE), 2000, 2000)
    found = f.layer_metrics(drawn, f.gaussian_inputs(100, 2000), draws=2)
    assert found[-1].correlation.value == pytest.approx(0.5986, abs=0.02)
    assert found[-2].correlation.value == pytest.approx(0.42030, abs=0.03)


def test_S4b_44_correlations_of_two_inputs_by_hand() -> None:
    x = torch.tensor(np.random.default_rng(0).standard_normal((12, 30)))
    (row,) = f.layer_metrics(f.tapped(torch.nn.Sequential(torch.nn.Identity())), x)[:1]
    r = np.corrcoef(x.numpy())
    squares = r[~np.eye(12, dtype=bool)] ** 2
    assert row.correlation.value == pytest.approx(sqrt(squares.mean()), rel=1e-12)


def test_S4b_44_36_a_shift_of_inputs_confounds() -> None:
    """T-g: in front of batch norm a shift of all inputs changes LCORR of inputs, and no more."""
    own = setting(NORMED)
    for name in ("NLC", "LCORR", "GLEN"):
        row = p.invariance(name, own, scale=3.0)[-1]
        assert row.rescaling == "g" and row.same and row.learns and row.invariant
    row = p.invariance("LCORR of inputs", own, scale=3.0)[-1]
    assert row.same and not row.invariant and row.factor > 2


# --------------------------------------------------------------------------- Hessians


def test_S4b_45_quadratic_models_are_blind_to_kinks() -> None:
    network = s.network_of(s.mlp(10, HE), 30, 30)
    x = f.gaussian_inputs(40, 30)
    blind = s.linear_range(network, x, samples=5, by="hessian")
    assert blind.values == (1.0,) * 5  # H = 0 almost everywhere
    assert s.nlc(s.mlp(10, HE)).value == pytest.approx(2.79003, abs=5e-6)
    assert s.linear_range(network, x, samples=5).median.value > 1
    module = torch.nn.Sequential(torch.nn.Linear(30, 20), torch.nn.ReLU(), torch.nn.Linear(20, 9))
    assert s.linear_range(module, x.float(), samples=4, by="hessian").values == (1.0,) * 4


def test_S4b_45_smooth_functions_are_seen() -> None:
    """u f(x + c v) - u f(x) is c u J v + c^2 u v H v / 2: C is known where f is quadratic."""
    law = s.Gaussian(dimension=3)
    by = [
        s.linear_range(lambda x: x + 5 * x**2, law, seed=1, batch=3, draws=40, by=way)
        for way in ("values", "hessian")
    ]
    assert np.allclose(by[0].values, by[1].values, rtol=1e-4)
    network = s.network_of(s.mlp(2, s.Design("tanh", 16)), 20, 20)
    x = f.gaussian_inputs(20, 20)
    found = s.linear_range(network, x, samples=8, by="hessian")
    assert found.median.value > 1.5
    with pytest.raises(UnknownName):
        s.linear_range(network, x, by="gradient")


# --------------------------------------------------------------------------- rescalings


@pytest.mark.parametrize("network", [RELU, NORMED, s.resnet(2, s.Design("tanh"))])
def test_S4b_36_the_coefficient_is_invariant(network: Any) -> None:
    own = setting(network)
    for name in ("NLC", "LBIAS", "LCORR"):
        rows = p.invariance(name, own, tolerance=1e-9)
        assert all(row.invariant for row in rows if row.same)
        kept = {row.rescaling for row in rows if row.same}
        assert kept >= {"b", "d", "e", "f"}
        assert all(row.learns for row in rows if row.rescaling in "bdef")


def test_S4b_36_gradient_lengths_are_not() -> None:
    rows = {row.rescaling: row for row in p.invariance("GLEN", setting(RELU), scale=10.0)}
    assert rows["b"].factor == pytest.approx(10)
    assert (
        rows["c"].factor == pytest.approx(rows["c"].expected) == pytest.approx(10.0**6)
    )  # 6 dense
    for name in "def":
        assert rows[name].factor == pytest.approx(rows[name].expected) and not rows[name].invariant
    assert not rows["a"].same and rows["a"].expected is None and rows["a"].invariant is None
    rows = {row.rescaling: row for row in p.invariance("LSCALE", setting(RELU), scale=10.0)}
    assert rows["c"].factor == pytest.approx(10.0**6) and rows["d"].factor == pytest.approx(0.1)


def test_S4b_36_case22_loss_and_inputs() -> None:
    own = setting(RELU)
    b = next(row for row in p.invariance("NLC", own, scale=10.0) if row.rescaling == "b")
    assert b.length == pytest.approx(10) and abs(b.factor - 1) < 1e-12
    for network, loss in ((NORMED, None), (RELU, scale_free)):
        a = p.invariance("GLEN", setting(network, loss=loss), scale=10.0)[0]
        assert a.rescaling == "a" and a.same
        assert a.factor == pytest.approx(0.1, rel=1e-9) and a.expected == 0.1


def test_S4b_36_every_layer() -> None:
    """T-d multiplies GLEN of all layers by c, T-f that of layer l by c_l."""
    own = setting(RELU)

    def lengths(given: Any) -> Any:
        rows = f.gradient_lengths(given.network, given.x, given.targets, given.loss, batch=24)
        return np.array([row.length.value for row in rows])

    before = lengths(own)
    assert lengths(p.rescaled(own, "d", 3.0)) / before == pytest.approx(3.0)
    other = p.rescaled(own, "f", 3.0, seed=5)
    assert lengths(other) / before == pytest.approx(other.network.layered)
    assert len(set(other.network.layered)) == len(before)


def test_S4b_36_modules_of_torch() -> None:
    nn = torch.nn
    module = nn.Sequential(nn.Linear(9, 12), nn.Tanh(), nn.Linear(12, 4)).double()
    x = f.gaussian_inputs(30, 9)
    rows = p.invariance("NLC", p.setting(module, x))
    assert {row.rescaling for row in rows if row.invariant and row.learns} == {"b", "d", "e", "f"}
    assert torch.equal(module(x), p.setting(module, x).network.layers(x)[-1])
    with pytest.raises(UsageError, match="inputs"):
        p.setting(module)


def test_S4b_36_any_metric() -> None:
    def largest(given: Any) -> float:
        return float(given.network.layers(given.x)[-1].abs().max())

    found = {row.rescaling: row.invariant for row in p.invariance(largest, setting(RELU))}
    assert found["b"] and not found["d"]
    with pytest.raises(UnknownName):
        p.invariance("GRAD", RELU)
    with pytest.raises(UnknownName):
        p.rescaled(setting(RELU), "z")
    with pytest.raises(UsageError):
        p.rescaled(setting(RELU), "d", 0.0)


@settings(max_examples=4, deadline=None)
@given(st.lists(st.integers(-2, 2), min_size=3, max_size=3))
def test_S4b_36_verdicts_do_not_feel_the_gauge(moves: list[int]) -> None:
    """T-f in powers of n: a_l + t_l, b_l - t_l, c_l - 2 t_l is the same parametrization."""
    a, b, c = [-0.5, 0.0, 0.5], [0.5, 0.5, 0.5], [0.0, 0.0, 0.0]  # maximal update
    whole = [t / 2 for t in moves]
    parts = (
        [x + t for x, t in zip(a, whole, strict=True)],
        [x - t for x, t in zip(b, whole, strict=True)],
        [x - 2 * t for x, t in zip(c, whole, strict=True)],
    )
    text = "abc:" + ";".join(",".join(f"{x:g}" for x in part) for part in parts)
    network = tp.MLP(2, "tanh")
    assert tp.check(network, text).verdict == tp.check(network, "mup").verdict


def test_S4b_37_case23_replicated_inputs() -> None:
    """c copies of all inputs: GVCS falls by sqrt(c), GLEN and the coefficient stay."""
    network, found = s.mlp(3, HE), {}
    for copies in (1, 16):
        rows = []
        for seed in range(3):
            drawn = s.network_of(network, 200, 20 * copies, seed)
            x = f.gaussian_inputs(100, 20, seed=seed).repeat(1, copies)
            first = f.gradient_lengths(drawn, x, seed=seed)[0]
            nlc = f.layer_metrics(drawn, x, draws=2, seed=seed)[-1].nlc
            rows.append([first.component.value, first.length.value, nlc.value])
        found[copies] = np.mean(rows, axis=0)
    ratio = found[16] / found[1]
    assert ratio[0] == pytest.approx(0.25, rel=0.05)
    assert ratio[1:] == pytest.approx([1, 1], rel=0.05)
    limits = [p.layer_limits(network, features=features)[0] for features in (1, 16)]
    assert limits[1].component.value / limits[0].component.value == pytest.approx(0.25)
    assert limits[1].length.value == limits[0].length.value


def test_records_show_themselves() -> None:
    own = setting(RELU)
    for answer in (own, p.invariance("NLC", own), p.layer_limits(RELU)):
        assert str(answer) and answer._repr_html_()
    assert replace(own, size=2.0).size == 2
