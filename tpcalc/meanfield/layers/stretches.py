"""Forward programs of networks as layers: matrices, and functions of one vector between them.

A walk along the program fuses functions of coordinates, sums, norms and scales that follow each
other into one function of what the last matrix wrote. What the recursion does not follow (a
function of two vectors, a sum of vectors that are not independent, a matrix with its transpose)
is one error that names the node and the user's line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import cast

from tpcalc.errors import StudyError, TpcalcError
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Expr, Par, Var, const
from tpcalc.functions.expr import mul, substitute, walk
from tpcalc.meanfield import operations
from tpcalc.meanfield.graph import Layer, LayerGraph
from tpcalc.meanfield.layers.batch import alone, batch_of
from tpcalc.meanfield.layers.fusing import Fusing
from tpcalc.meanfield.layers.parts import NOTHING, ZERO, Made, Part, holds, linear
from tpcalc.meanfield.operations import Addition, Dense, Number, weights_of
from tpcalc.names import Name, what_of
from tpcalc.networks.maps import OUT
from tpcalc.networks.network import FEATURES, INPUT, Architecture, traced
from tpcalc.passes.separate import scaled
from tpcalc.passes.split import celled
from tpcalc.program.base import cone, input_of, matmul_of, matrix_of, references
from tpcalc.program.family import Family
from tpcalc.program.nodes import Data, Input, LinComb, MatMul, Moment, Nonlin, OuterNonlin, Scale
from tpcalc.program.program import Program
from tpcalc.program.rules import Level, Rules, interpret
from tpcalc.program.types import Ref
from tpcalc.registry.values import squared

HALF = as_ex(Fraction(1, 2))
NUMBERS = 2  # enough to see whether every number of an input is read alike
ALIKE = (FEATURES, OUT)  # axes whose cells are one layer: numbers of an input, outputs of a readout
Value = Part | Expr | None
Nodes = dict[int, tuple[Ref, tuple[int, ...], float]]  # of layers: node, cell, factor


def stretches(network: Architecture, start: operations.Input) -> LayerGraph:
    """The layers of a network at its start, for the recursion.

    Weights have the variance 1 / fan-in times the squares of the factors in front of them, also
    those of the input map and of the readout. The output counts as a wide layer of outputs.

    Source: Schoenherr, The nonlinearity coefficient, section 5.1 and Definition 22.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> found = stretches(lookup("mlp").make(2, "tanh", norm="layer"), operations.Input())
        >>> [layer.operation.name for layer in found.layers]
        ['input', 'dense', 'layer norm', 'tanh', 'dense', 'layer norm', 'tanh', 'dense']
    """
    whole = alone(network, traced(network, NUMBERS * network.tokens, 1))
    outs = [(name, ref) for name, ref in whole.outputs if what_of(name) == "f"]
    if len(outs) > 1:
        raise StudyError(
            f"the network has {len(outs)} outputs, {', '.join(name for name, _ in outs)}, and the "
            "recursion has one last layer.",
            where=network.name,
            hint="Leave one readout; all outputs of one readout are alike.",
        )
    if not any(own.width for own in whole.types):
        raise StudyError(
            "no layer of the network grows with n (condition 22.4).",
            where=network.name,
            hint="Put a layer of width n between its input and its outputs.",
        )
    outputs = dict(whole.types[outs[0][1]].axes).get(OUT)
    program = celled(whole)
    out = next(ref for name, ref in program.outputs if what_of(name) == "f")
    needed = cone(program.nodes, [out])

    def lost(error: TpcalcError, ref: Ref, state: _Stretches) -> Value:
        if needed[ref]:
            raise error
        return None

    features = tuple(f"{INPUT}[{index}]" for index in range(NUMBERS))
    _, size = batch_of(network)
    state = _Stretches(program, start, size, features=features, outputs=outputs)
    values = interpret(program, replace(STRETCH_RULES, lost=lost), state)
    found = values[out]
    if not isinstance(found, Part) or found.head is None:
        raise state.refused(out, "at its start the output of the network is a constant")
    end = state.layer(out, state.settled(out, found))
    nodes = _nodes(state, values, whole) | {0: (whole.inputs[INPUT], (), 1.0)}
    return _graph(state, values, end, nodes)


@dataclass
class _Stretches(Fusing):
    """The layers so far, and what the walk has to know of the whole program.

    Args:
        features: The names of the numbers of an input.
        outputs: The number of outputs, where the network says it.
    """

    features: tuple[str, ...] = ()
    outputs: int | None = None
    numbers: dict[Expr, int] = field(default_factory=dict)
    entered: dict[tuple[int, frozenset[str]], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.turned: dict[Ref, set[bool]] = {}
        for node in map(matmul_of, self.program.nodes):
            if node is not None:
                self.turned.setdefault(node.matrix, set()).add(node.transpose)

    def ratio(self, dim: str) -> Fraction:
        """A dimension over n."""
        return self.program.dim[dim].ratio

    def vector(self, ref: Ref, value: Value) -> Part:
        """The value of a vector, or of an output."""
        if not isinstance(value, Part):
            raise self.refused(ref, "it reads numbers of the input, or averages, as a vector")
        return value

    def shared(self, ref: Ref, part: Part) -> Part:
        """A random number as one that all coordinates share."""
        if part.head is None:
            return part
        drawn = self.made[part.head]
        if drawn.operation is not None:
            raise self.refused(ref, "it reads a random number, which does not average out")
        return replace(part, head=self.add(replace(drawn, shared=True)))

    def scalar(self, ref: Ref, value: Value) -> Expr:
        """The value of a scalar that is none of the outputs."""
        if not isinstance(value, Expr):
            raise self.refused(ref, "it reads a random number, which does not average out")
        return value


def _data(node: Data, ref: Ref, values: list[Value], state: _Stretches) -> Value:
    if node.name not in state.features:
        return const(node.values[0])
    state.numbers[Par(ref)] = state.features.index(node.name)
    return Par(ref)


def _input(node: Input, ref: Ref, values: list[Value], state: _Stretches) -> Value:
    family = node.family
    if family.mark is not None and family.mark.at_zero:
        return Part(None, const(0))
    if len(family.width) == 2:
        return None
    mean = family.means[node.index]
    variance = 1 if family.cov is None else family.cov[node.index][node.index]
    # Cells that are correlated count as one source, so that none of them are added.
    name = node.name if family.cov is None or family.size == 1 else family.name
    start = Made(None, (), frozenset({name}), True, variance=Fraction(variance))
    if variance == 0:
        return Part(None, const(mean))
    return Part(state.add(start), Var(0) + mean, -_power(family))


def _matmul(node: MatMul, ref: Ref, values: list[Value], state: _Stretches) -> Value:
    read = state.vector(ref, values[node.vector])
    family = matrix_of(state.program.nodes, node).family
    if family.averages:
        return state.batched(ref, read)
    if values[node.matrix] is not None or (read.head is None and read.expr == const(0)):
        return Part(None, const(0))
    if len(state.turned[node.matrix]) > 1:
        raise state.refused(
            ref, f"the matrix {family.name} is applied both as it is and transposed"
        )
    layer, weight = state.layer(ref, read)
    rows, cols = family.width[::-1] if node.transpose else family.width
    law = "orthogonal" if family.law == "orthogonal" else "gaussian"  # the limit is that of both
    dense = Dense(squared(weight) * state.ratio(cols), law, width=state.ratio(rows))
    made = Made(dense, (layer,), frozenset({family.name}), True, state.program.place(ref))
    return Part(state.add(made), Var(0), read.power + HALF - _power(family))


def _power(family: Family) -> Ex:
    """Of 1 / n in front of weights."""
    if family.mark is None:
        return ZERO
    return family.mark.keeping if family.mark.init is None else -family.mark.init


def _nonlin(node: Nonlin, ref: Ref, values: list[Value], state: _Stretches) -> Value:
    scalars = [values[own] for own in node.scalars]
    if node.vectors:
        parts = [state.vector(ref, values[own]) for own in node.vectors]
        shared = {Par(k): own for k, own in enumerate(scalars) if isinstance(own, Part)}
        slots: dict[Expr, Expr] = {par: Var(len(parts) + place) for place, par in enumerate(shared)}
        parts += [state.shared(ref, own) for own in shared.values()]
        numbers = [own if isinstance(own, Expr) else NOTHING for own in scalars]
        return state.applied(ref, substitute(node.fn.expr, slots), parts, numbers)
    plain = [own for own in scalars if isinstance(own, Expr)]
    if len(plain) == len(scalars):
        return substitute(node.fn.expr, {Par(k): own for k, own in enumerate(plain)})
    # A function of outputs: they count as the coordinates of a vector.
    given: dict[Expr, Expr] = {
        Par(k): Var(k) if isinstance(own, Part) else own for k, own in enumerate(scalars) if own
    }
    rest = Part(None, const(0))
    parts = [own if isinstance(own, Part) else rest for own in scalars]
    return state.applied(ref, substitute(node.fn.expr, given), parts, [])


def _moment(node: Moment, ref: Ref, values: list[Value], state: _Stretches) -> Value:
    parts = [state.vector(ref, values[own]) for own in node.vectors]
    read = _readout(node, ref, parts, state)
    if read is not None:
        return read
    constant = next((part for part in parts if part.head is None), None)
    if constant is not None and holds(constant.expr, Par):
        raise state.averaged(ref, constant.expr)
    scalars = [state.scalar(ref, values[own]) for own in node.scalars]
    power = ZERO
    if constant is not None:  # weights of a readout beside it: their power stays outside
        power = sum((part.power for part in parts), ZERO)
        parts = [replace(part, power=ZERO) for part in parts]
    found = state.applied(ref, node.fn.expr, parts, scalars)
    if found.expr != const(0) and power != ZERO:
        raise state.sized(ref, power)
    if found.head is None:
        return found.expr
    line = linear(found.expr)
    if line is not None and state.made[found.head].gaussian:
        return const(line[1])
    state.averages[ref] = found.head, found.expr
    return Par(ref)


def _readout(node: Moment, ref: Ref, parts: list[Part], state: _Stretches) -> Part | None:
    """The average of start vector times vector, which is a Gaussian times n^(-1/2)."""
    if not node.fn.is_inner or len(parts) != 2:
        return None
    starts = [part for part in parts if state.is_start(part.head) and part.expr == Var(0)]
    others = [part for part in parts if part.head is not None and not state.is_start(part.head)]
    if len(starts) != 1 or len(others) != 1:
        return None
    (start,), (other,) = starts, others
    power = other.power + start.power - HALF
    assert start.head is not None and other.head is not None
    drawn = state.made[start.head]
    if drawn.near & state.made[other.head].near:
        raise state.refused(ref, f"it is the product of {state.told(start.head)} with itself")
    layer, weight = state.layer(ref, other)
    over = state.ratio(state.program.types[node.vectors[0]].width[0])
    dense = Dense(squared(weight) * drawn.variance / over, outputs=state.outputs)
    new = state.add(Made(dense, (layer,), drawn.near, True, state.program.place(ref)))
    return Part(new, Var(0), power)


def _lincomb(node: LinComb, ref: Ref, values: list[Value], state: _Stretches) -> Value:
    terms: list[tuple[Expr, Part]] = []
    entering: dict[str, list[tuple[Expr, Part]]] = {}
    for number, scalar, vector in zip(node.numbers, node.scalars, node.vectors, strict=True):
        part = state.vector(ref, values[vector])
        if part.expr == const(0):  # weights that start at 0
            continue
        factor: Expr = const(number)
        if scalar is not None:
            factor = mul((factor, state.scalar(ref, values[scalar])))
        if any(own in state.numbers for own in walk(factor)):
            drawn = input_of(state.program.nodes[vector])
            if drawn is None or part.expr != Var(0):
                raise state.refused(ref, "it multiplies a vector by a number of the input")
            entering.setdefault(drawn.family.name, []).append((factor, part))
        else:
            terms.append((factor, part))
    terms += [(const(1), _entered(ref, rows, state)) for rows in entering.values()]
    return state.summed(ref, terms)


def _entered(ref: Ref, terms: list[tuple[Expr, Part]], state: _Stretches) -> Part:
    """An input map: every number of the input times a vector of its own."""
    functions: dict[int, Expr] = {}
    near: frozenset[str] = frozenset()
    variances = set()
    for factor, part in terms:
        used = [own for own in walk(factor) if own in state.numbers]
        function = substitute(factor, {used[0]: Var(0)})
        if any(isinstance(own, Par) for own in walk(function)):
            raise state.refused(ref, "it multiplies weights by a function of several numbers")
        functions[state.numbers[used[0]]] = function
        assert part.head is not None
        near |= state.made[part.head].near
        variances.add(state.made[part.head].variance)
    alike = len(set(functions.values())) == len(variances) == 1
    if len(functions) != len(state.features) or len(terms) != len(functions) or not alike:
        raise state.refused(ref, "it does not read every number of the input alike")
    number, function = scaled(functions[0])
    layer, weight = state.layer(ref, Part(0, function))
    if (layer, near) not in state.entered:
        width = state.ratio(state.program.types[ref].width[0])
        dense = Dense(variances.pop(), width=width)
        made = Made(dense, (layer,), near, True, state.program.place(ref))
        state.entered[layer, near] = state.add(made)
    return Part(state.entered[layer, near], mul((const(number * weight), Var(0))))


def _scale(node: Scale, ref: Ref, values: list[Value], state: _Stretches) -> Value:
    own = values[node.of]
    if own == const(0):  # a readout that starts at 0
        return own
    if node.depth_power != Ex() or not isinstance(own, Part):
        raise state.refused(ref, "it scales by a power of n or of the depth")
    return Part(own.head, own.expr, own.power + node.n_power)


STRETCH_RULES: Rules[Value, _Stretches] = Rules(
    "stretches",
    {
        Data: _data,
        Input: _input,
        MatMul: _matmul,
        Nonlin: _nonlin,
        LinComb: _lincomb,
        Moment: _moment,
        Scale: _scale,
    },
    gaps={
        OuterNonlin: "the recursion follows functions of one vector; the limit of the program "
        "covers functions of pairs of coordinates."
    },
    refusal=StudyError,
    level=Level.VECTORS,
)


def _graph(
    state: _Stretches, values: list[Value], end: tuple[int, Number], nodes: Nodes
) -> LayerGraph:
    """The layers that the output needs; factors that one matrix can carry are part of it.

    What the network reports stays a layer as it is.
    """
    last, weight = end
    if weight != 1:
        made_of, last = last, state.add(Made(Addition((weight,)), (last,), frozenset(), False))
        if made_of in nodes:
            nodes[last] = (*nodes[made_of][:2], nodes[made_of][2] * float(weight))
    made, names = state.made, list(_names(state, values))
    kept = {head for _, head in names}
    readers = _readers(made, last)
    for index in [index for index in readers if weights_of(made[index].operation)]:
        numbers, parents = zip(*_terms(made, index, readers, kept), strict=True)
        made[index] = replace(made[index], operation=Addition(numbers), parents=parents)
    readers = _readers(made, last)
    place: dict[int, int] = {}
    layers: list[Layer] = []
    for index in sorted({0, *readers}):
        own = made[index]
        operation, parents = own.operation, own.parents
        assert operation is not None
        if weights_of(operation):
            weights = []
            for number, parent in zip(weights_of(operation), parents, strict=True):
                below = layers[place[parent]]
                alone = readers[parent] == 1 and parent not in kept
                if below.operation.matrix and alone:
                    dense = cast("Dense", below.operation)
                    dense = replace(dense, variance=dense.variance * squared(number))
                    node = below.node and (*below.node[:2], below.node[2] * float(number))
                    layers[place[parent]] = replace(below, operation=dense, node=node)
                    number = Fraction(1)
                weights.append(number)
            if weights == [1]:
                place[index] = at = place[parents[0]]
                if layers[at].node is None:
                    layers[at] = replace(layers[at], node=nodes.get(index))
                continue
            operation = Addition(tuple(weights))
        place[index] = len(layers)
        read = tuple(place[p] for p in parents)
        layers.append(Layer(operation, read, own.place, nodes.get(index)))
    found = ((name, place[head]) for name, head in names if head in place)
    return LayerGraph(tuple(layers), tuple(found))


def _readers(made: list[Made], last: int) -> Counter[int]:
    """How many layers read each layer that the last one needs."""
    readers = Counter([last])
    for index in range(last, 0, -1):
        if index in readers:
            readers.update(made[index].parents)
    return readers


def _terms(
    made: list[Made], index: int, readers: dict[int, int], kept: set[int]
) -> list[tuple[Number, int]]:
    """What a sum adds, with sums that nothing else reads written out."""
    found: list[tuple[Number, int]] = []
    own = made[index]
    for number, parent in zip(weights_of(own.operation), own.parents, strict=True):
        if weights_of(made[parent].operation) and readers[parent] == 1 and parent not in kept:
            found += [(number * w, p) for w, p in _terms(made, parent, readers, kept)]
        else:
            found.append((number, parent))
    return sorted(found, key=lambda term: term[1])


def _names(state: _Stretches, values: list[Value]) -> Iterator[tuple[str, int]]:
    """What the network reports, where it is a layer."""
    multiples = _multiples(state)
    for name, ref in state.program.outputs:
        for head, factor in multiples(values[ref]):
            if factor == 1 and not name.startswith("%"):
                yield name, head
                break


def _nodes(state: _Stretches, values: list[Value], whole: Program) -> Nodes:
    """For layers the first node that is a multiple of it, the cell, and what the layer is of it.

    The layer itself stands for a multiple that nothing else reads.
    """
    found: Nodes = {}
    readers = Counter(own for node in whole.nodes for own in references(node))
    multiples = _multiples(state)
    for name, ref in state.program.outputs:
        if not name.startswith("%"):
            continue
        own = Name.of(name)
        node, places = int(own.what[1:]), map(int, own.parts)
        axes = zip(places, (axis for axis, _ in whole.types[node].axes), strict=True)
        cell = tuple(place for place, axis in axes if axis not in ALIKE)
        for head, factor in multiples(values[ref]):
            first = found.setdefault(head, (node, cell, 1 / float(factor)))[0]
            if factor == 1 and readers[first] == 1 and first in references(whole.nodes[node]):
                found[head] = node, cell, 1.0
    return found


def _multiples(state: _Stretches) -> Callable[[Value], Iterator[tuple[int, Number]]]:
    """A function that gives the layers that a value is a multiple of, and the multiples."""
    bent: dict[tuple[int | None, Expr], list[tuple[Number, int]]] = {}
    for (head, expr), layer in state.bent.items():
        number, rest = scaled(expr)
        bent.setdefault((head, rest), []).append((number, layer))

    def found(value: Value) -> Iterator[tuple[int, Number]]:
        parts: list[Part] = []
        if isinstance(value, Expr):
            parts = [Part(0, substitute(value, {own: Var(0)})) for own in state.numbers]
        elif value is not None and value.head is not None and value.power == ZERO:
            parts = list(dict.fromkeys((value, state.based(value))))
            pair = linear(value.expr)
            if pair is not None and pair[1] == 0:
                yield value.head, pair[0]
        for part in parts:
            number, rest = scaled(part.expr)
            for own, layer in bent.get((part.head, rest), ()):
                yield layer, number / own

    return found
