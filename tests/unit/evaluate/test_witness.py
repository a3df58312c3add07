"""The coarse sample behind claims: it agrees with the limit, and its slopes with differences."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from one_output import made

import tpcalc as tp
from tpcalc.errors import TpcalcError
from tpcalc.evaluate.settle import settle
from tpcalc.evaluate.witness import BUDGETS, Law, Sweep, law
from tpcalc.limit.context import Claim
from tpcalc.limit.graph import LRef
from tpcalc.limit.scales import Scales, scales

H = Fraction(1, 2)


def back_and_forth(t: tp.Tracer) -> tp.Vector:
    """A correction by the transpose, then one by the matrix again."""
    W = t.matrix("W")
    h = tp.n**-H * (W @ tp.relu(t.gaussian("v")))
    g = tp.n**-H * (W.T @ tp.tanh(h))
    return tp.n**-H * (W @ (g + tp.relu(g)))


def rectangular(t: tp.Tracer) -> tp.Vector:
    W = t.matrix("W", rows=t.dim("m", Fraction(1, 4)))
    g = tp.n**-H * (W.T @ tp.tanh(tp.n**-H * (W @ t.gaussian("v"))))
    return g * g


def shared(t: tp.Tracer) -> tp.Vector:
    h, W = t.gaussian("v"), t.matrix("W")
    for _ in range(3):
        h = tp.tanh(tp.n**-H * (W @ h)) + h
    return h


def orthogonal(t: tp.Tracer) -> tp.Vector:
    W = t.matrix("W", law="orthogonal")
    g = tp.n**-H * (W.T @ tp.relu(tp.n**-H * (W @ t.gaussian("v"))))
    return tp.n**-H * (W @ tp.tanh(g))


def low_rank(t: tp.Tracer) -> tp.Vector:
    W = t.matrix("W", cols=t.dim("m", Fraction(1, 4)), law="orthogonal")
    v = t.gaussian("v")
    g = tp.n**-H * (W.T @ v)
    h = tp.n**-H * (W @ tp.relu(g))
    return tp.n**-H * (W.T @ tp.tanh(h + v))


def lengths(t: tp.Tracer) -> tp.Vector:
    v = t.gaussian("v")
    return tp.relu(v) * t.inner(v, tp.relu(v)) ** -H


PROGRAMS = {
    f.__name__: f for f in (back_and_forth, rectangular, shared, orthogonal, low_rank, lengths)
}


def derived(build: object) -> tuple[Scales, LRef]:
    run = scales(made(build, ""))  # type: ignore[arg-type]
    node = run.scale("q").node
    assert node is not None
    return run, node


@pytest.mark.parametrize("name", PROGRAMS)
def test_mean_squares_are_those_of_the_limit(name: str) -> None:
    run, node = derived(PROGRAMS[name])
    budget = BUDGETS[1]
    found = Sweep(run.context, budget, 0).run([node])[node]
    squares = np.mean(found.value[:, : budget.own] ** 2, axis=1)
    error = np.std(squares, ddof=1) / np.sqrt(len(squares))
    right = tp.limit(run.program)["q"].second_moment
    bias = 5.0 / budget.own  # of averages over as many samples
    assert abs(np.mean(squares) - right.value) < 5 * np.hypot(error, right.stderr) + bias


def square(t: tp.Tracer) -> tp.Scalar:
    u = t.gaussian("u")
    return t.inner(u, u)


def ties(t: tp.Tracer, *, apart: object) -> tp.Vector:
    u = t.gaussian("u")
    return tp.relu(u + 1) - tp.relu(u - 1) - apart


def few(t: tp.Tracer, *, less: float) -> tp.Vector:
    """v times relu(E relu(u) - less), which a few samples of u find to be 0 too often."""
    u, v = t.gaussian("u"), t.gaussian("v")
    return v * tp.relu(0 * u + t.mean(tp.relu(u)) - less)


def partly(t: tp.Tracer, *, above: float) -> tp.Vector:
    """What is a sampled 0 where c > above, and varies elsewhere."""
    c, v = t.gaussian("c"), t.gaussian("v")
    return (tp.step(c - above) * (square(t) - 1) + tp.step(above - c)) * v


@pytest.mark.parametrize(
    ("build", "points", "answer"),
    [
        (lambda t: few(t, less=0.35), (0.0,), Law.CLEAR),
        (lambda t: few(t, less=0.45), (0.0,), Law.ATOM),
        (lambda t: few(t, less=0.3989), (0.0,), None),
        (lambda t: partly(t, above=0), (0.0,), None),
        (lambda t: partly(t, above=1), (0.0,), None),
        (lambda t: ties(t, apart=1), (1.0,), Law.ATOM),
        (lambda t: ties(t, apart=1), (0.5,), Law.CLEAR),
        (lambda t: ties(t, apart=Fraction(3, 2)), (1.0,), Law.CLEAR),
        (lambda t: tp.relu(t.gaussian("u")), (0.0,), Law.ATOM),
        (lambda t: t.gaussian("u") * tp.tanh(t.gaussian("w")), (0.0,), Law.CLEAR),
        (lambda t: (square(t) - 1) * t.gaussian("v"), (0.0,), None),
        (back_and_forth, (0.0,), Law.CLEAR),
    ],
)
def test_mass_at_points(build: object, points: tuple[float, ...], answer: Law | None) -> None:
    run, node = derived(build)
    ((found, _),) = law(run.context, [Claim("clear", node, 0, points, "")])
    assert found is (answer or Law.DIM)


def test_a_claim_is_tested_once_and_kept() -> None:
    """W relu(2 u) - 2 W relu(u) is 0: the second derivation knows it, and claims nothing."""

    def build(t: tp.Tracer, u: tp.Vector, v: tp.Vector) -> tp.Vector:
        W = t.matrix("W")
        a, b = (tp.n**-H * (W @ tp.relu(k * u)) for k in (2, 1))
        return tp.step(a - 2 * b + tp.n**-H * v)

    program = made(build, "uv")
    first = scales(program)
    (claim,) = first.claims(["q"])
    assert claim.kind == "clear" and settle(first.context, [claim], 0)
    record = first.context.record
    assert record.verdicts[claim].holds is False
    again = scales(program, record=record)
    assert [one.kind for one in again.claims(["q"])] == ["told"]
    assert not settle(again.context, again.claims(["q"]), 0)
    assert not record.fault(again.claims(["q"]))


@pytest.mark.parametrize(("power", "right"), [(1, 0.5 / np.sqrt(2 * np.pi)), (2, 0.5)])
def test_powers_of_relu_where_the_leading_term_is_0(power: int, right: float) -> None:
    """The part of relu(c + n^(-1/2) v)^p - relu(c)^p on c = 0, which is half of the coordinates."""

    def build(t: tp.Tracer, u: tp.Vector, w: tp.Vector, v: tp.Vector) -> tp.Scalar:
        act, c = tp.relu_pow(power), tp.relu(u) * w
        return tp.n ** (H * power) * tp.mean(act(c + tp.n**-H * v) - act(c))

    found = tp.limit(made(build, "uwv"), samples=2**9, replicates=2048)["q"]
    assert found.stderr < 0.05
    assert abs(found.value - right) < 5 * found.stderr


@pytest.mark.parametrize(("by", "known"), [(0, False), (1, True)])
def test_a_direction_that_forms_show_must_bring_something_new(by: int, known: bool) -> None:
    """W (q x) - W x with q a sampled 1: to the form W x is a product of its own."""

    def build(t: tp.Tracer, x: tp.Vector, v: tp.Vector) -> tp.Vector:
        W = t.matrix("W")
        y = tp.n**-H * (W @ (t.inner(x, x) * x + by * tp.relu(x)) - W @ x)
        return tp.abs(y + tp.n**-1 * v) - tp.abs(y)

    order = tp.orders(made(build, "xv"))["q"]
    assert (order.status == "exact") is known


def test_a_part_that_was_sampled_beside_an_exact_0_is_not_told() -> None:
    """(q - 1) relu(x) + relu(z) with q a sampled 1: where z < 0 it is 0, on a half of it exactly.

    There the next term decides, so that the average is 1 / (2 (2 pi)^(1/2)).
    """

    def build(t: tp.Tracer, x: tp.Vector, z: tp.Vector, v: tp.Vector) -> tp.Scalar:
        y = (t.inner(x, x) - 1) * tp.relu(x) + tp.relu(z)
        return t.inner(tp.step(y + tp.n ** Fraction(-1, 4) * v), v)

    try:
        found = tp.limit(made(build, "xzv"))["q"]
    except TpcalcError as error:
        assert "on a part of the coordinates decides" in error.message
    else:
        assert abs(found.value - 0.5 / np.sqrt(2 * np.pi)) < 5 * found.stderr


def test_a_sum_that_is_on_a_jump_but_for_rounding_is_on_it() -> None:
    """step(h + |y| / 2 - y / 2 - h) is 1 where y < 0, and step(0) = 0 elsewhere."""

    jump = made(lambda t, h, y: tp.mean(tp.step((h + tp.abs(y) / 2 - y / 2) - h)), "hy")
    found = tp.limit(jump)["q"]
    assert abs(found.value - 0.5) <= 5 * found.stderr + 1e-9


@pytest.mark.parametrize("rescale", [False, True])
def test_a_sum_of_products_with_one_matrix_is_on_a_jump_but_for_rounding(rescale: bool) -> None:
    """relu(u) = (u + |u|) / 2, and so are their products with a matrix: the next term decides."""

    def build(t: tp.Tracer) -> None:
        u, v, matrix = t.gaussian("u"), t.gaussian("v"), t.matrix("W")
        parts = [matrix @ x for x in (tp.relu(u), u, tp.abs(u))]
        y = parts[0] - parts[1] / 2 - parts[2] / 2
        t.output("step", tp.mean(tp.step(y)))
        t.output("sign", t.inner(tp.sign(y + tp.n ** Fraction(-1, 2) * v), v))

    found = tp.limit(tp.program(build), rescale=rescale)
    assert found["step"].value == 0
    assert abs(found["sign"].value - np.sqrt(2 / np.pi)) <= 5 * found["sign"].stderr


def test_what_hangs_on_no_part_of_the_coordinates_is_not_random() -> None:
    """A smaller term with a random number would decide where tanh(u) v is 0, which is nowhere."""

    def build(t: tp.Tracer, *given: tp.Vector) -> tp.Scalar:
        u, v, w, a, b = given
        random = tp.n ** Fraction(1, 2) * t.inner(a, b)
        return tp.mean(tp.step(tp.tanh(u) * v + tp.n ** Fraction(-1, 4) * random * w))

    found = tp.limit(made(build, "uvwab"))["q"]
    assert found.std is None
    assert abs(found.value - 0.5) <= 5 * found.stderr
