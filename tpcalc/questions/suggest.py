"""``suggest``: rates, inits and multipliers of modules at which every parameter learns."""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.questions.start.rates import Fix, fixes
from tpcalc.results import (
    ZERO,
    Exponent,
    StableEdit,
    SuggestedFactor,
    SuggestedParameter,
    Suggestion,
)
from tpcalc.results.first_order import FINE
from tpcalc.results.tables import provenance
from tpcalc.torch.family import Parameter
from tpcalc.torch.network import Module
from tpcalc.torch.training import Make, training
from tpcalc.training.training import Training

BOUNDS = "by bounds on sizes; tp.first_order says of a network whether they are attained"
NOTHING = "nothing that was tried makes more of it learn: rates, starts, factors before functions"
PARTS = "parts of {} should start with factors n^p of their own, p = {}: that is written by hand"


def suggest(
    make: Training | Make,
    inputs: Any = None,
    *,
    base: int = 256,
    width: int = 4096,
    rates_only: bool = False,
    **settings: Any,
) -> Suggestion:
    """What to change in a module and its optimizer so that every parameter learns, line by line.

    Tried are the largest rates at which no step grows; and, at rates at which each layer moves by
    as much as there is of it, powers of n before what grows: before the start of the weights that
    make it, or before what reads it. What makes most parameters learn is kept, of equally good
    changes those of the fewest lines. Rates that are right as they are stay.

    Args:
        make: As for ``tp.torch.network``; or a run of ``tp.torch.training``, and nothing besides.
        inputs: As for ``tp.torch.network``.
        base: The width at which the module was tuned, where nothing changes.
        width: The width that factors are shown at.
        rates_only: Whether inits and code stay as they are.
        settings: What else ``tp.torch.training`` takes: ``optimizer``, ``clip``, ``init``, ...

    Returns:
        The lines; ``tp.torch.param_groups`` and ``tp.torch.init_`` take the answer and apply it.

    Raises:
        UsageError: A run of a network that is no module of torch.
        TpcalcError: As ``tp.torch.training``.

    Source: Yang et al., Tensor Programs V, for what a base width is.

    Example:
        >>> from tpcalc.engine.device.devices import load_torch
        >>> torch = load_torch()
        >>> def make(n):
        ...     return torch.nn.Sequential(
        ...         torch.nn.Linear(3, n, bias=False), torch.nn.Tanh(),
        ...         torch.nn.Linear(n, 1, bias=False),
        ...     )
        >>> found = suggest(make, torch.ones(2, 3), optimizer="adam(lr=1e-3)")
        >>> [(row.name, str(row.rate), str(row.start)) for row in found.rows]
        [('0.weight', '0', '0'), ('2.weight', '-1', '-1/2')]
        >>> model = make(1024)
        >>> found.rates(1024)["2.weight"], found.starts(1024)["2.weight"]
        (0.25, 0.5)
    """
    started = time.perf_counter()
    base, width = (checks.whole(n, of, least=1) for n, of in ((base, "base"), (width, "width")))
    run = make if isinstance(make, Training) else training(make, inputs, **settings)
    network = run.network
    if not isinstance(network, Module) or network.recipe is None:
        raise UsageError(
            "suggestions name lines of modules of torch and of their optimizer.",
            hint="tp.solve(...).edits says of other networks what makes them stable.",
        )
    as_is, found = fixes(run, {}, rates_only)
    best = found[0] if found else as_is
    others = dict.fromkeys(StableEdit(fix.lines, fix.word) for fix in found)
    notes = [*network.notes, BOUNDS, *_parts(best)]
    notes += [NOTHING] * (not found and any(as_is.wrong[:2]))
    seconds = time.perf_counter() - started
    return Suggestion(
        as_is.word,
        best.word,
        tuple(_rows(network, as_is, best)),
        tuple(
            SuggestedFactor(what, line, Exponent.number(power))
            for (what, line), power in best.edited.points.items()
        ),
        tuple(others)[1:],
        base,
        width,
        provenance(as_is.edited.sizes.steps.network.digest, None, {}, seconds),
        tuple(notes),
    )


def _rows(network: Module, as_is: Fix, best: Fix) -> Iterator[SuggestedParameter]:
    """The trained parameters; of parts the first stands for all."""
    recipe, wholes = network.recipe, best.wholes
    before = {whole: refs[0] for whole, refs in as_is.wholes.items()}
    for parameter in network.family.parameters:
        if parameter.name not in wholes:
            continue
        name, init, own = parameter.name, parameter.init, before[parameter.name]
        ref, *rest = wholes[name]
        starts = {best.start(one) for one in (ref, *rest)}
        rate = -as_is.edited.sizes.units(own)[1]
        axis, per = _growing(parameter)
        yield SuggestedParameter(
            name,
            init.line or parameter.line,
            recipe.lines.get(name, ""),
            recipe.group_of.get(name, ""),
            Exponent.number(rate),
            Exponent.number(rate + best.rates[ref]),
            Exponent.number(init.std.power) if init.std.number else ZERO,
            Exponent.number(starts.pop() if len(starts) == 1 else 0),
            _word(as_is, name),
            _word(best, name),
            best.deciding.get(ref, ""),
            axis,
            per,
        )


def _word(fix: Fix, name: str) -> str:
    """What steps of a parameter do: of its parts the first that is not right."""
    words = [fix.rows[ref].word for ref in fix.wholes[name]]
    return next((word for word in words if word not in FINE), words[0])


def _parts(fix: Fix) -> Iterator[str]:
    """Where starts of parts of one parameter differ."""
    for name, refs in fix.wholes.items():
        if len(starts := dict.fromkeys(map(fix.start, refs))) > 1:
            yield PARTS.format(name, ", ".join(map(str, starts)))


def _growing(parameter: Parameter) -> tuple[int, float]:
    """An axis of a shape that is a multiple of the width, and this multiple."""
    shapes = parameter.shapes
    for axis in range(len(next(iter(shapes.values())))):
        found = {Fraction(shape[axis], n) for n, shape in shapes.items()}
        if len(found) == 1:
            return axis, float(found.pop())
    return 0, 0.0
