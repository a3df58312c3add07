"""Trained weights: what every parameter has become, as sums over the steps so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.functions import Fn, Par, Var
from tpcalc.functions.expr import add, const
from tpcalc.orders import Ex, as_ex
from tpcalc.program.nodes import (
    InputScalar,
    InputVector,
    Kind,
    LinComb,
    MatMul,
    Moment,
    Ref,
    ScalarFn,
    Scale,
)
from tpcalc.program.program import Builder
from tpcalc.program.typing import node_refs

__all__ = ["Form", "Weights"]

INNER = Fn(Var(0) * Var(1), 2)
SQUARE = Fn(Var(0) ** 2, 1)


@dataclass
class Form:
    """A linear form: numbers in front of (scalar node or None) * vector node.

    Terms with the same scalar and vector are collected, so an input layer applied to finite data
    becomes a kernel: sum_j x_j u_j(t) = sum_j x_j u_j - sum_s (x_s . x) chi_s dh_s.
    """

    terms: dict[tuple[Ref | None, Ref], Fraction | float] = field(default_factory=dict)

    def add_term(self, scalar: Ref | None, vector: Ref, number: Fraction | float) -> None:
        """Add one term."""
        key = (scalar, vector)
        self.terms[key] = self.terms.get(key, Fraction(0)) + number

    def add(self, other: Form, factor: Fraction | float) -> None:
        """Add a multiple of another form."""
        for (scalar, vector), number in other.terms.items():
            self.add_term(scalar, vector, factor * number)


@dataclass
class _Matrix:
    """Updates of a matrix so far: (r, c, r', c') with r c^T the gradient and ' the scaled one."""

    updates: list[tuple[Ref, Ref, Ref, Ref]] = field(default_factory=list)


class Weights:
    """The state of all parameters while a training run is written out.

    Args:
        builder: The program being written.
        template: The forward and backward program of one sample.
        parameters: The trained nodes of the template.
    """

    def __init__(self, builder: Builder, template: Builder, parameters: Sequence[Ref]) -> None:
        self._builder = builder
        self._template = template
        self._trained = set(parameters)
        self._matrices: dict[Ref, _Matrix] = {}
        self._forms: dict[Ref, Form] = {}
        self._nodes: dict[Ref, Ref] = {}
        self._materialised: set[Ref] = set()
        self._starts: set[Ref] = set()

    def find_materialised(self, template: Builder) -> None:
        """Find the parameters that something other than a sum reads: they need a node a step."""
        for ref in range(len(template)):
            node = template.node(ref)
            if not isinstance(node, LinComb):
                self._materialised.update(r for r in node_refs(node) if r in self._trained)

    def node_of(self, form: Form) -> Ref:
        """The node of a form."""
        items = [(pair, number) for pair, number in form.terms.items() if number != 0]
        if len(items) == 1 and items[0][0][0] is None and items[0][1] == 1:
            return items[0][0][1]
        start = [item for item in items if item[0][0] is None and item[0][1] in self._starts]
        if len(start) > 1 and len(start) < len(items):
            # The initial layer applied to data is one vector, shared by all steps.
            image = Form(dict(start))
            rest = Form({pair: number for pair, number in items if pair not in image.terms})
            rest.add_term(None, self.node_of(image), Fraction(1))
            return self.node_of(rest)
        if not items:  # a sum that cancelled: keep a vector for its dimension
            pair = next(iter(form.terms))
            items = [((None, pair[1]), Fraction(0))]
        return self._builder.add(
            LinComb(
                tuple(number for _, number in items),
                tuple(scalar for (scalar, _), _ in items),
                tuple(vector for (_, vector), _ in items),
            )
        )

    def current(self, ref: Ref, node: InputVector | InputScalar) -> Ref | Form:
        """The present value of an input of the template."""
        if ref in self._materialised and ref in self._nodes:
            return self._nodes[ref]
        if isinstance(node, InputScalar):
            return self._nodes.setdefault(ref, self._builder.add(node))
        if ref not in self._forms:
            form = Form()
            own = self._builder.add(node)
            self._starts.add(own)
            form.add_term(None, own, Fraction(1))
            self._forms[ref] = form
        if ref in self._materialised:
            return self._nodes.setdefault(ref, self.node_of(self._forms[ref]))
        return self._forms[ref]

    def multiply(self, node: MatMul, vector: Ref) -> Ref:
        """W_t x or W_t^T x: the initial product plus one term for each update."""
        builder = self._builder
        matrix = builder.add(self._template.node(node.matrix))
        first = builder.add(MatMul(matrix, vector, node.transpose))
        state = self._matrices.get(node.matrix)
        if state is None:
            return first
        numbers: list[Fraction | float] = [Fraction(1)]
        scalars: list[Ref | None] = [None]
        vectors = [first]
        for row, col, scaled_row, scaled_col in state.updates:
            with_, out = (row, scaled_col) if node.transpose else (col, scaled_row)
            numbers.append(Fraction(1))
            scalars.append(self._inner(with_, vector))
            vectors.append(out)
        return builder.add(LinComb(tuple(numbers), tuple(scalars), tuple(vectors)))

    def _inner(self, left: Ref, right: Ref) -> Ref:
        if left == right:
            return self._builder.add(Moment(SQUARE, (left,)))
        return self._builder.add(Moment(INNER, (left, right)))

    def update_matrix(
        self,
        ref: Ref,
        row: Ref,
        col: Ref,
        rate: Fraction | float,
        chi: Ref | None,
        exponent: Ex,
    ) -> None:
        """Add rate * chi * n**(-exponent) * row col^T to a matrix.

        The scaled copies carry the factor n of the inner product: n * moment(c x) * r'.
        """
        state = self._matrices.setdefault(ref, _Matrix())
        state.updates.append(
            (
                row,
                col,
                self._scaled(row, rate * self._ratio(col), chi, 1 - exponent),
                self._scaled(col, rate * self._ratio(row), chi, 1 - exponent),
            )
        )

    def _ratio(self, vector: Ref) -> Fraction:
        return self._builder.dim_of(self._builder.type(vector).dims[0]).ratio

    def _scaled(self, ref: Ref, rate: Fraction | float, chi: Ref | None, power: Ex) -> Ref:
        item = self._builder.add(LinComb((rate,), (chi,), (ref,)))
        return item if power == as_ex(0) else self._builder.add(Scale(item, power))

    def update_input(
        self,
        ref: Ref,
        changes: Sequence[tuple[Form, Ref | None, Fraction | float]],
        exponent: Ex,
    ) -> None:
        """Add sum of rate * chi * n**(-exponent) * gradient to a vector or scalar parameter."""
        if self._template.type(ref).kind is Kind.SCALAR:
            self._update_scalar(ref, changes, exponent)
            return
        old_form = self._forms.get(ref)
        node = self._template.node(ref)
        assert isinstance(node, InputVector)
        if old_form is None:
            self.current(ref, node)
            old_form = self._forms[ref]
        step = Form()
        for gradient, chi, rate in changes:
            for (scalar, vector), number in gradient.terms.items():
                item, coefficient = vector, chi
                if scalar is not None:
                    item = self._builder.add(LinComb((Fraction(1),), (scalar,), (vector,)))
                if exponent != as_ex(0):
                    item = self._builder.add(Scale(item, -exponent))
                step.add_term(coefficient, item, rate * number)
        if ref in self._materialised:
            grown = Form()
            grown.add_term(None, self._nodes.get(ref, self.node_of(old_form)), Fraction(1))
            grown.add(step, Fraction(1))
            self._nodes[ref] = self.node_of(grown)
        else:
            new = Form(dict(old_form.terms))
            new.add(step, Fraction(1))
            self._forms[ref] = new

    def _update_scalar(
        self,
        ref: Ref,
        changes: Sequence[tuple[Form, Ref | None, Fraction | float]],
        exponent: Ex,
    ) -> None:
        builder = self._builder
        old = self._nodes.get(ref)
        if old is None:
            old = builder.add(self._template.node(ref))
        refs, total = [old], Par(0) + const(0)
        for gradient, chi, rate in changes:
            for (_, item), number in gradient.terms.items():
                term = const(rate * number)
                factors = [item] if chi is None else [item, chi]
                moved = item
                if len(factors) == 2:
                    moved = builder.add(ScalarFn(Fn(Par(0) * Par(1), 0, 2), (item, factors[1])))
                if exponent != as_ex(0):
                    moved = builder.add(Scale(moved, -exponent))
                if moved not in refs:
                    refs.append(moved)
                total = add((total, term * Par(refs.index(moved))))
        self._nodes[ref] = builder.add(ScalarFn(Fn(total, 0, len(refs)), tuple(refs)))
