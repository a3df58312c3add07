"""Gradients of blocks: slopes of their values, and cell by cell those of the split program."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from properties.blocks import block_programs
from properties.programs import atoms

import tpcalc as tp
from tests import block_run, numpy_run
from tpcalc.functions import Fn, Par, Var
from tpcalc.passes.backward import BACKWARD_RULES, backward
from tpcalc.passes.split import split
from tpcalc.program.nodes import (
    Data,
    Family,
    Input,
    Kind,
    LinComb,
    Moment,
    Nonlin,
    OuterNonlin,
    Ref,
)
from tpcalc.program.parse import from_text
from tpcalc.program.program import Builder, Program

WIDTH = 5
STEP = 1e-5  # of differences, beside numbers of order one

# Sums over some axes and not others, other names, numbers in front, what is there twice.
WRITTEN = {
    "some operands lack the axis": """\
family x : n[b:2]
family v : n
family s : [b:2]
family c : ()
%0 : n[b:2] = input x
%1 : n = input v
%2 : [b:2] = input s
%3 : () = input c
%4 : [b:2] = moment {tanh(x0)*x1*s0*s1} (%0, %1; %2, %3)
output f %4
""",
    "matrices with and without the axis": """\
family W : m*n
family V : n*n[c:3]
family x : n[e:2]
%0 : m*n = input W
%1 : n*n[c:3] = input V
%2 : n[e:2] = input x
%3 : n[e:2,c:3] = matmul %1 %2
%4 : n[e:2,b:3] = rename %3 c>b
%5 : m[e:2,b:3] = matmul %0 %4
%6 : n[e:2,b:3] = matmul %0.T %5
%7 : n[e:2,b:3,c:3] = sum 1*%6 + -1/2*%3
%8 : n[e:2] = sum 2*%7 over b, c
%9 : n[e:2] = scale %8 n^(-1/2)
%10 : [e:2] = moment {x0**2} (%9)
%11 : [e:2,b:3] = moment {x0**2} (%5)
%12 : [e:2] = sum 1*%10 + 3*%11 over b
output f %12
""",
    "a sum over an axis beside the axis": """\
family x : n[b:2,c:3]
family s : [b:2]
family k : [c:3,b:2]
%0 : n[b:2,c:3] = input x
%1 : [b:2] = input s
%2 : [c:3,b:2] = input k
%3 : n[b:2] = sum 3*%2*%0 over c + 1*%1*%0 over b, c
%4 : n[d:2] = rename %3 b>d
%5 : [b:2,d:2] = moment {x0*x1} (%3, %4)
%6 : [b:2] = sum 1*%1*%5 over d + -2*%2 over c + 1*%1 over b
%7 : () = sum 1*%6 over b
%8 : () = scale %7 n^(1)
output f %8
""",
    "numbers in front of a vector without their axes": """\
family v : n
family s : [b:2]
family k : [b:2,c:3]
%0 : n = input v
%1 : [b:2] = input s
%2 : [b:2,c:3] = input k
%3 : n[b:2] = sum 1*%1*%0
%4 : n = sum 1*%3 over b + 2*%2*%0 over b, c
%5 : () = moment {tanh(x0)} (%4)
output f %5
""",
    "functions of vectors and numbers": """\
family x : n[b:2]
family v : m
family s : [c:3]
family k : ()
%0 : n[b:2] = input x
%1 : m = input v
%2 : [c:3] = input s
%3 : () = input k
%4 : n[b:2,c:3] = map {tanh(x0*s0) + s1*x0} (%0; %2, %3)
%5 : m[c:3] = map {sin(s0 + x0)*s1} (%1; %2, %3)
%6 : [b:2,c:3] = moment {x0**2} (%4)
%7 : [c:3] = moment {x0*s0} (%5; %3)
%8 : [c:3] = sum 1*%6 over b + 2*%7
output f %8
""",
    "scalars alone": """\
family s : [b:2]
family c : ()
%0 : [b:2] = input s
%1 : () = input c
%2 : [b:2] = map {s0*s1**2} (; %0, %1)
%3 : [d:2] = rename %2 b>d
%4 : [b:2,d:2] = map {s0*s1 + 2*s2*s0} (; %2, %3, %1)
%5 : [b:2,d:2] = scale %4 n^(1/2)
%6 : [b:2,d:2] = map {tanh(s0)} (; %5)
output f %6
""",
    "an output that is a number": "family s : [b:2]\n%0 : [b:2] = input s\noutput f %0\n",
    "a function of one number": """\
family s : ()
family k : [b:3]
%0 : () = input s
%1 : [b:3] = input k
%2 : [b:3] = map {2*s0*s1 + 5*s0} (; %0, %1)
output f %2
""",
}


def scalars(program: Program) -> list[tuple[str, Ref]]:
    """The scalar outputs that are computed of something."""
    return [
        (name, ref)
        for name, ref in program.outputs
        if program.types[ref].kind is Kind.SCALAR
        and not isinstance(program.nodes[ref], Data | Input)
    ]


def parameters(program: Program) -> dict[str, Ref]:
    """What is differentiated by: whole vectors and numbers, and matrices."""
    return {
        node.family.name: ref
        for ref, node in enumerate(program.nodes)
        if isinstance(node, Input) and node.cell is None
    }


@pytest.mark.parametrize("case", WRITTEN)
def test_gradients_of_written_programs(case: str) -> None:
    program = from_text(f"tpcalc program 2\ndim n 1\ndim m 2\n{WRITTEN[case]}", atoms)
    check_slopes(program, "f", program.ref("f"))


@settings(max_examples=60, deadline=None)
@given(block_programs())
def test_gradients_are_slopes(program: Program) -> None:
    wanted = scalars(program)
    assume(wanted and not any(isinstance(n, OuterNonlin) for n in program.nodes))
    check_slopes(program, *wanted[-1])


def check_slopes(program: Program, name: str, output: Ref) -> None:
    """Each input is moved along a random direction: the sum of all cells moves as said."""
    trained, rng = parameters(program), np.random.default_rng(0)
    whole, rows = differentiated(program, [output], trained)
    dims = {dim.name: int(dim.ratio * WIDTH) for dim in program.dims}
    draws: dict[str, Any] = {}
    for family in program.families.values():
        for cell in range(family.size) if family.axes else (None,):
            shape = tuple(dims[dim] for dim in family.width)
            draws[block_run.named(family, cell)] = rng.standard_normal(shape)
    values = block_run.run(whole, WIDTH, draws)

    def total(moved: dict[str, Any]) -> float:
        found = block_run.run(program, WIDTH, draws | moved)
        return sum(float(x) for label, x in found.items() if label.partition("[")[0] == name)

    for label, ref in trained.items():
        type_ = program.types[ref]
        for index, place in enumerate(np.ndindex(*(size for _, size in type_.axes))):
            at = dict(zip((axis for axis, _ in type_.axes), place, strict=True))
            if type_.kind is Kind.MATRIX:
                slope = _outer(values, whole, label, rows.get(label, 0), at)
            else:
                slope = _value(values, whole, f"grad {label}", at)
            cell = block_run.named(program.families[label], index if type_.axes else None)
            along = rng.standard_normal(np.shape(draws[cell]))
            ends = [total({cell: draws[cell] + sign * STEP * along}) for sign in (1, -1)]
            moved = (ends[0] - ends[1]) / (2 * STEP)
            size = 1 + abs(ends[0]) + float(np.sum(np.abs(slope * along)))
            assert abs(float(np.sum(slope * along)) - moved) < 1e-6 * size, cell


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(block_programs())
def test_gradients_of_blocks_are_those_of_their_cells(program: Program) -> None:
    wanted = scalars(program)
    assume(wanted and not any(type(node) in BACKWARD_RULES.gaps for node in program.nodes))
    name, output = wanted[-1]
    trained = parameters(program)
    whole, rows = differentiated(program, [output], trained)
    lowered = split(program)
    ends = [ref for label, ref in lowered.outputs if label.partition("[")[0] == name]
    own = {label: ref for label, ref in lowered.inputs.items() if _random(lowered, ref)}
    apart, single_rows = differentiated(lowered, ends, own)

    draws = numpy_run.draw(lowered, WIDTH, np.random.default_rng(0))
    for family in program.families.values():
        for cell in range(family.size) if family.axes else (None,):
            draws.setdefault(block_run.named(family, cell), np.zeros((WIDTH,) * len(family.width)))
    blocks = block_run.run(whole, WIDTH, draws)
    singles = block_run.run(apart, WIDTH, draws)
    for label, ref in trained.items():
        type_ = program.types[ref]
        for index, place in enumerate(np.ndindex(*(size for _, size in type_.axes))):
            cell = f"{label}[{index}]" if type_.axes else label
            at = dict(zip((axis for axis, _ in type_.axes), place, strict=True))
            if type_.kind is Kind.MATRIX:
                found = _outer(blocks, whole, label, rows.get(label, 0), at)
                expected = _outer(singles, apart, cell, single_rows.get(cell, 0), {})
            else:
                found = _value(blocks, whole, f"grad {label}", at)
                expected = _value(singles, apart, f"grad {cell}", {})
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8, err_msg=cell)


@pytest.mark.parametrize("rate", [1, 3])
def test_a_number_that_all_cells_share_counts_once_for_each(rate: int) -> None:
    """The gradient of it has no axis to sum over: rate * s beside a sum."""
    builder = Builder()
    s = builder.add(Input(Family.scalar("s")))
    k = builder.add(Data("k", tuple(range(8)), (("b", 4), ("b'", 2))))
    sums = LinComb((Fraction(rate), Fraction(1)), (None, None), (s, k), ((), ("b'",)))
    end = builder.add(sums)
    whole, _ = differentiated(builder.finish(), [end], {"s": s})
    assert tp.limit(whole)["grad s"].value == 4 * rate


@pytest.mark.parametrize("width", [("n",), ()])
def test_a_term_may_be_summed_over_an_axis_that_the_sum_has(width: tuple[str, ...]) -> None:
    """y_b = x_b + sum_c x_c: the gradient of the squares is 2 y_b + 2 sum_c y_c."""
    builder = Builder()
    x = builder.add(Input(Family("x", width, (("b", 2),))))
    y = builder.add(LinComb((Fraction(1),) * 2, (None,) * 2, (x, x), ((), ("b",))))
    square = Moment(Fn(Var(0) ** 2, 1), (y,)) if width else Nonlin(Fn(Par(0) ** 2, 0, 1), (), (y,))
    end = builder.add(square)
    whole, _ = differentiated(builder.finish(), [end], {"x": x})
    rng = np.random.default_rng(0)
    draws = {f"x[{i}]": rng.standard_normal((WIDTH,) * len(width)) for i in range(2)}
    values = np.array([draws[f"x[{i}]"] for i in range(2)])
    found = block_run.run(whole, WIDTH, draws)
    grads = np.array([found[f"grad x[{i}]"] for i in range(2)])
    y_values = values + values.sum(0)
    expected = 2 * (y_values + y_values.sum(0)) / (WIDTH if width else 1)
    np.testing.assert_allclose(grads, expected, rtol=1e-12)
    if not width:  # of the sum of the y_b
        plain, _ = differentiated(builder.finish(), [y], {"x": x})
        assert block_run.run(plain, WIDTH, draws) == {"grad x": 3}


def _random(program: Program, ref: Ref) -> bool:
    return isinstance(program.nodes[ref], Input)


def differentiated(
    program: Program, outputs: list[Ref], trained: dict[str, Ref]
) -> tuple[Program, dict[str, int]]:
    """The program with its gradients as outputs, and how many pairs each matrix has."""
    builder = Builder.copy(program)
    found = backward(builder, [(ref, None) for ref in outputs], list(trained.values()))
    pairs = {}
    for label, ref in trained.items():
        if ref in found.adjoints:
            builder.output(f"grad {label}", found.adjoints[ref])
        for place, (row, col) in enumerate(found.matrices.get(ref, ())):
            builder.output(f"row {label} {place}", row)
            builder.output(f"col {label} {place}", col)
            pairs[label] = place + 1
    return builder.finish(), pairs


def _value(values: Any, program: Program, name: str, at: dict[str, int]) -> Any:
    """An output at a cell; it may lack axes, and is 0 where there is none."""
    if name not in program.output:
        return 0.0
    cell = [at[axis] for axis, _ in program.types[program.ref(name)].axes]
    return values[f"{name}[{','.join(map(str, cell))}]" if cell else name]


def _outer(values: Any, program: Program, label: str, pairs: int, at: dict[str, int]) -> Any:
    """The gradient of a matrix, formed: outer products summed over the axes that it lacks."""
    total: Any = 0.0
    for place in range(pairs):
        names = [f"{side} {label} {place}" for side in ("row", "col")]
        axes = dict(pair for name in names for pair in program.types[program.ref(name)].axes)
        free = {axis: size for axis, size in axes.items() if axis not in at}
        for cell in np.ndindex(*free.values()):
            here = {**at, **dict(zip(free, cell, strict=True))}
            total = total + np.outer(*(_value(values, program, name, here) for name in names))
    return total
