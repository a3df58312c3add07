"""``coordinate_check``: modules of torch at finite widths, beside what is derived of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.progress import Progress
from tpcalc.questions.coordinates import WIDTHS, Hull, coordinates
from tpcalc.questions.first_order import first_order
from tpcalc.questions.start.attained import EXACT, MEASURED
from tpcalc.results import Exponent, FirstOrder, ModuleCheck, ParameterMove, ReadPoint
from tpcalc.torch.network import Module
from tpcalc.torch.runs import CHANGE, GRADIENT, START, TERM, Spot, Trial
from tpcalc.torch.training import Make, training

ZERO = Exponent(None, -1)
SCORES, READ, WRITTEN = "argument of softmax", ":scores", re.compile(r"h\[(.*)\.weight\] \(")


def coordinate_check(
    make: Make,
    inputs: Any,
    *,
    optimizer: Callable[[Any, int], Any],
    clip: float | None = None,
    widths: Sequence[int] = WIDTHS,
    seeds: int = 4,
    steps: int = 3,
    rate: float | None = None,
    device: str = "cpu",
    seed: int = 0,
    progress: Progress | None = None,
    **given: Any,
) -> ModuleCheck:
    """A coordinate check with a verdict: first steps of real modules, beside derived powers.

    Two verdicts are kept apart: ``code``, whether the modules do at finite width what is derived of
    their code and their optimizer, and ``recipe``, the word of what is derived.

    Args:
        make: As for ``tp.torch.training``.
        inputs: As for ``tp.torch.training``.
        optimizer: A function of a module and its width that makes its optimizer.
        clip: The largest norm of all gradients together; modules clip theirs before each step.
        widths: Of the modules that are run, two or more.
        seeds: Modules of each width.
        steps: How many steps they take.
        rate: The factor of all learning rates; None: such that outputs change by about 1/20.
        device: Where they run.
        seed: Of the modules.
        progress: Who is told how far it is.
        given: As ``tp.torch.training`` takes it.

    Returns:
        Slopes with their intervals beside the derived powers, for every parameter and module.

    Raises:
        UsageError: An optimizer that is a text: modules are trained by one of torch.
        TpcalcError: As ``tp.torch.training``.

    Source: Yang et al., Tensor Programs V, for coordinate checks.

    Example:
        >>> torch = load_torch()
        >>> def make(n):
        ...     return torch.nn.Sequential(torch.nn.Linear(4, n), torch.nn.Linear(n, 1))
        >>> def adam(model, n):
        ...     return torch.optim.Adam(model.parameters(), lr=1 / n)
        >>> x = torch.ones(2, 4)
        >>> found = coordinate_check(make, x, optimizer=adam, widths=(16, 32, 64), steps=1)
        >>> found.code, found.recipe
        ('agrees', 'kernel')
    """
    if not callable(optimizer):
        raise UsageError(
            f"modules are trained by optimizers of torch, and this one is the text {optimizer!r}.",
            hint="Give a function optimizer(model, n); tp.first_order(measure=) takes texts.",
        )
    run = training(make, inputs, optimizer=optimizer, clip=clip, **given)
    found, network = first_order(run, measure=None, seed=seed), run.network
    assert isinstance(network, Module)

    def clipped(module: Any, width: int) -> None:
        load_torch().nn.utils.clip_grad_norm_(module.parameters(), clip)

    before = None if clip is None else clipped
    trial = Trial(network.family.make, optimizer, inputs, steps, device, before)
    lines = {one.name: one.line for one in network.family.parameters if one.line}
    return coordinates(trial, dict(_predicted(found, network, steps)), widths=widths, seeds=seeds,
                       rate=rate, recipe=found.word, lines=lines, seed=seed,
                       progress=progress)  # fmt: skip


def _predicted(found: FirstOrder, network: Module, steps: int) -> Iterator[tuple[Spot, Hull]]:
    """What is derived of parameters and of what functions read, by what is measured."""
    parts: dict[str, list[ParameterMove]] = {}
    for row in found.rows:
        parts.setdefault(row.name.partition(":")[0], []).append(row)
    for name, rows in parts.items():
        sure = all(row.status in (EXACT, MEASURED) for row in rows)
        output, later = (_largest(getattr(row, which) for row in rows)
                         for which in ("output", "later"))  # fmt: skip
        yield Spot(GRADIENT, name, 1), _hull(_largest(row.gradient for row in rows), sure)
        yield Spot(TERM, name, 1), _hull(output, sure)
        for step in range(2, steps + 1):
            yield Spot(TERM, name, step), (_hull(output, sure)[0], _largest((output, later)))
    called = {op.place.path for op in network.graph.ops}
    for point in found.points:
        path = _path(point)
        if path is not None and path.partition(":")[0] in called:
            yield Spot(START, path, 0), (ZERO, point.size)
            sure = point.status in (EXACT, MEASURED)
            yield Spot(CHANGE, path, 1), _hull(point.change, sure)


def _path(point: ReadPoint) -> str | None:
    """The module whose output a read point is; of scores the one that takes the softmax."""
    if point.name.startswith(SCORES):
        inside = re.search(r"\(([\w.]+)\)\)$", point.name)
        return f"{inside[1] if inside else ''}{READ}"
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
