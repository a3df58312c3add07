"""The nonlinearity coefficient at work: training, tables of the thesis, the study on digits."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tpcalc as tp
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import EvaluationError, StudyError, UnknownName, UsageError

p = tp.signal.practice
DATA = tp.Samples(((1.0, 2.0), (0.5, -1.0), (3.0, 1.0)), ((1.0,), (0.0,), (2.0,)))


def test_S4b_12_case34_softmax_between_its_limits() -> None:
    found = p.loss_scales([[1, -0.5, 0.3]], [1], scales=(1e-6, 1, 1e8))
    assert found.large.value == 1.5
    assert found.small.value == pytest.approx(0.8 / 3 + 0.5, rel=1e-12)
    low, middle, high = (row.share for row in found.rows)
    assert abs(low) < 1e-6 and 0.2 < middle < 0.8 and abs(high - 1) < 1e-6
    f = np.array([1, -0.5, 0.3])
    direct = math.log(np.exp(f).sum()) + 0.5 - math.log(3)
    assert found.rows[1].value == pytest.approx(direct, rel=1e-12)


def test_S4b_12_other_losses_and_errors() -> None:
    assert p.loss_scales([[1.0]], [[0.0]], loss="mse").large.value == math.inf
    hinge = p.loss_scales([[1.0], [-3.0]], [[1.0], [1.0]], loss="logistic")
    assert hinge.large.value == pytest.approx(1.5) and hinge.small.value == pytest.approx(0.5)
    with pytest.raises(UsageError, match="targets have the shape"):
        p.loss_scales([[1.0, 2.0]], [[1.0, 0.0, 0.0]])
    with pytest.raises(UsageError, match="a class"):
        p.loss_scales([[1.0, 2.0]], [2])


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=5), st.integers(0, 1))
@settings(max_examples=25, deadline=None)
def test_S4b_12_a_convex_loss_rises_between_its_limits(f: list[float], label: int) -> None:
    found = p.loss_scales([f], [label])
    values = [found.small.value, *(row.value for row in found.rows), found.large.value]
    assert all(b >= a - 1e-9 for a, b in pairwise(values))


def relu_chain(factor: float) -> tuple[float, list[float], list[float], float]:
    """LSCALE and lengths of gradients of five layers with biases at 0, by torch."""
    torch = load_torch()
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(50, 40, generator=generator, dtype=torch.float64)
    weights, biases, h = [], [], x
    x.requires_grad_()
    for _ in range(5):
        w = torch.randn(h.shape[1], 60, generator=generator, dtype=torch.float64)
        weights.append((w * (2 * factor / h.shape[1]) ** 0.5).requires_grad_())
        biases.append(torch.zeros(60, dtype=torch.float64, requires_grad=True))
        h = h @ weights[-1] + biases[-1]
        h = torch.relu(h) if len(weights) < 5 else h
    scale = float(h.detach().pow(2).mean().sqrt())
    loss = (h / scale).logsumexp(1).mean()
    grads = torch.autograd.grad(loss, [*weights, *biases, x])
    sizes = [float(g.norm()) for g in grads]
    return scale, sizes[:5], sizes[5:10], sizes[10]


def test_S4b_13_case21_powers_of_the_scale_of_weights() -> None:
    found = p.gradient_scales(tp.MLP(4, "relu"))
    assert found.exact and found.scale.value == 2.5 and found.scale.stderr == 0
    assert found.inputs.value == found.nlc.value == 0
    assert [row.weights.value for row in found.rows] == [-0.5] * 5
    assert [row.biases.value for row in found.rows] == [-k / 2 for k in range(1, 6)]
    assert found.spread.value == 2
    assert p.gradient_scales(tp.MLP(4, "relu"), "plain").inputs.value == 2.5
    one, four = relu_chain(1.0), relu_chain(4.0)

    def slope(a: float, b: float) -> float:
        return math.log(b / a) / math.log(4)

    assert slope(one[0], four[0]) == pytest.approx(found.scale.value, abs=1e-9)
    for k, row in enumerate(found.rows):
        assert slope(one[1][k], four[1][k]) == pytest.approx(row.weights.value, abs=1e-9)
        assert slope(one[2][k], four[2][k]) == pytest.approx(row.biases.value, abs=1e-9)
    assert slope(one[3], four[3]) == pytest.approx(found.inputs.value, abs=1e-9)


def test_S4b_13_where_activations_have_no_degree_slopes_have_errors() -> None:
    found = p.gradient_scales(tp.MLP(3, "tanh"))
    assert not found.exact and 0 < found.nlc.stderr < 1e-3

    def log_nlc(v: float) -> float:
        design = tp.signal.Design("tanh", v)
        return math.log(tp.signal.nlc(tp.signal.mlp(3, design)).value)

    slope = (log_nlc(1.001) - log_nlc(0.999)) / (math.log(1.001) - math.log(0.999))
    assert abs(found.nlc.value - slope) < found.nlc.stderr + 1e-6
    with pytest.raises(UnknownName, match="loss"):
        p.gradient_scales(tp.MLP(1), "none")  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_S4b_13_norms_keep_one_learning_rate(norm: str) -> None:
    found = p.gradient_scales(tp.signal.MacroLayers(5, "tanh", norm=norm, skip=1.0).network())  # type: ignore[arg-type]
    assert found.exact and found.spread.value == 0 and found.nlc.value == 0


@given(st.sampled_from(["relu", "abs", "square"]), st.integers(1, 4))
@settings(max_examples=12, deadline=None)
def test_S4b_13_degrees_and_slopes_agree(name: str, depth: int) -> None:
    from tpcalc.practice.gradient_scales import _slopes

    net = tp.signal.layers(tp.MLP(depth, name))
    exact = p.gradient_scales(net)
    q, _, back = _slopes(net, True)[-1]
    assert exact.exact and abs(q.value / 2 - exact.scale.value) < 1e-6
    assert abs(back.value + 2 * exact.scale.value) < 1e-6


def test_S4b_14_output_bias_in_theory_and_measured() -> None:
    found = p.output_bias(tp.MLP(10, "relu"))
    state = tp.signal.propagate(tp.MLP(10, "relu"))[-1]
    assert found.bias.value == pytest.approx(2.79003, rel=1e-4) and not found.notes
    assert found.scale.value == pytest.approx(math.sqrt(state.square.value))
    assert found.debiased.value * found.bias.value == pytest.approx(found.scale.value)
    rows = np.random.default_rng(0).normal(3, 1, (4000, 5))
    seen = p.output_bias(rows)
    assert np.allclose(seen.average, rows.mean(axis=0))
    assert seen.scale.z(math.sqrt(10)) < 5 and seen.debiased.z(1) < 5


def test_S4b_14_type_1_networks_are_warned_or_refused() -> None:
    normal = tp.signal.Design(tp.signal.activations.normalized("softplus"), 1)
    warned = p.output_bias(tp.signal.mlp(19, normal))
    assert warned.bias.value == pytest.approx(5.558e4, rel=1e-3)
    assert "debiased descent" in warned.notes[-1]
    with pytest.raises(EvaluationError, match=r"LBIAS = 1.58e\+12"):
        p.output_bias(tp.signal.mlp(49, normal))
    assert p.output_bias(tp.signal.mlp(49, normal), noise=2.0**-52).lost < 1e-3
    with pytest.raises(UsageError, match="are the same"):
        p.output_bias([[1.0, 2.0], [1.0, 2.0]])


class Seen:
    """All numbers of a run of width 1, where vectors are numbers."""

    def __init__(self, program: tp.Program) -> None:
        rows = tp.simulate(program, [1], 1).rows
        self.rows = {row.name: row.values[0] for row in rows if row.statistic in ("mean", "value")}

    def __call__(self, what: str, step: int, layer: int | None = None) -> np.ndarray:
        place = f"{layer},{step}" if layer else f"{step}"
        return np.array([self.rows[f"{what}[{place},{k}]"] for k in range(3)])


def test_S4b_15_case33_debiased_descent_is_definition_34() -> None:
    net = tp.MLP(2, "tanh", bias="all")
    run = tp.Training(net, "ntk", DATA, steps=2, batch=3, lr="1/10", watch=("h", "x"))
    seen = Seen(p.debiased_run(run))
    x, y = np.array(DATA.inputs), np.array([row[0] for row in DATA.targets])

    def fit(inputs: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, float]:
        *w, b = np.linalg.lstsq(np.c_[inputs, np.ones(3)], outputs, rcond=None)[0]
        return np.array(w), b

    def means(parts: list[np.ndarray]) -> list[np.ndarray]:
        return [part.reshape(3, -1).mean(axis=0) for part in parts]

    units = [fit(x, seen("h", 0, 1)), fit(seen("x", 0, 1), seen("h", 0, 2))]
    units.append(fit(seen("x", 0, 2), seen("f", 0)))

    def forward() -> list[np.ndarray]:
        below = [x]
        for w, b in units:
            h = below[-1].reshape(3, -1) @ w + b
            below += [h, np.tanh(h)]
        return below[:-1]

    start = means([forward()[k] for k in (0, 2, 4)])
    for step in (1, 2):
        _, h1, _, h2, _, f = values = forward()
        g = [np.zeros(3), np.zeros(3), (f - y) / 3]
        g[1] = g[2] * units[2][0][0] * (1 - np.tanh(h2) ** 2)
        g[0] = g[1] * units[1][0][0] * (1 - np.tanh(h1) ** 2)
        for k, (w, b) in enumerate(units):
            found = ((values[2 * k].reshape(3, -1) - start[k]) * g[k][:, None]).sum(axis=0)
            units[k] = w - 0.1 * found, b + 0.1 * start[k] @ found
        assert np.allclose(forward()[-1], seen("f", step), rtol=0, atol=1e-12)


@pytest.mark.parametrize("parameterization", ["ntk", "mup"])
def test_S4b_15_case33_change_of_a_unit_and_its_mean(parameterization: str) -> None:
    net = tp.MLP(2, "tanh", bias="all")
    still = {"1": {"lr": 0}, "3": {"lr": 0}}
    data = tp.Samples(tuple((a + 5, b + 5) for a, b in DATA.inputs), DATA.targets)
    run = tp.Training(
        net, parameterization, data, batch=3, lr="1/10", groups=still, watch=("h", "x", "dh")
    )
    seen, plain = Seen(p.debiased_run(run)), Seen(run.program)
    for found, debiased in ((seen, True), (plain, False)):
        change = found("h", 1, 2) - found("h", 0, 2)
        f, chi = found("x", 0, 1), found("f", 0) - np.array([row[0] for row in DATA.targets])
        mean = f.mean() if debiased else 0.0
        gradient = ((f - mean) * chi * found("dh", 0, 2)).mean()
        if debiased:
            assert np.allclose(change, -0.1 * (f - mean) * gradient, rtol=0, atol=1e-12)
            assert abs(change.mean()) < 1e-12
        else:
            assert abs(change.mean()) > 1e-4


def test_S4b_14_15_limits_are_those_of_networks() -> None:
    data = tp.Samples(((1.0, 2.0), (0.5, -1.0)), ((1.0,), (0.0,)))
    run = tp.Training(tp.MLP(2, "tanh", bias="all"), "mup", data, batch=2, lr="1/10", watch=())
    program = p.debiased_run(run, ("units", "outputs"))
    found = tp.limit(program, seed=0)
    assert found["f[0,0]"].value == 0 and abs(found["f[1,0]"].value) > 0.01
    rows = {row.name: np.array(row.values) for row in tp.simulate(program, [1024], 32).rows}
    for name in ("f[1,0]", "f[1,1]"):
        error = rows[name].std(ddof=1) / math.sqrt(32)
        assert abs(rows[name].mean() - found[name].value) < 5 * error + 5e-3
    # scaling outputs by a number is a smaller loss
    half = tp.limit(p.debiased_run(run, (), 2))["f[0,0]"]
    assert half.std == pytest.approx(tp.limit(run.program)["f[0,0]"].std / 2)


def test_S4b_15_what_is_no_unit_is_refused() -> None:
    data = tp.Samples(((1.0,), (2.0,)), ((0.0,), (1.0,)))
    with pytest.raises(StudyError, match=r"3 \(readout\) has no bias"):
        p.debiased_run(tp.Training(tp.MLP(2, bias="hidden"), "mup", data, batch=2))
    with pytest.raises(UnknownName, match="part of a debiased run"):
        p.debiased_run(tp.Training(tp.MLP(1, bias="all"), "mup", data), ("all",))
    with pytest.raises(UsageError):
        p.debiased_run(tp.Training(tp.MLP(1, bias="all"), "mup"))


def test_S4b_16_first_layer_only() -> None:
    net = tp.MLP(2, "tanh", bias="all")
    run = p.first_layer_only(tp.Training(net, "ntk", DATA, batch=3, watch=("dW_x", "dB")))
    rows = {row.name: row.values[0] for row in tp.simulate(run.program, [1], 1).rows}
    moved = {name.split(",")[0] for name, value in rows.items() if name[0] == "d" and value}
    assert moved == {"dW_x[1"}
    with pytest.raises(UsageError, match="lr = "):
        p.first_layer_only(tp.Training(net, "ntk", groups={"2": {"lr": 2}}))


def test_S4b_17_case35_outshift() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 20000, 3))
    found = p.output_shift(one, other)
    assert found.z(math.sqrt(2)) < 5 and found.value == pytest.approx(1.4142, abs=0.02)
    assert p.output_shift(-one, one).value == 2
    assert p.output_shift(one, one).value == 0
    with pytest.raises(UsageError, match="outputs"):
        p.output_shift(one[:5], one)


@given(st.floats(-3, 3))
@settings(max_examples=20, deadline=None)
def test_S4b_17_normalised_outputs_shift_by_at_most_two(angle: float) -> None:
    before = np.array([[1.0, 0.0], [0.0, 1.0]])
    turned = before @ np.array(
        [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
    )
    assert p.output_shift(turned, before).value == pytest.approx(
        2 * abs(math.sin(angle / 2)), abs=1e-7
    )


def test_S4b_17_shifts_of_networks_have_the_powers_of_the_calculus() -> None:
    rows = np.random.default_rng(1).normal(size=(4, 3))
    data = tp.Samples(tuple(map(tuple, rows.tolist())), tuple((float(x),) for x in rows[:, 0] > 0))
    run = tp.Training(tp.MLP(2, "tanh"), "ntk", data, batch=4, lr="1/10")
    powers = {row.name: row for row in p.shift_powers(run)}
    assert {name: row.word for name, row in powers.items()} == {
        "f": "finite", "W1": "vanishes", "W2": "vanishes", "W3": "vanishes"
    }  # fmt: skip
    assert [str(powers[name].power) for name in ("W1", "W2", "W3")] == ["-1/2", "-1", "-1/2"]
    small, large = (
        np.mean([p.shifts(run, width, seed).parameters for seed in range(8)])
        for width in (64, 1024)
    )
    # Of all parameters the vectors change most, and have a fair share of the length.
    assert math.log(large / small) / math.log(16) == pytest.approx(-0.5, abs=0.1)
    found = p.shifts(run.replace(steps=3), 64)
    assert found.growth == pytest.approx(1, abs=found.parameters) and found.outputs.value > 0
    assert p.shift_powers(tp.Training(tp.MLP(2, "tanh"), "mup"))[0].word == "diverges"
    with pytest.raises(UsageError, match="with data and steps"):
        p.shifts(tp.Training(tp.MLP(1), "mup"), 8)


def test_S4b_17_rates_to_try() -> None:
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(5, 4)), rng.normal(size=(3, 5))]
    updates = [[rng.normal(size=w.shape) for w in weights] for _ in range(7)]
    found = p.rate_grid(weights, updates)
    rms = [
        np.sqrt(np.mean([np.sum(own[k] ** 2) for own in updates])) / np.linalg.norm(w)
        for k, w in enumerate(weights)
    ]
    assert found[0] == pytest.approx(1e-8 / sum(rms)) and len(found) == 40
    assert found[1] / found[0] == pytest.approx(3)
    torch = load_torch()
    own = [torch.tensor(w) for w in weights]
    assert p.rate_grid(own, [[torch.tensor(u) for u in each] for each in updates]) == (
        pytest.approx(found)
    )
    with pytest.raises(UsageError, match="updates are one for each"):
        p.rate_grid(weights, [])
    with pytest.raises(UsageError, match="relative length 0"):
        p.rate_grid(weights, [[0 * w for w in weights]])
    before, now = ([torch.tensor([3.0, 4.0])], [torch.tensor([3.0, 0.0])])
    assert p.parameter_shift(now, before) == 0.8 and p.parameter_growth(now, before) == 0.6


@pytest.mark.slow
def test_S4b_47_case37_table_A1_row_by_row() -> None:
    found = p.table("A.1")
    assert found.agree == 32 and len(found.rows) == 43
    for row in found.rows:
        near = abs(math.log(row.nlc.value / row.printed)) <= math.log(1.2)
        bias = row.printed_bias
        near &= math.isnan(bias) or abs(math.log(row.bias.value / bias)) <= math.log(1.3)
        assert near == (row.word == "agrees")
        known = ("unstable", "readout", "print", "edge", "drawn")  # what does not agree says why
        assert near or row.word.rpartition(" ")[2] in known
    text = str(found)
    assert "43" not in found.notes[0] and "Study A" in text
    by_name = {row.network: row for row in found.rows}
    for name, value, bias in (
        ("CIFAR10: 25 x selu, d = 0.8, debiased, biases", 1.705, 1.674),
        ("CIFAR10: 39 x relu, d = 0.8, h = -0.2, w = 0.9, debiased, biases, layer norm",
         3.809e3, 1.083),
        ("MNIST: 29 x square, h = -0.2, w = 0.9, layer norm, skip 0.1 from the addition",
         47.17, 1.476),
        ("MNIST: 3 x odd_square, h = 0.2, w = 0.9, biases, layer norm", 1.307, 1.1),
        ("waveform-noise: 45 x sigmoid, debiased, biases", 1.498, 2.296),
    ):  # fmt: skip
        assert by_name[name].nlc.value == pytest.approx(value, rel=5e-4)
        assert by_name[name].bias.value == pytest.approx(bias, rel=5e-4)
    design = tp.signal.MacroLayers
    for network, value, name in (  # of infinite batches; of 250 inputs each norm adds
        (design(27, "gaussian:1/2", shift=0.2, norm="batch"), 9.627e4,
         "CIFAR10: 27 x gaussian:1/2, h = 0.2, batch norm"),
        (design(47, "relu", 1.2, scale=1.1, norm="batch", skip=1), 3.781,
         "waveform-noise: 47 x relu, d = 1.2, w = 1.1, batch norm, skip 1 from the addition"),
    ):  # fmt: skip
        nlc = tp.signal.nlc(network.network()).value
        assert nlc == pytest.approx(value, rel=5e-4)
        assert nlc < by_name[name].nlc.value == tp.signal.nlc(network.network(250)).value
    sigmoid = by_name["MNIST: 49 x sigmoid, d = 0.8, batch norm, skip 0.66 from the addition"]
    assert sigmoid.word == "agrees" and sigmoid.nlc.value == pytest.approx(1.318, rel=1e-3)


@pytest.mark.slow
def test_S4b_47_drawn_networks_decide_where_print_and_theory_part() -> None:
    """35 layers of SELU with skips: printed 2.71, in theory 1.212, drawn 160 wide 1.27."""
    kinds = {"shift": -0.2, "debias": True, "scale": 0.9, "bias": True, "norm": "layer", "skip": 1}
    net = tp.signal.MacroLayers(35, "selu", **kinds).network()
    found = tp.signal.nonlinearity(net, sampling=tp.signal.Sampling((160,), 3, 100))
    mean = found.at(160, found.layers[-1].index).value("NLC").mean
    assert 1.2 < mean.value < 1.35 and mean.value + 5 * mean.stderr < 2


def test_S4b_48_table_A2_row_by_row() -> None:
    found = p.table("A.2")
    theory = {row.network.rpartition(",")[0]: row.nlc.value for row in found.rows}
    for name, value in {
        "SELU, l = 0": 1.928, "SELU, l = 0.1111": 1.711, "SELU, l = 0.25": 1.533,
        "SELU, l = 0.4286": 1.390, "SELU, l = 0.6667": 1.276, "tanh-interp., l = 0": 4.734,
        "tanh-interp., l = 1": 1.287, "even tanh, l = 0": 9.94e6, "even tanh, l = 0.25": 1.77e5,
        "Gaussian, l = 0": 5763, "abs. val., l = 1": 70.5, "abs. val., l = 1.25": 18.2,
        "Swish, l = 1": 6.217, "Swish, l = 1e+11": 38.1, "tanh-dilate, l = 1.75": 45.5,
    }.items():  # fmt: skip
        assert theory[name] == pytest.approx(value, rel=2e-3)
    normed = [row for row in found.rows if "square" not in row.network]
    assert found.agree >= 74 and sum(row.word != "agrees" for row in normed) <= 13
    with pytest.raises(UnknownName, match="table"):
        p.table("A.3")


def test_S4b_49_S4_39_widths_of_a_million_weights() -> None:
    design = tp.signal.MacroLayers
    printed = {3: 671, 5: 457, 9: 324, 13: 267, 25: 191, 37: 158, 49: 137}  # of CIFAR10
    assert {m: p.study_width(design(m, "relu"), 810, 10) for m in printed} == printed
    printed = {3: 843, 13: 286, 29: 186, 49: 142}  # of MNIST
    assert {m: p.study_width(design(m, "relu"), 334, 10) for m in printed} == printed
    with pytest.raises(UsageError, match="count"):
        p.study_width(design(1, "relu"), 8, 2)


def test_S4b_49_S4_39_orthogonal_starts_have_the_coefficient_of_table_A1() -> None:
    design = tp.signal.MacroLayers(11, "tanh", 1.2, 0, True)
    lines = p.rewritten(design.network(), p.orthogonal)
    assert tp.signal.nlc(lines).value == pytest.approx(3.111, rel=1e-3)
    short = p.rewritten(tp.signal.MacroLayers(3, "tanh", 1.2, 0, True).network(), p.orthogonal)
    torch = load_torch()
    x = torch.randn(200, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    net = tp.signal.network_of(short, 100, 60, 1)
    seen = tp.signal.nlc(net, x, seed=0).nlc.value
    assert seen == pytest.approx(tp.signal.nlc(short).value, rel=0.06)


@pytest.mark.slow
def test_S4b_49_a_study_on_digits_goes_on_where_it_stopped(tmp_path: Path) -> None:
    from tpcalc.data import images
    from tpcalc.experiments.plans import load_study
    from tpcalc.experiments.study import study
    from tpcalc.study.sections import Flag

    file = Path(__file__).parents[2] / "examples" / "nlc" / "digits.toml"
    flags = [Flag("--trials", "training.networks", 3), Flag("--steps", "training.epochs", 2)]
    pictures = images("digits")
    asked = load_study(file, flags)
    seen: list[float] = []

    def stop(fraction: float, _: str) -> None:
        seen.append(fraction)
        if fraction > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study(asked, pictures, seed=1, work=tmp_path, progress=stop)
    assert seen == sorted(seen) and len(seen) > 2
    again = study(asked, pictures, seed=1, work=tmp_path)
    whole = study(asked, pictures, seed=1)
    assert again.points == whole.points and len(whole.points) == 3
    best = min(whole.points, key=lambda one: one.test)
    assert best.nlc.value < 10 and best.test < 0.4 and 0 < best.shift < 2
    assert "NLC" in str(whole) and whole.plot() is not None
    page = whole.save(tmp_path / "study.html").read_text()
    assert "<svg" in page
    with pytest.raises(UsageError, match="CPU"):
        study(asked, pictures, device="cuda")
    with pytest.raises(StudyError, match="width"):
        load_study(file, [Flag("--width", "training.width", 8)])
