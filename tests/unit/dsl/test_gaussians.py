"""Joint laws of start vectors."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tpcalc.dsl import Tracer, program
from tpcalc.errors import TraceError
from tpcalc.evaluate.limit import limit
from tpcalc.program.nodes import Family, Input, members
from tpcalc.program.program import Program


def traced(function: Callable[[Tracer], Any]) -> Program:
    @program
    def whole(t: Tracer) -> None:
        for i, vector in enumerate(function(t)):
            t.output(f"v{i}", vector)

    return whole.build()


def test_one_vector() -> None:
    found = traced(lambda t: [t.gaussian("x", mean=0.5, var=2)])
    assert found.groups == (Family.group("x", "n", (0.5,), ((Fraction(2),),)),)
    assert found.nodes == (Input(Family.group("x", "n", (0.5,), ((Fraction(2),),))),)


def test_a_standard_vector_has_no_covariance_written() -> None:
    assert traced(lambda t: [t.gaussian("x")]).groups == (Family.group("x", "n", (Fraction(0),)),)
    identity = traced(lambda t: t.gaussians(["a", "b"], cov=np.eye(2)))
    assert identity.groups[0].cov is None


def test_vectors_in_order_on_a_dimension() -> None:
    def function(t: Tracer) -> Any:
        t.dim("d", 2)
        return t.gaussians(["a", "b", "c"], mean=[1, 2.5, 3], cov=2 * np.eye(3, dtype=int), dim="d")

    found = traced(function)
    (group,) = found.groups
    assert (group.dim, group.mean) == ("d", (Fraction(1), 2.5, Fraction(3)))
    assert group.cov[0] == (Fraction(2), Fraction(0), Fraction(0))
    assert found.nodes == members(group) == tuple(Input(group, i) for i in range(3))


@pytest.mark.parametrize(
    "cov",
    [
        [[1, 1], [1, 1]],
        [[0, 0], [0, 0]],
        np.ones((2, 2)),
        [[Fraction(1, 3), Fraction(1, 3)], [Fraction(1, 3), Fraction(1, 3)]],
    ],
)
def test_singular_covariances_are_fine(cov: Any) -> None:
    group = traced(lambda t: t.gaussians(["a", "b"], cov=cov)).groups[0]
    assert [[float(value) for value in row] for row in group.cov] == pytest.approx(
        np.asarray(cov, dtype=float)
    )


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(1, 3)),
        elements=st.floats(-1e3, 1e3, allow_subnormal=False),
    ),
    st.booleans(),
)
def test_every_gram_matrix_is_taken_exactly_symmetric(rows: Any, single: bool) -> None:
    gram = rows @ rows.T
    if single:
        gram = (rows.astype(np.float32) @ rows.T.astype(np.float32)) * np.float32(0.1)
    found = traced(lambda t: t.gaussians([f"u{i}" for i in range(len(rows))], cov=gram)).groups[0]
    if found.cov is not None:
        array = np.array([[float(value) for value in row] for row in found.cov])
        assert (array == array.T).all()
        assert np.allclose(array, gram, atol=1e-5 * abs(gram).max())


def test_rounding_is_averaged_away() -> None:
    cov = [[1.0, 0.5], [0.5 + 1e-12, 1.0]]
    group = traced(lambda t: t.gaussians(["a", "b"], cov=cov)).groups[0]
    assert group.cov[0][1] == group.cov[1][0] == pytest.approx(0.5)


def single(shift: float) -> Any:
    """A Gram matrix of rank 3 in single precision, and so far below."""
    rows = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    return rows @ rows.T - np.float32(shift) * np.eye(5, dtype=np.float32)


@pytest.mark.parametrize("store", [np.asarray, lambda c: c.astype(float), lambda c: c.tolist()])
def test_the_rounding_of_single_precision_is_moved_and_told(store: Callable[[Any], Any]) -> None:
    names, cov = list("abcde"), store(single(0))
    found = traced(lambda t: t.gaussians(names, cov=cov))
    lowest = np.linalg.eigvalsh(np.asarray(cov, dtype=float))[0]
    assert found.groups[0].moved == pytest.approx(-lowest) and lowest < 0
    (note,) = found.notes
    assert f"smallest eigenvalue {lowest:.3g}" in note
    assert note in limit(found, outputs=["v0"]).table.notes
    kept = np.array(found.groups[0].cov, dtype=float)
    assert np.linalg.eigvalsh(kept)[0] >= -1e-14
    assert np.abs(kept - np.asarray(cov)).max() <= -2 * lowest


def test_what_rounding_does_not_explain_is_refused() -> None:
    """Twenty times single precision can do here: 2^-23 times 5 times the trace is 7.7e-6."""
    with pytest.raises(TraceError, match=r"eigenvalue is -0.00015.* explains -7.7e-06 at most"):
        traced(lambda t: t.gaussians(list("abcde"), cov=single(1.5e-4)))
    double = np.random.default_rng(0).normal(size=(5, 3))
    shifted = double @ double.T - 1e-6 * np.eye(5)
    with pytest.raises(TraceError, match="not positive semidefinite"):
        traced(lambda t: t.gaussians(list("abcde"), cov=shifted))
    assert traced(lambda t: t.gaussians(list("abcde"), cov=double @ double.T)).notes == ()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t: t.gaussians(["a", "b"], cov=[[1, 2], [2, 1]]), "not positive semidefinite.*-1"),
        (lambda t: t.gaussians(["a"], cov=[[-1]]), "not positive semidefinite"),
        (lambda t: t.gaussians(["a", "b"], cov=[[0, 1], [1, 0]]), "not positive semidefinite"),
        (
            lambda t: t.gaussians(["a", "b"], cov=[[1, 0.5], [0.4, 1]]),
            "not symmetric: 'a' with 'b' is 0.5 and the other way round 0.4",
        ),
        (lambda t: t.gaussians(["a", "b"], cov=np.eye(3)), "must be 2 x 2, not 3 rows of length 3"),
        (lambda t: t.gaussians(["a", "b"], cov=[[1], [0, 1]]), "2 rows of length 1, 2"),
        (lambda t: t.gaussians(["a"], cov=[]), "not 0 rows of length 0"),
        (lambda t: t.gaussians(["a"], cov=3), "cov must be a list of numbers, not the number 3"),
        (lambda t: t.gaussians(["a"], cov=[3]), "a row of the covariance must be a list"),
        (lambda t: t.gaussians(["a"], cov=[[float("nan")]]), "of 'a' and 'a': the number nan"),
        (lambda t: t.gaussians(["a"], cov=[["x"]]), "must be a number, not 'x'"),
        (lambda t: t.gaussians(["a", "b"], mean=[1]), "2 vectors and 1 means"),
        (lambda t: t.gaussians(["a"], mean=1), "must be a list of numbers, not the number 1"),
        (lambda t: t.gaussians(["a"], mean=[float("inf")]), "the mean of 'a': the number inf"),
        (lambda t: t.gaussians("ab"), "a list, not the text 'ab'"),
        (lambda t: t.gaussians(3), "a list, not the number 3"),
        (lambda t: t.gaussians(["a", "a"]), "already an input called 'a'"),
        (lambda t: [t.gaussian("a", var=-1)], "variance of 'a' is -1, which is negative"),
        (lambda t: [t.gaussian("a", var=[1])], "variance of 'a' must be a real number"),
        (lambda t: [t.gaussian("a", dim="d")], "no dimension class called 'd'"),
    ],
)
def test_refusals_name_the_line(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        traced(function)
    first = function.__code__.co_firstlineno
    assert caught.value.where in {f"test_gaussians.py:{line}" for line in (first, first + 1)}


def test_no_vectors() -> None:
    @program
    def empty(t: Tracer) -> None:
        assert t.gaussians([]) == []
        t.output("x", t.gaussian("x"))

    assert len(empty.build().groups) == 1
