"""Trained weights: what every parameter has become, as sums over the steps so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.functions import Expr, Fn, Par, Var
from tpcalc.functions.expr import add, const
from tpcalc.orders import Ex, as_ex
from tpcalc.passes.forms import Form
from tpcalc.program.base import references
from tpcalc.program.nodes import Kind, LinComb, MatMul, Moment, Node, Nonlin, Ref, Scale
from tpcalc.program.program import Builder
from tpcalc.program.views import lincomb_of

__all__ = ["Weights"]

INNER = Fn(Var(0) * Var(1), 2)
SQUARE = Fn(Var(0) ** 2, 1)


@dataclass
class _Matrix:
    """Updates of a matrix so far: (r, c, r', c') with r c^T the gradient and ' the scaled one.

    Those from index ``last`` on are of the last step.
    """

    updates: list[tuple[Ref, Ref, Ref, Ref]] = field(default_factory=list)
    last: int = 0


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
        self._kept: Mapping[Ref, Ex | None] = {}
        self._forms: dict[Ref, Form] = {}
        self._nodes: dict[Ref, Ref] = {}
        self._materialised: set[Ref] = set()
        self._starts: set[Ref] = set()
        self._last: dict[Ref, Form] = {}
        self._last_scalars: dict[Ref, tuple[Expr, tuple[Ref, ...]]] = {}
        self._moved: dict[Ref, tuple[Expr, tuple[Ref, ...]]] = {}

    def keep(self, kept: Mapping[Ref, Ex | None]) -> None:
        """From here on the initial part of matrices has these factors n^(-power); None: it is gone.

        Args:
            kept: A power for each parameter.
        """
        self._kept = kept

    def find_materialised(self, template: Builder) -> None:
        """Find the parameters that something other than a sum reads: they need a node a step."""
        for ref in range(len(template)):
            node = template.node(ref)
            if lincomb_of(node) is None:
                self._materialised.update(r for r in references(node) if r in self._trained)

    def node_of(self, form: Form) -> Ref:
        """The node of a form."""
        items = {pair: number for pair, number in form.terms.items() if number != 0}
        start = {p: number for p, number in items.items() if p[0] is None and p[1] in self._starts}
        if 1 < len(start) < len(items):
            # The initial layer applied to data is one vector, shared by all steps.
            image = Form(start).node(self._builder)
            form = Form({pair: number for pair, number in items.items() if pair not in start})
            form.add_term(None, image, Fraction(1))
        return form.node(self._builder)

    def current(self, ref: Ref, node: Node) -> Ref | Form:
        """The present value of an input of the template."""
        if self._template.type(ref).kind is Kind.SCALAR:
            return self._scalar(ref, node)
        if ref not in self._forms:
            form = Form()
            own = self._builder.add(node)
            self._starts.add(own)
            form.add_term(None, own, Fraction(1))
            self._forms[ref] = form
        return self._vector(ref) if ref in self._materialised else self._forms[ref]

    def _vector(self, ref: Ref) -> Ref:
        """The node of a parameter that needs one, made when it is first read in a step."""
        if ref not in self._nodes:
            self._nodes[ref] = self.node_of(self._forms[ref])
        return self._nodes[ref]

    def _scalar(self, ref: Ref, node: Node) -> Ref:
        if ref in self._moved:
            total, refs = self._moved.pop(ref)
            self._nodes[ref] = self._builder.add(Nonlin(Fn(total, 0, len(refs)), (), refs))
        elif ref not in self._nodes:
            self._nodes[ref] = self._builder.add(node)
        return self._nodes[ref]

    def multiply(self, node: MatMul, vector: Ref) -> Ref:
        """W_t x or W_t^T x: what is left of the initial product, and one term for each update."""
        terms: list[tuple[Ref | None, Ref]] = []
        power = self._kept.get(node.matrix, as_ex(0))
        if power is not None:
            start = self._start_product(node, vector)
            nothing_lost = power == as_ex(0)
            terms.append((None, start if nothing_lost else self._builder.add(Scale(start, -power))))
        if node.matrix in self._matrices:
            terms.extend(self._products(self._matrices[node.matrix], node.transpose, vector))
        elif terms:
            return terms[0][1]
        numbers: tuple[Fraction | float, ...] = (Fraction(1),) * len(terms)
        if not terms:  # dropped and never updated: 0, of the dimension of the product
            numbers, terms = (Fraction(0),), [(None, self._start_product(node, vector))]
        scalars, vectors = zip(*terms, strict=True)
        return self._builder.add(LinComb(numbers, scalars, vectors))

    def _start_product(self, node: MatMul, vector: Ref) -> Ref:
        matrix = self._builder.add(self._template.node(node.matrix))
        return self._builder.add(MatMul(matrix, vector, node.transpose))

    def _products(self, state: _Matrix, transpose: bool, vector: Ref) -> list[tuple[Ref, Ref]]:
        """The terms (scalar, vector) of the updates of a matrix times a vector."""
        pairs = [(col, scaled) for _, col, scaled, _ in state.updates]
        if transpose:
            pairs = [(row, scaled) for row, _, _, scaled in state.updates]
        return [(self._inner(with_, vector), out) for with_, out in pairs]

    def begin_step(self) -> None:
        """From here on updates are those of another step."""
        self._last.clear()
        self._last_scalars.clear()
        for state in self._matrices.values():
            state.last = len(state.updates)

    def last_product(self, node: MatMul, vector: Ref) -> Form | None:
        """The last update of a matrix (or of its transpose) times a vector; None without one."""
        state = self._matrices.get(node.matrix)
        if state is None or state.last == len(state.updates):
            return None
        if self._kept.get(node.matrix, as_ex(0)) is not None:
            self._start_product(node, vector)  # the nodes of the whole product keep their order
        form = Form()
        for scalar, out in self._products(state, node.transpose, vector)[state.last :]:
            form.add_term(scalar, out, Fraction(1))
        return form

    def last_change(self, ref: Ref) -> Ref | Form | None:
        """The last update of a vector or scalar parameter; None where there was none."""
        if ref not in self._last_scalars:
            return self._last.get(ref)
        expr, refs = self._last_scalars[ref]
        fn, _, kept = Fn(expr, 0, len(refs)).compact()
        return self._builder.add(Nonlin(fn, (), tuple(refs[index] for index in kept)))

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
        return self._builder.dim_of(self._builder.type(vector).width[0]).ratio

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
        if old_form is None:
            self.current(ref, self._template.node(ref))
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
        self._last[ref] = step
        if ref in self._materialised:
            old_form = Form({(None, self._vector(ref)): Fraction(1)})
            del self._nodes[ref]
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
        refs = [self._scalar(ref, self._template.node(ref))]
        total, change = Par(0) + const(0), add(())
        for gradient, chi, rate in changes:
            for (_, item), number in gradient.terms.items():
                term = const(rate * number)
                factors = [item] if chi is None else [item, chi]
                moved = item
                if len(factors) == 2:
                    moved = builder.add(Nonlin(Fn(Par(0) * Par(1), 0, 2), (), (item, factors[1])))
                if exponent != as_ex(0):
                    moved = builder.add(Scale(moved, -exponent))
                if moved not in refs:
                    refs.append(moved)
                total = add((total, term * Par(refs.index(moved))))
                change = add((change, term * Par(refs.index(moved))))
        self._last_scalars[ref] = change, tuple(refs)
        self._moved[ref] = total, tuple(refs)
