"""A plain interpreter of programs with explicit matrices: the reference that tests compare with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tpcalc.activations.entries.abs import ABS
from tpcalc.activations.entries.relu import RELU
from tpcalc.functions import Call, Const, Expr, Fn, Par, Var, const
from tpcalc.functions.expr import Add, Mul, add, mul
from tpcalc.functions.tape import evaluate as evaluated
from tpcalc.program.base import carry_of, repeat_of
from tpcalc.program.nodes import (
    Carry,
    Data,
    Family,
    Input,
    Kind,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    OuterNonlin,
    Repeat,
    Scale,
    members,
)
from tpcalc.program.program import Program

ROUNDING = 1e-12  # of the terms of a sum


@dataclass(frozen=True)
class World:
    """A width, what is drawn at it, and a depth."""

    width: int
    inputs: Mapping[str, Any]
    depth: int = 0


Rule = Callable[[Any, Any, World], Any]  # of a node, the values before it, and the world


def run(program: Program, width: int, inputs: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """Evaluate all outputs.

    Args:
        program: The program.
        width: n.
        inputs: Arrays by ``key``: ``"W"`` for a matrix, ``"g[0]"`` for a start vector, scalars. Of
            what a repeated block draws ``"W.2"``, or the number of the repetition for ``{l}``.
        depth: L.
    """
    assert not program.has_blocks
    values: dict[int, Any] = {}
    every: dict[str, Any] = {}
    world = World(width, inputs, depth)
    loops = {
        repeat.carry: ref for ref in program.repeats if (repeat := repeat_of(program.nodes[ref]))
    }
    ref = 0
    turn = 0
    while ref < len(program.nodes):
        node = program.nodes[ref]
        if isinstance(node, Carry):
            turn, values[ref] = 1, values[node.start]
        elif isinstance(node, Repeat):
            start = node.carry
            carry = carry_of(program.nodes[start])
            assert carry is not None
            inside = range(start, ref)
            every |= {
                name.replace("{l}", str(turn)): values[shown]
                for name, shown in program.outputs
                if shown in inside
            }
            values[ref] = values[node.next]
            if turn < (carry.count or depth):
                turn += 1
                values[start] = values[node.next]
                ref = start + 1
                continue
        else:
            drawn = isinstance(node, Input) and node.family.along
            values[ref] = (
                _of_turn(node.family.name, turn, inputs)
                if drawn
                else RULES[type(node)](node, values, world)
            )
        ref += 1
    return every | {
        name: values[shown]
        for name, shown in program.outputs
        if not any(start <= shown < end for start, end in loops.items())
    }


def _of_turn(name: str, turn: int, inputs: Mapping[str, Any]) -> Any:
    numbered = name.replace("{l+1}", str(turn + 1))
    return inputs[numbered if numbered != name else f"{name}.{turn}"]


def is_input(node: Any, kind: Kind) -> bool:
    """Whether a node is a random vector, matrix or number."""
    return isinstance(node, Input) and node.family.type.kind is kind


def key(node: Input | Data) -> str:
    """The name of an input, a start vector with its number in its family, also of one alone."""
    vector = isinstance(node, Input) and len(node.family.width) == 1
    return f"{node.family.name}[{node.index}]" if vector else node.name


def evaluate(fn: Fn, vectors: list[Any], scalars: list[Any]) -> Any:
    """A function in exact numbers: what is on a jump but for rounding is on it."""
    return evaluated(_unrounded(fn), vectors, scalars)


@lru_cache(maxsize=4096)
def _unrounded(fn: Fn) -> Fn:
    return Fn(_exact(fn.expr), fn.vectors, fn.scalars)


def _exact(expr: Expr) -> Expr:
    if isinstance(expr, Const | Var | Par):
        return expr
    if isinstance(expr, Add):
        return add(tuple(map(_exact, expr.terms)))
    if isinstance(expr, Mul):
        return mul(tuple(map(_exact, expr.factors)))
    if isinstance(expr, Call):
        arg = _exact(expr.arg)
        if expr.atom.derivative is None and isinstance(arg, Add) and 0.0 in expr.atom.facts.kinks:
            near = mul((const(-ROUNDING), add(tuple(ABS(term) for term in arg.terms))))
            below = RELU(add((mul((const(-1), arg)), near)))
            arg = add((RELU(add((arg, near))), mul((const(-1), below))))
        return Call(expr.atom, arg)
    return _exact(expr.base) ** expr.exponent


def _number(fn: Fn, numbers: list[Any]) -> float:
    """A function of numbers; what cancels but for rounding is 0."""
    found = float(evaluate(fn, [], numbers))
    parts = fn.expr.terms if isinstance(fn.expr, Add) else ()
    sizes = [abs(float(evaluate(Fn(part, 0, len(numbers)), [], numbers))) for part in parts]
    return 0.0 if sizes and abs(found) <= ROUNDING * max(sizes) else found


def _given(node: Input | Data, values: Any, world: World) -> Any:
    inputs = world.inputs
    if isinstance(node, Data):  # a slot has no values
        return float(inputs.get(node.name, *(node.values or (inputs[node.name],))))
    if node.family.width:
        return inputs[key(node)]
    return float(inputs.get(node.name, *(node.family.mean or (0,))))


def _sum(node: LinComb, values: Any, world: World) -> Any:
    triples = zip(node.numbers, node.scalars, node.vectors, strict=True)
    return total([
        float(number) * (1.0 if scalar is None else values[scalar]) * values[vector]
        for number, scalar, vector in triples
    ])  # fmt: skip


def total(terms: list[Any]) -> Any:
    """A sum; what cancels but for rounding is 0, as a jump may be there."""
    found = sum(terms)
    return np.where(np.abs(found) <= ROUNDING * sum(map(np.abs, terms)), 0.0, found)


def _product(node: MatMul, values: Any, world: World) -> Any:
    matrix = values[node.matrix]
    return (matrix.T if node.transpose else matrix) @ values[node.vector]


def _apply(node: Any, values: Any, world: World) -> Any:
    vectors, scalars = ([values[ref] for ref in refs] for refs in (node.vectors, node.scalars))
    if not vectors:
        return _number(node.fn, scalars)
    return np.broadcast_to(evaluate(node.fn, vectors, scalars), len(vectors[0]))


def mean(node: Any, values: Any, world: World) -> float:
    """The average of a function of vectors."""
    return float(np.mean(_apply(node, values, world)))


def outer(node: Any, values: Any, world: World) -> Any:
    """The average over columns of a function of rows and columns, times a vector."""
    sides = [values[r][:, None] for r in node.rows] + [values[c][None, :] for c in node.cols]
    block, x = evaluate(node.fn, sides, [values[s] for s in node.scalars]), values[node.vector]
    return np.broadcast_to(block, (len(values[node.rows[0]]), len(x))) @ x / len(x)


def _scale(node: Scale, values: Any, world: World) -> Any:
    powers = node.n_power.constant, node.depth_power.constant
    assert None not in powers
    factors = float(world.width) ** float(powers[0]), float(world.depth) ** float(powers[1])
    return values[node.of] * factors[0] * factors[1]


RULES: dict[type, Rule] = {
    Input: _given,
    Data: _given,
    MatMul: _product,
    Nonlin: _apply,
    LinComb: _sum,
    Moment: mean,
    OuterNonlin: outer,
    Scale: _scale,
}


def draw(program: Program, width: int, rng: np.random.Generator) -> dict[str, Any]:
    """Random inputs of one network: what ``run`` reads, matrices formed entry by entry."""
    sizes = {dim.name: round(dim.ratio * width) for dim in program.dims}
    found: dict[str, Any] = {}
    for family in program.families.values():
        if len(family.width) == 2:
            rows, cols = family.width
            found[family.name] = _matrix(family, sizes[rows], sizes[cols], rng)
        elif family.width:
            for member, row in zip(members(family), _rows(family, sizes, rng), strict=True):
                found[key(member)] = row
        else:
            ((mean,), std) = (family.mean or (0,), family.std)
            found[family.name] = float(mean) + float(std) * rng.standard_normal()
    return found


def _rows(family: Family, sizes: Mapping[str, int], rng: np.random.Generator) -> Any:
    mean = np.array(family.mean or (0,) * family.size, dtype=float)
    rows = rng.standard_normal((len(mean), sizes[family.dim]))
    if family.cov is not None:
        spectrum, basis = np.linalg.eigh(np.array(family.cov, dtype=float))
        rows = (basis * np.sqrt(np.maximum(spectrum, 0))) @ rows
    return mean[:, None] + rows


def _matrix(family: Family, rows: int, cols: int, rng: np.random.Generator) -> Any:
    if family.law == "gaussian":
        return rng.standard_normal((rows, cols))
    basis, upper = np.linalg.qr(rng.standard_normal((max(rows, cols), min(rows, cols))))
    basis = basis * (np.sign(np.diag(upper)) * np.sqrt(len(basis)))  # the signs make it Haar
    return basis if rows >= cols else basis.T
