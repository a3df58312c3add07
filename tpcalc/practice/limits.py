"""What older metrics of layers tend to in wide networks, beside the coefficient."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc import checks
from tpcalc.integrals.bounded import bounded
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.nonlinearity import coefficient
from tpcalc.meanfield.operations import Dense, Input, Number
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.meanfield.recursion import propagate
from tpcalc.meanfield.state import exponential, ratio
from tpcalc.program.base import Table
from tpcalc.results import Estimate
from tpcalc.shown import Rows, Shown


@dataclass(frozen=True, slots=True)
class LimitRow(Shown):
    """A layer in the limit: lengths of gradients, the coefficient from it on, what inputs share.

    Gradients are those of a loss whose gradient by the outputs is N(0, 1).

    Args:
        layer: Its number.
        operation: What it does.
        length: GLEN, sqrt(g_L / g_l): of the gradient by the layer, over the root of the size of
            the outputs; None where paths lead around the layer.
        component: GVCS, sqrt(d_L / d_l) times that: the root mean square of its entries; None
            where the outputs do not grow with the width and no width is given.
        nlc: The coefficient of the outputs as a function of the layer; None as of ``length``.
        total: That of the layer as a function of the input.
        bias: LBIAS, sqrt(q / (q - c)).
        correlation: LCORR, (c - m^2) / (q - m^2): the correlation over neurons of two inputs.
        square: q; LSCALE tends to its root.

    Source: Schoenherr, The nonlinearity coefficient, sections 9.1 to 9.4.
    """

    layer: int
    operation: str
    length: Estimate | None
    component: Estimate | None
    nlc: Estimate | None
    total: Estimate
    bias: Estimate
    correlation: Estimate
    square: Estimate


def layer_limits(
    network: Layers,
    inputs: Input | None = None,
    features: Number = 1,
    width: int | None = None,
) -> tuple[LimitRow, ...]:
    """GLEN, GVCS, LCORR, LBIAS and coefficients of every layer in the limit of infinite width.

    ``tp.signal.functions.gradient_lengths`` and ``layer_metrics`` measure them.

    Args:
        network: The network.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.
        features: How many features inputs have, over n.
        width: n, with which a readout of so many outputs is compared.

    Returns:
        A row for each layer, the input first.

    Raises:
        StudyError: A network that the recursion does not follow.

    Source: Schoenherr, The nonlinearity coefficient, sections 3.4 and 9.1 to 9.4; the limit of
        LCORR is no square root.

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> rows = layer_limits(mlp(3, Design("relu", 2)))
        >>> [round(row.correlation.value, 4) for row in rows if row.operation == "relu"][1:]
        [0.2573, 0.4203]
    """
    graph = layers(network, inputs)
    wide = sizes(graph, float(checks.real(features, "features", above=0)), width)
    states = propagate(graph)
    through, last, rows = bottlenecks(graph)[-1], states[-1], []
    for index, (layer, state) in enumerate(zip(graph.layers, states, strict=True)):
        length = exponential((last.log_gradient - state.log_gradient) * 0.5)
        size, end = wide[index], wide[-1]
        share = None if size is None or end is None else ratio(bounded(end), bounded(size)).root()
        passed, own = index in through, state.mean * state.mean
        rows.append(
            LimitRow(
                index,
                layer.operation.name,
                length.estimate() if passed else None,
                (length * share).estimate() if passed and share else None,
                coefficient(state, last) if passed else None,
                coefficient(states[0], state),
                state.shared.estimate(),
                ((state.comean - own) / (state.square - own)).estimate(),
                state.square.estimate(),
            )
        )
    return Rows(rows)


def bottlenecks(graph: LayerGraph) -> list[frozenset[int]]:
    """For each layer the layers that all paths to it lead through, itself included."""
    found: list[frozenset[int]] = []
    for index, layer in enumerate(graph.layers):
        ways = [found[p] for p in layer.parents] or [frozenset[int]()]
        found.append(frozenset[int].intersection(*ways) | {index})
    return found


def sizes(graph: LayerGraph, features: float = 1.0, width: int | None = None) -> list[float | None]:
    """The sizes of layers over n; None of a readout whose n is not known."""
    found: list[float | None] = [features]
    for layer in graph.layers[1:]:
        found.append(_SIZE(layer.operation, width, found[layer.parents[0]]))
    return found


def _written(dense: Dense, width: int | None, read: float | None) -> float | None:
    if dense.outputs is None:
        return float(dense.width)
    return None if width is None else dense.outputs / width


_SIZE: Table[float | None] = Table({Dense: _written}, lambda operation, width, read: read)
