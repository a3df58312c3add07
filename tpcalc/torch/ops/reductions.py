"""Averages, sums, norms and what divides by them; views, and what changes no cell."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

from tpcalc.dsl.vectors import Vector
from tpcalc.networks.layers.norms import layer_norm, rms_norm
from tpcalc.torch.arrays import Array
from tpcalc.torch.dims import Dim, times
from tpcalc.torch.graph import Op
from tpcalc.torch.rules import number, place, places, rule
from tpcalc.torch.space import Space


def gone(space: Space, x: Array, at: tuple[int, ...], keep: bool) -> Array:
    """A tensor with reduced dimensions of size 1, or without them."""
    if keep:
        return x
    return space.shaped(x, [dim for k, dim in enumerate(x.dims) if k not in at])


@rule("aten.mean")
def mean(space: Space, op: Op, x: Array, dim: Any = None, keep: Any = False, **named: Any) -> Array:
    """The average."""
    at = places(space, dim, x.rank)
    return gone(space, space.summed(x, at, average=True), at, keep)


@rule("aten.sum")
def total(
    space: Space, op: Op, x: Array, dim: Any = None, keep: Any = False, **named: Any
) -> Array:
    """The sum."""
    at = places(space, dim, x.rank)
    return gone(space, space.summed(x, at), at, keep)


def squares(space: Space, x: Array, at: tuple[int, ...], average: bool = True) -> Array:
    """The average, or the sum, of squares."""
    letters = "abcdefghij"[: x.rank]
    out = "".join(letter for k, letter in enumerate(letters) if k not in at)
    found = space.contract(x, x, (letters, letters), out)
    left = iter(found.dims)
    found = space.shaped(found, [() if k in at else next(left) for k in range(x.rank)])
    if not average or space.tracer is None:
        return found
    size = space.length([leaf for k in at for leaf in x.expanded()[k]])
    return space.apply(lambda value: value / size, found)


def centred(space: Space, x: Array, at: tuple[int, ...]) -> Array:
    """A tensor less its average."""
    return space.apply(lambda a, b: a - b, x, space.summed(x, at, average=True))


@rule("aten.var", "aten.std")
def variance(space: Space, op: Op, x: Array, dim: Any = None, *rest: Any, **named: Any) -> Array:
    """The variance or the standard deviation; that of a sample only in the limit of many cells."""
    keep = next((one for one in rest if one is True), bool(named.get("keepdim")))
    at = places(space, dim if not isinstance(dim, bool) else None, x.rank)
    found = squares(space, centred(space, x, at), at)
    correction = named.get("correction")
    least = [times(x.expanded()[k], len(space.widths)) for k in at]
    if all(len(set(size)) == 1 for size in least):
        count = prod(size[0] for size in least)
        lost = 1 if correction is None else number(space, correction, op)
        found = space.apply(lambda value: value * Fraction(count, count - int(lost)), found)
    if op.name == "aten.std":
        found = space.apply(lambda value: value ** Fraction(1, 2), found)
    return gone(space, found, at, keep)


@rule("aten.linalg_vector_norm", "aten.norm", "aten.frobenius_norm")
def norm(
    space: Space, op: Op, x: Array, order: Any = None, dim: Any = None, keep: Any = False,
    **named: Any,
) -> Array:  # fmt: skip
    """The Euclidean norm."""
    if order is not None and number(space, order, op) != 2:
        raise space.refuse(f"a norm of order {number(space, order, op)}.",
                           "The Euclidean norm is followed.")  # fmt: skip
    at = places(space, dim, x.rank)
    found = squares(space, x, at, average=False)
    return gone(space, space.apply(lambda value: value ** Fraction(1, 2), found), at, bool(keep))


def divided(space: Space, op: Op, x: Array, at: tuple[int, ...], eps: Any, centre: bool) -> Array:
    """A tensor over the root of its mean square, centred or not."""
    one = space.grows([x.expanded()[k] for k in at])
    # Beside an average over the width it counts as absent; over a few cells it keeps from 0.
    small = 0 if eps is None or (one and not space.eps) else number(space, eps, op)
    alone = len(one) == 1 and sum(len(x.expanded()[k]) for k in at) == 1
    if alone and space.tracer is not None and isinstance(x.value, Vector):
        normed = layer_norm if centre else rms_norm
        return Array(x.dims, normed(x.value, small))
    if centre:
        x = centred(space, x, at)
    wide = [k for k, dim in enumerate(x.expanded()) if space.grows([dim])]
    if small and wide and not space.eps:  # relative to what all channels have, whatever its power
        level = squares(space, x, tuple(sorted({*at, *wide})))
        x = space.apply(lambda a, s: s ** Fraction(-1, 2) * a, x, level)
    square = squares(space, x, at)
    return space.apply(lambda a, s: space.added(s, small) ** Fraction(-1, 2) * a, x, square)


def scaled(space: Space, x: Array, gain: Array | None, bias: Array | None) -> Array:
    """A tensor times a gain plus a bias."""
    if gain is not None:
        x = space.apply(lambda a, b: b * a, x, gain)
    return space.shifted(x, bias)


@rule("aten.layer_norm")
def layered(
    space: Space, op: Op, x: Array, shape: Any, gain: Any = None, bias: Any = None, eps: Any = None,
    *rest: Any,
) -> Array:  # fmt: skip
    """Layer norm over the last dimensions."""
    at = tuple(range(x.rank - len(shape), x.rank))
    return scaled(space, divided(space, op, x, at, eps, True), gain, bias)


@rule("aten.rms_norm")
def rooted(space: Space, op: Op, x: Array, shape: Any, gain: Any = None, eps: Any = None) -> Array:
    """RMS norm over the last dimensions."""
    at = tuple(range(x.rank - len(shape), x.rank))
    return scaled(space, divided(space, op, x, at, eps, False), gain, None)


@rule("aten.group_norm")
def grouped(
    space: Space, op: Op, x: Array, groups: Any, gain: Any = None, bias: Any = None,
    eps: Any = None, *rest: Any,
) -> Array:  # fmt: skip
    """Layer norm of each group of channels, over all places."""
    sizes = [times(dim, len(space.widths)) for dim in x.expanded()]
    count = tuple(map(int, groups.values))
    inner = tuple(a // b for a, b in zip(sizes[1], count, strict=True))
    split = space.viewed(x, [sizes[0], count, inner, *sizes[2:]])
    at = tuple(range(2, split.rank))
    normed = space.viewed(divided(space, op, split, at, eps, True), sizes)
    return scaled(space, normed, *(_channels(space, one, x.rank) for one in (gain, bias)))


def _channels(space: Space, x: Array | None, rank: int) -> Array | None:
    """A vector over channels, which come second."""
    if x is None:
        return None
    rest: tuple[Dim, ...] = ((),) * (rank - 2)
    return space.shaped(x, (*x.dims, *rest))


@rule("aten.batch_norm", "aten.instance_norm", "aten._native_batch_norm_legit_functional")
def batched(
    space: Space, op: Op, x: Array, gain: Any, bias: Any, average: Any, spread: Any, train: Any,
    momentum: Any, eps: Any, *rest: Any,
) -> Any:  # fmt: skip
    """Each channel less its mean over samples and places, over its standard deviation."""
    several = op.name.endswith("functional")
    first = 2 if op.name == "aten.instance_norm" else 0
    at = tuple(k for k in range(first, x.rank) if k != 1)
    own = _channels(space, gain, x.rank), _channels(space, bias, x.rank)
    if train:
        found = scaled(space, divided(space, op, x, at, eps, True), *own)
        return (found, average, spread) if several else found
    small = number(space, eps, op) if space.eps else 0
    moved = space.apply(lambda a, b: a - b, x, _given(space, average, x.rank))
    spread = _given(space, spread, x.rank)
    found = space.apply(lambda a, b: a * (b + small) ** Fraction(-1, 2), moved, spread)
    space.notes["batch norm reads its running statistics, which count as constants"] = None
    return (scaled(space, found, *own), average, spread) if several else scaled(space, found, *own)


def _given(space: Space, x: Array, rank: int) -> Array:
    found = _channels(space, x, rank)
    assert found is not None
    return found


@rule("aten._weight_norm")
def directed(space: Space, op: Op, v: Array, gain: Array, dim: Any = 0) -> Array:
    """Weights of given lengths: a direction, and a gain for each of its rows."""
    raise space.refuse(
        "weight norm divides the rows of a matrix by their lengths.",
        "Follow the module without it: lengths of rows are constant in wide layers at the start.",
    )


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
