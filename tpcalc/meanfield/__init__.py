"""Signal propagation: layers, maps, spectra, the nonlinearity coefficient (``tp.signal``).

``operations``, ``graph``, ``recursion``: layers, and the mean-field state carried through them.
``layers``, ``reading``: programs of networks as such layers; ``notation``: layers line by line.
``activations``, ``maps``: what one activation and one layer do: fixed points, edge of chaos.
``spectra``: squared singular values of weights and Jacobians.
``nonlinearity``, ``answer``: the nonlinearity coefficient; that of any function, and of networks of
finite width, has a room of its own, ``tpcalc.nonlinearity``.
"""

from typing import Any

from tpcalc.arguments import all_public as _all_public
from tpcalc.integrals.activation_moments import Kernels as Kernels
from tpcalc.meanfield.activations.asymptotics import asymptotes as asymptotes
from tpcalc.meanfield.activations.calibrate import calibrated as calibrated
from tpcalc.meanfield.activations.calibrate import debiased as debiased
from tpcalc.meanfield.activations.calibrate import normalized as normalized
from tpcalc.meanfield.activations.covariance import CovarianceKernel as CovarianceKernel
from tpcalc.meanfield.activations.fixed_points import Iteration as Iteration
from tpcalc.meanfield.activations.length import LengthKernel as LengthKernel
from tpcalc.meanfield.activations.split import split as split
from tpcalc.meanfield.answer import nonlinearity as nonlinearity
from tpcalc.meanfield.concrete import concrete as concrete
from tpcalc.meanfield.conditions import Finding as Finding
from tpcalc.meanfield.conditions import findings as findings
from tpcalc.meanfield.covariance import bandwidth as bandwidth
from tpcalc.meanfield.covariance import covariance as covariance
from tpcalc.meanfield.covariance import kernel_slope as kernel_slope
from tpcalc.meanfield.maps.curves import correlation_curve as correlation_curve
from tpcalc.meanfield.maps.curves import correlations as correlations
from tpcalc.meanfield.maps.curves import edge_curve as edge_curve
from tpcalc.meanfield.maps.curves import length_curve as length_curve
from tpcalc.meanfield.maps.curves import lengths as lengths
from tpcalc.meanfield.maps.curves import scale_curve as scale_curve
from tpcalc.meanfield.maps.layer_map import LayerMap as LayerMap
from tpcalc.meanfield.maps.layer_map import edge_of_chaos as edge_of_chaos
from tpcalc.meanfield.maps.layer_map import edges as edges
from tpcalc.meanfield.maps.layer_map import low_rank_start as low_rank_start
from tpcalc.meanfield.maps.sequence import LayerSequence as LayerSequence
from tpcalc.meanfield.maps.shared_bias import shared_bias_length as shared_bias_length
from tpcalc.meanfield.maps.shared_bias import shared_bias_lengths as shared_bias_lengths
from tpcalc.meanfield.measured import Sampling as Sampling
from tpcalc.meanfield.network import network_of as network_of
from tpcalc.meanfield.nonlinearity import heaviest_paths as heaviest_paths
from tpcalc.meanfield.nonlinearity import nlc as nlc
from tpcalc.meanfield.nonlinearity import path_nlc as path_nlc
from tpcalc.meanfield.notation.architectures import Design as Design
from tpcalc.meanfield.notation.architectures import mlp as mlp
from tpcalc.meanfield.notation.architectures import resnet as resnet
from tpcalc.meanfield.notation.macro_layers import MacroLayers as MacroLayers
from tpcalc.meanfield.notation.macro_layers import drawn_macro_layers as drawn_macro_layers
from tpcalc.meanfield.notation.notation import graph_text as graph_text
from tpcalc.meanfield.notation.notation import parse_graph as parse_graph
from tpcalc.meanfield.operations import Input as Input
from tpcalc.meanfield.plain import plain as plain
from tpcalc.meanfield.program import program_of as program_of
from tpcalc.meanfield.reading import layers as layers
from tpcalc.meanfield.reading import propagate as propagate
from tpcalc.meanfield.sheet import sheet as sheet
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
from tpcalc.meanfield.spread import spread as spread
from tpcalc.meanfield.stability import stability as stability
from tpcalc.meanfield.stability import stability_number as stability_number
from tpcalc.meanfield.state import State as State
from tpcalc.meanfield.survey import survey as survey
from tpcalc.nonlinearity.chaos import grid_chaos as grid_chaos
from tpcalc.nonlinearity.chaos import polynomial_chaos as polynomial_chaos
from tpcalc.nonlinearity.gaussian import gaussian_nlc as gaussian_nlc
from tpcalc.nonlinearity.gaussian import gaussian_split as gaussian_split
from tpcalc.nonlinearity.interval import interval_nlc as interval_nlc
from tpcalc.nonlinearity.labels import elem_like_pairs as elem_like_pairs
from tpcalc.nonlinearity.labels import pair_nlc as pair_nlc
from tpcalc.nonlinearity.laws import Box as Box
from tpcalc.nonlinearity.laws import Empirical as Empirical
from tpcalc.nonlinearity.laws import Gaussian as Gaussian
from tpcalc.nonlinearity.laws import Sampler as Sampler
from tpcalc.nonlinearity.laws import Sphere as Sphere
from tpcalc.nonlinearity.measured import sampled_nlc as sampled_nlc
from tpcalc.nonlinearity.meta import elem_like as elem_like
from tpcalc.nonlinearity.meta import elem_like_test as elem_like_test
from tpcalc.nonlinearity.meta import meta_gaussian as meta_gaussian
from tpcalc.nonlinearity.meta import meta_moments as meta_moments
from tpcalc.nonlinearity.noise import noise_curve as noise_curve
from tpcalc.nonlinearity.noise import noise_identity as noise_identity
from tpcalc.nonlinearity.noise import noise_limit as noise_limit
from tpcalc.nonlinearity.ranges import linear_range as linear_range
from tpcalc.nonlinearity.scaling import product_estimate as product_estimate
from tpcalc.nonlinearity.scaling import scale_sweep as scale_sweep
from tpcalc.nonlinearity.scaling import triangle_network as triangle_network
from tpcalc.nonlinearity.shapes import meta_gaussianity as meta_gaussianity
from tpcalc.nonlinearity.split import sampled_split as sampled_split
from tpcalc.nonlinearity.tensors import coefficient as _measured
from tpcalc.nonlinearity.tensors.coefficient import error_radius as error_radius
from tpcalc.nonlinearity.tensors.coefficient import linear_part as linear_part
from tpcalc.nonlinearity.tensors.coefficient import local_linearity as local_linearity
from tpcalc.nonlinearity.tensors.coefficient import noise_errors as noise_errors
from tpcalc.nonlinearity.tensors.coefficient import single_batch_nlc as single_batch_nlc
from tpcalc.nonlinearity.tensors.functions import elementlike_inputs as elementlike_inputs
from tpcalc.nonlinearity.tensors.functions import gaussian_inputs as gaussian_inputs
from tpcalc.nonlinearity.tensors.functions import tapped as tapped
from tpcalc.nonlinearity.tensors.gradients import gradient_lengths as gradient_lengths
from tpcalc.nonlinearity.tensors.gradients import gradient_nlc as gradient_nlc
from tpcalc.nonlinearity.tensors.gradients import parameter_growth as parameter_growth
from tpcalc.nonlinearity.tensors.gradients import tangent_transfer as tangent_transfer
from tpcalc.nonlinearity.tensors.jacobians import jacobian_moments as jacobian_moments
from tpcalc.nonlinearity.tensors.jacobians import layer_variances as layer_variances
from tpcalc.nonlinearity.tensors.layers import between as between
from tpcalc.nonlinearity.tensors.layers import chain_nlc as chain_nlc
from tpcalc.nonlinearity.tensors.layers import layer_metrics as layer_metrics
from tpcalc.nonlinearity.tensors.layers import layerwise_nlc as layerwise_nlc

measured_nlc = _measured.nlc
_all_public(globals())


_WRITTEN = {
    "Layer": "a line of tp.signal.parse_graph",
    "LayerGraph": "a function net(t, x), or tp.signal.parse_graph",
    "chain": "a function net(t, x), or tp.signal.parse_graph",
    "Dense": "t.linear(t.n, t.n) with a factor in front, or dense(a, variance) in a text",
    "Bias": "t.linear(..., bias=True), or bias(a, variance) in a text",
    "SpanBias": "tp.layers.LowRank(..., bias='span'), or span_bias(a, variance, rank) in a text",
    "SharedBias": "tp.layers.LowRank(..., bias='shared'), or shared_bias(...) in a text",
    "LayerNorm": "tp.layer_norm(h), or layer_norm(a) in a text",
    "BatchNorm": "tp.layers.batch_norm(h, 'b'), or batch_norm(a) in a text",
    "Addition": "a sum h + g, also in a text",
    "Product": "a product h * g, also in a text",
    "exponents": "tp.orders(tp.signal.program_of(net)), where q is the square, v the gap and g the "
    "gradient",
    "Activation": "the activation itself: tp.tanh, 'tanh', a formula, a function",
}
"""What took the place of names that this room had before there was one way to write and to ask."""


def __getattr__(name: str) -> Any:
    if name in _WRITTEN:
        raise AttributeError(
            f"tp.signal.{name} is gone: there is one way to say it. Write {_WRITTEN[name]}."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
