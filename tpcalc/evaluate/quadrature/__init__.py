"""Expectations of functions of Gaussians by quadrature, with bounds on the error."""

from tpcalc.evaluate.quadrature.expectation import expectation as expectation
from tpcalc.evaluate.quadrature.expectation import supported as supported
from tpcalc.evaluate.quadrature.gap import carried_gap as carried_gap
from tpcalc.evaluate.quadrature.gap import gap as gap
from tpcalc.evaluate.quadrature.layer import layer_moments as layer_moments
