"""Which of the Gaussians that limits depend on may be correlated."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.analyses.dependence.sets import Sets
from tpcalc.limit.graph import Combine, Fluctuation, LRef, Noise, Product, Start

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
    if a == b or isinstance(first, Noise) or isinstance(second, Noise):
        return True
    if isinstance(first, Product) and isinstance(second, Product):
        one_side = (first.matrix, first.transpose) == (second.matrix, second.transpose)
        return one_side and sets.correlated(a, b)
    if isinstance(first, Fluctuation) and isinstance(second, Fluctuation):
        one, two = first.root, second.root
        if not isinstance(one, Start) or not isinstance(two, Start):
            return one == two and sets.correlated(a, b)
        shared = _covariance(sets, _weights(sets, one), _weights(sets, two))
        return shared != 0 and sets.correlated(a, b)
    if isinstance(first, Start | Combine) and isinstance(second, Start | Combine):
        return _covariance(sets, _weights(sets, first), _weights(sets, second)) != 0
    return False


Weights = dict[tuple[str, int], Fraction]


def _weights(sets: Sets, node: Start | Combine) -> Weights:
    """A sum of start vectors as the number in front of each."""
    if isinstance(node, Start):
        return {(node.group, node.index): Fraction(1)}
    out: Weights = {}
    for number, vector in zip(node.numbers, node.vectors, strict=True):
        start = sets.context.nodes[vector]
        assert isinstance(start, Start)
        place = (start.group, start.index)
        out[place] = out.get(place, Fraction(0)) + Fraction(number)
    return out


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
