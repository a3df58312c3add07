"""A coordinate check as it is shown: tables of slopes, a panel for each module, words beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from unit.views.rendering import same_as_golden

from tpcalc.results import Exponent, MeasuredSize, ModuleCheck, ModuleRow, Provenance
from tpcalc.results.codec import from_json, to_json
from tpcalc.results.exponent import NONE
from tpcalc.views.faces import seen
from tpcalc.views.terminal import text

WIDTHS = (64, 128, 256, 512)
CLASSES = {"emb": "Embedding", "norm": "LayerNorm"}


def row(name: str, what: str, step: int, powers: str, slope: float | None = None) -> ModuleRow:
    """A row with a slope at its power, or at another; of what is 0 without one."""
    low, _, high = (own.strip() for own in powers.partition(".."))
    hull = Exponent.of(low), Exponent.of(high or low)
    module = CLASSES.get(name.partition(".")[0], "Linear")
    line = "net.py:12" if name == "head.weight" else ""
    if hull[1].is_zero:
        told = MeasuredSize(WIDTHS, (0.0,) * 4, (0.0,) * 4, None, None, "agrees")
        return ModuleRow(name, module, line, what, step, *hull, told)
    at = float(hull[1].constant or 0) if slope is None else slope
    word = "agrees" if slope is None else "differs"
    # Of each name sizes of its own: modules of equal sizes are one.
    sizes = tuple(0.01 * len(name) * max(step, 1) * (n / 64) ** at for n in WIDTHS)
    told = MeasuredSize(WIDTHS, sizes, (0.02,) * 4, at, 0.05, word if powers else "open")
    return ModuleRow(name, module, line, what, step, *hull, told)


def module(name: str, start: str, changes: Sequence[str]) -> Iterator[ModuleRow]:
    yield row(name, "start", 0, start)
    yield from (row(name, "change", k, own) for k, own in enumerate(changes, start=1))


def parameter(name: str, term: str, slope: float | None = None) -> Iterator[ModuleRow]:
    for step in (1, 2, 3):
        yield row(name, "term", step, term, slope)
        yield row(name, "gradient", step, "-1")
        yield row(name, "step", step, "")


FOUND = ModuleCheck(
    "differs",
    "feature learning",
    (
        "what step 1 of b.1.up.weight adds to the output has slope 1.00 ± 0.05, where n^0 is "
        "derived",
    ),
    (
        *module("emb", "0", ("0", "0", "0")),
        *module("up.0", "0", ("-oo", "0", "0")),
        *module("b.0.up", "0", ("-1/2", "-1/2 .. 0", "-1/2 .. 0")),
        *module("b.1.up", "0", ("-1/2", "-1/2 .. 0", "-1/2 .. 0")),
        *module("relus", "", ("", "", "")),
        *module("head", "-1/2", ("0", "0", "-oo .. 0")),
        *(replace(own, name="") for own in module("head", "-1/2", ("0", "0", "-oo .. 0"))),
        *module("gate", "-oo", ("0", "0", "0")),
        *parameter("emb.weight", "0"),
        *parameter("b.0.up.weight", "0"),
        *parameter("b.1.up.weight", "0", 1.0),
        *parameter("head.weight", "-1/2"),
    ),
    0.25,
    8,
    Provenance("0", "ab"),
    ("a note",),
)


def test_terminal_is_as_before() -> None:
    same_as_golden(text(seen(FOUND)) + "\n", "module_check.txt")


def test_a_module_has_a_panel_with_its_curves_and_the_derived_lines() -> None:
    figure = seen(FOUND).figures["modules"]
    titles = [panel.title for panel in figure.panels]
    assert titles == ["emb", "up.*", "b.*.up", "relus", "head", "gate"]
    emb, up, block, act = figure.panels[:4]
    assert (emb.log_x, emb.log_y) == (True, True)
    assert [one.shape for one in emb.series] == ["dots", "dash"] * 3
    assert [one.label for one in up.series if one.shape == "dots"] == [
        "after step 2",
        "after step 3",
    ]
    # Between two powers there are two lines, and of what has none there is none.
    assert [one.shape for one in block.series] == ["dots", "dash", *["dots", "dash", "dash"] * 2]
    assert {one.shape for one in act.series} == {"dots"}
    falls = block.series[1]
    assert falls.y[-1] / falls.y[0] == pytest.approx(8**-0.5)
    assert FOUND.plot() is not None


def test_without_a_recipe_its_words_are_left_out() -> None:
    assert seen(replace(FOUND, recipe="")).summary.startswith("up.*: still")


def test_what_differs_is_marked() -> None:
    rows = list(seen(FOUND).tables)[1].rows
    assert [own[-1].tone for own in rows] == ["", "bad", ""]


def test_blocks_of_other_powers_have_rows_of_their_own() -> None:
    rows = tuple(
        replace(own, high=NONE, low=NONE) if own.name == "b.0.up.weight" else own
        for own in FOUND.rows
    )
    table = list(seen(replace(FOUND, rows=rows)).tables)[1]
    assert [own[0].text for own in table.rows][1:3] == ["b.0.up.weight", "b.1.up.weight"]


@pytest.mark.parametrize(
    ("code", "level", "headline"),
    [
        ("agrees", "good", "The code does what the recipe says"),
        ("differs", "bad", "The code differs from its recipe"),
        ("open", "warn", "Open whether the code does what the recipe says"),
    ],
)
def test_every_word_has_a_colour(code: str, level: str, headline: str) -> None:
    said = seen(replace(FOUND, code=code)).said
    assert said is not None
    assert (said.level, said.headline, said.reasons) == (level, headline, FOUND.facts)


def test_records_are_read_back_and_have_rows_by_name() -> None:
    assert from_json(to_json(FOUND)) == FOUND
    assert FOUND["term", "head.weight", 2].line == "net.py:12"
    assert "The code differs from its recipe" in FOUND._repr_html_()
