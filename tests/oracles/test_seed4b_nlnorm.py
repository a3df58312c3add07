"""nlnorm against the reference tables and cases (thesis, ch. 2 and 7), and by second ways."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import inf, pi, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import tpcalc as tp
from tpcalc.errors import EvaluationError, StudyError, UnknownName, UsageError
from tpcalc.functions import Expr, Fn
from tpcalc.functions.tape import values
from tpcalc.results.normed import Normed, StudyRow

s = tp.signal
p = s.practice
FIVE = 1.01e-5  # five decimals are printed
SIX = 1.01e-6
GAUSSIAN = "gaussian:1/2"


def average(function: Any, q: float = 1.0, split: tuple[float, ...] = (0.0,)) -> float:
    """E f(s) for s ~ N(0, q) by scipy, piece by piece between kinks."""
    ends = (-13 * sqrt(q), *split, 13 * sqrt(q))

    def weighed(x: float) -> float:
        return float(function(x) * np.exp(-x * x / (2 * q)) / sqrt(2 * pi * q))

    return sum(quad(weighed, *piece, epsabs=1e-13, limit=200)[0] for piece in pairwise(ends))


def checked(expr: Expr, q: float = 1.0, split: tuple[float, ...] = (0.0,)) -> list[float]:
    """E F, E F^2 and n(q, 0) of an expression, by scipy."""
    slope = Fn(expr, 1).by(0)
    own = [lambda x, fn=fn: float(values(fn, x)) for fn in (Fn(expr, 1), slope)]
    mean, square = average(own[0], q, split), average(lambda x: own[0](x) ** 2, q, split)
    turn = average(lambda x: own[1](x) ** 2, q, split)
    return [mean, square, sqrt(q * turn / (square - mean**2))]


# ------------------------------------------------------------------- triplets, section 4

TRIPLETS = [  # activation, method, l, c, b, R
    ("relu", "interpolate", 0.709085, 0.802513, -0.320156, 1),
    ("selu", "interpolate", -0.167323, 1.196689, 0, 0.7466),
    ("tanh", "interpolate", 0.204584, 1.209141, 0, 0.5806),
    ("even_tanh", "interpolate", 1.901194, 0.519895, -0.289051, 0.981),
    ("square", "interpolate", 4.184757, 0.226385, -0.226385, 1.1025),
    ("abs", "interpolate", 2.418170, 0.401256, -0.320156, 1),
    ("softplus", "interpolate", -0.062052, 2.165169, -1.745254, 1.071),
    ("relu", "shift", 1.098599, 1.129602, -1.318707, 0.777),
    ("abs", "shift", 1.853761, 1.05, -1.972603, 0.806),
    ("tanh", "dilate", 0.776188, 1.811730, 0, 0.557),
    ("softplus", "sharpen", 1.207648, 1.897518, -1.338542, 1.064),
    ("swish", "sharpen", 0.539477, 1.895681, -0.239329, 1.079),
]


@lru_cache(maxsize=64)
def solved(activation: str, method: str | None, target: float = 1.05) -> Normed:
    return s.nlnorm(activation, target, method)


@pytest.mark.parametrize("row", TRIPLETS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_S4b_18_19_case3_4_6_solved_triplets(row: tuple[Any, ...]) -> None:
    activation, method, *wanted, stability = row
    found = solved(activation, method)
    triplet = [found.amount.value, found.scale.value, found.shift.value]
    assert triplet == pytest.approx(wanted, abs=SIX)
    assert found.stability.value == pytest.approx(stability, abs=6e-4)
    assert found.nlc.value == pytest.approx(1.05, abs=1e-10)
    assert found.only.nlc.value == pytest.approx(1.05, abs=1e-10)
    kinks = (-found.amount.value,) if method == "shift" else (0.0,)
    assert checked(found.expr, split=kinks) == pytest.approx([0, 1, 1.05], abs=1e-9)
    assert found.amount.stderr < 1e-9 and found.scale.stderr < 1e-9 and found.shift.stderr < 1e-9


def test_S4b_18_case6_slopes_of_1_make_the_scale_the_coefficient() -> None:
    for target in (1.01, 1.2, 1.6):
        assert solved("abs", "shift", target).scale.value == pytest.approx(target, rel=1e-12)


def test_S4b_18_methods_by_default() -> None:
    for activation, method in (("relu", "interpolate"), ("abs", "shift"), ("swish", "sharpen")):
        found = s.nlnorm(activation, 1.05)
        assert found.only.method == method
        assert found.amount.value == solved(activation, method).amount.value


@pytest.mark.parametrize("name", ["relu", "selu", "tanh", "even_tanh", GAUSSIAN, "odd_square"])
def test_S4b_20_case3_4_closed_form_with_both_roots(name: str) -> None:
    own = s.split(name)
    a, v, rest = own.coefficient.value, own.rest.value, own.rest_nlc.value
    for target in (1.001, 1.05, rest - 1e-3):
        found = s.nlnorm(name, target, "interpolate")
        away = sqrt(v * (rest**2 - target**2) / (target**2 - 1))
        assert sorted(found.roots) == pytest.approx([-a - away, -a + away], rel=1e-9)
        assert found.amount.value == pytest.approx(-a + away, rel=1e-9)
        scale = sqrt((target**2 - 1) / (v * (rest**2 - 1)))
        assert found.scale.value == pytest.approx(scale, rel=1e-9)
        other = p.normed(name, found.roots[1], "interpolate")
        assert other.nlc.value == pytest.approx(target, rel=1e-10)
        assert other.scale.value == pytest.approx(scale, rel=1e-9)


def test_S4b_20_case5_infeasible_targets() -> None:
    with pytest.raises(EvaluationError, match=r"1 to 1\.88607.*method='dilate' \(1 to 23") as found:
        s.nlnorm("tanh", 2.0, "interpolate")
    assert found.value.exit_code == 4
    for target in (1, 0.9, -2, float("nan"), inf):
        with pytest.raises(UsageError, match="target"):
            s.nlnorm("tanh", target, "interpolate")
    top = s.split("tanh").rest_nlc.value
    assert s.nlnorm("tanh", top - 1e-9, "interpolate").amount.value == pytest.approx(
        -s.split("tanh").coefficient.value, abs=1e-4
    )


@settings(max_examples=20)
@given(st.floats(1.0001, 1.65))
def test_S4b_20_any_target_is_met(target: float) -> None:
    found = p.normed("relu", s.nlnorm("relu", target).amount.value)
    assert found.nlc.value == pytest.approx(target, abs=1e-9)


def test_S4b_19_methods_of_ones_own() -> None:
    wanted = solved("swish", "sharpen")
    line = p.Linearization("own", lambda tau, amount: tp.sigmoid, 1.0, (0.1, 0.5, 1.0))
    ways = (
        "s*sigmoid(l*s)",
        lambda x, amount: x * tp.sigmoid(amount * x),
        p.Linearization(
            "own", lambda tau, amount: lambda x: x * tp.sigmoid(amount * x), 1.0, (0.1, 0.5, 1.0)
        ),
    )
    for way in ways:
        found = s.nlnorm("swish", 1.05, way)
        assert found.amount.value == pytest.approx(wanted.amount.value, rel=1e-10)
        assert found.scale.value == pytest.approx(wanted.scale.value, rel=1e-10)
    with pytest.raises(EvaluationError, match="'own' gives relu"):
        s.nlnorm("relu", 1.5, line)
    with pytest.raises(UnknownName, match="no method called 'foo'"):
        s.nlnorm("relu", 1.5, "foo")


# ----------------------------------------------------------------------- study B, section 4

GRIDS = dict(
    line.split("|")
    for line in """\
ReLU-interp.|1.21117 1.15879 1.11517 1.08027 1.05338 1.03344 1.01927 1.00975 1.00390 1.00088
ReLU-shift|1.21117 1.15975 1.11776 1.08430 1.05838 1.03894 1.02491 1.01522 1.00884 1.00487 1.00253
Swish|1.00000 1.00303 1.01420 1.03557 1.06596 1.10095 1.13601 1.16859 1.19603 1.21240 1.21117
softplus|1.01350 1.01839 1.02356 1.02888 1.03421 1.03948 1.06344 1.09293 1.12713 1.16620 1.21117
abs. val.|1.65890 1.61022 1.49418 1.36376 1.25100 1.16497 1.10383 1.06255 1.03596 1.01966 1.01018
SELU|1.03517 1.02865 1.02275 1.01749 1.01289 1.00897 1.00575 1.00324 1.00144 1.00036
tanh-interp.|1.08527 1.06279 1.04513 1.03146 1.02107 1.01336 1.00783 1.00404 1.00165 1.00038
tanh-dilate|1.00000 1.00190 1.01666 1.04626 1.08527 1.12922 1.17547 1.22250 1.26950 1.31600 1.36176
even tanh|2.33494 2.21097 1.88887 1.55258 1.30997 1.16166 1.07814 1.03372 1.01172 1.00234
Gaussian|1.57735 1.51103 1.35019 1.20040 1.10480 1.05206 1.02443 1.01037 1.00357 1.00071
odd square|1.15470 1.13886 1.12207 1.10440 1.08603 1.06726 1.04863 1.03098 1.01562 1.00443
square|1.41421 1.41204 1.40346 1.38416 1.34840 1.29099 1.21268 1.12635 1.05409 1.01198
""".splitlines()
)


@lru_cache(maxsize=16)
def study(name: str) -> tuple[StudyRow, ...]:
    return p.study_b(methods=[name])


@pytest.mark.parametrize("name", GRIDS)
def test_S4b_19_25_case9_grids_of_study_b(name: str) -> None:
    base, *rows = study(name)
    assert base.fit == "scale" and base.shift.value == 0 and len(rows) == 11
    wanted = [float(word) for word in GRIDS[name].split()]
    assert [row.nlc.value for row in rows[: len(wanted)]] == pytest.approx(wanted, abs=FIVE)
    for row in rows:
        assert row.product.value == pytest.approx(row.nlc.value**19, rel=1e-9)


def test_S4b_25_case9_a_line_leaves_what_floats_do_not_show() -> None:
    last = study("ReLU-interp.")[-1]
    assert last.amount == 1e11 and last.nlc.value == 1
    assert last.excess.value == pytest.approx(7.96e-24, rel=1e-3)
    assert 0 < last.excess.stderr < 1e-30
    own = s.split("relu")
    curved = (own.rest_nlc.value**2 - 1) * own.rest.value
    assert last.excess.value == pytest.approx(curved / (2 * (1e11 + 0.5) ** 2), rel=1e-9)


PRODUCTS = [  # of n(1, 0) to the 19th
    ("SELU", 0, 1.928),
    ("SELU", 1 / 9, 1.711),
    ("SELU", 1 / 4, 1.533),
    ("SELU", 3 / 7, 1.390),
    ("SELU", 2 / 3, 1.276),
    ("tanh-interp.", 0, 4.734),
    ("tanh-interp.", 1 / 9, 3.18),
    ("tanh-interp.", 1, 1.287),
    ("even tanh", 0, 9.94e6),
    ("even tanh", 1 / 9, 3.53e6),
    ("even tanh", 1 / 4, 1.77e5),
    ("even tanh", 3 / 7, 4.28e3),
    ("Gaussian", 0, 5763),
    ("abs. val.", 1, 70.5),
    ("abs. val.", 5 / 4, 18.2),
    ("abs. val.", 6 / 4, 6.53),
    ("Swish", 1, 6.217),
    ("Swish", 7 / 3, 19.3),
    ("Swish", 1e11, 38.1),
    ("tanh-dilate", 7 / 4, 45.5),
]


def test_S4b_25_product_estimates() -> None:
    for name, amount, wanted in PRODUCTS:
        row = next(row for row in study(name)[1:] if row.amount == pytest.approx(amount))
        assert row.product.value == pytest.approx(wanted, rel=4e-3)
    with pytest.raises(UnknownName, match="no linearization method"):
        p.study_b(methods=["ReLU"])


# ------------------------------------------------------------- debiased, or of length 1, alone


def test_S4b_24_base_and_debiased_triplets() -> None:
    for name in ("relu", "softplus", GAUSSIAN, "tanh"):
        base, even = p.normed(name, fit="scale"), p.normed(name, fit="shift")
        mean, square, _ = checked(base.expr)
        own = s.split(name)
        assert (base.shift.value, even.scale.value) == (0, 1)
        assert square == pytest.approx(1, abs=1e-9)
        assert base.scale.value == pytest.approx(own.second.value**-0.5, rel=1e-12)
        assert checked(even.expr)[0] == pytest.approx(0, abs=1e-9)
        assert even.shift.value == pytest.approx(-own.mean.value, abs=1e-12)
        for found in (base, even):
            assert found.only.nlc.value == pytest.approx(own.nlc.value, rel=1e-12)
        assert mean == pytest.approx(base.scale.value * own.mean.value, abs=1e-9)
    with pytest.raises(UnknownName, match="no fit called 'none'"):
        p.normed("relu", fit="none")  # type: ignore[arg-type]


# -------------------------------------------------------------------------------- networks

NETWORKS = [  # l for the coefficient 3 of 19 activations
    ("relu", 0.5988),
    ("even_tanh", 1.7344),
    (GAUSSIAN, 0.9282),
    ("tanh", 0.1322),
    ("selu", -0.2406),
    ("softplus", -0.10398),
]


@lru_cache(maxsize=16)
def plain(name: str) -> Normed:
    return s.nlnorm(name, 3, "interpolate", network=s.mlp(19, s.Design(name)))


@pytest.mark.parametrize(("name", "amount"), NETWORKS)
def test_S4b_21_case7_8_networks_of_19_activations(name: str, amount: float) -> None:
    found = plain(name)
    assert found.amount.value == pytest.approx(amount, abs=6e-5)
    assert found.nlc.value == pytest.approx(3, rel=1e-9)
    assert found.depth == 19 and found.only.layers == tuple(range(2, 39, 2))
    # The power is exact where all layers have second moment 1, and the recursion agrees.
    alone = s.nlnorm(name, 3 ** (1 / 19), "interpolate")
    assert found.amount.value == pytest.approx(alone.amount.value, rel=1e-8)
    assert s.nlc(found.network).value == pytest.approx(3, rel=1e-9)
    assert s.nlc(s.mlp(19, s.Design(found))).value == pytest.approx(3, rel=1e-9)


def test_S4b_23_case8_no_gaussian_stability() -> None:
    found = plain("softplus")
    assert found.stability.value == pytest.approx(1.0854, abs=6e-5)
    assert found.growth == pytest.approx(4.75, abs=6e-3)
    assert found.steady == "unstable"
    assert "Gaussian stable: R = 1.0854" in found.notes[0] and "4.748 over 19" in found.notes[0]
    assert plain("tanh").steady == "stable" and "R =" not in "".join(plain("tanh").notes)
    assert plain("relu").steady == "edge"
    alone = solved("softplus", "sharpen")
    assert f"by {alone.stability.value**20:.4g} over 20" in alone.notes[0]


def test_S4b_23_diagnostics() -> None:
    found = solved("relu", "interpolate")
    assert found.reach == pytest.approx((1, 1.658897), abs=SIX)
    assert found.monotone[0] == pytest.approx(-0.5) and found.monotone[1] > 1e6
    assert found.base is not None and found.base.value == pytest.approx(1.211174, abs=SIX)
    assert found.base_inside
    assert [row.nlc.value for row in found.lengths] == pytest.approx([1.05] * 5, rel=1e-9)
    # Lines stay all but linear on long inputs; shifts and dilations do not.
    for name, method, limit in (("abs", "shift", 1.658897), ("softplus", "sharpen", 1.211174)):
        own = solved(name, method)
        far = own.lengths[-1]
        assert far.length == 10 and 1.05 < far.nlc.value < limit
        assert f"n is {far.nlc.value:.4g} in place of 1.05" in "".join(own.notes)
    swish = solved("swish", "sharpen")
    assert 9 < swish.monotone[1] < 100  # it overshoots its limit near l = 9
    with_base = plain("even_tanh")
    assert with_base.base is not None and with_base.base.value == pytest.approx(35.71, abs=0.01)
    assert with_base.base_inside
    moved = solved("abs", "shift")
    assert moved.monotone[0] == 0 and moved.roots[1] == pytest.approx(-moved.roots[0])


def test_S4b_21_residual_and_branched_networks() -> None:
    """The path equation, by the closed form of equal blocks and by paths."""
    blocks = s.Design("relu", 1, norm="layer")
    for skip in (1, 0.5):
        net = s.resnet(8, blocks, skip=skip)
        found = s.nlnorm("relu", 1.3, network=net)
        assert s.nlc(found.network).value == pytest.approx(1.3, rel=1e-9)
        assert s.path_nlc(found.network).value == pytest.approx(1.3, rel=1e-9)
    # Without a norm the activation of block k is made for the second moment k.
    found = s.nlnorm("tanh", 1.5, network=s.resnet(4, s.Design("tanh", 1)))
    assert [row.square for row in found.rows] == pytest.approx([1, 2, 3, 4])
    assert {row.amount.value for row in found.rows} == {found.rows[0].amount.value}
    assert [checked(row.expr, row.square)[:2] for row in found.rows] == [
        pytest.approx([0, 1], abs=1e-9)
    ] * 4
    assert s.path_nlc(found.network).value == pytest.approx(1.5, rel=1e-9)
    branched = s.parse_graph("""
    x = input(1, 0)
    a = dense(x)
    b = relu(a)
    c = dense(b)
    d = dense(b)
    e = relu(d)
    f = dense(e)
    g = 0.6*c + 0.8*f
    """)
    made = s.nlnorm("relu", 1.2, network=branched)
    n = made.only.nlc.value
    assert sqrt(0.36 * n**2 + 0.64 * n**4) == pytest.approx(1.2, rel=1e-10)
    assert s.path_nlc(made.network).value == pytest.approx(1.2, rel=1e-9)


def test_S4b_22_recursion_for_variances_biases_and_shared_parts() -> None:
    he = s.nlnorm("relu", 3, network=s.mlp(19, s.Design("relu", 2)))
    assert he.amount.value == pytest.approx(plain("relu").amount.value, rel=1e-9)
    assert he.only.square == 2 and checked(he.expr, 2.0)[:2] == pytest.approx([0, 1], abs=1e-9)
    shared = s.nlnorm("tanh", 2, network=s.mlp(8, s.Design("tanh", 1.5, 0.1)))
    assert shared.only.square == pytest.approx(1.6)
    assert checked(shared.expr, 1.6)[:2] == pytest.approx([0, 1], abs=1e-9)
    assert s.nlc(shared.network).value == pytest.approx(2, rel=1e-9)
    assert any("two inputs share" in note for note in shared.notes)
    normed = s.nlnorm("swish", 1.5, network=s.mlp(6, s.Design("swish", 3, 0.2, "layer")))
    assert normed.only.square == 1 and s.nlc(normed.network).value == pytest.approx(1.5, rel=1e-9)


def test_S4b_22_several_activations_and_gates() -> None:
    net = s.parse_graph("""
    x = input(1, 0)
    a = dense(x)
    b = relu(a)
    c = dense(b)
    d = tanh(c)
    e = dense(d)
    f = dense(d)
    g = sigmoid(f)
    h = e*g
    k = dense(h)
    """)
    plain_nlc = s.nlc(net).value
    found = s.nlnorm(["relu", "tanh"], 1.3, "interpolate", network=net)
    assert [(row.name, row.layers) for row in found.rows] == [("relu", (2,)), ("tanh", (4,))]
    assert found.rows[0].amount.value == found.rows[1].amount.value
    assert s.nlc(found.network).value == pytest.approx(1.3, rel=1e-9)
    equal = s.nlnorm(["relu", "tanh"], 1.3, "interpolate", network=net, share="nlc")
    first, second = (row.nlc.value for row in equal.rows)
    assert first == pytest.approx(second, rel=1e-9)
    assert equal.rows[0].amount.value != pytest.approx(equal.rows[1].amount.value)
    one = s.nlnorm("relu", plain_nlc, network=net, only=[2])
    assert [row.layers for row in one.rows] == [(2,)]
    # Where no layer has it, all are replaced but for the gate.
    other = s.nlnorm("swish", 1.25, network=net)
    assert sorted(k for row in other.rows for k in row.layers) == [2, 4]
    with pytest.raises(StudyError, match="2 activations"):
        _ = found.expr


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("name", ["relu", "even_tanh", GAUSSIAN, "tanh", "selu"])
def test_S4b_21_case7_networks_of_width_500(name: str) -> None:
    sampling = s.Sampling((500,), seeds=3, inputs=200)
    found = s.nonlinearity(plain(name).network, sampling=sampling)
    row = found.at(500, 39)
    assert row is not None
    nlc, scale, bias = (row.value(each) for each in ("NLC", "LSCALE", "LBIAS"))
    assert nlc and scale and bias
    assert 2.9 < nlc.mean.value < 3.1 and abs(scale.mean.value - 1) < 0.05
    assert bias.mean.value < 1.02
    assert all(each.z is not None and abs(each.z) < 5 for each in (nlc, scale, bias))


@pytest.mark.slow
@pytest.mark.torch
def test_S4b_23_case8_softplus_of_width_500_leaves_its_length() -> None:
    found = s.nonlinearity(
        plain("softplus").network, sampling=s.Sampling((500,), seeds=3, inputs=200)
    )
    row = found.at(500, 39)
    assert row is not None and (scale := row.value("LSCALE")) is not None
    assert scale.mean.value > 2


# -------------------------------------------------------------------------- what comes out


def test_S4b_18_the_answer_is_an_activation() -> None:
    found = solved("relu", "interpolate")
    assert s.split(found).nlc.value == pytest.approx(1.05, rel=1e-10)
    assert s.sheet(found).name == "normed relu"
    assert s.activations.LengthKernel(found).nlc([1.0]).at(0).value == pytest.approx(1.05)
    assert tp.MLP(2, found) is not None
    text = str(found)
    assert "l = 0.709085, c = 0.802513, b = -0.320156" in text and "def activation(x):" in text


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "method"),
    [(row[0], row[1]) for row in TRIPLETS]
    + [
        ("selu", "shift"),
        (GAUSSIAN, "interpolate"),
        ("sawtooth", "interpolate"),
        ("z*tanh(z)", None),
    ]
    + [("elu", "interpolate"), ("gelu", "sharpen"), ("leaky_relu:0.2", "shift")],
)
def test_S4b_18_code_of_torch(name: str, method: str | None) -> None:
    import torch

    found, home = solved(name, method, 1.05 if name != "leaky_relu:0.2" else 1.02), {}
    exec(found.code, home)
    at = np.concatenate([np.linspace(-7.3, 7.1, 400), np.linspace(-60, 60, 41), [0.0]])
    wanted = values(Fn(found.expr, 1), at)
    got = home["activation"](torch.tensor(at, dtype=torch.float64)).numpy()
    assert got == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    assert home["activation"](torch.ones(3, 2)).dtype == torch.float32


def test_S4b_18_code_of_a_function_of_numpy_is_none() -> None:
    own = tp.function("own", np.tanh, lambda z: 1 - tp.tanh(z) ** 2)
    found = s.nlnorm(own, 1.05, "interpolate")
    assert found.amount.value == pytest.approx(0.204584, abs=SIX)
    assert found.only.code == "" and any("no code of torch" in note for note in found.notes)


def test_S4b_18_what_is_refused() -> None:
    net = s.mlp(3, s.Design("relu"))
    with pytest.raises(EvaluationError, match="no nonlinearity coefficient"):
        s.nlnorm("step", 1.05)
    with pytest.raises(StudyError, match="linear"):
        s.nlnorm("identity", 1.05)
    with pytest.raises(UsageError, match="layer 1 is no activation"):
        s.nlnorm("relu", 1.05, network=net, only=[1])
    with pytest.raises(UsageError, match="no activation that is to be replaced"):
        s.nlnorm(["tanh", "selu"], 1.05, network=net)
    with pytest.raises(UsageError, match="2 activations, and no network"):
        s.nlnorm(["tanh", "selu"], 1.05)
    with pytest.raises(UnknownName, match="share"):
        s.nlnorm("relu", 1.05, network=net, share="all")  # type: ignore[arg-type]
    with pytest.raises(EvaluationError, match=r"reaches 1.* to 4\.56.*more layers"):
        s.nlnorm("relu", 1e9, network=net)
    with pytest.raises(UsageError, match="the network is 3"):
        s.nlnorm("relu", 1.05, network=3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="between two at least"):
        p.Linearization("own", lambda tau, amount: tau, 1.0, ())
    shared = s.mlp(2, s.Design("relu", 1, 0.1, rank=0.5, bias="shared"))
    with pytest.raises(StudyError, match="does not self-average"):
        s.nlnorm("relu", 1.05, network=shared)
    twice = s.parse_graph("x = input(1, 0)\na = dense(x)\nb = layer_norm(a)\nc = relu(b)\nd = a*c")
    with pytest.raises(StudyError, match="the recursion does not hold"):
        s.nlnorm("relu", 1.05, network=twice)
