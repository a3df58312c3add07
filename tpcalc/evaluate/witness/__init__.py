"""A coarse sample of a limit graph that carries rounding and slopes, for what answers rest on."""

from tpcalc.evaluate.witness.findings import Finding as Finding
from tpcalc.evaluate.witness.findings import Law as Law
from tpcalc.evaluate.witness.findings import comes_near_zero as comes_near_zero
from tpcalc.evaluate.witness.findings import has_value as has_value
from tpcalc.evaluate.witness.findings import law as law
from tpcalc.evaluate.witness.findings import nonzero as nonzero
from tpcalc.evaluate.witness.sweep import BUDGETS as BUDGETS
from tpcalc.evaluate.witness.sweep import Budget as Budget
from tpcalc.evaluate.witness.sweep import Sweep as Sweep
