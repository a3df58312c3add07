"""Laws that have a density by their form: a slope times what has a direction of its own."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from agree import agree
from one_output import made

import tpcalc as tp
from tpcalc.dsl import Scalar
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import LimitError

Build = Callable[[tp.Tracer, Vector, Vector, Vector], Vector]
STEP = 1 / math.sqrt(2 * math.pi)  # E[w step(w)], w ~ N(0, 1)


def jumps(build: Build) -> tp.Limit:
    """The mean of w step(y + n^(-1/2) w), which is STEP times the share on which y is 0."""

    def jump(t: tp.Tracer, u: Vector, v: Vector, w: Vector) -> Scalar:
        y = build(t, u, v, t.matrix("W") @ tp.tanh(u))
        return t.inner(tp.step(y + tp.n**-0.5 * w), w)

    return tp.limit(made(jump, "uvw"), samples=2**12, seed=1)


# y is 0 on no part of the coordinates, though no factor of it says so by itself.
DENSE: dict[str, Build] = {
    "slope": lambda t, u, v, z: tp.sigmoid(v) * z * tp.n**-0.5,
    "slope with a zero": lambda t, u, v, z: v**2 * tp.swish(v) * z * tp.n**-0.5,
    "sum of slopes": lambda t, u, v, z: tp.softplus(v) * u + tp.sin(v) * z * tp.n**-0.5,
    "centred": lambda t, u, v, z: tp.gelu(v) - tp.mean(tp.gelu(v)),
    "two pieces": lambda t, u, v, z: tp.elu(v) * u,
    "beside a jump": lambda t, u, v, z: tp.tanh(v) + tp.step(v * u),
}


@pytest.mark.parametrize("name", DENSE)
def test_a_slope_that_is_almost_nowhere_zero_leaves_a_density(name: str) -> None:
    limit = jumps(DENSE[name])
    assert limit["q"].value == 0 and not limit.table.notes[1:]


def proportional(t: tp.Tracer, u: Vector, v: Vector, z: Vector) -> Vector:
    """A slope times W relu(2 u) - 2 W relu(u), which is 0."""
    w = t.matrix("V")
    return tp.gaussian(v) * (w @ tp.relu(2 * u) - 2 * (w @ tp.relu(u)))


# y is 0 on the share that stands behind it.
ATOMS: dict[str, tuple[Build, float]] = {
    "a gate": (lambda t, u, v, z: tp.relu(v) * u, 0.5),
    "a slope of two values": (lambda t, u, v, z: (1 + tp.sign(v)) * tp.gelu(u), 0.5),
    "one direction twice": (lambda t, u, v, z: tp.sigmoid(v) * z - z * tp.sigmoid(v), 1.0),
    "proportional": (proportional, 1.0),
}


@pytest.mark.parametrize("name", ATOMS)
def test_what_only_seems_to_vary_has_none(name: str) -> None:
    build, share = ATOMS[name]
    try:
        found = jumps(build)["q"]
    except LimitError:
        return  # to refuse is right as well: nothing says that there is a density
    agree(found, STEP * share)
