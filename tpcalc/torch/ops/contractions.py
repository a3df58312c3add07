"""Sums of products: linear maps, products of matrices, lookups, convolutions."""

from __future__ import annotations

from string import ascii_letters
from typing import Any

import numpy as np

from tpcalc.torch.arrays import Array
from tpcalc.torch.dims import Dim, fix, times
from tpcalc.torch.graph import Op, Sizes
from tpcalc.torch.rules import number, rule
from tpcalc.torch.space import Space


@rule("aten.linear")
def linear(space: Space, op: Op, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """W x + b along the last dimension."""
    batch = ascii_letters[2 : 1 + x.rank]
    into = "b" if weight.rank == 2 else ""
    made = space.contract(x, weight, (f"{batch}a", f"{into}a"), f"{batch}{into}")
    return space.shifted(made, bias)


@rule("aten.matmul", "aten.mm", "aten.bmm", "aten.mv", "aten.dot")
def matmul(space: Space, op: Op, x: Array, y: Array) -> Array:
    """The product of matrices, or of blocks of them."""
    rank = max(x.rank, y.rank, 2) - 2
    batch = ascii_letters[3 : 3 + rank]
    left = batch[rank - max(x.rank - 2, 0) :] + ("ab" if x.rank > 1 else "b")
    right = batch[rank - max(y.rank - 2, 0) :] + ("bc" if y.rank > 1 else "b")
    # A batch dimension that one of both lacks is that of the other.
    out = batch + ("a" if x.rank > 1 else "") + ("c" if y.rank > 1 else "")
    return space.contract(x, y, (left, right), out)


@rule("aten.addmm", "aten.baddbmm", "aten.addbmm", "aten.addmv")
def addmm(
    space: Space, op: Op, bias: Array, x: Array, y: Array, beta: Any = None, alpha: Any = None
) -> Array:
    """A product with a sum."""
    made = matmul(space, op, x, y)
    for factor, which in ((alpha, "product"), (beta, "bias")):
        if factor is not None:
            own = number(space, factor, op)
            if which == "product":
                made = space.apply(lambda a, f=own: a * f, made)
            else:
                bias = space.apply(lambda a, f=own: a * f, bias)
    return space.shifted(made, bias)


@rule("aten.einsum")
def einsum(space: Space, op: Op, equation: str, arrays: tuple[Array, ...], path: Any = None) -> Any:
    """Einstein's sum; of several tensors from the left on."""
    inputs, _, output = equation.replace(" ", "").partition("->")
    letters = inputs.split(",")
    if "..." in equation:
        own_ranks = [a.rank - len(own) + 3 for a, own in zip(arrays, letters, strict=True)]
        some = "".join(one for one in ascii_letters if one not in equation)[: max(own_ranks)]
        letters = [own.replace("...", some[len(some) - rank :])
                   for own, rank in zip(letters, own_ranks, strict=True)]  # fmt: skip
        output = output.replace("...", some)
    if not output and "->" not in equation:
        every = "".join(letters)
        output = "".join(sorted(one for one in set(every) if every.count(one) == 1))
    left, own = arrays[0], letters[0]
    if len(arrays) == 1:
        over = [k for k, letter in enumerate(own) if letter not in output]
        summed = space.summed(left, over) if over else left
        kept = [k for k in range(left.rank) if k not in over]
        shaped = space.shaped(summed, [summed.dims[k] for k in kept])
        rest = [letter for letter in own if letter in output]
        return space.permuted(shaped, [rest.index(letter) for letter in output])
    for k, (right, other) in enumerate(zip(arrays[1:], letters[1:], strict=True), 2):
        later = "".join(letters[k:]) + output
        out = output if k == len(arrays) else "".join(
            dict.fromkeys(letter for letter in own + other if letter in later))  # fmt: skip
        left, own = space.contract(left, right, (own, other), out), out
    return left


@rule("aten.embedding")
def embedding(space: Space, op: Op, table: Array, tokens: Array, *rest: Any, **named: Any) -> Array:
    """Rows of a table: of tokens that are data, or at given places."""
    if tokens.tokens:
        letters = ascii_letters[2 : 1 + tokens.rank]  # the last dimension is the table's
        return space.contract(tokens, table, (f"{letters}a", "ab"), f"{letters}b")
    if tokens.given is None:
        raise space.refuse("rows of a table are chosen by what depends on parameters or data.")
    return chosen(space, table, 0, tokens.given, tokens.dims)


def chosen(space: Space, x: Array, at: int, cells: Any, dims: tuple[Any, ...]) -> Array:
    """Given cells of a finite dimension, as new dimensions in its place."""
    dim = x.expanded()[at]
    if any(not leaf.is_finite for leaf in dim):
        raise space.refuse(
            "cells of a dimension that grows are chosen by their numbers.",
            "Slices, splits and chunks of it are followed.",
        )
    fix(dim)
    index = np.asarray(cells).astype(int)
    total = int(np.prod([leaf.sizes[0] for leaf in dim], initial=1))
    shape = tuple((size,) * len(space.widths) for size in index.shape)
    made = tuple(a or b for a, b in zip(dims, space.fresh(shape, True), strict=False)) or ()
    made = made if len(made) == index.ndim else space.fresh(shape, True)
    before, after = ascii_letters[:at], ascii_letters[at + 1 : x.rank]
    new = ascii_letters[26 : 26 + index.ndim]
    kept = np.arange(total)
    if x.alone and len(dim) == 1:
        kept = np.unique(index % total)
        dim[0].kept, dim[0].cells = tuple(map(int, kept)), len(kept)
    marks = given(space, (index % total)[..., None] == kept, (*made, dim))
    found = space.contract(
        x, marks, (before + ascii_letters[at] + after, new + ascii_letters[at]),
        before + new + after,
    )  # fmt: skip
    return Array(found.dims, found.value)


def given(space: Space, values: Any, dims: tuple[Any, ...]) -> Array:
    """Given numbers over some dimensions."""
    if space.tracer is None:
        return Array(dims)
    sizes = [leaf.size for dim in dims for leaf in dim]
    return Array(dims, space.constant(np.asarray(values, dtype=float).reshape(sizes), dims))


@rule("aten.conv1d", "aten.conv2d", "aten.conv3d")
def convolution(
    space: Space, op: Op, x: Array, weight: Array, bias: Array | None = None, stride: Any = None,
    padding: Any = None, dilation: Any = None, groups: Any = None,
) -> Array:  # fmt: skip
    """A sum over windows: of full mixing, of groups, or channel by channel."""
    rank = weight.rank - 2
    steps, wide = each(stride, rank, 1), each(dilation, rank, 1)
    kernel = weight.expanded()[2:]
    far = [0] * rank if padding == "valid" else [
        step * (times(own, 1)[0] - 1) // 2 for step, own in zip(wide, kernel, strict=True)
    ] if padding == "same" else each(padding, rank, 0)  # fmt: skip
    first = x.rank - rank
    for k in range(rank):
        own = op.shape[-rank + k], kernel[k], steps[k], far[k], wide[k]
        x = windows(space, x, first + k, *own, turned=op.name.startswith("aten.conv_t"))
    # x: batch, channels, then for each axis its places; the offsets at last.
    batch, spots, offsets = "z"[: first - 1], "pqr"[:rank], "uvw"[:rank]
    count = (1,) * len(space.widths) if groups is None else groups.values
    if all(one == 1 for one in count):
        made = space.contract(x, weight, (f"{batch}c{spots}{offsets}", f"o{'c'}{offsets}"),
                              f"{batch}o{spots}")  # fmt: skip
    else:
        made = _grouped(space, op, x, weight, tuple(map(int, count)), batch, spots, offsets)
    if bias is not None:
        bias = space.shaped(bias, (*bias.dims, *((),) * rank))
    return space.shifted(made, bias)


def _grouped(
    space: Space, op: Op, x: Array, weight: Array, groups: Any, batch: str, spots: str, offsets: str
) -> Array:
    at = len(batch)
    shape = _sizes(space, x)
    inner = tuple(a // b for a, b in zip(shape[at], groups, strict=True))
    x = space.viewed(x, [*shape[:at], groups, inner, *shape[at + 1 :]])
    own = _sizes(space, weight)
    out = tuple(a // b for a, b in zip(own[0], groups, strict=True))
    weight = space.viewed(weight, [groups, out, *own[1:]])
    made = space.contract(x, weight, (f"{batch}gc{spots}{offsets}", f"goc{offsets}"),
                          f"{batch}go{spots}")  # fmt: skip
    return space.viewed(made, op.shape)


def _sizes(space: Space, x: Array) -> list[Any]:
    return [times(dim, len(space.widths)) for dim in x.expanded()]


def each(value: Any, rank: int, least: int) -> list[int]:
    """A setting of each axis of a window."""
    if value is None:
        return [least] * rank
    some = [int(one.values[0]) for one in (value if isinstance(value, tuple) else (value,))]
    return some * rank if len(some) == 1 else some


def windows(
    space: Space, x: Array, at: int, out: Sizes, offsets: Dim, stride: int, padding: int,
    dilation: int, turned: bool = False,
) -> Array:  # fmt: skip
    """The neighbours of every place, the offsets as a dimension at the end; or those it is of."""
    dim = x.expanded()[at]
    fix(dim)
    places = int(np.prod([leaf.sizes[0] for leaf in dim], initial=1))
    size = int(np.prod([leaf.sizes[0] for leaf in offsets], initial=1))
    marks = np.zeros((out[0], size, places))
    for p in range(out[0]):
        for k in range(size):
            q = p * stride + k * dilation - padding
            if turned:
                q, rest = divmod(p + padding - k * dilation, stride)
                q = -1 if rest else q
            if 0 <= q < places:
                marks[p, k, q] = 1
    new = space.fresh([out], True)
    fix(offsets)
    mask = given(space, marks, (*new, offsets, dim))
    letters = ascii_letters[: x.rank]
    own = letters[at]
    target = letters.replace(own, "Y") + "Z"
    return space.contract(x, mask, (letters, f"YZ{own}"), target)


@rule("aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d")
def turned_convolution(
    space: Space, op: Op, x: Array, weight: Array, bias: Array | None = None, stride: Any = None,
    padding: Any = None, out: Any = None, groups: Any = None, dilation: Any = None,
) -> Array:  # fmt: skip
    """A convolution the other way round: each cell is spread over a window."""
    if groups is not None and groups.whole > 1:
        raise space.refuse(f"{op.name} has groups.", "Write it with one group.")
    turned = space.permuted(weight, (1, 0, *range(2, weight.rank)))
    return convolution(space, op, x, turned, bias, stride, padding, dilation)


@rule("aten.im2col")
def unfolded(
    space: Space, op: Op, x: Array, kernel: Any, dilation: Any, padding: Any, stride: Any
) -> Array:
    """The windows of an image, each as a column."""
    sizes, count = _sizes(space, x), len(space.widths)
    wide, far, steps = (each(value, 2, 0) for value in (dilation, padding, stride))
    offsets = space.fresh([(int(one.values[0]),) * count for one in kernel], True)
    for k in range(2):
        size, cells = int(kernel[k].values[0]), sizes[-2 + k][0]
        places = (cells + 2 * far[k] - wide[k] * (size - 1) - 1) // steps[k] + 1
        own = ((places,) * count, offsets[k], steps[k], far[k], wide[k])
        x = windows(space, x, len(sizes) - 2 + k, *own)
    order = [*range(len(sizes) - 2), x.rank - 2, x.rank - 1, x.rank - 4, x.rank - 3]
    return space.viewed(space.permuted(x, order), op.shape)
