"""Tensors of a module as values of a program: dimensions beside what stands for the cells.

All operations of modules are made of a few: coordinatewise functions, contractions, sums, choices
of cells. The same code runs twice: without values it finds out which dimensions are the same, and
how they are split; with values it writes the program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.powers import Power, n
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import TraceError
from tpcalc.functions.numbers import Number
from tpcalc.networks.tracer import NetworkTracer
from tpcalc.program.types import Ref
from tpcalc.torch.dims import Dim, Leaf, leaves, ratio, regrouped, unite
from tpcalc.torch.graph import Sizes

FEATURES = "in"


@dataclass(frozen=True)
class Parts:
    """The cells of an axis that are told apart, or the pieces of one, each a value of its own."""

    leaf: Leaf
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Matrix:
    """A random matrix, which acts on vectors.

    Args:
        ref: Its node.
        front: What stands in front of it.
        turned: Whether the dimension that comes first is that of its columns.
    """

    ref: Ref
    front: Power
    turned: bool = False


def is_zero(value: Any) -> bool:
    """Whether a value is the number 0."""
    return isinstance(value, int | float | Fraction) and value == 0


@dataclass(frozen=True)
class Array:
    """A tensor."""

    dims: tuple[Dim, ...]  # its dimensions
    # What stands for its cells; a number where they are equal; None while dimensions are looked at
    value: Any = None
    label: str = ""  # of a parameter, or what is one up to a number, its name
    # The cells that a mask leaves out of a softmax, as an array over its last dimensions
    hidden: Any = None
    given: Any = None  # of what does not depend on parameters and inputs its numbers
    # Whether it stands for whole numbers that are looked up, by their one-hot rows
    tokens: bool = False
    alone: bool = False  # whether it is a parameter that one operation reads

    @property
    def rank(self) -> int:
        """The number of its dimensions."""
        return len(self.dims)

    def expanded(self) -> tuple[Dim, ...]:
        """Its dimensions as rows of leaves as they are now."""
        return tuple(leaves(dim) for dim in self.dims)


@dataclass
class Cells:
    """Where tensors live: the widths that were looked at, and the program that is written."""

    widths: tuple[int, ...]  # the widths
    tracer: NetworkTracer | None = None  # writes the program; None while dimensions are looked at
    place: str = ""  # where the operation stands that is read
    notes: dict[str, None] = field(default_factory=dict)  # what a reader should know
    # Labels of parameters whose growing dimension is summed over
    contracted: set[str] = field(default_factory=set)
    eps: bool = False  # whether norms keep the small number beside their mean square
    uses: Counter[str] = field(default_factory=Counter)  # how often each parameter was applied
    # The leaves that were made, by operation and order
    known: dict[tuple[int, int], Leaf] = field(default_factory=dict)
    # How many of them an operation has made so far
    made: Counter[int] = field(default_factory=Counter)
    at: int = 0  # the number of the operation that is read
    named_axes: int = 0  # how many axes have names
    # For each family of the program the operation and the part that it stands for, its dimensions,
    # and its init.
    stored: dict[str, Any] = field(default_factory=dict)
    # For each family of given numbers that vary along the width these, width by width
    held: dict[str, Any] = field(default_factory=dict)
    # The use of a parameter that wrote a node
    written: dict[Ref, str] = field(default_factory=dict)

    @property
    def t(self) -> NetworkTracer:
        """What writes the program."""
        assert self.tracer is not None
        return self.tracer

    def refuse(self, message: str, hint: str | None = None) -> TraceError:
        """An error that says where."""
        return TraceError(message, where=self.place, hint=hint)

    # ------------------------------------------------------------------------------- dimensions

    def leaf(self, sizes: Sizes, fixed: bool = False) -> Leaf:
        """A new leaf; when values are written, the one that was made at this place before."""
        key = self.at, self.made[self.at]
        self.made[self.at] += 1
        return self.known.setdefault(key, Leaf(sizes, fixed))

    def fresh(self, shape: Sequence[Sizes], fixed: bool = False) -> tuple[Dim, ...]:
        """New dimensions of some sizes."""
        return tuple(
            () if all(size == 1 for size in sizes) else (self.leaf(sizes, fixed),)
            for sizes in shape
        )

    def together(self, arrays: Sequence[Array]) -> tuple[Dim, ...]:
        """The dimensions of arrays that meet from the last one on, and are repeated."""
        rank = max(array.rank for array in arrays)
        found: list[Dim] = [()] * rank
        for array in arrays:
            for place, dim in enumerate(array.dims, rank - array.rank):
                if dim and found[place]:
                    unite(found[place], dim, self.place)
                found[place] = found[place] or dim
        return tuple(map(leaves, found))

    def dim_of(self, leaf: Leaf) -> str:
        """The dimension class of a leaf that grows."""
        size, note = ratio(leaf.sizes, self.widths, leaf.title or "a dimension", self.place)
        if note:
            self.notes[note] = None
        if size == 1:
            return "n"
        above = "" if size.numerator == 1 else str(size.numerator)
        below = "" if size.denominator == 1 else f"_{size.denominator}"
        return self.t.dim(f"n{above}{below}", size)

    def length(self, dim: Iterable[Leaf]) -> Any:
        """The number of coordinates and cells of a row of leaves."""
        found: Any = Fraction(1)
        for leaf in dim:
            grows = not leaf.is_finite
            own = self.t.recorder.dims[self.dim_of(leaf)].ratio if grows else leaf.size
            found = found * own * (n if grows else 1)
        return found

    def axes(self, dims: Iterable[Dim]) -> list[tuple[Leaf, str]]:
        """The finite leaves of dimensions, each with the name of its axis."""
        found: list[tuple[Leaf, str]] = []
        for dim in dims:
            for leaf in leaves(dim):
                if leaf.is_axis:
                    if not leaf.name:
                        self.named_axes += 1
                        leaf.name = f"a{self.named_axes}"
                    again = sum(other is leaf for other, _ in found)
                    found.append((leaf, leaf.name + "'" * again))
        return found

    # ------------------------------------------------------------------------------------ values

    def grows(self, dims: Iterable[Dim]) -> list[Leaf]:
        """The leaves of dimensions that grow."""
        return [leaf for dim in dims for leaf in leaves(dim) if not leaf.is_finite]

    def named(self, value: Any, old: Sequence[str], new: Sequence[str]) -> Any:
        """A value whose axes have other names."""
        if not isinstance(value, Scalar | Vector):
            return value
        held = value.axes
        changed = {a: b for a, b in zip(old, new, strict=True) if a != b and a in held}
        return value.renamed(**changed) if changed else value

    def part_of(self, array: Array, leaf: Leaf, index: int) -> Array:
        """One of the cells that are told apart, or one of the pieces."""
        root = leaf.root
        piece = root.pieces[index] if root.pieces else None
        value = array.value
        if isinstance(value, Parts):
            if value.leaf.root is root:
                value = value.values[index]
            else:  # further inside
                inner = (self.part_of(replace(array, value=one), leaf, index).value
                         for one in value.values)  # fmt: skip
                value = Parts(value.leaf, tuple(inner))
        elif isinstance(value, Scalar | Vector) and piece is None:
            names = [name for own, name in self.axes(array.dims) if own is root]
            if names and names[0] in value.axes:
                value = value.at(**{names[0]: index})
        dims = tuple(
            tuple(
                piece if own is root and piece is not None else own
                for own in leaves(dim)
                if own is not root or piece is not None
            )
            for dim in array.dims
        )
        return replace(array, dims=dims, value=value)

    def spread(
        self, arrays: Sequence[Array], made: Callable[..., Array], dims: tuple[Dim, ...]
    ) -> Array | None:
        """An operation done part by part, where an array has parts; None where none has."""
        leaf = next((one.value.leaf.root for one in arrays if isinstance(one.value, Parts)), None)
        if leaf is None:
            return None
        done = [made(*(self.part_of(one, leaf, k) for one in arrays)) for k in range(leaf.count)]
        return Array(dims, Parts(leaf, tuple(one.value for one in done)), done[0].label)

    def apply(self, fn: Callable[..., Any], *arrays: Array) -> Array:
        """A coordinatewise function of arrays, which are repeated where they lack a dimension."""
        dims = self.together(arrays)
        if self.tracer is None:
            return Array(dims)
        made = self.spread(arrays, lambda *some: self.apply(fn, *some), dims)
        if made is not None:
            return made
        values = [self._fitted(array, dims) for array in arrays]
        return Array(dims, self.mapped(fn, values))

    def mapped(self, fn: Callable[..., Any], values: Sequence[Any]) -> Any:
        """What a function makes of values; a matrix takes numbers in front alone."""
        matrix = [value for value in values if isinstance(value, Matrix)]
        if not matrix:
            return fn(*values)
        try:
            own = fn(*(one.front if isinstance(one, Matrix) else one for one in values))
        except TraceError:
            own = None
        if len(matrix) > 1 or not isinstance(own, Power):
            raise self.refuse(
                "a function of the entries of a matrix whose sides both grow is a matrix of its "
                "own, which is contracted with a vector at once or not covered.",
                "Apply the function to the product with a vector.",
            )
        return replace(matrix[0], front=own)

    def _fitted(self, array: Array, dims: tuple[Dim, ...]) -> Any:
        """The value of an array with the names of axes that it has among dimensions."""
        first = len(dims) - array.rank
        every = self.axes(dims)
        before = sum(leaf.is_axis for dim in dims[:first] for leaf in dim)
        old, new = [name for _, name in self.axes(array.dims)], list[str]()
        for own, dim in zip(array.dims, dims[first:], strict=True):
            count = sum(leaf.is_axis for leaf in dim)
            if own:
                new += [name for _, name in every[before : before + count]]
            before += count
        return self.named(array.value, old, new)

    def shaped(self, array: Array, dims: Sequence[Dim]) -> Array:
        """The same cells in other dimensions, of the same leaves in the same order."""
        return replace(array, dims=tuple(map(leaves, dims)), hidden=None)

    def permuted(self, array: Array, order: Sequence[int]) -> Array:
        """The array with its dimensions in another order."""
        dims = tuple(array.expanded()[place] for place in order)
        found = replace(array, dims=dims, hidden=None)
        if array.hidden is not None:
            found = replace(found, hidden=array.hidden.transpose(order))
        if self.tracer is None:
            return found
        made = self.spread([array], lambda one: self.permuted(one, order), dims)
        if made is not None:
            return replace(made, label=array.label)
        if isinstance(array.value, Matrix):
            places = [k for k, dim in enumerate(array.dims) if self.grows([dim])]
            turned = len(places) == 2 and order.index(places[0]) > order.index(places[1])
            value: Any = replace(array.value, turned=array.value.turned != turned)
        else:
            each = [self.axes([dim]) for dim in array.dims]
            names, start = [name for _, name in self.axes(array.dims)], 0
            rows: list[list[str]] = []
            for own in each:
                rows.append(names[start : start + len(own)])
                start += len(own)
            old = [name for place in order for name in rows[place]]
            value = self.named(array.value, old, [name for _, name in self.axes(dims)])
        return replace(found, value=value)

    def viewed(self, array: Array, shape: Sequence[Sizes]) -> Array:
        """The cells in dimensions of other sizes, in the same order."""
        return self.shaped(array, regrouped(array.dims, shape, self.place))

    def constant(self, values: Any, dims: tuple[Dim, ...]) -> Any:
        """Given numbers as a value."""
        names = [name for _, name in self.axes(dims)]
        return self.t.constant(values.tolist(), names) if names else float(values)

    def added(self, left: Any, right: Any) -> Any:
        """A sum of values, numbers with powers of n included."""
        if isinstance(left, Power) or isinstance(right, Power):
            left, right = self.number(left), self.number(right)
        return left + right

    def number(self, value: Number | Power) -> Any:
        """A number that may be added: one with a power of n is a scalar."""
        if not isinstance(value, Power):
            return value
        if not value.n_power.terms and value.n_power.constant == 0:
            return value.factor
        return Power(value.n_power) * self.t.constant(float(value.factor), ())
