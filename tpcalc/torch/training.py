"""Modules and their optimizers as networks and training runs, and what questions ask of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from tpcalc.dsl.operands import line_of
from tpcalc.errors import UsageError
from tpcalc.networks.network import Architecture
from tpcalc.networks.own import is_network
from tpcalc.program.family import ROLES
from tpcalc.results import Samples
from tpcalc.torch.export import traced
from tpcalc.torch.exported import arguments, check_twice
from tpcalc.torch.family import family
from tpcalc.torch.network import Module
from tpcalc.torch.optimizers.recipe import read_recipe
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.training import Routine, Training, as_training

OWN = "own"
NO_EPS = (
    "eps of {} is no power of the width and counts as absent: where gradients vanish with the "
    "width, it decides from some width on (eps=True keeps it)"
)
Make = Callable[..., Any]


class QuestionSettings(Routine, total=False):
    """What questions about training take: of networks, and of modules with ``inputs``."""

    inputs: Any
    clip: float
    rule: str
    init: Mapping[str, Any]
    output: str


def network(
    make: Make,
    inputs: Any,
    *,
    width: str = "",
    options: Mapping[str, Any] | None = None,
    widths: Sequence[int] | None = None,
    init: Mapping[str, Any] | None = None,
    output: str = "",
    eps: bool = False,
) -> Module:
    """A family of modules of torch as a network, for every question about networks.

    What ``make`` runs is the user's code. Its modules are built at several widths, exported by
    ``torch.export``, and read operation by operation: whatever grows with n is infinite.

    Args:
        make: A function of the width n that makes a module, or a class of modules with ``width``.
        inputs: Example tensors: one, a tuple of them, a dictionary by name, or a function of n.
            Whole numbers are looked up in tables; masks and other whole numbers count as given.
            Questions that ask for no data take generic numbers of these shapes.
        width: The argument of a class that grows.
        options: Its other arguments.
        widths: At least three; 64, 128, 192, 320 where the modules take them.
        init: Standard deviations of parameters that cannot be read, by name: ``"n^(-1/2)"``.
        output: The number of the output that is meant; the first tensor of floats otherwise.
        eps: Whether norms keep the small number beside a mean square over the width; without it
            exponents are those of widths at which it does not show.

    Returns:
        The network; its parameterization is ``"own"``: parameters start as they do in torch.

    Raises:
        TraceError: A branch on data, an operation without a rule, dimensions that no ratio of the
            width explains.
        StudyError: An init that cannot be read.
        MissingBackend: No torch.

    Example:
        >>> from tpcalc.engine.device.devices import load_torch
        >>> nn = load_torch().nn
        >>> def make(n):
        ...     return nn.Sequential(nn.Linear(3, n), nn.ReLU(), nn.Linear(n, 1, bias=False))
        >>> made = network(make, load_torch().ones(2, 3))
        >>> [(mark.label, mark.role) for mark in made.marks]
        [('0.weight', 'input'), ('0.bias', 'bias'), ('2.weight', 'readout')]
    """
    made = family(make, widths, width=width, options=options, init=init)
    called = {one: parameter.name for parameter in made.parameters for one in parameter.names}
    found = Module(traced(made.name, made.modules, inputs, called, output), made, eps)
    first = made.widths[0]
    check_twice(f"{made.name}({first})", made.modules[first], made.again, arguments(inputs, first))
    return found


def training(
    make: Make,
    inputs: Any,
    *,
    optimizer: Any = None,
    clip: float | None = None,
    rule: str | None = None,
    width: str = "",
    options: Mapping[str, Any] | None = None,
    widths: Sequence[int] | None = None,
    init: Mapping[str, Any] | None = None,
    output: str = "",
    eps: bool = False,
    data: Samples | None = None,
    **settings: Any,
) -> Training:
    """A family of modules and its optimizer as a training run, for every question about training.

    Args:
        make: As for ``network``, like all that is not named here.
        inputs: Example tensors.
        optimizer: A function of a module and its width that makes an optimizer of torch, or
            several; or the text of one (``"adamw(lr=3e-4)"``); None: Adam.
        clip: The largest norm of all gradients together.
        rule: The text of an optimizer whose class is not known; rates are those of its groups.
        width: The argument of a class that grows.
        options: Its other arguments.
        widths: At least three.
        init: Standard deviations of parameters, by name.
        output: The number of the output that is meant.
        eps: Whether norms and the optimizer keep their small number.
        data: Training data (``torch.samples``); None: generic.
        settings: ``steps``, ``loss``, ``schedule``, ``batch`` and more, as ``tp.Training`` takes
            them.

    Returns:
        The run; its learning rates are those of the optimizer, parameter by parameter.

    Raises:
        TpcalcError: As ``network``; besides, an optimizer that cannot be read.

    Example:
        >>> from tpcalc.engine.device.devices import load_torch
        >>> torch = load_torch()
        >>> def make(n):
        ...     return torch.nn.Sequential(torch.nn.Linear(3, n), torch.nn.Linear(n, 1))
        >>> def sgd(model, n):
        ...     return torch.optim.SGD(model.parameters(), lr=1 / n)
        >>> run = training(make, torch.ones(2, 3), optimizer=sgd)
        >>> run.optimizer.name, str(run.rate(run.network.marks[0], 0)[1])
        ('sgd', '1')
    """
    made = network(make, inputs, width=width, options=options, widths=widths, init=init,
                   output=output, eps=eps)  # fmt: skip
    recipe = read_recipe(optimizer, made.family, clip=clip, rule=rule)
    made.told, made.recipe = recipe.notes, recipe
    made.made_by = {"inputs": inputs, "optimizer": optimizer, "clip": clip}
    own = {mark.label: recipe.groups.get(mark.whole or mark.label) for mark in made.marks}
    groups = {pattern(label): dict(found) for label, found in own.items() if found}
    if not eps:  # as in norms: it shows at widths at which gradients are as small
        for found in groups.values():
            found.update({k: _without_eps(v) for k, v in found.items() if k == "optimizer"})
    chosen = recipe.optimizer if eps else _without_eps(recipe.optimizer)
    if chosen != recipe.optimizer:
        made.told = (*made.told, NO_EPS.format(recipe.optimizer.name))
    return Training(made, OWN, data, optimizer=chosen, **{"groups": groups, **settings})


def _without_eps(optimizer: Any) -> Any:
    """An optimizer without an eps that has no power of the width."""
    return optimizer.with_settings(eps=0) if optimizer.has_constant_eps else optimizer


def pattern(label: str) -> str:
    """A pattern of groups that one label fits.

    Example:
        >>> pattern("head.weight"), pattern("bias")
        ('head.weight', '[b]ias')
    """
    return f"[{label[0]}]{label[1:]}" if label in ROLES else label


def as_run(
    architecture: Architecture | Training | Make,
    parameterization: Parameterization | str | None,
    data: Samples | None,
    settings: QuestionSettings | Mapping[str, Any],
    steps: int,
) -> Training:
    """The run that a question is about: a record, a network with its settings, or modules."""
    if "inputs" not in settings:
        if callable(architecture) and not is_network(architecture):
            raise UsageError(
                f"{getattr(architecture, '__name__', architecture)!r} is no network.",
                where=line_of(architecture),
                hint="If it makes modules of torch, give inputs=, example tensors that they read.",
            )
        return as_training(cast(Architecture, architecture), parameterization, data,
                           cast(Routine, settings), steps)  # fmt: skip
    if isinstance(architecture, Architecture | Training):
        raise UsageError(
            "inputs= are those of modules of torch, and a network has its own.",
            hint="Leave inputs= out, or give what makes the modules.",
        )
    run = training(architecture, **{"steps": steps, "data": data, **settings})
    return run if parameterization is None else run.replace(parameterization=parameterization)
