"""Assumptions 2 and 3 on every activation of the catalogue (S0.11)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.activations.entries import REGISTRY, lookup
from tpcalc.errors import UnknownName
from tpcalc.functions import Var
from tpcalc.theorems.integrable.forms.nonlinearity import nonlinearity
from tpcalc.theorems.integrable.predicates.assumptions import assumptions, order_at_zero

NEEDS = {"poly": "poly:0,1,1", "polynomial": "poly:0,1,1", "relu_pow": "relu^2"}
NAMES = sorted({NEEDS.get(name, name) for name in REGISTRY})

# Assumption 2 in its four parts: sigma has a slope, is pseudo-Lipschitz, so is its slope, not 0.
SECOND = {
    "++++": {
        *("cos", "elu", "erf", "gaussian", "gelu", "identity", "normal_cdf", "normal_pdf"),
        *("poly:0,1,1", "relu^2", "sigmoid", "sin", "softplus", "square", "swish", "tanh"),
        "odd_square",
    },
    "-+-+": {"abs", "elu_slope", "even_tanh", "leaky_relu", "relu", "sawtooth", "selu"},
    "---+": {"log", "selu_slope", "sign", "sqrt", "square_wave", "step"},
    "+--+": {"exp"},
}


@pytest.mark.parametrize("name", NAMES)
def test_S0_11_assumption_2_of_every_activation(name: str) -> None:
    word = "".join("-+"[part.met] for part in assumptions(name).second)
    assert name in SECOND[word]
    assert all(part.found for part in assumptions(name))


def test_the_table_is_complete() -> None:
    assert set().union(*SECOND.values()) == set(NAMES)


@pytest.mark.parametrize(
    ("name", "homogeneous", "high", "one_sided"),
    [
        ("relu", True, False, True),
        ("relu^3/2", True, False, True),
        ("relu^2", True, True, True),
        ("relu^7/2", True, True, True),
        ("leaky_relu:-1/2", True, False, True),
        ("leaky_relu:1/2", True, False, False),
        ("abs", True, False, False),
        ("identity", True, False, False),
        ("square", True, True, False),
        ("poly:0,0,0,1", True, True, False),
        ("sign", False, False, False),
        ("sqrt", False, False, False),
        ("tanh", False, False, False),
    ],
)
def test_S0_11_assumption_3(name: str, homogeneous: bool, high: bool, one_sided: bool) -> None:
    found = assumptions(name)
    met = (found.homogeneous.met, found.high_degree.met, found.one_sided.met)
    assert met == (homogeneous, high, one_sided)
    assert found.supported is (homogeneous and one_sided)


@pytest.mark.parametrize("name", NAMES)
def test_value_and_slope_at_zero_agree_with_numbers(name: str) -> None:
    found, act = assumptions(name), lookup(name)
    with np.errstate(all="ignore"):
        value = float(act.evaluate(np.zeros(1))[0])
        h = 1e-6
        right = float((act.evaluate(np.array([h]))[0] - value) / h)
        left = float((value - act.evaluate(np.array([-h]))[0]) / h)
    assert found.zero_at_zero.met is (value == 0)
    slope = abs(right - left) < 1e-4 and 1e-4 < abs(right) < 1e3
    assert found.slope_at_zero.met is slope


@pytest.mark.parametrize("name", NAMES)
def test_what_is_pseudo_lipschitz_has_difference_quotients_below_a_power(name: str) -> None:
    act = lookup(name)
    z = np.concatenate([np.linspace(-6, 6, 2001), np.ldexp(1.0, np.arange(3, 9))])
    with np.errstate(all="ignore"):
        values = act.evaluate(z)
        steep = np.abs(np.diff(values) / np.diff(z)) / (
            1 + np.abs(z[:-1]) ** 6 + np.abs(z[1:]) ** 6
        )
    assert bool(np.all(steep < 10)) is assumptions(name).lipschitz.met


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("relu", (1, 1, 0)),
        ("relu^5/2", (Fraction(5, 2), 1, 0)),
        ("gelu", (1, 0.5, -0.5)),
        ("elu:2", (1, 1, -2)),
        ("selu", (1, 1.0507, -1.7581)),
        ("poly:0,0,3,1", (2, 3, 3)),
        ("poly:0,0,0,2,1", (3, 2, -2)),
        ("sigmoid", (0, 0.5, 0.5)),
        ("square", (2, 1, 1)),
    ],
)
def test_S0_11_order_of_vanishing(name: str, order: tuple[float, float, float]) -> None:
    found = order_at_zero(nonlinearity(name))
    assert found is not None
    assert tuple(map(float, found)) == pytest.approx(order, rel=1e-4)


def test_functions_of_ones_own() -> None:
    smooth = assumptions(lambda z: tp.tanh(z) + z**2)
    assert all(part.met for part in smooth.second) and smooth.slope_at_zero.met
    kinked = assumptions(lambda z: tp.tanh(z) + tp.relu(z))
    assert [part.met for part in kinked.second] == [False, True, False, True]
    steep = assumptions(lambda z: tp.exp(z**2) - 1)
    assert [part.met for part in steep.second] == [True, False, False, True]
    bump = assumptions(lambda z: tp.exp(-(z**2)) - 1)
    assert all(part.met for part in bump.second) and "of degree" in bump.smooth.found
    flat = assumptions(lambda z: tp.exp(z - z**2) - 1)
    assert all(part.met for part in flat.second) and "checked on numbers" in flat.smooth.found
    pole = assumptions(lambda z: 1 / z)
    assert not any(part.met for part in pole.second[:3])
    cusp = assumptions(lambda z: (z**2) ** Fraction(1, 4))
    assert not any(part.met for part in cusp.second[:3])
    assert assumptions(Var(0) ** 2).high_degree.met


def test_a_symbol_for_the_power_leaves_it_open() -> None:
    found = assumptions("relu^p")
    assert found.symbolic and found.degree is None
    assert not found.smooth.met and not found.high_degree.met and found.one_sided.met
    assert found.high_degree.found == "its power is a symbol"


def test_no_such_activation() -> None:
    with pytest.raises(UnknownName, match="rellu"):
        assumptions("rellu")
