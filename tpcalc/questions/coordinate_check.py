"""``coordinate_check``: modules of torch at finite widths, beside what is derived of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.progress import Progress
from tpcalc.questions.coordinates import WIDTHS, Hull, coordinates
from tpcalc.questions.first_order import first_order
from tpcalc.questions.start.attained import EXACT, MEASURED
from tpcalc.results import Exponent, FirstOrder, ModuleCheck, ReadPoint
from tpcalc.results.data import grouped
from tpcalc.torch.network import Module
from tpcalc.torch.runs import CHANGE, GRADIENT, START, TERM, Spot, Trial
from tpcalc.torch.training import Make, QuestionSettings, as_run
from tpcalc.training.training import Training

ZERO = Exponent(None, -1)
SCORES, READ, WRITTEN = "argument of softmax", ":scores", re.compile(r"h\[(.*)\.weight\] \(")


def coordinate_check(
    architecture: Training | Make,
    *,
    widths: Sequence[int] = WIDTHS,
    seeds: int = 4,
    rate: float | None = None,
    device: str = "cpu",
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Unpack[QuestionSettings],
) -> ModuleCheck:
    """A coordinate check with a verdict: first steps of real modules, beside derived powers.

    Two verdicts are kept apart: ``code``, whether the modules do at finite width what is derived of
    their code and their optimizer, and ``recipe``, the word of what is derived.

    Args:
        architecture: What makes modules, with ``inputs`` and ``optimizer`` (a function of a module
            and its width); or a run of ``tp.torch.training``, and nothing of it besides.
        widths: Of the modules that are run, two or more.
        seeds: Modules of each width.
        rate: The factor of all learning rates; None: such that outputs change by about 1/20.
        device: Where they run.
        seed: Of the modules.
        progress: Who is told how far it is.
        settings: As ``tp.torch.training`` takes them; ``steps`` of them are taken (3).

    Returns:
        Slopes with their intervals beside the derived powers, for every parameter and module.

    Raises:
        UsageError: A network that is no module of torch, or an optimizer that is a text.
        TpcalcError: As ``tp.torch.training``.

    Source: Yang et al., Tensor Programs V, for coordinate checks.

    Example:
        >>> torch = load_torch()
        >>> def make(n):
        ...     return torch.nn.Sequential(torch.nn.Linear(4, n), torch.nn.Linear(n, 1))
        >>> def adam(model, n):
        ...     return torch.optim.Adam(model.parameters(), lr=1 / n)
        >>> found = coordinate_check(
        ...     make, inputs=torch.ones(2, 4), optimizer=adam, widths=(16, 32, 64), steps=1
        ... )
        >>> found.code != "differs", found.recipe
        (True, 'kernel')
    """
    run = as_run(architecture, None, None, settings, steps=3)
    network = run.network
    if not isinstance(network, Module) or not callable(network.made_by.get("optimizer")):
        raise UsageError(
            "a coordinate check trains modules of torch by an optimizer of torch.",
            hint="Give what makes them, inputs= and optimizer= (a function of a module and its "
            "width), or take tp.first_order(measure=).",
        )
    found = first_order(run.replace(steps=1), measure=None, seed=seed)
    clip = network.made_by["clip"]

    def clipped(module: Any, width: int) -> None:
        load_torch().nn.utils.clip_grad_norm_(module.parameters(), clip)

    inputs, optimizer = network.made_by["inputs"], network.made_by["optimizer"]
    before = None if clip is None else clipped
    trial = Trial(network.family.make, optimizer, inputs, run.steps, device, before)
    lines = {one.name: one.line for one in network.family.parameters if one.line}
    predicted = dict(_predicted(found, network, run.steps))
    return coordinates(trial, predicted, widths=widths, seeds=seeds,
                       rate=rate, recipe=found.word, lines=lines, seed=seed,
                       progress=progress)  # fmt: skip


def _predicted(found: FirstOrder, network: Module, steps: int) -> Iterator[tuple[Spot, Hull]]:
    """What is derived of parameters and of what functions read, by what is measured."""
    for name, rows in grouped(found.rows, lambda row: row.name.partition(":")[0]).items():
        sure = all(row.status in (EXACT, MEASURED) for row in rows)
        output, later = (_largest(getattr(row, which) for row in rows)
                         for which in ("output", "later"))  # fmt: skip
        yield Spot(GRADIENT, name, 1), _hull(_largest(row.gradient for row in rows), sure)
        yield Spot(TERM, name, 1), _hull(output, sure)
        for step in range(2, steps + 1):
            yield Spot(TERM, name, step), (_hull(output, sure)[0], _largest((output, later)))
    called = {"", *(op.place.path for op in network.graph.ops)}
    # Small rates show first order: what a norm bounds where something grows is larger there.
    calm = all(_value(power) <= 0 for row in found.rows for power in (row.inside, row.output))
    for point in found.points:
        path = _path(point)
        if path is not None and path.partition(":")[0] in called:
            yield Spot(START, path, 0), (ZERO, point.size)
            if calm or not path:
                # Sums of terms of several powers cross over at widths that are run: bounds alone.
                first = point.change if path else _largest(row.output for row in found.rows)
                yield Spot(CHANGE, path, 1), (ZERO, first)


def _path(point: ReadPoint) -> str | None:
    """The module whose output a read point is; of scores the one that takes the softmax."""
    if point.name.startswith(SCORES):
        inside = re.search(r"\(([\w.]+)\)\)$", point.name)
        return f"{inside[1] if inside else ''}{READ}"
    if point.name.startswith("f ("):
        return ""
    found = WRITTEN.match(point.name)
    return found[1] if found else None


def _largest(powers: Any) -> Exponent:
    every: Mapping[float, Exponent] = {_value(power): power for power in powers}
    return every[max(every)]


def _value(power: Exponent) -> float:
    if power.constant is None:
        return float("-inf") if power.is_zero else float("inf")
    return float(power.constant)


def _hull(power: Exponent, sure: bool) -> Hull:
    """A power, or what lies below a bound."""
    return (power, power) if sure or power.is_zero else (ZERO, power)
