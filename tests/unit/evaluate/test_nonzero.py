"""The numerical zero test: findings on nodes that are 0, that are not, and that have no value."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from one_output import made

import tpcalc as tp
from tpcalc.dsl.vectors import Vector
from tpcalc.evaluate.witness import Finding, nonzero
from tpcalc.limit.scales import scales

Build = Callable[[tp.Tracer, Vector, Vector], object]


def finding(build: Build, seed: int = 0) -> Finding:
    """Of the leading coefficient of an output made of two independent N(0, 1) vectors."""

    run = scales(made(build, "vw"))
    node = run.scale("q").node
    assert node is not None
    return nonzero(run.context, [node], seed)[node]


def stein(t: tp.Tracer, v: Vector, w: Vector) -> object:
    """E v tanh(v) - E tanh'(v) = 0, by integration by parts and not by symmetry."""
    return t.inner(v, tp.tanh(v)) - t.moment(lambda z: 1 - tp.tanh(z) ** 2, v)


def wide(t: tp.Tracer, v: Vector, w: Vector) -> object:
    """h = W v has the second moment of v."""
    h = tp.n**-0.5 * (t.matrix("W") @ v)
    return t.inner(h, h) - t.inner(v, v)


ZERO: dict[str, Build] = {
    "variance": lambda t, v, w: t.inner(v, v) - 1,
    "relu": lambda t, v, w: t.inner(v, tp.relu(v)) - 0.5 * t.inner(w, w),
    "stein": stein,
    "matrix": wide,
    "vector": lambda t, v, w: (t.inner(v, v) - 1) * w,
    "around 0": lambda t, v, w: tp.n**0.5 * t.inner(tp.abs((t.inner(v, v) - 1) * v), w),
    "gates": lambda t, v, w: tp.relu(v) * tp.relu(-v),
    "cancelled": lambda t, v, w: 1000 * (tp.relu(v) - tp.relu(-v)) - 1000 * v,
}


@pytest.mark.parametrize("name", list(ZERO))
@pytest.mark.parametrize("seed", range(4))
def test_zeros_are_found(name: str, seed: int) -> None:
    found = finding(ZERO[name], seed)
    assert found.nonzero is False and "particles" in found.text


@pytest.mark.parametrize("act", [tp.tanh, tp.relu])
def test_functions_of_zeros_are_zero(act: Callable[..., Vector]) -> None:
    """relu(v) - relu(-v) - v is 0 up to rounding, and so is a function of it."""
    found = finding(lambda t, v, w: act(1.5 * (tp.relu(v) - tp.relu(-v)) - 1.5 * v + 0 * w))
    assert not found.nonzero


NOT_ZERO: dict[str, Build] = {
    "small": lambda t, v, w: t.inner(v, v) - 0.99,
    "fourth": lambda t, v, w: t.moment(lambda z: z**4, v) - 2.9,
    "vector": lambda t, v, w: (t.inner(v, v) - 0.9) * w,
    "tiny": lambda t, v, w: 1e-6 * tp.relu(v) * tp.tanh(w),
    "random": lambda t, v, w: tp.relu(tp.n**0.5 * t.inner(v, tp.tanh(w))),
    "gate": lambda t, v, w: tp.relu(v) - tp.relu(w),
}


@pytest.mark.parametrize("name", list(NOT_ZERO))
def test_what_is_not_zero_is_found(name: str) -> None:
    assert finding(NOT_ZERO[name]).nonzero is True


def test_an_average_whose_law_is_unknown_has_no_value() -> None:
    found = finding(
        lambda t, v, w: (
            tp.n**0.5 * t.inner(tp.tanh(tp.n**-0.5 * (t.matrix("W") @ v)), tp.sin(w)) * v
        )
    )
    assert found.nonzero is None and not found.deeper
    assert "average" in found.text


def test_gates_that_smaller_terms_decide_need_more_terms() -> None:
    """relu(relu(v) + n^(-1/2) w) at the leading order: the step of it is not known where v < 0."""
    found = finding(lambda t, v, w: tp.step(tp.relu(v) + tp.n**-0.5 * w) * v)
    assert found.nonzero is None and found.deeper


def test_findings_repeat() -> None:
    build = NOT_ZERO["gate"]
    assert finding(build, 3) == finding(build, 3)
    assert finding(build, 3) != finding(build, 4)
