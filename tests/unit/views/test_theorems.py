"""Sections of a report about theorems and about two parameterizations side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import tpcalc as tp
from tpcalc.results import Card, Claim, Contrast, Hypothesis, Provenance, Theorem, Theorems, Verdict
from tpcalc.sources import Source
from tpcalc.views.answers.theorems import theorem_lead, theorem_tables
from tpcalc.views.answers.versus import card_tables, versus_lead
from tpcalc.views.faces import html
from tpcalc.views.page import render_html, render_markdown
from tpcalc.views.record import ReportInput

MADE = Provenance("0.1.0", "ab12")
DEEP = Hypothesis("at least 3 hidden layers", True, "L = 3")
FEW = Hypothesis("at least 3 hidden layers", False, "L = 2")
PROVED = Theorem(
    "trivial_naive_ip",
    "naive-ip is trivial",
    Source("Hajjar, Chizat, Giraud", "Proposition 3.1"),
    "holds",
    (DEEP,),
    (Claim("f_1", "tends to 0", "n^(-1)", True),),
)
REFUTED = replace(
    PROVED, name="linearizable", answer="does not hold", claims=(Claim("f_1", "is 1", "0", False),)
)
SILENT = replace(PROVED, answer="outside", hypotheses=(FEW,), claims=())


def verdict(word: str) -> Verdict:
    return Verdict(word, "exact", ("a fact",), 3, MADE, valid_for="all t", initial="ok")


def test_answers_and_reasons_are_told() -> None:
    found = Theorems((PROVED, SILENT), MADE)
    table = theorem_tables(found)[0]
    assert [row[2].text for row in table.rows] == ["holds", "outside its hypotheses"]
    assert table.rows[1][3].text == "at least 3 hidden layers: L = 2"
    assert theorem_lead(found).startswith("1 of 2 theorems apply")


def test_a_contradiction_is_said_first_and_marked() -> None:
    found = Theorems((PROVED, REFUTED), MADE)
    assert "contradicts what is stated in linearizable" in theorem_lead(found)
    claims = theorem_tables(found)[1]
    assert [row[4].tone for row in claims.rows] == ["", "bad"]


def test_what_stands_outside_is_not_stated() -> None:
    """A theorem whose hypotheses fail states nothing, and a table does not say that it does."""
    outside = replace(PROVED, answer="outside", hypotheses=(FEW,))
    openly = replace(PROVED, claims=(Claim("f_1", "tends to 0", "at most n^(-1)"),))
    shown = theorem_tables(Theorems((PROVED, outside, openly), MADE))[1]
    assert [row[2].text for row in shown.rows] == ["tends to 0", "(tends to 0)", "tends to 0"]
    assert [row[4].text for row in shown.rows] == ["yes", "yes", "open"]
    assert "not met" in shown.note and "only a bound" in shown.note
    assert theorem_tables(Theorems((PROVED,), MADE))[1].note == ""


def test_two_ways_not_to_hold_have_two_words() -> None:
    absent = replace(PROVED, answer="does not hold")
    answers = theorem_tables(Theorems((absent, REFUTED), MADE))[0].rows
    assert [row[2].text for row in answers] == ["does not hold here", "refuted by the program"]


def test_no_theorem_makes_no_table() -> None:
    assert theorem_tables(Theorems((), MADE)) == ()


def test_two_cards_stand_side_by_side() -> None:
    left = Card("a", (("Powers of the weights", "a = (0, 1)"),), verdict("trivial"))
    right = Card("b", (("Powers of the weights", "a = (0, 1/2)"),), verdict("kernel"))
    contrast = Contrast(left, right)
    tables = {table.caption: table for table in card_tables(contrast.left, contrast.right)}
    powers = tables["Powers that define them"].rows
    assert [cell.text for cell in powers[0]][1:] == ["a = (0, 1)", "a = (0, 1/2)", ""]
    decided = {row[0].text: row for row in tables["What becomes of training"].rows}
    assert decided["Valid for"][3].text == "same"
    assert decided["Verdict"][3].text == ""
    assert "Limits" not in tables
    assert versus_lead(contrast).startswith("a: trivial. b: kernel.")


def test_a_notebook_shows_them() -> None:
    contrast = Contrast(Card("a", (), verdict("trivial")), Card("b", (), verdict("kernel")))
    assert "Both are trained" in html(contrast) and "<table" in html(contrast)
    text = html(Theorems((PROVED, SILENT), MADE))
    assert "1 of 2 theorems apply" in text and "Proposition 3.1" in text


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_pages_show_them(render: object) -> None:
    contrast = Contrast(Card("a", (), verdict("trivial")), Card("b", (), verdict("kernel")))
    report = ReportInput("Card", theorems=Theorems((PROVED, SILENT), MADE), versus=contrast)
    text = render(report)  # type: ignore[operator]
    for words in ("Theorems", "a beside b", "naive-ip is trivial", "Proposition 3.1"):
        assert words in text


def test_S0_39_a_card_of_a_network(tmp_path: Path) -> None:
    """Orders, verdict, theorems and limits of one network, and the report of two."""
    data = tp.Samples(((0.6, -0.3), (0.1, 0.7)), ((0.0,), (0.0,)))
    cards = [
        tp.card(tp.MLP(3, "relu", bias="first"), name, data, steps=1, loss="linear")
        for name in ("ip-llr", "naive-ip")
    ]
    assert [card.check.verdict for card in cards] == ["feature-learning", "trivial"]
    assert dict(cards[0].exponents)["Powers of the learning rates"] == "c = (-2, -5/2, -5/2, -2)"
    for card in cards:
        assert card.theorems is not None
        assert card.limit is not None
        assert {row.name for row in card.limit.scalars} == {"f[0,0]", "f[1,0]"}
    path = tp.report(Contrast(*cards), tmp_path / "card.md", title="Two")
    text = path.read_text(encoding="utf-8")
    assert "ip-llr beside naive-ip" in text
    assert "trivial\\_naive\\_ip" in text or "trivial_naive_ip" in text
