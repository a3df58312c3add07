"""The Gaussians of a limit graph, and functions of several as sums of products of those of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from tpcalc.functions import Call, Const, Expr, Par, Var, const
from tpcalc.functions.expr import Add, Mul, Pow, add, mul, power, substitute, variables, walk
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.exact import DELTA
from tpcalc.limit.graph import LRef
from tpcalc.results.data import grouped

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Member:
    """Member ``index`` of a group of start vectors."""

    group: str
    index: int


@dataclass(frozen=True, slots=True)
class Hat:
    """The Gaussian part of a product with a matrix."""

    matrix: str
    transpose: bool
    vector: LRef


Primitive = Member | Hat


def family(primitive: Primitive) -> tuple[str, ...]:
    """What is correlated at all: one group, or one side of one matrix.

    Example:
        >>> family(Hat("W", True, 3)) == family(Hat("W", True, 4))
        True
    """
    if isinstance(primitive, Member):
        return ("start", primitive.group)
    return ("matrix", primitive.matrix, "T" if primitive.transpose else "")


@dataclass(frozen=True)
class Gaussian(Generic[T]):
    """A linear combination of primitives plus a number.

    Args:
        parts: The coefficient of each primitive.
        mean: The number (the means of start vectors are in the primitives).
    """

    parts: Mapping[Primitive, T]
    mean: T


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector as a function of Gaussians.

    Args:
        expr: The function; ``Var(i)`` is Gaussian i, ``Par(i)`` scalar i.
        support: What it depends on.
        terms: Of a sum: coefficient and vector of each term.
        gaussian: Its own number where it is Gaussian itself.
        whole: Of a vector minus its own average: that vector.
    """

    expr: Expr
    support: frozenset[Primitive]
    terms: tuple[tuple[Expr, LRef], ...] = ()
    gaussian: int | None = None
    whole: LRef | None = None


@dataclass(frozen=True, slots=True)
class Correction(Generic[T]):
    """A product with a matrix that its vector depends on: hat + coefficient * Z of ``earlier``."""

    matrix: str
    transpose: bool  # whether it is the transposed matrix that is applied
    coefficient: T  # the number in front
    earlier: LRef  # the vector that the other side of the matrix was applied to


def related(
    left: Gaussian[T], right: Gaussian[T], diagonal: frozenset[str]
) -> Iterator[tuple[Primitive, Primitive]]:
    """The pairs of primitives of two Gaussians that may be correlated.

    Example:
        >>> u = Gaussian({Member("u", 0): 1.0, Member("u", 1): 1.0}, 0.0)
        >>> len(list(related(u, u, frozenset()))), len(list(related(u, u, frozenset({"u"}))))
        (4, 2)
    """
    own = grouped(right.parts, family)
    for p in left.parts:
        if isinstance(p, Member) and p.group in diagonal:
            if p in right.parts:
                yield p, p
        else:
            for q in own.get(family(p), ()):
                yield p, q


MOST = 4096  # terms of an expanded product

Affine = tuple[tuple[tuple[int, Expr], ...], Expr]  # coefficients of Gaussians, and a constant


@dataclass(frozen=True, slots=True)
class Product:
    """A coefficient times functions of one Gaussian each.

    Args:
        coefficient: An expression of scalars.
        factors: For each Gaussian its number and the function of it, an expression of ``Var(0)``.
    """

    coefficient: Expr
    factors: tuple[tuple[int, Expr], ...]


def products(expr: Expr, derived: Callable[[Affine], int]) -> list[Product]:
    """Expand a function of Gaussians into products.

    Example:
        >>> found = products((Var(0) + Var(1)) * Var(0), lambda form: 2)
        >>> [[number for number, _ in item.factors] for item in found]
        [[0], [0, 1]]
    """
    total: dict[tuple[tuple[int, Expr], ...], list[Expr]] = {}
    for factors in _terms(expr, derived):
        constants: list[Expr] = []
        own: dict[int, list[Expr]] = {}
        for factor in factors:
            if not variables(factor):
                constants.append(factor)
            else:
                (place,) = variables(factor)
                own.setdefault(place, []).append(substitute(factor, {Var(place): Var(0)}))
        key = tuple((place, mul(own[place])) for place in sorted(own))
        total.setdefault(key, []).append(mul(constants))
    out = [Product(add(parts), key) for key, parts in total.items()]
    return [item for item in out if item.coefficient != const(0)]


def _terms(expr: Expr, derived: Callable[[Affine], int]) -> list[tuple[Expr, ...]]:
    """Lists of factors, each a function of one Gaussian or of none."""
    if isinstance(expr, Add):
        return _bounded([term for part in expr.terms for term in _terms(part, derived)])
    if isinstance(expr, Mul):
        found: list[tuple[Expr, ...]] = [()]
        for factor in expr.factors:
            own = _terms(factor, derived)
            found = _bounded([left + right for left in found for right in own])
        return found
    if len(variables(expr)) <= 1 and not _mixed(expr):
        if isinstance(expr, Pow) and isinstance(expr.base, Add) and _is_count(expr.exponent):
            return _opened(expr, derived)
        return [(expr,)]
    if isinstance(expr, Pow) and _is_count(expr.exponent):
        return _opened(expr, derived)
    if isinstance(expr, Call):
        return [(expr.atom(_argument(expr.arg, derived)),)]
    if isinstance(expr, Pow):
        return [(power(_argument(expr.base, derived), expr.exponent),)]
    raise AssertionError(type(expr))  # variables and numbers hold one Gaussian at most


def _opened(expr: Pow, derived: Callable[[Affine], int]) -> list[tuple[Expr, ...]]:
    """A power of a sum, multiplied out."""
    found: list[tuple[Expr, ...]] = [()]
    base = _terms(expr.base, derived)
    for _ in range(int(expr.exponent)):
        found = _bounded([left + right for left in found for right in base])
    return found


def _argument(expr: Expr, derived: Callable[[Affine], int]) -> Expr:
    """The argument of a named function as one Gaussian."""
    form = affine(expr)
    if form is None:
        raise Unknown(f"a function of {expr.text}, which is not Gaussian")
    return Var(derived(form))


def affine(expr: Expr) -> Affine | None:
    """An expression as an affine function of Gaussians; None where it is none.

    Example:
        >>> affine(2 * Var(3) + 1)[0][0][0]
        3
    """
    coefficients: dict[int, list[Expr]] = {}
    constants: list[Expr] = []
    for factors in _plain_terms(expr):
        places = [factor for factor in factors if variables(factor)]
        rest = mul(factor for factor in factors if not variables(factor))
        if not places:
            constants.append(rest)
        elif len(places) == 1 and isinstance(places[0], Var):
            coefficients.setdefault(places[0].index, []).append(rest)
        else:
            return None
    return tuple((place, add(parts)) for place, parts in coefficients.items()), add(constants)


def _plain_terms(expr: Expr) -> Iterator[tuple[Expr, ...]]:
    """The terms of a sum, with sums that are factors beside scalars multiplied out."""
    if isinstance(expr, Add):
        for term in expr.terms:
            yield from _plain_terms(term)
        return
    factors = expr.factors if isinstance(expr, Mul) else (expr,)
    for index, factor in enumerate(factors):
        if isinstance(factor, Add) and variables(factor):
            rest = (*factors[:index], *factors[index + 1 :])
            for term in factor.terms:
                yield from _plain_terms(mul((term, *rest)))
            return
    yield factors


def _bounded(terms: list[tuple[Expr, ...]]) -> list[tuple[Expr, ...]]:
    if len(terms) > MOST:
        raise Unknown(f"a product of more than {MOST} terms")
    return terms


def _is_count(exponent: Fraction) -> bool:
    return exponent.denominator == 1 and 0 < exponent <= 64


def _mixed(expr: Expr) -> bool:
    """Whether a function of a Gaussian holds scalars as well."""
    parts = list(walk(expr))
    return any(isinstance(p, Var) for p in parts) and any(isinstance(p, Par) for p in parts)


def is_tame(expr: Expr) -> bool:
    """Whether a function grows like a polynomial at most, and is bounded near every point."""
    return all(
        (not isinstance(part, Call) or part.atom.facts.growth is not None or part.atom == DELTA)
        and (not isinstance(part, Pow) or part.exponent > 0)
        for part in walk(expr)
    )


def is_odd(expr: Expr) -> bool | None:
    """Whether a function of ``Var(0)`` is odd (True), even (False) or neither (None).

    Example:
        >>> is_odd(Var(0) ** 3), is_odd(Var(0) ** 2), is_odd(Var(0) + 1)
        (True, False, None)
    """
    if isinstance(expr, Var):
        return True
    if isinstance(expr, Const | Par):
        return False
    if isinstance(expr, Add):
        kinds = {is_odd(term) for term in expr.terms}
        return kinds.pop() if len(kinds) == 1 else None
    if isinstance(expr, Mul):
        parts = [is_odd(factor) for factor in expr.factors]
        return None if None in parts else sum(map(bool, parts)) % 2 == 1
    if isinstance(expr, Pow):
        inner = is_odd(expr.base)
        if inner is False:
            return False
        whole = expr.exponent.denominator == 1
        return None if inner is None or not whole else int(expr.exponent) % 2 == 1
    assert isinstance(expr, Call)
    inner = is_odd(expr.arg)
    if inner is False:
        return False
    declared = expr.atom.facts.parity
    return None if inner is None or declared == "none" else declared == "odd"
