"""Arrays along the depth: of closed recursions, and by the limit of a program of many blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np

from tpcalc.errors import EvaluationError
from tpcalc.evaluate.limit import limit
from tpcalc.functions import Fn, Par, const
from tpcalc.functions.fn import INNER
from tpcalc.integrals.bounded import Bounded
from tpcalc.names import layered, stepped, what_of
from tpcalc.networks.architectures.resnet import ResNet
from tpcalc.program.nodes import LinComb, Moment, Nonlin, Ref
from tpcalc.program.program import Builder
from tpcalc.questions.depth.at_depth import at_depth
from tpcalc.recursions.kets import Kets, Recursion
from tpcalc.results import DepthArray, DepthGap, DepthValue, Estimate, Method
from tpcalc.training.training import Training

KETS = ("inputs", "outputs", "coefficients")
ARRAYS = ("features", "gradients", "preactivations", "distances", *KETS)
AVERAGED = "streams are functions of the first and last weights there, of no Gaussians of blocks."
KERNEL = ("p", "i", "j")
SPREAD = ("p", "q", "i", "j")
ENDS = ("ket", "p", "i", "feature")
GAMMA = ("ket", "base", "p", "q", "i", "j")


def profile(
    recursion: Recursion, depth: str, route: str, places: Sequence[float]
) -> Iterator[DepthArray | DepthGap]:
    """The arrays of a run, and those that are lacking."""
    if not places:
        return
    shares = tuple(recursion.at(place) for place in places)
    moved = recursion.trunk.count - recursion.trunk.batch  # samples with an adjoint

    def made(name: str, axes: tuple[str, ...], parts: list[Bounded], *shape: int) -> DepthArray:
        size = (*shape, len(places), *parts[0].value.shape)
        values = np.array([one.value for one in parts]).reshape(size)
        errors = np.array([np.broadcast_to(one.error, one.value.shape) for one in parts])
        errors = errors.reshape(size)
        return DepthArray(name, depth, axes, shares, values, errors, parts[0].method, route)

    yield made("features", KERNEL, [recursion.features(place) for place in places])
    yield made("gradients", KERNEL, [_first(recursion.gradients(place), moved) for place in places])
    try:
        yield made("preactivations", KERNEL, [recursion.preactivations(place) for place in places])
    except EvaluationError as error:  # they may grow with the depth
        yield DepthGap(depth, error.told, "preactivations")
    apart = [recursion.distances(*sorted((one, two))) for one in places for two in places]
    yield made("distances", SPREAD, apart, len(places))
    if not isinstance(recursion, Kets):
        yield from (DepthGap(depth, AVERAGED, name) for name in KETS)
        return
    ends = [recursion.ends(place) for place in places]
    for side, name in enumerate(("inputs", "outputs")):
        parts = [_of_ket(ket, end[side][ket], moved) for ket in (0, 1) for end in ends]
        yield made(name, ENDS, parts, 2)
    grid = [recursion.coefficients(one, two) for one in places for two in places]
    sides = [(ket, base) for ket in (0, 1) for base in (0, 1)]
    parts = [_of_ket(ket, one[ket][base], moved) for ket, base in sides for one in grid]
    yield made("coefficients", GAMMA, parts, 2, 2, len(places))


def _of_ket(ket: int, answer: Bounded, moved: int) -> Bounded:
    """What is in x, or in dx where it is followed: NaN of samples that have no adjoint."""
    if ket == 0:
        return answer
    value, error = answer.value.copy(), np.array(np.broadcast_to(answer.error, answer.value.shape))
    value[moved:] = error[moved:] = np.nan
    return Bounded(value, error, answer.method)


def _first(kernel: Bounded, count: int) -> Bounded:
    error = np.broadcast_to(kernel.error, kernel.value.shape)
    return Bounded(kernel.value[:count, :count], error[:count, :count], kernel.method)


ROUTE = "limit of the width of the program of {} blocks"
SAMPLED = "samples of a program do not tell what of each Gaussian is in the stream."
UNNAMED = "the program names no such vector: it is not watched, or blocks of this network lack it."
Name = Callable[[int, int, int], str]
Vectors = Callable[[int, int], Ref | None]
Rows = dict[tuple[int, ...], list[Ref | None]]


def sampled(
    training: Training,
    depth: int,
    places: Sequence[float],
    seed: int,
    settings: dict[str, Any],
) -> tuple[list[DepthValue], list[DepthArray | DepthGap]]:
    """The numbers of the program of so many blocks, and what has none."""
    asked = _Asked(training, depth, places)
    given: dict[str, Any] = {name: one for name, one in settings.items() if one is not None}
    found = limit(asked.builder.finish(keep_unused=False), seed=seed, rescale=["<*"], **given)
    route = ROUTE.format(depth)
    known = {row.name: row.estimate for row in found.table.scalars}
    gone = {
        row.name: f"{replace(row, node='', term='').text} {row.hint}".strip()
        for row in found.table.uncovered
    }
    gone[""] = UNNAMED
    outputs = {name: name for name in (*known, *gone) if name and not name.startswith("<")}
    place, names = str(depth), (outputs | asked.names).items()
    rows = [DepthValue(one, place, known[own], route) for one, own in names if own in known]
    gaps = [DepthGap(place, gone[own], one) for one, own in names if own in gone]
    return rows, [*gaps, *asked.arrays(known, gone, route)]


class _Asked:
    """The program of a run with averages of products as outputs."""

    def __init__(self, training: Training, depth: int, places: Sequence[float]) -> None:
        self.depth, self.batch = depth, training.batch
        self.layers = [round(place * depth) for place in places]
        program = at_depth(training, depth).program
        self.vectors = program.output
        outputs = [output for output in program.outputs if what_of(output[0]) == "f"]
        self.builder = Builder.copy(replace(program, outputs=tuple(outputs)))
        self.outputs = dict(outputs)
        assert training.data is not None
        self.data, self.loss = training.data, training.loss
        self.names: dict[str, str] = {}
        self.cells: dict[str, dict[tuple[int, ...], str]] = {}
        if not isinstance(training.network, ResNet):
            return  # how its stream is called is not known
        steps, post = training.steps, training.network.nonlin == "post"
        own = ("x", "h") if post else ("h", "")
        several = training.network.nonlin == "pre" and training.network.layers > 1
        self.part = ".1" if several else ""  # a block begins with its first activation
        stream, inner = (self._name(one, 0 if post else 1) for one in own)
        adjoint = self._name("d" + own[0], 0 if post else 1)
        for what, vectors, layer, count in (
            ("x", self._at(stream), depth, steps + 1),
            ("dx", self._pulled(adjoint), 0, steps),
        ):
            for step, sample in product(range(count), range(self.batch)):
                vector = vectors(layer, step * self.batch + sample)
                label = self._inner(vector, vector)
                self.names[stepped(what, step, sample)] = label or ""
        if not places:
            return
        samples, before = (steps + 1) * self.batch, steps * self.batch
        known = self._along(self._at(stream), samples)
        self._kernel("features", known)
        self._kernel("gradients", self._along(self._pulled(adjoint), before))
        self._kernel("preactivations", self._along(self._at(inner), samples, first=1))
        moved: Rows = {
            (p, q): list(map(self._moved, known[p,], known[q,]))
            for p, q in combinations(range(len(self.layers)), 2)
            if self.layers[p] != self.layers[q]
        }
        self._kernel("distances", moved | {(q, p): own for (p, q), own in moved.items()})

    def _name(self, what: str, first: int) -> Name:
        """Vectors of a name, the first that of layer 0; the last of blocks that begin with phi."""

        def name(layer: int, step: int, sample: int) -> str:
            place = f"{layer + first}{self.part}"
            return layered(what, "out" if first and layer == self.depth else place, step, sample)

        return name

    def _at(self, name: Name) -> Vectors:
        """The vectors of a name, by layer and sample."""
        return lambda layer, i: self.vectors.get(name(layer, *divmod(i, self.batch)))

    def _pulled(self, name: Name) -> Vectors:
        """The same of adjoints, the derivative of the loss included."""

        def pulled(layer: int, i: int) -> Ref | None:
            vector = self._at(name)(layer, i)
            if vector is None or self.data.outputs > 1:
                return vector  # adjoints of several outputs are those of the loss
            slope = self._slope(*divmod(i, self.batch))
            return self.builder.add(LinComb((1,), (slope,), (vector,)))

        return pulled

    def _slope(self, step: int, sample: int) -> Ref:
        """The derivative of the loss of a sample by its output."""
        output = self.outputs[stepped("f", step, sample)]
        (target,) = self.data.targets[(step * self.batch + sample) % len(self.data)]
        (slope,) = self.loss.chi([Par(0)], [const(Fraction(target))])
        return self.builder.add(Nonlin(Fn(slope, 0, 1), (), (output,)))

    def _inner(self, one: Ref | None, two: Ref | None) -> str | None:
        """The name of the average of a product, an output from now on."""
        if one is None or two is None:
            return None
        one, two = sorted((one, two))
        label = f"<{one},{two}>"
        self.builder.output(label, self.builder.add(Moment(INNER, (one, two))))
        return label

    def _along(self, vectors: Vectors, count: int, first: int = 0) -> Rows:
        """Vectors of all samples at the layers, the first ones those of a later layer."""
        layers = enumerate(max(layer, first) for layer in self.layers)
        return {(p,): [vectors(layer, i) for i in range(count)] for p, layer in layers}

    def _moved(self, first: Ref | None, last: Ref | None) -> Ref | None:
        if first is None or last is None:
            return None
        return self.builder.add(LinComb((1, -1), (None, None), (last, first)))

    def _kernel(self, what: str, rows: Rows) -> None:
        cells: dict[tuple[int, ...], str] = {}
        for place, own in rows.items():
            for i, j in product(range(len(own)), repeat=2):
                label = self._inner(own[i], own[j])
                if label is None:
                    return  # blocks of several layers have more than one
                cells[*place, i, j] = label
        self.cells[what] = cells

    def arrays(
        self, known: dict[str, Estimate], gone: dict[str, str], route: str
    ) -> Iterator[DepthArray | DepthGap]:
        """The arrays, from the limits of scalars by name, and those that are lacking."""
        for what in ARRAYS if self.layers else ():
            if what not in self.cells:
                yield DepthGap(str(self.depth), SAMPLED if what in KETS else UNNAMED, what)
        shares = tuple(layer / self.depth for layer in self.layers)
        for what, cells in self.cells.items():
            lost = [gone[label] for label in cells.values() if label in gone]
            if lost:
                yield DepthGap(str(self.depth), lost[0], what)
                continue
            axes = SPREAD if what == "distances" else KERNEL
            count = 1 + max((place[-1] for place in cells), default=-1)
            shape = (len(shares),) * (len(axes) - 2) + (count, count)
            values, errors = np.zeros(shape), np.zeros(shape)
            for place, label in cells.items():
                values[place], errors[place] = known[label].value, known[label].stderr
            methods = [known[label].method for label in cells.values()] or [Method.EXACT]
            method = max(methods)
            yield DepthArray(what, str(self.depth), axes, shares, values, errors, method, route)
