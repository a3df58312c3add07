"""One program, three interpretations: they agree within combined standard errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from agreements.programs import PROGRAMS

import tpcalc as tp
from tpcalc.results import FiniteTable, ScalarRow

WIDE, NARROW = 2048, 128


def _pairs(table: FiniteTable, width: int) -> dict[tuple[str, str], tuple[float, float]]:
    out = {}
    for row in table.rows:
        if row.width == width:
            values = np.array(row.values)
            stderr = float(values.std(ddof=1) / math.sqrt(len(values)))
            out[(row.name, row.statistic)] = (float(values.mean()), stderr)
    return out


def _close(a: tuple[float, float], b: tuple[float, float], what: str, slack: float = 0.0) -> None:
    gap = max(abs(a[0] - b[0]) - slack, 0.0)
    spread = math.hypot(a[1], b[1])
    assert gap <= 5 * spread + 1e-12, f"{what}: {a} and {b}, {gap / spread:.1f} standard errors"


LONG = {"outer"}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one in LONG)) for one in PROGRAMS]
)
def test_S0_6_limit_agrees_with_wide_networks(name: str) -> None:
    """A width of 2048: corrections of order 1/n get a slack of 4/n of the second moments."""
    program = PROGRAMS[name]()
    found = tp.limit(program, samples=2**12, replicates=24, seed=8)
    wide = _pairs(tp.simulate(program, widths=[WIDE], seeds=24, seed=3), WIDE)
    compared = 0
    for row in (*found.table.scalars, *found.table.vectors):
        if str(row.n_power) != "0":
            continue
        if isinstance(row, ScalarRow):
            parts = {"value": row.estimate}
        else:
            parts = {"mean": row.mean, "second_moment": row.second_moment}
        for statistic, estimate in parts.items():
            own = (estimate.value, estimate.stderr)
            slack = 4 / WIDE * max(1.0, abs(estimate.value))
            _close(own, wide[(row.name, statistic)], f"{row.name} {statistic}", slack)
            compared += 1
    assert compared >= 2


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_lazy_has_the_law_of_dense(name: str) -> None:
    """At one width there is no slack: both are exact in law."""
    pytest.importorskip("torch")
    program = PROGRAMS[name]()
    lazy = _pairs(tp.simulate(program, widths=[NARROW], seeds=60, seed=1), NARROW)
    dense = _pairs(tp.simulate(program, widths=[NARROW], seeds=60, seed=2, backend="dense"), NARROW)
    assert lazy.keys() == dense.keys()
    for key, own in lazy.items():
        _close(own, dense[key], f"{key}")


@pytest.mark.torch
def test_lazy_and_dense_distributions() -> None:
    """Two-sample tests at width 256 over 400 seeds (Kolmogorov-Smirnov, p > 1e-6)."""
    pytest.importorskip("torch")
    from scipy.stats import ks_2samp

    program = PROGRAMS["repeated-input"]()
    tables = [
        tp.simulate(program, widths=[256], seeds=400, seed=seed, backend=backend)
        for seed, backend in ((0, "lazy"), (10_000, "dense"))
    ]
    names = ("f[1,0]", "f[4,0]", "h[2,4,0]")
    for left, right in zip(tables[0].rows, tables[1].rows, strict=True):
        assert (left.name, left.statistic) == (right.name, right.statistic)
        if left.name in names:
            assert ks_2samp(left.values, right.values).pvalue > 1e-6, left.name
