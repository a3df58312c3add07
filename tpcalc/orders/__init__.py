"""Exact exponents of the width and the depth."""

from tpcalc.orders.ex import Ex as Ex
from tpcalc.orders.ex import as_ex as as_ex
from tpcalc.orders.parse import parse_ex as parse_ex
