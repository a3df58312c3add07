"""Expectations of products of functions of jointly Gaussian variables, in closed form."""

from tpcalc.evaluate.exact.delta import DELTA as DELTA
from tpcalc.evaluate.exact.expect import expectation as expectation
from tpcalc.evaluate.exact.expect import supported as supported
from tpcalc.evaluate.exact.formulas import formula as formula
