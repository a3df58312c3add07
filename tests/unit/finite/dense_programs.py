"""Small programs, node by node, for the tests of dense finite width."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy_run import key, run
from properties.programs import EXP, RELU, TANH

from tpcalc.exponents import Ex
from tpcalc.finite.draws import Network, draw_group, draw_scalar, fill_entries, orthogonal
from tpcalc.finite.widths import dim_sizes
from tpcalc.functions import Atom, Const, Fn, Par, Var, const
from tpcalc.functions.expr import Pow
from tpcalc.program.nodes import (
    Data,
    Dim,
    Family,
    Input,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    OuterNonlin,
    Ref,
    Scale,
    members,
)
from tpcalc.program.program import Builder, Program

INNER = Fn(Var(0) * Var(1), 2)
HALF = Fraction(1, 2)
RECIPROCAL_OF_ZERO = Fn(Pow(const(0), Fraction(-1)), 0, 1)


def plain(power: int | Fraction) -> Ex:
    """A power without symbols."""
    return Ex.number(power)


def half_power(builder: Builder, of: Ref, power: Fraction = -HALF) -> Ref:
    """``n**power`` times a node."""
    return builder.add(Scale(of, Ex.number(power)))


def inner(builder: Builder, left: Ref, right: Ref) -> Ref:
    """The average of the product of two vectors."""
    return builder.add(Moment(INNER, (left, right)))


def standard(builder: Builder, name: str, dim: str = "n", variance: float = 1.0) -> Ref:
    """A vector of iid Gaussian coordinates."""
    return builder.add(Input(Family.group(name, dim, (Fraction(0),), ((variance,),))))


def round_trip(
    atom: Atom | None, dims: tuple[Dim, Dim] = (Dim("n"), Dim("n")), variance: float = 1.0
) -> Program:
    """h = W f(W^T z) with entries of W of variance 1/n; outputs z, h, <z, h>, <h, h>."""
    builder = Builder(dict.fromkeys(dims))
    z = standard(builder, "z", dims[0].name, variance)
    matrix = builder.add(Input(Family("W", (dims[0].name, dims[1].name))))
    there = half_power(builder, builder.add(MatMul(matrix, z, True)))
    bent = there if atom is None else builder.add(Nonlin(Fn(atom(Var(0)), 1), (there,)))
    h = half_power(builder, builder.add(MatMul(matrix, bent)))
    builder.output("z", z)
    builder.output("h", h)
    builder.output("zh", inner(builder, z, h))
    builder.output("hh", inner(builder, h, h))
    return builder.finish()


def every_node(steps: int = 3) -> Program:
    """A program with every node type, several products of one matrix at a time, and two ratios."""
    builder = Builder((Dim("n"), Dim("m", Fraction(3, 2))))
    cov = ((1.0, 0.5, 1.5), (0.5, 1.0, 1.5), (1.5, 1.5, 3.0))
    xs = [builder.add(cell) for cell in members(Family.group("x", "n", (0.0, 1.0, 0.5), cov))]
    first = builder.add(Input(Family("U", ("m", "n"))))
    turn = builder.add(Input(Family("R", ("m", "m"), law="orthogonal")))
    rate = builder.add(Data("rate", (HALF,)))
    noise = builder.add(Input(Family.scalar("noise", Fraction(0), Fraction(1))))
    outcome = builder.add(Nonlin(Fn(Par(0) * TANH(Par(1)), 0, 2), (), (rate, noise)))
    builder.output("noise", noise)
    builder.output("outcome", outcome)
    for step in range(steps):
        hidden = [half_power(builder, builder.add(MatMul(first, x))) for x in xs]
        bent = [
            builder.add(Nonlin(Fn(TANH(Var(0)) * Par(0) + RELU(Var(0)), 1, 1), (h,), (outcome,)))
            for h in hidden
        ]
        turned = [half_power(builder, builder.add(MatMul(turn, b))) for b in bent]
        back = [half_power(builder, builder.add(MatMul(first, t, True))) for t in turned]
        size = builder.add(Moment(Fn(EXP(-(Var(0) ** 2)) + Par(0), 1, 1), (back[0],), (rate,)))
        rough = builder.add(
            OuterNonlin(
                Fn(TANH(Var(0) * Var(1) + Par(0)), 2, 1), (xs[0],), (hidden[1],), (size,), hidden[2]
            )
        )
        xs = [
            builder.add(
                LinComb(
                    (Fraction(1), 0.25, -1.0, HALF), (None, rate, size, None), (*pair, rough, xs[0])
                )
            )
            for pair in zip(xs, back, strict=True)
        ]
        builder.output(f"size[{step}]", size)
        builder.output(f"x[{step}]", xs[0])
        builder.output(f"gram[{step}]", inner(builder, xs[1], xs[2]))
    flat = builder.add(Nonlin(Fn(Const(Fraction(3)), 1), (xs[0],)))
    builder.output("flat", flat)
    return builder.finish()


def drawn(node: Input, network: Network, sizes: dict[str, int]) -> Any:
    """A number, a vector or a matrix of a network."""
    family = node.family
    if not family.width:
        return draw_scalar(family, network)
    if len(family.width) == 1:
        cells = tuple(range(family.size))
        return draw_group(family, cells, network, sizes[family.dim])[node.index]
    rows, cols = (sizes[dim] for dim in family.width)
    if family.law == "orthogonal":
        return orthogonal(family, network, rows, cols)
    matrix = np.empty((rows, cols))
    fill_entries(family, [network], [matrix])
    return matrix


def reference(program: Program, width: int, seed: int) -> dict[tuple[str, str], float]:
    """One network in numpy, one node after the other, as the definitions of the nodes read."""
    network, sizes = Network(seed, width), dim_sizes(program.dims, width)

    inputs = {
        key(node): drawn(node, network, sizes) for node in program.nodes if isinstance(node, Input)
    }
    found: dict[tuple[str, str], float] = {}
    for name, value in run(program, width, inputs).items():
        if np.ndim(value) == 0:
            found[name, "value"] = float(value)
        else:
            found[name, "mean"] = float(np.mean(value))
            found[name, "second_moment"] = float(np.mean(value**2))
    return found
