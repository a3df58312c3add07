"""What each node type does to tensors on a batch of inputs.

A value has the inputs as its first axis, of size 1 where it does not depend on them; then its
finite axes in the order of its type, then its width. Matrices have no axis of inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.finite.axes import contracted, names_of, placed, summed
from tpcalc.finite.networks.coordinatewise import coordinatewise
from tpcalc.finite.widths import scale_factor
from tpcalc.functions import Fn, Var
from tpcalc.program.base import only
from tpcalc.program.nodes import (
    Data,
    Input,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    OuterNonlin,
    Ref,
    Rename,
    RowNonlin,
    Scale,
    Stack,
)
from tpcalc.program.program import Program
from tpcalc.program.rules import Level, Rules
from tpcalc.program.types import Axes

Tensor = Any


@dataclass(frozen=True)
class Reading:
    """What the rules know besides the values."""

    program: Program  # the network
    width: int  # n
    parameters: Mapping[str, Tensor]  # what was drawn, by the name of its family
    dtype: Any  # the number format
    device: Any  # where the tensors are
    values: Mapping[str, Fraction] | None = None  # numbers for symbols in powers of n
    powers: dict[Ref, float] = field(default_factory=dict)  # powers of n, as they are found

    def power(self, ref: Ref) -> float:
        """The number that a power of n is."""
        if ref not in self.powers:
            node = only(Scale)(self.program.nodes[ref])
            place = self.program.place(ref)
            self.powers[ref] = scale_factor(node, self.width, self.values, place)
        return self.powers[ref]

    def axes(self, ref: Ref) -> Axes:
        """The finite axes of a node."""
        return self.program.types[ref].axes

    def aligned(self, value: Tensor, ref: Ref, to: Ref) -> Tensor:
        """A value with the axes of another node, of size 1 where it lacks one; its width stays."""
        own, wanted = ([name for name, _ in self.axes(one)] for one in (ref, to))
        return placed(value, own, wanted)

    def together(self, refs: Sequence[Ref], values: Sequence[Tensor], to: Ref) -> list[Tensor]:
        """Operands with the axes of a node; scalars beside vectors get a width of 1."""
        vectors = any(self.program.types[ref].width for ref in refs)
        found = []
        for ref in refs:
            value = self.aligned(values[ref], ref, to)
            bare = vectors and not self.program.types[ref].width
            found.append(value[..., None] if bare else value)
        return found


def _data(node: Data, ref: Ref, values: Sequence[Tensor], reading: Reading) -> Tensor:
    numbers = [float(value) for value in node.values]
    found = load_torch().tensor(numbers, dtype=reading.dtype, device=reading.device)
    return found.reshape(1, *(size for _, size in node.axes))


def _input(node: Input, ref: Ref, values: Sequence[Tensor], reading: Reading) -> Tensor:
    if node.family.averages:
        return None
    found = reading.parameters[node.family.name]
    if node.cell is not None:
        found = found.flatten(0, len(node.family.axes) - 1)[node.cell]
    return found if len(node.family.width) == 2 else found[None]


def _rename(node: Rename, ref: Ref, values: Sequence[Tensor], reading: Reading) -> Tensor:
    return values[node.of]


def _stack(node: Stack, ref: Ref, values: Sequence[Tensor], reading: Reading) -> Tensor:
    torch, place = load_torch(), [name for name, _ in reading.axes(ref)].index(node.axis)
    parts = [reading.aligned(values[one], one, ref) for one in node.of]
    return torch.cat(torch.broadcast_tensors(*parts), dim=1 + place)


def _matmul(node: MatMul, ref: Ref, values: Sequence[Tensor], reading: Reading) -> Tensor:
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


def _nonlin(node: Nonlin, ref: Ref, values: Sequence[Tensor], reading: Reading) -> Tensor:
    refs = (*node.vectors, *node.scalars)
    return _applied(node.fn, reading.together(refs, values, ref), reading)


def _applied(fn: Fn, arguments: Sequence[Tensor], reading: Reading) -> Tensor:
    if not arguments:
        zero = load_torch().zeros(1, dtype=reading.dtype, device=reading.device)
        return coordinatewise(Fn(fn.expr, 1), zero)
    return coordinatewise(fn, *arguments)


def _rows(node: RowNonlin, ref: Ref, values: Sequence[Tensor], reading: Reading) -> Tensor:
    place = 1 + [name for name, _ in reading.axes(node.of)].index(node.along)
    row = values[node.of].unbind(place)
    slots = [Var(index) for index in range(len(row))]
    cells = [coordinatewise(Fn(expr, len(row)), *row) for expr in node.row.cells(slots)]
    return load_torch().stack(cells, place)


def _lincomb(node: LinComb, ref: Ref, values: Sequence[Tensor], reading: Reading) -> Tensor:
    total: Tensor = None
    for term in _terms(node, ref, values, reading):
        total = term if total is None else total + term
    return total


def _terms(node: LinComb, ref: Ref, values: Sequence[Tensor], reading: Reading) -> Iterator[Tensor]:
    for number, scalar, vector, axes in node.terms:
        refs = (vector,) if scalar is None else (scalar, vector)
        if axes:
            factors = [(values[one], names_of(reading.program, one)) for one in refs]
            found = summed(factors, axes, names_of(reading.program, ref))
        else:
            operands = reading.together(refs, values, ref)
            found = operands[0] if scalar is None else operands[0] * operands[1]
        yield found if number == 1 else found * float(number)


def _moment(node: Moment, ref: Ref, values: Sequence[Tensor], reading: Reading) -> Tensor:
    if node.fn.is_inner:
        left, right = node.vectors[0], node.vectors[-1]
        if left != right:
            factors = [(values[one], names_of(reading.program, one)) for one in (left, right)]
            found = contracted(factors, names_of(reading.program, ref))
            return found / values[left].shape[-1]
    refs = (*node.vectors, *node.scalars)
    return _applied(node.fn, reading.together(refs, values, ref), reading).mean(-1)


def _outer(node: OuterNonlin, ref: Ref, values: Sequence[Tensor], reading: Reading) -> Tensor:
    rows = [reading.aligned(values[one], one, ref)[..., :, None] for one in node.rows]
    columns = [reading.aligned(values[one], one, ref)[..., None, :] for one in node.cols]
    scalars = [reading.aligned(values[one], one, ref)[..., None, None] for one in node.scalars]
    vector = reading.aligned(values[node.vector], node.vector, ref)[..., None, :]
    return (_applied(node.fn, [*rows, *columns, *scalars], reading) * vector).mean(-1)


def _scale(node: Scale, ref: Ref, values: Sequence[Tensor], reading: Reading) -> Tensor:
    return values[node.of] * reading.power(ref)


NETWORK_RULES: Rules[Tensor, Reading] = Rules(
    "networks in torch",
    {
        Data: _data,
        Input: _input,
        Rename: _rename,
        Stack: _stack,
        MatMul: _matmul,
        Nonlin: _nonlin,
        RowNonlin: _rows,
        LinComb: _lincomb,
        Moment: _moment,
        OuterNonlin: _outer,
        Scale: _scale,
    },
    level=Level.BLOCKS,
)
