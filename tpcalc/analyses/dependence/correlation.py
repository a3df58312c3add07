"""Which of the Gaussians that limits depend on may be correlated."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.analyses.dependence.sets import Sets
from tpcalc.limit.graph import Fluctuation, LNode, LRef, Product, Start
from tpcalc.limit.views import fluctuation_of, noise_of, product_of, start_of, the_start
from tpcalc.program.base import Table
from tpcalc.program.nodes import LinComb

__all__ = ["may_correlate"]


def may_correlate(sets: Sets, a: LRef, b: LRef) -> bool:
    """Whether two Gaussians may be correlated; if not, they are independent.

    Args:
        sets: The graph.
        a: The node of one.
        b: That of the other.

    Source: Hajjar, Chizat, Giraud, section B.2 (ZHat).
    """
    first, second = sets.context.nodes[a], sets.context.nodes[b]
    if a == b or noise_of(first) or noise_of(second):
        return True
    return _MAY_CORRELATE(first, second, sets, a, b)


def _products(first: Product, other: LNode, sets: Sets, a: LRef, b: LRef) -> bool:
    second = product_of(other)
    if second is None or (first.matrix, first.transpose) != (second.matrix, second.transpose):
        return False
    return sets.correlated(a, b)


def _fluctuations(first: Fluctuation, other: LNode, sets: Sets, a: LRef, b: LRef) -> bool:
    second = fluctuation_of(other)
    if second is None:
        return False
    one, two = start_of(first.root), start_of(second.root)
    if one is None or two is None:
        return first.root == second.root and sets.correlated(a, b)
    shared = _covariance(sets, _alone(one, sets), _alone(two, sets))
    return shared != 0 and sets.correlated(a, b)


def _starts(first: Start | LinComb, second: LNode, sets: Sets, a: LRef, b: LRef) -> bool:
    other = _WEIGHTS(second, sets)
    return bool(other) and _covariance(sets, _WEIGHTS(first, sets), other) != 0


_MAY_CORRELATE: Table[bool] = Table(
    {Product: _products, Fluctuation: _fluctuations, Start: _starts, LinComb: _starts},
    lambda first, second, sets, a, b: False,
)
Weights = dict[tuple[str, int], Fraction]


def _alone(node: Start, sets: Sets) -> Weights:
    return {(node.group, node.index): Fraction(1)}


def _sum(node: LinComb, sets: Sets) -> Weights:
    out: Weights = {}
    for number, vector in zip(node.numbers, node.vectors, strict=True):
        start = the_start(sets.context.nodes[vector])
        place = (start.group, start.index)
        out[place] = out.get(place, Fraction(0)) + Fraction(number)
    return out


# A sum of start vectors as the number in front of each; nothing for all else.
_WEIGHTS: Table[Weights] = Table({Start: _alone, LinComb: _sum}, lambda node, sets: {})


def _covariance(sets: Sets, first: Weights, second: Weights) -> Fraction:
    """The covariance of two sums of start vectors, in exact arithmetic of the given numbers."""
    total = Fraction(0)
    for (group, i), left in first.items():
        cov = sets.context.program.group[group].cov
        for (other, j), right in second.items():
            if group == other:
                entry = Fraction(i == j) if cov is None else Fraction(cov[i][j])
                total += left * right * entry
    return total
