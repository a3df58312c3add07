"""``Chain``: a network whose layers follow one another, as its program shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tpcalc.exponents import as_ex
from tpcalc.functions import Const, Expr, Par, Var, const
from tpcalc.functions.expr import add, mul, substitute
from tpcalc.functions.fn import slope_or_none
from tpcalc.functions.numbers import Number
from tpcalc.names import what_of
from tpcalc.networks.network import Architecture
from tpcalc.program.base import (
    Table,
    data_of,
    input_of,
    lincomb_of,
    moment_of,
    nonlin_of,
    references,
)
from tpcalc.program.family import Mark
from tpcalc.program.nodes import Input, LinComb, MatMul, Node, Nonlin, Scale
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


Term = tuple[Number, _Product | Mark | Ref]  # a sum that others read as well stays one


class _NoChain(Exception):
    """A network that is none."""


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
    try:
        maps, functions, skips = zip(*reversed(_Reading(program).links(outs[0])), strict=True)
    except _NoChain:
        return None
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
    """The way back from the output of a network."""

    def __init__(self, program: Program) -> None:
        self.nodes = program.nodes
        self.uses = Counter(ref for node in program.nodes for ref in references(node))

    def links(self, out: Ref) -> list[Link]:
        """From the readout on each map, the function of the sum below, whether that is added."""
        found: list[Link] = []
        at: Ref | None = out
        while at is not None:
            terms = self.terms(at)
            products = [(k, own) for k, own in terms if isinstance(own, _Product)]
            biases = [(own, k) for k, own in terms if isinstance(own, Mark)]
            added = [(k, own) for k, own in terms if isinstance(own, Ref)]
            if len(products) != 1 or len(biases) > 1:
                raise _NoChain
            ((factor, product),) = products
            at, function = (None, None) if product.read is None else self.applied(product.read)
            if added not in ([], [(1, at)]):
                raise _NoChain
            one = Map(product.mark, factor, *(biases[0] if biases else ()))
            found.append((one, function, bool(added)))
        return found

    def terms(self, ref: Ref) -> list[Term]:
        """A sum of multiples of products, of biases, and of sums that others read as well."""
        return _TERMS(self.nodes[ref], ref, self)

    def total(self, numbers: Sequence[Number], refs: Sequence[Ref | None]) -> list[Term]:
        """A sum of multiples of sums, those written out that nothing else reads."""
        found: list[Term] = []
        for number, ref in zip(numbers, refs, strict=True):
            assert ref is not None
            if self.uses[ref] > 1 and input_of(self.nodes[ref]) is None:
                found.append((number, ref))
            else:
                found += [(number * own, what) for own, what in self.terms(ref)]
        return found

    def mark(self, ref: Ref) -> Mark:
        """The mark of trained Gaussian weights."""
        drawn = input_of(self.nodes[ref])
        mark = None if drawn is None else drawn.family.mark
        if drawn is None or mark is None or not mark.trained or drawn.family.law != "gaussian":
            raise _NoChain
        return mark

    def applied(self, ref: Ref) -> tuple[Ref, Expr | None]:
        """A value as a function of a sum; None: one that takes averages."""
        with suppress(_NoChain):
            self.terms(ref)
            return ref, Var(0)
        node = self.nodes[ref]
        function, total = nonlin_of(node), lincomb_of(node)
        if function is None and moment_of(node) is None and (total is None or any(total.over)):
            raise _NoChain
        below = {one: self.applied(one) for one in references(node)}
        if len({at for at, _ in below.values()}) != 1:
            raise _NoChain
        ((at, _), *_) = below.values()
        exprs = [expr for one in references(node) if (expr := below[one][1]) is not None]
        if len(exprs) == len(references(node)):
            if function is not None and not function.scalars:
                slots: dict[Expr, Expr] = {Var(k): expr for k, expr in enumerate(exprs)}
                return at, substitute(function.fn.expr, slots)
            if total is not None and not any(total.scalars):
                parts = zip(total.numbers, exprs, strict=True)
                return at, add(mul((const(number), expr)) for number, expr in parts)
        return at, None


def _input(node: Input, ref: Ref, state: _Reading) -> list[Term]:
    mark = state.mark(ref)
    if node.family.axes and mark.role != "input":
        raise _NoChain
    return [(1, mark)]


def _matmul(node: MatMul, ref: Ref, state: _Reading) -> list[Term]:
    if node.transpose:
        raise _NoChain
    return [(1, _Product(state.mark(node.matrix), node.vector))]


def _lincomb(node: LinComb, ref: Ref, state: _Reading) -> list[Term]:
    if not any(node.over):
        if any(scalar is not None for scalar in node.scalars):
            raise _NoChain
        return state.total(node.numbers, node.vectors)
    (vector, *more), (scalar, *_) = node.vectors, node.scalars  # the input map
    data = None if scalar is None else data_of(state.nodes[scalar])
    if more or data is None or data.values:
        raise _NoChain
    return [(node.numbers[0], _Product(state.mark(vector), None))]


def _nonlin(node: Nonlin, ref: Ref, state: _Reading) -> list[Term]:
    if node.vectors:
        raise _NoChain
    count = len(node.scalars)  # an output is a number
    sums = [state.total((1,), (ref,)) for ref in node.scalars]
    slopes = (slope_or_none(node.fn.expr, Par(k)) for k in range(count))
    numbers = [slope.value for slope in slopes if isinstance(slope, Const)]
    constant = substitute(node.fn.expr, {Par(k): const(0) for k in range(count)})
    if len(numbers) != count or constant != const(0):
        raise _NoChain
    pairs = zip(numbers, sums, strict=True)
    return [(number * own, what) for number, terms in pairs for own, what in terms]


def _scale(node: Scale, ref: Ref, state: _Reading) -> list[Term]:
    """A readout: n times an average of products with weights."""
    average = moment_of(state.nodes[node.of])
    whole = (node.n_power, node.depth_power) == (as_ex(1), as_ex(0))
    if average is None or not whole or not average.fn.is_inner or len(average.vectors) != 2:
        raise _NoChain
    own = [one for one in average.vectors if input_of(state.nodes[one]) is not None]
    read = [one for one in average.vectors if one not in own]
    if len(own) != 1 or state.uses[own[0]] != 1:
        raise _NoChain
    return [(1, _Product(state.mark(own[0]), read[0]))]


def _none(node: Node, ref: Ref, state: _Reading) -> list[Term]:
    raise _NoChain


_TERMS: Table[list[Term]] = Table(
    {Input: _input, MatMul: _matmul, LinComb: _lincomb, Nonlin: _nonlin, Scale: _scale}, _none
)
