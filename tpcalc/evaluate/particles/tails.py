"""Whether samples see what an expectation is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf, isfinite, log, sqrt

import numpy as np

from tpcalc.functions import Call, Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, substitute, walk
from tpcalc.functions.form import quotient
from tpcalc.functions.tape import evaluate
from tpcalc.limit.degrees import Degree, degree_of, degree_sum, largest_degree, of_forms
from tpcalc.limit.graph import (
    Expect,
    Fluctuation,
    LimitGraph,
    OuterExpect,
    Product,
    Start,
    Starts,
    Total,
    product_of,
)
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import LinComb, Nonlin, Rename, Stack
from tpcalc.results.data import grouped

ENOUGH = 30  # samples beyond the place where the variance of an average comes from
FAR = (1e4, 1e8)  # where the growth of a function of one variable is read off
ZERO, ONE = Fraction(0), Fraction(1)


def rarely_sampled(graph: LimitGraph, samples: int) -> dict[str, str]:
    """The targets whose standard error may be too small, with the degree of what is averaged.

    The variance of an average of a polynomial of degree D in a Gaussian comes from values near
    sqrt(2 D). Where hardly a sample lies there, neither the average nor the spread of replicates
    has seen it. Degrees add up in products, though values of independent variables are less rare:
    what is marked may be in order.

    Example:
        >>> from tpcalc.limit.graph import Target
        >>> nodes = (Start("v", 0), Expect(Fn(Var(0) ** 12, 1), (0,)))
        >>> target = ("f", Target(Fraction(0), 1))
        >>> rarely_sampled(LimitGraph(nodes, (target,), ("n", None), (), (), ()), 2**18)
        {'f': '12'}
    """
    from scipy.special import ndtr

    found = {}
    for name, degree in sampled_degrees(graph).items():
        if degree is None or degree == inf:
            found[name] = "oo"
        elif degree > 0:
            beyond = 2 * float(ndtr(-sqrt(2 * float(degree))))
            if samples * beyond < ENOUGH:
                found[name] = str(degree)
    return found


def sampled_degrees(graph: LimitGraph) -> dict[str, Degree]:
    """For each target the largest degree of what is averaged on the way to it."""
    own: list[Degree] = []
    worst: list[Degree] = []
    read: dict[tuple[str, bool], list[Degree]] = {}
    for node in graph.nodes:
        own.append(_OWN(node, own, read))
        if (product := product_of(node)) is not None:
            read.setdefault((product.matrix, product.transpose), []).append(own[product.vector])
        averaged = _AVERAGED(node, own)
        worst.append(largest_degree([*(worst[ref] for ref in references(node)), *averaged]))
    found: dict[str, Degree] = {}
    for name, target in graph.targets:
        if target.node is None:
            found[name] = ZERO
            continue
        square = [own[target.node]] * 2 if graph.vector_dim[target.node] is not None else []
        found[name] = largest_degree([worst[target.node], degree_sum(square)])
    return found


_Owns = Sequence[Degree]
_Read = Mapping[tuple[str, bool], Sequence[Degree]]


def _expect(node: Expect, own: _Owns) -> _Owns:
    return [_seen(node.fn.expr, [own[v] for v in node.vectors], [ZERO] * len(node.scalars))]


def _outer_expect(node: OuterExpect, own: _Owns) -> _Owns:
    given = of_forms([ZERO] * len(node.rows), [own[c] for c in node.cols], node.forms)
    kernel = _seen(node.fn.expr, given, [ZERO] * len(node.scalars))
    return [degree_sum([kernel, own[node.vector]])]  # for each row


def _variance(node: Product | Fluctuation, own: _Owns) -> _Owns:
    """A Gaussian of variance E (Z^x)^2."""
    return [degree_sum([own[x], own[x]]) for x in references(node)]


# The degrees of what is averaged for a node.
_AVERAGED: Table[_Owns] = Table(
    {Expect: _expect, OuterExpect: _outer_expect, Product: _variance, Fluctuation: _variance},
    lambda node, own: (),
)


def _product_degree(node: Product, own: _Owns, read: _Read) -> Degree:
    """A Gaussian, and multiples of what the other side read before."""
    return largest_degree([ONE, *read.get((node.matrix, not node.transpose), ())])


def _apply(node: Nonlin, own: _Owns, read: _Read) -> Degree:
    return _seen(node.fn.expr, [own[v] for v in node.vectors], [ZERO] * len(node.scalars))


def _outer(node: OuterExpect, own: _Owns, read: _Read) -> Degree:
    given = of_forms([own[r] for r in node.rows], [ZERO] * len(node.cols), node.forms)
    return _seen(node.fn.expr, given, [ZERO] * len(node.scalars))


# The degree of a variable; scalars count as numbers, also those that stay random.
_OWN: Table[Degree] = Table(
    {
        **dict.fromkeys((Start, Starts), lambda node, own, read: ONE),
        Product: _product_degree,
        LinComb: lambda node, own, read: largest_degree(own[v] for v in node.vectors),
        Total: lambda node, own, read: largest_degree(own[v] for v in node.vectors),
        Rename: lambda node, own, read: own[node.of],
        Stack: lambda node, own, read: largest_degree(own[v] for v in node.of),
        Nonlin: _apply,
        OuterExpect: _outer,
    },
    lambda node, own, read: ZERO,
)


def _seen(expr: Expr, vectors: Sequence[Degree], scalars: Sequence[Degree]) -> Degree:
    """The degree of a function, of one variable by its growth: x phi(x) is bounded."""
    if isinstance(expr, Add):
        return largest_degree(_seen(term, vectors, scalars) for term in expr.terms)
    if isinstance(expr, Call) and expr.atom.name == "log":  # near 0 it is large on few samples
        return _seen(expr.arg, vectors, scalars)
    inside = _variables(expr)
    if len(inside) == 1:
        (index,) = inside
        own, rate = vectors[index], _growth(expr, index)
        if own is not None and rate is not None:
            return own * rate
    if isinstance(expr, Mul) and len(inside) > 1 and quotient(expr) is None:
        parts = grouped(expr.factors, _variables)
        if len(parts) > 1:
            return degree_sum(_seen(_product(own), vectors, scalars) for own in parts.values())
    return degree_of(expr, vectors, scalars)


def _variables(expr: Expr) -> frozenset[int]:
    return frozenset(part.index for part in walk(expr) if isinstance(part, Var))


def _product(factors: Sequence[Expr]) -> Expr:
    found = factors[0]
    for factor in factors[1:]:
        found = found * factor
    return found


def _growth(expr: Expr, index: int) -> Fraction | None:
    """The power with which a function of one variable grows; None where numbers do not tell."""
    if any(isinstance(part, Par) for part in walk(expr)):
        return None
    fn = Fn(substitute(expr, {Var(index): Var(0)}), 1)
    rates = [0.0]
    for sign in (1.0, -1.0):
        with np.errstate(all="ignore"):
            near, far = (abs(float(evaluate(fn, [np.float64(sign * x)]))) for x in FAR)
        if not (isfinite(near) and isfinite(far)):
            return None
        if far > 0 and near > 0:
            rates.append(log(far / near) / log(FAR[1] / FAR[0]))
    return Fraction(max(rates)).limit_denominator(16)
