"""Nonlinearity of any function, beyond its coefficient: of arrays, formulas, torch modules."""

from tpcalc.arguments import all_public as _all_public
from tpcalc.meanfield.explained import explained as explained
from tpcalc.nonlinearity.chaos import grid_chaos as grid_chaos
from tpcalc.nonlinearity.chaos import polynomial_chaos as polynomial_chaos
from tpcalc.nonlinearity.labels import elem_like_pairs as elem_like_pairs
from tpcalc.nonlinearity.labels import pair_nlc as pair_nlc
from tpcalc.nonlinearity.meta import elem_like as elem_like
from tpcalc.nonlinearity.meta import elem_like_test as elem_like_test
from tpcalc.nonlinearity.meta import meta_gaussian as meta_gaussian
from tpcalc.nonlinearity.meta import meta_moments as meta_moments
from tpcalc.nonlinearity.noise import noise_identity as noise_identity
from tpcalc.nonlinearity.regularity import neural_regularity as neural_regularity
from tpcalc.nonlinearity.scaling import product_estimate as product_estimate
from tpcalc.nonlinearity.scaling import scale_sweep as scale_sweep
from tpcalc.nonlinearity.scaling import triangle_network as triangle_network
from tpcalc.nonlinearity.shapes import meta_gaussianity as meta_gaussianity
from tpcalc.nonlinearity.tensors.coefficient import single_batch_nlc as single_batch_nlc
from tpcalc.nonlinearity.tensors.functions import elementlike_inputs as elementlike_inputs
from tpcalc.nonlinearity.tensors.functions import gaussian_inputs as gaussian_inputs
from tpcalc.nonlinearity.tensors.functions import tapped as tapped
from tpcalc.nonlinearity.tensors.gradients import gradient_lengths as gradient_lengths
from tpcalc.nonlinearity.tensors.gradients import gradient_nlc as gradient_nlc
from tpcalc.nonlinearity.tensors.gradients import parameter_growth as parameter_growth
from tpcalc.nonlinearity.tensors.gradients import tangent_kernel as tangent_kernel
from tpcalc.nonlinearity.tensors.gradients import tangent_transfer as tangent_transfer
from tpcalc.nonlinearity.tensors.jacobians import jacobian_moments as jacobian_moments
from tpcalc.nonlinearity.tensors.jacobians import jacobian_values as jacobian_values
from tpcalc.nonlinearity.tensors.jacobians import layer_variances as layer_variances
from tpcalc.nonlinearity.tensors.layers import between as between
from tpcalc.nonlinearity.tensors.layers import chain_nlc as chain_nlc
from tpcalc.nonlinearity.tensors.layers import layer_metrics as layer_metrics
from tpcalc.nonlinearity.tensors.layers import layerwise_nlc as layerwise_nlc
from tpcalc.nonlinearity.tensors.over_networks import jacobian_sweep as jacobian_sweep
from tpcalc.nonlinearity.tensors.over_networks import parameter_gradients as parameter_gradients

_all_public(globals())
