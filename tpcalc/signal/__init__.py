"""Signal propagation: layers, maps, spectra, the nonlinearity coefficient (``tp.signal``).

``reading``, ``stretches``, ``fusing``, ``parts``, ``norms``, ``batch``: networks as layers.
``operations``, ``graph``: what those layers are, and the mean-field state carried through them.
``lines``, ``words``, ``notation``: networks written line by line; ``architectures``,
``macro_layers`` write such lines.
``given``: activations, however they are handed over.
``maps``, ``curves``, ``survey``: length and correlation maps, edge of chaos, depth scales.
``spectra``, ``probes``: squared singular values of Jacobians.
``nonlinearity``, ``answer``: the nonlinearity coefficient; ``black_box``: that of a function;
``tpcalc.finite.nonlinearity``: of networks of finite width.
``activations``: what one activation does.
"""

from typing import Any

from tpcalc.finite.nonlinearity import coefficient as _measured
from tpcalc.finite.nonlinearity.between import between as between
from tpcalc.finite.nonlinearity.jacobian_spectra import jacobian_moments as jacobian_moments
from tpcalc.finite.nonlinearity.layer_metrics import layer_metrics as layer_metrics
from tpcalc.finite.nonlinearity.layerwise import chain_nlc as chain_nlc
from tpcalc.finite.nonlinearity.layerwise import layerwise_nlc as layerwise_nlc
from tpcalc.finite.nonlinearity.linear_part import linear_part as linear_part
from tpcalc.finite.nonlinearity.local_linearity import local_linearity as local_linearity
from tpcalc.finite.nonlinearity.loss_gradients import gradient_lengths as gradient_lengths
from tpcalc.finite.nonlinearity.loss_gradients import gradient_nlc as gradient_nlc
from tpcalc.finite.nonlinearity.robustness import error_radius as error_radius
from tpcalc.finite.nonlinearity.robustness import noise_errors as noise_errors
from tpcalc.finite.nonlinearity.single import single_batch_nlc as single_batch_nlc
from tpcalc.finite.nonlinearity.tangent import parameter_growth as parameter_growth
from tpcalc.finite.nonlinearity.tangent import tangent_transfer as tangent_transfer
from tpcalc.finite.nonlinearity.taps import tapped as tapped
from tpcalc.finite.nonlinearity.variances import layer_variances as layer_variances
from tpcalc.finite.surrogates import elementlike_inputs as elementlike_inputs
from tpcalc.finite.surrogates import gaussian_inputs as gaussian_inputs
from tpcalc.signal.activations.asymptotics import asymptotes as asymptotes
from tpcalc.signal.activations.calibrate import calibrated as calibrated
from tpcalc.signal.activations.calibrate import debiased as debiased
from tpcalc.signal.activations.calibrate import normalized as normalized
from tpcalc.signal.activations.covariance import CovarianceKernel as CovarianceKernel
from tpcalc.signal.activations.fixed_points import Iteration as Iteration
from tpcalc.signal.activations.length import LengthKernel as LengthKernel
from tpcalc.signal.activations.plain import plain as plain
from tpcalc.signal.activations.sheet import sheet as sheet
from tpcalc.signal.activations.split import split as split
from tpcalc.signal.answer import nonlinearity as nonlinearity
from tpcalc.signal.architectures import Design as Design
from tpcalc.signal.architectures import mlp as mlp
from tpcalc.signal.architectures import resnet as resnet
from tpcalc.signal.black_box.chaos import grid_chaos as grid_chaos
from tpcalc.signal.black_box.chaos import polynomial_chaos as polynomial_chaos
from tpcalc.signal.black_box.diagnostics import meta_gaussianity as meta_gaussianity
from tpcalc.signal.black_box.gaussian import gaussian_nlc as gaussian_nlc
from tpcalc.signal.black_box.gaussian import gaussian_split as gaussian_split
from tpcalc.signal.black_box.interval import interval_nlc as interval_nlc
from tpcalc.signal.black_box.labels import elem_like_pairs as elem_like_pairs
from tpcalc.signal.black_box.labels import pair_nlc as pair_nlc
from tpcalc.signal.black_box.laws import Box as Box
from tpcalc.signal.black_box.laws import Empirical as Empirical
from tpcalc.signal.black_box.laws import Gaussian as Gaussian
from tpcalc.signal.black_box.laws import Sampler as Sampler
from tpcalc.signal.black_box.laws import Sphere as Sphere
from tpcalc.signal.black_box.linear_range import linear_range as linear_range
from tpcalc.signal.black_box.meta import elem_like as elem_like
from tpcalc.signal.black_box.meta import elem_like_test as elem_like_test
from tpcalc.signal.black_box.meta import meta_gaussian as meta_gaussian
from tpcalc.signal.black_box.meta import meta_moments as meta_moments
from tpcalc.signal.black_box.noise import noise_curve as noise_curve
from tpcalc.signal.black_box.noise import noise_identity as noise_identity
from tpcalc.signal.black_box.noise import noise_limit as noise_limit
from tpcalc.signal.black_box.sampled import sampled_nlc as sampled_nlc
from tpcalc.signal.black_box.scaling import product_estimate as product_estimate
from tpcalc.signal.black_box.scaling import scale_sweep as scale_sweep
from tpcalc.signal.black_box.scaling import triangle_network as triangle_network
from tpcalc.signal.black_box.split import sampled_split as sampled_split
from tpcalc.signal.concrete import concrete as concrete
from tpcalc.signal.conditions import Finding as Finding
from tpcalc.signal.conditions import findings as findings
from tpcalc.signal.covariance import bandwidth as bandwidth
from tpcalc.signal.covariance import covariance as covariance
from tpcalc.signal.covariance import kernel_slope as kernel_slope
from tpcalc.signal.kernels import Kernels as Kernels
from tpcalc.signal.macro_layers import MacroLayers as MacroLayers
from tpcalc.signal.macro_layers import drawn_macro_layers as drawn_macro_layers
from tpcalc.signal.maps.curves import correlation_curve as correlation_curve
from tpcalc.signal.maps.curves import correlations as correlations
from tpcalc.signal.maps.curves import edge_curve as edge_curve
from tpcalc.signal.maps.curves import length_curve as length_curve
from tpcalc.signal.maps.curves import lengths as lengths
from tpcalc.signal.maps.curves import scale_curve as scale_curve
from tpcalc.signal.maps.layer_map import LayerMap as LayerMap
from tpcalc.signal.maps.layer_map import edge_of_chaos as edge_of_chaos
from tpcalc.signal.maps.layer_map import edges as edges
from tpcalc.signal.maps.layer_map import low_rank_start as low_rank_start
from tpcalc.signal.maps.sequence import LayerSequence as LayerSequence
from tpcalc.signal.maps.shared_bias import shared_bias_length as shared_bias_length
from tpcalc.signal.maps.shared_bias import shared_bias_lengths as shared_bias_lengths
from tpcalc.signal.measured import Sampling as Sampling
from tpcalc.signal.network import network_of as network_of
from tpcalc.signal.nonlinearity import heaviest_paths as heaviest_paths
from tpcalc.signal.nonlinearity import nlc as nlc
from tpcalc.signal.nonlinearity import path_nlc as path_nlc
from tpcalc.signal.notation import graph_text as graph_text
from tpcalc.signal.notation import parse_graph as parse_graph
from tpcalc.signal.operations import Input as Input
from tpcalc.signal.program import program_of as program_of
from tpcalc.signal.reading import layers as layers
from tpcalc.signal.reading import propagate as propagate
from tpcalc.signal.spectra.laws import WeightLaw as WeightLaw
from tpcalc.signal.spectra.probes import probe_moments as probe_moments
from tpcalc.signal.spectra.probes import probe_program as probe_program
from tpcalc.signal.spectra.singular_values import singular_values as singular_values
from tpcalc.signal.spectra.spectrum import Spectrum as Spectrum
from tpcalc.signal.spectra.spectrum import finite_moments as finite_moments
from tpcalc.signal.spectra.spectrum import finite_variance as finite_variance
from tpcalc.signal.spectra.spectrum import jacobian as jacobian
from tpcalc.signal.spectra.spectrum import of_moments as of_moments
from tpcalc.signal.spectra.spectrum import padded_variance as padded_variance
from tpcalc.signal.spectra.spectrum import slope_spectrum as slope_spectrum
from tpcalc.signal.spectra.spectrum import weight_spectrum as weight_spectrum
from tpcalc.signal.spread import spread as spread
from tpcalc.signal.stability import stability as stability
from tpcalc.signal.stability import stability_number as stability_number
from tpcalc.signal.state import State as State
from tpcalc.signal.survey import survey as survey

measured_nlc = _measured.nlc


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
