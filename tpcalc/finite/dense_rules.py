"""What each node type does to tensors: vectors (seeds, axes, size), scalars (seeds, axes).

Finite axes stand in the order of the type. Scalars are float64. Matrices are (seeds, axes, rows,
cols) with both sides filled up by zeros to a multiple of ``PAD``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tpcalc.finite.axes import LEAD, names_of, placed, summed
from tpcalc.finite.dense_plan import DensePlan, outer_rows, padded
from tpcalc.finite.draws import Network, draw_group, draw_scalar, fill_entries, orthogonal
from tpcalc.finite.networks.coordinatewise import space_of
from tpcalc.finite.tensors import SHARED, Reading
from tpcalc.functions import Fn, tape
from tpcalc.functions.numbers import Number
from tpcalc.program.nodes import Family, Input, LinComb, MatMul, OuterNonlin, Ref, Stack
from tpcalc.program.rules import Level, Rules

# Coordinates that are summed in one go. A longer sum would be split among threads at places that
# depend on their number.
_SUM_BLOCK = 4096
# Terms from which a GPU sums a stack rather than one term after the other.
_STACKED = 8


@dataclass(kw_only=True)
class DenseRun(Reading):
    """One chunk of seeds on its way through a program."""

    plan: DensePlan
    torch: Any
    networks: Sequence[Network]
    groups: dict[str, dict[int, Any]] = field(default_factory=dict)
    products: dict[Ref, Any] = field(default_factory=dict)
    stacks: dict[Ref, Any] = field(default_factory=dict)

    @property
    def exact(self) -> Any:
        """The number format of scalars."""
        return self.torch.float64

    @property
    def lead(self) -> int:
        """The number of seeds."""
        return len(self.networks)

    def applied(self, fn: Fn, arguments: Sequence[Any], ref: Ref) -> Any:
        """A function on tensors, with the shape of all of them together."""
        torch = self.torch
        shape = torch.broadcast_shapes(*(own.shape for own in arguments))
        dtype = arguments[0].dtype if arguments else self.exact
        try:
            space = space_of(torch, dtype, self.device)
            found = tape.run(tape.lower(fn), space, arguments)
        except (ZeroDivisionError, OverflowError):  # arithmetic of constants, done by Python
            found = float("nan")
        if isinstance(found, float | int):
            shape = shape if arguments else self.shape(ref)
            return torch.full(shape, float(found), dtype=dtype, device=self.device)
        return found.to(dtype).expand(shape).contiguous()

    def mean(self, vector: Any) -> Any:
        """The average over the coordinates in float64."""
        size = vector.shape[-1]
        wide = vector.to(self.exact)
        blocks = size // _SUM_BLOCK
        if blocks < 2:
            return wide.sum(-1) / size
        head, tail = wide[..., : blocks * _SUM_BLOCK], wide[..., blocks * _SUM_BLOCK :]
        sums = head.reshape(*head.shape[:-1], blocks, _SUM_BLOCK).sum(-1).sum(-1)
        return (sums + tail.sum(-1)) / size

    def is_formed(self, left: Ref, right: Ref) -> bool:
        """One of vectors with the same axes is: sums do not mix up the rounding of seeds."""
        return self.names(left) == self.names(right)

    def size(self, ref: Ref) -> int:
        """The size of a vector."""
        return self.plan.sizes[self.program.types[ref].width[0]]

    def shape(self, ref: Ref) -> tuple[int, ...]:
        """The shape of a vector or scalar."""
        type_ = self.program.types[ref]
        sizes = (self.plan.sizes[name] for name in type_.width)
        return (len(self.networks), *(size for _, size in type_.axes), *sizes)

    def kept_in(self, ref: Ref) -> Any:
        """The number format of a vector or scalar."""
        return self.dtype if self.program.types[ref].width else self.exact

    def from_host(self, array: Any) -> Any:
        """A numpy array as a tensor in this run's format and place."""
        return self.torch.from_numpy(np.ascontiguousarray(array)).to(self.device, self.dtype)


def _input(node: Input, ref: Ref, values: list[Any], run: DenseRun) -> Any:
    return (_drawn, _start, _matrix)[len(node.family.width)](node, ref, run)


def _parts(node: Input) -> list[Family]:
    """The matrices or random numbers that are drawn, as families of their own."""
    cells = range(node.family.size) if node.cell is None else (node.cell,)
    return [node.family.part(cell) for cell in cells]


def _drawn(node: Input, ref: Ref, run: DenseRun) -> Any:
    parts = _parts(node)
    numbers = [[draw_scalar(part, network) for part in parts] for network in run.networks]
    found = run.torch.tensor(numbers, dtype=run.torch.float64, device=run.device)
    return found.reshape(run.shape(ref))


def _start(node: Input, ref: Ref, run: DenseRun) -> Any:
    group = node.family
    if node.cell is None and group.axes:
        return _members(group, range(group.size), run).transpose(0, 1).reshape(run.shape(ref))
    if group.name not in run.groups:
        members = run.plan.members[group.name]
        block = _members(group, members, run)
        run.groups[group.name] = dict(zip(members, block.unbind(0), strict=True))
    return run.groups[group.name].pop(node.index)


def _members(group: Family, members: Sequence[int], run: DenseRun) -> Any:
    """Start vectors of one group, shape (members, seeds, size)."""
    size = run.plan.sizes[group.dim]
    shape = (len(members), len(run.networks), size)
    block = run.torch.empty(shape, dtype=run.dtype, device=run.device)
    for index, network in enumerate(run.networks):
        block[:, index] = run.from_host(draw_group(group, members, network, size))
    return block


def _matrix(node: Input, ref: Ref, run: DenseRun) -> Any:
    rows, cols = (run.plan.sizes[name] for name in node.family.width)
    parts = _parts(node)
    shape = (len(run.networks), len(parts), padded(rows), padded(cols))
    matrices = run.torch.zeros(shape, dtype=run.dtype, device=run.device)
    for place, part in enumerate(parts):
        _fill(part, matrices[:, place, :rows, :cols], run)
    sizes = (size for _, size in run.program.types[ref].axes)
    return matrices.reshape(len(run.networks), *sizes, *shape[-2:])


def _fill(family: Family, target: Any, run: DenseRun) -> None:
    """Draw a matrix of every seed in place."""
    rows, cols = target.shape[1:]
    in_place = run.device.type == "cpu" and run.dtype in (run.torch.float64, run.torch.float32)
    if family.law == "orthogonal":
        for index, network in enumerate(run.networks):
            target[index] = run.from_host(orthogonal(family, network, rows, cols))
    elif in_place:
        fill_entries(family, run.networks, list(target.numpy()))
    else:
        host = np.empty((rows, cols), dtype=np.float64 if run.dtype.itemsize == 8 else np.float32)
        for index, network in enumerate(run.networks):
            fill_entries(family, [network], [host])
            target[index] = run.from_host(host)


def _stack(node: Stack, ref: Ref, values: list[Any], run: DenseRun) -> Any:
    """A view of a block that longer stacks continue."""
    place = run.plan.stacks[ref]
    buffer = run.stacks.pop(place.before, None)
    if buffer is None:
        shape = (len(run.networks), place.capacity, *run.shape(ref)[2:])
        buffer = run.torch.empty(shape, dtype=run.kept_in(ref), device=run.device)
    names = run.names(ref)[1:]
    for index in range(place.held, len(node.of)):
        one = node.of[index]
        buffer[:, index] = placed(values[one], run.names(one), names)
    if place.continued:
        run.stacks[ref] = buffer
    return buffer[:, : len(node.of)]


def _matmul(node: MatMul, ref: Ref, values: list[Any], run: DenseRun) -> Any:
    if ref not in run.products:
        batch = run.plan.batches[ref]
        found = _products(run, node, values, batch)
        run.products.update(zip(batch, found, strict=True))
    return run.products.pop(ref)


def _products(
    run: DenseRun, node: MatMul, values: list[Any], batch: Mapping[Ref, Ref]
) -> Sequence[Any]:
    """One matrix of each seed (or one for each cell) times several blocks of that seed."""
    rows, cols = (run.plan.sizes[name] for name in run.program.types[node.matrix].width)
    taken, given = (rows, cols) if node.transpose else (cols, rows)
    matrix, own = values[node.matrix].flatten(0, -3), run.names(node.matrix)
    sizes = [size for _, size in run.program.types[node.matrix].axes]
    columns, heights, orders = [], [], []
    for vector in batch.values():
        rest = [pair for pair in run.program.types[vector].axes if pair[0] not in own]
        order = (*own, *(name for name, _ in rest))
        value = placed(values[vector], run.names(vector), order)
        value = value.expand(len(value), *sizes, *value.shape[1 + len(own) :])
        value = value.reshape(len(matrix), -1, taken)
        columns.append(value)
        heights.append([size for _, size in rest])
        orders.append(order)
    if len(columns) == 1 and padded(taken) == taken:
        stack = columns[0]
    else:
        shape = (len(matrix), sum(value.shape[1] for value in columns), padded(taken))
        stack = run.torch.zeros(shape, dtype=run.dtype, device=run.device)
        stack[:, :, :taken] = run.torch.cat(columns, 1)
    # Vectors as rows: this form of the product does not mix up the seeds' rounding.
    out = run.torch.bmm(stack, matrix if node.transpose else matrix.transpose(1, 2))
    parts = out[:, :, :given].split([value.shape[1] for value in columns], 1)
    lead = (len(run.networks), *sizes)
    # Copies, so that the products of a batch are dropped one by one.
    return [
        placed(part.reshape(*lead, *height, given), order, run.names(ref)).clone(
            memory_format=run.torch.contiguous_format
        )
        for ref, part, height, order in zip(batch, parts, heights, orders, strict=True)
    ]


def _lincomb(node: LinComb, ref: Ref, values: list[Any], run: DenseRun) -> Any:
    vectors = [values[other] for other in node.vectors]
    if vectors and not node.over and not run.names(ref):
        coefficients = _coefficients(node, values, run)
        if run.device.type == "cuda" and len(vectors) >= _STACKED:
            return _combine_stacked(run.torch, coefficients, vectors)
        return _combine(coefficients, vectors)
    total = run.torch.zeros(run.shape(ref), dtype=run.kept_in(ref), device=run.device)
    for term in node.terms:
        _add(total, *term, ref, values, run)
    return total


def _add(
    total: Any,
    number: Number,
    scalar: Ref | None,
    vector: Ref,
    over: Sequence[str],
    ref: Ref,
    values: list[Any],
    run: DenseRun,
) -> None:
    """Add a term to a sum of blocks; what is summed over axes is a matrix product."""
    names, width = run.names(ref), bool(run.program.types[ref].width)
    factor = None
    if scalar is not None:
        factor = (values[scalar] * float(number)).to(total.dtype)
    if over:
        factors = [(values[vector], names_of(run.program, vector))]
        if scalar is not None:
            factors.insert(0, (factor, names_of(run.program, scalar)))
        found = summed(factors, over, names_of(run.program, ref))
        total.add_(found, alpha=float(number) if scalar is None else 1.0)
        return
    value = placed(values[vector], run.names(vector), names)
    if scalar is None:
        total.add_(value, alpha=float(number))
    else:
        factor = placed(factor, run.names(scalar), names)
        total.addcmul_(value, factor[..., None] if width else factor)


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


def moments(run: DenseRun, vector: Any) -> tuple[Any, Any]:
    """Mean and second moment over the coordinates, float64, for each seed and cell."""
    wide = vector.to(run.exact)
    return run.mean(wide), run.mean(wide * wide)


def _outer(node: OuterNonlin, ref: Ref, values: list[Any], run: DenseRun) -> Any:
    """(1/d) sum_b psi(a, b) x_b, some rows at a time: the full matrix is never kept."""
    names, shape = run.names(ref), run.shape(ref)
    sizes, inner = dict(run.program.types[ref].axes), run.size(node.vector)
    read = {name for one in (*node.rows, *node.cols, *node.scalars) for name in run.names(one)}
    own = [name for name in names if name in read]
    order = (*own, *(name for name in names if name not in read))  # psi does not have the others
    cells = (len(run.networks), *(sizes[name] for name in own))
    scalars = [
        placed(values[one].to(run.dtype), run.names(one), own)[..., None, None]
        for one in node.scalars
    ]
    vector = placed(values[node.vector], run.names(node.vector), order)
    vector = vector.reshape(*vector.shape[: len(cells)], -1, inner)
    height = outer_rows(node, inner * math.prod(cells[1:]), run.dtype.itemsize)
    parts = []
    for start in range(0, shape[-1], height):
        rows = [values[one][..., start : start + height] for one in node.rows]
        arguments = [*_arguments(node, rows, own, values, run), *scalars]
        weights = run.applied(node.fn, arguments, ref)
        if vector.shape[-2] == 1:
            parts.append((weights * vector).sum(-1)[..., None, :])
        else:
            parts.append(run.torch.matmul(vector, weights.transpose(-1, -2)))
    whole = run.torch.cat(parts, -1) / inner
    rest = [sizes[name] for name in order[len(own) :]]
    return placed(whole.reshape(*cells, *rest, shape[-1]), order, names).contiguous()


def _arguments(
    node: OuterNonlin, rows: Sequence[Any], own: Sequence[str], values: list[Any], run: DenseRun
) -> list[Any]:
    """What an outer function takes on some rows and all columns: vectors, or bilinear forms."""
    columns = [values[one] for one in node.cols]
    if not node.forms:
        left = [
            placed(row, run.names(one), own)[..., None]
            for row, one in zip(rows, node.rows, strict=True)
        ]
        right = [
            placed(column, run.names(one), own)[..., None, :]
            for column, one in zip(columns, node.cols, strict=True)
        ]
        return [*left, *right]
    found: dict[int, Any] = {}
    wanted = (LEAD, *(f"[{name}]" for name in own), "rows", "columns")
    for k, form in enumerate(node.forms):
        factors = [
            (rows[k], (*names_of(run.program, node.rows[k])[:-1], "rows")),
            (columns[k], (*names_of(run.program, node.cols[k])[:-1], "columns")),
        ]
        part = summed(factors, node.over, wanted)
        found[form] = found[form] + part if form in found else part
    return [found[form] for form in sorted(found)]


DENSE_RULES: Rules[Any, DenseRun] = Rules(
    "dense finite width",
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
