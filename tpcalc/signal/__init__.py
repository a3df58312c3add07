"""The face of signal propagation: what ``tp.signal`` shows.

What is asked of a network stands here: ``layers``, ``propagate``, ``stability``, ``nlc``,
``survey`` and more; so do ways to write layers (``mlp``, ``parse_graph``) and laws of inputs.

``activations``: what one activation does to lengths and covariances; calibrations.
``maps``: what one layer does: curves, edges of chaos.
``spectra``: squared singular values of weights and Jacobians.
``functions``: nonlinearity of any function, beyond its coefficient, which is ``nlc`` of them all.
``practice``: what all this says of designs: blocks, rescalings, training, published tables.
"""

from importlib import import_module as _import_module
from typing import Any as _Any
from warnings import warn as _warn

from tpcalc.arguments import all_public as _all_public
from tpcalc.meanfield.answer import nonlinearity as nonlinearity
from tpcalc.meanfield.concrete import concrete as concrete
from tpcalc.meanfield.conditions import Finding as Finding
from tpcalc.meanfield.conditions import findings as findings
from tpcalc.meanfield.covariance import bandwidth as bandwidth
from tpcalc.meanfield.covariance import covariance as covariance
from tpcalc.meanfield.covariance import kernel_slope as kernel_slope
from tpcalc.meanfield.maps.layer_map import LayerMap as LayerMap
from tpcalc.meanfield.maps.layer_map import edge_of_chaos as edge_of_chaos
from tpcalc.meanfield.maps.sequence import LayerSequence as LayerSequence
from tpcalc.meanfield.measured import Sampling as Sampling
from tpcalc.meanfield.network import network_of as network_of
from tpcalc.meanfield.nonlinearity import heaviest_paths as heaviest_paths
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
from tpcalc.meanfield.spread import spread as spread
from tpcalc.meanfield.stability import stability as stability
from tpcalc.meanfield.stability import stability_number as stability_number
from tpcalc.meanfield.state import State as State
from tpcalc.meanfield.survey import survey as survey
from tpcalc.nonlinearity.laws import Box as Box
from tpcalc.nonlinearity.laws import Empirical as Empirical
from tpcalc.nonlinearity.laws import Gaussian as Gaussian
from tpcalc.nonlinearity.laws import Sampler as Sampler
from tpcalc.nonlinearity.laws import Sphere as Sphere
from tpcalc.practice.advice import advise as advise
from tpcalc.practice.nlnorm import nlnorm as nlnorm
from tpcalc.signal import activations as activations
from tpcalc.signal import functions as functions
from tpcalc.signal import maps as maps
from tpcalc.signal import practice as practice
from tpcalc.signal import spectra as spectra
from tpcalc.signal.by_type import linear_range as linear_range
from tpcalc.signal.by_type import nlc as nlc
from tpcalc.signal.by_type import noise_curve as noise_curve
from tpcalc.signal.by_type import noise_limit as noise_limit
from tpcalc.signal.by_type import split as split

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


_FOLDED = {
    "nonlinearity.gaussian:gaussian_nlc": "nlc",
    "nonlinearity.interval:interval_nlc": "nlc",
    "nonlinearity.measured:sampled_nlc": "nlc",
    "nonlinearity.tensors.coefficient:measured_nlc": "nlc",
    "nonlinearity.gaussian:gaussian_split": "split",
    "nonlinearity.split:sampled_split": "split",
    "nonlinearity.tensors.coefficient:linear_part": "split",
    "nonlinearity.tensors.coefficient:local_linearity": "linear_range",
    "nonlinearity.tensors.coefficient:noise_errors": "noise_curve",
    "nonlinearity.tensors.coefficient:error_radius": "noise_limit",
}
"""Where names live that are one with others now, for one version more."""


def __getattr__(name: str) -> _Any:
    for home, whole in _FOLDED.items():
        module, _, old = home.partition(":")
        if name == old:
            _warn(f"tp.signal.{name} is tp.signal.{whole} now.", DeprecationWarning, stacklevel=2)
            return getattr(_import_module(f"tpcalc.{module}"), name)
    for room in (activations, functions, maps, spectra):
        if name in vars(room) and name[0] != "_":
            told = f"tp.signal.{name} is {room.__name__.replace('tpcalc', 'tp')}.{name} now."
            _warn(told, DeprecationWarning, stacklevel=2)
            return vars(room)[name]
    gone = f"tp.signal.{name} is gone: there is one way to say it. Write {_WRITTEN.get(name)}."
    raise AttributeError(gone if name in _WRITTEN else f"tp.signal has no attribute {name!r}.")
