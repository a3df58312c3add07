"""Values with the size of what they are the sum of, and slopes along random directions.

A number counts as 0 where it is below the rounding of the terms that it was made of: a sum of
functions that cancel on a part of the coordinates leaves 1e-17 there, or 0, as chance has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import NotDifferentiable
from tpcalc.functions import Call, Const, Expr, Fn, Var
from tpcalc.functions.atoms import Atom
from tpcalc.functions.expr import Add, Mul, Pow
from tpcalc.functions.indicator import HIDDEN
from tpcalc.functions.tape import evaluate, numpy_space

ROUNDING = 1e-11  # of the terms: what is smaller may be all that rounding left
STEP = 1e-6
UNKNOWN = 1e200  # the size of the terms of a slope that may be another's: it may be 0


class Unvalued(Exception):
    """A node that samples give no value; the text says why."""

    def __init__(self, text: str, *, symbolic: bool = False) -> None:
        self.symbolic = symbolic
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Dual:
    """A quantity at all samples, and more of it at the common ones."""

    value: Array  # shape (replicates, samples); broadcastable where it is a number
    size: Array  # at the common samples: the sum of the absolute values of its terms
    slope: Array | None = None  # along random directions, first axis; None where it is 0 by form
    steep: Array | None = None  # the size of the terms of the slope


def constant(value: Any, size: Any = None) -> Dual:
    """A number for each replicate, or one for all."""
    column = np.asarray(value, dtype=float).reshape(-1, 1)
    return Dual(column, np.abs(column) if size is None else np.asarray(size).reshape(-1, 1))


def exact(value: Any) -> Dual:
    """Numbers that are what they are: no terms, no rounding."""
    column = np.asarray(value, dtype=float).reshape(-1, 1)
    return Dual(column, np.zeros((1, 1)))


def shared(dual: Dual, common: int) -> Array:
    """The values at the common samples, or those of a number."""
    return dual.value[..., common:] if dual.value.shape[-1] > 1 else dual.value


def dual(expr: Expr, arguments: Mapping[Expr, Dual], common: int) -> Dual:
    """An expression of duals."""
    known: dict[Expr, Dual] = dict(arguments)

    def at(dual: Dual) -> Array:
        return shared(dual, common)

    def visit(part: Expr) -> Dual:
        found = known.get(part)
        if found is None:
            found = known[part] = compute(part)
        return found

    def compute(part: Expr) -> Dual:
        if isinstance(part, Const):
            return constant(float(part.value))
        if isinstance(part, Add):
            return total([visit(term) for term in part.terms])
        if isinstance(part, Mul):
            found = visit(part.factors[0])
            for factor in part.factors[1:]:
                found = product(found, visit(factor), at)
            return found
        if isinstance(part, Pow):
            return _power(visit(part.base), float(part.exponent), at, part)
        assert isinstance(part, Call)
        return _call(visit(part.arg), part.atom, at)

    return visit(expr)


def _plus(a: Array | None, b: Array | None) -> Array | None:
    if a is None or b is None:
        return a if b is None else b
    return a + b


def _times(a: Array, b: Array | None) -> Array | None:
    return None if b is None else a * b


def total(terms: Sequence[Dual]) -> Dual:
    """A sum."""
    value, size = terms[0].value, terms[0].size
    slope, steep = terms[0].slope, terms[0].steep
    for term in terms[1:]:
        value, size = value + term.value, size + term.size
        slope, steep = _plus(slope, term.slope), _plus(steep, term.steep)
    return Dual(value, size, slope, steep)


def mixed(parts: Sequence[tuple[Dual, Dual]], common: int) -> Dual:
    """A sum of vectors with numbers in front; what numbers are made of counts beside them."""
    value, size, slope, steep = _Sum(), _Sum(), _Sum(), _Sum()
    for number, vector in parts:
        weight = np.abs(number.value)
        value.add(number.value, vector.value)
        size.add(weight, vector.size)
        doubt = number.size if np.any(number.size) else None
        if doubt is not None:
            size.add(doubt, np.abs(shared(vector, common)))
        if vector.slope is not None and vector.steep is not None:
            slope.add(number.value, vector.slope)
            steep.add(weight, vector.steep)
            if doubt is not None:
                steep.add(doubt, np.max(np.abs(vector.slope), axis=0))
    none = np.zeros((1, 1))
    return Dual(
        none if value.total is None else value.total,
        none if size.total is None else size.total,
        slope.total,
        steep.total,
    )


class _Sum:
    """A sum of multiples of arrays, in place where shapes allow: most time is memory."""

    def __init__(self) -> None:
        self.total: Array | None = None
        self._term: Array | None = None

    def add(self, factor: Array, of: Array) -> None:
        """Add a multiple."""
        if self.total is None:
            self.total = factor * of
            return
        if of.shape == self.total.shape and factor.size == 1 and factor[0, 0] == 1.0:
            self.total += of
            return
        if of.shape == self.total.shape and factor.shape[0] in (1, of.shape[-2]):
            self._term = np.multiply(factor, of, out=self._term)  # a column for each replicate
            self.total += self._term
        else:
            term = factor * of
            if term.shape == self.total.shape:
                self.total += term
            else:
                self.total, self._term = self.total + term, None


def product(a: Dual, b: Dual, at: Callable[[Dual], Array]) -> Dual:
    """A product, with rounding to first order."""
    x, y = at(a), at(b)
    return Dual(
        a.value * b.value,
        np.abs(x) * b.size + np.abs(y) * a.size,
        _plus(_times(x, b.slope), _times(y, a.slope)),
        _plus(_steep(x, a.size, b), _steep(y, b.size, a)),
    )


def _steep(factor: Array, size: Array, of: Dual) -> Array | None:
    """The size of the terms of a factor times a slope."""
    if of.slope is None or of.steep is None:
        return None
    found: Array = np.abs(factor) * of.steep + size * np.max(np.abs(of.slope), axis=0)
    return found


def _power(base: Dual, exponent: float, at: Any, part: Pow) -> Dual:
    value = np.asarray(evaluate(_monomial(part.exponent), [base.value]), dtype=float)
    here = at(base)
    rate = exponent * here ** (exponent - 1.0)
    bend = np.abs(exponent * (exponent - 1.0) * here ** (exponent - 2.0)) if exponent != 1 else 0.0
    size = np.abs(at(Dual(value, value))) + np.abs(rate) * base.size
    return Dual(value, size, _times(rate, base.slope), _steep(rate, bend * base.size, base))


@lru_cache(maxsize=256)
def _monomial(exponent: Any) -> Fn:
    return Fn(Var(0) ** exponent, 1)


@lru_cache(maxsize=1024)
def _slope_of(atom: Atom) -> Callable[[Array], Array] | None:
    """The derivative of an atom away from its jumps and infinities; None: 0."""
    if atom.derivative is None:
        return None
    try:
        fn = Fn(atom.derivative(Var(0)), 1)
    except NotDifferentiable:  # it grows without bound at a point: differences serve elsewhere
        space = numpy_space()

        def difference(z: Array) -> Array:
            found: Array = atom.evaluate(space, z + STEP) - atom.evaluate(space, z - STEP)
            return found / (2 * STEP)

        return difference
    return lambda z: np.asarray(evaluate(fn, [z]), dtype=float)


def _call(arg: Dual, atom: Atom, at: Any) -> Dual:
    if atom.name == HIDDEN:
        raise Unvalued("gates that smaller terms decide")
    inner = arg.value
    for kink in atom.facts.kinks:  # what is on a kink but for rounding is on it
        within = ROUNDING * (float(np.mean(arg.size)) + abs(kink))
        inner = np.where(np.abs(inner - kink) <= within, kink, inner)
    here = at(Dual(inner, arg.size))
    value = np.asarray(atom.evaluate(numpy_space(), inner), dtype=float)
    found = _slope_of(atom)
    size = np.abs(at(Dual(value, value)))
    if found is None:
        return Dual(value, size)
    rate = found(here)
    rate = np.where(np.isfinite(rate), rate, 0.0)
    steep = np.full((1, 1), UNKNOWN) if atom.facts.surrogate else _steep(rate, np.abs(rate), arg)
    return Dual(value, size + np.abs(rate) * arg.size, _times(rate, arg.slope), steep)
