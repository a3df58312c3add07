"""Softmax, and attention as torch has it in one piece."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpcalc.activations.rows.softmax import ENTRY as SOFTMAX
from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.vectors import Vector
from tpcalc.torch.arrays import Array
from tpcalc.torch.dims import fix, times
from tpcalc.torch.graph import Count, Op
from tpcalc.torch.ops.contractions import matmul
from tpcalc.torch.ops.elementwise import EXCLUDED, catalogued, hiding
from tpcalc.torch.ops.indexing import repeated
from tpcalc.torch.rules import number, place, rule
from tpcalc.torch.space import Space


@rule("aten.softmax", "aten._softmax", "aten.special_softmax", "aten._safe_softmax")
def softmax(space: Space, op: Op, x: Array, dim: Any, *rest: Any, **named: Any) -> Array:
    """The softmax of each row of cells, without those that a mask leaves out."""
    at = place(space, dim, x.rank)
    own = x.expanded()[at]
    if any(not leaf.is_finite for leaf in own):
        raise space.refuse(
            "softmax over a dimension that grows with the width: it needs exponential moments of "
            "its input.",
            "Did you mean another axis, that of positions or of classes?",
        )
    fix(own)
    if space.tracer is None or not own:
        return Array(x.dims) if own else space.apply(lambda value: value * 0 + 1, x)
    if len(own) > 1:
        raise space.refuse("softmax over a dimension that a view splits.",
                           "Take it over one that is whole.")  # fmt: skip
    if not isinstance(x.value, Scalar | Vector):
        return Array(x.dims, 1 / space.length(own))
    name = next(name for k, leaf, name in space._named(x) if k == at)
    if x.hidden is None:
        return Array(x.dims, SOFTMAX(x.value, along=name))
    return Array(x.dims, _masked(space, x, at, name))


def _masked(space: Space, x: Array, at: int, along: str) -> Any:
    """The softmax of rows of which some cells are left out: row by row."""
    hidden = np.asarray(x.hidden, dtype=bool)
    hidden = hidden.reshape((1,) * (x.rank - hidden.ndim) + hidden.shape)
    cells = times(x.expanded()[at], 1)[0]
    if hidden.shape[at] == 1:
        return SOFTMAX(x.value, along=along)
    rows = [k for k in range(x.rank) if k != at and hidden.shape[k] > 1
            and not np.all(hidden == np.take(hidden, [0], axis=k))]  # fmt: skip
    hidden = hidden[tuple(slice(None) if k in (*rows, at) else slice(0, 1)
                          for k in range(x.rank))]  # fmt: skip
    names = {k: name for k, _, name in space._named(x)}
    return _rows(space, x.value, hidden, rows, at, names, cells)


def _rows(
    space: Space, value: Any, hidden: Any, rows: list[int], at: int, names: Any, cells: int
) -> Any:
    t, along = space.t, names[at]
    if rows:
        axis, rest = names[rows[0]], rows[1:]
        made = [
            _rows(space, value.at(**{axis: k}), np.take(hidden, [k], axis=rows[0]), rest, at,
                  names, cells)
            for k in range(hidden.shape[rows[0]])
        ]  # fmt: skip
        return t.stack(made, axis)
    seen = [cell for cell in range(cells) if not hidden.reshape(-1)[cell]]
    if not seen:
        raise space.refuse("a row of a softmax has no cell that the mask leaves.")
    if len(seen) == cells:
        return SOFTMAX(value, along=along)
    marks = t.constant([[int(cell == own) for cell in range(cells)] for own in seen],
                       ("seen", along), "mask")  # fmt: skip
    share = SOFTMAX(t.chosen(value, marks, along), along="seen")
    return t.chosen(share, marks, "seen")


@rule("aten.log_softmax", "aten._log_softmax")
def log_softmax(space: Space, op: Op, x: Array, dim: Any, *rest: Any, **named: Any) -> Array:
    """The logarithm of a softmax."""
    return space.apply(catalogued("log"), softmax(space, op, x, dim))


@rule("aten.scaled_dot_product_attention")
def attention(
    space: Space, op: Op, q: Array, k: Array, v: Array, mask: Any = None, share: Any = None,
    causal: Any = False, scale: Any = None, enable_gqa: Any = False,
) -> Array:  # fmt: skip
    """Averages of values over positions, weighted by the softmax of scores."""
    widths = len(space.widths)
    heads, size = (times(q.expanded()[at], widths) for at in (-min(3, q.rank), -1))
    if len(set(heads)) > 1:
        space.notes[f"the number of heads grows with the width, and their size is {size[0]}"] = None
    if scale is None:
        scale = Count(tuple(one**-0.5 for one in size))
    if enable_gqa:
        k, v = (_repeated(space, q, one) for one in (k, v))
    swapped = space.permuted(k, [*range(k.rank - 2), k.rank - 1, k.rank - 2])
    scores = matmul(space, op, q, swapped)
    factor = number(space, Count(scale.values), op)
    scores = space.apply(lambda value: value * factor, scores)
    rows, cells = (times(scores.expanded()[at], widths)[0] for at in (-2, -1))
    if causal:
        later = np.triu(np.ones((rows, cells)), 1) > 0
        scores = Array(scores.dims, scores.value, hidden=later)
    if mask is not None:
        held = mask.given
        hidden: Any = None
        if held is not None:
            hidden = np.logical_not(held) if held.dtype == bool else held <= EXCLUDED
        if hidden is not None and (held.dtype == bool or hidden.any()):
            scores = hiding(space, scores, hidden, mask.dims)
        else:
            scores = space.apply(lambda a, b: a + b, scores, mask)
    return matmul(space, op, softmax(space, op, scores, -1), v)


def _repeated(space: Space, q: Array, x: Array) -> Array:
    """Keys or values for each of the queries that share them."""
    heads = [times(one.expanded()[-3], len(space.widths)) for one in (q, x)]
    count = Count(tuple(a // b for a, b in zip(*heads, strict=True)))
    made = Op("aten.repeat_interleave")
    return repeated(space, made, x, count, Count((-3,) * len(space.widths)))
