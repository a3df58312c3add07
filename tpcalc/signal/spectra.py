"""Squared singular values of weights and Jacobians."""

from tpcalc.arguments import all_public as _all_public
from tpcalc.meanfield.spectra.laws import WeightLaw as WeightLaw
from tpcalc.meanfield.spectra.probes import probe_moments as probe_moments
from tpcalc.meanfield.spectra.probes import probe_program as probe_program
from tpcalc.meanfield.spectra.singular_values import singular_values as singular_values
from tpcalc.meanfield.spectra.spectrum import Spectrum as Spectrum
from tpcalc.meanfield.spectra.spectrum import finite_moments as finite_moments
from tpcalc.meanfield.spectra.spectrum import finite_variance as finite_variance
from tpcalc.meanfield.spectra.spectrum import jacobian as jacobian
from tpcalc.meanfield.spectra.spectrum import of_moments as of_moments
from tpcalc.meanfield.spectra.spectrum import padded_variance as padded_variance
from tpcalc.meanfield.spectra.spectrum import slope_spectrum as slope_spectrum
from tpcalc.meanfield.spectra.spectrum import weight_spectrum as weight_spectrum

_all_public(globals())
