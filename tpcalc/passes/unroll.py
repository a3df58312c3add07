"""Unrolling of training: a forward program of one input becomes the program of T steps.

The forward program is a template: its data are ``Data`` nodes, its trained weights marked inputs.
The backward pass of the template is derived once; every step types both anew, with the samples of
the step as an axis, its data filled in and the *current* weights substituted. What reads single
vectors is fed by ``split``, which makes a node of every cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import product

from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Const, Expr, Fn, Par
from tpcalc.functions.expr import add, const, mul
from tpcalc.functions.numbers import Number
from tpcalc.names import Name
from tpcalc.passes.as_blocks import is_read_as_blocks
from tpcalc.passes.backward import Gradients, backward
from tpcalc.passes.cells import Report
from tpcalc.passes.contribution import Contributions
from tpcalc.passes.course import Course, Path, Rate
from tpcalc.passes.split import split_reports
from tpcalc.passes.starts import started_at_zero
from tpcalc.passes.step import Merged, Step
from tpcalc.passes.sums import fresh, one_hot, padded, picked, renamed
from tpcalc.passes.template import WRITTEN, Contribution, Template, Watch
from tpcalc.passes.weights import PRODUCT, ZERO, Share, Weights
from tpcalc.program.base import lincomb_of, references
from tpcalc.program.family import Mark
from tpcalc.program.nodes import Data, Kind, LinComb, Nonlin, Ref
from tpcalc.program.program import Builder, Program
from tpcalc.program.types import Axes, ReadAs

SAMPLE = "sample"
LONG = 8  # terms: a longer sum in a network is one node for later sums, or they grow with the depth


@dataclass(frozen=True, slots=True)
class Schedule:
    """Data and rates of a training run."""

    # for each step t = 0..T the inputs of the step
    batches: tuple[tuple[tuple[float, ...], ...], ...]
    # for each step the targets, one tuple for each input
    targets: tuple[tuple[tuple[float, ...], ...], ...]
    # inputs evaluated at every step without training on them
    queries: tuple[tuple[float, ...], ...]
    # the loss derivatives d loss / d f_k as expressions of s0.. (the K outputs, then the K targets)
    chi: tuple[Expr, ...]
    # rate(mark, step): of a parameter (learning-rate factor, exponent c): the update is -factor *
    # n**(-c) times the gradient of the mean loss of the batch, times its own rate
    rate: Callable[[Mark, int], tuple[Fraction | float, Ex]]
    # kept(mark, step): the power p of the n^(-p) in front of the initial part of a matrix at this
    # step, None where that part is dropped
    kept: Callable[[Mark, int], Ex | None] = lambda mark, step: as_ex(0)
    # path(mark): what the optimizer of a parameter makes of it; None: the rate times the gradient
    # is taken off at every step
    path: Callable[[Mark], Callable[[Sequence[Rate]], Path] | None] = lambda mark: None
    # all inputs of the data, for averages over them
    data: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Unrolled:
    """A training run that is written out, with the samples of each step as an axis."""

    written: Program  # its nodes
    groups: tuple[Sequence[Report], ...]  # what is reported
    closed: frozenset[Ref]  # what is a node where it stands: values of parameters
    long: frozenset[Ref]  # sums that are, too: those of many terms, which later ones would repeat
    zeros: frozenset[str]  # names of weights that start at 0

    @cached_property
    def cells(self) -> Program:
        """The run with a node for each cell."""
        found = split_reports(self.written, self.groups, self.closed, self.long)
        return started_at_zero(found, self.zeros)

    @cached_property
    def blocks(self) -> Program | None:
        """The run as it is written; None where a name does not tell its cells in order.

        An output is ``f[t,:]`` of the samples of a step, ``f[t,B:]`` of queries.
        """
        out, outputs = Builder.copy(self.written), dict[str, Ref]()
        for report in (one for group in self.groups for one in group):
            ref, vector = _restored(out, report), bool(out.type(report.ref).width)
            if vector and report.count > 1:  # what is the same for all inputs is one for each
                ref = padded(out, ref, ((report.axis, report.count),))
            name = report.block(dict(out.type(ref).axes))
            if name is None or name in outputs:
                return None
            outputs[name] = ref
        for name, ref in outputs.items():
            out.output(name, ref)
        return started_at_zero(out.finish(keep_unused=False), self.zeros)

    @cached_property
    def named(self) -> Program:
        """The run as it is written, with an output for each cell as in ``cells``."""
        out = Builder.copy(self.written)
        for report in (one for group in self.groups for one in group):
            axes = out.type(report.ref).axes
            for index in range(report.first, report.first + report.count):
                for where, name in report.cells(index):
                    place = tuple(where[axis] for axis, _ in axes)
                    out.output(name, picked(out, report.ref, axes, place))
        return started_at_zero(out.finish(keep_unused=False), self.zeros)

    def stays_blocks(self, reading: ReadAs, many: int) -> bool:
        """Whether a step has several inputs, and the run is read as blocks."""
        several = any(report.count > 1 for group in self.groups for report in group)
        return is_read_as_blocks(self.written, reading, many) and several


@dataclass(frozen=True)
class _Differentiated:
    """A template with its backward pass appended."""

    template: Template  # the network
    builder: Builder  # its nodes, forward and backward
    forward: int  # how many of them are the forward pass
    gradients: Gradients  # of the output, or of what the seeds stand for
    seeds: tuple[Ref, ...]  # the adjoints of several outputs; () of one, whose adjoint is 1

    def axes(self, output: Ref) -> Axes:
        """The axes of an output."""
        return self.builder.type(output).axes

    @property
    def cells(self) -> Iterator[tuple[Ref, tuple[int, ...]]]:
        """The outputs f_1..f_K: nodes with their cells."""
        for output in self.template.outputs:
            for cell in product(*(range(size) for _, size in self.axes(output))):
                yield output, cell


def _differentiated(template: Template) -> _Differentiated:
    builder = Builder.copy(template.bare)
    forward, outputs = len(builder), template.outputs
    seeds: tuple[Ref, ...] = ()
    if len(outputs) > 1 or builder.type(outputs[0]).axes:
        axes = [builder.type(output).axes for output in outputs]
        seeds = tuple(builder.add(Data(f"chi[{k}]", (), own)) for k, own in enumerate(axes))
    pairs = [(output, seeds[k] if seeds else None) for k, output in enumerate(outputs)]
    gradients = backward(builder, pairs, list(template.parameters))
    return _Differentiated(template, builder, forward, gradients, seeds)


def unroll(
    template: Template, schedule: Schedule, *, keep: Callable[[str], bool] = lambda name: True
) -> Unrolled:
    """Write out T training steps of a network.

    Source: Hajjar, Chizat, Giraud, equations (2.4)-(2.6) with history.
    """
    whole = _differentiated(template)
    out = Builder(template.program.dims)
    run = _Run(whole, Weights(out, whole.builder, _axis(template), _read(whole)))
    run.weights.courses.update(_courses(whole, schedule))
    Step(template, run.weights, schedule.data, 0, -1).average()
    added = Contributions(
        whole.builder, whole.forward, [c for c in template.contributions if keep(c.kind)]
    )
    shown = [watch for watch in template.watch if keep(watch.own.what)]
    gradients = [w for w in template.watch if w.own.what != WRITTEN and keep(f"d{w.own.what}")]
    groups: list[list[Report]] = []
    made: list[Step] = []
    long = _long(whole.builder)
    steps = len(schedule.batches) - 1
    for step in range(steps + 1):
        weights = run.weights
        weights.kept = {ref: schedule.kept(own, step) for ref, own in template.parameters.items()}
        copies = run.copies(schedule, step, made[-1] if made else None)
        made += copies
        for start, stop in added.pieces:
            before = [
                run.contribution(item, node, copy, step)
                for copy in copies
                for item, node in added.before(start, copy)
                # That of a bias is the same for every input, up to what stands behind it.
                if item.kind != "dB" or copy is copies[0] or item.between is not None
            ]
            weights.closed.update(report.ref for report in before)
            groups.append(before)
            for copy in copies:
                copy.run(start, stop)
        groups.append([report for copy in copies for report in run.forward(copy, shown, step)])
        if step == steps and not gradients:
            break
        batch = copies[0]
        chi, number = run.loss(batch, schedule, step)
        batch.run(whole.forward, len(whole.builder))
        groups.append(list(run.backward(batch, gradients, step)))
        if step < steps:
            run.update(batch, schedule, step, chi, number)
    return Unrolled(
        out.finish(),
        tuple(groups),
        frozenset(run.weights.closed),
        frozenset(copy.made[ref] for copy in made for ref in long if ref in copy.made),
        template.zeros,
    )


def _courses(whole: _Differentiated, schedule: Schedule) -> Iterator[tuple[Ref, Course]]:
    """The parameters that have a gradient, and an optimizer that takes more than the last one."""
    for ref, mark in whole.template.parameters.items():
        path = schedule.path(mark)
        if path is not None and (
            ref in whole.gradients.matrices or ref in whole.gradients.adjoints
        ):
            family = frozenset(name for name, _ in whole.builder.type(ref).axes)
            yield ref, Course(path, family, mark.start or Fraction(1))


def _axis(template: Template) -> str:
    """A name for the axis of samples that no other axis has."""
    return fresh(SAMPLE, {name for type_ in template.program.types for name, _ in type_.axes})


def _read(whole: _Differentiated) -> list[Ref]:
    """The parameters that something other than a sum reads."""
    nodes = [whole.builder.node(ref) for ref in range(len(whole.builder))]
    read = {ref for node in nodes if lincomb_of(node) is None for ref in references(node)}
    return [ref for ref in whole.template.parameters if ref in read]


def _long(network: Builder) -> Sequence[Ref]:
    """The sums of a network that have many terms, with all that is summed in them.

    Which they are hangs on the network alone: a sum has the same parts at all steps, so that what
    did not move cancels part by part.
    """
    found: list[Ref] = []
    terms: dict[Ref, int] = {}  # of sums that stay open
    for ref in range(len(network)):
        node = lincomb_of(network.node(ref))
        if node is None or node.over or network.type(ref).kind is not Kind.VECTOR:
            continue
        parts = zip(node.scalars, node.vectors, strict=True)
        count = sum(terms.get(vector, 1) if scalar is None else 1 for scalar, vector in parts)
        if count > LONG:
            found.append(ref)
        else:
            terms[ref] = count
    return found


@dataclass(frozen=True)
class _Run:
    """A training run while it is written."""

    whole: _Differentiated
    weights: Weights

    def copies(self, schedule: Schedule, step: int, last: Step | None) -> list[Step]:
        """The network at the samples of a step, of equal ones at one, and at the queries.

        The gradient is a sum over samples, in which equal ones count as often as they are there.
        Where each draws numbers of its own no two are equal.
        """
        template, weights, batch = self.whole.template, self.weights, schedule.batches[step]
        pairs = list(zip(batch, schedule.targets[step], strict=True))
        merged = None if template.noise else Merged.of(pairs)
        rows = batch if merged is None else [batch[row] for row in merged.first]
        copies = [Step(template, weights, rows, 0, step, merged)]
        if schedule.queries:
            queries = schedule.queries
            copies.append(Step(template, weights, queries, len(batch), step, before=last))
        return copies

    def report(
        self, copy: Step, node: Ref, axes: Axes, name: Callable[[int, tuple[int, ...]], Name]
    ) -> Report:
        """A node under a name for each input and cell."""
        rows = copy.merged.rows if copy.merged else ()
        return Report(
            node, self.weights.sample, copy.first, len(rows) or len(copy.rows), axes, name, rows
        )

    def contribution(self, item: Contribution, node: Ref, copy: Step, step: int) -> Report:
        """What the last update adds; that of a bias is the same for every input."""
        axes = tuple(
            pair for pair in self.weights.out.type(node).axes if pair[0] != self.weights.sample
        )
        held = dict(self.weights.network.type(item.watch.ref).axes)
        ordered = tuple((axis, held[axis]) for axis in held if (axis, held[axis]) in axes)
        found = self.report(copy, node, ordered, partial(item.name, step))
        return replace(found, first=0, count=1, rows=()) if item.kind == "dB" else found

    def forward(self, copy: Step, shown: Sequence[Watch], step: int) -> Iterator[Report]:
        """The outputs and what is watched."""
        whole = self.whole
        cells = list(whole.cells)

        def output(ref: Ref, index: int, cell: tuple[int, ...]) -> Name:
            which = (cells.index((ref, cell)),) if len(cells) > 1 else ()
            return Name("f", step=step, cell=(index, *which))

        for ref in whole.template.outputs:
            yield self.report(copy, copy.made[ref], whole.axes(ref), partial(output, ref))
        for watch in shown:
            name = partial(watch.name, step)
            yield self.report(copy, copy.made[watch.ref], whole.axes(watch.ref), name)

    def backward(self, copy: Step, gradients: Sequence[Watch], step: int) -> Iterator[Report]:
        """The gradients of what is watched."""
        for watch in gradients:
            adjoint = self.whole.gradients.adjoints.get(watch.ref)
            if adjoint is not None:
                name = partial(watch.name, step, before="d")
                yield self.report(copy, copy.made[adjoint], self.whole.axes(watch.ref), name)

    def loss(self, copy: Step, schedule: Schedule, step: int) -> tuple[Ref | None, Number]:
        """The loss derivatives: of one output what its updates are multiplied by, else the seeds.

        They are nodes, or numbers where they do not depend on f.
        """
        whole, out = self.whole, self.weights.out
        cells = list(whole.cells)
        f = [picked(out, copy.made[ref], whole.axes(ref), cell) for ref, cell in cells]
        rows = list(schedule.targets[step])
        rows = rows if copy.merged is None else [rows[row] for row in copy.merged.first]
        targets = [
            out.add(Data(f"y[{step},{k}]", tuple(_exact(y) for y in column), copy.samples))
            for k, column in enumerate(zip(*rows, strict=True))
        ]
        found = [
            (None, expr.value)
            if isinstance(expr, Const)
            else (out.add(Nonlin(Fn(expr, 0, 2 * len(f)), (), (*f, *targets))), Fraction(1))
            for expr in schedule.chi
        ]
        if not whole.seeds:
            return found[0]
        for seed, output in zip(whole.seeds, whole.template.outputs, strict=True):
            own = [
                (cell, chi) for (ref, cell), chi in zip(cells, found, strict=True) if ref == output
            ]
            copy.made[seed] = _spread(out, own, whole.axes(output))
        return None, Fraction(1)

    def update(
        self, copy: Step, schedule: Schedule, step: int, chi: Ref | None, number: Number
    ) -> None:
        """Subtract rate * n^(-c) * gradient of the mean loss from every parameter."""
        gradients, count = self.whole.gradients, len(copy.rows)
        chi, mean = self._counted(copy, step, chi)
        for ref, mark in self.whole.template.parameters.items():
            factor, exponent = schedule.rate(mark, step)
            rate = factor * mark.rate
            share = Share(-rate * (number * mean), chi, exponent, count)
            pairs = [(copy.made[r], copy.made[c]) for r, c in gradients.matrices.get(ref, ())]
            adjoint = gradients.adjoints.get(ref)
            gradient = None if adjoint is None else copy.made[adjoint]
            if ref in self.weights.courses:
                moved = pairs if gradient is None else gradient
                plain = Share(number * mean, chi, ZERO, count)
                self.weights.follow(ref, moved, plain, (rate, exponent))
            elif ref in gradients.matrices:
                self.weights.update_matrix(ref, pairs, share)
            elif gradient is not None:
                self.weights.update(ref, gradient, share)

    def _counted(self, copy: Step, step: int, chi: Ref | None) -> tuple[Ref | None, Fraction]:
        """The loss derivatives with how often each sample is there, and what is left of the mean.

        Samples that are all there equally often have the mean of those that differ.
        """
        counts = copy.merged.counts if copy.merged else (1,)
        if len({*counts}) == 1:
            return chi, Fraction(1, len(copy.rows))
        out = self.weights.out
        data = out.add(Data(f"count[{step}]", tuple(map(Fraction, counts)), copy.samples))
        both = data if chi is None else out.add(Nonlin(PRODUCT, (), (chi, data)))
        return both, Fraction(1, sum(counts))


def _restored(out: Builder, report: Report) -> Ref:
    """The node of a report with a cell for each of its inputs."""
    ref = report.ref
    sizes = dict(out.type(ref).axes)
    if not report.rows or report.axis not in sizes:
        return ref
    inner = fresh(f"{report.axis}'", set(sizes))
    axes = ((report.axis, report.count), (inner, sizes[report.axis]))
    marks = tuple(Fraction(int(row == k)) for row in report.rows for k in range(axes[1][1]))
    name = f"row({','.join(map(str, report.rows))}:{axes[1][1]})"
    chosen = out.add(Data(name, marks, axes))
    moved = renamed(out, ref, {report.axis: inner})
    found = out.add(LinComb((Fraction(1),), (chosen,), (moved,), ((inner,),)))
    return found


def _spread(
    out: Builder, chi: Sequence[tuple[tuple[int, ...], tuple[Ref | None, Number]]], axes: Axes
) -> Ref:
    """The loss derivatives of the cells of an output as one block."""
    parts: list[Expr] = []
    refs: list[Ref] = []
    for cell, (ref, number) in chi:
        own = [one_hot(out, axes, cell)] if axes else []
        own += [] if ref is None else [ref]
        parts.append(mul((const(number), *(Par(len(refs) + k) for k in range(len(own))))))
        refs += own
    if parts == [Par(0)]:
        return refs[0]
    return out.add(Nonlin(Fn(add(parts), 0, len(refs)), (), tuple(refs)))


def _exact(value: float) -> Number:
    return Fraction(int(value)) if float(value).is_integer() else value
