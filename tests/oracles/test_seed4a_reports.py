"""What reports of networks say beyond the coefficient: labels, noise, conditions, checklists."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

import tpcalc as tp

s = tp.signal
Design = s.Design


def test_S4_37_labels_are_products_along_paths() -> None:
    """GUA: square and odd square without layer norm. GEA: ReLU without it, biases or not."""
    unstable = [Design("square", 1 / 3), Design("odd_square", 1 / 3, norm="batch")]
    edge = [Design("relu", 2), Design("relu", 1.9, 0.05), Design("relu", 2, norm="batch")]
    neither = [Design(name, norm="layer") for name in ("square", "odd_square", "relu", "tanh")]
    neither += [Design(name, 1.5) for name in ("selu", "tanh", "sigmoid", "even_tanh", "gaussian")]
    for designs, word in ((unstable, "GUA"), (edge, "GEA"), (neither, "")):
        for design in designs:
            assert s.stability(s.mlp(5, design)).architecture == word, design
            assert s.nonlinearity(s.mlp(5, design)).architecture == word
    # Batch norm cuts nothing, and branches of a sum add up.
    squares = s.stability(s.mlp(5, Design("square", 1 / 3, norm="batch")))
    assert squares.along == pytest.approx(2**5, rel=1e-12) and squares.label == "unstable"
    assert s.stability(s.resnet(4, Design("relu", 2, norm="batch"))).architecture == "GEA"
    assert s.stability(s.resnet(4, Design("square", 1 / 3, norm="layer"))).architecture == ""
    assert s.stability(s.resnet(4, Design("tanh", 2, norm="batch"))).label == "stable"


def test_S4_37_products_of_different_activations() -> None:
    """One square among layers that make deviations smaller: the largest product along the path."""

    def net(*names: str) -> object:
        lines = ["h0 = input(1, 0)"]
        for index, name in enumerate(names):
            lines += [f"a{index} = dense(h{index})", f"h{index + 1} = {name}(a{index})"]
        return s.parse_graph("\n".join(lines))

    numbers = {name: s.stability(net(name)).numbers[2].value for name in ("tanh", "swish")}
    assert numbers == pytest.approx({"tanh": 0.461071, "swish": 1.172594}, abs=2e-6)
    found = s.stability(net("swish", "tanh", "tanh"))
    shares = [each.value for each in found.numbers if each is not None]
    assert found.label == "unstable" and found.along == pytest.approx(shares[0], rel=1e-12)
    assert s.stability(net("tanh", "swish", "tanh")).along == pytest.approx(
        s.stability(net("tanh", "swish")).numbers[4].value, rel=1e-12
    )
    # Biases make a deviation smaller: of swish at q = 1 less than by how much it grows.
    bare, damped = (s.stability(s.mlp(6, Design("swish", *w))) for w in ((2, 0), (2, 0.01)))
    assert damped.along < bare.along and damped.factors[-1].value < bare.factors[-1].value


def test_S4_37_numbers_of_activations_are_a_column() -> None:
    rows = s.nonlinearity(s.mlp(2, Design("selu"))).layers
    assert [row.growth is None for row in rows] == [True, True, False, True, False, True]
    assert rows[2].growth.value == pytest.approx(0.782648, abs=1e-6)
    assert "GEA" in str(s.nonlinearity(s.mlp(2, Design("relu", 2))))


def test_S4_42_rounding_explodes_at_the_thirtieth_square() -> None:
    """(1 + 1e-7)^(2^M) passes 1e38 at M = 30, and 1e-7 2^M passes 1 at M = 24."""
    net = s.mlp(40, Design(s.activations.normalized("square")))
    narrow, single, double = s.nonlinearity(net).reaches
    assert (single.layer, single.overflow) == (2 * 24, 2 * 30)
    largest = log(3.4028235e38)
    assert 2**29 * np.log1p(1e-7) < largest < 2**30 * np.log1p(1e-7)
    depth = next(m for m in range(40) if 2**m * np.log1p(1000**-0.5) > largest)
    assert (narrow.cause, narrow.layer) == ("networks of width 1000", 2 * 5)
    assert narrow.overflow == pytest.approx(2 * depth, abs=2)
    assert (double.layer, double.overflow) == (None, None)  # 1e-16 2^40 is small
    said = str(s.nonlinearity(net))
    assert "overflow at layer 60" in said and "Gaussian unstable architecture" in said


def test_S4_42_layer_norm_takes_the_alarm_away() -> None:
    for norm, word in (("layer", "stable"), ("batch", "unstable")):
        found = s.nonlinearity(s.mlp(40, Design("square", norm=norm)))
        assert found.stability == word
        # One input of a batch deviates by sqrt(B) of the length at most, which is no overflow.
        assert all(each.overflow is None for each in found.reaches)
        assert all((each.layer is None) == (norm == "layer") for each in found.reaches[:2])
        assert any("prediction is unreliable" in note for note in found.notes) == (norm == "batch")


def conditions(net: object) -> dict[str, bool]:
    return {each.name: each.met for each in s.nonlinearity(net).theorem}


def breaches(net: object) -> set[tuple[str, str]]:
    return {(each.condition, each.kind) for each in s.findings(net)}


def test_S4_17_conditions_of_the_master_theorem() -> None:
    names = ["Gaussian weights", "rank stability", "control (C^E2)", "parameter-control"]
    for design in (Design("tanh", 1.5, 0.05), Design("relu", 2, norm="layer")):
        assert conditions(s.mlp(3, design)) == dict.fromkeys(names, True)
    assert not conditions(s.mlp(2, Design("tanh", family="orthogonal")))["Gaussian weights"]
    # Inputs that layer norm lets become alike: v / q falls below rounding, and the rank with it.
    alike = s.mlp(33, Design("gaussian:1/2", 1.21, norm="layer"))
    assert not conditions(alike)["rank stability"]
    assert "6e-17" in str(s.nonlinearity(alike).theorem[1].found)
    assert conditions(s.mlp(20, Design("gaussian:1/2", 1.21, norm="layer")))["rank stability"]
    divided = s.nonlinearity(s.mlp(2, Design("relu", 2, norm="layer"))).theorem[3].found
    assert "(layer 2: 2)" in divided or "(layer 5: 2)" in divided or ": 1)" in divided


@pytest.mark.parametrize(
    ("formula", "power"),
    [
        (lambda z: tp.exp(z / 2), None),  # exp(c |z|), which the theorem takes
        (lambda z: z * tp.tanh(z) + tp.exp(-(z**2)), None),
        (lambda z: tp.exp(z**2 / 8), "exp(c |z|^2)"),  # whose averages are there up to q < 2
        (lambda z: z + tp.exp(tp.relu(z) ** 3 / 50), "exp(c |z|^3)"),
    ],
)
def test_S4_17_23_growth_of_activations(formula: object, power: str | None) -> None:
    """C^E2: functions below exp(c |z|^(2 - c')), and so their slopes: condition 22.2."""
    found = s.findings(s.mlp(2, Design(formula, 0.5)))
    told = [each for each in found if each.condition == "22.2" and each.kind == "unproved"]
    assert bool(told) == (power is not None)
    if power is not None:
        assert power in told[0].message and "C^E2" in told[0].message


def test_S4_23_a_layer_has_to_grow() -> None:
    """22.4: at least one layer between input and output whose width grows."""
    assert breaches(s.parse_graph("x = input(1, 0)\na = dense(x)")) == {("22.4", "unproved")}
    assert (
        breaches(s.parse_graph("x = input(1, 0)\na = dense(x)\nb = dense(a, outputs=3)")) == set()
    )
    with pytest.raises(tp.errors.StudyError, match=r"22\.4"):
        s.findings(s.parse_graph("x = input(1, 0)\na = dense(x, outputs=3)"))


GRAM = np.array([[1, 0.3, -0.2], [0.3, 1.5, 0], [-0.2, 0, 0.7]])


def test_S4_18_duplex_of_a_network_is_its_covariance() -> None:
    """N copies with shared weights at any N inputs, means and derivatives too."""
    net = s.mlp(2, Design("tanh", 1.5, 0.05))
    limits = tp.limit(s.program_of(net, GRAM))
    wanted = s.covariance(net, GRAM)
    for a in range(3):
        for b in range(a + 1):
            assert limits[f"c[h[h7]][{b},{a}]"].value == pytest.approx(
                wanted.values[a, b], abs=1e-10
            )
    state = s.propagate(s.mlp(2, Design("tanh", 1.5, 0.05), s.Input(1.5, 0)))[-1]
    assert limits["g[h[h7]][1]"].value == pytest.approx(state.gradient, rel=1e-9)
    assert wanted.rank == 3
    with pytest.raises(tp.errors.StudyError, match="eigenvalue -1"):
        s.program_of(net, [[1.0, 2.0], [2.0, 1.0]])


def test_S4_18_covariance_off_the_recursion() -> None:
    """22.10 and 22.11: a function of a sum of layers that are not independent."""
    net = s.parse_graph(
        "x = input(1, 0)\na = dense(x)\nb = relu(a)\nc = dense(b)\nd = b + c\ne = tanh(d)"
    )
    found = s.covariance(net, GRAM, seed=1)
    # c given b is Gaussian: draws of a, and 60 Gauss-Hermite nodes for each of them.
    rng = np.random.default_rng(0)
    relu = np.maximum(rng.multivariate_normal(np.zeros(3), GRAM, 400_000), 0)
    inner = np.linalg.cholesky(s.covariance(s.mlp(1, Design("relu")), GRAM).values)
    draws = np.tanh(relu + rng.standard_normal(relu.shape) @ inner.T)
    products = draws[:, :, None] * draws[:, None, :]
    error = np.hypot(products.std(axis=0) / np.sqrt(len(draws)), found.errors)
    assert (np.abs(products.mean(axis=0) - found.values) < 5 * error).all()
    assert found.means == pytest.approx(draws.mean(axis=0), abs=5e-3)


def test_S4_18_covariance_through_batch_norm() -> None:
    """Inputs of a large batch: (K - c) / (q - c); a special pair as the r-kernel has it."""
    net = s.mlp(2, Design("relu", 2, 0.1, norm="batch"), s.Input(1, 0.3))
    found = s.covariance(net, [[1, 0.3, 0.6], [0.3, 1, 0.3], [0.6, 0.3, 1]])
    state = s.propagate(net)[-1]
    assert found.values[0, 0] == pytest.approx(state.square.value, rel=1e-12)
    assert found.values[0, 1] == pytest.approx(state.comean.value, rel=1e-12)
    h = 1e-5
    up, down = (s.covariance(net, [[1, 0.6 + d], [0.6 + d, 1]]).values[0, 1] for d in (h, -h))
    slope = s.kernel_slope(net, 0.6).value
    assert (up - down) / (2 * h) == pytest.approx(slope, rel=1e-8)


@pytest.mark.slow
def test_S4_18_duplex_of_a_finite_batch() -> None:
    """Two batches of four: in one batch co-means are -1 / (B - 1) of the variance."""
    text = "x = input()\na = dense(x, 2)\nb = batch_norm(a, batch=4, epsilon=0.1)"
    gram = 0.3 + 0.7 * np.eye(8)
    limits = tp.limit(s.program_of(s.parse_graph(text), gram))
    draws = np.random.default_rng(1).multivariate_normal(np.zeros(8), 2 * gram, 400_000)
    parts = draws.reshape(-1, 2, 4)
    away = parts - parts.mean(axis=2, keepdims=True)
    normed = away / np.sqrt((away**2).mean(axis=2, keepdims=True) + 0.1)
    for own, other, name in ((0, 0, "c[h[b][2]][0,0]"), (0, 1, "c[h[b][2]][0,1]")):
        terms = normed[:, own, 2] * normed[:, other, 2]
        scatter = np.hypot(terms.std() / np.sqrt(len(terms)), limits[name].stderr)
        assert abs(terms.mean() - limits[name].value) < 5 * scatter


@pytest.mark.torch
def test_S4_17_rank_in_the_limit_and_at_finite_width() -> None:
    """Of inputs x, -x and another: an even activation loses a direction, an odd one keeps it."""
    gram = np.array([[1, -1, 0.3], [-1, 1, -0.3], [0.3, -0.3, 1]])
    rows = np.array([[1, 0], [-1, 0], [0.3, np.sqrt(1 - 0.09)]]) @ np.eye(2, 40) * np.sqrt(40)
    for name, rank in (("abs", 2), ("tanh", 2), ("relu", 3), ("gelu", 3)):
        net = s.mlp(1, Design(name))
        assert s.covariance(net, gram).rank == rank, name
        layers = s.network_of(net, 60, 40).layers(__import__("torch").from_numpy(rows))
        assert np.linalg.matrix_rank(layers[-1].numpy()) == rank, name


class Convolutions(tp.Network):
    """Three convolutions of windows of three over a line of four, with zeros around it."""

    axes = {"p": 4}  # noqa: RUF012

    def __init__(self, t: tp.NetworkTracer, first: str = "1/3") -> None:
        make = tp.layers.Conv
        self.first = make(t, t.n, "in", variance=first)
        self.second = make(t, t.n, t.n, variance="1/3")
        self.third = make(t, t.n, t.n, variance="1/3")

    def forward(self, x: tp.Vector) -> tp.Vector:
        return self.third(tp.relu(self.second(tp.tanh(self.first(x)))))


def line_of_four() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, c and g of the output at all locations, for inputs of moments 1 and .3 at each."""
    net, moments = tp.network(Convolutions), np.kron([[1, 0.3], [0.3, 1]], np.eye(4))
    limits = tp.limit(s.program_of(net, moments), outputs=["c[f*", "g[f*"])
    names = ("c[f[{}]][0,0]", "c[f[{}]][0,1]", "g[f[{}]][0]")
    found = [[limits[name.format(p)].value for p in range(4)] for name in names]
    return tuple(map(np.array, found))  # type: ignore[return-value]


def test_S4_40_locations_of_convolutions() -> None:
    """The recursion with q, c and g at each location, by hand."""
    q, c, g = line_of_four()
    # Locations of an input are independent: windows add second moments of their cells.
    window = np.abs(np.subtract.outer(range(4), range(4))) <= 1
    own = {"q": window @ np.ones(4) / 3, "c": window @ np.full(4, 0.3) / 3}
    state = {"g": own["q"].copy(), **own}
    tanh, relu = s.activations.Kernels("tanh"), s.activations.Kernels("relu")
    # Neighbours share cells, but tanh is odd and sums of independent weights do not mix offsets:
    # a window adds second moments of single cells alone.
    for kernels in (tanh, relu):
        before = {key: value.copy() for key, value in state.items()}
        for p in range(4):
            at = before["q"][p], before["q"][p], before["c"][p]
            state["q"][p] = kernels.second(at[0]).value
            state["c"][p] = kernels.product(*at).value
            state["g"][p] = before["g"][p] * kernels.slope(at[0]).value
        state = {key: window @ value / 3 for key, value in state.items()}
    for key, found in (("q", q), ("c", c), ("g", g)):
        assert found == pytest.approx(state[key], rel=1e-9), key


@pytest.mark.torch
@pytest.mark.slow
def test_S4_40_coefficient_of_a_convolutional_network() -> None:
    """sqrt(sum g / sum (q - c)) over locations, beside drawn networks."""
    net, moments = tp.network(Convolutions), np.kron(np.eye(2), np.eye(4))
    limits = tp.limit(s.program_of(net, moments), outputs=["c[f*", "g[f*"])
    over = sum(limits[f"g[f[{p}]][0]"].value for p in range(4))
    under = sum(limits[f"c[f[{p}]][0,0]"].value - limits[f"c[f[{p}]][0,1]"].value for p in range(4))
    found = []
    net = tp.network(Convolutions, first="1")  # drawn input maps have 1 / (3 features) already
    for seed in range(3):
        x = s.functions.gaussian_inputs(100, 4 * 30, seed=seed)
        drawn = s.network_of(net, 60, 4 * 30, seed)
        found.append(s.nlc(drawn, x, seed=seed, draws=3).nlc.value)
    error = np.std(found, ddof=1) / np.sqrt(len(found)) + 0.01  # and what 1 / n adds
    assert abs(np.mean(found) - np.sqrt(over / under)) < 5 * error


def test_S4_25_limit_of_the_numerator() -> None:
    """sqrt(g_l v_m / g_m): from the input on a column, between layers in the sweep."""
    net = s.mlp(3, Design("tanh", 1.5, 0.05), s.Input(1, 0.3))
    states, rows = s.propagate(net), s.nonlinearity(net).layers
    for state, row in zip(states, rows, strict=True):
        wanted = np.sqrt(state.gradient * states[0].gap.value)
        assert row.numerator.value == pytest.approx(wanted, rel=1e-12)
        assert row.numerator.stderr < 1e-12


@pytest.mark.torch
@pytest.mark.slow
def test_S4_25_41_pairs_of_layers_over_widths() -> None:
    """NLCNUM, JACF and NLC of the second half of a network, and of all of it."""
    net = s.mlp(4, Design("tanh", 1.5, 0.05), s.Input(1, 0.3))
    states, half = s.propagate(net), (6, 13)
    start, end = (states[k] for k in half)
    sampling = s.Sampling((32, 256), seeds=6, inputs=250, pairs=(half, (3, 6)))
    found = s.nonlinearity(net, sampling=sampling)
    wanted = {
        "NLC": s.nlc(net, *half).value,
        "NLCNUM": np.sqrt(end.gradient * start.gap.value / start.gradient),
        "JACF": np.sqrt(end.gradient / start.gradient),
    }
    off = {}
    for width in (32, 256):
        row = found.at(width, 13, 6)
        whole = found.at(width, 13)
        for name, limit in wanted.items():
            value = row.value(name)
            assert value.limit.value == pytest.approx(limit, rel=1e-10), name
            off[width, name] = value.relative
        number = whole.value("NLCNUM")
        assert number.limit.value == pytest.approx(found.layers[-1].numerator.value, rel=1e-12)
        if width == 256:
            assert abs(number.relative) < 0.1 and abs(number.z) < 5
            assert all(abs(row.value(name).relative) < 0.1 for name in wanted)
    shown = str(found.at(256, 13, 6)) + str(found)
    assert "NLCNUM" in shown
    assert any("NLC, layers 6 to 13" in str(cell) for cell in captions(found))


def captions(found: object) -> list[str]:
    from tpcalc.views.answers.nonlinearity import nonlinearity_tables

    return [cell.text for t in nonlinearity_tables(found) for row in t.rows for cell in row]


@pytest.mark.torch
def test_S4_11_tangent_kernel_of_a_function() -> None:
    """Blocks of J J^T: of a two-layer network by hand, entry by entry."""
    import torch

    rng = np.random.default_rng(0)
    w, u, x = (torch.tensor(rng.standard_normal(size)) for size in ((3, 5), (5, 2), (4, 3)))
    found = s.functions.tangent_kernel(lambda z: torch.tanh(z @ w) @ u, [w, u], x)
    h = np.tanh(x.numpy() @ w.numpy())
    for a in range(4):
        for b in range(4):
            by_u = (h[a] @ h[b]) * np.eye(2)
            slopes = (1 - h[a] ** 2) * (1 - h[b] ** 2)
            by_w = (x[a] @ x[b]).item() * u.numpy().T @ (slopes[:, None] * u.numpy())
            assert found[a, b] == pytest.approx(by_u + by_w, rel=1e-12)
    with pytest.raises(tp.errors.EvaluationError, match="do not depend"):
        s.functions.tangent_kernel(lambda z: z, [w], x)


@pytest.mark.torch
@pytest.mark.slow
def test_S4_11_tangent_kernel_of_a_layer_graph() -> None:
    """The limit by tp.kernel; a network with the kernel of each layer over its fan-in."""
    text = "x = input()\na = dense(x)\nb = tanh(a)\nc = dense(b)\nd = layer_norm(c)\ne = relu(d)\n"
    net = s.parse_graph(text + "f = dense(e, outputs=1)")
    x = np.random.default_rng(3).standard_normal((3, 6))
    limit = tp.kernel(net, X=x).ntk
    drawn = []
    for seed in range(8):
        network = s.network_of(net, 300, 6, seed)
        batch = __import__("torch").from_numpy(x)
        parts = network.parameters
        drawn.append(
            sum(
                s.functions.tangent_kernel(network, [parts[name]], batch)[:, :, 0, 0] / fan_in
                for name, fan_in in (("a", 6), ("c", 300), ("f", 300))
            )
        )
    error = np.std(drawn, axis=0, ddof=1) / np.sqrt(8)
    assert (np.abs(np.mean(drawn, axis=0) - limit) < 5 * error + 0.02).all()
    with pytest.raises(tp.errors.TpcalcError, match="returns what the readout gives"):
        tp.kernel(s.parse_graph(text), X=x)  # no readout: refused, and no matrix of scalars
    with pytest.raises(tp.errors.TpcalcError, match="no output of the program has a kernel"):
        tp.kernel(s.program_of(s.parse_graph(text.replace("relu", "tanh"))))


@pytest.mark.torch
def test_S4_12_layerwise_coefficient_of_a_sequential() -> None:
    """LNLC of a torch module: activations and norms measured, linear maps count 1."""
    import torch

    torch.manual_seed(0)
    nn = torch.nn
    parts = [nn.Linear(50, 150), nn.ReLU(), nn.Linear(150, 150), nn.BatchNorm1d(150), nn.Tanh()]
    module = nn.Sequential(*parts, nn.Linear(150, 20)).double()
    x = s.functions.gaussian_inputs(500, 50)
    found = s.functions.layerwise_nlc(s.functions.tapped(module), x)
    whole = s.nlc(module, x).nlc
    assert found.value == pytest.approx(whole.value, abs=5 * whole.stderr + 0.05)
    linear = nn.Sequential(nn.Linear(50, 30), nn.Linear(30, 20)).double()
    assert s.functions.layerwise_nlc(s.functions.tapped(linear), x).value == 1


def test_S4_22_neural_regularity() -> None:
    """Digits and independent components are regular; tight clusters and equal ones are not."""
    rng = np.random.default_rng(0)
    report = s.functions.neural_regularity
    plain = report(rng.standard_normal((300, 100)), [0, 1, 2] * 100)
    assert (plain.distant, plain.independent, plain.concentrated) == (True, True, True)
    assert plain.least == pytest.approx(1.2247448714, abs=1e-9)  # case 9: three classes
    assert plain.correlation == pytest.approx(plain.expected, rel=0.05)
    clusters = np.repeat(rng.standard_normal((2, 100)), 150, axis=0)
    clusters += 0.05 * rng.standard_normal((300, 100))
    near = report(clusters, [0, 1] * 150)
    assert near.steepness > 10 * near.least and not near.distant and not near.independent
    lengths = rng.standard_normal((300, 100)) * np.exp(rng.standard_normal((300, 1)))
    assert not report(lengths, [0, 1, 2] * 100).concentrated
    elements = s.functions.elem_like_test(lengths)
    assert report(lengths, [0, 1, 2] * 100).elements.square.value == elements.square.value


def test_S4_22_digits_are_neural_regular() -> None:
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    found = s.functions.neural_regularity(digits.data, digits.target)
    assert (found.distant, found.independent, found.concentrated) == (True, True, True)


@pytest.mark.torch
def test_S4_26_a_biased_readout_fits_its_graph() -> None:
    import torch

    nn = torch.nn
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(20, 60), nn.Tanh(), nn.Linear(60, 10)).double()
    text = "x = input()\na = dense(x)\na1 = bias(a, 1)\nb = tanh(a1)\nc = dense(b, outputs=10)"
    states = s.propagate(s.concrete(s.parse_graph(text), module))
    weights, bias = module[2].weight.detach(), module[2].bias.detach()
    before = states[3].square.value
    wanted = float((weights**2).sum() / 10) * before + float((bias**2).sum() / 10)
    assert states[-1].square.value == pytest.approx(wanted, rel=1e-12)


def test_S4_31_36_floats_stand_for_numbers() -> None:
    """The bias kernel by three Gaussians; kernels, numbers s and slopes take floats."""
    soft = s.activations.Kernels("softplus")
    nested = tp.expect(
        lambda a, b, c: tp.softplus(a + b) * tp.softplus(a + c),
        [[0.3, 0, 0], [0, 0.7, 0], [0, 0, 0.7]],
    )
    product = soft.product(1.0, 1.0, 0.3).value
    assert product == pytest.approx(0.726653875, abs=1e-9)
    assert nested.value == pytest.approx(product, abs=1e-9)
    gap = soft.second(1).value - soft.product(1, 1, 0.3).value
    assert soft.gap(1.0, 0.7).value == pytest.approx(gap, rel=1e-9)
    assert s.stability_number("tanh", 1).value == pytest.approx(0.461071, abs=1e-6)
    assert s.kernel_slope(s.mlp(1, Design("relu", 2)), 0.0).value == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("q", [4.0, 100.0, 200.0, 400.0, 1e4, 1e6])
def test_S4_44_sawtooth_at_any_scale(q: float) -> None:
    """n = sqrt(3 q): case 39's amplitude 1 and period 4, at inputs far beyond a period."""
    net = s.parse_graph(f"x = input({q:g}, 0)\na = dense(x)\nb = sawtooth(a)\nc = dense(b)")
    found = s.nlc(net)
    assert found.value == pytest.approx(np.sqrt(3 * q), rel=1e-4 if q < 10 else 1e-9)
    near = s.parse_graph(
        f"x = input({q:g}, {q / 4:g})\na = dense(x)\nb = sawtooth(a)\nc = dense(b)"
    )
    assert s.nlc(near).value <= found.value


def test_S4_44_a_small_amplitude_at_close_inputs() -> None:
    """A wave of amplitude .1 at q = 3, c = 1/2, which no nested rule takes in good time."""
    wave = s.parse_graph("x = input(300, 50)\na = dense(x)\nb = sawtooth(a)\nc = dense(b)")
    assert s.nlc(wave).value == pytest.approx(np.sqrt(3 * 250), rel=1e-9)


@pytest.mark.torch
@pytest.mark.slow
def test_S4_45_checklist() -> None:
    """All eight properties of 5.5 for a stable network; a GUA loses those of finite networks."""
    stable = s.functions.explained(
        s.mlp(3, Design("tanh", 1.5, 0.05), s.Input(1, 0.3)), width=120, seeds=3, samples=150
    )
    assert len(stable) == 8 and all(row.holds for row in stable)
    sections = ("4.4.2", "4.4.3", "4.4.5", "4.4.9", "4.4.11", "4.4.12", "4.4.13", "4.4.14")
    assert [row.name.split("(")[-1][:-1] for row in stable] == list(sections)
    assert all(row.limit == stable[0].limit for row in stable)
    assert stable[3].found.value == pytest.approx(stable[0].limit, rel=1e-10)
    assert stable[7].found.value == pytest.approx(stable[0].limit, rel=1e-10)
    measured = [row.found.value for row in stable if row.found.stderr > 1e-6]
    assert len(measured) == 5 and len(set(measured)) == 5  # numbers of their own
    squares = s.mlp(5, Design(s.activations.normalized("square")))
    unstable = s.functions.explained(squares, width=120, seeds=3, samples=150)
    held = [row.holds for row in unstable]
    assert held[3] and held[7] and not all(held[:3])


@pytest.mark.torch
@pytest.mark.slow
def test_S4_45_width_changes_no_drawn_coefficient() -> None:
    """Networks of widths 60 and 240 have one coefficient, as the recursion never reads a width."""
    net = s.mlp(3, Design("tanh", 1.5, 0.1), s.Input(1, 0.2))
    found = s.nonlinearity(net, sampling=s.Sampling((60, 240), seeds=6, inputs=200))
    narrow, wide = (found.at(width, found.layers[-1].index).value("NLC") for width in (60, 240))
    error = np.hypot(narrow.mean.stderr, wide.mean.stderr) + 0.5 / 60
    assert abs(narrow.mean.value - wide.mean.value) < 5 * error
    assert narrow.limit == wide.limit and narrow.deviation > wide.deviation
