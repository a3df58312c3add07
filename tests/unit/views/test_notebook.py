"""Results in notebooks: the answer in its colour, then pictures and tables."""

from __future__ import annotations

import tpcalc as tp
from tpcalc.results import Sheets


def test_signals_open_with_what_they_mean() -> None:
    ordered = tp.signal.survey("erf", 1.5, 0.1, depth=3)._repr_html_()
    assert "Ordered phase: inputs become alike</strong></p>" in ordered[:120]
    assert "Fixed points and depth scales" in ordered and "Numbers are those of" in ordered
    sheet = tp.signal.sheet("relu")
    assert sheet._repr_html_() == Sheets((sheet,))._repr_html_()
    assert "relu: inputs become alike, slowly" in sheet._repr_html_()
    deep = tp.signal.nonlinearity(tp.signal.mlp(30, tp.signal.Design("relu", 2)))
    shown = deep._repr_html_()
    assert "more rows: .to_dataframe() has them." in shown and ">60<" in shown  # the last layers
