"""Hajjar, Chizat, Giraud, Training integrable parameterizations (2110.15596), as functions.

``predicates`` holds the theorems, each with its hypotheses; ``forms`` the closed forms and the
formulas for exponents.
"""

from tpcalc.arguments import all_public as _all_public
from tpcalc.theorems.closed import ClosedForm as ClosedForm
from tpcalc.theorems.integrable.forms.bias import BiasStart as BiasStart
from tpcalc.theorems.integrable.forms.bias import BiasStep as BiasStep
from tpcalc.theorems.integrable.forms.bias import bias_start as bias_start
from tpcalc.theorems.integrable.forms.bias import bias_step as bias_step
from tpcalc.theorems.integrable.forms.exponents import FirstPass as FirstPass
from tpcalc.theorems.integrable.forms.exponents import NaiveRates as NaiveRates
from tpcalc.theorems.integrable.forms.exponents import first_pass as first_pass
from tpcalc.theorems.integrable.forms.exponents import first_rates as first_rates
from tpcalc.theorems.integrable.forms.exponents import first_updates as first_updates
from tpcalc.theorems.integrable.forms.exponents import growth as growth
from tpcalc.theorems.integrable.forms.exponents import later_rates as later_rates
from tpcalc.theorems.integrable.forms.exponents import later_updates as later_updates
from tpcalc.theorems.integrable.forms.exponents import naive_rates as naive_rates
from tpcalc.theorems.integrable.forms.exponents import (
    relative_displacements as relative_displacements,
)
from tpcalc.theorems.integrable.forms.known import LazyStep as LazyStep
from tpcalc.theorems.integrable.forms.known import MuPStep as MuPStep
from tpcalc.theorems.integrable.forms.known import TangentKernel as TangentKernel
from tpcalc.theorems.integrable.forms.known import lazy_step as lazy_step
from tpcalc.theorems.integrable.forms.known import mup_step as mup_step
from tpcalc.theorems.integrable.forms.known import tangent_kernel as tangent_kernel
from tpcalc.theorems.integrable.forms.llr import LLRStep as LLRStep
from tpcalc.theorems.integrable.forms.llr import llr_step as llr_step
from tpcalc.theorems.integrable.forms.llr import llr_step_by_derivatives as llr_step_by_derivatives
from tpcalc.theorems.integrable.forms.llr_later import LLRSecondStep as LLRSecondStep
from tpcalc.theorems.integrable.forms.llr_later import llr_second_step as llr_second_step
from tpcalc.theorems.integrable.forms.moments import FirstPassSizes as FirstPassSizes
from tpcalc.theorems.integrable.forms.moments import half_square as half_square
from tpcalc.theorems.integrable.forms.moments import mu as mu
from tpcalc.theorems.integrable.forms.moments import orthant as orthant
from tpcalc.theorems.integrable.forms.moments import second_moment as second_moment
from tpcalc.theorems.integrable.forms.moments import slope_second_moment as slope_second_moment
from tpcalc.theorems.integrable.forms.moments import stable_std as stable_std
from tpcalc.theorems.integrable.forms.moments import tilde_variances as tilde_variances
from tpcalc.theorems.integrable.forms.naive import NaiveStep as NaiveStep
from tpcalc.theorems.integrable.forms.naive import naive_degenerate as naive_degenerate
from tpcalc.theorems.integrable.forms.naive import naive_two_layers as naive_two_layers
from tpcalc.theorems.integrable.forms.non_centered import NonCenteredStart as NonCenteredStart
from tpcalc.theorems.integrable.forms.non_centered import NonCenteredStep as NonCenteredStep
from tpcalc.theorems.integrable.forms.non_centered import non_centered_start as non_centered_start
from tpcalc.theorems.integrable.forms.non_centered import non_centered_step as non_centered_step
from tpcalc.theorems.integrable.predicates.alternatives import collapse as collapse
from tpcalc.theorems.integrable.predicates.alternatives import (
    weak_data_dependence as weak_data_dependence,
)
from tpcalc.theorems.integrable.predicates.assumptions import Assumptions as Assumptions
from tpcalc.theorems.integrable.predicates.assumptions import assumptions as assumptions
from tpcalc.theorems.integrable.predicates.assumptions import order_at_zero as order_at_zero
from tpcalc.theorems.integrable.predicates.features import feature_learning as feature_learning
from tpcalc.theorems.integrable.predicates.features import kernel_evolution as kernel_evolution
from tpcalc.theorems.integrable.predicates.hybrid import equiv_hp as equiv_hp
from tpcalc.theorems.integrable.predicates.hybrid import equiv_hpz as equiv_hpz
from tpcalc.theorems.integrable.predicates.hybrid import (
    learning_rate_correction as learning_rate_correction,
)
from tpcalc.theorems.integrable.predicates.llr import linearizable as linearizable
from tpcalc.theorems.integrable.predicates.llr import llr_necessary as llr_necessary
from tpcalc.theorems.integrable.predicates.llr import nontrivial_stable as nontrivial_stable
from tpcalc.theorems.integrable.predicates.naive import degenerate as degenerate
from tpcalc.theorems.integrable.predicates.naive import trivial_naive_ip as trivial_naive_ip
from tpcalc.theorems.integrable.predicates.registry import PREDICATES as PREDICATES
from tpcalc.theorems.integrable.predicates.registry import applicable as applicable
from tpcalc.theorems.integrable.predicates.start import nontrivial_init as nontrivial_init
from tpcalc.theorems.integrable.predicates.start import stable_init as stable_init

_all_public(globals())
