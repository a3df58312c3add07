"""Blocks in traced functions: their axes, their meaning, and what is said where they do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import ProgramError, TraceError
from tpcalc.passes.split import split
from tpcalc.program.program import Program

X = [[1, 0.5], [0, 1], [-1, 2]]


def traced(function: Any) -> Program:
    return tp.program(function).build()


def test_the_program_has_few_nodes_however_many_cells() -> None:
    def wide(t: tp.Tracer) -> None:
        x = t.data("x", np.eye(20), ("b", "in"))
        t.output("h", tp.relu(t.sum(x * t.gaussian("U", axes={"in": 20}), "in")))

    program = traced(wide)
    assert [str(found) for found in program.types] == ["[b:20,in:20]", "n[in:20]", *["n[b:20]"] * 2]


def test_axes_of_handles() -> None:
    def seen(t: tp.Tracer) -> None:
        x = t.data("x", [[1, 2, 3]], ("b", "p"))
        h = x * t.gaussian("u")
        assert h.axes == {"b": 1, "p": 3}
        assert h.renamed(p="q").axes == {"b": 1, "q": 3}
        assert h.at(b=0, p=2).axes == {}
        assert t.sum(h, "b", "p").axes == {}
        assert tp.mean(h).axes == {"b": 1, "p": 3}
        assert t.matrix("W", axes={"k": 2}) @ t.gaussian("v") is not None
        t.output("h", h.at(b=0, p=2))

    lowered = split(traced(seen))
    assert tp.limit(lowered)["h"].second_moment.value == 9


def test_softmax_is_a_share_for_each_cell() -> None:
    def shares(t: tp.Tracer) -> None:
        s = t.data("s", [[0, 1, -2], [500, -500, 0]], ("p", "q"))
        t.output("w", tp.softmax(s, along="q"))

    limit = tp.limit(traced(shares))
    rows = np.array([[limit[f"w[{i},{j}]"].value for j in range(3)] for i in range(2)])
    wanted = np.exp(np.array([0.0, 1.0, -2.0]))
    np.testing.assert_allclose(rows[0], wanted / wanted.sum(), rtol=1e-12)
    np.testing.assert_allclose(rows[1], [1, 0, 0], atol=1e-12)


Body = Any


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (
            lambda t: t.data("x", X, ("b", "in")) * t.gaussian("U", axes={"in": 3}),
            ProgramError,
            r"the axis 'in' has 2 cells in %\d+ \(\[b:3,in:2\]\) and 3 in %\d+ \(n\[in:3\]\)",
        ),
        (
            lambda t: t.sum(t.gaussian("U", axes={"in": 3}) + t.gaussian("c"), "in"),
            ProgramError,
            "a sum over 'in', which the term with %1 .n. does not have",
        ),
        (
            lambda t: t.gaussian("U", axes={"in": 3, "b": 3}).renamed(b="in"),
            ProgramError,
            "with the name 'in' for two of its axes",
        ),
        (
            lambda t: tp.softmax(t.gaussian("U", axes={"p": 3}), along="q"),
            ProgramError,
            "softmax along 'q', which %0 .* does not have",
        ),
        (lambda t: t.sum(t.gaussian("u")), TraceError, "needs the axes to sum over"),
        (lambda t: t.gaussian("u", axes={"p": 3}).at(p=3), TraceError, "no cell p=3"),
        (lambda t: t.gaussian("u", axes={"p": 0}), TraceError, "has 0 cells"),
        (lambda t: t.gaussian("u", axes=[3]), TraceError, "names with sizes"),
        (lambda t: t.gaussian("u", axes={"a b": 2}), TraceError, "cannot be called 'a b'"),
        (lambda t: t.data("x", [[1], [1, 2]], ("b", "in")), TraceError, "no array with the axes"),
        (lambda t: t.data("x", [1, 2], ("b", "in")), TraceError, "no array with the axes"),
        (lambda t: (t.matrix("u"), t.gaussian("u")), TraceError, "already an input called 'u'"),
    ],
)
def test_what_does_not_fit_is_said_with_its_line(body: Body, kind: Any, message: str) -> None:
    def wrong(t: tp.Tracer) -> None:
        found = body(t)
        t.output("x", found + 0 * t.gaussian("other"))

    with pytest.raises(kind, match=message) as caught:
        traced(wrong)
    assert "test_blocks.py" in str(caught.value)


def test_what_has_no_formula_is_called_by_its_word() -> None:
    def seen(t: tp.Tracer) -> None:
        s = t.gaussian("s", axes={"p": 2})
        assert (2 * s.renamed(p="q")).text == "2*rename(...)"
        assert tp.softmax(s, along="p").text == "rows(...)"
        t.output("s", s)

    assert traced(seen).has_blocks
