"""tpcalc: the infinite-width limit of neural-network computations.

A person writes a Tensor Program, or names an architecture, a parameterization and data, and learns
how large everything is (exact powers of the width), what it converges to, with error bars, and
whether networks of finite width agree.

Language:
    program, n, L, symbol, Tracer, function, mean, extend
Networks:
    MLP, ResNet, RNN; network, Network (one's own); layers: attention, convolutions, recurrent
    cells, norms and more to write networks with; layer_norm, rms_norm
Programs of training runs:
    Training, train, Samples, digits, csv; images (labelled, for classification)
Questions:
    orders, check, first_order (of the first steps), solve, phases, measure, limit, kernel,
    simulate, compare, equivalent, report,
    coordinate_check, suggest (of modules of torch: what was measured, what to change),
    depth_limit (a run of L blocks, or its start), depth_simulate (its start at finite width),
    regularity (of weights along the depth, and the power of L that suits them),
    recipe (its numbers in a script), transfer (best rates by width, depth),
    sweep (one question over a grid of settings of a study),
    dependencies, corrections, initial_weights (what limits are functions of),
    expect and closed_form (one Gaussian expectation), card (all about one parameterization)
Where it is computed:
    use (processes of this machine, a cluster)
Modules:
    torch: families of PyTorch modules as networks (torch.network, torch.training)
Theorems:
    integrable: the results of Hajjar, Chizat, Giraud as functions
    resnets: those of Marion, Fermanian, Biau, Vert on residual networks of large depth
    depth: one neuron of Yang, Yu, Zhu, Hayou: its first update, its limit in the depth
Signal propagation:
    signal: layer graphs, edge of chaos, Jacobian spectra, the nonlinearity coefficient
Reading and writing programs:
    Program, parse, save, load; at_depth (repeated blocks written out)
Activations:
    relu, tanh, erf, gelu, ... (``tpcalc.activations.entries.REGISTRY`` lists them); those with
    parameters are called with them first: ``tp.leaky_relu(0.2)(h)``. Functions of rows take the
    axis: ``tp.softmax(scores, along="p")``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pkgutil import resolve_name
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpcalc import meanfield
    from tpcalc.activations.public import function as function
    from tpcalc.data import csv as csv
    from tpcalc.data import digits as digits
    from tpcalc.data import images as images
    from tpcalc.dsl import L as L
    from tpcalc.dsl import Tracer as Tracer
    from tpcalc.dsl import extend as extend
    from tpcalc.dsl import mean as mean
    from tpcalc.dsl import n as n
    from tpcalc.dsl import program as program
    from tpcalc.dsl import symbol as symbol
    from tpcalc.evaluate.answers import Limit as Limit
    from tpcalc.evaluate.expect import closed_form as closed_form
    from tpcalc.evaluate.expect import expect as expect
    from tpcalc.evaluate.limit import limit as limit
    from tpcalc.experiments.sweep import sweep as sweep
    from tpcalc.experiments.transfer import transfer as transfer
    from tpcalc.finite.simulate import simulate as simulate
    from tpcalc.networks import layers as layers
    from tpcalc.networks.architectures.mlp import MLP as MLP
    from tpcalc.networks.architectures.resnet import ResNet as ResNet
    from tpcalc.networks.architectures.rnn import RNN as RNN
    from tpcalc.networks.layers.norms import layer_norm as layer_norm
    from tpcalc.networks.layers.norms import rms_norm as rms_norm
    from tpcalc.networks.own import Network as Network
    from tpcalc.networks.own import network as network
    from tpcalc.program.program import Program as Program
    from tpcalc.questions.check import check as check
    from tpcalc.questions.compare import compare as compare
    from tpcalc.questions.coordinate_check import coordinate_check as coordinate_check
    from tpcalc.questions.dependencies import corrections as corrections
    from tpcalc.questions.dependencies import dependencies as dependencies
    from tpcalc.questions.depth.at_depth import at_depth as at_depth
    from tpcalc.questions.depth.limit import depth_limit as depth_limit
    from tpcalc.questions.depth.regularity import regularity as regularity
    from tpcalc.questions.depth.simulate import depth_simulate as depth_simulate
    from tpcalc.questions.equivalent import equivalent as equivalent
    from tpcalc.questions.first_order import first_order as first_order
    from tpcalc.questions.initial_weights import initial_weights as initial_weights
    from tpcalc.questions.kernel.kernel import kernel as kernel
    from tpcalc.questions.measure import measure as measure
    from tpcalc.questions.orders import Orders as Orders
    from tpcalc.questions.orders import orders as orders
    from tpcalc.questions.phases import phases as phases
    from tpcalc.questions.solve import solve as solve
    from tpcalc.questions.suggest import suggest as suggest
    from tpcalc.results import Card as Card
    from tpcalc.results import Contrast as Contrast
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
    from tpcalc.views.public import report as report

    signal = meanfield

__version__ = "0.1.0"

# Where each public name lives; loaded on first use, so that ``import tpcalc`` stays quick.
_PUBLIC = {
    "tpcalc.questions.check": "check",
    "tpcalc.questions.compare": "compare",
    "tpcalc.questions.coordinate_check": "coordinate_check",
    "tpcalc.questions.dependencies": "corrections dependencies",
    "tpcalc.questions.depth.at_depth": "at_depth",
    "tpcalc.questions.depth.limit": "depth_limit",
    "tpcalc.questions.depth.regularity": "regularity",
    "tpcalc.questions.depth.simulate": "depth_simulate",
    "tpcalc.experiments.sweep": "sweep",
    "tpcalc.experiments.transfer": "transfer",
    "tpcalc.questions.equivalent": "equivalent",
    "tpcalc.questions.first_order": "first_order",
    "tpcalc.questions.initial_weights": "initial_weights",
    "tpcalc.questions.kernel.kernel": "kernel",
    "tpcalc.questions.measure": "measure",
    "tpcalc.questions.orders": "Orders orders",
    "tpcalc.questions.phases": "phases",
    "tpcalc.questions.solve": "solve",
    "tpcalc.questions.suggest": "suggest",
    "tpcalc.networks.architectures.mlp": "MLP",
    "tpcalc.networks.architectures.resnet": "ResNet",
    "tpcalc.networks.architectures.rnn": "RNN",
    "tpcalc.networks.files": "load parse save",
    "tpcalc.networks.layers.norms": "layer_norm rms_norm",
    "tpcalc.activations.public": "function",
    "tpcalc.tasks.use": "use",
    "tpcalc.training.recipe": "recipe",
    "tpcalc.training.training": "Training train",
    "tpcalc.data": "csv digits images",
    "tpcalc.dsl": "L Tracer extend mean n program symbol",
    "tpcalc.evaluate.answers": "Limit",
    "tpcalc.evaluate.expect": "closed_form expect",
    "tpcalc.evaluate.limit": "limit",
    "tpcalc.finite.simulate": "simulate",
    "tpcalc.networks.own": "Network network",
    "tpcalc.program.program": "Program",
    "tpcalc.views.public": "report",
    "tpcalc.results": "Card Contrast FiniteTable Kernel Samples",
    "tpcalc.theorems": "depth integrable",
    "tpcalc.theorems.card": "card",
}
_HOMES = {name: f"{home}:{name}" for home, names in _PUBLIC.items() for name in names.split()}
_HOMES |= {
    "layers": "tpcalc.networks.layers:",
    "resnets": "tpcalc.theorems.resnets:",
    "signal": "tpcalc.meanfield:",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value: Any = resolve_name(_HOMES[name])
    elif not name.startswith("_") and find_spec(f"tpcalc.{name}"):
        value = import_module(f"tpcalc.{name}")
    else:
        value = _activation(name)
    globals()[name] = value
    return value


def _activation(name: str) -> Any:
    """A function of the catalogue as one of the DSL: an activation, or one of rows."""
    from tpcalc.activations import rows
    from tpcalc.activations.entries import REGISTRY
    from tpcalc.activations.public import as_function
    from tpcalc.dsl.operands import instead, no_attribute

    if name in rows.REGISTRY:
        return rows.REGISTRY[name]
    if name not in REGISTRY:
        raise no_attribute("tpcalc", name, [*_HOMES, *REGISTRY, *rows.REGISTRY], instead(name))
    return as_function(REGISTRY[name])


def __dir__() -> list[str]:
    from tpcalc.activations import rows
    from tpcalc.activations.entries import REGISTRY

    return sorted([*__all__, *REGISTRY, *rows.REGISTRY])


class _Face(ModuleType):
    """Some public functions share their name with a room (``program``, ``limit``, ``report``...).

    Importing a room binds its name here; the public name wins. ``from tpcalc.limit.derive import
    derive`` is not affected, ``import tpcalc.limit.derive as d`` is: write the former.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, (self.__name__,)  # functions of users hold it


sys.modules[__name__].__class__ = _Face
