"""``Chain``: a network whose layers follow one another, as its program shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tpcalc.errors import NotDifferentiable
from tpcalc.exponents import as_ex
from tpcalc.functions import Const, Expr, Par, Var, const
from tpcalc.functions.expr import mul, substitute
from tpcalc.functions.fn import derivative
from tpcalc.functions.numbers import Number
from tpcalc.names import what_of
from tpcalc.networks.network import Architecture
from tpcalc.program.base import Table, data_of, input_of, matrix_of, references
from tpcalc.program.family import Mark
from tpcalc.program.nodes import Data, Input, LinComb, MatMul, Moment, Nonlin, Scale
from tpcalc.program.program import Program
from tpcalc.program.types import Ref


@dataclass(frozen=True, slots=True)
class Map:
    """A linear map of a chain, with its bias."""

    mark: Mark  # of its weights
    factor: Number  # in front of them
    bias: Mark | None = None  # the mark of its bias; None: it has none
    shift: Number = 0  # the factor in front of that


@dataclass(frozen=True)
class Chain:
    """h^1 = W^1 x + b^1, h^(l+1) = W^(l+1) phi(h^l) + b^(l+1), with one activation phi."""

    maps: tuple[Map, ...]  # the maps in order, the readout last
    # what is applied to each h^l, of Var(0); None: it takes averages, as norms do
    functions: tuple[Expr | None, ...]
    skips: bool  # whether h^l is added to each map of phi(h^l), and the readout reads the last sum

    @cached_property
    def activation(self) -> Expr | None:
        """The function that all layers apply; None where they do not share one, or normalise."""
        found = set(self.functions[:-1] if self.skips else self.functions)
        return found.pop() if len(found) == 1 else None

    @property
    def plain(self) -> bool:
        """Whether it is fully connected, without skips and norms, with one activation."""
        return not self.skips and self.activation is not None

    @property
    def biased(self) -> tuple[int, ...]:
        """The numbers of the maps that have biases, from 1."""
        return tuple(layer for layer, one in enumerate(self.maps, 1) if one.bias is not None)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks of its weights and biases."""
        biases = (one.bias for one in self.maps if one.bias is not None)
        return (*(one.mark for one in self.maps), *biases)


@dataclass(frozen=True, slots=True)
class _Product:
    """The weights of a map times what it reads; None: the input."""

    mark: Mark
    read: Ref | None


Term = tuple[Number, _Product | Mark | Ref]


@dataclass(frozen=True, slots=True)
class _Sum:
    """Multiples of products, of biases, and of sums that others read as well."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class _Applied:
    """A function of a sum; None: one that takes averages."""

    of: Ref
    function: Expr | None


@dataclass(frozen=True, slots=True)
class _Average:
    """An average of products with the weights of a readout, which a factor n is to follow."""

    product: _Product


_Value = _Sum | _Applied | _Average | None


def chain_of(network: Architecture) -> Chain | None:
    """The chain that a network is; None where it is none.

    Example:
        >>> import tpcalc as tp
        >>> @tp.network
        ... def net(t, x):
        ...     h = t.linear(t.n, "in", True, name="u")(x)
        ...     return t.linear(t.outputs, t.n, name="v")(tp.relu(h))
        >>> chain = chain_of(net)
        >>> chain.activation.text, chain.biased, chain_of(tp.RNN(2))
        ('relu(x0)', (1,), None)
    """
    return _known(network) if isinstance(network, Hashable) else _read(network)


def _read(network: Architecture) -> Chain | None:
    program = network.smallest
    outs = [ref for name, ref in program.outputs if what_of(name) == "f"]
    if network.axes or len(program.dims) > 1 or len(outs) > 1:
        return None
    links = _Reading(program).links(outs[0])
    if links is None:
        return None
    maps, functions, skips = zip(*reversed(links), strict=True)
    inner = len(maps) - 2
    if [one.mark.role for one in maps] != ["input", *["hidden"] * inner, "readout"]:
        return None
    chain = Chain(maps, functions[1:], any(skips))
    if chain.skips and (skips != (False, *[True] * inner, False) or functions[-1] != Var(0)):
        return None
    marks = [family.mark for family in program.families.values()]
    return chain if Counter(marks) == Counter(chain.marks) else None  # each is used once


_known = lru_cache(maxsize=64)(_read)  # reading a deep network takes as long as a small kernel
Link = tuple[Map, Expr | None, bool]


class _Reading:
    """The values of the nodes of a network, and the way back from its output."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.uses = Counter(ref for node in program.nodes for ref in references(node))
        self.values: list[_Value] = []
        for node in program.nodes:
            self.values.append(_RULES(node, self))

    def links(self, out: Ref) -> list[Link] | None:
        """From the readout on each map, the function of the sum below, whether that is added."""
        found: list[Link] = []
        at: Ref | None = out
        while at is not None:
            value = self.values[at]
            terms = value.terms if isinstance(value, _Sum) else ()
            products = [(k, own) for k, own in terms if isinstance(own, _Product)]
            biases = [(own, k) for k, own in terms if isinstance(own, Mark)]
            added = [(k, own) for k, own in terms if isinstance(own, Ref)]
            if len(products) != 1 or len(biases) > 1:
                return None
            ((factor, product),) = products
            below = None if product.read is None else self.applied(product.read)
            at = None if below is None else below.of
            if (product.read is not None and below is None) or added not in ([], [(1, at)]):
                return None
            one = Map(product.mark, factor, *(biases[0] if biases else ()))
            found.append((one, None if below is None else below.function, bool(added)))
        return found

    def applied(self, ref: Ref) -> _Applied | None:
        """A value as a function of a sum."""
        value = self.values[ref]
        if isinstance(value, _Sum):
            return _Applied(ref, Var(0))
        return value if isinstance(value, _Applied) else None

    def total(self, numbers: Sequence[Number], refs: Sequence[Ref]) -> _Sum | None:
        """A sum of multiples of sums, those written out that nothing else reads."""
        terms: list[Term] = []
        for number, ref in zip(numbers, refs, strict=True):
            value = self.values[ref]
            if not isinstance(value, _Sum):
                return None
            if self.uses[ref] > 1 and input_of(self.program.nodes[ref]) is None:
                terms.append((number, ref))
            else:
                terms += [(number * own, what) for own, what in value.terms]
        return _Sum(tuple(terms))


def _input(node: Input, state: _Reading) -> _Value:
    mark = node.family.mark
    block = node.family.axes and mark is not None and mark.role != "input"
    if mark is None or not mark.trained or block or node.family.law != "gaussian":
        return None
    return _Sum(((1, mark),))


def _matmul(node: MatMul, state: _Reading) -> _Value:
    mark = matrix_of(state.program.nodes, node).family.mark
    if mark is None or node.transpose or state.values[node.matrix] is None:
        return None
    return _Sum(((1, _Product(mark, node.vector)),))


def _lincomb(node: LinComb, state: _Reading) -> _Value:
    if node.over and any(node.over):
        return _entered(node, state)
    refs = [own for own in (*node.scalars, *node.vectors) if own is not None]
    if all(scalar is None for scalar in node.scalars):
        total = state.total(node.numbers, refs)
        if total is not None:
            return total
        value = state.values[refs[0]]
        if len(refs) == 1 and isinstance(value, _Applied) and value.function is not None:
            return _Applied(value.of, mul((const(node.numbers[0]), value.function)))
    return _averaged(refs, state)


def _entered(node: LinComb, state: _Reading) -> _Value:
    """The input map."""
    (vector, *_), (scalar, *_) = node.vectors, node.scalars
    drawn = input_of(state.program.nodes[vector])
    data = None if scalar is None else data_of(state.program.nodes[scalar])
    if len(node.vectors) > 1 or drawn is None or data is None or data.values:
        return None
    mark = drawn.family.mark
    return None if mark is None else _Sum(((node.numbers[0], _Product(mark, None)),))


def _nonlin(node: Nonlin, state: _Reading) -> _Value:
    if len(node.vectors) == 1 and not node.scalars:
        below = state.applied(node.vectors[0])
        if below is not None and below.function is not None:
            return _Applied(below.of, substitute(node.fn.expr, {Var(0): below.function}))
    if not node.vectors and all(isinstance(state.values[ref], _Sum) for ref in node.scalars):
        numbers = _slopes(node.fn.expr, len(node.scalars))  # an output is a number
        return None if numbers is None else state.total(numbers, node.scalars)
    return _averaged((*node.vectors, *node.scalars), state)


def _slopes(expr: Expr, count: int) -> list[Number] | None:
    """The factors of a sum of multiples of random numbers; None of any other function."""
    try:
        slopes = [derivative(expr, Par(k)) for k in range(count)]
    except NotDifferentiable:
        return None
    numbers = [slope.value for slope in slopes if isinstance(slope, Const)]
    constant = substitute(expr, {Par(k): const(0) for k in range(count)})
    return numbers if len(numbers) == count and constant == const(0) else None


def _moment(node: Moment, state: _Reading) -> _Value:
    """A readout: an average of products with weights, which a factor n follows."""
    drawn = [input_of(state.program.nodes[ref]) for ref in node.vectors]
    if node.fn.is_inner and len(drawn) == 2 and (drawn[0] is None) != (drawn[1] is None):
        weights, read = (0, 1) if drawn[0] is not None else (1, 0)
        mark = drawn[weights].family.mark  # type: ignore[union-attr]
        if mark is not None and state.uses[node.vectors[weights]] == 1:
            return _Average(_Product(mark, node.vectors[read]))
    return _averaged((*node.vectors, *node.scalars), state)


def _scale(node: Scale, state: _Reading) -> _Value:
    """The factor n of a readout."""
    value = state.values[node.of]
    if isinstance(value, _Average) and (node.n_power, node.depth_power) == (as_ex(1), as_ex(0)):
        return _Sum(((1, value.product),))
    return None


def _averaged(refs: Sequence[Ref], state: _Reading) -> _Value:
    """A function that takes averages of one sum."""
    below = [state.applied(ref) for ref in refs]
    sums = {one.of for one in below if one is not None}
    return _Applied(sums.pop(), None) if None not in below and len(sums) == 1 else None


_RULES: Table[_Value] = Table(
    {
        Data: lambda node, state: None,
        Input: _input,
        MatMul: _matmul,
        LinComb: _lincomb,
        Nonlin: _nonlin,
        Moment: _moment,
        Scale: _scale,
    },
    lambda node, state: None,
)
