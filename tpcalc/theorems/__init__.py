"""Numbered results of papers as functions: each says whether it applies, and what it gives.

Nothing here decides anything for the engine: a theorem is asked beside what is derived from the
program, and the two are compared.
"""

from tpcalc.theorems import depth as depth
from tpcalc.theorems import integrable as integrable
