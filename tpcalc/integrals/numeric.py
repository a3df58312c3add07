"""Numbers with error bounds, or arrays of them: closed forms first, then quadrature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from tpcalc.errors import EvaluationError
from tpcalc.functions import Call, Expr, Fn, Par, Var
from tpcalc.functions.expr import Pow, substitute, walk
from tpcalc.functions.tape import evaluate
from tpcalc.integrals.average import METHODS, Way, ways
from tpcalc.integrals.bounded import EPS, Bounded
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.slopes import jumps
from tpcalc.results import Method

WORST = 1e-6  # relative to the scale of an integral: an error above it is for particles to beat
LARGEST = 1e100  # beyond it, squares and products may overflow
UNDERFLOW = 1e-290
ZERO = Bounded(0.0)


@dataclass
class Work:
    """How many integrals may still be evaluated, in units of one closed form."""

    left: int  # the units

    def spend(self, method: Method, dimension: int) -> None:
        """Count an integral."""
        cost = 1 if method is Method.EXACT else 3 if dimension == 1 else 40
        self.left -= cost
        if self.left < 0:
            raise Unknown("more integrals than are worth their time")


@dataclass(frozen=True, slots=True)
class Numeric:
    """Arithmetic of answers.

    Example:
        >>> half = Numeric().number(Fraction(1, 2))
        >>> Numeric().total([[half, half], [half]]).value
        0.75
    """

    methods: tuple[Method, ...] = METHODS  # what may evaluate an integral, in this order
    # whether errors of covariances are followed through integrals, at the price of one more
    # evaluation for each; without, the bound covers the evaluation alone
    follow: bool = True
    work: Work | None = None  # how many integrals may be evaluated; None: any number

    def number(self, value: Fraction | float) -> Bounded:
        """A given number; a fraction may be rounded."""
        if value == 0:
            return ZERO
        found = float(value)
        rounded = isinstance(value, Fraction) and Fraction(found) != value
        return Bounded(found, abs(found) * EPS if rounded else 0.0)

    def is_zero(self, value: Bounded) -> bool:
        """Whether an answer is 0 by structure."""
        return value.is_zero

    def total(self, terms: Sequence[Sequence[Bounded]]) -> Bounded:
        """The sum of products."""
        value: Any = 0.0
        error: Any = 0.0
        size: Any = 0.0
        methods = set()
        count = 0
        for factors in terms:
            if any(factor.is_zero for factor in factors):
                continue
            product: Any = 1.0
            off: Any = 0.0
            for factor in factors:
                off = np.abs(product) * factor.error + off * (np.abs(factor.value) + factor.error)
                product = product * factor.value
                methods.add(factor.method)
            count += len(factors)
            value, error, size = value + product, error + off, size + np.abs(product)
        if not count:
            return ZERO
        rounding = 0.0 if count == 1 else EPS * count
        return Bounded(value, error + rounding * size, max(methods, default=Method.EXACT))

    def function(self, expr: Expr, scalars: Mapping[int, Bounded]) -> Bounded:
        """A function of scalars, its error found by moving one argument at a time.

        Args:
            expr: The function; ``Par(i)`` stands for ``scalars[i]``.
            scalars: The values.

        Raises:
            Unknown: It is not finite or jumps within the error.
        """
        if isinstance(expr, Par):
            return scalars[expr.index]
        own = [part for part in dict.fromkeys(walk(expr)) if isinstance(part, Par)]
        given = [scalars[part.index] for part in own]
        fn = Fn(substitute(expr, {part: Par(i) for i, part in enumerate(own)}), 0, len(own))
        _refuse_jumps(fn, given)
        value = _value(fn, [answer.value for answer in given])
        error: Any = 4 * EPS * (1 + len(own)) * np.abs(value)
        for place, answer in enumerate(given):
            if not np.any(np.asarray(answer.error) > 0):
                continue
            for sign in (1.0, -1.0):
                moved = [other.value for other in given]
                moved[place] = answer.value + sign * answer.error
                error = error + np.abs(_value(fn, moved) - value)
        if not np.all(np.isfinite(value)) or not np.all(np.isfinite(error)):
            raise Unknown(f"{expr.text} of scalars is not finite")
        return Bounded(value, error, max((answer.method for answer in given), default=Method.EXACT))

    def integral(
        self, factors: Sequence[Expr], mean: Sequence[Bounded], cov: Sequence[Sequence[Bounded]]
    ) -> Bounded:
        """E of a product of functions of one Gaussian each."""
        means = [answer.value for answer in mean]
        covs = [[answer.value for answer in row] for row in cov]
        if not all(np.all(np.abs(value) < LARGEST) for row in (means, *covs) for value in row):
            raise EvaluationError(
                "an expectation is over Gaussians whose size leaves the floating-point range.",
                hint="Scale the inputs, or check the powers of n and the rates.",
            )
        _refuse_flat_jumps(factors, cov)
        for method, expectation in ways(factors, self.methods):
            if self.work is not None:
                self.work.spend(method, len(factors))
            found = expectation(factors, means, covs)
            if found is not None and np.any(np.isinf(found.value)):
                raise EvaluationError(
                    f"E of {_texts(factors)} leaves the floating-point range or is infinite.",
                    hint="Scale the functions, or the variances of what they are applied to.",
                )
            if found is None or not np.all(np.isfinite(found.value)):
                continue
            error = _without_underflow(found, cov)
            if self.follow:
                error = error + self._followed(
                    (method, expectation), factors, mean, cov, found.value
                )
            if np.any(error > WORST * (np.abs(found.value) + error)) and np.any(error > WORST):
                continue
            inner = {answer.method for row in (mean, *cov) for answer in row if not answer.is_zero}
            return Bounded(found.value, error, max({method, *inner}))
        tried = {Method.EXACT: "closed form", Method.QUADRATURE: "quadrature"}
        names = " or ".join(tried[method] for method in self.methods)
        raise Unknown(f"no {names} for E of {_texts(factors)}")

    def _followed(
        self,
        way: tuple[Method, Way],
        factors: Sequence[Expr],
        mean: Sequence[Bounded],
        cov: Sequence[Sequence[Bounded]],
        value: Any,
    ) -> Any:
        """What the errors of means and covariances make of an integral, one at a time."""
        means = [answer.value for answer in mean]
        covs = [[answer.value for answer in row] for row in cov]
        total: Any = 0.0

        def again(place: str) -> Any:
            if self.work is not None:
                self.work.spend(way[0], len(factors))
            found = way[1](factors, means, covs)
            if found is None:
                raise Unknown(f"an integral that has no value where {place} is moved by its error")
            return np.abs(found.value - value)

        for i, answer in enumerate(mean):
            if np.any(np.asarray(answer.error) > 0):
                means[i] = answer.value + answer.error
                total = total + again("a mean")
                means[i] = answer.value
        for i, j in combinations_with_replacement(range(len(factors)), 2):
            answer = cov[i][j]
            if not np.any(np.asarray(answer.error) > 0):
                continue
            # A covariance moves towards 0 and a variance up, so that they stay ones.
            side = 1.0 if i == j else -np.sign(answer.value)
            covs[i][j] = covs[j][i] = answer.value + side * answer.error
            total = total + again("a covariance")
            covs[i][j] = covs[j][i] = answer.value
        return total


def _without_underflow(computed: Bounded, cov: Sequence[Sequence[Bounded]]) -> Any:
    """The error of an integral, without what is left to underflow where a Gaussian is a number.

    A variance of 0 must stay exactly that in the next layer, where a step may read its sign.
    """
    constant: Any = False
    for place, row in enumerate(cov):
        own = row[place]
        constant = constant | ((np.asarray(own.value) == 0) & (np.asarray(own.error) == 0))
    return np.where(constant & (computed.error <= UNDERFLOW), 0.0, computed.error)[()]


def _texts(factors: Sequence[Expr]) -> str:
    parts = [factor.text.replace("x0", f"z{i}") for i, factor in enumerate(factors)]
    return parts[0] if len(parts) == 1 else "the product of " + ", ".join(parts)


def _refuse_flat_jumps(factors: Sequence[Expr], cov: Sequence[Sequence[Bounded]]) -> None:
    """A jump of a Gaussian whose variance may be 0 or not: no method could tell its value."""
    for place, factor in enumerate(factors):
        own = cov[place][place]
        flat = (np.asarray(own.error) > 0) & (np.abs(own.value) <= 5 * np.asarray(own.error))
        if np.any(flat) and jumps(factor, Var(0)):
            raise EvaluationError(
                f"{factor.text.replace('x0', 'z')} jumps, and its argument has the variance 0 "
                "within its rounding error: its expectation cannot be told.",
                hint="Write it without terms that cancel. Inputs that are 0 need biases.",
            )


def _value(fn: Fn, given: Sequence[Any]) -> Any:
    with np.errstate(all="ignore"):
        return evaluate(fn, [], given) if fn.scalars else evaluate(fn, [])


def _refuse_jumps(fn: Fn, given: Sequence[Bounded]) -> None:
    """A jump or a pole within the error of its argument has no value that could be told."""
    for part in walk(fn.expr):
        if isinstance(part, Call) and part.atom.facts.kinks:
            inner, marks = part.arg, part.atom.facts.kinks
        elif isinstance(part, Pow) and part.exponent < 0:
            inner, marks = part.base, (0.0,)
        else:
            continue
        found = Numeric().function(inner, dict(enumerate(given)))
        if any(np.any(np.abs(found.value - mark) <= 5 * found.error) for mark in marks):
            raise Unknown(f"{part.text} of scalars that are at a jump or pole within their error")
