"""Exact exponents of the width and the depth, with symbols, and the regions of these."""

from tpcalc.exponents.ex import Ex as Ex
from tpcalc.exponents.ex import as_ex as as_ex
from tpcalc.exponents.ex import parse_ex as parse_ex
from tpcalc.exponents.ex import without_number as without_number
