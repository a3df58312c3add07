"""A network's forward pass and its update as formulas, for pages and for Markdown.

They are read off the program of the network: what it reports has an equation each, layers that are
written alike share one, and what is used twice and has no name is called z.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import notation
from tpcalc.functions.notation import Piece, call, index, number, product, total, word, written
from tpcalc.functions.spelling import notations
from tpcalc.names import Name
from tpcalc.networks.network import INPUT, Architecture
from tpcalc.program.base import data_of, input_of, references
from tpcalc.program.nodes import (
    Data,
    Family,
    Input,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    OuterNonlin,
    Ref,
    Rename,
    RowNonlin,
    Scale,
    Stack,
)
from tpcalc.program.program import Program
from tpcalc.program.rules import Level, Rules, interpret
from tpcalc.results import Formula
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.written import network_program

ZERO, ONE = as_ex(0), as_ex(1)
FEATURES = "in"
WRITTEN = "W_x"  # what maps write is part of what the network reports, or of what is called z
LONG = 4  # pieces of what is written anew wherever it is used; longer ones get a name
DIGEST = re.compile(r"(.+) [0-9a-f]{12}")  # of a constant, behind what it is for


def network_formulas(
    network: Architecture, parameterization: Parameterization, steps: int
) -> tuple[tuple[str, Formula], ...]:
    """Forward pass and update, with the powers of n filled in.

    Source: Hajjar, Chizat, Giraud, equations (2.1), for tp.MLP, and (2.2).
    """
    program = network_program(network, parameterization, network.tokens, 1)
    state = _Forward(program)
    interpret(program, FORMULA_RULES, state)
    forward = [(title, _formula(piece)) for title, piece in _grouped(state.equations)]
    return (*forward, *(("Update", _update()) for _ in range(min(steps, 1))))


def drawn(family: Family) -> Piece:
    """A parameter by its label, a bias by its name."""
    name, mark = family.name, family.mark
    if mark is None or not mark.trained:
        return word(name)
    if mark.label.isdigit() and name.endswith(mark.label):
        return index(name.removesuffix(mark.label), mark.label)
    return word(name if mark.bias else mark.label)


def _update() -> Formula:
    own = Piece("layer", (word("W"),), "l")
    rate = product(word("η"), notation.power(word("n"), "-c_l"))
    step = product(rate, notation.difference(word("loss"), own))
    return _formula(Piece("update", (own, total(own, notation.negative(step)))))


def _formula(piece: Piece) -> Formula:
    return Formula(*notations(piece))


@dataclass(frozen=True, slots=True)
class _Equation:
    """What a name stands for: the name without its label, the label, both sides."""

    what: str
    label: str
    left: Piece
    right: Piece

    @property
    def layer(self) -> int | None:
        """The number of the layer."""
        return int(self.label) if self.label.isdigit() else None

    def told(self, layer: int | None = None) -> str:
        """As text, told from a layer."""
        return notations(notation.placed(notation.equation(self.left, self.right), layer))[0]


@dataclass(frozen=True, slots=True)
class _Value:
    """A node: a power of n, times a piece."""

    piece: Piece
    power: Ex = ZERO

    @property
    def whole(self) -> Piece:
        """With the power in front."""
        if self.power == ZERO:
            return self.piece
        return product(notation.power(word("n"), str(self.power)), self.piece)


@dataclass
class _Forward:
    program: Program
    equations: list[_Equation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names: dict[Ref, list[tuple[str, str]]] = {}
        for name, ref in self.program.outputs:
            own = Name.of(name)
            if own.what != WRITTEN:
                self.names.setdefault(ref, []).append((own.what, ",".join(own.parts)))
        self.uses = Counter[Ref]()
        for ref in reversed(range(len(self.program.nodes))):
            if ref in self.names or self.uses[ref]:
                self.uses.update(references(self.program.nodes[ref]))
        self.longer = 0  # how many are called z
        self.given = _constants(self.program)

    def named(self, ref: Ref, value: _Value) -> _Value:
        """A value as what it is called, which gets an equation."""
        names = self.names.get(ref, [])
        if not names and self.uses[ref] > 1 and value.piece.size > LONG:
            self.longer += 1
            names = [("z", str(self.longer))]
        for what, label in names:
            left = index(what, label) if label else word(what)
            self.equations.append(_Equation(what, label, left, value.whole))
            value = _Value(left)
        return value


def _constants(program: Program) -> dict[str, str]:
    """What constants are called: what they are for, with numbers where there are several."""
    nodes = (data_of(node) for node in program.nodes)
    found = {node.name: own[1] for node in nodes if node and (own := DIGEST.fullmatch(node.name))}
    kinds = Counter(found.values())
    seen = Counter[str]()
    for name, kind in found.items():
        seen[kind] += 1
        found[name] = kind if kinds[kind] == 1 else f"{kind} {seen[kind]}"
    return found


Rule = Callable[[Any, Ref, list[_Value], _Forward], _Value]


def _data(node: Data, ref: Ref, values: list[_Value], state: _Forward) -> _Value:
    return _Value(word("ξ" if node.name == INPUT else state.given.get(node.name, node.name)))


def _input(node: Input, ref: Ref, values: list[_Value], state: _Forward) -> _Value:
    return _Value(drawn(node.family))


def _matmul(node: MatMul, ref: Ref, values: list[_Value], state: _Forward) -> _Value:
    matrix, x = values[node.matrix].piece, values[node.vector]
    if node.transpose:
        matrix = notation.transposed(matrix)
    return _Value(notation.mapped(matrix, x.piece), x.power)


def _lincomb(node: LinComb, ref: Ref, values: list[_Value], state: _Forward) -> _Value:
    terms = []
    for factor, scalar, vector, axes in node.terms:
        x = values[vector]
        if scalar is None:
            terms.append((factor, _summed(x.piece, axes), x.power))
            continue
        own = values[scalar]
        cell = _cell(data_of(state.program.nodes[scalar]), axes)
        if cell is not None:
            terms.append((factor, notation.subscript(x.piece, cell), x.power))
            continue
        weights = input_of(state.program.nodes[vector]) is not None and bool(axes)
        both = notation.mapped(x.piece, own.piece) if weights else product(own.piece, x.piece)
        terms.append((factor, _summed(both, axes), x.power + own.power))
    if len(terms) == 1:
        ((factor, piece, power),) = terms
        return _Value(_times(factor, piece), power)
    return _Value(total(*(_times(f, _Value(piece, power).whole) for f, piece, power in terms)))


def _times(factor: Fraction | float, piece: Piece) -> Piece:
    """A number in front; a sign joins it."""
    if factor == 1:
        return piece
    return notation.negative(piece) if factor == -1 else product(number(factor), piece)


def _cell(node: Data | None, axes: Sequence[str]) -> str | None:
    """The cell that a sum over an axis with a single 1 among zeros takes out."""
    if node is None or len(node.axes) != 1 or len(axes) != 1:
        return None
    values = list(node.values)
    if sorted(values) != [0] * (len(values) - 1) + [1]:
        return None
    return f"{axes[0]}={values.index(1)}"


def _summed(piece: Piece, axes: Sequence[str]) -> Piece:
    """A sum over axes; that over the features of an input goes without saying."""
    shown = [axis for axis in axes if axis != FEATURES]
    if not shown:
        return piece
    return notation.summed(", ".join(shown), piece)


def _wholes(values: list[_Value], *refs: Iterable[Ref]) -> Iterator[list[Piece]]:
    return ([values[own].whole for own in group] for group in refs)


def _nonlin(node: Nonlin, ref: Ref, values: list[_Value], state: _Forward) -> _Value:
    return _Value(written(node.fn.expr, *_wholes(values, node.vectors, node.scalars)))


def _moment(node: Moment, ref: Ref, values: list[_Value], state: _Forward) -> _Value:
    parts = [values[own] for own in node.vectors]
    leaves = [input_of(state.program.nodes[own]) is not None for own in node.vectors]
    if node.fn.is_inner and len(parts) == 2 and any(leaves):
        weights, x = parts if leaves[0] else parts[::-1]
        ratio = state.program.dim[state.program.types[node.vectors[0]].width[0]].ratio
        piece = _times(1 / ratio, notation.mapped(weights.piece, x.piece))
        return _Value(piece, weights.power + x.power - ONE)  # an average is a product over the size
    inside = written(node.fn.expr, *_wholes(values, node.vectors, node.scalars))
    return _Value(call(word("mean"), inside))


def _scale(node: Scale, ref: Ref, values: list[_Value], state: _Forward) -> _Value:
    own = values[node.of]
    piece = own.piece
    if node.depth_power != ZERO:
        piece = product(notation.power(word("L"), str(node.depth_power)), piece)
    return _Value(piece, own.power + node.n_power)


def _rename(node: Rename, ref: Ref, values: list[_Value], state: _Forward) -> _Value:
    own = values[node.of]
    below = ", ".join(f"{old}={new}" for old, new in node.names)
    return replace(own, piece=notation.subscript(own.piece, below))


def _stack(node: Stack, ref: Ref, values: list[_Value], state: _Forward) -> _Value:
    parts = notation.listed(values[own].whole for own in node.of)
    return _Value(notation.subscript(parts, node.axis))


def _rows(node: RowNonlin, ref: Ref, values: list[_Value], state: _Forward) -> _Value:
    function = notation.subscript(word(node.row.name), node.along)
    return _Value(call(function, values[node.of].whole))


def _outer(node: OuterNonlin, ref: Ref, values: list[_Value], state: _Forward) -> _Value:
    both = _wholes(values, (*node.rows, *node.cols), node.scalars)
    matrix = call(word("outer"), written(node.fn.expr, *both))
    return _Value(notation.mapped(matrix, values[node.vector].piece), values[node.vector].power)


def _naming(rule: Rule) -> Rule:
    """A rule whose value goes by its name, where the node has one."""
    return lambda node, ref, values, state: state.named(ref, rule(node, ref, values, state))


_RULES: dict[type, Rule] = {
    Data: _data,
    Input: _input,
    MatMul: _matmul,
    LinComb: _lincomb,
    Nonlin: _nonlin,
    Moment: _moment,
    Scale: _scale,
    Rename: _rename,
    Stack: _stack,
    RowNonlin: _rows,
    OuterNonlin: _outer,
}
FORMULA_RULES: Rules[_Value, _Forward] = Rules(
    "formulas",
    {kind: _naming(rule) for kind, rule in _RULES.items()},
    level=Level.BLOCKS,
)


def _grouped(equations: Sequence[_Equation]) -> Iterator[tuple[str, Piece]]:
    """Equations with what they are of; layers in a row that are written alike are one."""
    left = list(equations)
    while left:
        first = left.pop(0)
        run = [first]
        if first.layer is not None:
            same = first.told(first.layer)
            for one in list(left):
                if one.what != first.what:
                    continue
                if one.layer != first.layer + len(run) or one.told(one.layer) != same:
                    break
                run.append(one)
                left.remove(one)
        layer = first.layer if len(run) > 1 else None
        title = notations(notation.placed(first.left, layer))[0]
        if layer is not None:
            title += f", l = {first.label}, ..., {run[-1].label}"
        yield title, notation.placed(notation.equation(first.left, first.right), layer)
