"""What the nonlinearity coefficient says of designs: blocks, rescalings, training, tables."""

from tpcalc.arguments import all_public as _all_public
from tpcalc.nonlinearity.tensors.gradients import parameter_growth as parameter_growth
from tpcalc.nonlinearity.tensors.gradients import parameter_shift as parameter_shift
from tpcalc.practice.ablation import ablation as ablation
from tpcalc.practice.advice import guidelines as guidelines
from tpcalc.practice.blocks import architecture_type as architecture_type
from tpcalc.practice.blocks import least_depth as least_depth
from tpcalc.practice.blocks import residual_units as residual_units
from tpcalc.practice.blocks import trichotomy as trichotomy
from tpcalc.practice.gradient_scales import gradient_scales as gradient_scales
from tpcalc.practice.guidelines import all_or_nothing as all_or_nothing
from tpcalc.practice.guidelines import elasticity as elasticity
from tpcalc.practice.limits import layer_limits as layer_limits
from tpcalc.practice.methods import Linearization as Linearization
from tpcalc.practice.nlnorm import normed as normed
from tpcalc.practice.rescalings import invariance as invariance
from tpcalc.practice.rescalings import rescaled as rescaled
from tpcalc.practice.rescalings import setting as setting
from tpcalc.practice.rewrites import norm_first as norm_first
from tpcalc.practice.rewrites import orthogonal as orthogonal
from tpcalc.practice.rewrites import retune as retune
from tpcalc.practice.rewrites import rewritten as rewritten
from tpcalc.practice.rewrites import scale_weights as scale_weights
from tpcalc.practice.rewrites import skipping as skipping
from tpcalc.practice.rewrites import swap as swap
from tpcalc.practice.rewrites import unit_weights as unit_weights
from tpcalc.practice.study_a import study_width as study_width
from tpcalc.practice.study_b import study_b as study_b
from tpcalc.practice.tables import table as table
from tpcalc.practice.training import debiased_run as debiased_run
from tpcalc.practice.training import first_layer_only as first_layer_only
from tpcalc.practice.training import loss_scales as loss_scales
from tpcalc.practice.training import output_bias as output_bias
from tpcalc.practice.training import output_shift as output_shift
from tpcalc.practice.training import rate_grid as rate_grid
from tpcalc.practice.training import shift_powers as shift_powers
from tpcalc.practice.training import shifts as shifts
from tpcalc.results.practice import FAILURES as FAILURES
from tpcalc.results.practice import Thresholds as Thresholds

_all_public(globals())
