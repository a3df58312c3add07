"""``Template``: a network of single vectors, with what its marks and names say of it.

Outputs of a network are ``f``, and what it reports: ``h[2]`` is the vector h of layer 2,
``W_x[2]`` what the weights and the bias of layer 2 write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tpcalc.names import Name
from tpcalc.passes.starts import zero_starts
from tpcalc.program.base import Table, cone, input_of
from tpcalc.program.family import Mark
from tpcalc.program.nodes import Input, Node, Ref
from tpcalc.program.program import Program

OUTPUT, WRITTEN = "f", "W_x"  # what a map writes; its second use is ``W_x[label@1]``
BETWEEN = "between"  # what stands between this and what reads it


@dataclass(frozen=True, slots=True)
class Watch:
    """A vector or scalar that a network reports."""

    own: Name
    ref: Ref

    def name(self, step: int, index: int, cell: tuple[int, ...] = (), before: str = "") -> Name:
        """Its name at a step, for an input; of its gradient with a ``"d"`` before it."""
        cells = (index, *self.own.cell, *cell)
        return replace(self.own, what=f"{before}{self.own.what}", step=step, cell=cells)


@dataclass(frozen=True, slots=True)
class Contribution:
    """What the last update of some parameters adds to a node of the template."""

    kind: str  # "dW_x" of weights, "dB" of a bias
    watch: Watch  # what a use of a map writes, linear in each of its parameters
    parameters: frozenset[Ref]  # what was updated
    # what stands between it and what reads it; None: nothing but powers of n
    between: Ref | None = None

    def name(self, step: int, index: int, cell: tuple[int, ...] = ()) -> Name:
        """Its name at a step; that of a bias is the same for every input."""
        found = replace(self.watch.name(step, index, cell), what=self.kind)
        return replace(found, cell=found.cell[1:]) if self.kind == "dB" else found


@dataclass(frozen=True)
class Template:
    """A network as a template of training."""

    program: Program  # the network, of single vectors, its parameterization written out
    slots: tuple[str, ...]  # the names of its data, in the order of the numbers of an input
    # for nodes that stand for an average over the data at the start, what is averaged
    averages: Mapping[Ref, Ref] = field(default_factory=dict, hash=False)
    still: frozenset[Ref] = frozenset()  # parameters that stay as they are

    @cached_property
    def bare(self) -> Program:
        """The program without marks: what is trained is a network no longer."""
        without: Table[Node] = Table(
            {Input: lambda node: Input(replace(node.family, mark=None), node.cell)},
            lambda node: node,
        )
        return replace(self.program, nodes=tuple(map(without, self.program.nodes)))

    @cached_property
    def inputs(self) -> Mapping[int, Ref]:
        """For each number of an input that the network reads, by its place, the node."""
        return {
            place: self.program.inputs[name]
            for place, name in enumerate(self.slots)
            if name in self.program.inputs
        }

    @cached_property
    def places(self) -> Mapping[Ref, int]:
        """For each node of data that the network reads its place in an input."""
        return {ref: place for place, ref in self.inputs.items()}

    @cached_property
    def parameters(self) -> Mapping[Ref, Mark]:
        """What is trained."""
        marks = self._marks.items()
        return {ref: mark for ref, mark in marks if mark.trained and ref not in self.still}

    @cached_property
    def noise(self) -> frozenset[Ref]:
        """What is drawn anew for every copy."""
        return frozenset(ref for ref, mark in self._marks.items() if not mark.trained)

    @cached_property
    def _marks(self) -> Mapping[Ref, Mark]:
        drawn = ((ref, input_of(node)) for ref, node in enumerate(self.program.nodes))
        marks = ((ref, node.family.mark) for ref, node in drawn if node is not None)
        return {ref: mark for ref, mark in marks if mark is not None}

    @cached_property
    def zeros(self) -> frozenset[str]:
        """The names of the parameters that start at 0, and those of their cells."""
        return zero_starts(self.program)

    @cached_property
    def outputs(self) -> tuple[Ref, ...]:
        """Its scalar outputs f_1..f_K."""
        return tuple(watch.ref for watch in self._named if watch.own.what == OUTPUT)

    @cached_property
    def watch(self) -> tuple[Watch, ...]:
        """The vectors that it reports."""
        return tuple(one for one in self._named if one.own.what != OUTPUT)

    @cached_property
    def contributions(self) -> tuple[Contribution, ...]:
        """What updates add, for each use of a map."""
        return tuple(self._contributions())

    @property
    def _named(self) -> Iterator[Watch]:
        yield from (Watch(Name.of(name), ref) for name, ref in self.program.outputs)

    def _contributions(self) -> Iterator[Contribution]:
        written = [one for one in self._named if one.own.what == WRITTEN]
        own = {one: self._parameters_of(one) for one in written}
        between = {one.own.layer: one.ref for one in self._named if one.own.what == BETWEEN}
        places: dict[frozenset[Ref], Watch] = {}
        for one, (_, shifts) in own.items():
            places.setdefault(shifts, one)
        for one, (weights, shifts) in own.items():
            if weights:
                yield Contribution("dW_x", one, weights, between.get(one.own.layer))
            if shifts and places[shifts] is one:  # a bias adds the same at every place
                several = sum(other.own.label == one.own.label for other in places.values())
                bare = one if several > 1 else replace(one, own=replace(one.own, cell=()))
                yield Contribution("dB", bare, shifts, between.get(one.own.layer))

    def _parameters_of(self, written: Watch) -> tuple[frozenset[Ref], frozenset[Ref]]:
        """The weights and the biases that a use of a map reads."""
        needed = cone(self.program.nodes, [written.ref])
        marks = self.parameters.items()
        own = {ref: mark for ref, mark in marks if mark.label == written.own.label and needed[ref]}
        weights = frozenset(ref for ref, mark in own.items() if not mark.bias)
        return weights, frozenset(own) - weights
