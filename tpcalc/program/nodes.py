"""The node types of a Tensor Program: frozen records.

A class holds the fields, its line of ``grammar`` and its rule of types; everything else that is
said of all nodes (references, text, JSON, equality) is read off the fields. A node refers to
earlier nodes by their index (``Ref``). Powers of the width and of the depth are written out in
``Scale``; nothing else carries one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tpcalc.exponents import Ex
from tpcalc.functions import Expr, Fn, Par, Var
from tpcalc.functions.numbers import Number, is_finite
from tpcalc.functions.rows import RowFn
from tpcalc.program.family import Family as Family
from tpcalc.program.types import Axes, Count, Typing, check_axes
from tpcalc.program.types import Dim as Dim
from tpcalc.program.types import Kind as Kind
from tpcalc.program.types import Ref as Ref
from tpcalc.program.types import Type as Type


@dataclass(frozen=True, slots=True)
class Data:
    """Given numbers, one for each cell in the order of the axes: a learning rate, the inputs.

    Without values it is a slot, to be filled by a run.
    """

    name: str
    values: tuple[Number, ...] = (0,)
    axes: Axes = ()

    grammar: ClassVar[str] = "data <name><axes><values? >"

    def type(self, before: Typing) -> Type:
        """A scalar, or a block of scalars."""
        check_axes(self.axes, repr(self.name), before.place)
        if self.values and len(self.values) != prod(size for _, size in self.axes):
            raise before.fail(f"{self.name!r} of type {Type((), self.axes)} needs one number for "
                              f"each cell; {len(self.values)} are given.")  # fmt: skip
        if not all(is_finite(value) for value in self.values):
            raise before.fail(f"a value of {self.name!r} is not a finite number.")
        return Type((), self.axes)


@dataclass(frozen=True, slots=True)
class Input:
    """A random array, or one cell of it: start vectors, matrices, random numbers.

    Args:
        family: What is drawn.
        cell: The cell; None: the whole.
    """

    family: Family
    cell: int | None = None

    grammar: ClassVar[str] = "input <family><cell>"

    @property
    def name(self) -> str:
        """The name of what it is: ``x[1]``, or ``x`` of a family of one."""
        return self.family.cell_name(self.cell)

    @property
    def index(self) -> int:
        """The number of the cell among those of its family."""
        return self.cell or 0

    def type(self, before: Typing) -> Type:
        """The type of the family, without its axes for one cell."""
        if self.cell is None:
            return self.family.type
        if not self.family.axes or not 0 <= self.cell < self.family.size:
            raise before.fail(
                f"{self.family.name!r} has {self.family.size} members; there is no {self.cell}."
            )
        return Type(self.family.width)


def members(family: Family) -> tuple[Input, ...]:
    """A node for each cell of a family; of a family of one the whole.

    Example:
        >>> [node.name for node in members(Family.group("x", "n", (0, 0)))]
        ['x[0]', 'x[1]']
    """
    return (
        tuple(Input(family, cell) for cell in range(family.size))
        if family.axes
        else (Input(family),)
    )


@dataclass(frozen=True, slots=True)
class Rename:
    """A block read under other names of axes: ``x[b>b']`` beside ``x`` makes pairs of samples."""

    of: Ref
    names: tuple[tuple[str, str], ...]

    grammar: ClassVar[str] = "rename <of> <names>"

    def type(self, before: Typing) -> Type:
        """The same type, with the new names."""
        found, new = before.types[self.of], dict(self.names)
        known = [name for name, _ in found.axes]
        if not new:
            raise before.fail(f"no axis of %{self.of} ({found}) is given another name.")
        for name in new:
            if name not in known:
                raise before.fail(
                    f"%{self.of} ({found}) has no axis {name!r} to read under another name.",
                    hint=f"Its axes: {', '.join(known) or 'none'}.",
                )
            if [old for old, _ in self.names].count(name) > 1:
                raise before.fail(f"the axis {name!r} is given two names.")
        names = [new.get(name, name) for name in known]
        for name in names:
            if names.count(name) > 1:
                raise before.fail(
                    f"%{self.of} ({found}) is read with the name {name!r} for two of its axes.",
                    hint="Multiply with a constant eye to take a diagonal.",
                )
        axes = tuple((new.get(name, name), size) for name, size in found.axes)
        check_axes(axes, f"%{self.of}", before.place)
        return Type(found.width, axes)


@dataclass(frozen=True, slots=True)
class Stack:
    """Values of one kind as the cells of a new axis; what lacks an axis is the same along it."""

    of: tuple[Ref, ...]
    axis: str

    grammar: ClassVar[str] = "stack <of> along <axis>"

    def type(self, before: Typing) -> Type:
        """The width of the values, all their axes, and the new one."""
        if not self.of:
            raise before.fail("a stack of nothing has no type.")
        kinds = {before.types[ref].kind for ref in self.of}
        if len(kinds) > 1 or Kind.MATRIX in kinds:
            raise before.fail("a stack is of vectors or of scalars, all of one kind.")
        width = () if kinds == {Kind.SCALAR} else (before.common_dim(self.of),)
        axes = before.axes(self.of)
        if self.axis in dict(axes):
            raise before.fail(
                f"what is stacked along {self.axis!r} has this axis already.",
                hint="Give the new axis another name.",
            )
        return Type(width, ((self.axis, len(self.of)), *axes))


@dataclass(frozen=True, slots=True)
class MatMul:
    """``W @ x``, or ``W.T @ x`` with ``transpose``."""

    matrix: Ref
    vector: Ref
    transpose: bool = False

    grammar: ClassVar[str] = "matmul <matrix><transpose?.T> <vector>"

    def type(self, before: Typing) -> Type:
        """A vector on the other side of the matrix."""
        matrix, vector = before.types[self.matrix], before.vector(self.vector)
        if matrix.kind is not Kind.MATRIX:
            raise before.fail(f"%{self.matrix} is a {matrix.kind.value}, not a matrix.")
        rows, cols = matrix.width[::-1] if self.transpose else matrix.width
        if vector.width != (cols,):
            side = "W.T" if self.transpose else "W"
            raise before.fail(
                f"{side} (%{self.matrix}) takes vectors on {cols!r}; "
                f"%{self.vector} lives on {vector.width[0]!r}.",
                hint="Use the transpose, or a matrix between the right dimension classes.",
            )
        return Type((rows,), before.axes((self.vector, self.matrix)))


@dataclass(frozen=True, slots=True)
class Nonlin:
    """A coordinatewise function of vectors and scalars; of scalars alone it is a scalar."""

    fn: Fn
    vectors: tuple[Ref, ...]
    scalars: tuple[Ref, ...] = ()

    grammar: ClassVar[str] = "map <fn> (<vectors><scalars?; >)"

    def type(self, before: Typing) -> Type:
        """On the dimension class of the vectors."""
        before.arity(self.fn, len(self.vectors), len(self.scalars))
        before.scalars(self.scalars)
        width = (before.common_dim(self.vectors),) if self.vectors else ()
        return Type(width, before.axes((*self.vectors, *self.scalars)))


@dataclass(frozen=True, slots=True)
class RowNonlin:
    """A function of each row of cells along an axis, coordinate by coordinate: softmax."""

    row: RowFn
    of: Ref
    along: str

    grammar: ClassVar[str] = "rows <row>[<along>] <of>"

    def type(self, before: Typing) -> Type:
        """The type of what it is applied to, which must have the axis."""
        found = before.types[self.of]
        if found.kind is Kind.MATRIX:
            raise before.fail("a function of rows is taken of vectors or scalars, not of matrices.")
        if self.along not in dict(found.axes):
            names = ", ".join(name for name, _ in found.axes)
            raise before.fail(
                f"{self.row.name} along {self.along!r}, which %{self.of} ({found}) does not have.",
                hint=f"Its axes: {names or 'none'}.",
            )
        return found


@dataclass(frozen=True, slots=True)
class LinComb:
    """Sum of number * scalar * vector; where ``scalars`` holds None the scalar is 1."""

    numbers: tuple[Number, ...]  # one for each term
    scalars: tuple[Ref | None, ...]  # one for each term, or None
    # one for each term. They are scalars instead where a term is summed; without a sum a
    # combination of scalars is a function of them, a Nonlin.
    vectors: tuple[Ref, ...]
    # for each term the finite axes that it is summed over; () where none is
    over: tuple[tuple[str, ...], ...] = ()

    grammar: ClassVar[str] = "sum <numbers><scalars>*<vectors><over> + ..."

    def type(self, before: Typing) -> Type:
        """On the dimension class of the vectors, with the axes that no term is summed over."""
        if not len(self.numbers) == len(self.scalars) == len(self.vectors) or (
            self.over and len(self.over) != len(self.numbers)
        ):
            raise before.fail("a linear combination needs as many coefficients as vectors.")
        if self.over and not any(self.over):
            raise before.fail("no term is summed; then the axes of sums are left out.")
        if not all(is_finite(number) for number in self.numbers):
            raise before.fail("a coefficient of the linear combination is not finite.")
        before.scalars([scalar for scalar in self.scalars if scalar is not None])
        if self.vectors and before.types[self.vectors[0]].kind is Kind.SCALAR:
            before.scalars(self.vectors)
            if not self.over:
                raise before.fail(
                    "a combination of scalars none of which is summed is a function of them.",
                    hint="Write that function: map {s0 + 2*s1} (; %0, %1), a Nonlin of scalars.",
                )
            width: tuple[str, ...] = ()
        else:
            width = (before.common_dim(self.vectors),)
        if not self.over:
            return Type(width, before.axes((*self._factors(), *self.vectors)))
        return Type(width, self._left(before))

    def _left(self, before: Typing) -> Axes:
        """The axes that are not summed over."""
        kept: dict[str, int] = {}
        for scalar, vector, over in zip(self.scalars, self.vectors, self.over, strict=True):
            axes = dict(before.axes((vector,) if scalar is None else (scalar, vector)))
            for name in over:
                if axes.pop(name, None) is None:
                    raise before.fail(
                        f"a sum over {name!r}, which the term with %{vector} "
                        f"({before.types[vector]}) does not have.",
                        hint="Sum each term over axes of its own.",
                    )
            for name, size in axes.items():
                if kept.setdefault(name, size) != size:
                    raise before.fail(
                        f"the axis {name!r} has {kept[name]} cells in one term and {size} in the "
                        f"term with %{vector}.",
                        hint="Axes meet by name: give one of the two another name.",
                    )
        return tuple(kept.items())

    @property
    def terms(self) -> Iterable[tuple[Number, Ref | None, Ref, tuple[str, ...]]]:
        """Of each term its number, scalar and vector, and the axes that it is summed over."""
        over = self.over or ((),) * len(self.numbers)
        return zip(self.numbers, self.scalars, self.vectors, over, strict=True)

    def _factors(self) -> tuple[Ref, ...]:
        return tuple(scalar for scalar in self.scalars if scalar is not None)


@dataclass(frozen=True, slots=True)
class Moment:
    """The average of a coordinatewise function over the coordinates."""

    fn: Fn
    vectors: tuple[Ref, ...]
    scalars: tuple[Ref, ...] = ()

    grammar: ClassVar[str] = "moment <fn> (<vectors><scalars?; >)"

    def type(self, before: Typing) -> Type:
        """A scalar for each cell."""
        before.arity(self.fn, len(self.vectors), len(self.scalars))
        before.scalars(self.scalars)
        before.common_dim(self.vectors)
        return Type((), before.axes((*self.vectors, *self.scalars)))


@dataclass(frozen=True, slots=True)
class OuterNonlin:
    """z_a = (1/d) sum_b psi(a, b) x_b, d the size of the column dimension.

    The vector arguments of ``fn`` are the row vectors, then the column vectors. With ``forms`` they
    are bilinear forms, G_s(a, b) = sum of row_k(a) col_k(b) over the k with forms[k] = s, in blocks
    also over those of the axes ``over`` that they have.
    """

    fn: Fn
    rows: tuple[Ref, ...]
    cols: tuple[Ref, ...]
    scalars: tuple[Ref, ...]
    vector: Ref
    forms: tuple[int, ...] = ()
    over: tuple[str, ...] = ()

    grammar: ClassVar[str] = (
        "outer <fn> (<rows>; <cols><scalars?; >)<forms? forms |><over? over |> <vector>"
    )

    def type(self, before: Typing) -> Type:
        """On the dimension class of the rows."""
        if self.forms and not len(self.forms) == len(self.rows) == len(self.cols):
            raise before.fail(
                f"{len(self.rows)} rows and {len(self.cols)} columns for {len(self.forms)} places.",
                hint="A form is a sum of products of one row and one column each.",
            )
        if self.over and not self.forms:
            raise before.fail("only the forms of an outer function are summed over axes.")
        given = max(self.forms) + 1 if self.forms else len(self.rows) + len(self.cols)
        before.arity(self.fn, given, len(self.scalars))
        before.scalars(self.scalars)
        before.common_dim((*self.cols, self.vector))
        width = (before.common_dim(self.rows),)
        every = before.axes((*self.rows, *self.cols, *self.scalars, self.vector))
        lost = set(self.over) - {name for name, _ in before.axes((*self.rows, *self.cols))}
        if lost or set(self.over) & {name for name, _ in before.axes((self.vector,))}:
            raise before.fail(
                f"forms are summed over {', '.join(self.over)}: axes of rows or columns, and not "
                "of the vector."
            )
        return Type(width, tuple(pair for pair in every if pair[0] not in self.over))


@dataclass(frozen=True, slots=True)
class Scale:
    """A vector or scalar times n**n_power * L**depth_power."""

    of: Ref
    n_power: Ex
    depth_power: Ex = Ex()

    grammar: ClassVar[str] = "scale <of> n^(<n_power>)<depth_power? L^(|)>"

    def type(self, before: Typing) -> Type:
        """The type of what is scaled."""
        found = before.types[self.of]
        if found.kind is Kind.MATRIX:
            raise before.fail(
                "a power of n in front of a matrix.", hint="Put it in front of the product W @ x."
            )
        if not isinstance(self.n_power, Ex) or not isinstance(self.depth_power, Ex):
            raise before.fail("the powers of n and L must be exponents.", hint="Use orders.as_ex.")
        return found


@dataclass(frozen=True, slots=True)
class Carry:
    """What enters a repetition of a block: ``start`` the first, what the one before gave the next.

    The block is what is computed of it, with the inputs that are drawn anew along the depth, up to
    its ``Repeat``.
    """

    start: Ref  # what enters the first repetition
    layer: str = "l"  # the name of the number of a repetition, from 1
    count: Count = 0  # how often the block is repeated; 0: the symbol L

    grammar: ClassVar[str] = "carry <start> over <layer>:<count>"

    def type(self, before: Typing) -> Type:
        """The type of what enters first."""
        before.vector(self.start)
        return before.types[self.start]


@dataclass(frozen=True, slots=True)
class Repeat:
    """What leaves the last repetition of a block."""

    carry: Ref
    next: Ref

    grammar: ClassVar[str] = "repeat <carry> to <next>"

    def type(self, before: Typing) -> Type:
        """The type of the carry, which the block keeps."""
        found, wanted = before.types[self.next], before.types[self.carry]
        if (found.width, set(found.axes)) != (wanted.width, set(wanted.axes)):
            raise before.fail(
                f"a repetition takes {wanted} (%{self.carry}) and gives {found} (%{self.next}): "
                "the next one cannot take that.",
                hint="A repeated block keeps the dimension and the axes of what it carries.",
            )
        return wanted


Node = (
    Data
    | Input
    | Rename
    | Stack
    | MatMul
    | Nonlin
    | RowNonlin
    | LinComb
    | Moment
    | OuterNonlin
    | Scale
    | Carry
    | Repeat
)

NODE_TYPES: tuple[type[Node], ...] = Node.__args__


def slots_of(node: Nonlin | Moment) -> Iterator[tuple[Expr, Ref]]:
    """The arguments of a function with what they stand for."""
    yield from ((Var(k), ref) for k, ref in enumerate(node.vectors))
    yield from ((Par(k), ref) for k, ref in enumerate(node.scalars))
