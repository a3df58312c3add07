"""Trained weights: what every parameter has become, with the samples of each step as an axis.

A matrix is never formed: it is its start and, for every step, rows R and columns C with a sum over
samples of R C^T / size. R carries the rate, the loss derivative and the size of the class of C, so
that W_t x = W_0 x + sum R moment(C x); transposed R and C change places.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

from tpcalc.functions import Expr, Fn, Par, Var
from tpcalc.functions.expr import add, const, mul
from tpcalc.functions.numbers import Number
from tpcalc.orders import Ex, as_ex
from tpcalc.program.base import references
from tpcalc.program.nodes import (
    Data,
    Kind,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    Ref,
    Rename,
    Scale,
    Stack,
)
from tpcalc.program.program import Builder
from tpcalc.program.types import Axes
from tpcalc.program.views import data_of, lincomb_of

__all__ = ["Term", "Weights", "total"]

INNER = Fn(Var(0) * Var(1), 2)
PRODUCT = Fn(Par(0) * Par(1), 0, 2)
ONE, ZERO = as_ex(1), as_ex(0)
Term = tuple[Number, Ref | None, Ref, tuple[str, ...]]  # as in a LinComb, with its sums


@dataclass
class Weights:
    """The state of all parameters while a training run is written out.

    Args:
        out: The program being written.
        network: The forward and backward program of one input.
        sample: The axis of the inputs of a step.
        kept: For matrices the powers p of the n^(-p) in front of their start; None: it is gone.
        history: For matrices the rows and columns of their updates, each with its number; those
            with other axes (uses at every token, and at one vector) are apart.
        count: For matrices how many updates there were.
        stacks: The rows and the columns of one kind, one after the other.
        read: Parameters that something other than a sum reads: they are a node each step.
        now: For vectors and scalars their values, as of when they were last read.
        last: For these the terms of the last update.
        moved: Those whose last update is not part of the value yet.
        closed: The nodes of values that are one where they stand.
    """

    out: Builder
    network: Builder
    sample: str
    read: Collection[Ref] = ()
    kept: Mapping[Ref, Ex | None] = field(default_factory=dict)
    history: dict[Ref, dict[Axes, list[tuple[int, Ref, Ref]]]] = field(default_factory=dict)
    count: dict[Ref, int] = field(default_factory=dict)
    stacks: dict[tuple[Ref, Axes], tuple[Ref, Ref]] = field(default_factory=dict)
    now: dict[Ref, Ref] = field(default_factory=dict)
    last: dict[Ref, list[Term]] = field(default_factory=dict)
    moved: set[Ref] = field(default_factory=set)
    closed: set[Ref] = field(default_factory=set)

    def current(self, ref: Ref) -> Ref:
        """The value of a vector or scalar, made when it is first read after an update."""
        if ref not in self.now:
            self.now[ref] = self.out.add(self.network.node(ref))
        if ref in self.moved:
            self.moved.remove(ref)
            terms: list[Term] = [(Fraction(1), None, self.now[ref], ()), *self.last[ref]]
            self.now[ref] = total(self.out, terms)
            if ref in self.read:
                self.closed.add(self.now[ref])
        return self.now[ref]

    def multiply(self, node: MatMul, x: Ref) -> Ref:
        """W_t x or W_t^T x: what is left of the start, and a term for every update."""
        start, power = self._start(node, x), self.kept.get(node.matrix, ZERO)
        terms: list[Term] = []
        if power is not None:
            left = start if power == ZERO else self.out.add(Scale(start, -power))
            terms.append((Fraction(1), None, left, ()))
        terms += [self._product(node, axes, x) for axes in self.history.get(node.matrix, ())]
        if not terms:  # dropped and never updated: 0, of the dimension of the product
            terms = [(Fraction(0), None, start, ())]
        return total(self.out, terms)

    def last_product(self, node: MatMul, x: Ref) -> Ref | None:
        """The last update of a matrix (or of its transpose) times a vector; None without one."""
        last, terms = self.count.get(node.matrix), list[Term]()
        if last is None:
            return None
        if self.kept.get(node.matrix, ZERO) is not None:
            self._start(node, x)  # the nodes of the whole product keep their order
        for axes, updates in self.history[node.matrix].items():
            number, gram, result, over = self._product(node, axes, x)
            assert gram is not None
            marks = tuple(Fraction(int(own == last)) for own, _, _ in updates)
            name = f"last({sum(marks)}:{len(marks)})"
            mark = self.out.add(Data(name, marks, ((over[-1], len(marks)),)))
            chosen = self.out.add(Nonlin(PRODUCT, (), (mark, gram)))
            terms.append((number, chosen, result, over))
        return total(self.out, terms)

    def last_change(self, ref: Ref) -> Ref | None:
        """The last update of a vector or scalar; None where there was none."""
        if ref not in self.last:
            return None
        found = total(self.out, self.last[ref])
        if ref in self.read:
            self.closed.add(found)
        return found

    def update_matrix(
        self,
        ref: Ref,
        pairs: Iterable[tuple[Ref, Ref]],
        rate: Number,
        chi: Ref | None,
        exponent: Ex,
        count: int,
    ) -> None:
        """Add rate * chi * n^(-exponent) times outer products, summed over ``count`` samples."""
        out, family = self.out, dict(self.network.type(ref).axes)
        self.count[ref] = self.count.get(ref, 0) + 1
        history = self.history.setdefault(ref, {})
        for row, col in pairs:
            parts = [row, col] if chi is None else [row, col, chi]
            both = {name: size for part in parts for name, size in out.type(part).axes}
            both[self.sample] = count
            axes = tuple(sorted(pair for pair in both.items() if pair[0] not in family))
            whole = _padded(out, row, axes)
            item = out.add(LinComb((rate * _ratio(out, col),), (chi,), (whole,)))
            if exponent != ONE:
                item = out.add(Scale(item, 1 - exponent))
            made = self.count[ref], item, _padded(out, col, axes)
            history.setdefault(axes, []).append(made)
            self.stacks.pop((ref, axes), None)

    def update(
        self,
        ref: Ref,
        gradient: Ref,
        rate: Number,
        chi: Ref | None,
        exponent: Ex,
        count: int,
    ) -> None:
        """Add rate * chi * n^(-exponent) * gradient, summed over the axes that ``ref`` lacks."""
        self.current(ref)  # with the update before
        out = self.out
        kept = {name for name, _ in self.network.type(ref).axes}
        changed: list[Term] = []
        for number, scalar, item in self._opened(gradient, kept):
            if scalar is not None and not _known(out, scalar):
                item, scalar = out.add(LinComb((Fraction(1),), (scalar,), (item,))), None
            if exponent != ZERO:
                item = out.add(Scale(item, -exponent))
            if chi is not None and scalar is not None:
                item = out.add(LinComb((Fraction(1),), (chi,), (item,)))
            elif chi is not None:
                scalar = chi
            parts = [item] if scalar is None else [item, scalar]
            names = {name for part in parts for name, _ in out.type(part).axes}
            if self.sample not in names:  # what is the same for all of them
                number = number * count
            changed.append((rate * number, scalar, item, tuple(sorted(names - kept))))
        self.last[ref] = changed
        self.moved.add(ref)

    def _opened(self, gradient: Ref, kept: set[str]) -> Iterator[tuple[Number, Ref | None, Ref]]:
        """The terms of a gradient that is a sum of vectors, and of sums in it; else itself."""
        node = lincomb_of(self.out.node(gradient))
        scalar = self.out.type(gradient).kind is Kind.SCALAR
        if node is None or scalar or gradient in self.closed:
            yield Fraction(1), None, gradient
            return
        over = node.over or ((),) * len(node.numbers)
        if any(kept.intersection(axes) for axes in over):  # cells of another axis of that name
            yield Fraction(1), None, gradient
            return
        for number, factor, vector in zip(node.numbers, node.scalars, node.vectors, strict=True):
            inner = lincomb_of(self.out.node(vector))
            parts: list[tuple[Number, Ref | None, Ref]] = [(Fraction(1), None, vector)]
            if inner is not None and not inner.over:
                parts = list(self._opened(vector, kept))
            lost = {*self.out.type(vector).axes}  # a part that lacks an axis is there in every cell
            for times, own, part in parts:
                there = {
                    axis
                    for one in (own, part)
                    if one is not None
                    for axis in self.out.type(one).axes
                }
                part = self._repeated(part, lost - there, kept)
                if own is not None and factor is not None:  # a term has one scalar
                    part, own = self.out.add(LinComb((Fraction(1),), (own,), (part,))), None
                yield number * times, own if factor is None else factor, part

    def _repeated(self, part: Ref, axes: set[tuple[str, int]], kept: set[str]) -> Ref:
        """A part of a sum along axes that the sum is summed over and the part lacks."""
        held = self.out.type(part).axes
        more = (pair for pair in sorted(axes) if pair[0] not in {*kept, self.sample})
        return _padded(self.out, part, (*held, *more))

    def _start(self, node: MatMul, x: Ref) -> Ref:
        matrix = self.out.add(self.network.node(node.matrix))
        return self.out.add(MatMul(matrix, x, node.transpose))

    def _stacked(self, matrix: Ref, axes: Axes) -> tuple[Ref, Ref]:
        """The rows and the columns of all updates of one kind as one block each."""
        if (matrix, axes) not in self.stacks:
            _, *pair = zip(*self.history[matrix][axes], strict=True)
            taken = (*self.network.type(matrix).axes, *axes)
            axis = _fresh("s", {name for name, _ in taken})
            rows, cols = (self.out.add(Stack(part, axis)) for part in pair)
            self.stacks[matrix, axes] = rows, cols
        return self.stacks[matrix, axes]

    def _product(self, node: MatMul, axes: Axes, x: Ref) -> Term:
        """The term of all updates of one kind times a vector; their axis is summed last."""
        out = self.out
        family = {name for name, _ in self.network.type(node.matrix).axes}
        taken = family | {name for name, _ in out.type(x).axes}
        pair = self._stacked(node.matrix, axes)
        result, into = pair[::-1] if node.transpose else pair
        names = {
            name: _fresh(f"{name}'", taken)
            for name, _ in out.type(result).axes
            if name not in family
        }
        result, into = (_renamed(out, ref, names) for ref in (result, into))
        # The rows carry the size of the class of the columns, also transposed.
        share = _ratio(out, into) / _ratio(out, result) if node.transpose else Fraction(1)
        gram = out.add(Moment(INNER, (into, x)))
        updates = names.pop(out.type(pair[0]).axes[0][0])
        return share, gram, result, (*names.values(), updates)


def total(out: Builder, terms: Sequence[Term]) -> Ref:
    """The sum of terms; of scalars none of which is summed a function of them."""
    numbers, scalars, vectors, over = zip(*terms, strict=True)
    if (numbers, scalars) == ((1,), (None,)) and not over[0]:
        only: Ref = vectors[0]
        return only
    if out.type(vectors[0]).kind is not Kind.SCALAR or any(over):
        return out.add(LinComb(numbers, scalars, vectors, over if any(over) else ()))
    refs = list(dict.fromkeys(ref for ref in (*vectors, *scalars) if ref is not None))
    parts: list[Expr] = []
    for number, *factors in zip(numbers, vectors, scalars, strict=True):
        own = [Par(refs.index(ref)) for ref in factors if ref is not None]
        parts.append(mul((const(number), *own)))
    return out.add(Nonlin(Fn(add(parts), 0, len(refs)), (), tuple(refs)))


def _known(out: Builder, scalar: Ref) -> bool:
    """Whether a block of scalars is known from the data alone."""
    node = out.node(scalar)
    below = references(node)
    if not below:
        return data_of(node) is not None
    return all(out.type(ref).kind is Kind.SCALAR and _known(out, ref) for ref in below)


def _renamed(out: Builder, ref: Ref, names: Mapping[str, str]) -> Ref:
    held = {name for name, _ in out.type(ref).axes}
    pairs = tuple(pair for pair in names.items() if pair[0] in held)
    return out.add(Rename(ref, pairs)) if pairs else ref


def _padded(out: Builder, ref: Ref, axes: Axes) -> Ref:
    """A vector that is the same along the axes that it lacks."""
    held = {name for name, _ in out.type(ref).axes}
    lost = tuple(pair for pair in axes if pair[0] not in held)
    if not lost:
        return ref
    cells = prod(size for _, size in lost)
    name = f"1[{','.join(f'{axis}:{size}' for axis, size in lost)}]"
    ones = out.add(Data(name, (Fraction(1),) * cells, lost))
    return out.add(LinComb((Fraction(1),), (ones,), (ref,)))


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    return name


def _ratio(out: Builder, ref: Ref) -> Fraction:
    return out.dim_of(out.type(ref).width[0]).ratio
