"""Tables join by name, and finite values stand in the units of the limit."""

from __future__ import annotations

import math

import pytest

from tpcalc.results import (
    Estimate,
    Exponent,
    FiniteRow,
    FiniteTable,
    LimitTable,
    Method,
    Provenance,
    ScalarRow,
    VectorRow,
)
from tpcalc.views import ReportInput
from tpcalc.views.traces import gather, spread_out

ORIGIN = Provenance("0", "ab")


def finite(*rows: FiniteRow) -> FiniteTable:
    widths = tuple(sorted({row.width for row in rows}))
    return FiniteTable(rows, widths, len(rows[0].values), "lazy", ORIGIN)


def test_every_statistic_of_the_report_is_there_once(report: ReportInput) -> None:
    traces = gather(report.limit, report.finite, report.comparison)
    keys = [(trace.name, trace.statistic) for trace in traces]
    assert len(keys) == len(set(keys))
    assert ("f[5,1]", "value") in keys
    assert ("h[3,5,1]", "mean") in keys
    point = next(t for t in traces if t.name == "f[5,0]").at(1024)
    assert point is not None and point.seeds == 16


def test_a_comparison_alone_gives_the_same_points(report: ReportInput) -> None:
    full = {
        (t.name, t.statistic): t for t in gather(report.limit, report.finite, report.comparison)
    }
    for trace in gather(None, None, report.comparison):
        twin = full[trace.name, trace.statistic]
        assert trace.limit is not None and twin.limit is not None
        assert trace.limit.value == twin.limit.value
        for here, there in zip(trace.points, twin.points, strict=True):
            assert here.mean.value == pytest.approx(there.mean.value)
            assert here.sd == pytest.approx(there.sd)
            assert here.rms == pytest.approx(there.rms)


def test_powers_of_n_are_divided_out() -> None:
    estimate = Estimate(2.0, 0.0, Method.EXACT)
    limit = LimitTable(
        (ScalarRow("s", estimate, Exponent.of("-1/2")),),
        (VectorRow("v", estimate, estimate, Exponent.of("-1/2")),),
        ORIGIN,
    )
    simulation = finite(
        FiniteRow("s", "value", 100, (0.2, 0.2)), FiniteRow("v", "second_moment", 100, (0.02, 0.02))
    )
    points = {t.name: t.points for t in gather(limit, simulation, None) if t.points}
    assert points["s"][0].mean.value == pytest.approx(2.0)
    assert points["v"][0].mean.value == pytest.approx(2.0)
    assert points["s"][0].rms == pytest.approx(0.0, abs=1e-12)


def test_an_exact_zero_is_the_limit_itself() -> None:
    limit = LimitTable(
        (ScalarRow("f[0,0]", Estimate(0.0, 0.0, Method.EXACT), Exponent.of("-1/2")),), (), ORIGIN
    )
    (trace,) = gather(limit, finite(FiniteRow("f[0,0]", "value", 100, (0.03, -0.05))), None)
    assert str(trace.n_power) == "0"
    assert trace.points[0].mean.value == pytest.approx(-0.01)
    assert trace.points[0].rms == pytest.approx(0.0017**0.5)


def test_a_power_with_symbols_leaves_the_points_out() -> None:
    limit = LimitTable(
        (ScalarRow("s", Estimate(2.0, 0.0, Method.EXACT), Exponent.of("-p")),), (), ORIGIN
    )
    (trace,) = gather(limit, finite(FiniteRow("s", "value", 100, (0.2,))), None)
    assert trace.points == ()


def test_one_seed_has_no_error_and_an_exploded_run_no_mean() -> None:
    simulation = finite(FiniteRow("f[0,0]", "value", 8, (0.5,)))
    (one,) = gather(None, simulation, None)
    assert math.isnan(one.points[0].mean.stderr)
    (gone,) = gather(None, finite(FiniteRow("f[0,0]", "value", 8, (0.5, math.inf))), None)
    assert not gone.points[0].mean.finite


def test_a_random_limit_has_no_distance(random_output: ReportInput) -> None:
    traces = gather(random_output.limit, random_output.finite, random_output.comparison)
    assert all(point.rms is None for trace in traces for point in trace.points)


def test_spread_out_keeps_both_ends() -> None:
    assert spread_out(range(10), 3) == (0, 4, 9)
    assert spread_out("ab", 5) == ("a", "b")
    assert spread_out("abc", 1) == ("c",)
