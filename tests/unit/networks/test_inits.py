"""Inits and rates as a user writes them: powers of n in one's own gauge."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy_run import draw, run

import tpcalc as tp
from tests.gauges import equivalent_gauge
from tpcalc.errors import StudyError, TraceError, UsageError
from tpcalc.exponents import as_ex
from tpcalc.networks.network import written
from tpcalc.networks.tracer import scaled
from tpcalc.theorems.integrable.predicates.registry import applicable

DATA = tp.Samples(((1.0, 0.5), (0.3, -1.0)), ((1.0,), (-1.0,)))


def net(
    t: Any, x: Any, inits: Any = (), rates: Any = (1, 1, 1), number: str = "", bias: Any = "zero"
) -> Any:
    """Two layers with powers of their own."""
    first, hidden, last = [f"{number} {power}" for power in inits] if inits else (None,) * 3
    h = t.linear(t.n, "in", bias, name="u", init=first, rates=(rates[0], rates[0]))(x)
    h = t.linear(t.n, t.n, name="w", init=hidden, rates=(rates[1], 1))(tp.relu(h))
    return t.linear(t.outputs, t.n, name="v", init=last, rates=(rates[2], 1))(tp.relu(h))


MUP = {"inits": ("n^0", "n^(-1/2)", "n^-1"), "rates": ("n", 1, "n^(-1)")}
NTK = {"inits": ("n^0", "n^(-1/2)", "n^(-1/2)"), "rates": ("1", "n^(-1)", "n^(-1)")}
STANDARD = {"inits": ("n^0", "n^(-1/2)", "n^(-1/2)"), "rates": (1, 1, 1)}


@pytest.mark.parametrize(("name", "own"), [("mup", MUP), ("ntk", NTK), ("standard:0", STANDARD)])
@pytest.mark.parametrize("steps", [0, 2])
def test_a_table_in_the_gauge_without_multipliers_is_that_table(
    name: str, own: dict[str, Any], steps: int
) -> None:
    found = tp.train(tp.network(net, **own), "own", DATA, steps=steps)
    assert str(found) == str(tp.train(tp.network(net), name, DATA, steps=steps))


ADAM_MUP = {"inits": ("n^0", "n^(-1/2)", "n^-1"), "rates": (1, "n^-1", "n^-1")}
ADAM_STANDARD = {"inits": ("n^0", "n^(-1/2)", "n^(-1/2)"), "rates": (1, 1, 1)}


@pytest.mark.parametrize(("name", "own"), [("mup", ADAM_MUP), ("standard:0", ADAM_STANDARD)])
@pytest.mark.parametrize("optimizer", ["adam", "sign"])
def test_a_table_for_entrywise_optimizers_is_that_of_the_weights_themselves(
    name: str, own: dict[str, Any], optimizer: str
) -> None:
    """The steps of W are those of its own optimizer: c = -b for entries of n^b."""
    found = tp.train(tp.network(net, **own), "own", DATA, steps=2, optimizer=optimizer)
    assert str(found) == str(tp.train(tp.network(net), name, DATA, steps=2, optimizer=optimizer))


@pytest.mark.parametrize(("optimizer", "rate"), [("sgd", 4), ("sign", 2)])
def test_a_number_in_an_init_is_one_at_the_start_alone(optimizer: str, rate: int) -> None:
    """W = s w with the rate of W: that of w is 1 / s^2 of it, and 1 / s for entrywise steps."""
    own = tp.network(net, **{**STANDARD, "number": "1/2"})
    marks = {mark.label: mark for mark in own.marks if not mark.bias}
    assert {(mark.start, mark.rate) for mark in marks.values()} == {(0.5, 4)}

    def same(t: Any, x: Any) -> Any:
        def linear(out: Any, into: Any, name: str, bias: Any = False) -> Any:
            return t.linear(
                out, into, bias, name=name, factors=(Fraction(1, 2), 1), rates=(rate, 1)
            )

        h = linear(t.n, "in", "u", "zero")(x)
        h = linear(t.n, t.n, "w")(tp.relu(h))
        return linear(t.outputs, t.n, "v")(tp.relu(h))

    found = tp.train(own, "own", DATA, steps=2, optimizer=optimizer)
    wanted = tp.train(tp.network(same), "standard:0", DATA, steps=2, optimizer=optimizer)
    rows = [tp.simulate(p, widths=(16,), seeds=1, backend="lazy").rows for p in (found, wanted)]
    for one, other in zip(*rows, strict=True):
        assert one.name == other.name
        assert one.values[0] == pytest.approx(other.values[0], rel=1e-12)


def test_it_is_gradient_descent_on_the_weights_themselves() -> None:
    """By hand, with entries of 2 n^(-1/2) and so on, and the steps as they are written."""
    width, rng = 7, np.random.default_rng(5)
    inits, rates = ("n^0", "n^(-1/2)", "n^(-1)"), ("2 n^(1/2)", "1/3", "n^(-1)")
    own = tp.network(net, inits=inits, rates=rates, number="2", bias=False)
    program = tp.train(own, "own", DATA, steps=2, lr=0.25)
    draws = draw(program, width, rng)
    values = run(program, width, draws)
    u = 2 * np.stack([draws["u[0]"], draws["u[1]"]], 1)
    w, v = 2 * width**-0.5 * draws["w"], 2 / width * draws["v[0]"]
    for step in range(3):
        x, (y,) = np.array(DATA.inputs[step % 2]), DATA.targets[step % 2]
        h = u @ x
        a = np.maximum(h, 0)
        g = w @ a
        b = np.maximum(g, 0)
        f = v @ b
        assert values[f"f[{step},0]"] == pytest.approx(f, rel=1e-10)
        chi = 0.25 * (f - y)
        dg = v * (g > 0)
        dh = (w.T @ dg) * (h > 0)
        u, w, v = (
            u - 2 * width**0.5 * chi * np.outer(dh, x),
            w - chi / 3 * np.outer(dg, a),
            v - chi / width * b,
        )


def test_questions_take_an_own_gauge() -> None:
    own = tp.network(net, **MUP)
    found, mup = tp.check(own, "own", steps=1), tp.check(net, "mup", steps=1)
    assert (found.verdict, found.layers) == (mup.verdict, mup.layers)
    assert not any("at this depth it is" in note for note in found.notes)
    rates = tp.solve(tp.network(net, **MUP, bias=False), "own", steps=1, verify=False)
    assert rates.steps[0].c == ("-1", "0", "1")  # of W itself
    X = [[1.0, 0.5], [0.3, -1.0]]
    for method in ("auto", "quadrature"):
        kernels = tp.kernel(tp.network(net, **NTK), X, parameterization="own", method=method)
        same = tp.kernel(net, X, method=method)
        assert kernels.ntk == pytest.approx(same.ntk, rel=kernels.error + same.error)
    vanishing = tp.network(net, inits=("1", "n^(-1)", "n^-1"), rates=("n^(-2)",) * 3)
    assert tp.check(vanishing, "own", steps=1).verdict == "trivial"


def test_vectors_biases_and_fused_parameters_have_inits() -> None:
    @tp.network
    def many(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", "0.1", name="u", init=1)(x) + t.vector("b", init="2", rate="n^1")
        a, b = t.fused({"a": (t.n, t.n), "b": (t.n, t.n)}, init=tp.n ** "-1/2", name="w")(
            tp.relu(h)
        )
        return t.linear(t.outputs, t.n, "zero", name="v", init=0)(a * b)

    marks = {(mark.label, mark.bias): mark for mark in many.marks}
    assert (marks["u", True].start, marks["u", True].init) == (Fraction(1, 10), as_ex(0))
    assert (marks["b", True].start, str(marks["b", True].speed)) == (2, "1")
    assert {str(marks[label, False].init) for label in ("w.a", "w.b")} == {"-1/2"}
    assert marks["v", False].at_zero
    program = written(many, 2, 1)
    assert tp.parse(str(program)) == program


def test_a_parameterization_that_knows_the_init_takes_it() -> None:
    """That of the table is the same in either gauge where no multiplier is left over."""
    known = tp.network(net, inits=MUP["inits"])
    assert str(tp.train(known, "mup", DATA)) == str(tp.train(net, "mup", DATA))


@pytest.mark.parametrize(
    ("source", "name", "words"),
    [
        (tp.network(net, **NTK), "mup", r"mup starts v at n\^\(-1\), .* says n\^\(-1/2\)"),
        (tp.network(net, **MUP), "ntk", r"ntk starts v at n\^\(-1/2\), .* says n\^\(-1\)"),
        (tp.network(net), "own", "u has no init"),
        (tp.MLP(2), "own", "1 has no init"),
    ],
)
def test_an_init_that_a_parameterization_does_not_know(source: Any, name: str, words: str) -> None:
    with pytest.raises(StudyError, match=words) as caught:
        tp.train(source, name, DATA)
    assert ".py:" in str(caught.value.where)
    assert "own" in str(caught.value) or "init=" in str(caught.value)


@pytest.mark.parametrize(
    "question",
    [
        lambda: applicable(tp.MLP(2), "own", derive=False),
        lambda: equivalent_gauge("own", "mup", 3),
    ],
)
def test_what_asks_for_tables_of_layers(question: Callable[[], object]) -> None:
    with pytest.raises((StudyError, UsageError), match="single parameters"):
        question()


@pytest.mark.parametrize("init", ["", "n^(a)", "m^(1/2)", "-1", -1, "nan", tp.L, [1]])
def test_what_is_no_init(init: Any) -> None:
    with pytest.raises(TraceError, match="It is a number from 0, a power of n, or both"):
        written(tp.network(lambda t, x: t.linear(1, "in", init=init, name="w")(x)), 2, 1)


@pytest.mark.parametrize(
    ("text", "number", "power"),
    [
        ("n", "1", "1"),
        ("2 n^-1", "2", "-1"),
        ("1/3*n**(-3/2)", "1/3", "-3/2"),
        ("1e-2", "1/100", "0"),
        ("0.5n^(1/2)", "1/2", "1/2"),
    ],
)
def test_texts(text: str, number: str, power: str) -> None:
    found = scaled(text, "init")
    assert (str(found[0]), str(found[1])) == (number, power)
