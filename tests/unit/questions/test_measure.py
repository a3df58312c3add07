"""Slopes beside derived orders: sizes, intervals, notes, and programs that leave the range."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import ScaleError, UsageError
from tpcalc.finite.simulate import simulate
from tpcalc.questions.measure import measure
from tpcalc.questions.orders import Orders, orders
from tpcalc.results import Exponent, OrderRow, OrderTable

WIDTHS = [256, 512, 1024, 2048]


def row(found: Orders, name: str, table: OrderTable | None = None, **given: object) -> OrderRow:
    table = table or measure(found, widths=WIDTHS, seeds=16, **given)  # type: ignore[arg-type]
    return next(row for row in table.rows if row.name == name)


@tp.program
def layers(t: tp.Tracer) -> None:
    """Two layers with 1/n in front: a vector of size n^(-1/2), an average that fluctuates."""
    h = tp.n**-1 * (t.matrix("W") @ tp.relu(t.gaussian("g")))
    t.output("h", h)
    t.output("f", t.inner(t.gaussian("u"), h))
    t.output("zero", h - h)


def test_slopes_of_vectors_and_scalars() -> None:
    found = orders(layers)
    table = measure(found, widths=WIDTHS, seeds=32)
    vector, scalar = row(found, "h", table), row(found, "f", table)
    assert (str(vector.n), str(scalar.n)) == ("-1/2", "-1")
    for entry, exponent in ((vector, -0.5), (scalar, -1.0)):
        assert entry.slope is not None and entry.low is not None and entry.high is not None
        assert entry.low < entry.slope < entry.high
        assert abs(entry.slope - exponent) < entry.high - entry.low


def test_sizes_are_root_mean_squares_over_seeds() -> None:
    """The slope between what simulate returns, by hand."""
    found = orders(layers)
    entry = row(found, "h", measure(found, widths=[256, 1024, 4096], seeds=4, seed=9))
    table = simulate(found.program, [256, 1024, 4096], 4, seed=9)
    sizes = {
        r.width: math.sqrt(np.mean(r.values))
        for r in table.rows
        if (r.name, r.statistic) == ("h", "second_moment")
    }
    assert entry.slope is not None
    ends = math.log(sizes[4096] / sizes[256]) / math.log(16)
    assert abs(entry.slope - ends) < 0.01


def test_a_zero_is_said_to_be_one() -> None:
    entry = row(orders(layers), "zero")
    assert (str(entry.n), entry.slope, entry.note) == ("-oo", None, "0 in all networks")


def test_seeds_are_reproducible() -> None:
    found = orders(layers)
    first, second = (measure(found, widths=WIDTHS, seeds=4, seed=3) for _ in range(2))
    assert first.rows == second.rows
    assert first.rows != measure(found, widths=WIDTHS, seeds=4, seed=4).rows


def _sum(weight: float) -> Orders:
    """Of order one, with a fluctuation that is larger by ``weight`` / n^(1/2)."""

    @tp.program
    def program(t: tp.Tracer) -> None:
        t.output("h", t.gaussian("g") + weight * (tp.n ** "-1/2" * t.gaussian("k")))

    return orders(program)


def test_a_drift_is_noted_with_the_local_slope() -> None:
    found = _sum(100.0)
    widths = [2**k for k in range(8, 18)]
    entry = row(found, "h", measure(found, widths=widths, seeds=4))
    assert str(entry.n) == "0"
    assert entry.slope is not None and entry.slope < -0.15
    assert "it drifts" in entry.note
    assert "over the widths 32768 to 131072" in entry.note
    assert "measured slope below the derived exponent" in entry.note


def test_no_drift_no_note() -> None:
    widths = [2**k for k in range(8, 15)]
    found = _sum(1e-3)
    assert row(found, "h", measure(found, widths=widths, seeds=8)).note == ""


def test_an_interval_that_excludes_the_exponent_is_noted() -> None:
    """A number of order one that is small beside what fluctuates around it at these widths."""

    @tp.program
    def program(t: tp.Tracer) -> None:
        u, v = t.gaussian("u"), t.gaussian("v")
        t.output("f", t.inner(u, v) + 0.03 * t.inner(u, u))

    found = orders(program)
    (entry,) = measure(found, widths=[64, 128, 256, 512, 1024], seeds=64).rows
    assert (str(entry.n), entry.status) == ("0", "exact")
    assert entry.high is not None and entry.high < 0
    assert entry.agrees is False
    # u.v / n scatters by n^(-1/2), which is 0.01 from n = 10^4 on; 80 networks tell it to 10 %.
    told = re.search(
        r"at width 64 the leading term is (\S+), and (\S+) beside it falls", entry.note
    )
    needed = re.search(r"it takes roughly n >= (\d+) until", entry.note)
    assert told is not None and needed is not None
    assert float(told[1]) == pytest.approx(0.03, abs=5 * 0.0028)
    assert float(told[2]) == pytest.approx(0.125, rel=5 / (2 * 320) ** 0.5)
    assert 3000 < int(needed[1]) < 40000
    (wide,) = measure(found, widths=[2**k for k in range(14, 18)], seeds=8).rows
    assert "excludes" not in wide.note


def test_many_rows_are_judged_together() -> None:
    """Of 60 intervals of 95 % some miss by chance; those that decide count the rows."""

    @tp.program
    def program(t: tp.Tracer) -> None:
        for i in range(60):
            t.output(f"f[{i}]", t.inner(t.gaussian(f"u{i}"), t.gaussian(f"v{i}")))

    found = measure(orders(program), widths=WIDTHS, seeds=16)
    alone = [
        entry
        for entry in found.rows
        if entry.low is not None and entry.high is not None and not entry.low < -0.5 < entry.high
    ]
    assert alone and all(entry.agrees for entry in found.rows)
    assert all("its own interval excludes -1/2" in entry.note for entry in alone)
    assert found.notes[0].startswith("60 of 60 slopes agree with their orders; by chance")
    wrong = with_order(orders(program), "0", "exact")
    (first, *_), notes = (table := measure(wrong, widths=WIDTHS, seeds=16)).rows, table.notes
    assert first.agrees is False and "the interval excludes 0" in first.note
    assert notes[0].startswith("59 of 60 slopes agree with their orders: f[0]; ")


def with_order(found: Orders, n: str, status: str) -> Orders:
    """The same with another claim about its first output."""
    first = replace(found.table.rows[0], n=Exponent.of(n), status=status)
    return replace(found, table=replace(found.table, rows=(first, *found.table.rows[1:])))


@pytest.mark.parametrize(
    ("n", "status", "note"),
    [
        ("-1/2", "exact", ""),
        ("-1", "exact", "measured slope above the derived exponent"),
        ("0", "exact", "measured slope below the derived exponent"),
        ("0", "upper", ""),
        ("-1", "upper", "measured slope above the derived bound"),
        ("oo", "upper", ""),
        ("-oo", "exact", "derived to be identically 0, measured not 0"),
    ],
)
def test_disagreement_is_noted(n: str, status: str, note: str) -> None:
    found = with_order(orders(layers), n, status)
    assert row(found, "h").note == note


def test_an_explosion_leaves_the_rest() -> None:
    """What overflows is left out by itself; the outputs that do not grow are measured."""

    @tp.program
    def program(t: tp.Tracer) -> None:
        h = t.matrix("W") @ t.gaussian("g")
        t.output("start", tp.n ** "-1/2" * h)
        for _ in range(8):
            h = tp.n**20 * h
        t.output("end", h)

    found = orders(program)
    table = measure(found, widths=WIDTHS, seeds=2)
    start, end = table.rows
    assert start.slope is not None
    assert (end.slope, end.note) == (None, "no network has finite numbers")
    assert len(table.notes) == 1
    assert table.notes[0].startswith("at width 256, 512, 1024, 2048:")


def test_an_explosion_at_some_widths() -> None:
    @tp.program
    def program(t: tp.Tracer) -> None:
        t.output("h", tp.n**48 * (t.matrix("W") @ t.gaussian("g")))

    widths = [256, 512, 1024, 4096]
    (entry,) = measure(orders(program), widths=widths, seeds=8).rows
    assert entry.slope is not None and abs(entry.slope - 48.5) < 0.1
    assert entry.note == "of the 3 widths up to 1024: beyond, not all numbers are finite"


def test_a_difference_below_its_rounding() -> None:
    """A change of 1e-30 of a number cannot be seen in doubles."""

    @tp.program
    def program(t: tp.Tracer) -> None:
        g, k = t.gaussian("g"), t.gaussian("k")
        now = g + tp.n**-10 * k
        t.output("now", now)
        t.output("then", g)
        t.output("now-then", now - g)

    found = orders(program)
    entry = row(found, "now-then")
    assert str(entry.n) == "-10"
    assert entry.slope is None
    assert entry.note in (
        "0 in all networks",
        "below the rounding of what it is a difference of, at width 256",
    )


def test_symbols_need_numbers() -> None:
    @tp.program
    def program(t: tp.Tracer) -> None:
        t.output("h", tp.n ** -tp.symbol("a") * t.gaussian("g"))

    with pytest.raises(ScaleError, match="'a'; a finite width needs a number"):
        measure(orders(program, at={"a": 1}), widths=WIDTHS)
    found = orders(program, values={"a": Fraction(3, 2)})
    (entry,) = measure(found, widths=WIDTHS, seeds=4).rows
    assert str(entry.n) == "-3/2"
    assert entry.slope is not None and abs(entry.slope + 1.5) < 0.1


@pytest.mark.parametrize(
    ("given", "note"),
    [
        ({"widths": [64, 128]}, "2 widths; a slope needs at least 3"),
        ({"widths": [64, 96, 128]}, "needs a range of at least a factor 4"),
    ],
)
def test_too_few_widths(given: dict[str, Sequence[int]], note: str) -> None:
    found = orders(layers)
    assert note in row(found, "h", measure(found, seeds=2, **given)).note  # type: ignore[arg-type]


def test_arguments_are_checked() -> None:
    found = orders(layers)
    with pytest.raises(UsageError, match="seeds"):
        measure(found, seeds=1)
    with pytest.raises(UsageError, match="given twice"):
        measure(found, widths=[64, 64, 256])
    with pytest.raises(UsageError, match="first argument of measure"):
        measure(found.table)  # type: ignore[arg-type]


def test_the_record_says_how_it_was_measured() -> None:
    found = orders(layers)
    seen: list[float] = []
    table = measure(
        found, widths=[1024, 64, 256], seeds=2, seed=5, progress=lambda part, _: seen.append(part)
    )
    settings = dict(table.provenance.settings)
    assert (settings["widths"], settings["seeds"], settings["backend"]) == (
        "64,256,1024",
        "2",
        "lazy",
    )
    assert settings["verify"] == "True"
    assert table.provenance.seed == 5
    assert table.provenance.program_digest == found.program.digest
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
