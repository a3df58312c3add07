"""Which of the Gaussians that limits depend on may be correlated."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.limit.graph import Fluctuation, LNode, LRef, Product
from tpcalc.limit.views import fluctuation_of, noise_of, product_of, start_of
from tpcalc.program.base import Table
from tpcalc.questions.dependence.bits import Weights
from tpcalc.questions.dependence.sets import Sets


def may_correlate(sets: Sets, a: int, b: int) -> bool:
    """Whether two Gaussians may be correlated; if not, they are independent.

    Source: Hajjar, Chizat, Giraud, section B.2 (ZHat).
    """
    if a in sets.weights and b in sets.weights:
        return a == b or _covariance(sets, sets.weights[a], sets.weights[b]) != 0
    (one, _), (two, _) = sets.homes[a], sets.homes[b]
    first, second = sets.context.nodes[one], sets.context.nodes[two]
    if a == b or noise_of(first) or noise_of(second):
        return True
    both = product_of(first) is not None and product_of(second) is not None
    if both and not sets.alike(a) >> b & 1:  # cells of one block of matrices
        return False
    return _MAY_CORRELATE(first, second, sets, one, two)


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
    shared = _covariance(sets, *((((s.group, s.index), Fraction(1)),) for s in (one, two)))
    return shared != 0 and sets.correlated(a, b)


_MAY_CORRELATE: Table[bool] = Table(
    {Product: _products, Fluctuation: _fluctuations}, lambda first, second, sets, a, b: False
)


def _covariance(sets: Sets, first: Weights, second: Weights) -> Fraction:
    """The covariance of two sums of start vectors, in exact arithmetic of the given numbers."""
    total = Fraction(0)
    for (group, i), left in first:
        cov = sets.context.program.group[group].cov
        for (other, j), right in second:
            if group == other:
                entry = Fraction(i == j) if cov is None else Fraction(cov[i][j])
                total += left * right * entry
    return total
