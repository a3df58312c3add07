"""The mean-field nonlinearity coefficient: how far a part of a network is from a linear map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tpcalc import checks
from tpcalc.integrals.bounded import Bounded
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.operations import Addition, Input, Product
from tpcalc.meanfield.reading import Layers, layers, numbered
from tpcalc.meanfield.recursion import propagate, squares, total
from tpcalc.meanfield.state import State, exponential, logarithm, ratio
from tpcalc.networks.order import no_bottleneck, no_such_layers
from tpcalc.program.base import Table
from tpcalc.results import Estimate, PathRow
from tpcalc.shown import Rows

Step = tuple[list[Bounded], list[Bounded]]


def nlc(
    network: Layers, start: int | str = 0, end: int | str | None = None, inputs: Input | None = None
) -> Estimate:
    """sqrt(g_l v_m / (g_m v_l)), the limit of the nonlinearity coefficient from layer m to layer l.

    It is 1 for linear maps. Layer m has to be a bottleneck: every path to l leads through it.

    Args:
        network: The network.
        start: m, its number or a name that the network reports; the input by default.
        end: l; the output by default.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.

    Returns:
        The coefficient, with a bound on its error.

    Raises:
        UsageError: Numbers that are no layers, or no bottleneck.
        EvaluationError: Inputs that have become equal within rounding.

    Source: Schoenherr, The nonlinearity coefficient, section 5.3.4.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> round(nlc(lookup("mlp").make(1, "relu")).value, 9)
        1.211173896
    """
    _, states, first, last = _asked(network, start, end, inputs)
    return coefficient(states[first], states[last])


def coefficient(start: State, end: State) -> Estimate:
    """The same of two states of one graph, the first of a bottleneck for the second.

    Source: Schoenherr, The nonlinearity coefficient, section 5.3.4.
    """
    return exponential(log_square(start, end) * 0.5).estimate()


def log_square(start: State, end: State) -> Bounded:
    """The logarithm of its square."""
    return end.log_gradient - start.log_gradient + logarithm(start.gap) - logarithm(end.gap)


def path_nlc(
    network: Layers, start: int | str = 0, end: int | str | None = None, inputs: Input | None = None
) -> Estimate:
    r"""The same by the paths from m to l: an average of products over their layers.

    Dense layers and biases have the coefficient 1, and so has batch norm in an infinite batch; in
    a batch of B inputs its square is (B - 2) / (B - 3).

    Args:
        network: The network.
        start: m, its number or a name that the network reports; the input by default.
        end: l; the output by default.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.

    Returns:
        The coefficient, with a bound on its error.

    Raises:
        UsageError: Numbers that are no layers, or no bottleneck.

    Source: Schoenherr, The nonlinearity coefficient, Proposition 16.

    Example:
        >>> from tpcalc.meanfield.notation.notation import parse_graph
        >>> net = parse_graph("x = input()\na = dense(x, 2)\nb = batch_norm(a, batch=6)")
        >>> round(path_nlc(net).value ** 2, 12)
        1.333333333333
    """
    graph, states, first, last = _asked(network, start, end, inputs)
    found = {first: Bounded(1.0)}
    for index in range(first + 1, last + 1):
        read = steps(graph, states, index)
        parts = (found[p] * weight * factor for p, weight, factor in read if p in found)
        found[index] = total(parts)
    return found[last].root().estimate()


def heaviest_paths(
    network: Layers,
    count: int = 5,
    start: int | str = 0,
    end: int | str | None = None,
    inputs: Input | None = None,
) -> tuple[PathRow, ...]:
    r"""The paths from m to l that add most to the square of the coefficient, the largest first.

    Args:
        network: The network.
        count: How many.
        start: m, its number or a name that the network reports; the input by default.
        end: l; the output by default.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.

    Returns:
        Each path with its layers, its weight and its product.

    Raises:
        UsageError: Numbers that are no layers, or no bottleneck.

    Source: Schoenherr, The nonlinearity coefficient, Proposition 16.

    Example:
        >>> from tpcalc.meanfield.notation.notation import parse_graph
        >>> text = "x = input()\na = dense(x)\nb = tanh(a)\nc = dense(b)\nd = a + 0.5*c"
        >>> first, second = heaviest_paths(parse_graph(text))
        >>> first.layers, second.layers, round(first.weight + second.weight, 12)
        ((0, 1, 4), (0, 1, 2, 3, 4), 1.0)
    """
    count = checks.whole(count, "count", least=1)
    graph, states, first, last = _asked(network, start, end, inputs)
    found: dict[int, list[_Path]] = {first: [_Path(first, None, 1.0, 1.0)]}
    for index in range(first + 1, last + 1):
        own = [
            _Path(index, path, path.weight * weight.value, path.product * factor.value)
            for parent, weight, factor in steps(graph, states, index)
            for path in found.get(parent, [])
        ]
        # What follows multiplies all of them alike, so that the smaller ones can be dropped here.
        found[index] = sorted(own, key=lambda path: -path.weight * path.product)[:count]
    return Rows(PathRow(path.layers, path.weight, path.product) for path in found[last])


class _Path(NamedTuple):
    """A path by its last layer and what it was before."""

    layer: int
    before: _Path | None
    weight: float
    product: float

    @property
    def layers(self) -> tuple[int, ...]:
        found, path = list[int](), self
        while path.before is not None:
            found.append(path.layer)
            path = path.before
        return (path.layer, *reversed(found))


def steps(
    graph: LayerGraph, states: tuple[State, ...], index: int
) -> Iterator[tuple[int, Bounded, Bounded]]:
    """The layers that one reads, each with its weight in it and its squared coefficient."""
    layer = graph.layers[index]
    parents = [states[parent] for parent in layer.parents]
    return zip(layer.parents, *_STEPS(layer.operation, states[index], *parents), strict=True)


def _added(operation: Addition, own: State, *parents: State) -> Step:
    pairs = zip(squares(operation), parents, strict=True)
    return [w * ratio(part.gap, own.gap) for w, part in pairs], [Bounded(1.0)] * len(parents)


def _multiplied(operation: Product, own: State, one: State, other: State) -> Step:
    """The factors of a product, by how much of its gap is theirs."""
    parts = ratio(one.gap * other.square, own.gap), ratio(other.gap * one.square, own.gap)
    whole = parts[0] + parts[1]
    return [part * whole.inverse() for part in parts], [whole, whole]


_STEPS: Table[Step] = Table(
    {Addition: _added, Product: _multiplied},
    lambda operation, own, before: ([Bounded(1.0)], [exponential(log_square(before, own))]),
)


def _asked(
    network: Layers, start: int | str, end: int | str | None, inputs: Input | None
) -> tuple[LayerGraph, tuple[State, ...], int, int]:
    """The layers with their states, and the numbers of the two that are asked about."""
    graph = layers(network, inputs)
    first, last = numbered(graph, start), numbered(graph, end)
    _check(graph, first, last)
    return graph, propagate(graph), first, last


def _check(graph: LayerGraph, start: int, last: int) -> None:
    if not 0 <= start <= last <= graph.last:
        raise no_such_layers(start, last, graph.last)
    # What reaches the end without the start: a path around it.
    around = {0} - {start}
    for index in range(1, last + 1):
        if index != start and any(parent in around for parent in graph.layers[index].parents):
            around.add(index)
    if last in around:
        raise no_bottleneck(start, last)
