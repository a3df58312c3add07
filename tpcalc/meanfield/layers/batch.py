"""Programs of a batch of inputs as programs of one of them, which averages over the others.

All inputs of a batch are alike, so that their layers need no copies: an axis of inputs is dropped,
and an average over it becomes a matrix of its own, which readings know (``Family.averages``).
"""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.errors import StudyError
from tpcalc.functions.numbers import Number
from tpcalc.networks.network import Architecture
from tpcalc.passes.rewriting import Rewriting
from tpcalc.program.base import Table, references
from tpcalc.program.family import AVERAGE, Family
from tpcalc.program.nodes import Data, Input, LinComb, MatMul, Node, Ref, Rename, RowNonlin
from tpcalc.program.program import Builder, Program


def batch_of(network: Architecture) -> tuple[str, int | None]:
    """The axis of an input that is a batch (empty: none), and its size (None: infinite)."""
    if len(network.axes) > 1:
        raise _joined(network, network.name)
    for axis, size in network.axes.items():
        return axis, None if axis in network.infinite else size
    return "", None


def alone(network: Architecture, program: Program) -> Program:
    """The program with the axis of a batch dropped, if there is one."""
    axis, _ = batch_of(network)
    if not axis:
        return program
    state = _State(program, Builder(program.dims), axis, network)
    return state.by(lambda node, ref: _RULES(node, ref, state)).finish(keep_unused=False)


def _joined(network: Architecture, place: str) -> StudyError:
    return StudyError(
        f"the recursion does not hold: an input of {network.words} is {network.tokens} vectors, "
        "whose layers are not independent where they are joined otherwise than by batch norm.",
        where=place,
        hint="tp.kernel takes such networks.",
    )


@dataclass
class _State(Rewriting):
    axis: str
    network: Architecture

    def along(self, ref: Ref | None) -> bool:
        """Whether a value has the axis."""
        return ref is not None and self.axis in dict(self.program.types[ref].axes)

    def joined(self, ref: Ref) -> StudyError:
        return _joined(self.network, self.program.place(ref))


def _copy(node: Node, ref: Ref, state: _State) -> Ref:
    return state.copied(node)


def _data(node: Data, ref: Ref, state: _State) -> Ref:
    if not state.along(ref):
        return _copy(node, ref, state)
    if node.values:  # numbers that differ from input to input
        raise state.joined(ref)
    return state.out.add(Data(node.name, (), tuple(a for a in node.axes if a[0] != state.axis)))


def _input(node: Input, ref: Ref, state: _State) -> Ref:
    if state.along(ref):
        raise state.joined(ref)
    return _copy(node, ref, state)


def _arranged(node: Node, ref: Ref, state: _State) -> Ref:
    if any(map(state.along, (ref, *references(node)))):
        raise state.joined(ref)
    return _copy(node, ref, state)


def _lincomb(node: LinComb, ref: Ref, state: _State) -> Ref:
    numbers: list[Number] = []
    vectors: list[Ref] = []
    for number, scalar, vector, summed in node.terms:
        own = state.new[vector]
        if state.axis in summed:
            type_ = state.program.types[vector]
            if not type_.width or not state.along(vector) or state.along(scalar):
                raise state.joined(ref)
            (dim,) = type_.width
            average = state.out.add(Input(Family(f"{AVERAGE} on {dim}", (dim, dim))))
            number, own = number * dict(type_.axes)[state.axis], state.out.add(MatMul(average, own))
        numbers.append(number)
        vectors.append(own)
    scalars = tuple(None if one is None else state.new[one] for one in node.scalars)
    left = tuple(tuple(a for a in summed if a != state.axis) for summed in node.over)
    return state.out.add(
        LinComb(tuple(numbers), scalars, tuple(vectors), left if any(left) else ())
    )


_RULES: Table[Ref] = Table(
    {Data: _data, Input: _input, LinComb: _lincomb, Rename: _arranged, RowNonlin: _arranged}, _copy
)
