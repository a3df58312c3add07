"""What each node type does to tensors: vectors (seeds, size), scalars (seeds,) in float64.

Matrices are (seeds, rows, cols) with both sides filled up by zeros to a multiple of ``PAD``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tpcalc.finite.dense_plan import DensePlan, outer_rows, padded
from tpcalc.finite.draws import Network, draw_group, draw_scalar, fill_entries, orthogonal
from tpcalc.finite.torch_space import TorchSpace
from tpcalc.finite.widths import scale_factor
from tpcalc.functions import Fn, tape
from tpcalc.functions.forms import forms_of
from tpcalc.program.nodes import (
    Data,
    Input,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    OuterNonlin,
    Ref,
    Scale,
)
from tpcalc.program.program import Program
from tpcalc.program.rules import Rules

__all__ = ["DENSE_RULES", "DenseRun", "moments"]

# Coordinates that are summed in one go. A longer sum would be split among threads at places that
# depend on their number.
_SUM_BLOCK = 4096
# Terms from which a GPU sums a stack rather than one term after the other.
_STACKED = 8


@dataclass
class DenseRun:
    """One chunk of seeds on its way through a program."""

    program: Program
    plan: DensePlan
    torch: Any
    dtype: Any
    device: Any
    networks: Sequence[Network]
    values: Mapping[str, Fraction | int] | None
    groups: dict[str, dict[int, Any]] = field(default_factory=dict)
    products: dict[Ref, Any] = field(default_factory=dict)

    @cached_property
    def space(self) -> TorchSpace:
        """Functions of vectors."""
        return TorchSpace(self.torch, self.dtype, self.device)

    @cached_property
    def scalar_space(self) -> TorchSpace:
        """Functions of scalars."""
        return TorchSpace(self.torch, self.torch.float64, self.device)

    def size(self, ref: Ref) -> int:
        """The size of a vector."""
        return self.plan.sizes[self.program.types[ref].width[0]]

    def from_host(self, array: Any) -> Any:
        """A numpy array as a tensor in this run's format and place."""
        return self.torch.from_numpy(np.ascontiguousarray(array)).to(self.device, self.dtype)


def _data(node: Data, ref: Ref, values: list[Any], run: DenseRun) -> Any:
    numbers = [float(node.values[0])] * len(run.networks)
    return run.torch.tensor(numbers, dtype=run.torch.float64, device=run.device)


def _input(node: Input, ref: Ref, values: list[Any], run: DenseRun) -> Any:
    return (_drawn, _start, _matrix)[len(node.family.width)](node, run)


def _drawn(node: Input, run: DenseRun) -> Any:
    numbers = [draw_scalar(node.family, network) for network in run.networks]
    return run.torch.tensor(numbers, dtype=run.torch.float64, device=run.device)


def _start(node: Input, run: DenseRun) -> Any:
    group = node.family
    if group.name not in run.groups:
        members = run.plan.members[group.name]
        size = run.plan.sizes[group.dim]
        shape = (len(members), len(run.networks), size)
        block = run.torch.empty(shape, dtype=run.dtype, device=run.device)
        for index, network in enumerate(run.networks):
            block[:, index] = run.from_host(draw_group(group, members, network, size))
        run.groups[group.name] = dict(zip(members, block.unbind(0), strict=True))
    return run.groups[group.name].pop(node.index)


def _matrix(node: Input, run: DenseRun) -> Any:
    family = node.family
    rows, cols = (run.plan.sizes[name] for name in family.width)
    shape = (len(run.networks), padded(rows), padded(cols))
    matrix = run.torch.zeros(shape, dtype=run.dtype, device=run.device)
    in_place = run.device.type == "cpu" and run.dtype in (run.torch.float64, run.torch.float32)
    if family.law == "orthogonal":
        for index, network in enumerate(run.networks):
            matrix[index, :rows, :cols] = run.from_host(orthogonal(family, network, rows, cols))
    elif in_place:
        fill_entries(family, run.networks, [part[:rows, :cols] for part in matrix.numpy()])
    else:
        host = np.empty((rows, cols), dtype=np.float64 if run.dtype.itemsize == 8 else np.float32)
        for index, network in enumerate(run.networks):
            fill_entries(family, [network], [host])
            matrix[index, :rows, :cols] = run.from_host(host)
    return matrix


def _matmul(node: MatMul, ref: Ref, values: list[Any], run: DenseRun) -> Any:
    if ref not in run.products:
        batch = run.plan.batches[ref]
        vectors = [values[vector] for vector in batch.values()]
        found = _products(run, node, values[node.matrix], vectors)
        run.products.update(zip(batch, found, strict=True))
    return run.products.pop(ref)


def _products(run: DenseRun, node: MatMul, matrix: Any, vectors: Sequence[Any]) -> Sequence[Any]:
    """One matrix of each seed times several vectors of that seed."""
    rows, cols = (run.plan.sizes[name] for name in run.program.types[node.matrix].width)
    taken, given = (rows, cols) if node.transpose else (cols, rows)
    if len(vectors) == 1 and padded(taken) == taken:
        stack = vectors[0][:, None]
    else:
        shape = (len(run.networks), len(vectors), padded(taken))
        stack = run.torch.zeros(shape, dtype=run.dtype, device=run.device)
        for index, vector in enumerate(vectors):
            stack[:, index, :taken] = vector
    # Vectors as rows: this form of the product does not mix up the seeds' rounding.
    out = run.torch.bmm(stack, matrix if node.transpose else matrix.transpose(1, 2))
    if len(vectors) == 1:
        return [out[:, 0, :given].contiguous()]
    return [out[:, index, :given].clone() for index in range(len(vectors))]


def _apply(fn: Fn, arguments: Sequence[Any], space: TorchSpace) -> Any:
    """A function on tensors, vectors before scalars; a constant one gives a float."""
    try:
        return tape.run(tape.lower(fn), space, arguments)
    except (ZeroDivisionError, OverflowError):  # arithmetic of constants, done by Python
        return float("nan")


def _on_vectors(
    run: DenseRun, fn: Fn, vectors: Sequence[Ref], scalars: Sequence[Ref], values: list[Any]
) -> Any:
    """A coordinatewise function, shape (seeds, size)."""
    numbers = [values[ref].to(run.dtype)[:, None] for ref in scalars]
    found = _apply(fn, [*(values[ref] for ref in vectors), *numbers], run.space)
    shape = (len(run.networks), run.size(vectors[0]))
    if isinstance(found, float | int):
        return run.torch.full(shape, float(found), dtype=run.dtype, device=run.device)
    return found.to(run.dtype).expand(shape).contiguous()


def _nonlin(node: Nonlin, ref: Ref, values: list[Any], run: DenseRun) -> Any:
    if not node.vectors:
        return _scalar_fn(node, values, run)
    return _on_vectors(run, node.fn, node.vectors, node.scalars, values)


def _lincomb(node: LinComb, ref: Ref, values: list[Any], run: DenseRun) -> Any:
    shape = (len(run.networks), run.size(ref))
    vectors = [values[other] for other in node.vectors]
    if not vectors:
        return run.torch.zeros(shape, dtype=run.dtype, device=run.device)
    coefficients = _coefficients(node, values, run)
    if run.device.type == "cuda" and len(vectors) >= _STACKED:
        return _combine_stacked(run.torch, coefficients, vectors)
    return _combine(coefficients, vectors)


def _coefficients(node: LinComb, values: list[Any], run: DenseRun) -> Any:
    """Coefficients, shape (terms, seeds), multiplied in float64 and then rounded."""
    numbers = [float(number) for number in node.numbers]
    table = run.torch.tensor(numbers, dtype=run.torch.float64, device=run.device)[:, None]
    if any(scalar is not None for scalar in node.scalars):
        one = run.torch.ones(len(run.networks), dtype=run.torch.float64, device=run.device)
        rows = [one if scalar is None else values[scalar] for scalar in node.scalars]
        table = table * run.torch.stack(rows)
    return table.to(run.dtype).expand(len(numbers), len(run.networks))


def _combine(coefficients: Any, vectors: Sequence[Any]) -> Any:
    """Sum of coefficient * vector, term by term: no copies, the sum stays in cache."""
    columns = coefficients[:, :, None].unbind(0)
    total = vectors[0] * columns[0]
    for vector, column in zip(vectors[1:], columns[1:], strict=True):
        total.addcmul_(vector, column)
    return total


def _combine_stacked(torch: Any, coefficients: Any, vectors: Sequence[Any]) -> Any:
    """The same as one product: a GPU starts three kernels instead of one for each term."""
    stack = torch.stack(list(vectors), 1)
    return torch.bmm(coefficients.transpose(0, 1)[:, None, :].contiguous(), stack)[:, 0]


def _moment(node: Moment, ref: Ref, values: list[Any], run: DenseRun) -> Any:
    if node.fn.is_inner:
        left = values[node.vectors[0]]
        right = values[node.vectors[1]] if len(node.fn.uses[0]) == 2 else left
        return _mean(run, left.to(run.torch.float64) * right.to(run.torch.float64))
    return _mean(run, _on_vectors(run, node.fn, node.vectors, node.scalars, values))


def _mean(run: DenseRun, vector: Any) -> Any:
    """The average over the coordinates in float64, shape (seeds,)."""
    size = vector.shape[1]
    wide = vector.to(run.torch.float64)
    blocks = size // _SUM_BLOCK
    if blocks < 2:
        return wide.sum(-1) / size
    head = wide[:, : blocks * _SUM_BLOCK].reshape(len(wide), blocks, _SUM_BLOCK).sum(-1).sum(-1)
    return (head + wide[:, blocks * _SUM_BLOCK :].sum(-1)) / size


def moments(run: DenseRun, vector: Any) -> tuple[Any, Any]:
    """Mean and second moment over the coordinates, float64, shape (seeds,) each."""
    wide = vector.to(run.torch.float64)
    return _mean(run, wide), _mean(run, wide * wide)


def _outer(node: OuterNonlin, ref: Ref, values: list[Any], run: DenseRun) -> Any:
    """(1/d) sum_b psi(a, b) x_b, some rows at a time: the full matrix is never kept."""
    size, inner = run.size(ref), run.size(node.vector)
    columns = [values[other][:, None, :] for other in node.cols]
    scalars = [values[other].to(run.dtype)[:, None, None] for other in node.scalars]
    vector = values[node.vector][:, None, :]
    height = outer_rows(node, inner, run.dtype.itemsize)
    parts = []
    for start in range(0, size, height):
        rows = [values[other][:, start : start + height, None] for other in node.rows]
        count = min(height, size - start)
        arguments = [*rows, *columns]
        if node.forms:
            arguments = forms_of(rows, columns, node.forms)
        found = _apply(node.fn, [*arguments, *scalars], run.space)
        shape = (len(run.networks), count, inner)
        if isinstance(found, float | int):
            found = run.torch.full((), float(found), dtype=run.dtype, device=run.device)
        weights = found.to(run.dtype).expand(shape)
        parts.append((weights * vector).sum(-1))
    return run.torch.cat(parts, 1) / inner


def _scalar_fn(node: Nonlin, values: list[Any], run: DenseRun) -> Any:
    found = _apply(node.fn, [values[other] for other in node.scalars], run.scalar_space)
    double = run.torch.float64
    if isinstance(found, float | int):
        return run.torch.full((len(run.networks),), float(found), dtype=double, device=run.device)
    return found.to(double)


def _scale(node: Scale, ref: Ref, values: list[Any], run: DenseRun) -> Any:
    width = run.networks[0].width
    return values[node.of] * scale_factor(node, width, run.values, run.program.place(ref))


DENSE_RULES: Rules[Any, DenseRun] = Rules(
    "dense finite width",
    {
        Data: _data,
        Input: _input,
        MatMul: _matmul,
        Nonlin: _nonlin,
        LinComb: _lincomb,
        Moment: _moment,
        OuterNonlin: _outer,
        Scale: _scale,
    },
)
