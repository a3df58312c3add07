"""Networks with other layers: what a design becomes where one thing of it is done otherwise."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tpcalc import checks
from tpcalc.errors import StudyError, UsageError
from tpcalc.functions import Expr
from tpcalc.integrals.given import Act
from tpcalc.meanfield import recursion
from tpcalc.meanfield.graph import Layer, LayerGraph
from tpcalc.meanfield.notation.lines import Line, Lines
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Input,
    LayerNorm,
    Number,
    Operation,
    Product,
)
from tpcalc.meanfield.reading import Layers, layers, numbered
from tpcalc.meanfield.state import State
from tpcalc.program.base import Table


@dataclass(slots=True)
class Reads:
    """What a layer of the new network reads; states are computed where a rule asks for them.

    Args:
        made: The new layers so far.
        states: The states of the first of them.
        parents: The numbers of those that are read.
    """

    made: list[Layer]
    states: list[State]
    parents: tuple[int, ...]

    @property
    def operation(self) -> Operation:
        """What makes the first of them."""
        return self.made[self.parents[0]].operation

    @property
    def square(self) -> float:
        """Its second moment."""
        self.states[:] = recursion.propagate(LayerGraph(tuple(self.made)), self.states)
        return float(self.states[self.parents[0]].square.value)


NORMS: dict[str, tuple[Operation, ...]] = {
    "none": (),
    "layer": (LayerNorm(),),
    "batch": (BatchNorm(),),
}
Rule = Callable[[Operation, Reads], Sequence[Operation]]
"""What stands in the place of a layer: layers one after the other, none to leave it out."""


def rewritten(
    network: Layers, rule: Rule, only: Collection[int | str] | None = None
) -> Lines | LayerGraph:
    """The network with other layers in the places of some.

    Args:
        network: The network.
        rule: What is done: ``swap``, ``retune``, ``norm_first``, ``norms``, ``scale_weights``,
            ``orthogonal``, or a function of a layer and of what it reads.
        only: The layers that it is for, by number or name in ``layers(network)``; by default all.

    Returns:
        Lines, as ``parse_graph`` makes them; layers where no lines write them (masks).

    Raises:
        UsageError: No such layers, or no network.
        StudyError: A network that the recursion does not follow.

    Source: Schoenherr, The nonlinearity coefficient, chapters 7 and 8: what designs vary.

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> found = rewritten(mlp(1, Design("relu", 2)), norm_first("layer"))
        >>> [line.word.name for line in found.lines]
        ['input', 'dense', 'layer norm', 'relu', 'dense']
    """
    graph = layers(network)
    chosen = None if only is None else {numbered(graph, layer) for layer in only}
    for layer in (k for k in chosen or () if not 0 < k <= graph.last):
        raise UsageError(f"there is no layer {layer}: they are 1 to {graph.last}.", where="only")
    return as_lines(rebuilt(graph, rule, chosen))


def as_lines(graph: LayerGraph) -> Lines | LayerGraph:
    """Lines where layers are written by such."""
    try:
        return written(graph)
    except StudyError:
        return graph


def rebuilt(graph: LayerGraph, rule: Rule, only: Collection[int] | None = None) -> LayerGraph:
    """Layers with a rule applied, as layers."""
    first, *rest = graph.layers
    made, place = [Layer(first.operation, ())], [0]  # place: where each layer is now
    states: list[State] = []
    for index, layer in enumerate(rest, 1):
        parents = tuple(place[p] for p in layer.parents)
        chain: Sequence[Operation] = (layer.operation,)
        if only is None or index in only:
            given = checks.answer(rule, layer.operation, Reads(made, states, parents), name="rule")
            chain = checks.sequence(given, "what rule gives")
        for operation in chain:
            checks.of_type(operation, Operation, "what rule gives")
            made.append(Layer(operation, parents, layer.place))
            parents = (len(made) - 1,)
        place.append(parents[0])
    return LayerGraph(tuple(made), tuple((name, place[index]) for name, index in graph.names))


def written(graph: LayerGraph) -> Lines:
    """Layers as lines, from which networks of finite width are drawn.

    Args:
        graph: The layers.

    Returns:
        A line for each layer.

    Raises:
        StudyError: A mask, or one bias for all coordinates, which have no line of their own.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> written(layers(lookup("mlp").make(1, "tanh"))).words
        '4 layers, 1 of them activations'
    """
    own = [layer.operation for layer in graph.layers]
    for operation in (each for each in own if not _writable(each)):
        raise StudyError(f"a layer ({operation.name}) has no line of its own.", where="the network")
    return Lines(tuple(Line(layer.operation, layer.parents) for layer in graph.layers))


TAU: Table[Expr | None] = Table({Activation: lambda own: own.expr}, lambda own: None)
"""The activation of a layer; None where there is none."""
_writable: Table[bool] = Table(
    dict.fromkeys(
        (Input, Dense, Bias, Activation, Addition, Product, LayerNorm, BatchNorm), lambda own: True
    ),
    lambda own: False,
)


def _same(operation: Operation, reads: Reads) -> Sequence[Operation]:
    return (operation,)


def _rule(rows: dict[type, Callable[[Any, Reads], Sequence[Operation]]]) -> Rule:
    """What happens to kinds of layers; all others stay."""
    return Table(rows, _same)


def swap(activation: Act) -> Rule:
    """Another activation.

    Args:
        activation: The activation: a name, ``tp.tanh``, a formula or a function of expressions.

    Returns:
        A rule for ``rewritten``.

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> rewritten(mlp(2, Design("relu")), swap("tanh"), only=[4]).lines[4].word.name
        'tanh'
    """
    new = Activation(activation)
    return _rule({Activation: lambda operation, reads: (new,)})


def retune(change: Callable[[Expr, float], Act]) -> Rule:
    """Activations made anew for the second moment of what each of them reads, one after the other.

    Args:
        change: The new one, of an activation and that second moment: ``activations.debiased``,
            ``activations.normalized``, or a function of your own.

    Returns:
        A rule for ``rewritten``.

    Source: Schoenherr, The nonlinearity coefficient, section 7.1 (normalization by recursion).

    Example:
        >>> from tpcalc.meanfield.activations.calibrate import debiased
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> from tpcalc.meanfield.nonlinearity import nlc
        >>> round(nlc(rewritten(mlp(19, Design("relu", 2)), retune(debiased))).value, 2)
        38.1
    """

    def made(operation: Activation, reads: Reads) -> Sequence[Operation]:
        return (Activation(checks.answer(change, operation.expr, reads.square, name="change")),)

    return _rule({Activation: made})


def norm_first(norm: str | LayerNorm | BatchNorm) -> Rule:
    """A normalisation in front of every activation, and in place of every other one.

    Args:
        norm: ``"layer"``, ``"batch"``, or the word of a line that is one (``net.lines[2].word``);
            ``"none"``: there is none any more.

    Returns:
        A rule for ``rewritten``.

    Raises:
        UnknownName: No such normalisation.

    Source: Schoenherr, The nonlinearity coefficient, section 8.3.

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> from tpcalc.meanfield.nonlinearity import nlc
        >>> round(nlc(rewritten(mlp(4, Design("relu", 2)), norm_first("batch"))).value, 4)
        2.1519
    """
    if isinstance(norm, str):
        checks.one_of("normalisation", norm, NORMS)
    own = NORMS[norm] if isinstance(norm, str) else (norm,)

    def first(operation: Activation, reads: Reads) -> Sequence[Operation]:
        return (operation,) if reads.operation.normalises else (*own, operation)

    def there(operation: LayerNorm | BatchNorm, reads: Reads) -> Sequence[Operation]:
        return own

    return _rule({LayerNorm: there, BatchNorm: there, Activation: first})


def scale_weights(factor: Number) -> Rule:
    """Weights of other variances; biases stay.

    Args:
        factor: What variances are multiplied by.

    Returns:
        A rule for ``rewritten``.

    Raises:
        UsageError: A factor that is not above 0.

    Source: Schoenherr, The nonlinearity coefficient, section 6.3 (figure 6.2).

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> rewritten(mlp(1, Design("tanh", 2)), scale_weights(3)).lines[1].word.variance
        Fraction(6, 1)
    """
    size = checks.real(factor, "the factor of variances", above=0)

    def scaled(operation: Dense, reads: Reads) -> Sequence[Operation]:
        return (replace(operation, variance=operation.variance * size),)

    return _rule({Dense: scaled})


def unit_weights(operation: Operation, reads: Reads) -> Sequence[Operation]:
    """Weights that make second moments 1 again, layer after layer: a rule.

    Args:
        operation: A layer.
        reads: What it reads.

    Returns:
        What stands in its place.

    Source: Schoenherr, The nonlinearity coefficient, section 9.3 (LeCun and He initialization).

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> rewritten(mlp(1, Design("relu")), unit_weights).lines[3].word.variance
        2.0
    """
    return (_UNIT(operation, reads),)


_UNIT: Table[Operation] = Table(
    {Dense: lambda dense, reads: replace(dense, variance=1 / reads.square)},
    lambda operation, reads: operation,
)


def skipping(network: Layers, skip: Number, branch: Number) -> Lines | LayerGraph:
    """Skip connections: what an activation (or the norm before it) reads, plus the matrix behind.

    Args:
        network: The network.
        skip: The weight of what is carried on.
        branch: The weight of what is added to it.

    Returns:
        Lines, or layers where no lines write them.

    Source: Schoenherr, The nonlinearity coefficient, section 8.9.

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> found = skipping(mlp(2, Design("relu", 2)), 0.6, 0.8)
        >>> [line.word.name for line in found.lines]
        ['input', 'dense', 'relu', 'dense', 'addition', 'relu', 'dense']
    """
    return as_lines(with_skips(layers(network), skip, branch))


def with_skips(graph: LayerGraph, skip: Number, branch: Number) -> LayerGraph:
    """What an activation (or its norm) reads is added to the matrix that reads it, with weights."""
    sources = _skips(graph)
    made, place = [Layer(graph.layers[0].operation, ())], [0]
    for index, layer in enumerate(graph.layers[1:], 1):
        made.append(Layer(layer.operation, tuple(place[p] for p in layer.parents), layer.place))
        if index in sources:
            joined = place[sources[index]], len(made) - 1
            made.append(Layer(Addition((skip, branch)), joined))
        place.append(len(made) - 1)
    return LayerGraph(tuple(made))


def _skips(graph: LayerGraph) -> dict[int, int]:
    """For ends of blocks, a matrix behind an activation or its bias, what their start reads."""
    layers, found = graph.layers, dict[int, int]()
    readers: dict[int, list[int]] = {}
    for index, layer in enumerate(layers):
        for parent in layer.parents:
            readers.setdefault(parent, []).append(index)
    for index, layer in enumerate(layers):
        bent = layers[layer.parents[0]] if layer.operation.matrix else layer
        if not bent.operation.bends or len(bent.parents) != 1 or bent is layer:
            continue
        start, end = bent.parents[0], index
        if layers[start].operation.normalises:
            start = layers[start].parents[0]
        for reader in readers.get(end, [])[:1]:
            end = reader if _biased(layers[reader].operation) else end
        if start and end < graph.last:
            found[end] = start
    return found


_biased: Table[bool] = Table({Bias: lambda own: True}, lambda own: False)


def orthogonal(operation: Operation, reads: Reads) -> Sequence[Operation]:
    """Orthogonal weights of the same variances, but of low rank or of the inputs: a rule.

    Args:
        operation: A layer.
        reads: What it reads.

    Returns:
        What stands in its place.

    Source: Schoenherr, The nonlinearity coefficient, section 8.7.

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> rewritten(mlp(1, Design("tanh")), orthogonal).lines[3].word.family
        'orthogonal'
    """
    return (operation if reads.parents == (0,) else _ORTHOGONAL(operation),)


_ORTHOGONAL: Table[Operation] = Table(
    {Dense: lambda dense: dense if dense.rank else replace(dense, family="orthogonal")},
    lambda operation: operation,
)
