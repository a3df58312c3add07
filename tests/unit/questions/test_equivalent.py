"""Whether two programs are the same, at finite width and in the limit."""

from __future__ import annotations

import pytest

import tpcalc as tp
from tpcalc.errors import UsageError
from tpcalc.results import Equivalence

XI = ((0.6, -0.3, 0.5, 0.2), (0.1, 0.7, -0.2, 0.9))


def trained(parameterization: str, act: str, lr: float, steps: int = 2) -> tp.Program:
    return tp.train(
        tp.MLP(3, act, bias="first"),
        parameterization,
        tp.Samples(XI, ((0.0,),) * 2),
        steps=steps,
        lr=lr,
        loss="linear",
        watch=("dh",),
    )


@tp.program
def sum_first(t: tp.Tracer) -> None:
    v, u, w = t.gaussian("v"), t.gaussian("u"), t.matrix("W")
    t.output("h", tp.n**-0.5 * (w @ tp.tanh(v + 2 * u)))


@tp.program
def product_first(t: tp.Tracer) -> None:
    u, v, w = t.gaussian("u"), t.gaussian("v"), t.matrix("W")
    t.output("h", tp.n**-0.5 * (w @ tp.tanh(u + v + u)))


@tp.program
def other_function(t: tp.Tracer) -> None:
    u, v, w = t.gaussian("u"), t.gaussian("v"), t.matrix("W")
    t.output("h", tp.n**-0.5 * (w @ tp.tanh(v + u)))


@tp.program
def other_form(t: tp.Tracer) -> None:
    u, v, w = t.gaussian("u"), t.gaussian("v"), t.matrix("W")
    t.output("h", tp.n**-0.5 * (w @ (-1 * tp.tanh(-1 * v - 2 * u))))


@tp.program
def other_matrix(t: tp.Tracer) -> None:
    u, v, w = t.gaussian("u"), t.gaussian("v"), t.matrix("M")
    t.output("h", tp.n**-0.5 * (w @ tp.tanh(v + 2 * u)))


@tp.program
def small_extra(t: tp.Tracer) -> None:
    u, v, w = t.gaussian("u"), t.gaussian("v"), t.matrix("W")
    t.output("h", tp.n**-0.5 * (w @ tp.tanh(v + 2 * u)) + tp.n**-0.5 * v)


def compared(first: tp.Program, second: tp.Program, **options: object) -> Equivalence:
    given: dict[str, object] = {"widths": (16, 32, 64), "seeds": 3, "samples": 2**12, **options}
    return tp.equivalent(first, second, **given)  # type: ignore[arg-type]


def test_terms_in_another_order_are_the_same() -> None:
    found = compared(sum_first, product_first)
    assert (found.at_finite_width, found.in_the_limit) == (True, "same graph")


def test_another_form_is_equal_by_numbers() -> None:
    """-tanh(-z) is tanh(z): the graphs do not show it, networks and numbers do."""
    found = compared(sum_first, other_form)
    assert (found.at_finite_width, found.in_the_limit) == (True, "equal within errors")
    row = found["h"]
    assert row.left is not None
    assert row.z is not None
    assert row.z < 5


@pytest.mark.parametrize("second", [other_function, other_matrix])
def test_what_differs_is_seen(second: tp.Program) -> None:
    """Another function has another law; another matrix the same law and another graph."""
    found = compared(sum_first, second)
    assert found.at_finite_width is False
    same_law = second is other_matrix
    assert found.in_the_limit == ("equal within errors" if same_law else "different")


def test_what_vanishes_is_no_difference_in_the_limit() -> None:
    found = compared(sum_first, small_extra, widths=(64, 256, 1024), seeds=8)
    assert (found.at_finite_width, found.in_the_limit) == (False, "same graph")
    fit = found["h"].slope
    assert fit is not None
    assert fit.slope == pytest.approx(-0.75, abs=0.4)


def test_without_networks() -> None:
    found = compared(sum_first, product_first, widths=())
    assert found.at_finite_width is None
    assert found.in_the_limit == "same graph"


def test_names_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match="no output of the same name"):
        tp.equivalent(sum_first, trained("mup", "relu", 1.0))
    with pytest.raises(UsageError, match="g is not an output of both"):
        tp.equivalent(sum_first, product_first, outputs=["g"])


def test_S0_24_case22_hp_is_ip_llr_at_finite_width() -> None:
    """Proposition 4.1: f_1 and f_2 up to rounding (case 22), f_0 not."""
    found = tp.equivalent(trained("ip-llr", "relu", 4.0), trained("hp", "relu", 4.0), seeds=2)
    later = [row for row in found.rows if row.name.startswith(("f[1", "f[2"))]
    assert len(later) == 2
    assert all(row.equal and max(row.gaps) < 1e-12 for row in later)
    assert found["f[0,0]"].equal is False
    assert found["f[0,0]"].relation == "both 0"
    assert found["dh[2,0,0]"].relation == "another power"
    assert {row.relation for row in later} == {"same graph"}


def test_S0_25_hpz_has_the_limit_of_ip_llr() -> None:
    """Theorem 4.2, p = 2: one limit graph, networks that differ."""
    pair = trained("ip-llr:2", "relu^2", 0.01), trained("hpz", "relu^2", 0.01)
    found = tp.equivalent(*pair, seeds=2, outputs=["f[0,0]", "f[1,0]", "f[2,0]", "dh[2,2,0]"])
    assert (found.at_finite_width, found.in_the_limit) == (False, "same graph")


def test_S0_25_needs_smoothness_from_the_second_step_on() -> None:
    """For relu coordinates of h_1 are 0 half the time, and only IP-LLR then has a next term."""
    pair = trained("ip-llr", "relu", 4.0), trained("hpz", "relu", 4.0)
    found = tp.equivalent(*pair, widths=(), samples=2**15, outputs=["f[1,0]", "f[2,0]"])
    assert found["f[1,0]"].relation == "same graph"
    assert found["f[2,0]"].relation == "different"


def test_vectors_are_told_apart_by_their_means() -> None:
    @tp.program
    def signed(t: tp.Tracer) -> None:
        t.output("y", t.gaussian("u"))

    @tp.program
    def one_sided(t: tp.Tracer) -> None:
        t.output("y", 2**0.5 * tp.relu(t.gaussian("u")))

    row = compared(signed, one_sided, widths=())["y"]
    assert row.relation == "different"  # E Z^2 is 1 in both
    assert row.left is not None and row.right is not None
    assert (row.left.value, round(row.right.value, 6)) == (0.0, round(3.141592653589793**-0.5, 6))


@pytest.mark.parametrize(("act", "relation"), [("tanh", "different"), ("relu", "same graph")])
def test_what_stays_random_is_not_equal_by_its_mean(act: str, relation: str) -> None:
    data = tp.Samples(XI[:1], ((0.0,),))
    first, second = (
        tp.train(tp.MLP(2, name), "ntk", data, steps=0, watch=()) for name in ("relu", act)
    )
    found = compared(first, second, widths=())
    assert found["f[0,0]"].relation == relation
    assert bool(found.notes) is (act == "tanh")


def test_a_random_scalar_of_other_draws_is_not_compared() -> None:
    @tp.program
    def one(t: tp.Tracer) -> None:
        t.output("s", tp.n**0.5 * t.mean(t.gaussian("u")))

    @tp.program
    def other(t: tp.Tracer) -> None:
        t.output("s", tp.n**0.5 * t.mean(t.gaussian("v")))

    found = compared(one, other, widths=())
    assert found.in_the_limit == "not compared"
