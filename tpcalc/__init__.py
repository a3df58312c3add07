"""tpcalc: the infinite-width limit of neural-network computations.

A person writes a Tensor Program, or names an architecture, a parameterization and data, and learns
how large everything is (exact powers of the width), what it converges to, with error bars, and
whether networks of finite width agree.

Language:
    program, n, L, symbol, Tracer, Vector, Scalar, function, mean, extend
Networks:
    MLP, ResNet, RNN; network, Network, NetworkTracer (one's own); layers: attention, convolutions,
    recurrent cells, norms and more to write networks with; layer_norm, rms_norm
Programs of training runs:
    Training, train, Samples, digits, csv; images (labelled, for classification)
Questions:
    orders, check, first_order (of the first steps), solve, phases, measure, limit,
    kernel, empirical_kernel (of finite networks), simulate, compare, equivalent, report,
    coordinate_check, suggest (of modules of torch: what was measured, what to change),
    (limit and simulate take depths= and depth= of a run of L blocks, or its start),
    regularity (of weights along the depth, and the power of L that suits them),
    recipe (its numbers in a script), transfer (best rates by width, depth),
    sweep (one question over a grid of settings of a study),
    dependencies, corrections, initial_weights (what limits are functions of),
    expect and closed_form (one Gaussian expectation), card (all about one parameterization)
Kernels for scikit-learn:
    KernelFunction
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
from typing import Any
from warnings import warn

__version__ = "0.1.0"

# Where each public name lives; loaded on first use, so that ``import tpcalc`` stays quick.
_PUBLIC = {
    "tpcalc.questions.by_depth": "limit simulate",
    "tpcalc.questions.check": "check",
    "tpcalc.questions.compare": "compare",
    "tpcalc.questions.coordinate_check": "coordinate_check",
    "tpcalc.questions.dependencies": "corrections dependencies",
    "tpcalc.questions.depth.at_depth": "at_depth",
    "tpcalc.questions.depth.regularity": "regularity",
    "tpcalc.experiments.sweep": "sweep",
    "tpcalc.experiments.transfer": "transfer",
    "tpcalc.questions.equivalent": "equivalent",
    "tpcalc.questions.first_order": "first_order",
    "tpcalc.questions.initial_weights": "initial_weights",
    "tpcalc.questions.kernel.empirical": "empirical_kernel",
    "tpcalc.questions.kernel.kernel": "kernel",
    "tpcalc.questions.kernel.scikit": "KernelFunction",
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
    "tpcalc.dsl": "L Scalar Tracer Vector extend mean n program symbol",
    "tpcalc.evaluate.answers": "Limit LimitVector",
    "tpcalc.evaluate.expect": "closed_form expect",
    "tpcalc.networks.own": "Network network",
    "tpcalc.networks.tracer": "NetworkTracer",
    "tpcalc.program.program": "Program",
    "tpcalc.views.page": "report",
    "tpcalc.results": "Card Contrast Estimate FiniteTable Kernel Samples",
    "tpcalc.theorems": "depth integrable",
    "tpcalc.theorems.card": "card",
}
_HOMES = {name: f"{home}:{name}" for home, names in _PUBLIC.items() for name in names.split()}
_HOMES |= {
    "layers": "tpcalc.networks.layers:",
    "resnets": "tpcalc.theorems.resnets:",
    "signal": "tpcalc.signal:",
}

# Names that are one with others now, for one version more.
_OLD = {
    "depth_limit": ("tpcalc.questions.depth.limit:depth_limit", "tp.limit(run, depths=...)"),
    "depth_simulate": (
        "tpcalc.questions.depth.simulate:depth_simulate",
        "tp.simulate(network, width, depth=...)",
    ),
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES or name in _OLD:
        from tpcalc.arguments import public

        if name in _OLD:
            home, told = _OLD[name]
            warn(f"tp.{name} is {told} now.", DeprecationWarning, stacklevel=2)
            return public(resolve_name(home))
        value: Any = public(resolve_name(_HOMES[name]))
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
