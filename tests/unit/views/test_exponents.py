"""Orders, verdicts, learning rates and phase diagrams as tables, pages and Markdown."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from golden.exponents import DIAGRAM, MEASURED, ORDERS, SOLUTION, VERDICT
from unit.views.rendering import printed, same_as_golden, shown

from tpcalc.results import Exponent, OrderRow, PhaseDiagram
from tpcalc.views import ReportInput, render_html, render_markdown
from tpcalc.views.answers.check import judged
from tpcalc.views.answers.orders import region_lines, row_tables, size
from tpcalc.views.answers.phases import VERDICTS, phase_lead
from tpcalc.views.faces import html, seen
from tpcalc.views.page import report
from tpcalc.views.tables import Table
from tpcalc.views.terminal import group

ALL = ReportInput("Four answers", orders=ORDERS, check=VERDICT, solution=SOLUTION, phases=DIAGRAM)


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in (table.head, *table.rows)]


def test_terminal_is_as_before() -> None:
    groups = {
        "orders": shown(ORDERS),
        "check": group(seen(VERDICT).beside(seen(MEASURED))),
        "solve": shown(SOLUTION),
        "phases": shown(DIAGRAM),
    }
    text = "\n".join(f"[{name}]\n{printed(one)}" for name, one in groups.items())
    same_as_golden(text, "exponents.txt")


def test_markdown_is_as_before() -> None:
    same_as_golden(render_markdown(ALL), "exponents.md")


@pytest.mark.parametrize(
    ("n", "status", "text"),
    [
        ("0", "exact", "1"),
        ("1", "exact", "n"),
        ("-2", "exact", "n^-2"),
        ("1/2 - 3*a", "exact", "n^(1/2 - 3*a)"),
        ("a", "exact", "n^(a)"),
        ("-oo", "exact", "0"),
        ("0", "upper", "<= 1"),
        ("-1/2", "upper", "<= n^(-1/2)"),
    ],
)
def test_sizes(n: str, status: str, text: str) -> None:
    assert size(Exponent.of(n), status) == text


def test_one_input_needs_no_column() -> None:
    rows = [OrderRow(f"x[{layer},0,0]", Exponent.of("0"), "exact") for layer in (1, 2)]
    (table,) = row_tables(rows, "x")
    assert texts(table) == [["Step", "Quantity", "l = 1", "l = 2"], ["0", "x", "1", "1"]]


def test_several_outputs_are_told_apart() -> None:
    rows = [OrderRow("h[1,0,0]", Exponent.of("0"), "exact")]
    rows += [OrderRow(f"f[0,0,{k}]", Exponent.of(str(-k)), "exact") for k in range(2)]
    (table,) = row_tables(rows, "f")
    assert texts(table)[2:] == [["0", "f", "0", "", "1"], ["0", "f", "0, output 1", "", "n^-1"]]


def test_contributions_of_updates_are_set_by_layer() -> None:
    rows = [OrderRow(f"dW_x[{layer},1,0]", Exponent.of("0"), "exact") for layer in (1, 2)]
    rows += [OrderRow(f"dW_x[3,1,0,{k}]", Exponent.of("-1"), "exact") for k in range(2)]
    rows += [OrderRow(f"dB[{layer},1]", Exponent.of("0"), "exact") for layer in (1, 2)]
    rows += [OrderRow(f"dB[3,1,{k}]", Exponent.of("-1"), "exact") for k in range(2)]
    (table,) = row_tables(rows, "updates")
    assert texts(table) == [
        ["Step", "Quantity", "l = 1", "l = 2", "l = 3"],
        ["1", "ΔW x", "1", "1", "n^-1"],
        ["1", "ΔB", "1", "1", "n^-1"],
    ]


def test_names_of_a_program_are_listed() -> None:
    (table,) = row_tables(
        [OrderRow("size", Exponent.of("1"), "exact"), OrderRow("f[0]", Exponent.of("0"), "exact")],
        "All",
    )
    assert table.caption == "All"
    assert texts(table)[1:] == [["size", "n", "exact"], ["f[0]", "1", "exact"]]


def test_slopes_that_contradict_are_marked() -> None:
    slopes = row_tables(MEASURED.rows, "")[-1]
    tones = {row[0].text: row[2].tone for row in slopes.rows}
    assert tones == {
        "f[0,0]": "",
        "f[1,0]": "warn",
        "h[1,0,0]": "",
        "h[2,0,0]": "",
        "x[1,0,0]": "",
    }


def test_regions() -> None:
    assert region_lines((), ()) == ()
    assert region_lines((), (("a", "1"),))[0] == "Holds for all values of a."
    assert region_lines(("a > 0",), ()) == ("Holds where a > 0.",)


@pytest.mark.parametrize("word", VERDICTS)
def test_verdicts_have_a_headline_and_a_level(word: str) -> None:
    said = judged(replace(VERDICT, verdict=word, valid_for="t<=3"))
    level = {"feature-learning": "good", "kernel": "limit", "undecided": "warn"}.get(word, "bad")
    assert said.level == level
    assert said.headline.endswith("for t<=3") == (word != "undecided")
    assert said.reasons[0] == VERDICT.facts[0]


def test_what_a_diagram_covers_is_said() -> None:
    assert "not exhaustive" in phase_lead(replace(DIAGRAM, complete=False))
    three = PhaseDiagram(("a", "b", "c"), (), DIAGRAM.cells[:1], True, 1, DIAGRAM.provenance)
    assert "unstable on 1 wall" in phase_lead(three)  # two dimensions of three


def test_page_has_every_part() -> None:
    page = render_html(ALL)
    for text in ('<h2 id="check">Verdict</h2>', "≤ n<sup>−1</sup>", "n<sup>1/2 − 3·a</sup>"):
        assert text in page
    assert page.count('aria-label="For 0 &lt;= a') == 1
    assert "<script" not in page and "n^(" not in re.sub(
        r"<caption>.*?</caption>|aria-label=\"[^\"]*\"", "", page
    )


@pytest.mark.parametrize("record", [ORDERS, VERDICT, SOLUTION, DIAGRAM, MEASURED])
def test_notebooks_show_tables(record: object) -> None:
    text = html(record)
    assert text.count("<table>") == text.count("</table>") > 0
    assert "<script" not in text


def test_a_notebook_shows_the_picture() -> None:
    assert 'src="data:image/svg+xml;base64,' in html(DIAGRAM)
    one = replace(DIAGRAM, symbols=("a",), box=DIAGRAM.box[:1])
    assert "<img" not in html(one)


def test_reports_of_records(tmp_path: Path) -> None:
    text = report([VERDICT, DIAGRAM], tmp_path / "a.md").read_text(encoding="utf-8")
    assert "> **Trivial: no output moves, for all t**" in text
    assert "## Phase diagram" in text and "## Orders" not in text


OPEN = replace(DIAGRAM, cells=(replace(DIAGRAM.cells[0], verdict="undecided"), *DIAGRAM.cells[1:]))


@pytest.mark.parametrize(
    ("parts", "headline"),
    [
        ({"orders": replace(ORDERS, rows=ORDERS.rows[:2])}, "Exact exponents"),
        ({"solution": SOLUTION}, "Learning-rate exponents of 2 steps"),
        ({"phases": OPEN}, "The verdict of some points of the box is not decided"),
        ({"phases": replace(DIAGRAM, complete=False)}, "The phase diagram is not exhaustive"),
    ],
)
def test_headlines_without_a_verdict(parts: dict[str, object], headline: str) -> None:
    text = render_markdown(ReportInput("One", **parts))  # type: ignore[arg-type]
    assert f"> **{headline}**" in text


def test_the_picture_of_updates_names_what_it_cannot_draw() -> None:
    sizes = ("-oo", "1/2 - a", "0", "-1")
    rows = [
        OrderRow(f"dW_x[{layer},1,0]", Exponent.of(n), "upper" if n == "-1" else "exact")
        for layer, n in enumerate(sizes, start=1)
    ]
    figure = seen(replace(VERDICT, updates=tuple(rows))).figures["check"]
    assert "Not drawn: dW_x[1,1,0] (0), dW_x[2,1,0] (n^(1/2 - a))." in figure.note
    dots = next(one for one in figure.panels[0].series if one.shape == "dots")
    assert dots.y == (0.0, -1.0)  # of layers 3 and 4
    bounds = [one for one in figure.panels[0].series if one.label == "at most"]
    assert [one.y for one in bounds] == [(-1.0, -1.2)]  # a bound is drawn as one
    assert "at most n^-1" in figure.panels[0].words
