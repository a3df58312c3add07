"""Which cells of a block of a limit graph are exactly 0: zeros of data, and their multiples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.functions import Const, Expr, Par, Var, const
from tpcalc.functions.expr import substitute
from tpcalc.limit.axes import along
from tpcalc.limit.graph import Expect, LRef, Product, Total
from tpcalc.program.base import Table
from tpcalc.program.nodes import Data, LinComb, Nonlin, Rename, Stack
from tpcalc.program.types import Axes

Zeros = NDArray[np.bool_] | None  # with the axes of the node; None: of none it is known
_Of = Callable[[LRef], Zeros]
LARGEST = 2**22  # cells, summed ones included, that are looked at


def _along(zeros: Zeros, own: Axes, axes: Axes) -> Any:
    """Zeros of a value as those of one with more axes."""
    if zeros is None:
        return np.zeros((1,) * len(axes), dtype=bool)
    return along(zeros, own, axes)


def zeros_of_term(
    scalar: LRef | None, vector: LRef, over: Sequence[str], axes: Sequence[Axes], of: _Of
) -> tuple[Axes, Zeros]:
    """The axes of a product that is summed, and where one factor of every part is 0."""
    refs = [ref for ref in (scalar, vector) if ref is not None]
    every = tuple(dict.fromkeys(pair for ref in refs for pair in axes[ref]))
    kept = tuple(pair for pair in every if pair[0] not in over)
    found = [of(ref) for ref in refs]
    if all(one is None for one in found) or np.prod([size for _, size in every]) > LARGEST:
        return kept, None
    total = np.zeros([size for _, size in every], dtype=bool)
    for ref, one in zip(refs, found, strict=True):
        total = total | _along(one, axes[ref], every)
    summed = tuple(place for place, (name, _) in enumerate(every) if name in over)
    return kept, _some(np.asarray(np.all(total, axis=summed)))


def _some(zeros: NDArray[np.bool_]) -> Zeros:
    return zeros if zeros.any() else None


def _of_sum(node: Total | LinComb, ref: LRef, axes: Sequence[Axes], of: _Of) -> Zeros:
    total = np.ones([size for _, size in axes[ref]], dtype=bool)
    for _, scalar, vector, names in node.terms:
        own, zeros = zeros_of_term(scalar, vector, names, axes, of)
        if zeros is None:
            return None
        total = total & _along(zeros, own, axes[ref])
    return _some(total)


def _of_function(node: Nonlin | Expect, ref: LRef, axes: Sequence[Axes], of: _Of) -> Zeros:
    slots: list[Expr] = [Var(k) for k in range(len(node.vectors))]
    slots += [Par(k) for k in range(len(node.scalars))]
    refs = (*node.vectors, *node.scalars)
    known = [(slot, one, zeros) for slot, one in zip(slots, refs, strict=True)
             if (zeros := of(one)) is not None]  # fmt: skip
    shape = [size for _, size in axes[ref]]
    if not known or len(known) > 62:
        return None
    patterns = np.zeros(shape, dtype=np.int64)
    for place, (_, one, zeros) in enumerate(known):
        patterns = patterns | (_along(zeros, axes[one], axes[ref]).astype(np.int64) << place)
    found = np.zeros(shape, dtype=bool)
    for pattern in np.unique(patterns):
        at_zero = {
            slot: const(0) for place, (slot, _, _) in enumerate(known) if int(pattern) >> place & 1
        }
        expr = substitute(node.fn.expr, at_zero) if at_zero else None
        if isinstance(expr, Const) and expr.value == 0:
            found |= patterns == pattern
    return _some(found)


def _of_stack(node: Stack, ref: LRef, axes: Sequence[Axes], of: _Of) -> Zeros:
    place = [name for name, _ in axes[ref]].index(node.axis)
    below = tuple(pair for pair in axes[ref] if pair[0] != node.axis)
    if all(of(one) is None for one in node.of):
        return None
    shape = [size for _, size in below]
    cells = [np.broadcast_to(_along(of(one), axes[one], below), shape) for one in node.of]
    return _some(np.stack(cells, place))


def _of_data(node: Data, ref: LRef, axes: Sequence[Axes], of: _Of) -> Zeros:
    if all(node.values):
        return None
    values = np.array([value == 0 for value in node.values])
    return values.reshape([size for _, size in node.axes])


def _of_product(node: Product, ref: LRef, axes: Sequence[Axes], of: _Of) -> Zeros:
    zeros = of(node.vector)
    if zeros is None:
        return None
    shape = [size for _, size in axes[ref]]
    return np.broadcast_to(_along(zeros, axes[node.vector], axes[ref]), shape)


ZEROS: Table[Zeros] = Table(
    {
        Data: _of_data,
        Rename: lambda node, ref, axes, of: of(node.of),
        Stack: _of_stack,
        Total: _of_sum,
        LinComb: _of_sum,
        Nonlin: _of_function,
        Expect: _of_function,
        Product: _of_product,
    },
    lambda node, ref, axes, of: None,
)
"""Where a node with axes is 0, given the axes of all nodes and where those before it are."""
