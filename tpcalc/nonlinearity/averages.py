"""Averages of formulas of several jointly Gaussian numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from tpcalc.errors import EvaluationError, UsageError
from tpcalc.evaluate.chain import chosen
from tpcalc.evaluate.expect import chain_of
from tpcalc.functions import Const, Expr, Fn, Var, const
from tpcalc.functions.expr import Add, add, mul, substitute
from tpcalc.integrals.bounded import EPS, METHODS, Bounded, bounded
from tpcalc.nonlinearity.laws import Gaussian
from tpcalc.nonlinearity.polynomials import expanded
from tpcalc.program.nodes import Family
from tpcalc.results import Method


class Averages:
    """E of formulas of x0, ..., x_{d-1}, the deviations of a Gaussian law from its mean."""

    def __init__(self, law: Gaussian, method: str = "auto") -> None:
        self.mean, self.cov = law.entries()
        self.methods = chosen(method)
        self._known: dict[tuple[Expr, ...], Bounded] = {}
        if not self.methods:
            raise UsageError(
                "formulas take no particles here.",
                hint="numpy_form gives the function as code, which sampled_nlc takes.",
            )

    def shifted(self, expr: Expr) -> Expr:
        """A formula of the inputs as one of their deviations from the mean."""
        # Means that are large next to the deviations cancel here, and not in averages.
        moved: dict[Expr, Expr] = {Var(i): Var(i) + mean for i, mean in enumerate(self.mean)}
        return expanded(substitute(expr, moved), len(self.mean))

    def of(self, *factors: Expr) -> Bounded:
        """E of a product.

        Args:
            factors: One or two formulas.

        Raises:
            EvaluationError: It has no closed form and no quadrature, or is infinite.
        """
        if any(factor == const(0) for factor in factors):
            return Bounded(0.0)
        if factors not in self._known:
            self._known[factors] = self._evaluated(expanded(mul(factors), len(self.mean)))
        return self._known[factors]

    def _evaluated(self, product: Expr) -> Bounded:
        rows = tuple(tuple(row) for row in self.cov)
        group = Family.group("x", "n", (Fraction(0),) * len(rows), rows)
        chain = chain_of(product, group, self.methods)
        found = chain.estimates("E")[0]
        if found is None:
            raise EvaluationError(
                f"E {product.text} has no closed form and no quadrature here: "
                f"{chain.reasons.get('E', 'it is not covered')}.",
                hint="numpy_form gives the function as code, which sampled_nlc takes.",
            )
        return bounded(found)


def total(terms: Iterable[Bounded]) -> Bounded:
    """A sum with the rounding of its terms in the error."""
    value = error = size = 0.0
    method, count = Method.EXACT, 0
    for term in terms:
        value, error = value + term.value, error + term.error
        size, count = size + abs(term.value), count + 1
        method = max((method, term.method), key=METHODS.index)
    rounding = EPS * size * (count - 1) if count > 1 else 0.0
    return Bounded(value, error + rounding, method)


def outputs_of(function: Any, dimension: int) -> tuple[Expr, ...]:
    """The outputs of a function of d numbers that is given as formulas."""
    found = function
    if callable(function) and not isinstance(function, Expr | Fn):
        found = _called(function, dimension)
    parts = list(found) if isinstance(found, list | tuple) else [found]
    outputs = []
    for part in parts:
        expr = part.expr if isinstance(part, Fn) else part
        if isinstance(expr, int | float | Fraction) and not isinstance(expr, bool):
            expr = const(expr)
        if not isinstance(expr, Expr):
            raise UsageError(
                f"an output is a {type(part).__name__}, not a formula.",
                hint="Write it with + - * / ** and the functions of tpcalc; sampled_nlc takes "
                "numpy code.",
            )
        vectors, scalars = Fn(expr, 2**31, 2**31).uses
        if scalars or any(index >= dimension for index in vectors):
            raise UsageError(
                f"{expr.text} uses numbers that are not there; the law has {dimension}: "
                f"x0 to x{dimension - 1}."
            )
        outputs.append(expr)
    if not outputs:
        raise UsageError("the function has no outputs.")
    return tuple(outputs)


def _called(function: Callable[..., Any], dimension: int) -> Any:
    try:
        return function(*(Var(index) for index in range(dimension)))
    except (TypeError, AttributeError, ValueError) as error:
        raise UsageError(
            f"the function does not take {dimension} formulas: {error}.",
            hint="Write it with + - * / ** and the functions of tpcalc; sampled_nlc takes numpy "
            "code.",
        ) from None


def without_constant(expr: Expr) -> Expr:
    """A formula without the number that is added in it."""
    if isinstance(expr, Add):
        return add(term for term in expr.terms if not isinstance(term, Const))
    return const(0) if isinstance(expr, Const) else expr
