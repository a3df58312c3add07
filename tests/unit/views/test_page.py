"""The page is whole, self-contained and readable; Markdown says the same."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from golden.exponents import ORDERS, VERDICT
from unit.views.rendering import same_as_golden
from unit.views.test_verdict import biased

from tpcalc.errors import StudyError
from tpcalc.results import (
    Card,
    Contrast,
    Estimate,
    Exponent,
    FiniteRow,
    FiniteTable,
    Formula,
    LimitTable,
    Method,
    OrderRow,
    Provenance,
    ScalarRow,
    VectorRow,
)
from tpcalc.views import ReportInput, plots, render_html, render_markdown, write
from tpcalc.views.answers.check import judged
from tpcalc.views.answers.phases import VERDICTS
from tpcalc.views.panels import Panel

VOID = {"meta", "link", "br", "img", "hr", "input"}
SHEET = Path(__file__).parents[3] / "tpcalc" / "views" / "templates" / "page.css"


DRAW = plots.draw


@cache
def drawn(panel: Panel, painter: object, identifier: str) -> str:
    """A picture: pages of this file have many in common."""
    return DRAW(panel, identifier)


@pytest.fixture(autouse=True)
def draw_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "draw", lambda panel, key: drawn(panel, panel.paint, key))


class Page(HTMLParser):
    """Collects what the tests ask of a page; ``wrong`` holds what is not balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.identifiers: list[str] = []
        self.references: list[str] = []
        self.labelled: list[str] = []
        self.tables: list[bool] = []
        self.unlabelled: list[str] = []
        self.words: list[str] = []
        self.wrong: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.wrong += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attrs}
        self.tags.append(tag)
        if "id" in found:
            self.identifiers.append(found["id"])
        for key in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
            if key in found:
                self.references.append(found[key])
        self.wrong += [f"{tag} {key}" for key in found if key.startswith("on")]
        if "aria-labelledby" in found:
            self.labelled.append(found["aria-labelledby"])
        if tag == "svg" and not (found.get("aria-label") or found.get("aria-hidden") == "true"):
            self.unlabelled.append(str(found))
        if tag == "table":
            self.tables.append(False)
        if tag == "caption":
            self.tables[-1] = True
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "title"):
            self.words.append(data)

    @property
    def headings(self) -> list[int]:
        return [int(tag[1]) for tag in self.tags if re.fullmatch(r"h[1-6]", tag)]


def without(report: ReportInput, *names: str) -> ReportInput:
    return replace(report, **dict.fromkeys(names))


def variants() -> list[tuple[str, ...]]:
    return [
        (),
        ("finite", "comparison"),
        ("limit", "comparison"),
        ("limit", "finite"),
        ("comparison",),
    ]


def check(text: str) -> Page:
    page = Page(text)
    assert page.wrong == []
    assert page.unlabelled == []
    assert page.tables and all(page.tables)
    assert "script" not in page.tags and "iframe" not in page.tags
    outside = [r for r in page.references if not r.startswith(("#", "data:"))]
    assert outside == []
    assert not re.search(r"url\((?!#)|@import|https?://", text)
    assert len(page.identifiers) == len(set(page.identifiers))
    assert {r[1:] for r in page.references if r.startswith("#")} <= set(page.identifiers)
    assert set(page.labelled) <= set(page.identifiers)
    assert page.headings.count(1) == 1 and page.headings[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(page.headings))
    return page


@pytest.mark.parametrize("left_out", variants(), ids=lambda names: "no " + " ".join(names))
def test_page_is_whole_and_self_contained(report: ReportInput, left_out: tuple[str, ...]) -> None:
    page = check(render_html(without(report, *left_out)))
    assert page.tags.count("svg") >= 4
    assert "math" in page.tags


def test_page_holds_every_part(report: ReportInput) -> None:
    text = render_html(report)
    words = " ".join(" ".join(check(text).words).split())
    for part in (
        "After 5 steps the infinite-width network outputs",
        "Finite networks agree with the limit",
        "Parameterization mup",
        "Program text",
        "Output, step by step",
        "Feature norms, layer by layer",
        "Distance to the limit against the width",
        "Slope of log |finite − limit|",
        "The 8 largest differences of 360",
        "Seeds per width 16",
        "16 384",
        "3f7a19c2e0d4",
    ):
        assert part in words, part
    assert "0 ± 1.3×10<sup>−4</sup>" in text


def test_same_records_give_the_same_bytes(
    report: ReportInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "draw", DRAW)  # twice
    assert render_html(report) == render_html(report)


def test_several_outputs_and_random_outputs(
    several_outputs: ReportInput, random_output: ReportInput
) -> None:
    assert "f, input 1, output 2" in " ".join(check(render_html(several_outputs)).words)
    assert "random in the limit, sd = 1.25 ± 0.11, mean 0.003 ± 0.012" in render_html(random_output)
    check(render_html(random_output))


def test_hostile_words_stay_words(report: ReportInput) -> None:
    bad = '</pre></style><script>alert("x")</script>'
    text = render_html(
        replace(
            report,
            title=bad,
            model={bad: bad},
            program_words=(bad,),
            program_text=bad,
            formulas=((bad, Formula(bad, bad, bad)),),
            input_names=(bad,),
        )
    )
    check(text)
    assert "<script" not in text


def test_a_long_program_is_cut_with_a_note(report: ReportInput) -> None:
    long = replace(report, program_text="\n".join(f"%{k} = node" for k in range(1000)))
    for text in (render_html(long), render_markdown(long)):
        assert "%399 = node" in text and "%400 = node" not in text
        assert "600 more lines are left out here." in text


def test_a_program_without_steps_shows_its_names() -> None:
    limit = LimitTable(
        (
            ScalarRow("catalan", Estimate(42.0, 0.0, Method.EXACT), formula=Formula("42")),
            ScalarRow("small", Estimate(0.5, 0.001, Method.PARTICLES), n_power=Exponent.of("-1")),
        ),
        (
            VectorRow(
                "g", Estimate(0.0, 1e-3, Method.PARTICLES), Estimate(2.0, 1e-3, Method.PARTICLES)
            ),
        ),
        Provenance("0", "ab"),
        notes=("the readout is random",),
    )
    rows = tuple(
        FiniteRow("catalan", "value", width, (42.0 + 9 / width, 42.0 - 4 / width))
        for width in (64, 256)
    )
    finite = FiniteTable(rows, (64, 256), 2, "lazy", Provenance("0", "ab"))
    text = render_html(ReportInput("Moments", limit=limit, finite=finite))
    page = check(text)
    words = " ".join(page.words)
    assert "As n → ∞: catalan → 42, small →" in words.replace("\u00a0", " ")
    assert "n<sup>−1</sup> × (0.5000 ± 0.0010)" in text
    assert "Other scalars" in words and "the readout is random" in words
    assert "Distance to the limit against the width" in words


def test_a_hundred_steps_stay_readable(report: ReportInput) -> None:
    rows = tuple(
        ScalarRow(f"f[{t},0]", Estimate(0.01 * t, 1e-3, Method.PARTICLES)) for t in range(2101)
    )
    text = render_html(
        replace(
            without(report, "finite", "comparison"),
            limit=LimitTable(rows, (), Provenance("0", "ab")),
        )
    )
    check(text)
    assert "101 more rows are left out here." in text
    assert '<details class="fold">' in text


def test_markdown_is_the_golden_report(report: ReportInput) -> None:
    same_as_golden(render_markdown(report), "report.md")


@pytest.mark.parametrize("left_out", variants(), ids=lambda names: "no " + " ".join(names))
def test_markdown_tables_are_tables(report: ReportInput, left_out: tuple[str, ...]) -> None:
    lines = render_markdown(without(report, *left_out)).splitlines()
    for above, line in pairwise(lines):
        bars = len(re.findall(r"(?<!\\)\|", line))
        if re.fullmatch(r"\|( :?-+:? \|)+", line):
            assert bars == len(re.findall(r"(?<!\\)\|", above)) > 2
        elif line.startswith("|") and above.startswith("|"):
            assert bars == len(re.findall(r"(?<!\\)\|", above))
    assert not re.search(r"\n\n\n", "\n".join(lines))


def test_markdown_fences_are_longer_than_any_within(report: ReportInput) -> None:
    text = render_markdown(replace(report, program_text="a\n```\n# b"))
    assert "````text\na\n```\n# b\n````" in text


def test_contributions_of_updates_are_all_shown() -> None:
    rows = (
        FiniteRow("dW_x[1,1,0]", "second_moment", 64, (0.25, 0.25)),
        FiniteRow("dB[1,1]", "second_moment", 64, (0.5, 0.5)),
        FiniteRow("dW_x[2,1,0]", "value", 64, (0.75, 0.75)),
        FiniteRow("dB[2,1]", "value", 64, (0.875, 0.875)),
    )
    made = FiniteTable(rows, (64,), 2, "lazy", Provenance("0", "ab"))
    text = render_markdown(ReportInput("Updates", finite=made))
    for value in ("| ΔW₁ x | ΔB₁ |", "0.25", "0.5", "0.75", "0.875", "`dB[2,1]`"):
        assert value in text


@pytest.mark.parametrize(("name", "start"), [("r.html", "<!DOCTYPE html>"), ("r.MD", "# Three")])
def test_write_by_suffix(report: ReportInput, tmp_path: Path, name: str, start: str) -> None:
    target = write(report, tmp_path / name)
    assert target.read_text(encoding="utf-8").startswith(start)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("report.pdf", "not as '.pdf'"),
        ("report", "not as 'a bare name'"),
    ],
)
def test_write_refuses(report: ReportInput, tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(StudyError, match=re.escape(message)) as caught:
        write(without(report, "finite", "comparison"), tmp_path / name)
    assert caught.value.hint and caught.value.where


def test_a_report_needs_a_table_of_the_right_kind(report: ReportInput) -> None:
    with pytest.raises(StudyError, match="nothing to report"):
        ReportInput("empty")
    with pytest.raises(StudyError, match=r"limit is FiniteTable.*not of type LimitTable"):
        ReportInput("mixed", limit=report.finite)  # type: ignore[arg-type]


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_read(scheme: str) -> None:
    light, dark = SHEET.read_text(encoding="utf-8").split("prefers-color-scheme: dark", 1)
    found = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", light if scheme == "light" else dark))
    for name in ("--ink", "--muted", "--good", "--warn", "--bad", "--info"):
        for ground in ("--page", "--panel"):
            assert contrast(found[name], found[ground]) >= 4.5, (name, ground)
    for name in ("--limit", "--muted", *(f"--series-{k}" for k in range(6))):
        assert contrast(found[name], found["--page"]) >= 3, name


def test_bounds_are_not_called_standard_errors(report: ReportInput) -> None:
    assert report.limit is not None
    scalars = tuple(
        replace(row, estimate=replace(row.estimate, method=Method.QUADRATURE))
        for row in report.limit.scalars
    )
    settings = (("method", "auto"), ("samples", "0"), ("replicates", "0"), ("storage", "float64"))
    origin = replace(report.limit.provenance, settings=settings)
    limit = replace(report.limit, scalars=scalars, provenance=origin)
    text = render_markdown(replace(report, limit=limit))
    assert "limit ± one standard error" not in text and "limit ± its error" in text
    assert "a bound on the error where it is quadrature" in text
    assert "| Method | auto |" in text
    assert "| Storage |" not in text
    assert "Storage" in render_markdown(
        replace(report, limit=replace(limit, provenance=replace(origin, settings=settings[3:])))
    )
    assert "a bound on the error" in render_html(replace(report, limit=limit))
    assert "a bound on the error" not in render_html(report)


BOX = re.compile(r'<section class="verdict (\w+)".*?<h2[^>]*>(.*?)</h2>(.*?)</section>', re.S)
LEVELS = {"feature-learning": "good", "kernel": "limit", "undecided": "warn"}


def box(report: ReportInput) -> tuple[str, str, str]:
    """The colour of the box of a page, its headline and what is below it."""
    text = render_html(report)
    found = BOX.search(text)
    assert found is not None and text.count('<section class="verdict') == 1
    return found[1], found[2], found[3]


@pytest.mark.parametrize("word", VERDICTS)
def test_the_box_is_the_verdict_in_its_colour(report: ReportInput, word: str) -> None:
    check = replace(VERDICT, verdict=word)
    for answers in (report, without(report, "comparison"), without(report, "finite", "comparison")):
        level, headline, below = box(replace(answers, check=check))
        assert (level, headline) == (LEVELS.get(word, "bad"), judged(check).headline)
        assert "inite networks" in below or "Networks" in below
    disagree = biased(report, "f[5,0]", 0.5, 0.5, 0.5)
    level, headline, below = box(replace(disagree, check=check))
    assert headline.endswith("but finite networks disagree with the limit")
    assert level == ("bad" if word in ("trivial", "unstable") else "warn")


def test_the_box_names_what_stands_beside_it(report: ReportInput) -> None:
    mine = Card("mup", (), replace(VERDICT, verdict="kernel"))
    other = Card("naive-ip", (), VERDICT)
    page = replace(report, check=mine.check, versus=Contrast(mine, other))
    assert "naive-ip, beside it: Trivial: no output moves" in box(page)[2]


def test_without_a_verdict_the_box_says_so(report: ReportInput) -> None:
    found = box(replace(report, model={"Verdict": "none is made: its weights are shared."}))
    assert found[:2] == ("info", "No verdict: none is made: its weights are shared.")
    assert "Finite networks agree with the limit." in found[2]


def test_slopes_that_disagree_are_not_exact_exponents() -> None:
    rows = (OrderRow("f", Exponent.of("0"), "exact", slope=0.4, low=0.3, high=0.5, agrees=False),)
    found = box(ReportInput("Measured", orders=replace(ORDERS, rows=rows)))
    assert found[:2] == ("warn", "Some measured slopes disagree with the exponents")


def test_a_page_opens_with_the_verdict_and_a_picture(report: ReportInput) -> None:
    page = render_html(replace(report, check=VERDICT))
    places = [
        page.index(mark)
        for mark in (
            "<h1>",
            'class="verdict',
            'class="summary"',
            'id="figure-outputs"',
            'id="check"',
            'id="comparison"',
            'id="model"',
            'id="program"',
            'id="notes"',
        )
    ]
    assert places == sorted(places)
    assert page.count('id="figure-outputs"') == 1  # not once more where its tables are
    assert 'class="fold"' in page  # long tables wait to be opened
