"""First steps of explicit networks, beside the powers that are predicted of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.exponents import Ex
from tpcalc.finite.networks.coordinatewise import coordinatewise
from tpcalc.finite.networks.first_steps import Size, first_step
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.finite.widths import check_width, rounded_up
from tpcalc.functions import Fn
from tpcalc.program.nodes import Input, Ref
from tpcalc.progress import Progress
from tpcalc.questions.start.attained import (
    BOUND,
    EXACT,
    MEASURED,
    SURE,
    as_float,
    fits,
    measured_size,
    whole,
)
from tpcalc.questions.start.moves import Sizes
from tpcalc.questions.start.program import probe
from tpcalc.results import Exponent, MeasuredSize, ParameterMove, ReadPoint
from tpcalc.tasks.run import results
from tpcalc.tasks.task import Task

WIDTHS = (64, 128, 256)
SEEDS = 16
WIDTH = 1024


@dataclass(frozen=True)
class Measuring:
    """Networks that were run, and what is told of them."""

    runs: Mapping[int, Sequence[Mapping[Size, float]]]  # the sizes in each of them, by width
    width: int  # the width that values are told at

    def row(self, row: ParameterMove) -> ParameterMove:
        """A parameter with what was measured of it."""
        return replace(row, measured=self._told([None], row.name, row.output, row.status))

    def point(self, point: ReadPoint, places: Sequence[Ref], who: Iterable[str]) -> ReadPoint:
        """A read point with what was measured there; one whose step shows the power is enough."""
        start = self._told(places, "", point.size, BOUND)
        every = {by: self._told(places, by, point.change, point.status) for by in who}
        shown = {by: (told.value is not None, told.sizes[-1]) for by, told in every.items()}
        by = max(shown, key=shown.__getitem__, default="")
        return replace(point, start=start, moved=every.get(by), by=by)

    def _told(
        self, places: Sequence[Ref | None], by: str, power: Exponent, status: str
    ) -> MeasuredSize:
        kind = (places[0] is None, by == "")
        every = (one.items() for ran in self.runs.values() for one in ran)
        top = max(v for own in every for (ref, by), v in own if (ref is None, by == "") == kind)
        sizes = {
            n: [_root(one[at, by] for at in places) for one in ran] for n, ran in self.runs.items()
        }
        high = as_float(power)
        found = measured_size(sizes, top, high if status in (EXACT, MEASURED) else -inf, high)
        if found.slope is None or found.error is None or power.constant is None:
            return found
        if fits(found.slope, SURE * found.error, high, high) != "agrees":
            return found
        means, last = found.sizes, found.widths[-1]
        one = rounded_up(last * means[-1] ** (-1 / high)) if high > 0 else None
        return replace(found, value=means[-1] * (self.width / last) ** high, one=one)


def _root(sizes: Iterable[float]) -> float:
    """The root mean square over places that are not 0."""
    squares = [size**2 for size in sizes if size]
    return sqrt(sum(squares) / len(squares)) if squares else 0.0


def measured(
    rows: Sequence[ParameterMove],
    points: Sequence[ReadPoint],
    sizes: Sizes,
    places: Mapping[str, Sequence[Ref]],
    widths: Sequence[int],
    seed: int,
    seeds: int,
    width: int,
) -> tuple[tuple[ParameterMove, ...], tuple[ReadPoint, ...]]:
    """Parameters and read points with what first steps of explicit networks are there."""
    width, widths = check_width(width), whole(sizes.steps.network, widths)
    seeds = checks.whole(seeds, "seeds", least=2, hint="It counts networks of a width.")
    if len(widths) < 2:
        raise UsageError("a slope takes two widths or more.", hint="Write measure=(64, 256).")
    stepping = {  # entry by entry
        node.name: node
        for node in sizes.steps.parameters.values()
        if node.family.mark and not sizes.run.optimizer_of(node.family.mark).beyond
    }
    pairs = [(n, seed + k) for n in widths for k in range(seeds)]
    tasks = [Task(f"n = {n}, seed {own}", (n, own)) for n, own in pairs]
    found = iter(results(_run, tasks, shared=(sizes, stepping)))
    runs = {n: [next(found) for _ in range(seeds)] for n in widths}
    measuring, read = Measuring(runs, width), []
    names = {ref: node.name for ref, node in sizes.steps.parameters.items()}
    for point in points:
        refs = places[point.name]
        bounds = sizes.largest_changes(refs[0]).items()
        most = (names[by] for by, power in bounds if power == point.change.constant)
        # Where a norm bounds what a step replaces, it changes less than to first order.
        held = {names[by] for by, move in sizes.moves[0].items() if refs[0] in move.capped}
        who = dict.fromkeys(by for by in (*point.who, *most) if by in stepping.keys() - held)
        read.append(measuring.point(point, refs, who))
    moves = (measuring.row(row) if row.name in stepping else row for row in rows)
    return tuple(moves), tuple(read)


def _run(
    shared: tuple[Sizes, Mapping[str, Input]], width: int, seed: int, progress: Progress
) -> dict[Size, float]:
    sizes, stepping = shared
    network = DrawnNetwork(sizes.steps.network, width, seed, values=sizes.values)
    types = network.program.types
    cells = (prod(size for _, size in types[ref].axes) for ref in network.outputs)
    weights = [one for place, count in enumerate(cells) for one in probe(place, count)]
    rules = {name: _rule(sizes, node, width) for name, node in stepping.items()}
    numbers = [float(number) for number in sizes.steps.inputs[0]]
    return first_step(network, numbers, weights, rules, list(sizes.read))


def _rule(sizes: Sizes, node: Input, width: int) -> Callable[[Any], Any]:
    """The first step of a parameter as a function of its gradient, by its optimizer's text."""
    run, mark = sizes.run, node.family.mark
    assert mark is not None
    path = run.path_of(mark, run.optimizer_of(mark))([run.rate(mark, 0)])

    def number(power: Ex) -> float:
        return float(np.power(float(width), float(power.at(sizes.values))))

    moves = [(number(power), Fn(psi, 1)) for power, psi in path.moves]
    unit = number(path.shift)
    return lambda gradient: sum(n * coordinatewise(psi, unit * gradient) for n, psi in moves)
