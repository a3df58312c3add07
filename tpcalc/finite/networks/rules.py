"""What each node type does to tensors on a batch of inputs.

A value has the inputs as its first axis. Matrices have no axis of inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.finite.axes import contracted, names_of, summed
from tpcalc.finite.networks.coordinatewise import coordinatewise
from tpcalc.finite.tensors import SHARED, Reading
from tpcalc.functions import Fn
from tpcalc.program.nodes import Input, LinComb, MatMul, OuterNonlin, Ref, Stack
from tpcalc.program.rules import Level, Rules

Tensor = Any


@dataclass(kw_only=True)
class Drawn(Reading):
    """What the rules know of a network."""

    parameters: Mapping[str, Tensor]  # what was drawn, by the name of its family

    def applied(self, fn: Fn, arguments: Sequence[Tensor], ref: Ref) -> Tensor:
        """A function that can be differentiated."""
        if not arguments:
            zero = load_torch().zeros(1, dtype=self.dtype, device=self.device)
            return coordinatewise(Fn(fn.expr, 1), zero)
        return coordinatewise(fn, *arguments)

    def mean(self, vector: Tensor) -> Tensor:
        """The average over the coordinates."""
        return vector.mean(-1)

    def is_formed(self, left: Ref, right: Ref) -> bool:
        """A square is."""
        return left == right


def _input(node: Input, ref: Ref, values: Sequence[Tensor], reading: Drawn) -> Tensor:
    if node.family.averages:
        return None
    found = reading.parameters[node.family.name]
    if node.cell is not None:
        found = found.flatten(0, len(node.family.axes) - 1)[node.cell]
    return found if len(node.family.width) == 2 else found[None]


def _stack(node: Stack, ref: Ref, values: Sequence[Tensor], reading: Drawn) -> Tensor:
    torch, place = load_torch(), reading.names(ref).index(node.axis)
    parts = [reading.aligned(values[one], one, ref) for one in node.of]
    return torch.cat(torch.broadcast_tensors(*parts), dim=1 + place)


def _matmul(node: MatMul, ref: Ref, values: Sequence[Tensor], reading: Drawn) -> Tensor:
    matrix, vector = values[node.matrix], values[node.vector]
    if matrix is None:
        return _average(vector, reading.program.place(ref))
    if matrix.ndim == 2:
        return vector @ (matrix if node.transpose else matrix.t())
    program = reading.program
    sides = ("taken", "width") if node.transpose else ("width", "taken")
    names = (*names_of(program, node.matrix)[:-2], *sides)
    read = (*names_of(program, node.vector)[:-1], "taken")
    return contracted([(vector, read), (matrix, names)], names_of(program, ref))


def _average(vector: Tensor, place: str) -> Tensor:
    """The average over the batch at hand."""
    if len(vector) < 2:
        raise UsageError(
            "a batch of a single input has no spread.",
            where=place,
            hint="Take batches of two inputs or more.",
        )
    return vector.mean(0, keepdim=True)


def _lincomb(node: LinComb, ref: Ref, values: Sequence[Tensor], reading: Drawn) -> Tensor:
    total: Tensor = None
    for term in _terms(node, ref, values, reading):
        total = term if total is None else total + term
    return total


def _terms(node: LinComb, ref: Ref, values: Sequence[Tensor], reading: Drawn) -> Iterator[Tensor]:
    for number, scalar, vector, axes in node.terms:
        refs = (vector,) if scalar is None else (scalar, vector)
        if axes:
            factors = [(values[one], names_of(reading.program, one)) for one in refs]
            found = summed(factors, axes, names_of(reading.program, ref))
        else:
            operands = reading.together(refs, values, ref)
            found = operands[0] if scalar is None else operands[0] * operands[1]
        yield found if number == 1 else found * float(number)


def _outer(node: OuterNonlin, ref: Ref, values: Sequence[Tensor], reading: Drawn) -> Tensor:
    rows = [reading.aligned(values[one], one, ref)[..., :, None] for one in node.rows]
    columns = [reading.aligned(values[one], one, ref)[..., None, :] for one in node.cols]
    scalars = [reading.aligned(values[one], one, ref)[..., None, None] for one in node.scalars]
    vector = reading.aligned(values[node.vector], node.vector, ref)[..., None, :]
    weights = reading.applied(node.fn, [*rows, *columns, *scalars], ref)
    return (weights * vector).mean(-1)


NETWORK_RULES: Rules[Tensor, Drawn] = Rules(
    "networks in torch",
    {
        **SHARED,
        Input: _input,
        Stack: _stack,
        MatMul: _matmul,
        LinComb: _lincomb,
        OuterNonlin: _outer,
    },
    level=Level.BLOCKS,
)
