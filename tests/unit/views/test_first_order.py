"""First steps as they are shown: one row for what equal blocks do, signs for what is not exact."""

from __future__ import annotations

from dataclasses import replace

import pytest
from unit.views.rendering import same_as_golden

from tpcalc.results import (
    Exponent,
    FirstOrder,
    MeasuredSize,
    ParameterMove,
    Provenance,
    ReadPoint,
    Verdict,
)
from tpcalc.results.codec import from_json, to_json
from tpcalc.views.faces import seen
from tpcalc.views.terminal import text

SCORES = "argument of softmax"
WORDS = (
    "unstable at the start",
    "unstable",
    "output grows",
    "may be unstable",
    "trivial",
    "kernel",
    "feature learning",
)
MADE = Provenance("0", "ab")


def row(
    name: str, gradient: str, output: str, inside: str, where: str, status: str
) -> ParameterMove:
    word = "learns" if output == "0" else "explodes" if inside == "1/2" else "output later"
    powers = map(Exponent.of, ("-1", gradient, output, "0", inside))
    return ParameterMove(name, "hidden", *powers, where, 1, word, status)


def point(name: str, change: str, who: tuple[str, ...], status: str) -> ReadPoint:
    return ReadPoint(name, *map(Exponent.of, ("0", change, "0")), who, status)


BLOCKS = FirstOrder(
    "unstable",
    "measured",
    ("argument of softmax changes by n^(1/2) in a step",),
    (
        row("embed.table", "-1", "0", "0", "h[up.0]", "exact"),
        *(row(f"mix.{k}.query", "-3/2", "-1/2", "1/2", SCORES, "measured") for k in (0, 1)),
        *(row(f"mix.{k}.key", "-3/2", "-1/2", "1/2", SCORES, "measured") for k in (0, 1)),
        *(row(f"up.{k}", "-1", "0", "0", f"h[up.{k}]", "exact") for k in (0, 1)),
        row("down.0", "-1", "0", "0", "h[up.1]", "bound"),
        row("down.1", "-1", "-1/2", "0", "x[head]", "open"),
        row("head", "0", "0", "-oo", "", "exact"),
    ),
    (
        point("argument of softmax (net.py:7)", "1/2", ("mix.0.query", "mix.1.query"), "measured"),
        *(point(f"h[up.{k}] (net.py:8)", "0", (f"up.{k}",), "bound") for k in (0, 1)),
        point("f (net.py:9)", "", (), "open"),
    ),
    "adamw",
    MADE,
    ("a note",),
)


def told(
    slope: float, word: str, value: float | None = None, one: int | None = None
) -> MeasuredSize:
    sizes = tuple(0.1 * (n / 64) ** slope for n in (64, 256))
    return MeasuredSize((64, 256), sizes, (0.02, 0.03), slope, 0.05, word, value, one)


def with_slopes(row: ParameterMove) -> ParameterMove:
    """A row with what was measured of it; one block does not fit."""
    if row.name == "head":
        return replace(row, measured=replace(told(0, "agrees"), sizes=(0.0, 0.0), slope=None))
    if row.name == "up.1":
        return replace(row, measured=told(0.4, "differs"))
    return replace(row, measured=told(float(row.output.constant or 0), "agrees", 0.2))


FACTS = BLOCKS.points[0], BLOCKS.points[-1]
MEASURED = replace(
    BLOCKS,
    rows=tuple(map(with_slopes, BLOCKS.rows)),
    points=(
        replace(FACTS[0], start=told(0, "agrees"), moved=told(0.5, "agrees", 0.39, 6700), by="b"),
        FACTS[1],
    ),
    width=1024,
)


@pytest.mark.parametrize(
    ("found", "name"), [(BLOCKS, "first_order.txt"), (MEASURED, "first_order_measured.txt")]
)
def test_terminal_is_as_before(found: FirstOrder, name: str) -> None:
    same_as_golden(text(seen(found)) + "\n", name)


def test_measured_sizes_have_a_panel_for_each_kind_of_parameter() -> None:
    figure = seen(MEASURED).figures["measured"]
    titles = ["embed.table: n^0", "mix.*.query: n^(-1/2)", "mix.*.key: n^(-1/2)", "up.*: n^0"]
    assert [panel.title for panel in figure.panels] == [*titles, "down.*: n^(-1/2)"]
    mix = figure.panels[1]
    assert (mix.log_x, mix.log_y) == (True, True)
    assert [one.shape for one in mix.series] == ["dots", "dash"]
    assert mix.series[1].y[1] / mix.series[1].y[0] == pytest.approx(1 / 2)
    assert MEASURED.plot("measured") is not None


def test_of_equal_blocks_the_one_that_fits_least_is_shown() -> None:
    table = list(seen(MEASURED).tables)[-1]
    (own,) = (row for row in table.rows if row[0].text == "up.*")
    assert (own[3].text, own[4].text, own[4].tone) == ("0.40 ± 0.05", "differs", "warn")


def test_measured_sizes_are_read_back() -> None:
    assert from_json(to_json(MEASURED)) == MEASURED


def test_many_names_are_counted() -> None:
    rows = tuple(row(f"W{k}", "-1", "0", "0", "x", "exact") for k in range(1, 21))
    table = next(iter(seen(replace(BLOCKS, rows=rows)).tables))
    assert [own[0].text for own in table.rows] == ["W1, W2, W3, W4 and 16 more"]


@pytest.mark.parametrize("word", WORDS)
def test_every_word_has_a_colour(word: str) -> None:
    said = seen(replace(BLOCKS, word=word, status="exact")).said
    assert said is not None
    level = {"may be unstable": "warn", "kernel": "limit", "feature learning": "good"}
    assert said.level == level.get(word, "bad")
    assert said.headline.startswith(
        f"{word.capitalize()} at first order (exact): argument of softmax"
    )
    assert said.reasons[0].endswith(": mix.*.query")


def verdict(word: str, status: str) -> Verdict:
    facts = ("the output moves",)
    return Verdict(word, status, facts, 3, MADE, valid_for="t<=3", first_order=BLOCKS)


def test_a_verdict_opens_with_first_steps() -> None:
    shown = seen(verdict("kernel", "exact"))
    first = seen(BLOCKS).said
    assert shown.said is not None
    assert first is not None
    assert (shown.said.level, shown.said.headline) == ("limit", first.headline)
    assert shown.summary.startswith("Kernel regime: ")
    assert shown.said.reasons[-1] == "the output moves"
    assert [part.key for part in shown.parts] == ["first", "check"]


def test_a_verdict_of_first_steps_alone_says_so() -> None:
    shown = seen(verdict("unstable", "first steps, measured"))
    assert shown.summary.startswith("All steps: not followed; the word is that of first steps.")


def test_a_network_that_nothing_moves_has_a_picture() -> None:
    zero = Exponent.of("-oo")
    still = replace(BLOCKS.rows[0], output=zero, inside=zero, word="exactly 0")
    found = replace(BLOCKS, rows=(still,))
    (figure,) = seen(found).figures.values()
    assert [one.shape for one in figure.panels[0].series] == ["dash"]
    assert "embed.table: output -oo" in found._repr_html_()
