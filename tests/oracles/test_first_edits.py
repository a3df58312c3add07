"""Where first steps grow: what ``solve`` says to edit, and networks that were edited so."""

from __future__ import annotations

import re
from typing import Any

import pytest
from oracles.test_first_order import FewFeatures

import tpcalc as tp
from tests.first_steps import INTO, READ, first_order, words
from tests.networks_in_use import GPT

FREE = {"rates": ("n^(-1)", 1)}


def edits(net: Any, rule: str = "mup") -> list[tuple[str, ...]]:
    """What to edit under Adam, without the places in files."""
    found: Any = tp.solve(net, rule, optimizer="adam", steps=1)
    assert {edit.word for edit in found.edits} <= {"feature learning", "kernel"}
    return [tuple(re.sub(r" \(.*\)(?= times)", "", line) for line in edit.lines)
            for edit in found.edits]  # fmt: skip


def branch(start: str = "1", times: str = "1") -> tp.Architecture:
    """A block whose first map starts too large."""

    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="e", **INTO)(x)
        up = t.linear(t.n, t.n, name="up", init=start, **FREE)(h)
        down = t.linear(t.n, t.n, name="down", init="n^(-1/2)", **FREE)
        h = h + down(tp.tanh((1 if times == "1" else tp.n**times) * up))
        return t.linear(t.outputs, t.n, name="v", **READ)(h)

    return net


def test_a_map_that_starts_too_large() -> None:
    either = [("h[up] times n^(-1/2)",), ("the start of up times n^(-1/2)",)]
    assert edits(branch(), "own") == either
    assert first_order(branch(), "own").word == "unstable at the start"
    assert first_order(branch(start="n^(-1/2)"), "own").word == "feature learning"
    assert first_order(branch(times="-1/2"), "own").word == "feature learning"


def test_nothing_is_to_be_edited() -> None:
    assert edits(branch("n^(-1/2)"), "own") == edits(tp.MLP(2, "relu")) == []


@pytest.mark.slow
def test_scores_of_a_transformer_are_one_line() -> None:
    """Rates of all that is below the scores are six."""
    first, second = edits(tp.network(GPT, scale="1/sqrt(d)"))
    assert first == ("argument of softmax times n^(-1/2)",)
    assert len(second) == 6 and all(line.startswith("the rate of ") for line in second)
    fixed = first_order(tp.network(GPT, scale="1/d"))
    assert fixed.word == "feature learning"


@pytest.mark.slow
def test_lines_are_those_of_one_block() -> None:
    first, _ = edits(tp.network(GPT, scale="1/sqrt(d)", blocks=2))
    assert first == ("argument of softmax times n^(-1/2)",)


@pytest.mark.slow
def test_F20_maps_to_few_features_start_smaller() -> None:
    """A start of 1/n where it was n^(-1/2), of queries and keys."""
    own = ("the start of key times n^(-1/2)", "the start of query times n^(-1/2)")
    assert own in edits(tp.network(FewFeatures), "own")


def test_F25_output_and_inside_have_rates_of_their_own() -> None:
    """Of hidden maps 1 by what functions read, 3/2 by the output."""

    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = tp.tanh(t.linear(t.n, "in", name="w0", **INTO)(x))
        for k in (1, 2):
            h = tp.tanh(t.linear(t.n, t.n, name=f"w{k}", init="n^(-1/2)", **FREE)(h))
        return t.linear(t.outputs, t.n, name="v", init="n^(-1/2)", **FREE)(h)

    assert words(first_order(net, "own"))["w2"] == "explodes"
    found: Any = tp.solve(net, "own", optimizer="adam", steps=1)
    rows = {row.name: row for row in found.largest}
    own = rows["w2"]
    assert (str(own.rate), str(own.other)) == ("-3/2", "-1")
    assert own.where.startswith("the output") and own.beside == "h[w2]"
    assert (str(rows["v"].rate), rows["v"].beside) == ("-1", "")
    assert "n^(-3/2)" in str(found) and "h[w2]" in str(found)


def test_a_map_that_is_used_twice_has_one_start() -> None:
    def net(start: str) -> tp.Architecture:
        @tp.network
        def found(t: Any, x: Any) -> Any:
            h = t.linear(t.n, "in", name="e", **INTO)(x)
            w = t.linear(t.n, t.n, name="w", init=start, **FREE)
            return t.linear(t.outputs, t.n, name="v", **READ)(tp.tanh(w(tp.tanh(w(h)))))

        return found

    assert ("the start of w times n^(-1/2)",) in edits(net("1"), "own")
    assert first_order(net("n^(-1/2)"), "own").word == "feature learning"
