"""``expect`` and ``closed_form``: one Gaussian expectation, as a number or as a formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from inspect import Parameter, signature
from typing import Any

from tpcalc import checks
from tpcalc.dsl.elementwise import expression
from tpcalc.errors import EvaluationError, TraceError, UsageError
from tpcalc.evaluate.chain import Chain, chosen
from tpcalc.evaluate.closure.gaussians import Affine, products
from tpcalc.evaluate.limit import limit
from tpcalc.functions import Expr, Fn, Var, const
from tpcalc.functions.symbolic import to_sympy
from tpcalc.integrals import exact
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.symbolic import exactly, with_fractions
from tpcalc.limit.graph import Expect, LimitGraph, LNode, Start, Target
from tpcalc.program.nodes import Family, Moment, members
from tpcalc.program.program import Builder
from tpcalc.results import Estimate, Method


def expect(
    fn: Callable[..., Any],
    cov: Any = 1,
    mean: Any = 0,
    *,
    method: str = "auto",
    seed: int = 0,
) -> Estimate:
    """E fn(G_1, ..., G_k) for jointly Gaussian G.

    Args:
        fn: A function of k arguments, written with the activations of ``tp``.
        cov: The k x k covariance matrix, or the variance of one Gaussian; numbers.
        mean: The means; one number stands for all.
        method: As of ``tp.limit``.
        seed: Of particles.

    Returns:
        The value with its error and method; with a formula where it has a closed form.

    Raises:
        TraceError: ``fn`` is no function of expressions.
        UsageError: Covariances or means that are no numbers, or of another size.
        ProgramError: A matrix that is no covariance.
        EvaluationError: The method does not give it.

    Source: Daniely, Frostig, Singer, Toward deeper understanding of neural networks, section 4.1
        (duals of activations).

    Example:
        >>> import tpcalc as tp
        >>> print(expect(lambda u, v: tp.relu(u) * tp.relu(v), [[1, 0.5], [0.5, 1]]))
        0.304499 (exact)
        >>> expect(lambda z: tp.erf(z) ** 2).formula
        '2*asin(2/3)/pi'
    """
    expr, count = _traced(fn)
    rows = _matrix(cov, count)
    means = _vector(mean, count)
    for name, values in (("cov", [value for row in rows for value in row]), ("mean", means)):
        for value in values:
            checks.real(value, f"an entry of {name}", hint="tp.closed_form takes symbols.")
    builder = Builder()
    numbers = tuple(tuple(checks.real(value, "cov") for value in row) for row in rows)
    center = tuple(checks.real(value, "mean") for value in means)
    family = Family.group("G", "n", center, numbers)
    vectors = tuple(builder.add(cell) for cell in members(family))
    builder.output("E", builder.add(Moment(Fn(expr, count), vectors)))
    program = builder.finish()
    chain = chain_of(expr, family, chosen(method))
    direct = chain.estimates("E")[0]
    if direct is not None:
        return chain.with_formula("E", direct)
    return limit(program, method=method, seed=seed)["E"]


def chain_of(expr: Expr, family: Family, methods: tuple[Method, ...]) -> Chain:
    """The average "E" of a formula of the numbers of a Gaussian group."""
    # Not through a derivation, which takes what is odd for 0 only where it has a mean square.
    count = family.size
    starts: list[LNode] = [Start(family.name, index) for index in range(count)]
    average = Expect(Fn(expr, count), tuple(range(count)))
    target, sizes = ("E", Target(Fraction(0), count)), (*("n" for _ in range(count)), None)
    return Chain(LimitGraph((*starts, average), (target,), sizes, (), (family,), ()), methods)


def closed_form(fn: Callable[..., Any], cov: Any = 1, mean: Any = 0) -> Any:
    """E fn(G_1, ..., G_k) for jointly Gaussian G as a formula.

    Args:
        fn: A function of k arguments, written with the activations of ``tp``.
        cov: The k x k covariance matrix, or the variance of one Gaussian: numbers and sympy
            expressions. Symbols for variances should be declared positive.
        mean: The means; one expression stands for all.

    Returns:
        A sympy expression.

    Raises:
        TraceError: ``fn`` is no function of expressions.
        UsageError: Covariances or means of another size.
        EvaluationError: It has no closed form.

    Source: Cho, Saul, Kernel methods for deep learning (2009), equation (1), for ReLU powers;
        Williams, Computing with infinite networks (1997), equation (11), for erf.

    Example:
        >>> import sympy, tpcalc as tp
        >>> q = sympy.Symbol("q", positive=True)
        >>> closed_form(lambda z: tp.relu(z) ** 2, q)
        q/2
    """
    import sympy

    expr, count = _traced(fn)
    gaussians = _Gaussians(
        [[_sympy(value) for value in row] for row in _matrix(cov, count)],
        [_sympy(value) for value in _vector(mean, count)],
    )
    for place, row in enumerate(gaussians.cov):
        if row[place].is_negative:
            raise UsageError(f"the variance of argument {place} is {row[place]}, below 0.")
    total = []
    try:
        for item in products(expr, gaussians):
            places = [place for place, _ in item.factors]
            value = exact.formula(
                [with_fractions(factor) for _, factor in item.factors],
                [gaussians.mean[i] for i in places],
                [[gaussians.cov[i][j] for j in places] for i in places],
            )
            if value is None:
                raise Unknown("a term of it has none")
            total.append(exactly(value * to_sympy(item.coefficient, [])))
    except Unknown as reason:
        raise EvaluationError(
            f"E of {expr.text} has no closed form here: {reason}.",
            hint="tp.expect gives it as a number.",
        ) from None
    return sympy.Add(*total)


@dataclass
class _Gaussians:
    """Symbolic Gaussians, to which linear combinations are added as they are met."""

    cov: list[list[Any]]
    mean: list[Any]
    forms: dict[Affine, int] = field(default_factory=dict)

    def __call__(self, form: Affine) -> int:
        if form in self.forms:
            return self.forms[form]
        weights = [(place, to_sympy(factor, [])) for place, factor in form[0]]
        row = [sum(c * self.cov[i][j] for i, c in weights) for j in range(len(self.cov))]
        own = sum(c * row[i] for i, c in weights)
        self.mean.append(to_sympy(form[1], []) + sum(c * self.mean[i] for i, c in weights))
        for old, value in zip(self.cov, row, strict=True):
            old.append(value)
        self.cov.append([*row, own])
        self.forms[form] = len(self.cov) - 1
        return self.forms[form]


def _traced(fn: Callable[..., Any]) -> tuple[Expr, int]:
    """A Python function as an expression of as many Gaussians as it has arguments."""
    if not callable(fn):
        raise TraceError(
            f"fn is {fn!r}, not a function.", hint="Write it as lambda u, v: tp.relu(u) * v."
        )
    try:
        count = sum(
            p.default is Parameter.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            for p in signature(fn).parameters.values()
        )
    except (TypeError, ValueError):
        count = 1
    if count <= 1:
        return expression(fn, "fn"), 1
    found = fn(*(Var(index) for index in range(count)))
    if isinstance(found, int | float | Fraction):
        found = const(found)
    if not isinstance(found, Expr):
        raise TraceError(
            f"fn gives {type(found).__name__}, not an expression.",
            hint="Write it with + - * / ** and the functions of tpcalc (tp.relu, tp.tanh, ...).",
        )
    return found, count


def _matrix(cov: Any, count: int) -> list[list[Any]]:
    rows = cov.tolist() if hasattr(cov, "tolist") else cov
    if not isinstance(rows, list | tuple):
        rows = [[rows]]
    if len(rows) != count or any(
        not isinstance(row, list | tuple) or len(row) != count for row in rows
    ):
        raise UsageError(
            f"cov is not a {count} x {count} matrix; fn has {count} arguments.",
            hint="Give one row for each argument, as in [[1, 0.5], [0.5, 1]].",
        )
    for i, row in enumerate(rows):
        for j in range(i):
            if row[j] != rows[j][i]:
                raise UsageError(f"cov is not symmetric: entries {i},{j} and {j},{i} differ.")
    return [list(row) for row in rows]


def _vector(mean: Any, count: int) -> list[Any]:
    values = mean.tolist() if hasattr(mean, "tolist") else mean
    if not isinstance(values, list | tuple):
        values = [values] * count
    if len(values) != count:
        raise UsageError(f"mean has {len(values)} numbers; fn has {count} arguments.")
    return list(values)


def _sympy(value: Any) -> Any:
    """An entry as sympy has it; a float is the decimal that it is written as."""
    import sympy

    if isinstance(value, int | float | Fraction) and not isinstance(value, bool):
        return sympy.Rational(str(checks.real(value, "an entry of cov or mean")))
    try:
        return sympy.sympify(value, strict=True)
    except sympy.SympifyError:
        raise UsageError(f"{value!r} is no number and no sympy expression.") from None
