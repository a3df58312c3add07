"""The template typed anew: its nodes with the inputs of a step as an axis, its data filled in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tpcalc.functions.numbers import Number
from tpcalc.passes.sums import total
from tpcalc.passes.template import Template
from tpcalc.passes.weights import Weights
from tpcalc.program.base import input_of, matmul_of, renumbered
from tpcalc.program.nodes import Data, Input, Kind, Node, Ref, Stack
from tpcalc.program.types import Axes

BITS = 10


def datum(value: float) -> Number:
    """A number of the data: exact where it has a few binary digits, so that products stay exact.

    Example:
        >>> datum(0.75), datum(0.1)
        (Fraction(3, 4), 0.1)
    """
    exact = Fraction(value)
    return exact if exact.denominator <= 2**BITS and abs(exact) < 2**BITS else value


def redrawn(node: Node, tag: str) -> Node:
    """An input that is drawn anew, under a name of its own."""
    drawn = input_of(node)
    assert drawn is not None
    return Input(replace(drawn.family, name=f"{drawn.family.name}@{tag}"), drawn.cell)


@dataclass(frozen=True, slots=True)
class Merged:
    """Rows of a batch of which equal ones are one."""

    rows: tuple[int, ...]  # for each row which of those that differ it is
    counts: tuple[int, ...]  # how often each of these is there

    @staticmethod
    def of(rows: Sequence[Hashable]) -> Merged | None:
        """Which rows are equal; None where all differ.

        Args:
            rows: The rows.

        Example:
            >>> Merged.of(["a", "b", "a"])
            Merged(rows=(0, 1, 0), counts=(2, 1))
        """
        counted = Counter(rows)
        if len(counted) == len(rows):
            return None
        place = {row: k for k, row in enumerate(counted)}
        return Merged(tuple(place[row] for row in rows), tuple(counted.values()))

    @property
    def first(self) -> tuple[int, ...]:
        """For each that differs the first row that it is."""
        return tuple(self.rows.index(k) for k in range(len(self.counts)))


@dataclass
class Step:
    """The network at some inputs."""

    template: Template  # the network
    weights: Weights  # its parameters as they are now
    rows: Sequence[Sequence[float]]  # the inputs
    first: int  # the number of the first of them
    step: int  # the step t
    # which of the inputs that are asked for are equal; its own are those that differ
    merged: Merged | None = None
    before: Step | None = None  # the same inputs a step earlier
    # for each template node that has been typed, its node
    made: dict[Ref, Ref] = field(default_factory=dict)

    @property
    def samples(self) -> Axes:
        """The axis of the inputs."""
        return ((self.weights.sample, len(self.rows)),)

    def run(self, start: int, stop: int) -> None:
        """Type the template nodes ``start`` to ``stop - 1``."""
        network, out = self.weights.network, self.weights.out
        for ref in range(start, stop):
            out.line = network.line_of(ref)
            if ref not in self.made:
                self.made[ref] = self._typed(ref, network.node(ref))
        out.line = None

    def average(self) -> None:
        """Find the averages over these inputs, each of which later ones may be read off."""
        weights, at = self.weights, 0
        for leaf, source in self.template.averages.items():
            self.run(at, leaf)
            found, names = self.made[source], dict(weights.out.type(self.made[source]).axes)
            over = (weights.sample,) if weights.sample in names else ()
            share = Fraction(1, len(self.rows) if over else 1)
            weights.averages[leaf] = total(weights.out, [(share, None, found, over)])
            at = leaf

    def _typed(self, ref: Ref, node: Node) -> Ref:
        weights, template = self.weights, self.template
        if ref in weights.averages:
            return weights.averages[ref]
        if ref in template.parameters:
            matrix = weights.network.type(ref).kind is Kind.MATRIX
            return weights.out.add(node) if matrix else weights.current(ref)
        if ref in template.places:
            return self._data(ref)
        if ref in template.noise:
            return self._noise(node)
        product = matmul_of(node)
        if product is not None and product.matrix in template.parameters:
            return weights.multiply(product, self.made[product.vector])
        return weights.out.add(renumbered(node, self.made.__getitem__))

    def _noise(self, node: Node) -> Ref:
        """What every input draws for itself."""
        out, numbers = self.weights.out, range(self.first, self.first + len(self.rows))
        drawn = [out.add(redrawn(node, f"{self.step},{index}")) for index in numbers]
        return out.add(Stack(tuple(drawn), self.weights.sample))

    def _data(self, ref: Ref) -> Ref:
        """Data of all inputs: a slot of a whole input, or of one of its numbers."""
        axes, place = self.weights.network.type(ref).axes, self.template.places[ref]
        rows = self.rows if axes else [(row[place],) for row in self.rows]
        values = tuple(datum(float(value)) for row in rows for value in row)
        name = f"x[{self.step},{self.first}{'' if axes else f',{place}'}]"
        return self.weights.out.add(Data(name, values, (*self.samples, *axes)))
