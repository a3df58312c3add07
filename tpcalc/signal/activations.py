"""What one activation does: lengths and covariances through it, fixed points, calibrations."""

from tpcalc.arguments import all_public as _all_public
from tpcalc.integrals.activation_moments import Kernels as Kernels
from tpcalc.meanfield.activations.asymptotics import asymptotes as asymptotes
from tpcalc.meanfield.activations.calibrate import calibrated as calibrated
from tpcalc.meanfield.activations.calibrate import debiased as debiased
from tpcalc.meanfield.activations.calibrate import normalized as normalized
from tpcalc.meanfield.activations.covariance import CovarianceKernel as CovarianceKernel
from tpcalc.meanfield.activations.fixed_points import Iteration as Iteration
from tpcalc.meanfield.activations.length import LengthKernel as LengthKernel

_all_public(globals())
