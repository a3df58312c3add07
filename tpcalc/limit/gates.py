"""Vectors that are exactly 0 where their terms are: products with a gate that is shut.

The rest of a series bounds what is left of a vector anywhere. Of a product with a gate nothing is
left where the gate is shut, but for a vanishing share of the coordinates where smaller terms open
or shut it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpcalc.exponents.chamber import minus
from tpcalc.functions import Call, Const, Expr, Var
from tpcalc.functions.expr import Mul
from tpcalc.functions.form import least
from tpcalc.limit.context import Context
from tpcalc.limit.law import Density
from tpcalc.limit.taylor import HERE, at_point
from tpcalc.program.base import lincomb_of, nonlin_of, scale_of
from tpcalc.program.nodes import Ref

ZERO = (0.0,)


def vanishes_exactly(ref: Ref, values: Sequence[Any], context: Context) -> bool:
    """Whether a vector is exactly 0 where all of its terms are."""
    value = values[ref]
    if value.is_zero or not value.terms:
        return bool(value.is_zero)
    if value.rest is None or _is_nowhere_zero(ref, values, context):
        return True
    node = context.program.nodes[ref]
    scale, total, applied = scale_of(node), lincomb_of(node), nonlin_of(node)
    if scale is not None:
        return vanishes_exactly(scale.of, values, context)
    if total is not None:
        return not total.over and _sum_vanishes(total.vectors, ref, values, context)
    if applied is None or applied.scalars:
        return False
    expr = applied.fn.expr
    factors = expr.factors if isinstance(expr, Mul) else (expr,)
    return all(_factor_vanishes(own, applied.vectors, values, context) for own in factors)


def _sum_vanishes(parts: Sequence[Ref], ref: Ref, values: Sequence[Any], context: Context) -> bool:
    """A sum of such vectors of one order; of several with later terms, as the first may cancel."""
    if len(parts) > 1 and not context.ranking.depth:
        return False
    lead = values[ref].terms[0][0]
    sign = context.ranking.chamber.sign
    return all(
        values[part].terms
        and sign(minus(values[part].terms[0][0], lead)) == 0
        and vanishes_exactly(part, values, context)
        for part in parts
    )


def _factor_vanishes(
    factor: Expr, vectors: Sequence[Ref], values: Sequence[Any], context: Context
) -> bool:
    if isinstance(factor, Const) or least(factor) > 0:
        return True
    if isinstance(factor, Var):
        return vanishes_exactly(vectors[factor.index], values, context)
    if not isinstance(factor, Call) or not isinstance(factor.arg, Var):
        return False
    homogeneous = factor.atom.facts.homogeneity is not None
    return homogeneous and at_point(factor.atom(HERE), -1) == 0


def _is_nowhere_zero(ref: Ref, values: Sequence[Any], context: Context) -> bool:
    """Whether the leading term is 0 with probability 0."""
    leading = values[ref].terms[0][1]
    density = context.laws.density(leading)
    if density is Density.PROVED or context.is_found_clear(leading, ZERO):
        return True
    if density is Density.NONE:
        return context.certainty.steep.proves(leading)
    if context.is_atom(leading, ZERO):
        return False
    plain = density is Density.PLAIN
    sources = context.laws.sources(leading) if plain else ()
    context.claim("clear", leading, ref, "x0", ZERO, plain=plain, sources=sources)
    return True
