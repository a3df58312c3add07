"""Questions about single cells of blocks: answered as of a program of cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tests.agree import agree
from tests.agreements.test_blocks import REPLICATES, RUNS, SAMPLES, both, run_of
from tpcalc.errors import ScaleError, UsageError
from tpcalc.results import Method

QUESTIONS: dict[str, Callable[[tp.Limit], Any]] = {
    "fourth moment": lambda found: found["h[2,2,2]"].moment(lambda z: z**4),
    "moment of an input layer": lambda found: found["h[1,1,0]"].moment(tp.relu),
    "moment of a gradient": lambda found: found["dh[1,2,1]"].moment(lambda z: z**2),
    "covariance of steps": lambda found: found["h[2,2,2]"].cov(found["h[2,1,1]"]),
    "covariance of samples": lambda found: found["h[2,1,0]"].cov(found["h[2,1,1]"]),
    "covariance with itself": lambda found: found["h[1,2,0]"].cov(found["h[1,2,0]"]),
}


_FOUND: dict[str, tuple[tp.Limit, tp.Limit]] = {}


def found(name: str) -> tuple[tp.Limit, tp.Limit]:
    """Both readings of a run, evaluated once for all questions about it."""
    if name not in _FOUND:
        _FOUND[name] = both(run_of(*RUNS[name]))
    return _FOUND[name]


NORM, ADAM = (pytest.param(name, marks=pytest.mark.slow) for name in ("layer norm, mup", "adam"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["tanh, mup", "relu, ntk", "biases, mup", NORM, "resnet, mup", "momentum", ADAM],
)
def test_cells_have_moments_and_covariances(name: str) -> None:
    cells, blocks = found(name)
    for asked in QUESTIONS.values():
        one, two = asked(cells), asked(blocks)
        agree(one, two)
        assert (one.value == 0) == (two.value == 0)


@pytest.mark.parametrize("name", ["tanh, mup", "relu, ntk", "resnet, mup", ADAM])
def test_samples_of_a_cell_are_those_its_moments_are_of(name: str) -> None:
    _, blocks = found(name)
    for cell in ("h[1,0,1]", "h[2,2,2]", "dh[2,1,0]"):
        drawn = blocks[cell].sample(SAMPLES * REPLICATES)
        value = blocks[cell].second_moment.value
        assert drawn.shape == (SAMPLES * REPLICATES,)
        assert np.mean(drawn**2) == pytest.approx(value, rel=1e-12)
    left, right = (blocks[cell].sample(4 * SAMPLES) for cell in ("h[2,2,0]", "h[2,2,1]"))
    shared = blocks["h[2,2,0]"].cov(blocks["h[2,2,1]"])
    each = np.mean((left * right).reshape(4, -1), axis=1)  # both are coordinates of one network
    assert abs(each.mean() - shared.value) < 6 * np.hypot(each.std(ddof=1) / 2, shared.stderr)


def test_random_cells_have_a_covariance() -> None:
    cells, blocks = found("relu, ntk")
    for pair in (("f[0,0]", "f[0,0]"), ("f[0,0]", "f[0,2]"), ("f[1,1]", "f[2,0]")):
        agree(cells.cov(*pair), blocks.cov(*pair))
    assert found("tanh, mup")[1].cov("f[1,0]", "f[1,1]").value == 0
    with pytest.raises(UsageError, match="is a vector"):
        blocks.cov("f[0,0]", "h[1,0,0]")


def test_cells_that_rest_on_few_others_are_found_exactly() -> None:
    """Before training a cell needs one input only, whatever the run."""
    run = run_of(*RUNS["relu, ntk"])
    cells = tp.limit(run.unrolled.cells, samples=SAMPLES, replicates=REPLICATES)
    rng = np.random.default_rng(4)
    inputs = np.vstack([run.data.inputs, rng.normal(size=(202, 3))])
    large = run.replace(data=tp.Samples(inputs, rng.normal(size=208)), steps=12, batch=16)
    asked = ["f[0,:]", "h[2,0,:]"]
    blocks = tp.limit(large, outputs=asked, samples=SAMPLES, replicates=REPLICATES)
    assert blocks.graph.has_blocks
    found = blocks.cov("f[0,0]", "f[0,1]")
    assert found.method is not Method.PARTICLES
    assert found.value == pytest.approx(cells.cov("f[0,0]", "f[0,1]").value, rel=1e-12)
    fourth = blocks["h[2,0,1]"].moment(lambda z: z**4)
    assert fourth.method is not Method.PARTICLES
    assert fourth.value == cells["h[2,0,1]"].moment(lambda z: z**4).value


@pytest.mark.slow
def test_what_has_no_answer_of_a_cell_has_none_of_a_block() -> None:
    for limit in found("tanh, mup"):
        with pytest.raises(ScaleError, match="near 0 has no mean"):
            limit["h[2,2,2]"].moment(lambda z: z**-1)
    for limit in both(run_of(*RUNS["tanh, standard"])):
        with pytest.raises(ScaleError, match="explodes like"):
            limit["h[2,2,2]"].moment(tp.relu)


def test_a_random_input_that_is_given_stays_given() -> None:

    @tp.program
    def scaled(t: tp.Tracer) -> None:
        b = t.random_scalar("b", std=1)
        t.output("y", b * t.gaussian("v"))

    found = tp.limit(scaled, given={"b": 2})
    assert found["y"].moment(lambda z: z**4).value == 48
