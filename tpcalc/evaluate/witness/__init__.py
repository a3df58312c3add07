"""A coarse sample of a limit graph that carries rounding and slopes, for what answers rest on."""

from tpcalc.evaluate.witness.computed import has_value
from tpcalc.evaluate.witness.findings import Finding, Law, comes_near_zero, law, nonzero
from tpcalc.evaluate.witness.sweep import BUDGETS, Budget, Sweep

__all__ = [
    "BUDGETS",
    "Budget",
    "Finding",
    "Law",
    "Sweep",
    "comes_near_zero",
    "has_value",
    "law",
    "nonzero",
]
