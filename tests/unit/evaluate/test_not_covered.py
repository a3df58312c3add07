"""One output that the calculus does not cover is a row: the others have their numbers."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tests.clock import cpu_time
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import EvaluationError, LimitError, ScaleError, TpcalcError
from tpcalc.results import codec
from tpcalc.views.numbers import typeset
from tpcalc.views.tables import alone_tables, limit_tables

HALF = Fraction(1, 2)
small, large = tp.n**-HALF, tp.n**HALF
BENT = tp.function(
    "bent",
    lambda z: np.where(z > 0, 2 * np.tanh(z), np.tanh(z)),
    lambda z: np.where(z > 0, 2.0, 1.0) / np.cosh(z) ** 2,
    kinks=(0.0,),
)
Build = Callable[[tp.Tracer, Vector, Vector, Vector], object]

# Each with the error, what it says, and the text of the node where the calculus ends.
REFUSED: dict[str, tuple[Build, type[TpcalcError], str, str]] = {
    "grows": (
        lambda t, u, v, w: large * t.inner(u, u),
        ScaleError,
        r"grows like n\^\(1/2\), unless its moment vanishes.*rescale=True",
        "scale",
    ),
    "explodes": (
        lambda t, u, v, w: t.mean(tp.tanh(large * u)),
        ScaleError,
        r"its argument explodes like n\^\(1/2\)",
        "{tanh(x0)}",
    ),
    "faster": (
        lambda t, u, v, w: t.mean(tp.exp(large * u)),
        ScaleError,
        "grows faster than any power",
        "{exp(x0)}",
    ),
    "near 0": (
        lambda t, u, v, w: 1 / (v + small * w),
        ScaleError,
        "coordinates may be near 0",
        "{x0**(-1)}",
    ),
    "two slopes": (
        lambda t, u, v, w: BENT(small * v),
        ScaleError,
        "two slopes at 0",
        "bent",
    ),
    "outer": (
        lambda t, u, v, w: t.outer(lambda x, y: tp.tanh(x * y), large * u, v, w),
        ScaleError,
        "an outer function tanh.* of what is not of order one",
        "outer",
    ),
    "fluctuates": (
        lambda t, u, v, w: (
            v + large * t.inner(tp.tanh(small * (t.matrix("W") @ v)), tp.tanh(w)) * w
        ),
        LimitError,
        "takes the average of x0.x1, of expectation 0 by symmetry: the law of such",
        "sum 1*%",
    ),
    "kink": (
        lambda t, u, v, w: tp.n**0.75 * t.mean(tp.relu(three(u, v, w)) - tp.relu(two(v, w))),
        LimitError,
        "depends on terms .* sit on a kink",
        "{relu(x0)}",
    ),
    "infinite": (lambda t, u, v, w: t.mean(tp.exp(u * u)), EvaluationError, "is infinite", ""),
    "infinite factor": (
        lambda t, u, v, w: large * t.mean(u) * t.mean(tp.exp(v * v)),
        EvaluationError,
        "is infinite",
        "",
    ),
    "infinite second moment": (
        lambda t, u, v, w: tp.exp(u * u / 4) * v,
        LimitError,
        "is infinite",
        "map {x0*x1}",
    ),
    "sampled zero": (
        lambda t, u, v, w: t.inner(v, v) / (t.inner(u, u) ** 3 - t.mean(tp.relu(u) ** 2) * 2),
        LimitError,
        "rests on a division by a number",
        "map {s0*s1**(-1)} (; %",
    ),
}


def two(v: Vector, w: Vector) -> Vector:
    return tp.relu(v) + small * tp.relu(w)


def three(u: Vector, v: Vector, w: Vector) -> Vector:
    return two(v, w) + tp.n**-0.75 * u


def program(*builds: Build) -> tp.Program:
    @tp.program
    def made(t: tp.Tracer) -> None:
        u, v, w = (t.gaussian(name) for name in "uvw")
        t.output("ok", t.inner(tp.relu(u), tp.relu(u)))
        for index, build in enumerate(builds):
            t.output(f"y{index}", build(t, u, v, w))

    return made.build()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_covered_is_a_row(name: str) -> None:
    build, kind, says, term = REFUSED[name]
    found = tp.limit(program(build), samples=2**8)
    (row,) = found.table.uncovered
    assert found["ok"].value == 0.5
    assert row.name == "y0" and term in row.term and row.node.startswith("%")
    with pytest.raises(kind, match=rf"y0 is not covered.*{says}"):
        found["y0"]
    assert "Not covered" in str(found)
    shown = found._repr_html_()
    assert all(html.escape(part) in shown for part in (row.name, row.node, row.term))
    assert typeset(html.escape(row.reason)) in shown
    # Asked alone, it is the end of the run, with the same error (nodes are numbered again).
    with pytest.raises(kind) as alone:
        tp.limit(program(build), outputs=["y0"], samples=2**8)
    assert re.sub(r"%\d+", "%", str(alone.value.message)) == re.sub(r"%\d+", "%", row.error.message)


@pytest.mark.parametrize(
    ("method", "lost"),
    [
        ("exact", {"y0": "no closed form for E", "y1": "not Gaussian"}),
        ("quadrature", {"y1": "not Gaussian"}),
    ],
)
def test_a_forced_method_gives_what_it_can(method: str, lost: dict[str, str]) -> None:
    made = program(
        lambda t, u, v, w: t.mean(tp.tanh(u) ** 2),
        lambda t, u, v, w: t.mean(tp.tanh(u * tp.exp(v)) ** 2),
    )
    found = tp.limit(made, method=method)
    assert {row.name for row in found.table.uncovered} == set(lost)
    assert all(lost[row.name] in row.reason for row in found.table.uncovered)
    assert found["ok"].value == pytest.approx(0.5)
    with pytest.raises(EvaluationError, match=f"method='{method}' does not give y1"):
        found["y1"]


def test_answers_do_not_depend_on_what_else_is_asked() -> None:
    builds = [build for build, *_ in REFUSED.values()]
    deep = lambda t, u, v, w: tp.n * t.mean((tp.tanh(v + small * w) - tp.tanh(v)) ** 2)  # noqa: E731
    together = tp.limit(program(*builds, deep), samples=2**8)
    last = f"y{len(builds)}"
    assert [row.name for row in together.table.uncovered] == [f"y{i}" for i in range(len(builds))]
    alone = tp.limit(program(*builds, deep), outputs=[last], samples=2**8)
    assert str(together[last]) == str(alone[last])
    for row in together.table.uncovered:
        with pytest.raises(TpcalcError) as error:
            tp.limit(program(*builds, deep), outputs=[row.name], samples=2**8)
        assert type(error.value) is type(row.error)


def test_a_vector_is_settled_with_its_own_power() -> None:
    """|c + e v| - |c| is e |v| where c = 0: of size n^(-1/2), and not 0."""

    def build(t: tp.Tracer, u: Vector, v: Vector, w: Vector) -> Vector:
        c = tp.relu(u) * w
        return tp.abs(c + small * v) - tp.abs(c)

    found = tp.limit(program(build), samples=2**12)["y0"]
    assert str(found.n_power) == "-1/2"
    # Half of the coordinates are |v|, the others sign(c) v: E Z^2 = 1.
    assert found.second_moment.z(1.0) < 5


def test_what_rests_on_it_and_what_does_not() -> None:
    """tanh of what is not covered has a bound; an order without one says why."""
    inverse = REFUSED["near 0"][0]

    @tp.program
    def made(t: tp.Tracer) -> None:
        u, v, w = (t.gaussian(name) for name in "uvw")
        y = inverse(t, u, v, w)
        assert isinstance(y, Vector)
        t.output("y", y)
        t.output("bounded", tp.tanh(y))
        t.output("below", t.inner(y, u))
        t.output("u", u)

    found = tp.orders(made)
    assert (found["u"].text, found["u"].status) == ("0", "exact")
    assert (found["bounded"].text, found["bounded"].status) == ("0", "upper")
    for name in ("y", "below"):
        assert (found[name].n, found[name].status) == (None, "upper")
        assert found[name].reason.startswith("not covered: %") and "near 0" in found[name].reason


def test_finite_networks_go_on() -> None:
    made = program(REFUSED["grows"][0])
    table = tp.limit(made)
    finite = tp.simulate(made, widths=[16, 32], seeds=3)
    found = tp.compare(table, finite)
    assert {row.name for row in found.rows} == {"ok"}
    assert [row.name for row in found.uncovered] == ["y0"]
    assert [(row.name, row.width) for row in found.alone] == [("y0", 16), ("y0", 32)]
    assert not any("y0" in note for note in found.notes)
    why, alone = alone_tables(found)
    assert why.rows[0][0].text == "y0" and len(alone.rows) == 2


def test_every_form_of_the_answer_has_the_row() -> None:
    table = tp.limit(program(REFUSED["grows"][0])).table
    assert codec.from_json(codec.to_json(table)) == table
    (row,) = table.to_dict()["uncovered"]
    assert (row["name"], row["code"]) == ("y0", "TPC400")
    assert limit_tables(table)[0].caption == "Not covered"


def test_a_forced_method_knows_the_same_zeros() -> None:
    """The mean of an odd function is 0 as an output, as a moment, and by any method."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        x, w = t.gaussian("x"), t.matrix("W")
        y = tp.tanh(small * (w.T @ tp.tanh(small * (w @ tp.tanh(x)))))
        t.output("y", y)
        t.output("mean", t.mean(y))
        t.output("square", t.inner(y, y))

    for method in ("auto", "particles"):
        found = tp.limit(made, samples=2**6, method=method)
        y = found["y"]
        assert str(found["mean"]) == str(y.mean) == str(y.moment(lambda z: z)) == "0 (exact)"
        assert found["square"] == y.second_moment
        assert str(y.moment(lambda z: z**2)) == str(y.cov(y)) == str(found["square"])


def test_what_one_cause_takes_is_one_row() -> None:
    """After an explosion nothing has a limit; each output keeps its bound where it is asked for."""
    data = tp.Samples(((1.0, 0.5),), ((1.0,),))
    program = tp.train(tp.MLP(2, "tanh"), "standard", data, steps=2, watch=("h",))
    found = tp.limit(program)
    lost = found.table.uncovered
    assert len(lost) > 2 and len({(row.node, row.term, row.reason) for row in lost}) == 1
    (table,) = [one for one in limit_tables(found.table) if one.caption == "Not covered"]
    assert len(table.rows) == 1
    assert all(row.name in table.rows[0][0].text for row in lost)
    later = next(row for row in lost if row.name == "f[2,0]")
    assert later.bound.startswith(("O(n^(", "o(n^(")) and later.bound in later.error.message


def test_zero_over_zero_is_said() -> None:
    """A sample of zeros that is normalised: 0 in the limit, no number in a network."""
    rows = ((0.0, 0.0), (1.0, 2.0))
    net, data = tp.MLP(2, "tanh", norm="layer"), tp.Samples(rows, (1.0, 2.0))
    run = tp.Training(net, "mup", data, batch=2, lr=0.1, watch=["x"])
    found = tp.limit(run, samples=2**8)
    assert found["x[1,0,0]"].second_moment.value == 0
    assert any(note.startswith("0 divided by 0 (%") for note in found.table.notes)
    other = tp.limit(run, outputs=["x[1,0,1]"])
    assert not any("0 divided by 0" in note for note in other.table.notes)
    with pytest.raises(TpcalcError, match="it divides by 0"):
        tp.simulate(run, [64], seeds=2, outputs=["x[1,0,0]"])


def test_what_is_refused_is_not_derived_again() -> None:
    """Asked once more, the output is refused in the same words and at once."""

    @tp.network(axes={"p": 2})
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in")(x)
        h = h + tp.layers.Attention(t, 1)(tp.layers.layer_norm(h))
        return t.linear(t.outputs, t.n)(tp.layers.average_pool(tp.tanh(h), "p"))

    data = tp.Samples([[1.0, 0.5, -0.5, 1.0]], [[1.0]])
    run = tp.train(net, "mup", data, steps=1, optimizer="adam", lr=0.3)
    with pytest.raises(LimitError) as first:
        tp.limit(run, outputs=["f[1,0]"])
    with cpu_time(1.0), pytest.raises(LimitError) as second:
        tp.limit(run, outputs=["f[1,0]"])
    assert str(first.value) == str(second.value)
