"""The order of a dense run: products in batches, values dropped early, bytes known beforehand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tpcalc.functions import Fn, Var
from tpcalc.functions.tape import lower
from tpcalc.program.base import Table, cone, input_of, matmul_of, references, view
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
    Rename,
    RowNonlin,
    Stack,
)
from tpcalc.program.program import Program
from tpcalc.program.types import Axes

# Stored sides of matrices are multiples of this: then the rows of every matrix of a batch lie alike
# in memory, and the product of one seed has the same bits whichever seeds stand before it.
PAD = 16
# Bytes of temporaries that an OuterNonlin may take, for each seed.
_OUTER_BYTES = 2**24
# Bytes for each entry of the running mean of a moment (two float64 copies and their product).
_MOMENT_BYTES = 24


@dataclass(frozen=True)
class Place:
    """Where the cells of a stack are: stacks that continue each other share one block of memory."""

    before: Ref  # the stack that it continues; -1 where it begins a block
    held: int  # how many items are there already
    capacity: int  # how many items the block is for
    continued: bool  # whether another stack continues it


@dataclass(frozen=True)
class DensePlan:
    """How a program is run densely."""

    order: tuple[Ref, ...]  # the nodes that outputs need, in the order of running
    # For the first product of a batch, all its products, each with the vector it takes
    batches: Mapping[Ref, Mapping[Ref, Ref]]
    # For each Gaussian group the members that are needed one by one
    members: Mapping[str, tuple[int, ...]]
    # For each node of ``order``, by position, the values that nothing needs after it
    drops: tuple[tuple[Ref, ...], ...]
    stacks: Mapping[Ref, Place]  # of each stack its place in memory
    views: frozenset[Ref]  # the nodes that have no memory of their own
    sizes: Mapping[str, int]  # sizes of the dimension classes
    seed_bytes: int  # largest number of bytes in use at once, for each seed
    # The matrix that takes most bytes, with those bytes; None without matrices
    largest: tuple[Ref, int] | None
    products: int  # number of products of a random matrix with a vector


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
    """
    needed = cone(program.nodes, (ref for _, ref in program.outputs))
    order, batches = _order(program, needed)
    members: dict[str, set[int]] = defaultdict(set)
    for ref in order:
        start = _input(program.nodes[ref], 1)
        if start is not None and not _is_block(start):
            members[start.family.name].add(start.index)
    used = {name: tuple(sorted(found)) for name, found in members.items()}
    stacks, shared = _shared(program, order)
    drops = _drops(program, order, stacks, shared)
    matrices = [
        (_bytes(program, ref, sizes, itemsize), ref)
        for ref in order
        if _input(program.nodes[ref], 2) is not None
    ]
    biggest = max(matrices, default=None)
    state = _Sizes(program, batches, stacks, shared, sizes, itemsize)
    return DensePlan(
        order,
        batches,
        used,
        drops,
        stacks,
        frozenset(shared),
        sizes,
        _peak(state, order, used, drops),
        (biggest[1], biggest[0]) if biggest else None,
        sum(matmul_of(program.nodes[ref]) is not None for ref in order),
    )


def _input(node: Node, width: int) -> Input | None:
    """A node that is drawn, with so many width axes: 1 for a start vector, 2 for a matrix."""
    found = input_of(node)
    return found if found is not None and len(found.family.width) == width else None


def _is_block(node: Input) -> bool:
    """Whether all cells of a family are drawn as one."""
    return node.cell is None and bool(node.family.axes)


def _order(
    program: Program, needed: Sequence[bool]
) -> tuple[tuple[Ref, ...], dict[Ref, dict[Ref, Ref]]]:
    depth = [0] * len(program.nodes)
    place: dict[Ref, tuple[int, ...]] = {}
    first_use: dict[Ref, int] = {}
    batches: dict[tuple[int, ...], dict[Ref, Ref]] = defaultdict(dict)
    for ref, node in enumerate(program.nodes):
        if not needed[ref] or program.types[ref].kind is Kind.MATRIX:
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
            for matrix in _named(program, product.matrix):
                first_use[matrix] = min(below, first_use.get(matrix, below))
    # A matrix is drawn just before its first product, so that it takes no memory before.
    place.update({ref: (below, 1, ref) for ref, below in first_use.items()})
    order = tuple(sorted(place, key=place.__getitem__))
    return order, {next(iter(batch)): batch for batch in batches.values()}


def _named(program: Program, matrix: Ref) -> Iterator[Ref]:
    """A matrix, and what it is another name of."""
    yield matrix
    for other in references(program.nodes[matrix]):
        yield from _named(program, other)


def _shared(program: Program, order: Sequence[Ref]) -> tuple[dict[Ref, Place], dict[Ref, Ref]]:
    """The places of stacks, and for each view the node whose memory it shows."""
    shared: dict[Ref, Ref] = {}
    chains: list[list[tuple[Ref, int]]] = []
    ends: dict[tuple[str, tuple[Ref, ...]], list[tuple[Ref, int]]] = {}
    for ref in order:
        of = _renamed(program.nodes[ref])
        node = _stacked(program.nodes[ref])
        if of is not None:
            shared[ref] = shared.get(of, of)
        elif node is not None:
            chain = ends.get((node.axis, node.of[:-1]), [])
            if chain and program.types[chain[-1][0]].axes[1:] == program.types[ref].axes[1:]:
                del ends[node.axis, node.of[:-1]]
                shared[ref] = chain[0][0]
            else:
                chain = []
                chains.append(chain)
            chain.append((ref, len(node.of)))
            ends[node.axis, node.of] = chain
    places: dict[Ref, Place] = {}
    for chain in chains:
        before, held = -1, 0
        for ref, count in chain:
            places[ref] = Place(before, held, chain[-1][1], ref != chain[-1][0])
            before, held = ref, count
    return places, shared


def _drops(
    program: Program,
    order: Sequence[Ref],
    stacks: Mapping[Ref, Place],
    shared: Mapping[Ref, Ref],
) -> tuple[tuple[Ref, ...], ...]:
    last: dict[Ref, int] = {}
    for position, ref in enumerate(order):
        read = references(program.nodes[ref])
        if ref in stacks:  # the items before are in the block already
            read = read[stacks[ref].held :]
        for other in (ref, *read):
            last[other] = last[shared.get(other, other)] = position
    drops: list[list[Ref]] = [[] for _ in order]
    for ref, position in last.items():
        drops[position].append(ref)
    return tuple(tuple(refs) for refs in drops)


def _bytes(program: Program, ref: Ref, sizes: Mapping[str, int], itemsize: int) -> int:
    found = program.types[ref]
    if found.kind is Kind.SCALAR:
        return 8 * _cells(found.axes)
    if found.kind is Kind.VECTOR:
        return sizes[found.width[0]] * itemsize * _cells(found.axes)
    sides = padded(sizes[found.width[0]]) * padded(sizes[found.width[1]])
    return sides * itemsize * _cells(found.axes)


def _cells(axes: Axes) -> int:
    return prod(size for _, size in axes)


def _peak(
    state: _Sizes,
    order: Sequence[Ref],
    members: Mapping[str, tuple[int, ...]],
    drops: Sequence[tuple[Ref, ...]],
) -> int:
    """Largest number of bytes in use at once, for each seed."""
    program = state.program
    # Members of a group share one block of memory, counted here for the whole run.
    live = sum(
        len(used) * state.dims[program.group[name].dim] * state.itemsize
        for name, used in members.items()
    )
    peak = live
    outputs = {ref for _, ref in program.outputs}
    for position, ref in enumerate(order):
        live += state.held(ref)
        more = _TEMPORARY(program.nodes[ref], ref, state)
        if ref in outputs and program.types[ref].kind is Kind.VECTOR:
            more = max(more, 2 * 8 * state.coordinates(ref))
        peak = max(peak, live + more)
        live -= sum(state.held(other) for other in drops[position])
    return peak


@dataclass(frozen=True)
class _Sizes:
    """What the bytes depend on that a node needs on top of its arguments and its value."""

    program: Program
    batches: Mapping[Ref, Mapping[Ref, Ref]]
    stacks: Mapping[Ref, Place]
    shared: Mapping[Ref, Ref]
    dims: Mapping[str, int]
    itemsize: int

    def of(self, ref: Ref) -> list[int]:
        """The sizes of the width axes of a node."""
        return [self.dims[name] for name in self.program.types[ref].width]

    def cells(self, ref: Ref) -> int:
        """The number of cells of a node."""
        return _cells(self.program.types[ref].axes)

    def coordinates(self, ref: Ref) -> int:
        """The numbers that a vector or scalar holds."""
        return prod(self.of(ref)) * self.cells(ref)

    def held(self, ref: Ref) -> int:
        """The bytes that a node holds itself."""
        start = _input(self.program.nodes[ref], 1)
        if ref in self.shared or (start is not None and not _is_block(start)):
            return 0
        whole = _bytes(self.program, ref, self.dims, self.itemsize)
        if ref in self.stacks:
            place = self.stacks[ref]
            whole = whole * place.capacity // self.program.types[ref].axes[0][1]
        return whole


def _drawn(node: Input, ref: Ref, sizes: _Sizes) -> int:
    width = len(node.family.width)
    if width == 1 and _is_block(node):
        return 2 * 8 * sizes.coordinates(ref)
    if width != 2 or node.family.law != "orthogonal":
        return 0
    rows, cols = sizes.of(ref)  # the Gaussian matrix, its factors and LAPACK's copy
    return 4 * rows * cols * 8


def _matmul(node: MatMul, ref: Ref, sizes: _Sizes) -> int:
    columns = sum(map(sizes.cells, sizes.batches.get(ref, ())))
    return columns * 2 * sum(map(padded, sizes.of(node.matrix))) * 8


def _nonlin(node: Nonlin | Moment, ref: Ref, sizes: _Sizes, extra: int = 0) -> int:
    if not node.vectors:
        return 8 * sizes.cells(ref) * (len(lower(node.fn).steps) + 1)
    (size,) = sizes.of(node.vectors[0])
    each = (len(lower(node.fn).steps) + 1) * sizes.itemsize + extra
    return size * sizes.cells(ref) * each


def _moment(node: Moment, ref: Ref, sizes: _Sizes) -> int:
    if node.fn.is_inner:  # copies in float64, and in the order of a matrix product
        return sum(_MOMENT_BYTES * sizes.coordinates(one) for one in node.vectors)
    return _nonlin(node, ref, sizes, _MOMENT_BYTES)


def _rows(node: RowNonlin, ref: Ref, sizes: _Sizes) -> int:
    row = dict(sizes.program.types[ref].axes)[node.along]
    steps = 2 + max(len(lower(Fn(e, row)).steps) for e in node.row.cells([*map(Var, range(row))]))
    return _bytes(sizes.program, ref, sizes.dims, 8) * (1 + steps // row)


def _lincomb(node: LinComb, ref: Ref, sizes: _Sizes) -> int:
    """A term before it is added, and of one that is summed a copy in the order of the product."""
    summed = [one for one, over in zip(node.vectors, node.over, strict=False) if over]
    return sizes.itemsize * max(map(sizes.coordinates, (ref, *summed)))


def _outer(node: OuterNonlin, ref: Ref, sizes: _Sizes) -> int:
    (rows,), (cols,) = sizes.of(ref), sizes.of(node.vector)
    read = {p for o in (*node.rows, *node.cols, *node.scalars) for p in sizes.program.types[o].axes}
    cells = _cells(tuple(pair for pair in sizes.program.types[ref].axes if pair in read))
    height = min(rows, outer_rows(node, cols * cells, sizes.itemsize))
    return height * _outer_bytes(node, cols * cells, sizes.itemsize)


# Bytes that a node needs on top of its arguments and its value, for each seed.
_TEMPORARY: Table[int] = Table(
    {
        Input: _drawn,
        MatMul: _matmul,
        Nonlin: _nonlin,
        RowNonlin: _rows,
        Moment: _moment,
        OuterNonlin: _outer,
        LinComb: _lincomb,
    },
    lambda node, ref, sizes: 0,
)

_renamed: Table[Ref | None] = Table({Rename: lambda node: node.of}, lambda node: None)
_stacked: Table[Stack | None] = view(Stack)
