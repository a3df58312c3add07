"""The order of a dense run: products in batches, values dropped early, bytes known beforehand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tpcalc.functions.tape import lower
from tpcalc.program.base import Table, cone, references
from tpcalc.program.nodes import (
    Input,
    Kind,
    LinComb,
    MatMul,
    Moment,
    Node,
    Nonlin,
    OuterNonlin,
    Ref,
)
from tpcalc.program.program import Program
from tpcalc.program.views import input_of, matmul_of

__all__ = ["PAD", "DensePlan", "outer_rows", "padded", "plan_dense"]

# Stored sides of matrices are multiples of this: then the rows of every matrix of a batch lie alike
# in memory, and the product of one seed has the same bits whichever seeds stand before it.
PAD = 16
# Bytes of temporaries that an OuterNonlin may take, for each seed.
_OUTER_BYTES = 2**24
# Bytes for each entry of the running mean of a moment (two float64 copies and their product).
_MOMENT_BYTES = 24


@dataclass(frozen=True)
class DensePlan:
    """How a program is run densely.

    Args:
        order: The nodes that outputs need, in the order of running.
        batches: For the first product of a batch, all its products, each with the vector it takes.
        members: For each Gaussian group the members that are needed.
        drops: For each node of ``order``, by position, the values that nothing needs after it.
        sizes: Sizes of the dimension classes.
        seed_bytes: Largest number of bytes in use at once, for each seed.
        largest: The matrix that takes most bytes, with those bytes; None without matrices.
        products: Number of products of a random matrix with a vector.
    """

    order: tuple[Ref, ...]
    batches: Mapping[Ref, Mapping[Ref, Ref]]
    members: Mapping[str, tuple[int, ...]]
    drops: tuple[tuple[Ref, ...], ...]
    sizes: Mapping[str, int]
    seed_bytes: int
    largest: tuple[Ref, int] | None
    products: int


def padded(size: int) -> int:
    """A side of a stored matrix.

    Example:
        >>> padded(100), padded(112)
        (112, 112)
    """
    return -(-size // PAD) * PAD


def outer_rows(node: OuterNonlin, cols: int, itemsize: int) -> int:
    """Rows of an OuterNonlin that are computed at a time: its full matrix is never kept.

    The same for every number of seeds and threads, as the answer must be.
    """
    return max(1, _OUTER_BYTES // _outer_bytes(node, cols, itemsize))


def _outer_bytes(node: OuterNonlin, cols: int, itemsize: int) -> int:
    """Bytes of temporaries for one row: the registers of the function, and the product."""
    forms = node.fn.vectors + 1 if node.forms else 0
    return cols * itemsize * (len(lower(node.fn).steps) + forms + 2)


def plan_dense(program: Program, sizes: Mapping[str, int], itemsize: int) -> DensePlan:
    """Plan a dense run.

    Nodes are ordered by the number of products on the way to them, so that all products of one
    matrix with vectors that are ready together (the inputs of a batch, say) read it once.

    Args:
        program: The program.
        sizes: Sizes of the dimension classes that occur.
        itemsize: Bytes of one coordinate.
    """
    needed = cone(program.nodes, (ref for _, ref in program.outputs))
    order, batches = _order(program, needed)
    members: dict[str, set[int]] = defaultdict(set)
    for ref in order:
        start = _input(program.nodes[ref], 1)
        if start is not None:
            members[start.family.name].add(start.index)
    used = {name: tuple(sorted(found)) for name, found in members.items()}
    drops = _drops(program, order)
    matrices = [
        (_bytes(program, ref, sizes, itemsize), ref)
        for ref in order
        if _input(program.nodes[ref], 2) is not None
    ]
    biggest = max(matrices, default=None)
    return DensePlan(
        order,
        batches,
        used,
        drops,
        sizes,
        _peak(program, order, batches, used, drops, sizes, itemsize),
        (biggest[1], biggest[0]) if biggest else None,
        sum(matmul_of(program.nodes[ref]) is not None for ref in order),
    )


def _input(node: Node, width: int) -> Input | None:
    """A node that is drawn, with so many width axes: 1 for a start vector, 2 for a matrix."""
    found = input_of(node)
    return found if found is not None and len(found.family.width) == width else None


def _order(
    program: Program, needed: Sequence[bool]
) -> tuple[tuple[Ref, ...], dict[Ref, dict[Ref, Ref]]]:
    depth = [0] * len(program.nodes)
    place: dict[Ref, tuple[int, ...]] = {}
    first_use: dict[Ref, int] = {}
    batches: dict[tuple[int, ...], dict[Ref, Ref]] = defaultdict(dict)
    for ref, node in enumerate(program.nodes):
        if not needed[ref] or _input(node, 2) is not None:
            continue
        below = max((depth[other] for other in references(node)), default=0)
        depth[ref] = below
        product = matmul_of(node)
        if product is None:
            place[ref] = (below, 0, ref)
        else:
            depth[ref] = below + 1
            side = (below, 2, product.matrix, int(product.transpose))
            place[ref] = (*side, ref)
            batches[side][ref] = product.vector
            first_use[product.matrix] = min(below, first_use.get(product.matrix, below))
    # A matrix is drawn just before its first product, so that it takes no memory before.
    place.update({ref: (below, 1, ref) for ref, below in first_use.items()})
    order = tuple(sorted(place, key=place.__getitem__))
    return order, {next(iter(batch)): batch for batch in batches.values()}


def _drops(program: Program, order: Sequence[Ref]) -> tuple[tuple[Ref, ...], ...]:
    last = {ref: position for position, ref in enumerate(order)}
    for position, ref in enumerate(order):
        for other in references(program.nodes[ref]):
            last[other] = position
    drops: list[list[Ref]] = [[] for _ in order]
    for ref, position in last.items():
        drops[position].append(ref)
    return tuple(tuple(refs) for refs in drops)


def _bytes(program: Program, ref: Ref, sizes: Mapping[str, int], itemsize: int) -> int:
    found = program.types[ref]
    if found.kind is Kind.SCALAR:
        return 8
    if found.kind is Kind.VECTOR:
        return sizes[found.width[0]] * itemsize
    return padded(sizes[found.width[0]]) * padded(sizes[found.width[1]]) * itemsize


def _peak(
    program: Program,
    order: Sequence[Ref],
    batches: Mapping[Ref, Mapping[Ref, Ref]],
    members: Mapping[str, tuple[int, ...]],
    drops: Sequence[tuple[Ref, ...]],
    sizes: Mapping[str, int],
    itemsize: int,
) -> int:
    """Largest number of bytes in use at once, for each seed."""
    # Members of a group share one block of memory, counted here for the whole run.
    live = sum(
        len(used) * sizes[program.group[name].dim] * itemsize for name, used in members.items()
    )
    peak = live
    state = _Sizes(program, batches, sizes, itemsize)
    for position, ref in enumerate(order):
        node = program.nodes[ref]
        if _input(node, 1) is None:
            live += _bytes(program, ref, sizes, itemsize)
        peak = max(peak, live + _TEMPORARY(node, ref, state))
        live -= sum(
            _bytes(program, other, sizes, itemsize)
            for other in drops[position]
            if _input(program.nodes[other], 1) is None
        )
    return peak


@dataclass(frozen=True)
class _Sizes:
    """What the bytes depend on that a node needs on top of its arguments and its value."""

    program: Program
    batches: Mapping[Ref, Mapping[Ref, Ref]]
    dims: Mapping[str, int]
    itemsize: int

    def of(self, ref: Ref) -> list[int]:
        """The sizes of the width axes of a node."""
        return [self.dims[name] for name in self.program.types[ref].width]


def _drawn(node: Input, ref: Ref, sizes: _Sizes) -> int:
    if len(node.family.width) != 2 or node.family.law != "orthogonal":
        return 0
    rows, cols = sizes.of(ref)  # the Gaussian matrix, its factors and LAPACK's copy
    return 4 * rows * cols * 8


def _matmul(node: MatMul, ref: Ref, sizes: _Sizes) -> int:
    return len(sizes.batches.get(ref, ())) * 2 * sum(map(padded, sizes.of(node.matrix))) * 8


def _nonlin(node: Nonlin | Moment, ref: Ref, sizes: _Sizes, extra: int = 0) -> int:
    if not node.vectors:
        return 0
    (size,) = sizes.of(node.vectors[0])
    return size * ((len(lower(node.fn).steps) + 1) * sizes.itemsize + extra)


def _outer(node: OuterNonlin, ref: Ref, sizes: _Sizes) -> int:
    (rows,), (cols,) = sizes.of(ref), sizes.of(node.vector)
    height = min(rows, outer_rows(node, cols, sizes.itemsize))
    return height * _outer_bytes(node, cols, sizes.itemsize)


# Bytes that a node needs on top of its arguments and its value, for each seed.
_TEMPORARY: Table[int] = Table(
    {
        Input: _drawn,
        MatMul: _matmul,
        Nonlin: _nonlin,
        Moment: lambda node, ref, sizes: _nonlin(node, ref, sizes, _MOMENT_BYTES),
        OuterNonlin: _outer,
        LinComb: lambda node, ref, sizes: sizes.of(ref)[0] * sizes.itemsize,
    },
    lambda node, ref, sizes: 0,
)
