"""What ``import tpcalc as tp`` has, for checkers of types; it is loaded on first use."""

from fractions import Fraction
from typing import Protocol, overload

from tpcalc import errors as errors
from tpcalc import signal as signal
from tpcalc import testing as testing
from tpcalc import torch as torch
from tpcalc.activations.public import function as function
from tpcalc.data import csv as csv
from tpcalc.data import digits as digits
from tpcalc.data import images as images
from tpcalc.dsl import Elementwise
from tpcalc.dsl import L as L
from tpcalc.dsl import Scalar as Scalar
from tpcalc.dsl import Tracer as Tracer
from tpcalc.dsl import Vector as Vector
from tpcalc.dsl import extend as extend
from tpcalc.dsl import mean as mean
from tpcalc.dsl import n as n
from tpcalc.dsl import program as program
from tpcalc.dsl import symbol as symbol
from tpcalc.evaluate.answers import Limit as Limit
from tpcalc.evaluate.answers import LimitVector as LimitVector
from tpcalc.evaluate.expect import closed_form as closed_form
from tpcalc.evaluate.expect import expect as expect
from tpcalc.experiments.sweep import sweep as sweep
from tpcalc.experiments.transfer import transfer as transfer
from tpcalc.functions.rows import RowFn
from tpcalc.networks import layers as layers
from tpcalc.networks.architectures.mlp import MLP as MLP
from tpcalc.networks.architectures.resnet import ResNet as ResNet
from tpcalc.networks.architectures.rnn import RNN as RNN
from tpcalc.networks.files import load as load
from tpcalc.networks.files import parse as parse
from tpcalc.networks.files import save as save
from tpcalc.networks.layers.norms import layer_norm as layer_norm
from tpcalc.networks.layers.norms import rms_norm as rms_norm
from tpcalc.networks.own import Network as Network
from tpcalc.networks.own import network as network
from tpcalc.networks.tracer import NetworkTracer as NetworkTracer
from tpcalc.program.program import Program as Program
from tpcalc.questions.by_depth import limit as limit
from tpcalc.questions.by_depth import simulate as simulate
from tpcalc.questions.check import check as check
from tpcalc.questions.compare import compare as compare
from tpcalc.questions.coordinate_check import coordinate_check as coordinate_check
from tpcalc.questions.dependencies import corrections as corrections
from tpcalc.questions.dependencies import dependencies as dependencies
from tpcalc.questions.depth.at_depth import at_depth as at_depth
from tpcalc.questions.depth.regularity import regularity as regularity
from tpcalc.questions.equivalent import equivalent as equivalent
from tpcalc.questions.first_order import first_order as first_order
from tpcalc.questions.initial_weights import initial_weights as initial_weights
from tpcalc.questions.kernel.empirical import empirical_kernel as empirical_kernel
from tpcalc.questions.kernel.kernel import kernel as kernel
from tpcalc.questions.kernel.scikit import KernelFunction as KernelFunction
from tpcalc.questions.measure import measure as measure
from tpcalc.questions.orders import Orders as Orders
from tpcalc.questions.orders import orders as orders
from tpcalc.questions.phases import phases as phases
from tpcalc.questions.solve import solve as solve
from tpcalc.questions.suggest import suggest as suggest
from tpcalc.results import Card as Card
from tpcalc.results import Contrast as Contrast
from tpcalc.results import Estimate as Estimate
from tpcalc.results import FiniteTable as FiniteTable
from tpcalc.results import Kernel as Kernel
from tpcalc.results import Samples as Samples
from tpcalc.tasks.use import use as use
from tpcalc.theorems import depth as depth
from tpcalc.theorems import integrable as integrable
from tpcalc.theorems import resnets as resnets
from tpcalc.theorems.card import card as card
from tpcalc.training.recipe import recipe as recipe
from tpcalc.training.training import Training as Training
from tpcalc.training.training import train as train
from tpcalc.views.page import report as report

__version__: str

class _Family(Protocol):
    """An activation with parameters: ``tp.leaky_relu(0.2)(h)``."""

    @overload
    def __call__(self, z: Vector, /) -> Vector: ...
    @overload
    def __call__(self, z: Scalar, /) -> Scalar: ...
    @overload
    def __call__(self, *parameters: float | Fraction | str) -> Elementwise: ...

abs: Elementwise
cos: Elementwise
erf: Elementwise
even_tanh: Elementwise
exp: Elementwise
gelu: Elementwise
heaviside: Elementwise
identity: Elementwise
linear: Elementwise
log: Elementwise
logistic: Elementwise
normal_cdf: Elementwise
normal_pdf: Elementwise
odd_square: Elementwise
relu: Elementwise
selu: Elementwise
selu_slope: Elementwise
sigmoid: Elementwise
sign: Elementwise
silu: Elementwise
sin: Elementwise
softplus: Elementwise
sqrt: Elementwise
square: Elementwise
step: Elementwise
swish: Elementwise
tanh: Elementwise

elu: _Family
elu_slope: _Family
gaussian: _Family
leaky_relu: _Family
poly: _Family
polynomial: _Family
relu_pow: _Family
sawtooth: _Family
square_wave: _Family
triangle_wave: _Family

softmax: RowFn
