"""Certainty: what is said to be different from 0 by its form is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from one_output import made

import tpcalc as tp
from tpcalc.dsl.vectors import Vector
from tpcalc.limit.scales import Scale, scales

Build = Callable[[tp.Tracer, Vector, Vector], object]
small = tp.n**-0.5


def scale(build: Build) -> Scale:
    return scales(made(build, "vw")).scale("q")


def twice(t: tp.Tracer, v: Vector, w: Vector) -> Vector:
    """W (2 v) - 2 W v, which is 0."""
    matrix = t.matrix("W")
    return small * (matrix @ (2 * v)) - 2 * small * (matrix @ v)


def split(t: tp.Tracer, v: Vector, w: Vector) -> Vector:
    """W (v + w) - W v - W w, which is 0."""
    matrix = t.matrix("W")
    return small * (matrix @ (v + w)) - small * (matrix @ v) - small * (matrix @ w)


same = tp.function("same", lambda z: 1.0 * z, lambda z: 1.0 + 0.0 * z, growth=1)


def undone(t: tp.Tracer, v: Vector, w: Vector) -> Vector:
    """Q^T Q v - v, which is 0 where Q keeps angles; between the products a function is the same."""
    matrix = t.matrix("Q", law="orthogonal")
    return small * (matrix.T @ same(small * (matrix @ v))) - v


def layers(t: tp.Tracer, v: Vector, w: Vector) -> Vector:
    h = small * (t.matrix("W") @ tp.relu(v))
    return small * (t.matrix("V") @ tp.tanh(h)) + v


CERTAIN: dict[str, Build] = {
    "start": lambda t, v, w: v,
    "constant": lambda t, v, w: t.gaussian("c", mean=2, var=0),
    "product": lambda t, v, w: t.matrix("W") @ v,
    "sum": lambda t, v, w: 2 * v - w,
    "gate": lambda t, v, w: tp.relu(v) * w,
    "mean of a square": lambda t, v, w: t.inner(v, v),
    "layers": layers,
    "fluctuation": lambda t, v, w: t.inner(v, tp.tanh(w)),
    "scalars": lambda t, v, w: 2 * t.inner(v, v) * t.inner(w, w),
    "powers": lambda t, v, w: v**3 * w**2 / t.inner(v, v),
}


@pytest.mark.parametrize("name", list(CERTAIN))
def test_certain(name: str) -> None:
    """And not 0 in a network either."""
    assert scale(CERTAIN[name]).certain
    for row in tp.simulate(made(CERTAIN[name], "vw"), widths=[256], seeds=2).rows:
        if row.statistic != "mean":
            assert min(np.abs(row.values)) > 0


OPEN: dict[str, Build] = {
    "difference": lambda t, v, w: tp.relu(v) - tp.relu(-v) - v,
    "equal members": lambda t, v, w: (lambda a, b: a - b)(
        *t.gaussians(["a", "b"], cov=[[1, 1], [1, 1]])
    ),
    "multiples": lambda t, v, w: (lambda a, b: a - 2 * b)(
        *t.gaussians(["a", "b"], cov=[[4, 2], [2, 1]])
    ),
    "moment": lambda t, v, w: t.inner(v, v) - 1,
    "moment of a cube": lambda t, v, w: t.moment(lambda z: z**3 + z, v - v**2),
}


@pytest.mark.parametrize("name", list(OPEN))
def test_not_certain(name: str) -> None:
    assert not scale(OPEN[name]).certain


def test_a_start_vector_without_variance_is_zero() -> None:
    found = scale(lambda t, v, w: t.gaussian("c", var=0))
    assert found.certain and found.power is None


ZERO: dict[str, Build] = {
    "negative argument": lambda t, v, w: tp.relu(-(v * v)),
    "twice": twice,
    "split": split,
    "undone": undone,
    "between": lambda t, v, w: tp.relu(-tp.sigmoid(v)) * w,
    "two gates": lambda t, v, w: tp.relu(v) * tp.relu(-v),
    "gates of one sign": lambda t, v, w: tp.relu(v) * (tp.abs(v) - v),
}


@pytest.mark.parametrize("name", list(ZERO))
def test_zeros_are_not_certain(name: str) -> None:
    assert not scale(ZERO[name]).certain
