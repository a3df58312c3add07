"""A coarse sample of a limit graph that carries rounding and slopes, for what answers rest on."""

from tpcalc.evaluate.witness.findings import Finding, Law, law, nonzero
from tpcalc.evaluate.witness.sweep import BUDGETS, Budget, Sweep

__all__ = ["BUDGETS", "Budget", "Finding", "Law", "Sweep", "law", "nonzero"]
