"""Expectations of functions of Gaussians by quadrature, with bounds on the error."""

from tpcalc.evaluate.quadrature.expectation import expectation as expectation
from tpcalc.evaluate.quadrature.expectation import supported as supported
from tpcalc.evaluate.quadrature.gap import gap as gap
