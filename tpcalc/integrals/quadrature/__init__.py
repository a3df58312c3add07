"""Expectations of functions of Gaussians by quadrature, with bounds on the error."""

from tpcalc.integrals.quadrature.expectation import expectation as expectation
from tpcalc.integrals.quadrature.expectation import supported as supported
from tpcalc.integrals.quadrature.gap import carried_gap as carried_gap
from tpcalc.integrals.quadrature.gap import gap as gap
from tpcalc.integrals.quadrature.layer import layer_moments as layer_moments
