"""What a network is, and the program that its forward pass writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from math import prod
from typing import ClassVar

from tpcalc.dsl.handles import Scalar, Value
from tpcalc.dsl.operands import misuse, noun, recording
from tpcalc.dsl.recorder import Recorder
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import StudyError, TraceError, UsageError
from tpcalc.exponents import Ex
from tpcalc.functions import Call, Fn, Var
from tpcalc.functions.expr import walk
from tpcalc.functions.fn import slope_or_none
from tpcalc.names import cell_name, layered, what_of
from tpcalc.networks.maps import OUT
from tpcalc.networks.readers import Readers
from tpcalc.networks.tracer import LAST, NetworkTracer
from tpcalc.passes.starts import AlongDepth
from tpcalc.program.base import Table, nonlin_of
from tpcalc.program.family import Family, Mark
from tpcalc.program.nodes import Data, Input, Node
from tpcalc.program.program import Program, prune
from tpcalc.program.types import Axes, Ref
from tpcalc.shown import Shown

INPUT = "x"
FEATURES = "in"


class Architecture(Shown, ABC):
    """A network: what its forward pass computes of one input.

    The numbers of an input are read along its finite axes; the last axis, ``in``, has what the
    others leave of them. All else that is asked of a network is read off the program that the
    forward pass writes.
    """

    counted: ClassVar[str] = "layer"  # what numbers in the names of its vectors count

    def __str__(self) -> str:
        return repr(self)

    @property
    @abstractmethod
    def words(self) -> str:
        """The network in a phrase."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return type(self).__name__

    @property
    def line(self) -> str | None:
        """The user's line that begins it."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of how it was read."""
        return ()

    @property
    def heading(self) -> str:
        """The same for the heading of a page."""
        return self.words

    @property
    def blocks(self) -> int | None:
        """The number of its blocks, where it repeats one; None: it has no number of them."""
        return None

    def deepened(self, alpha: Ex, base: int, name: str) -> Architecture:
        """The network with a power of the depth before its blocks; its own, if it writes one."""
        if not self.smallest.repeats:
            raise StudyError(
                f"{name} has powers of the depth L, and {self.words} repeats no block.",
                where=self.line or self.name,
                hint="Take ResNet, or t.repeat(t.L, x, block) in a network of your own.",
            )
        return self

    @property
    def axes(self) -> Mapping[str, int]:
        """The finite axes of one input besides its features: ``{"p": 4}`` for 4 tokens."""
        return {}

    @property
    def infinite(self) -> tuple[str, ...]:
        """Those axes whose cells stand for infinitely many, as of an infinite batch."""
        return ()

    @abstractmethod
    def forward(self, t: NetworkTracer, x: Scalar) -> Value | Sequence[Scalar]:
        """The outputs for one input; a vector where the network ends with a wide layer."""

    def finished(self, program: Program) -> Program:
        """The program that stands for what the forward pass wrote."""
        return program

    @cached_property
    def along_depth(self) -> tuple[AlongDepth, ...]:
        """Its parameters that are correlated along the depth at the start, blocks written out."""
        return ()

    @cached_property
    def smallest(self) -> Program:
        """Its program with one feature and one output."""
        return traced(self, self.tokens, 1)

    @property
    def tokens(self) -> int:
        """The number of vectors of one dimension that an input is made of, one after the other."""
        return prod(self.axes.values())

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks of its parameters, in order."""
        families = self.smallest.families.values()
        return tuple(one.mark for one in families if one.mark is not None and one.mark.trained)

    @property
    def hidden(self) -> int:
        """The number of hidden layers that tables over layers have: the last is the readout's."""
        top = max((mark.layer for mark in self.marks), default=1)
        roles = {mark.role for mark in self.marks if mark.layer == top and not mark.bias}
        return top - (roles == {"readout"})

    @property
    def biased(self) -> bool:
        """Whether it has biases."""
        return any(mark.bias for mark in self.marks)

    @property
    def positions(self) -> int:
        """The number of places at which the readout is applied to one input.

        There are that many times as many outputs as are asked of it.
        """
        return sum(cells for cells, _ in _readouts(self.smallest))

    def targets(self, features: int = 1) -> int:
        """The number of targets of a sample, where one output of each readout is asked for."""
        program = written(self, self.tokens * features, 1)
        return sum(cells * outputs for cells, outputs in _readouts(program))


class Rewritten(Architecture):
    """A network whose program is another one than its forward pass writes."""

    network: Architecture

    @property
    def words(self) -> str:
        """The network in a phrase."""
        return self.network.words

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.network.name

    @property
    def line(self) -> str | None:
        """The user's line that begins it."""
        return self.network.line

    @property
    def counted(self) -> str:  # type: ignore[override]
        """What numbers in the names of its vectors count."""
        return self.network.counted

    @property
    def axes(self) -> Mapping[str, int]:
        """The finite axes of one input besides its features."""
        return self.network.axes

    @property
    def infinite(self) -> tuple[str, ...]:
        """Those axes whose cells stand for infinitely many."""
        return self.network.infinite

    def forward(self, t: NetworkTracer, x: Scalar) -> Value | Sequence[Scalar]:
        """The outputs for one input."""
        return self.network.forward(t, x)

    def rewritten(self, program: Program, rule: Table[Node]) -> Program:
        """What the network writes, with other nodes of some kinds."""
        nodes = tuple(map(rule, self.network.finished(program).nodes))
        return replace(program, nodes=nodes)


def _readouts(program: Program) -> Iterator[tuple[int, int]]:
    """Of each output the number of places that it has, and of numbers at a place."""
    for name, ref in program.outputs:
        if what_of(name) == "f":
            sizes = dict(program.types[ref].axes)
            outputs = sizes.pop(OUT, 1)
            yield prod(sizes.values()), outputs


def slots(network: Architecture, dimension: int) -> tuple[str, ...]:
    """The names of the numbers of an input."""
    cells = product(*(range(size) for _, size in _axes(network, dimension)))
    return tuple(f"{INPUT}[{','.join(map(str, cell))}]" for cell in cells)


def _axes(network: Architecture, dimension: int) -> Axes:
    return (*network.axes.items(), (FEATURES, features(network, dimension)))


def features(network: Architecture, dimension: int) -> int:
    """How many numbers of an input each of its tokens has."""
    cells = network.tokens
    if dimension % cells:
        raise UsageError(
            f"an input has {dimension} numbers, which {cells} tokens cannot share.",
            where=network.name,
            hint=f"A row holds the tokens one after the other: {cells} times d numbers.",
        )
    return dimension // cells


def written(
    network: Architecture, dimension: int, outputs: int, *, between: bool = False
) -> Program:
    """The program of a network as it is run: of inputs that are given, with a readout."""
    if network.infinite:
        raise StudyError(
            f"the axis {network.infinite[0]!r} of {network.words} stands for infinitely many "
            "inputs, and a program has as many as are written.",
            where=network.line or network.name,
            hint="Give the axis a size (batch=); tp.signal follows the infinite batch.",
        )
    known: dict[tuple[int, int, bool], Program] = network.__dict__.setdefault("_written", {})
    key = dimension, outputs, between
    if key not in known:
        known[key] = traced(network, dimension, outputs, between=between)
        check_same(network, _layers(network.smallest), _layers(known[key]))
    program = known[key]
    for name, ref in program.outputs:
        if name == "f" and program.types[ref].width:
            raise _no_readout(network, f"a vector, {program.place(ref)}")
    return program


def check_same(network: Architecture, one: object, other: object) -> None:
    """Refuse a network of which two readings differ: numbers of both would be put together."""
    if one != other:
        raise StudyError(
            f"{network.name} writes another network when it is called again.",
            where=network.line,
            hint="It must be the same at every call: draw nothing at random in it, count nothing.",
        )


def _layers(program: Program) -> list[tuple[str, int, str]]:
    marks = (family.mark for family in program.families.values())
    return [(mark.label, mark.layer, mark.role) for mark in marks if mark is not None]


def traced(
    network: Architecture, dimension: int, outputs: int, *, between: bool = False
) -> Program:
    """The program that a forward pass writes, its data a slot and its parameters marked."""
    recorder = Recorder(network.name)
    t = NetworkTracer(recorder, outputs)
    with recording():
        x = Scalar(recorder, recorder.add(Data(INPUT, (), _axes(network, dimension))))
        found = network.forward(t, x)
        for name, f in _outputs(found, network):
            recorder.builder.output(name, f.ref)
        readers = Readers(recorder.builder, recorder.builder.outputs.values())
        powers = {label: readers.power(use[1].ref) for label, use in t.uses.items()}
        read = {label: _scaled(t, use[1].ref, powers[label]) for label, use in t.uses.items()}
        _report(t, {ref: label for label, ref in read.items()})
        for name, ref in t.watched.items():
            recorder.builder.output(name, ref)
        for label, ref in read.items():
            recorder.builder.output(layered("W_x", label), ref)
            if between:
                factor = readers.between(t.uses[label][1].ref)
                if factor is not None:
                    recorder.builder.output(layered("between", label), factor)
        program = prune(recorder.finish())
        _check_used(t, program)
    return network.finished(_placed(program))


def _outputs(found: object, network: Architecture) -> Iterator[tuple[str, Value]]:
    if isinstance(found, Value):
        yield "f", found
        return
    if not isinstance(found, list | tuple) or not found:
        raise _no_readout(network, noun(found))
    for place, value in enumerate(found):
        if not isinstance(value, Scalar):
            raise misuse(
                f"an output of {network.name} is {noun(value)}.",
                "Outputs are scalars.",
                where=network.line,
            )
        yield cell_name("f", (place,)), value


def _no_readout(network: Architecture, returned: str) -> TraceError:
    return misuse(
        f"the forward pass of {network.name} returns {returned}.",
        "It returns what the readout gives: t.linear(t.outputs, t.n)(x).",
        where=network.line,
    )


def _check_used(t: NetworkTracer, program: Program) -> None:
    for parameter in t.parameters:
        if parameter.name not in program.families:
            label = parameter.mark.label
            what = f"the parameter {label!r}" if label else "a parameter that is declared here"
            raise misuse(
                f"{what} is never used.",
                "Apply it in the forward pass, or leave it out.",
                where=parameter.line,
            )


def _scaled(t: NetworkTracer, ref: Ref, power: Ex) -> Ref:
    return t.recorder.scaled(ref, power, Ex()) if power != Ex() else ref


def _report(t: NetworkTracer, names: dict[Ref, str]) -> None:
    """What functions and readouts read, where the network itself reports no ``h`` or no ``x``.

    A preactivation ``h`` is what a function reads that is no sum of what it reads: before an
    activation growth does harm, before a normalisation it does not. It is called by the map that
    writes it, else by the function. What one map writes and another reads counts as well.
    """
    reported = set(map(what_of, t.watched))
    if "h" not in reported:
        for vector, word in _read(t, names):
            if vector not in names:
                count = sum(name.partition("#")[0] == word for name in names.values())
                names[vector] = f"{word}#{count + 1}" if count else word
            t.watched.setdefault(layered("h", names[vector]), vector)
    if "x" not in reported:
        for label, (x, value) in t.uses.items():
            if isinstance(x, Vector) and isinstance(value, Scalar):  # a readout, also a tied one
                t.watch("x", label, x)


def _read(t: NetworkTracer, written: Mapping[Ref, str]) -> Iterator[tuple[Ref, str]]:
    """The vectors that nonlinear functions read, and those that maps write and read."""
    builder = t.recorder.builder
    for ref in range(len(builder)):
        node = nonlin_of(builder.node(ref))
        if node is not None and node.vectors and not is_sum(node.fn):
            word = node.fn.expr.atom.text if isinstance(node.fn.expr, Call) else "product"
            yield from ((vector, word) for vector in node.vectors)
    for x, value in t.uses.values():
        if isinstance(x, Vector) and isinstance(value, Vector) and x.ref in written:
            yield x.ref, written[x.ref]


def is_sum(fn: Fn) -> bool:
    """Whether a function is a sum of its vectors, with numbers and scalars in front."""
    vectors = {Var(index) for index in range(fn.vectors)}
    slopes = (slope_or_none(fn.expr, vector) for vector in vectors)
    return not any(slope is None or vectors.intersection(walk(slope)) for slope in slopes)


def _placed(program: Program) -> Program:
    """The program with the layer of readouts, which comes after all others."""
    marks = [one.mark for one in program.families.values() if one.mark is not None]
    last = max((mark.layer for mark in marks if mark.layer < LAST), default=0) + 1

    def placed(family: Family) -> Family:
        if family.mark is None or family.mark.layer < LAST:
            return family
        return replace(family, mark=replace(family.mark, layer=last))

    moved: Table[Node] = Table(
        {Input: lambda node: Input(placed(node.family), node.cell)}, lambda node: node
    )
    return replace(program, nodes=tuple(moved(node) for node in program.nodes))
