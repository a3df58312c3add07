"""Cells of tensors: chosen, split, put side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from string import ascii_letters
from typing import Any

import numpy as np

from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.vectors import Vector
from tpcalc.engine.device.devices import load_torch
from tpcalc.torch.arrays import Array, Matrix, Parts
from tpcalc.torch.dims import Dim, Leaf, cut, fix, leaves, times, unite, whole_ratio
from tpcalc.torch.graph import Count, Op, Sizes
from tpcalc.torch.ops.contractions import chosen, each, given
from tpcalc.torch.ops.elementwise import EXCLUDED, greater, smaller
from tpcalc.torch.rules import as_array, place, places, rule
from tpcalc.torch.space import Space


def piece(space: Space, x: Array, at: int, start: Sizes, size: Sizes, drop: bool = False) -> Array:
    """The cells of a dimension from one on; a single one without the dimension."""
    dim = x.expanded()[at]
    every = times(dim, len(space.widths))
    if size == every and not drop:
        return x
    if all(leaf.is_finite for leaf in dim):
        cells = np.arange(start[0], start[0] + size[0])
        return chosen(space, x, at, cells[0] if drop else cells, ())
    outer = dim[0]
    inner = times(dim[1:], len(space.widths))
    if not outer.is_finite and len(dim) == 1:
        if outer.pieces:
            return _cut(space, x, at, outer, start, size)
        if not (whole_ratio(every, size) and whole_ratio(start, size)):
            return _cut(space, x, at, outer, start, size)
        outer.split(tuple(a // b for a, b in zip(every, size, strict=True)))
        outer, inner = outer.parts[0], size
        dim = leaves((dim[0],))
    if not (outer.is_finite and whole_ratio(start, inner) and whole_ratio(size, inner)):
        raise space.refuse(
            f"a dimension of {every} at widths {space.widths} is cut at {start}, in the middle of "
            "what a view makes of it.",
            "Cut it where its parts begin.",
        )
    outer.root.apart = True
    first, count = start[0] // inner[0], size[0] // inner[0]
    found = [space.part_of(_with(x, at, dim), outer, first + k) for k in range(count)]
    if count == 1:
        return found[0]
    return joined(space, found, at)


def _with(x: Array, at: int, dim: Any) -> Array:
    return replace(x, dims=(*x.expanded()[:at], dim, *x.expanded()[at + 1 :]))


def _cut(space: Space, x: Array, at: int, leaf: Leaf, start: Sizes, size: Sizes) -> Array:
    total = leaf.sizes
    if not leaf.pieces:
        end = tuple(a + b for a, b in zip(start, size, strict=True))
        rest = tuple(a - b for a, b in zip(total, end, strict=True))
        cut(leaf, [own for own in (start, size, rest) if any(own)], space.place)
    begin = (0,) * len(total)
    for k, own in enumerate(leaf.pieces):
        after = tuple(a + b for a, b in zip(begin, own.sizes, strict=True))
        inside = all(a <= s and s + d <= b
                     for a, s, d, b in zip(begin, start, size, after, strict=True))  # fmt: skip
        if inside:
            found = space.part_of(x, leaf, k)
            moved = tuple(a - b for a, b in zip(start, begin, strict=True))
            return piece(space, found, at, moved, size)
        begin = after
    raise space.refuse(
        f"a dimension of {total} at widths {space.widths} is cut in two ways that do not agree.",
        "Split it once, into all of its parts.",
    )


def pieces_of(space: Space, x: Array, at: int, sizes: Sequence[Sizes]) -> tuple[Array, ...]:
    """All parts of a dimension, one after the other."""
    dim = x.expanded()[at]
    leaf = dim[0] if len(dim) == 1 else None
    unequal = len(set(sizes)) > 1
    if leaf is not None and not leaf.is_finite and unequal and not leaf.pieces:
        cut(leaf, list(sizes), space.place)
    starts = accumulate(sizes, lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)),
                        initial=(0,) * len(space.widths))  # fmt: skip
    return tuple(piece(space, x, at, start, size)
                 for start, size in zip(starts, sizes, strict=False))  # fmt: skip


@rule("aten.split", "aten.chunk", "aten.split_with_sizes", "aten.tensor_split", "aten.unsafe_chunk",
      "aten.unsafe_split")  # fmt: skip
def split(space: Space, op: Op, x: Array, how: Any, dim: Any = 0) -> tuple[Array, ...]:
    """The parts of a tensor along a dimension."""
    at = place(space, dim, x.rank)
    return pieces_of(space, x, at, [shape[at] for shape in op.shapes])


@rule("aten.unbind")
def unbind(space: Space, op: Op, x: Array, dim: Any = 0) -> tuple[Array, ...]:
    """Every cell of a dimension."""
    at = place(space, dim, x.rank)
    return tuple(select(space, op, x, at, k) for k in range(len(op.shapes)))


@rule("aten.select")
def select(space: Space, op: Op, x: Array, dim: Any, index: Any) -> Array:
    """One cell of a dimension."""
    at = place(space, dim, x.rank)
    size = times(x.expanded()[at], len(space.widths))
    chosen_at = tuple(map(int, index.values)) if isinstance(index, Count) else (index,) * len(size)
    start = tuple(k % s for k, s in zip(chosen_at, size, strict=True))
    if size == (1,) * len(size):
        dims = x.expanded()
        return Array((*dims[:at], *dims[at + 1 :]), x.value, x.label)
    if len(set(start)) > 1 or len(set(size)) > 1:
        raise space.refuse("a cell of a dimension that grows is chosen by its number.",
                           "Coordinates of a wide layer are alike: take an average.")  # fmt: skip
    found = piece(space, x, at, start, (1,) * len(size), drop=True)
    return _without(found, at, x.rank)


def _without(x: Array, at: int, rank: int) -> Array:
    if x.rank < rank:
        return x
    dims = x.expanded()
    return replace(x, dims=(*dims[:at], *dims[at + 1 :]), hidden=None)


@rule("aten.slice")
def sliced(
    space: Space, op: Op, x: Array, dim: Any = 0, start: Any = None, end: Any = None,
    step: Any = None,
) -> Array:  # fmt: skip
    """Cells of a dimension, in steps."""
    at = place(space, dim, x.rank)
    size = times(x.expanded()[at], len(space.widths))
    begin = (0,) * len(size) if start is None else tuple(
        min(int(a) % s if a < 0 else int(a), s) for a, s in zip(start.values, size, strict=True)
    )  # fmt: skip
    stride = 1 if step is None else int(step.values[0])
    if stride == 1:
        return piece(space, x, at, begin, op.shape[at])
    return chosen(space, x, at, np.arange(begin[0], size[0], stride)[: op.shape[at][0]], ())


@rule("aten.narrow")
def narrowed(space: Space, op: Op, x: Array, dim: Any, start: Any, length: Any) -> Array:
    """Some cells of a dimension."""
    at = place(space, dim, x.rank)
    return piece(space, x, at, tuple(map(int, start.values)), op.shape[at])


@rule("aten.index", "aten.index_select")
def index(space: Space, op: Op, x: Array, *rest: Any) -> Array:
    """Cells at given places of a dimension."""
    if op.name == "aten.index_select":
        rest = ((None,) * place(space, rest[0], x.rank) + (rest[1],),)
    at = [k for k, one in enumerate(rest[0]) if one is not None]
    if len(at) != 1 or rest[0][at[0]].given is None:
        raise space.refuse(
            f"{op.name} chooses cells along several dimensions, or by what depends on data.",
            "Given places along one dimension are followed.",
        )
    places_ = rest[0][at[0]]
    return chosen(space, x, at[0], places_.given, places_.dims)


def joined(space: Space, arrays: Sequence[Array], at: int) -> Array:
    """Tensors one after the other along a dimension."""
    arrays = [one for one in arrays if one.rank]
    dims = [one.expanded()[at] for one in arrays]
    if any(not leaf.is_finite for dim in dims for leaf in dim):
        return _joined_parts(space, arrays, at, dims)
    sizes = [times(dim, 1)[0] for dim in dims]
    (new,) = space.fresh([(sum(sizes),) * len(space.widths)], True)
    total, start = None, 0
    for one, dim, size in zip(arrays, dims, sizes, strict=True):
        marks = np.zeros((sum(sizes), size))
        marks[start : start + size] = np.eye(size)
        start += size
        fix(dim)
        placed = _mapped(space, one, at, marks, new)
        total = placed if total is None else space.apply(lambda a, b: a + b, total, placed)
    assert total is not None
    return Array(total.dims, total.value)


def _mapped(space: Space, x: Array, at: int, marks: Any, new: Dim) -> Array:
    """A tensor with given sums of the cells of a dimension in place of them."""
    letters = ascii_letters[: x.rank]
    mask, own = given(space, marks, (new, x.expanded()[at])), letters[at]
    return space.contract(x, mask, (letters, f"Z{own}"), letters.replace(own, "Z"))


def _joined_parts(space: Space, arrays: Sequence[Array], at: int, dims: Sequence[Any]) -> Array:
    sizes = [times(dim, len(space.widths)) for dim in dims]
    every = tuple(map(sum, zip(*sizes, strict=True)))
    rest: list[Any] = [()] * arrays[0].rank
    for one in arrays:
        for k, dim in enumerate(one.expanded()):
            if k != at and dim and rest[k]:
                unite(rest[k], dim, space.place)
            rest[k] = rest[k] or dim
    whole = space.leaf(every)
    if len(set(sizes)) == 1:
        whole.split((len(sizes),) * len(space.widths))
        outer, inner = whole.parts
        outer.apart = True
        for dim in dims:
            unite((inner,), dim, space.place)
        mark = outer
    else:
        whole.pieces = whole.pieces or tuple(
            _packed(space, dim, size) for dim, size in zip(dims, sizes, strict=True)
        )
        mark = whole
    found = tuple(leaves(dim) for dim in (*rest[:at], (whole,), *rest[at + 1 :]))
    if space.tracer is None:
        return Array(found)
    return Array(found, Parts(mark, tuple(one.value for one in arrays)))


def _packed(space: Space, dim: Any, size: Sizes) -> Leaf:
    if len(dim) == 1:
        found: Leaf = dim[0]
        return found
    whole = space.leaf(size)
    whole.parts = tuple(dim)
    return whole


@rule("aten.cat", "aten.concat", "aten.concatenate")
def cat(space: Space, op: Op, arrays: tuple[Array, ...], dim: Any = 0) -> Array:
    """Tensors one after the other along a dimension."""
    return joined(space, arrays, place(space, dim, arrays[0].rank))


@rule("aten.stack")
def stack(space: Space, op: Op, arrays: tuple[Array, ...], dim: Any = 0) -> Array:
    """Tensors as the cells of a new dimension."""
    rank = arrays[0].rank
    at = place(space, dim, rank + 1)
    dims = space.together(arrays)
    (new,) = space.fresh([(len(arrays),) * len(space.widths)], True)
    found = (*dims[:at], new, *dims[at:])
    if space.tracer is None or not new:
        return Array(found, arrays[0].value)
    if any(isinstance(one.value, Matrix | Parts) for one in arrays):
        return Array(found, Parts(new[0], tuple(one.value for one in arrays)))
    values = [space._fitted(one, dims) for one in arrays]
    like = next((one for one in values if isinstance(one, Vector)), None)
    values = [_as_handle(space, one, like) for one in values]
    made = space.t.stack(values, "stacked")
    old = [name for _, name in space.axes(dims)]
    target = space.axes(found)
    (name,) = (own for leaf, own in target if leaf is new[0].root)
    kept = [own for leaf, own in target if own != name]
    return Array(found, space.named(made, [*old, "stacked"], [*kept, name]))


def _as_handle(space: Space, value: Any, like: Any) -> Any:
    if isinstance(value, Scalar | Vector):
        return value if like is None or isinstance(value, Vector) else like * 0 + value
    return space.t.constant(float(value), ()) if like is None else like * 0 + value


@rule(
    "aten.pad", "aten.constant_pad_nd", "aten.roll", "aten.flip", "aten.cumsum", "aten.repeat",
    "aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d", "aten.adaptive_avg_pool1d",
    "aten.adaptive_avg_pool2d", "aten.adaptive_avg_pool3d", "aten.upsample_nearest1d",
    "aten.upsample_nearest2d", "aten.upsample_linear1d", "aten.upsample_bilinear2d",
    "aten.upsample_bicubic2d", "aten.tril", "aten.triu",
    "aten.reflection_pad1d", "aten.reflection_pad2d", "aten.replication_pad2d",
)  # fmt: skip
def linear_in_cells(space: Space, op: Op, x: Array, *rest: Any, **named: Any) -> Array:
    """What is linear in the cells of finite dimensions: its matrix, from unit tensors."""
    widths = len(space.widths)
    sizes = [times(dim, widths) for dim in x.expanded()]
    shape = op.shape
    shift = len(shape) - len(sizes)
    wide = [k for k, size in enumerate(sizes) if len(set(size)) > 1]
    unit = _unit(op, rest, named)
    finite = [1 if k in wide else sizes[k][0] for k in range(len(sizes))]
    some = [[3 if k == own else size for k, size in enumerate(finite)] for own in wide]
    if any(shape[k + shift] != sizes[k] or not _is_kept(unit, few, k, shift)
           for k, few in zip(wide, some, strict=True)):  # fmt: skip
        raise space.refuse(f"{op.name} along a dimension that grows.")
    if np.any(unit(np.zeros(finite))):
        raise space.refuse(f"{op.name} puts numbers other than 0 beside the cells.")
    # Dimensions that nothing happens along are those along which units give units.
    kept = [k for k in range(len(sizes)) if k in wide or _is_kept(unit, finite, k, shift)]
    small = [1 if k in kept else finite[k] for k in range(len(sizes))]
    count = int(np.prod(small, initial=1))
    columns = [unit(np.eye(count)[k].reshape(small)) for k in range(count)]
    marks = np.stack(columns, axis=-1)
    acted = [k for k in range(len(sizes)) if k not in kept]
    new = [k for k in range(len(shape)) if k - shift not in kept]
    for k in acted:
        fix(x.expanded()[k])
    fresh = space.fresh([shape[k] for k in new], True)
    target = [marks.shape[k] for k in new]
    mask = given(space, marks.reshape((*target, *(small[k] for k in acted))),
                 (*fresh, *(x.expanded()[k] for k in acted)))  # fmt: skip
    letters = ascii_letters[: len(sizes)]
    out = [ascii_letters[26 + k] if k in new else letters[k - shift] for k in range(len(shape))]
    inputs = "".join(out[k] for k in new) + "".join(letters[k] for k in acted)
    return space.contract(x, mask, (letters, inputs), "".join(out))


@rule("aten.repeat_interleave")
def repeated(space: Space, op: Op, x: Array, count: Any, dim: Any = None, **named: Any) -> Array:
    """Each cell of a dimension several times, one after the other."""
    if not isinstance(count, Count) or dim is None:
        raise space.refuse("cells are repeated by numbers that depend on data.")
    at = place(space, dim, x.rank)
    (again,) = space.fresh([tuple(map(int, count.values))], True)
    dims = x.expanded()
    return replace(x, dims=(*dims[:at], (*dims[at], *again), *dims[at + 1 :]), label="")


@rule("aten.max_pool1d", "aten.max_pool2d", "aten.max_pool3d")
def max_pool(
    space: Space, op: Op, x: Array, kernel: Any, stride: Any = None, padding: Any = None,
    dilation: Any = None, *rest: Any,
) -> Array:  # fmt: skip
    """The largest of each window, axis by axis."""
    rank = len(kernel)
    sizes, far, wide = (each(one, rank, least) for one, least in
                        ((kernel, 1), (padding, 0), (dilation, 1)))  # fmt: skip
    steps = each(stride, rank, 1) if stride else sizes
    for k in range(rank):
        at, count = x.rank - rank + k, op.shape[-rank + k][0]
        cells = times(x.expanded()[at], 1)[0]
        starts = np.arange(count) * steps[k] - far[k]
        inside = [np.clip(starts + j * wide[k], np.maximum(starts % wide[k], 0), cells - 1)
                  for j in range(sizes[k])]  # fmt: skip
        largest_yet = chosen(space, x, at, inside[0], ())
        for own in inside[1:]:
            largest_yet = space.apply(greater, largest_yet, chosen(space, x, at, own, ()))
        x = largest_yet
    return x


ROUTING = "the choice of a top-k is fixed: the first ones stand for those that are chosen"


def _check_order(space: Space, op: Op, x: Array, at: Sequence[int]) -> None:
    if any(not leaf.is_finite for k in at for leaf in x.expanded()[k]):
        raise space.refuse(
            f"{op.name} over a dimension that grows with the width: order statistics grow with "
            "the logarithm of n, which powers of n do not carry.",
            "Take it over a finite dimension.",
        )


@rule("aten.sort", "aten.argsort", "aten.median", "aten.kthvalue", "aten.argmax", "aten.argmin",
      "aten.cummax", "aten.cummin", "aten.quantile", "aten.mode", "aten.msort")  # fmt: skip
def in_order(space: Space, op: Op, x: Array, *rest: Any, **named: Any) -> Array:
    """Cells in the order of their values, which is never followed."""
    _check_order(space, op, x, range(x.rank))
    raise space.refuse(f"{op.name} orders cells by their values.", "Maxima and top-k are followed.")


@rule("aten.amax", "aten.amin", "aten.max", "aten.min")
def extreme(space: Space, op: Op, x: Array, dim: Any = None, keep: Any = False) -> Any:
    """The largest or the smallest of some cells, or of two tensors."""
    larger = smaller if op.name.endswith("min") else greater
    if isinstance(dim, Array):
        return space.apply(larger, x, dim)
    at = places(space, dim, x.rank)
    _check_order(space, op, x, at)
    for k in at:
        first, *more = (chosen(space, x, k, [cell], ()) for cell in
                        range(times(x.expanded()[k], 1)[0]))  # fmt: skip
        for other in more:
            first = space.apply(larger, first, other)
        x = first
    found = x if keep else space.shaped(x, [own for k, own in enumerate(x.dims) if k not in at])
    return (found, None) if len(op.shapes) > 1 else found


@rule("aten.topk")
def largest(space: Space, op: Op, x: Array, count: Any, dim: Any = -1, *rest: Any) -> Any:
    """Some cells of a finite dimension: which ones, is taken as given."""
    at = place(space, dim, x.rank)
    _check_order(space, op, x, (at,))
    space.notes[ROUTING] = None
    cells = np.arange(count.whole)
    return chosen(space, x, at, cells, ()), Array((), given=(at, cells))


@rule("aten.scatter")
def scattered(space: Space, op: Op, x: Array, dim: Any, cells: Array, values: Any) -> Array:
    """Cells put where a top-k has chosen them."""
    if not isinstance(cells.given, tuple) or not isinstance(values, Array):
        raise space.refuse(f"{op.name} puts cells where data say.",
                           "What a top-k has chosen is followed.")  # fmt: skip
    at, chosen_cells = cells.given
    return _put(space, x, at, chosen_cells, values)


@rule("aten.slice_scatter", "aten.select_scatter")
def written(
    space: Space, op: Op, x: Array, values: Array, dim: Any = None, start: Any = None,
    end: Any = None, step: Any = None,
) -> Array:  # fmt: skip
    """Cells of a finite dimension written over."""
    at = 0 if dim is None else place(space, dim, x.rank)
    dims = values.expanded()
    bounds = [one if one is None else one.whole for one in (start, end, step)]
    cells = np.arange(times(x.expanded()[at], 1)[0])
    if op.name == "aten.select_scatter":
        values, cells = space.shaped(values, (*dims[:at], (), *dims[at:])), cells[[start.whole]]
    else:
        cells = cells[slice(*bounds)]
    return _put(space, x, at, cells, values)


@rule("aten.copy", "aten.fill")
def copied(space: Space, op: Op, x: Array, values: Any, *rest: Any, **named: Any) -> Array:
    """Other cells in the dimensions of a tensor."""
    return space.apply(lambda a, b: b, x, as_array(space, values, op))


def _put(space: Space, x: Array, at: int, cells: Any, values: Array) -> Array:
    """Cells in the place of some of a tensor."""
    dim, own = x.expanded()[at], values.expanded()[at]
    if any(not leaf.is_finite for leaf in dim):
        raise space.refuse("cells of a dimension that grows are written over.")
    fix((*own, *dim))
    marks = np.zeros((times(dim, 1)[0], len(cells)))
    marks[cells, range(len(cells))] = 1
    placed = _mapped(space, values, at, marks, dim)
    left = 1 - marks.sum(1).reshape(-1, *(1,) * (x.rank - at - 1))
    if x.given is not None and (np.asarray(x.given) <= EXCLUDED).all():
        return replace(placed, dims=space.together([x, placed]), hidden=left > 0)
    kept = given(space, left, (dim, *((),) * (x.rank - at - 1)))
    return space.apply(lambda a, b, c: a * b + c, x, kept, placed)


def _unit(op: Op, rest: Any, named: Any) -> Any:
    torch = load_torch()
    library, name = op.name.split(".")
    called = getattr(getattr(torch.ops, library), name)
    args = [_plain(one) for one in rest]
    words = {key: _plain(one) for key, one in named.items()}

    def made(values: Any) -> Any:
        return called(torch.tensor(values), *args, **words).numpy()

    return made


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.values[0] if isinstance(value, Count) else value


def _is_kept(unit: Any, sizes: Sequence[int], at: int, shift: int) -> bool:
    """Whether each cell of a dimension is acted on alone, and all of them alike."""
    if sizes[at] == 1:
        return bool(unit(np.ones(sizes)).shape[at + shift] == 1)
    random = np.random.default_rng(0).standard_normal(sizes)
    whole = unit(random)
    if whole.shape[at + shift] != sizes[at]:
        return False
    parts = [unit(np.take(random, [k], axis=at)) for k in range(sizes[at])]
    if any(part.shape[at + shift] != 1 for part in parts):
        return False
    return bool(np.allclose(np.concatenate(parts, axis=at + shift), whole))
