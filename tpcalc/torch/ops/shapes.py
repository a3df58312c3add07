"""Operations that leave all cells as they are: views, orders of dimensions, casts."""

from __future__ import annotations

from typing import Any

from tpcalc.torch.arrays import Array
from tpcalc.torch.graph import Op
from tpcalc.torch.rules import number, place, rule
from tpcalc.torch.space import Space

DROPOUT = "dropout is left out: exponents are those without it"


@rule(
    "aten.view", "aten.reshape", "aten._unsafe_view", "aten.flatten", "aten.unflatten",
    "aten.squeeze", "aten.unsqueeze", "aten.view_as", "aten.reshape_as", "aten.squeeze_copy",
)  # fmt: skip
def view(space: Space, op: Op, x: Array, *rest: Any, **named: Any) -> Array:
    """The same cells in dimensions of other sizes."""
    return space.viewed(x, op.shape)


@rule(
    "aten.contiguous", "aten.clone", "aten.alias", "aten.to", "aten._to_copy", "aten.type_as",
    "aten.lift_fresh_copy", "aten.float", "aten.double", "aten.positive", "aten.view_copy",
    "aten.nan_to_num",
)  # fmt: skip
def same(space: Space, op: Op, x: Array, *rest: Any, **named: Any) -> Array:
    """The tensor itself."""
    return x


@rule("aten.dropout", "aten.feature_dropout", "aten.alpha_dropout")
def dropout(space: Space, op: Op, x: Array, share: Any = None, train: bool = True) -> Array:
    """The tensor itself, with a note where something would be dropped."""
    if train and share is not None and share.values[0] > 0:
        space.notes[DROPOUT] = None
    return x


@rule("aten.native_dropout")
def native_dropout(space: Space, op: Op, x: Array, share: Any, train: bool = True) -> Any:
    """The same with a mask, which nothing reads."""
    return dropout(space, op, x, share, train), x


@rule("aten.transpose", "aten.swapaxes", "aten.swapdims")
def transpose(space: Space, op: Op, x: Array, one: Any, two: Any) -> Array:
    """Two dimensions exchanged."""
    order = [*range(x.rank)]
    a, b = place(space, one, x.rank), place(space, two, x.rank)
    order[a], order[b] = order[b], order[a]
    return space.permuted(x, order)


@rule("aten.t", "aten.numpy_T", "aten.mT", "aten.adjoint")
def turned(space: Space, op: Op, x: Array) -> Array:
    """The last two dimensions exchanged."""
    return space.permuted(x, [*range(x.rank - 2), *range(x.rank - 1, max(x.rank - 3, -1), -1)])


@rule("aten.permute")
def permute(space: Space, op: Op, x: Array, order: Any) -> Array:
    """The dimensions in another order."""
    return space.permuted(x, [place(space, one, x.rank) for one in order])


@rule("aten.movedim")
def moved(space: Space, op: Op, x: Array, source: Any, target: Any) -> Array:
    """Some dimensions at other places."""
    old, new = (
        [place(space, one, x.rank) for one in (some if isinstance(some, tuple) else (some,))]
        for some in (source, target)
    )
    left = iter(k for k in range(x.rank) if k not in old)
    order = [old[new.index(k)] if k in new else next(left) for k in range(x.rank)]
    return space.permuted(x, order)


@rule("aten.expand", "aten.expand_as", "aten.broadcast_to")
def expand(space: Space, op: Op, x: Array, *rest: Any, **named: Any) -> Array:
    """The tensor repeated along dimensions that it lacks."""
    old = ((),) * (len(op.shape) - x.rank) + x.expanded()
    new = (
        dim or space.fresh([sizes], len(set(sizes)) == 1)[0]
        for dim, sizes in zip(old, op.shape, strict=True)
    )
    return Array(tuple(new), x.value, x.label if len(op.shape) == x.rank else "")


FILLED = {"zeros": 0, "ones": 1}


@rule("aten.zeros_like", "aten.ones_like", "aten.full_like", "aten.new_zeros", "aten.new_ones",
      "aten.new_full")  # fmt: skip
def filled(space: Space, op: Op, x: Array, *rest: Any, **named: Any) -> Array:
    """A tensor of one number."""
    word = op.name.partition(".")[2].replace("new_", "").replace("_like", "")
    value: Any = FILLED.get(word)
    if value is None:
        value = number(space, rest[-1], op)
    dims = x.expanded() if op.name.endswith("_like") else space.fresh(op.shape)
    return Array(dims, None if space.tracer is None else value)
