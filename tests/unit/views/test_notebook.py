"""Results in notebooks: registered with IPython only where it runs, shown as tables."""

from __future__ import annotations

import sys
from importlib import reload
from types import SimpleNamespace
from typing import Any

import pytest

import tpcalc as tp
from tpcalc.results import Sheets
from tpcalc.views.notebook import notebook_html


def test_results_are_registered_as_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: dict[tuple[str, str], Any] = {}
    formatter = SimpleNamespace(
        for_type_by_name=lambda module, name, show: shown.__setitem__((module, name), show)
    )
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": formatter}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    reload(tp)
    records = {"Kernel", "OrderTable", "Verdict", "Solution", "PhaseDiagram"}
    records |= {"Theorems", "Contrast", "Signal", "Sheet", "Sheets", "Nonlinearity"}
    tables = {"Limit", "Orders", "LimitTable", "FiniteTable", "Comparison"}
    assert {name for _, name in shown} == tables | records

    @tp.program
    def start(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        t.output("square", t.inner(v, v))

    found = tp.limit(start, samples=2**6, replicates=4)
    networks = tp.simulate(start, widths=[64, 256, 1024], seeds=4)
    for result in (found, found.table, networks, tp.compare(found, networks)):
        key = (type(result).__module__, type(result).__name__)
        text = shown[key](result)
        assert "<table" in text and "square" in text


def test_signals_open_with_what_they_mean() -> None:
    ordered = notebook_html(tp.signal.survey("erf", 1.5, 0.1, depth=3))
    assert ordered.startswith("<p><strong>Ordered phase: inputs become alike</strong></p>")
    assert "Fixed points and depth scales" in ordered and "Numbers are those of" in ordered
    sheet = tp.signal.sheet("relu")
    assert notebook_html(sheet) == notebook_html(Sheets((sheet,)))
    assert "relu: inputs become alike, slowly" in notebook_html(sheet)
    deep = tp.signal.nonlinearity(tp.signal.mlp(30, tp.signal.Design("relu", 2)))
    shown = notebook_html(deep)
    assert "24 rows in between are left out" in shown and ">60<" in shown  # the last layers


def test_outside_notebooks_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    reload(tp)
    monkeypatch.delitem(sys.modules, "IPython")
    reload(tp)
