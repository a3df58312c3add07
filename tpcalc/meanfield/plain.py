"""Plain networks: dense layers with one activation, layer after layer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tpcalc import checks
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import slope_or_none
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.given import of_activation
from tpcalc.meanfield.graph import Layer, LayerGraph
from tpcalc.meanfield.nonlinearity import coefficient
from tpcalc.meanfield.operations import Activation, Dense, Input, Operation
from tpcalc.meanfield.recursion import propagate
from tpcalc.results import CovarianceMap, Estimate
from tpcalc.shown import Rows, Shown


@dataclass(frozen=True, slots=True)
class PlainRow(Shown):
    """A plain network of some depth.

    Args:
        depth: M, the number of activations.
        nlc: The nonlinearity coefficient from the input on.
        bias: LBIAS = sqrt(q / (q - c)).
        square: q, the second moment of the last layer.
        log_gradient: log g, with g the mean square derivative along a standard Gaussian change of
            the input.
    """

    depth: int
    nlc: Estimate
    bias: float
    square: Bounded
    log_gradient: Bounded


@of_activation
def plain(
    tau: Expr, depth: int, weights: Fraction | float = 1.0, comean: Fraction | float = 0.0
) -> tuple[PlainRow, ...]:
    """Depths 1 to M of dense layers, each followed by the same activation.

    Inputs have second moment 1. One more dense layer at the end changes neither the nonlinearity
    coefficient nor the bias.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        depth: M.
        weights: The variance of the weights, times the fan-in.
        comean: c of two inputs.

    Returns:
        A row for each depth.

    Raises:
        StudyError: A depth below 1.
        TpcalcError: A layer has no state; its number is told.

    Source: Schoenherr, The nonlinearity coefficient, sections 5.4.2 to 5.4.4.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> found = plain(lookup("relu").fn.expr, 2, weights=2.0)
        >>> [round(row.nlc.value, 6) for row in found]
        [1.211174, 1.40543]
    """
    depth = checks.whole(depth, "depth", least=1)
    layer: tuple[Operation, ...] = (Dense(weights), Activation(tau))
    layers = (Layer(operation, (index,)) for index, operation in enumerate(layer * depth))
    states = propagate(LayerGraph((Layer(Input(1, comean), ()), *layers)))
    return Rows(
        PlainRow(index, coefficient(states[0], state), state.bias, state.square, state.log_gradient)
        for index, state in enumerate(states[2::2], 1)
    )


def growth(tau: Expr, found: CovarianceMap) -> str:
    """How deep plain networks behave whose preactivations have second moment 1, in words.

    Args:
        tau: The activation, an expression of ``Var(0)``.
        found: Its covariance kernel applied over and over.

    Source: Schoenherr, The nonlinearity coefficient, section 5.4.3.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> from tpcalc.meanfield.activations.covariance import CovarianceKernel
        >>> relu = lookup("relu").fn.expr
        >>> growth(relu, CovarianceKernel(relu).found)
        'n and LBIAS grow in proportion to the depth M.'
    """
    if found.kind == "linear":
        return "n stays 1."
    if found.kind == "chaotic":
        bias = (1 - found.limit.value) ** -0.5
        return f"n grows by a factor {found.nlc_growth:.6g} a layer; LBIAS tends to {bias:.6g}."
    smooth = _twice(tau)
    if found.kind == "edge":
        power = "to sqrt(M)" if smooth else "to the depth M"
        return f"n and LBIAS grow in proportion {power}."
    bias = found.end_slope.value**-0.5
    grows = f"LBIAS grows by a factor {bias:.6g} a layer."
    return f"n tends to a limit; {grows}" if smooth else grows


def _twice(tau: Expr) -> bool:
    """Whether the slope of the covariance kernel has a slope at 1: tau' does not jump."""
    slope = slope_or_none(tau, Var(0))
    return slope is not None and slope_or_none(slope, Var(0)) is not None
