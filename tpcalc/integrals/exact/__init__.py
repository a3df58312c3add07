"""Expectations of products of functions of jointly Gaussian variables, in closed form."""

from tpcalc.integrals.exact.delta import DELTA as DELTA
from tpcalc.integrals.exact.expect import expectation as expectation
from tpcalc.integrals.exact.expect import supported as supported
from tpcalc.integrals.exact.expect import terms as terms
from tpcalc.integrals.exact.formulas import formula as formula
