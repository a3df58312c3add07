"""Sums of correlated start vectors: which of them have a direction of their own."""

from __future__ import annotations

import pytest

import tpcalc as tp


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
