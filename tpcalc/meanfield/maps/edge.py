"""The edge of chaos: where a length is a fixed point and chi, the growth of gradients, is 1."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, StudyError, UsageError, short
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import derivative
from tpcalc.integrals.activation_moments import Kernels, means, square_growth
from tpcalc.integrals.bounded import EPS, Bounded, bounded
from tpcalc.integrals.given import of_activation
from tpcalc.meanfield.maps.fixed_lengths import crossed, gridded
from tpcalc.meanfield.maps.roots import log_root
from tpcalc.results import EdgePoint, Estimate
from tpcalc.shown import Rows

SMALLEST, LARGEST = 1e-9, (1e9, 1e5, 1e3, 30.0)


@of_activation
def edge_of_chaos(tau: Expr, q: float, rank: float = 1.0) -> EdgePoint:
    """The variances of weights and biases at which q is a fixed point and chi is 1.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        q: The second moment of preactivations.
        rank: Rank over width of the weights.

    Returns:
        sigma_w^2 and sigma_b^2 with their errors; it unpacks into the two as floats.

    Raises:
        StudyError: A length or a rank that is none.
        EvaluationError: The biases would need a negative variance: there is no edge at this q.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 2.1.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> [round(value, 7) for value in edge_of_chaos(lookup("erf").fn.expr, 0.5)]
        [1.3603495, 0.0465502]
    """
    gamma = checked_rank(rank, "edge_of_chaos")
    square = float(checks.real(q, "q", above=0))
    return _point(Kernels(tau), Bounded(square), gamma)


@of_activation
def edges(tau: Expr, biases: float = 0.0, rank: float = 1.0) -> tuple[EdgePoint, ...]:
    """The points of the edge of chaos for biases of this variance.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        biases: The variance of the biases.
        rank: Rank over width of the weights.

    Returns:
        One for each q at which they cross, the smallest first; q is looked for between 1e-9 and
        1e9, or as far as averages are found. Without biases an activation with tau(0) = 0 has the
        edge in the limit of small q, given with q = 0.

    Raises:
        StudyError: A variance or a rank that is none.
        EvaluationError: There is none: the message says for which biases there are some.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 2.1.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> (point,) = edges(lookup("tanh").fn.expr, 0.05)
        >>> round(point.weights.value, 6), round(point.square.value, 6)
        (1.760955, 0.570048)
    """
    gamma = checked_rank(rank, "edges")
    kernels, wanted = Kernels(tau), gamma * float(checks.real(biases, "biases", least=0))
    grid, found = gridded(partial(edge_biases, tau), SMALLEST, LARGEST)
    change = found.value - wanted
    sign = np.where(np.abs(change) <= found.error, 0, np.sign(change))
    if not sign.any():
        return Rows((_point(kernels, Bounded(1.0), gamma, every=True),))
    kept = np.flatnonzero(sign)
    points = [_at_zero(tau, gamma)] if wanted == 0 and _straight(tau) else []
    for i, j in pairwise(kept):
        if sign[i] != sign[j]:
            q = log_root(lambda q: _biases(kernels, Bounded(q)) - wanted, grid[i], grid[j])
            # Its q has the biases that were asked for but for rounding.
            asked = bounded(float(biases)).estimate()
            points.append(replace(_point(kernels, q, gamma), biases=asked))
    if not points:
        sure = found.value[found.value > found.error] / gamma
        hint = "There is none with other biases either: chi is below 1 at all fixed points."
        if sure.size:
            hint = f"There is one for biases between {sure.min():.3g} and {sure.max():.3g}."
        elif _straight(tau):
            hint = "There is one for biases of no variance."
        raise EvaluationError(
            f"there is no edge of chaos with biases of the variance {biases:g}.", hint=hint
        )
    return Rows(points)


def edge_biases(tau: Expr, q: Array) -> Bounded:
    """The variance of full-rank biases that the edge needs at many q; below 0 there is no edge.

    Example:
        >>> from tpcalc.functions import Var
        >>> edge_biases(Var(0), np.array([1.0])).value.tolist()
        [0.0]
    """
    slope = derivative(tau, Var(0))
    qs = checks.reals(q, "q").astype(np.float64)
    square, slopes = means((tau, tau), qs), means((slope, slope), qs)
    if not slopes.value.all():
        raise StudyError(f"{short(tau.text)} is constant, and has no edge of chaos.")
    return qs - square / slopes + Bounded(0.0, EPS * qs)


def checked_rank(rank: Fraction | float, where: str) -> float:
    """A rank as a share of the width.

    Example:
        >>> checked_rank(0.25, "LayerMap")
        0.25
    """
    share = checks.real(rank, "rank")
    if not 0 < share <= 1:
        why = "no weights of rank 0 carry a signal" if share == 0 else "ranks end at the width"
        raise UsageError(
            f"the rank is {rank} of the width; {why}.",
            where=where,
            hint="Give rank over width, above 0 and at most 1.",
        )
    return float(share)


def _point(kernels: Kernels, q: Bounded, rank: float, every: bool = False) -> EdgePoint:
    weights = 1.0 / kernels.slope(q)
    biases = q - weights * kernels.second(q)
    if biases.value < -biases.error - 1e-15 * q.value:
        raise EvaluationError(
            f"there is no edge of chaos at q = {q.value:g}: biases would have the variance "
            f"{biases.value / rank:.3g}.",
            hint="Take another q; edges finds the points for given biases.",
        )
    slope = weights * square_growth(kernels.tau, q)
    exact = Bounded(max(biases.value, 0.0), biases.error, biases.method)
    whole, part = _shared(weights, rank), _shared(exact, rank)
    return EdgePoint(q.estimate(), whole, part, every, crossed(slope))


def _shared(number: Bounded, rank: float) -> Estimate:
    return (number if rank == 1 else number / Bounded(rank)).estimate()


def _biases(kernels: Kernels, q: Bounded) -> Bounded:
    return q - kernels.second(q) / kernels.slope(q)


def _straight(tau: Expr) -> bool:
    """Whether tau is linear near 0 and 0 there, so that small lengths see a linear network."""
    kernels, small = Kernels(tau), Bounded(1e-24)
    second, slope = kernels.second(small).value, kernels.slope(small).value
    return bool(slope > 0 and abs(second / slope - 1e-24) < 1e-30)


def _at_zero(tau: Expr, rank: float) -> EdgePoint:
    slope = Kernels(tau).slope(Bounded(1e-24)).value
    zero, weights = Bounded(0.0), Bounded(1 / slope, 1e-12 / slope)
    return EdgePoint(zero.estimate(), _shared(weights, rank), zero.estimate(), kind="marginal")
