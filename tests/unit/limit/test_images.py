"""Sums of correlated vectors: which of them have a direction of their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from one_output import made
from unit.limit.test_certainty import same, undone

import tpcalc as tp
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import LimitError

Build = Callable[..., Vector]


def _gate(cov: list[list[float]]) -> tp.Program:
    """relu'(2 u + n^(-1/2) noise) for correlated u, v, and the same of a sum that may be 0."""

    @tp.program
    def program(t: tp.Tracer) -> None:
        u, v = t.gaussians(["u", "v"], cov=cov)
        w = t.gaussian("w")
        small = tp.n**-0.5 * w
        t.output("one", t.mean(tp.step(2 * u + small)))
        t.output("gap", t.mean(tp.step(2 * (u - v) + small)))

    return program


def test_a_multiple_of_a_correlated_start_vector_has_a_density() -> None:
    found = tp.limit(_gate([[1, 0.5], [0.5, 1]]))
    assert found["one"].value == pytest.approx(0.5) and found["one"].method.value == "exact"
    assert found["gap"].value == pytest.approx(0.5) and found["gap"].method.value == "exact"


def test_equal_start_vectors_have_no_density_between_them() -> None:
    """u = v: the small term decides the step, which a density of u - v would have hidden."""
    found = tp.limit(_gate([[1, 1], [1, 1]]))["gap"]
    assert found.method.value == "particles"  # the part that lives where u - v is 0
    assert found.value == pytest.approx(0.5, abs=1e-3)  # not the step of 0, which is 0


def _twice(t: tp.Tracer, v: Vector, w: Vector) -> Vector:
    """W v - W v, of which forms do not see that both are the same."""
    matrix = t.matrix("W")
    return tp.n**-0.5 * (matrix @ v) - tp.n**-0.5 * (matrix @ same(v))


def _nothing(t: tp.Tracer, v: Vector, w: Vector) -> Vector:
    """W of 0: one of two gates is shut."""
    return tp.n**-0.5 * (t.matrix("W") @ (tp.relu(v) * tp.relu(-v)))


def _nothings(t: tp.Tracer, v: Vector, w: Vector) -> Vector:
    """V 0 + W 0: that each has a direction of its own does not help."""
    zeros = tp.relu(v) * tp.relu(-v), tp.relu(2 * v) * tp.relu(-v)
    first, second = (t.matrix(name) @ zero for name, zero in zip("VW", zeros, strict=True))
    return tp.n**-0.5 * first + tp.n**-0.5 * second


def _gap(zero: Build) -> tp.Program:
    return made(lambda t, v, w: t.mean(tp.step(zero(t, v, w) + tp.n**-0.5 * w)), "vw")


@pytest.mark.parametrize("zero", [_twice, _nothing, _nothings])
def test_products_that_are_0_have_no_density(zero: Build) -> None:
    """They leave the step to the small term, whose sign is as often one as the other."""
    assert tp.limit(_gap(zero), samples=2**12)["q"].value == pytest.approx(0.5, abs=1e-3)


def test_what_a_haar_matrix_undoes_has_no_density_beside_what_it_was() -> None:
    """No number is told: samples find the argument at 0 but for rounding."""
    with pytest.raises(LimitError, match="may be 0"):
        tp.limit(_gap(undone), samples=2**12)
