"""``Closure``: the scalars of a limit graph by rules on Gaussians, without samples.

A vector is a function of jointly Gaussian variables; the covariance of two hats of one matrix is an
expectation of such functions again. Each rule says which values it needs; ``Demands`` fills them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

from tpcalc.evaluate.closure.gaussians import (
    Affine,
    Correction,
    Gaussian,
    Hat,
    Member,
    Primitive,
    Product,
    Vector,
    affine,
    family,
    is_odd,
    is_tame,
    products,
    related,
)
from tpcalc.functions import Call, Expr, Fn, Par, Var, const
from tpcalc.functions.expr import add, mul, substitute, variables, walk
from tpcalc.functions.indicator import AT_ZERO
from tpcalc.integrals.demand import Demands, Rule, Unknown
from tpcalc.integrals.field import Field
from tpcalc.integrals.slopes import slope
from tpcalc.limit import graph as nodes
from tpcalc.limit.graph import LimitGraph, LNode, LRef, average_of, function_of, the_product
from tpcalc.program.base import Table
from tpcalc.program.nodes import LinComb, Nonlin

T = TypeVar("T")
CENTRED = Var(0) - Par(0)
LARGEST = 2000  # parts of an expression: what is larger is not expanded


class Closure(Generic[T]):
    """Values of a limit graph.

    Source: Hajjar, Chizat, Giraud, Appendix B.2 (ZHat, ZDot), Theorem B.1.
    """

    def __init__(
        self,
        graph: LimitGraph,
        field: Field[T],
        covariances: Mapping[str, Sequence[Sequence[T]]] | None = None,
        *,
        corrections: bool = True,
    ) -> None:
        self.graph, self.field = graph, field
        self.found: list[Correction[T]] = []
        self.covariances = dict(covariances or {})
        self._corrected = corrections
        self._groups = {group.name: group for group in graph.groups}
        self._ratios = {dim.name: dim.ratio for dim in graph.dims}
        self._diagonal = frozenset(
            group.name
            for group in graph.groups
            if group.cov is None and group.name not in self.covariances
        )
        self._gaussians: list[Gaussian[T]] = []
        self._derived: dict[Affine, int] = {}
        self._extra: dict[int, T] = {}
        self._demands = Demands(
            {
                "vector": self._vector,
                "scalar": self._scalar,
                "inner": self._inner,
                "mean": self._mean,
                "component": self._component,
                "covariance": self._covariance,
                "primitive": self._primitive,
                "slope": self._slope,
                "derived": self._derive,
            }
        )

    # -- what is asked -----------------------------------------------------------------------

    def scalar(self, ref: LRef) -> T:
        """The value of a scalar node."""
        found: T = self._demands.get(("scalar", ref))
        return found

    def average(self, ref: LRef) -> T:
        """E Z of a vector node; ``Unknown`` where it has no closed form and no quadrature."""
        vector = self._demands.get(("vector", ref))
        found: T = self._demands.get(("mean", vector.expr))
        return found

    def inner(self, left: LRef, right: LRef) -> T:
        """E Z Z' of two vector nodes."""
        found: T = self._demands.get(("inner", *sorted((left, right))))
        return found

    def coefficient(self, product: LRef, earlier: LRef) -> T:
        """The number in front of an earlier product, of the other side, in the limit of one."""
        node, other = (the_product(self.graph.nodes[ref]) for ref in (product, earlier))
        hat = Hat(other.matrix, other.transpose, other.vector)
        return self.field.total(
            [[self._ratio(node), self._demands.get(("slope", node.vector, hat))]]
        )

    # -- vectors -----------------------------------------------------------------------------

    def _ratio(self, node: nodes.Product) -> T:
        return self.field.number(self._ratios[self.graph.vector_dim[node.vector] or ""])

    def _vector(self, ref: LRef) -> Rule:
        return (yield from _VECTORS(self.graph.nodes[ref], self))

    def _start(self, node: nodes.Start) -> Rule:
        yield from ()
        mean = self.field.number(self._groups[node.group].means[node.index])
        own: Primitive = Member(node.group, node.index)
        return self._named(Gaussian({own: self.field.number(1)}, mean))

    def _combine(self, node: LinComb) -> Rule:
        terms = []
        for number, scalar, item in zip(node.numbers, node.scalars, node.vectors, strict=True):
            factor = const(number) if scalar is None else mul((const(number), Par(scalar)))
            terms.append((factor, item))
        return (yield from self._sum(terms))

    def _apply(self, node: Nonlin) -> Rule:
        replaced: dict[Expr, Expr] = {}
        support: frozenset[Primitive] = frozenset()
        for index, item in enumerate(node.vectors):
            part = yield ("vector", item)
            replaced[Var(index)] = part.expr
            support |= part.support
        replaced.update({Par(i): Par(s) for i, s in enumerate(node.scalars)})
        expr = substitute(_readable(node.fn).expr, replaced)
        made = yield from self._function(expr, support, ())
        return replace(made, whole=node.vectors[0]) if self._is_centred(node) else made

    def _is_centred(self, node: Nonlin) -> bool:
        """Whether this is a vector minus its own average."""
        if node.fn.expr != CENTRED or len(node.vectors) != 1:
            return False
        average = average_of(self.graph.nodes[node.scalars[0]])
        if average is None:
            return False
        if average.fn.expr == Var(0):
            return average.vectors == node.vectors
        whole = function_of(self.graph.nodes[node.vectors[0]])  # averages look through functions
        return whole is not None and (
            (whole.fn, whole.vectors, whole.scalars)
            == (average.fn, average.vectors, average.scalars)
        )

    def _product(self, node: nodes.Product) -> Rule:
        """The hat, and a correction for each earlier product with the other side."""
        inner = yield ("vector", node.vector)
        hat = Hat(node.matrix, node.transpose, node.vector)
        own = self._named(Gaussian({hat: self.field.number(1)}, self.field.number(0)))
        if not self._corrected:
            return own
        terms: list[tuple[Expr, LRef]] = []
        support = own.support
        expr = [own.expr]
        ratio = self._ratio(node)
        for other in sorted(_other_side(inner.support, node), key=lambda item: item.vector):
            rate = yield ("slope", node.vector, other)
            if self.field.is_zero(rate):
                continue
            if node.matrix in self.graph.orthogonal:
                raise Unknown("an orthogonal matrix of what depends on products with its transpose")
            place = len(self.graph.nodes) + len(self._extra)
            self._extra[place] = self.field.total([[ratio, rate]])
            self.found.append(
                Correction(node.matrix, node.transpose, self._extra[place], other.vector)
            )
            earlier = yield ("vector", other.vector)
            terms.append((Par(place), other.vector))
            expr.append(mul((Par(place), earlier.expr)))
            support |= earlier.support
        if not terms:
            return own
        return (yield from self._function(add(expr), support, ()))

    def _sum(self, terms: Sequence[tuple[Expr, LRef]]) -> Rule:
        expr: list[Expr] = []
        support: frozenset[Primitive] = frozenset()
        for factor, item in terms:
            part = yield ("vector", item)
            expr.append(mul((factor, part.expr)))
            support |= part.support
        return (yield from self._function(add(expr), support, tuple(terms)))

    def _function(
        self, expr: Expr, support: frozenset[Primitive], terms: tuple[tuple[Expr, LRef], ...]
    ) -> Rule:
        """A vector from its expression; affine functions of Gaussians are Gaussians."""
        if sum(1 for _ in walk(expr)) > LARGEST:
            raise Unknown("a function of too many Gaussians")
        form = affine(expr)
        if form is None or not form[0]:
            return Vector(expr, support, terms)
        number = yield ("derived", form)
        return Vector(Var(number), frozenset(self._gaussians[number].parts), (), number)

    def _named(self, gaussian: Gaussian[T]) -> Vector:
        self._gaussians.append(gaussian)
        number = len(self._gaussians) - 1
        return Vector(Var(number), frozenset(gaussian.parts), (), number)

    def _derive(self, form: Affine) -> Rule:
        """The number of the Gaussian that is an affine function of others."""
        if len(form[0]) == 1 and form[0][0][1] == const(1) and form[1] == const(0):
            return form[0][0][0]
        parts: dict[Primitive, list[list[T]]] = {}
        constant = yield from self._number(form[1])
        means: list[list[T]] = [[constant]]
        for place, expr in form[0]:
            factor = yield from self._number(expr)
            gaussian = self._gaussians[place]
            means.append([factor, gaussian.mean])
            for primitive, coefficient in gaussian.parts.items():
                parts.setdefault(primitive, []).append([factor, coefficient])
        made = {primitive: self.field.total(own) for primitive, own in parts.items()}
        kept = {p: value for p, value in made.items() if not self.field.is_zero(value)}
        return self._named(Gaussian(kept, self.field.total(means))).gaussian

    # -- scalars -----------------------------------------------------------------------------

    def _number(self, expr: Expr) -> Rule:
        """The value of an expression of scalars."""
        values: dict[int, T] = {}
        for part in walk(expr):
            if isinstance(part, Par) and part.index not in values:
                if part.index in self._extra:
                    values[part.index] = self._extra[part.index]
                else:
                    values[part.index] = yield ("scalar", part.index)
        if not values and expr == const(0):
            return self.field.number(Fraction(0))
        return self.field.function(expr, values)

    def _scalar(self, ref: LRef) -> Rule:
        return (yield from _SCALARS(self.graph.nodes[ref], self))

    def _given(self, node: nodes.Number) -> Rule:
        yield from ()
        return self.field.number(node.value)

    def _scalar_apply(self, node: Nonlin) -> Rule:
        replaced: dict[Expr, Expr] = {Par(i): Par(s) for i, s in enumerate(node.scalars)}
        return (yield from self._number(substitute(_readable(node.fn).expr, replaced)))

    def _expect(self, node: nodes.Expect) -> Rule:
        if node.fn.is_inner:
            pair = (node.vectors[0], node.vectors[-1])
            return (yield ("inner", *sorted(pair)))
        replaced: dict[Expr, Expr] = {Par(i): Par(s) for i, s in enumerate(node.scalars)}
        for index, item in enumerate(node.vectors):
            vector = yield ("vector", item)
            replaced[Var(index)] = vector.expr
        return (yield ("mean", substitute(_readable(node.fn).expr, replaced)))

    # -- expectations ------------------------------------------------------------------------

    def _inner(self, left: LRef, right: LRef) -> Rule:
        """E Z Z'; sums are opened, so that what their terms share is computed once."""
        a, b = (yield ("vector", left)), (yield ("vector", right))
        if a.gaussian is not None and b.gaussian is not None:
            cov = yield ("covariance", *sorted((a.gaussian, b.gaussian)))
            means = [self._gaussians[g].mean for g in (a.gaussian, b.gaussian)]
            return self.field.total([[cov], means])
        if a.whole is not None and b.whole is not None:
            return (yield from self._covariance_of(a, b))
        if a.terms or b.terms:
            opened, other = (b, left) if b.terms else (a, right)
            total = []
            for factor, item in opened.terms:
                value = yield ("inner", *sorted((item, other)))
                total.append([(yield from self._number(factor)), value])
            return self.field.total(total)
        return (yield ("mean", mul((a.expr, b.expr))))

    def _covariance_of(self, a: Vector, b: Vector) -> Rule:
        """E of a product of two vectors that are centred: 0 by structure if they are independent.

        Opened like any other product it would be a difference of equal numbers, whose rounding
        grows from block to block of a network that subtracts means.
        """
        if not (yield from self._correlated(a.expr, b.expr)):
            return self.field.number(Fraction(0))
        left, right = a.whole, b.whole
        assert left is not None and right is not None
        product = yield ("inner", *sorted((left, right)))
        means = []
        for whole in (left, right):
            vector = yield ("vector", whole)
            means.append((yield ("mean", vector.expr)))
        return self.field.total([[product], [self.field.number(-1), *means]])

    def _correlated(self, a: Expr, b: Expr) -> Rule:
        """Whether some Gaussians of two functions are correlated."""
        for left in sorted(variables(a)):
            for right in sorted(variables(b)):
                cov = yield ("covariance", *sorted((left, right)))
                if not self.field.is_zero(cov):
                    return True
        return False

    def _mean(self, expr: Expr) -> Rule:
        """E of a function of Gaussians: independent parts are multiplied."""
        found = []
        for item in (yield from self._products(expr)):
            value = yield from self._independent(item)
            if not any(self.field.is_zero(factor) for factor in value):
                found.append([(yield from self._number(item.coefficient)), *value])
        return self.field.total(found)

    def _products(self, expr: Expr) -> Rule:
        """Expand; a function of several Gaussians makes a new one, whose number is asked first."""
        if sum(1 for _ in walk(expr)) > LARGEST:
            raise Unknown("a function of too many Gaussians")
        known: dict[Affine, int] = {}
        while True:
            missing: list[Affine] = []

            def derived(form: Affine) -> int:
                if form not in known:
                    missing.append(form)  # noqa: B023  called within this turn of the loop alone
                return known.get(form, 0)

            found: list[Product] = products(expr, derived)
            if not missing:
                return found
            for form in missing:
                known[form] = yield ("derived", form)

    def _independent(self, item: Product) -> Rule:
        """The expectations of the independent parts of a product; a single zero if one is 0."""
        places = [place for place, _ in item.factors]
        parts: list[set[int]] = []
        for index, place in enumerate(places):
            joined = {place}
            for other in places[:index]:
                cov = yield ("covariance", *sorted((place, other)))
                if not self.field.is_zero(cov):
                    joined |= next(part for part in parts if other in part)
            parts = [part for part in parts if not part & joined] + [joined]
        keys = [tuple(pair for pair in item.factors if pair[0] in part) for part in parts]
        if any(self._vanishes(key) for key in keys):
            for key in keys:  # 0 times an expectation that does not exist is not 0
                if not all(is_tame(expr) for _, expr in key):
                    yield ("component", key)
            return [self.field.number(Fraction(0))]
        values = []
        for key in keys:
            values.append((yield ("component", key)))
        return values

    def _vanishes(self, factors: tuple[tuple[int, Expr], ...]) -> bool:
        """Whether a part is odd under a change of sign of its Gaussians."""
        if not all(self.field.is_zero(self._gaussians[place].mean) for place, _ in factors):
            return False
        kinds = [is_odd(expr) for _, expr in factors]
        return None not in kinds and sum(map(bool, kinds)) % 2 == 1

    def _component(self, factors: tuple[tuple[int, Expr], ...]) -> Rule:
        places = [place for place, _ in factors]
        cov = []
        for place in places:
            row = []
            for other in places:
                row.append((yield ("covariance", *sorted((place, other)))))
            cov.append(row)
        mean = [self._gaussians[place].mean for place in places]
        return self.field.integral([expr for _, expr in factors], mean, cov)

    def _covariance(self, left: int, right: int) -> Rule:
        a, b = self._gaussians[left], self._gaussians[right]
        total = []
        for p, q in related(a, b, self._diagonal):
            value = yield ("primitive", p, q)
            if not self.field.is_zero(value):
                total.append([a.parts[p], b.parts[q], value])
        return self.field.total(total)

    def _primitive(self, p: Primitive, q: Primitive) -> Rule:
        if isinstance(p, Member) and isinstance(q, Member):
            if p.group in self.covariances:
                return self.covariances[p.group][p.index][q.index]
            cov = self._groups[p.group].cov
            if cov is None:
                return self.field.number(Fraction(int(p == q)))
            return self.field.number(cov[p.index][q.index])
        assert isinstance(p, Hat) and isinstance(q, Hat) and family(p) == family(q)
        ratio = self._ratios[self.graph.vector_dim[p.vector] or ""]
        inner = yield ("inner", *sorted((p.vector, q.vector)))
        return inner if ratio == 1 else self.field.total([[self.field.number(ratio), inner]])

    def _slope(self, ref: LRef, by: Primitive) -> Rule:
        """E of the derivative of a vector by a primitive Gaussian."""
        vector = yield ("vector", ref)
        if by not in vector.support:
            return self.field.number(Fraction(0))
        if vector.gaussian is not None:
            return self._gaussians[vector.gaussian].parts[by]
        total = []
        for factor, item in vector.terms:
            value = yield ("slope", item, by)
            if not self.field.is_zero(value):
                total.append([(yield from self._number(factor)), value])
        if vector.terms:
            return self.field.total(total)
        for place in sorted(variables(vector.expr)):
            coefficient = self._gaussians[place].parts.get(by)
            if coefficient is not None:
                value = yield ("mean", slope(vector.expr, Var(place)))
                total.append([coefficient, value])
        return self.field.total(total)


def _no_vector(node: LNode, of: Closure[Any]) -> Rule:
    raise Unknown(f"the node {type(node).__name__} has no closed form")


def _no_scalar(node: LNode, of: Closure[Any]) -> Rule:
    raise Unknown(f"the node {type(node).__name__} is random or has no closed form")


_VECTORS: Table[Rule] = Table(
    {
        nodes.Start: lambda node, of: of._start(node),
        nodes.Product: lambda node, of: of._product(node),
        LinComb: lambda node, of: of._combine(node),
        Nonlin: lambda node, of: of._apply(node),
    },
    _no_vector,
)
_SCALARS: Table[Rule] = Table(
    {
        nodes.Number: lambda node, of: of._given(node),
        Nonlin: lambda node, of: of._scalar_apply(node),
        nodes.Expect: lambda node, of: of._expect(node),
    },
    _no_scalar,
)


def _other_side(support: frozenset[Primitive], node: nodes.Product) -> list[Hat]:
    return [
        item
        for item in support
        if isinstance(item, Hat) and item.matrix == node.matrix and item.transpose != node.transpose
    ]


def _readable(fn: Fn) -> Fn:
    """A function without parts that live where another is 0: they have no place in an integral."""
    if any(isinstance(part, Call) and part.atom == AT_ZERO for part in walk(fn.expr)):
        raise Unknown("a part of a function that lives where another is 0")
    return fn
