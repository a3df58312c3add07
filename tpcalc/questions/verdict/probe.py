"""``probe``: the program that questions about a training run are asked of; ``watched``: of layers.

The network is trained on its data, and watched at one more input that is no training sample: what
moves there is learned, not memorised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, starmap
from math import inf, prod

from tpcalc.doors.numbers import count
from tpcalc.errors import UsageError
from tpcalc.functions import Fn, Par, Var
from tpcalc.names import Name, change, layered, stepped, what_of
from tpcalc.program.base import matmul_of
from tpcalc.program.nodes import Kind, LinComb, Moment, Node, Nonlin
from tpcalc.program.program import Builder, Program, restricted
from tpcalc.program.types import ReadAs
from tpcalc.training.generic import far_query, generic_data
from tpcalc.training.generic import query as generic_query
from tpcalc.training.training import Training

DIFFERENCE = Fn(Par(0) - Par(1), 0, 2)
KERNEL = Fn(Var(0) * (Var(0) + 2 * Var(1)), 2)  # |x_t|^2 - |x_0|^2 from x_t - x_0 and x_0

FAR = 10_000  # nodes of one that is not followed either where first steps do not decide
DEEP = 2000  # nodes of a program of all steps that is followed where first steps decide


class Large(Exception):
    """A program of all steps that was not written out, as it has more nodes than are followed."""

    def __init__(self, program: Program, nodes: int) -> None:
        super().__init__()
        self.program, self.nodes = program, nodes


@dataclass(frozen=True)
class Probe:
    """A training run with the changes that decide a verdict.

    Labels are what weights and vectors are called: layers ``"1"``, ``"2"``, or names.
    """

    # outputs f[t,i], h[l,t,i], x, dh, dx, dW_x, dB, and the changes f[t,q]-f[0,q] and
    # x[l,t,q]-x[l,0,q] at the query q
    program: Program
    # the labels of the linear maps that are trained, in order, with their roles
    maps: Mapping[str, str]
    steps: int  # number of updates T
    query: int  # the input q that is watched: its number after the samples of a batch
    outputs: int  # number of outputs K
    places: str = "layer"  # what numbers among the labels count
    last: int | None = None  # the last step that is followed; None: all are
    # the first step that an update comes before; those of a schedule's zeros are none
    first: int = 1

    @property
    def nodes(self) -> int:
        """The number of nodes of its program."""
        return len(self.program.nodes)

    @property
    def followed(self) -> range:
        """The steps t = 1..T that are followed."""
        return range(1, (self.steps if self.last is None else self.last) + 1)

    @cached_property
    def _names(self) -> Mapping[str, Name]:
        """The outputs, with what their names say; changes are told by what they are changes of."""
        found = {name: Name.of(name) for name, _ in self.program.outputs}
        return {name: own for name, own in found.items() if not own.since}

    @cached_property
    def _places(self) -> Mapping[tuple[str, int | None, int], Mapping[str, tuple[str, ...]]]:
        """For (what, step, input) the outputs by label, several where there are cells."""
        found: dict[tuple[str, int | None, int], dict[str, tuple[str, ...]]] = {}
        for name, own in self._names.items():
            if own.layer and own.cell:
                labels = found.setdefault((own.what, own.step, own.cell[0]), {})
                labels[own.layer] = (*labels.get(own.layer, ()), name)
        return found

    @cached_property
    def _updates(self) -> Mapping[tuple[str, int | None], tuple[str, ...]]:
        """For (label, step) what the last update of a map adds at the query."""
        found: dict[tuple[str, int | None], tuple[str, ...]] = {}
        for name, own in self._names.items():
            if own.what == "dB" or (own.what == "dW_x" and own.input == self.query):
                key = own.label, own.step
                found[key] = (*found.get(key, ()), name)
        return found

    def at(self, what: str, step: int, index: int | None = None) -> Mapping[str, tuple[str, ...]]:
        """The outputs of a kind (``"h"``, ``"dx"``, ...) by label; by default at the query."""
        return self._places.get((what, step, self.query if index is None else index), {})

    def roles(self, step: int) -> Mapping[Name, str]:
        """The outputs of a step by what they are, whatever the step."""
        names = self._names.items()
        return {replace(own, step=0): name for name, own in names if own.step == step and own.cell}

    @property
    def features(self) -> tuple[str, ...]:
        """The labels of features, the last ones last."""
        return tuple(self.at("x", 0))

    def written(self, label: str, step: int) -> tuple[str, ...]:
        """The features of a label, or what a map of this label writes where it has none."""
        if label in self.features:
            return self.at("x", step)[label]
        uses = self.at("W_x", step).values()
        return tuple(n for names in uses for n in names if self._names[n].label == label)

    def f(self, step: int, index: int | None = None) -> tuple[str, ...]:
        """The names of the outputs; by default at the query."""
        place = (step, self.query if index is None else index)
        if self.outputs == 1:
            return (stepped("f", *place),)
        return tuple(stepped("f", *place, k) for k in range(self.outputs))

    def read(self, label: str) -> str:
        """What an activation reads: ``"hhat"`` where preactivations are normalised, or ``"h"``."""
        return "hhat" if label in self.at("hhat", 0) else "h"

    def preactivations(self, step: int) -> Mapping[str, tuple[str, ...]]:
        """What activations read at the query, by label."""
        return {label: self.at(self.read(label), step)[label] for label in self.at("h", step)}

    def levels(self, step: int) -> tuple[str, ...]:
        """What must not grow: what activations and named readouts read, and the outputs."""
        read = [name for names in self.preactivations(step).values() for name in names]
        for label, names in self.at("x", step).items():
            if self.maps.get(label) == "readout":
                read += [name for name in names if name not in read]
        return (*read, *self.f(step))

    def asked(self, step: int) -> tuple[str, ...]:
        """All that a verdict asks of a step."""
        if not step:
            return self.levels(0)
        return (*self.levels(step), *self.changes(step), *self.last_moved(step))

    def changes(self, step: int) -> tuple[str, ...]:
        """The names of the changes of the outputs since the start."""
        return tuple(starmap(change, zip(self.f(step), self.f(0), strict=True)))

    def moved(self, label: str, step: int) -> tuple[str, ...]:
        """The names of the changes of some features since the start, or of what a map writes."""
        pairs = zip(self.written(label, step), self.written(label, 0), strict=True)
        return tuple(starmap(change, pairs))

    def last_moved(self, step: int) -> tuple[str, ...]:
        """Those of the last features."""
        return self.moved(self.features[-1], step)

    def updates(self, label: str, step: int) -> tuple[str, ...]:
        """What update t - 1 of a map adds at the query, at each of its uses."""
        # A map without a gradient has none.
        return self._updates.get((label, step), ())

    def subjects(self, step: int) -> dict[str, tuple[str, ...]]:
        """The outputs of a step by what they tell: what moves, and which of its sizes say so."""
        if not step:
            return {}
        found = {"output": self.changes(step)}
        for label in self.maps:
            found[f"updates of {label}"] = self.updates(label, step)
        hidden = (label for label, role in self.maps.items() if role != "readout")
        for label in (*self.features, *hidden):
            found[f"features of {label}"] = self.moved(label, step)
        for label in self.features:
            found[f"kernel of {label}"] = self.kernel(label, step)
        return found

    def names(self, step: int) -> tuple[str, ...]:
        """All outputs that are asked of a step.

        Besides what moves, the vectors that first updates are made of: x and dh of the first
        sample, x at step 1.
        """
        own = [self.asked(step), *self.subjects(step).values()]
        if step == 0:
            own += [*self.at("x", 0, 0).values(), *self.at("dh", 0, 0).values()]
            own.append(self.at("dx", 0, 0).get(self.features[-1], ()))
        if step == 1:
            own += self.at("x", 1).values()
        return tuple(dict.fromkeys(chain.from_iterable(own)))

    def gradients(self, step: int) -> Iterator[str]:
        """What the gradients of a step are made of: f, x and dh of its samples."""
        for sample in range(self.query):
            labels = (*self.at("x", step, sample).values(), *self.at("dh", step, sample).values())
            yield from chain(self.f(step, sample), *labels)

    @property
    def needed(self) -> Program:
        """What the outputs that are asked of all steps need."""
        steps = range(self.steps + 1)
        names = chain.from_iterable(map(self.names, steps))
        gradients = chain.from_iterable(map(self.gradients, steps[:-1]))
        between = (own for step in steps[:-1] for own in self.at("between", step).values())
        return restricted(self.program, dict.fromkeys(chain(names, gradients, *between)))

    def kernel(self, label: str, step: int) -> tuple[str, ...]:
        """The change of the kernel of some features at the query."""
        pairs = zip(self.at("x", step)[label], self.at("x", 0)[label], strict=True)
        return tuple(f"|{now}|^2-|{then}|^2" for now, then in pairs)

    @cached_property
    def outcomes(self) -> tuple[str, ...]:
        """The outputs and their changes, with those of the last features."""
        names = list(self.f(0))
        for step in self.followed:
            names += [*self.f(step), *self.changes(step), *self.last_moved(step)]
        return tuple(names)


def probe(
    run: Training,
    *,
    query: Sequence[float] | None = None,
    watch: Sequence[str] = ("h", "x", "dh", "dx", "dW_x", "dB", "between"),
    written: Callable[[Training], Program] = lambda run: run.program,
) -> Probe:
    """Write out a training run with the changes of outputs and features.

    The run's own data (generic ones where it has none), watched at one more input: by default one
    that is no sample, whatever the number of steps.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = probe(Training(MLP(2, "relu"), "mup", steps=1))
        >>> found.changes(1), found.moved("2", 1)
        (('f[1,1]-f[0,1]',), ('x[2,1,1]-x[2,0,1]',))
    """
    network, steps = run.network, run.steps
    if steps and not any(run.factors):
        raise UsageError(
            f"the schedule is 0 in all of the run, {count(steps, 'step')}: nothing is trained.",
            hint="Ask for more steps.",
        )
    if query is None:
        query = generic_query(network.tokens) if run.data is None else far_query(run.data)
    data = generic_data(run)
    reported = {name for name, _ in network.smallest.outputs}
    there = set(map(what_of, reported))  # nothing in a linear network is read
    if "x" in watch and "x" not in there:
        raise UsageError(
            f"{network.words} has no readout that a map writes, so that its last features are not "
            "known.",
            where=network.line,
            hint="Write it as t.linear(t.outputs, t.n)(x), or name them: t.watch('x', 'last', x).",
        )
    if "h" in watch and "hhat" in there:
        watch = (*watch, "hhat")
    maps = {
        mark.label: mark.role
        for mark in network.marks
        if layered("W_x", mark.label) in reported and not mark.bias
    }
    inner = [label for label, role in maps.items() if role != "readout"]
    unnamed = [label for label in inner if layered("x", label) not in reported]
    if "x" in watch and unnamed:
        watch = (*watch, "W_x")
    always = ("dW_x", "dB", "between")
    watch = [name for name in watch if name.removeprefix("d") in there or name in always]
    program = written(run.replace(data=data, queries=[query], watch=watch))
    found = Probe(program, maps, steps, run.batch, data.outputs, network.counted)
    pairs = []
    for step in range(1, steps + 1):
        pairs += list(zip(found.f(step), found.f(0), strict=True))
        if "x" in watch:
            for label in dict.fromkeys((*found.features, *unnamed)):
                pairs += zip(found.written(label, step), found.written(label, 0), strict=True)
    return replace(found, program=_with_changes(program, pairs))


def _with_changes(program: Program, pairs: Sequence[tuple[str, str]]) -> Program:
    builder = Builder.copy(program)
    for now, then in pairs:
        refs = program.ref(now), program.ref(then)
        if program.types[refs[0]].kind is Kind.SCALAR:
            node: Node = Nonlin(DIFFERENCE, (), refs)
        else:
            node = LinComb((Fraction(1), Fraction(-1)), (None, None), refs)
        builder.output(change(now, then), builder.add(node))
    return builder.finish(keep_unused=False)


def watched(run: Training, reading: ReadAs = "auto", most: float = inf) -> Probe:
    """Write out a training run with the outputs that facts about its layers are read from.

    Source: Hajjar, Chizat, Giraud, Definitions B.1 and B.2 (features and kernels).
    """

    def written(run: Training) -> Program:
        blocks = run.unrolled.written
        # Few cells of products are 0 or equal, and of each several nodes are made.
        pairs = zip(blocks.nodes, blocks.types, strict=True)
        made = (type_ for node, type_ in pairs if matmul_of(node) is not None)
        products = sum(prod(size for _, size in type_.axes) for type_ in made)
        if products > most:
            raise Large(blocks, products)
        return run.named(reading)

    found = probe(run, written=written)
    builder = Builder.copy(found.program)
    for step in found.followed:
        for label in found.features:
            moved, starts = found.moved(label, step), found.at("x", 0)[label]
            for name, *pair in zip(found.kernel(label, step), moved, starts, strict=True):
                refs = tuple(map(found.program.ref, pair))
                builder.output(name, builder.add(Moment(KERNEL, refs)))
    first = next(step for step, factor in enumerate(run.factors, 1) if factor)
    return replace(found, program=builder.finish(), first=first)
