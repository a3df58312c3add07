"""HP and HPZ: hidden weights that are re-initialised after a step, as rewritten programs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_run import is_input

import tpcalc as tp
from tests.gauges import equivalent_gauge
from tpcalc.program.nodes import Kind, MatMul
from tpcalc.questions.check import known_as
from tpcalc.training.exponent_words import exponent_words
from tpcalc.training.parameterizations import lookup

XI = ((0.6, -0.3, 0.5, 0.2), (0.1, 0.7, -0.2, 0.9), (0.5, 0.5, -0.6, -0.1))
DATA = tp.Samples(XI, ((0.0,),) * 3)


def trained(parameterization: str, depth: int = 3, steps: int = 3) -> tp.Program:
    return tp.train(
        tp.MLP(depth, "relu", bias="first"),
        parameterization,
        DATA,
        steps=steps,
        lr=lambda layer, step: 4.0 if step == 0 else 0.5,
        loss="linear",
        watch=("dW_x",),
    )


def outputs(program: tp.Program) -> dict[str, np.ndarray]:
    table = tp.simulate(program, widths=(64,), seeds=3, seed=2)
    return {row.name: np.array(row.values) for row in table.rows if row.name.startswith("f")}


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_S0_24_case22_hp_is_ip_llr_at_every_width(depth: int) -> None:
    """From t = 1 on, up to rounding, three steps long; at t = 0 it is muP and differs."""
    mine, other = outputs(trained("hp", depth)), outputs(trained("ip-llr", depth))
    for step in (1, 2, 3):
        np.testing.assert_allclose(mine[f"f[{step},0]"], other[f"f[{step},0]"], rtol=1e-9)
    scale = 64 ** ((depth - 1) / 2)
    np.testing.assert_allclose(mine["f[0,0]"], scale * other["f[0,0]"], rtol=1e-12)


def test_hpz_differs_at_finite_width() -> None:
    mine, other = outputs(trained("hpz")), outputs(trained("ip-llr"))
    assert np.abs(mine["f[1,0]"] / other["f[1,0]"] - 1).min() > 1e-3


def test_dropped_matrices_are_not_multiplied_again() -> None:
    """After the first pass no product of a dropped matrix is left in the program."""
    products = [
        sum(isinstance(node, MatMul) for node in trained(name, steps=steps).nodes)
        for name, steps in (("hpz", 1), ("hpz", 3), ("hp", 1), ("hp", 3))
    ]
    assert products[0] == products[1]
    assert products[3] > products[2]
    kept = [node for node in trained("hpz").nodes if is_input(node, Kind.MATRIX)]
    assert len(kept) == 2


def test_S0_3_first_step_of_hp_and_hpz_is_that_of_mup() -> None:
    assert lookup("hp").exponents(3, 0) == lookup("mup").exponents(3, 0)
    assert [str(kept) for kept in lookup("hp").exponents(3, 1).kept] == ["0", "1/2", "1/2", "0"]
    assert lookup("hpz").exponents(3, 1).kept[1:-1] == (None, None)


def test_no_other_name_is_given_to_them() -> None:
    """They have the tables of muP and are not muP, but with one hidden layer they are."""
    assert known_as(lookup("hp"), 3) == []
    assert not equivalent_gauge("hp", "mup", 3)
    assert "mup" in known_as(lookup("hp"), 1)


def test_the_words_of_one_step_tell_what_is_dropped_after_it() -> None:
    """The networks after the only step have lost their initial weights already."""
    assert exponent_words(lookup("hpz"), 3, 1)["Re-initialisation from t = 1"].count("dropped") == 2
    assert not any("Re-init" in key for key in exponent_words(lookup("hpz"), 3, 0))
    assert not any("Re-init" in key for key in exponent_words(lookup("mup"), 3, 1))
