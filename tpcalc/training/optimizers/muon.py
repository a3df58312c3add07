"""Muon: the polar factor of a momentum, times a factor of the shape; Adam for what is no matrix."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

FACTORS = (
    ("muon", "sqrt(max(1, rows / cols))", Source("Jordan and others, Muon: an optimizer")),
    (
        "muon-spectral",
        "sqrt(rows / cols)",
        Source("Yang, Simon, Bernstein, A spectral condition", "section 2", "2310.17813"),
    ),
    (
        "muon-rms",
        "0.2 sqrt(max(rows, cols))",
        Source("Liu and others, Muon is scalable", "equation 4", "2502.16982"),
    ),
)
ENTRIES = tuple(
    Optimizer(
        name,
        f"m = beta m + g\nw = (1 - lr decay) w - lr {factor} polar(g + beta m)",
        text=f"the polar factor of a momentum of matrices, times {factor}; Adam for the others",
        source=source,
        values={"beta": "19/20", "decay": 0},
        others="adam",
    )
    for name, factor, source in FACTORS
)
