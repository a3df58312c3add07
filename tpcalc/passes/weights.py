"""Trained weights: what every parameter has become, with the samples of each step as an axis.

A matrix is never formed: it is its start and, for every step, rows R and columns C with a sum over
samples of R C^T / size. R carries the rate, the loss derivative and the size of the class of C, so
that W_t x = W_0 x + sum R moment(C x); transposed R and C change places.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Fn, Par
from tpcalc.functions.numbers import Number
from tpcalc.passes.course import Course, Rate
from tpcalc.passes.sums import Term, fresh, is_known, padded, pulled, ratio, scaled, total
from tpcalc.program.base import lincomb_of
from tpcalc.program.nodes import Data, Kind, LinComb, MatMul, Nonlin, Ref, Stack
from tpcalc.program.program import Builder
from tpcalc.program.types import Axes

PRODUCT = Fn(Par(0) * Par(1), 0, 2)
ZERO = as_ex(0)


class Share(NamedTuple):
    """number * chi * n^(-exponent) of a gradient, summed over so many samples."""

    number: Number
    chi: Ref | None
    exponent: Ex
    samples: int


@dataclass
class Weights:
    """The state of all parameters while a training run is written out."""

    out: Builder  # the program being written
    network: Builder  # the forward and backward program of one input
    sample: str  # the axis of the inputs of a step
    # parameters that something other than a sum reads: they are a node each step
    read: Collection[Ref] = ()
    # for matrices the powers p of the n^(-p) in front of their start; None: it is gone
    kept: Mapping[Ref, Ex | None] = field(default_factory=dict)
    # the parameters whose updates are not multiples of one gradient each
    courses: dict[Ref, Course] = field(default_factory=dict)
    # for matrices the rows and columns of their updates, each with its number; those with other
    # axes (uses at every token, and at one vector) are apart
    history: dict[Ref, dict[Axes, list[tuple[int, Ref, Ref]]]] = field(default_factory=dict)
    count: dict[Ref, int] = field(default_factory=dict)  # for matrices how many updates there were
    # the rows and the columns of one kind, one after the other
    stacks: dict[tuple[Ref, Axes], tuple[Ref, Ref]] = field(default_factory=dict)
    # for vectors and scalars their values, as of when they were last read
    now: dict[Ref, Ref] = field(default_factory=dict)
    # for these the terms of the last update
    last: dict[Ref, list[Term]] = field(default_factory=dict)
    # those whose last update is not part of the value yet
    moved: set[Ref] = field(default_factory=set)
    # the nodes of values that are one where they stand
    closed: set[Ref] = field(default_factory=set)
    # what stands for averages over the data at the start
    averages: dict[Ref, Ref] = field(default_factory=dict)

    def current(self, ref: Ref) -> Ref:
        """The value of a vector or scalar, made when it is first read after an update."""
        if ref not in self.now:
            self.now[ref] = self.out.add(self.network.node(ref))
        if ref in self.moved:
            self.moved.remove(ref)
            terms: list[Term] = [(Fraction(1), None, self.now[ref], ()), *self.last.get(ref, ())]
            if ref in self.courses:
                course, start = self.courses[ref], self.out.add(self.network.node(ref))
                terms = course.value(self.out, start, course.now)
            self.now[ref] = total(self.out, terms)
            if ref in self.read:
                self.closed.add(self.now[ref])
        return self.now[ref]

    def multiply(self, node: MatMul, x: Ref) -> Ref:
        """W_t x or W_t^T x: what is left of the start, and a term for every update."""
        start, power = self._start(node, x), self.kept.get(node.matrix, ZERO)
        terms: list[Term] = []
        if node.matrix in self.courses:
            course = self.courses[node.matrix]
            terms = course.product(self.out, node, x, start, course.now, power)
            return total(self.out, terms or [(Fraction(0), None, start, ())])
        if power is not None:
            terms.append((Fraction(1), None, scaled(self.out, start, -power), ()))
        terms += [self._product(node, axes, x) for axes in self.history.get(node.matrix, ())]
        if not terms:  # dropped and never updated: 0, of the dimension of the product
            terms = [(Fraction(0), None, start, ())]
        return total(self.out, terms)

    def last_product(self, node: MatMul, x: Ref) -> Ref | None:
        """The last update of a matrix (or of its transpose) times a vector; None without one."""
        last, terms = self.count.get(node.matrix), list[Term]()
        if node.matrix in self.courses:
            course, power = self.courses[node.matrix], self.kept.get(node.matrix, ZERO)
            start = self._start(node, x)
            terms = course.product(self.out, node, x, start, course.last, power)
            nothing: list[Term] = [(Fraction(0), None, start, ())]  # after a step of rate 0
            return total(self.out, terms or nothing) if course.rates else None
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
        terms = self.last.get(ref)
        if ref in self.courses:
            course, start = self.courses[ref], self.out.add(self.network.node(ref))
            terms = course.value(self.out, start, course.last) if course.rates else None
            terms = [(Fraction(0), None, start, ())] if terms == [] else terms
        if not terms:
            return None
        found = total(self.out, terms)
        if ref in self.read:
            self.closed.add(found)
        return found

    def update_matrix(self, ref: Ref, pairs: Iterable[tuple[Ref, Ref]], share: Share) -> None:
        """Add a share of outer products."""
        self.count[ref] = self.count.get(ref, 0) + 1
        history = self.history.setdefault(ref, {})
        for row, col in pairs:
            item, axes = self._row(ref, row, col, share, ratio(self.out, col))
            item = scaled(self.out, item, 1 - share.exponent)
            made = self.count[ref], item, padded(self.out, col, axes)
            history.setdefault(axes, []).append(made)
            self.stacks.pop((ref, axes), None)

    def _row(
        self, ref: Ref, row: Ref, col: Ref, share: Share, times: Number = 1
    ) -> tuple[Ref, Axes]:
        """The rows of a gradient with the loss derivative, along all axes it is summed over."""
        out, family, chi = self.out, dict(self.network.type(ref).axes), share.chi
        parts = [row, col] if chi is None else [row, col, chi]
        both = {name: size for part in parts for name, size in out.type(part).axes}
        both[self.sample] = share.samples
        axes = tuple(sorted(pair for pair in both.items() if pair[0] not in family))
        return out.add(LinComb((share.number * times,), (chi,), (padded(out, row, axes),))), axes

    def follow(
        self, ref: Ref, gradient: Ref | Iterable[tuple[Ref, Ref]], share: Share, rate: Rate
    ) -> None:
        """Add a step to the course of a parameter: a share of its gradient, with its rate."""
        course = self.courses[ref]
        share = share._replace(number=share.number / course.unit)
        if isinstance(gradient, Ref):
            self.current(ref)
            course.gradients.append(total(self.out, self._changed(ref, gradient, share)))
            self.moved.add(ref)
        else:
            pairs = ((self._row(ref, row, col, share)[0], col) for row, col in gradient)
            course.gradients.append(tuple(pairs))
        course.rates.append((rate[0] * course.unit**2, rate[1]))

    def update(self, ref: Ref, gradient: Ref, share: Share) -> None:
        """Add a share of a gradient, summed over the axes that ``ref`` lacks."""
        self.current(ref)  # with the update before
        self.last[ref] = self._changed(ref, gradient, share)
        self.moved.add(ref)

    def _changed(self, ref: Ref, gradient: Ref, share: Share) -> list[Term]:
        """The terms of an update."""
        out, chi = self.out, share.chi
        kept = {name for name, _ in self.network.type(ref).axes}
        changed: list[Term] = []
        for number, scalar, item in self._opened(gradient, kept):
            if scalar is not None and not is_known(out, scalar):
                item, scalar = out.add(LinComb((Fraction(1),), (scalar,), (item,))), None
            item = scaled(out, item, -share.exponent)
            if chi is not None and scalar is not None:
                item = out.add(LinComb((Fraction(1),), (chi,), (item,)))
            elif chi is not None:
                scalar = chi
            parts = [item] if scalar is None else [item, scalar]
            names = {name for part in parts for name, _ in out.type(part).axes}
            if self.sample not in names:  # what is the same for all of them
                number = number * share.samples
            changed.append((share.number * number, scalar, item, tuple(sorted(names - kept))))
        return changed

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
        return padded(self.out, part, (*held, *more))

    def _start(self, node: MatMul, x: Ref) -> Ref:
        matrix = self.out.add(self.network.node(node.matrix))
        return self.out.add(MatMul(matrix, x, node.transpose))

    def _stacked(self, matrix: Ref, axes: Axes) -> tuple[Ref, Ref]:
        """The rows and the columns of all updates of one kind as one block each."""
        if (matrix, axes) not in self.stacks:
            _, *pair = zip(*self.history[matrix][axes], strict=True)
            taken = (*self.network.type(matrix).axes, *axes)
            axis = fresh("s", {name for name, _ in taken})
            rows, cols = (self.out.add(Stack(part, axis)) for part in pair)
            self.stacks[matrix, axes] = rows, cols
        return self.stacks[matrix, axes]

    def _product(self, node: MatMul, axes: Axes, x: Ref) -> Term:
        """The term of all updates of one kind times a vector; their axis is summed last."""
        out = self.out
        family = {name for name, _ in self.network.type(node.matrix).axes}
        pair = self._stacked(node.matrix, axes)
        result, into = pair[::-1] if node.transpose else pair
        # The rows carry the size of the class of the columns, also transposed.
        share = ratio(out, into) / ratio(out, result) if node.transpose else Fraction(1)
        names, result, gram = pulled(out, x, result, into, family)
        updates, _ = out.type(pair[0]).axes[0]
        inner = (name for axis, name in names.items() if axis != updates)
        return share, gram, result, (*inner, names[updates])
