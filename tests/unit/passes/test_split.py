"""Blocks lowered to single vectors: what is written for each cell, read as text."""

from __future__ import annotations

import pytest
from properties.blocks import SHARES
from properties.programs import atoms

import tpcalc as tp
from tpcalc.errors import ProgramError
from tpcalc.exponents import as_ex
from tpcalc.passes.split import split
from tpcalc.program.nodes import Data, Dim, Family, Input, Scale
from tpcalc.program.parse import from_text
from tpcalc.program.program import Builder, Program

HEAD = "tpcalc program 2\ndim n 1\n"


def read(text: str) -> Program:
    return from_text(HEAD + text, atoms, {SHARES.name: SHARES}.__getitem__)


def lowered(text: str) -> str:
    return str(split(read(text))).removeprefix(HEAD)


def test_numbers_are_folded_and_sums_stay_open() -> None:
    """A matrix of numbers is gone, sums of sums are one sum; what is reported stays a node."""
    block = """\
family x : n[b:2] mean 1, 0
%0 : n[b:2] = input x
%1 : [b:2,c:2] = data A[b:2,c:2] 1, 0, 2, 1/2
%2 : n[c:2] = sum 1*%1*%0 over b
%3 : n[b:2] = sum -1*%0 + 3*%0
%4 : n[b:2,c:2] = sum 1*%3 + 1*%2
%5 : n[b:2,c:2] = map {x0*x1**2} (%4, %2)
output y %5
output z %2
"""
    cells = """\
family x : n[b:2] mean 1, 0
%0 : n = input x 0
%1 : n = input x 1
%2 : n = sum 1*%0 + 2*%1
%3 : n = sum 1/2*%1
%4 : n = sum 2*%0 + 1*%2
%5 : n = map {x0**2*x1} (%2, %4)
%6 : n = sum 2*%0 + 1*%3
%7 : n = map {x0**2*x1} (%3, %6)
%8 : n = sum 2*%1 + 1*%2
%9 : n = map {x0**2*x1} (%2, %8)
%10 : n = sum 2*%1 + 1*%3
%11 : n = map {x0**2*x1} (%3, %10)
output y[0,0] %5
output y[0,1] %7
output y[1,0] %9
output y[1,1] %11
output z[0] %2
output z[1] %3
"""
    assert lowered(block) == cells


def test_matrices_and_numbers_become_families_with_their_laws() -> None:
    """A cell beside its family is one node; powers of powers are added, and power 0 is none."""
    block = """\
family W : n*n[k:2] orthogonal
family V : n*n[k:2]
family s : [k:2] mean 1, 0 cov 4, 0; 0, 9
family x : n
%0 : n*n[k:2] = input W
%1 : n = input x
%2 : n[k:2] = matmul %0.T %1
%3 : [k:2] = input s
%4 : n[k:2] = map {x0*x1*s0} (%1, %1; %3)
%5 : n[k:2] = scale %4 n^(1/2) L^(a)
%6 : n[k:2] = scale %5 n^(-1/2) L^(-a)
%7 : n[k:2] = scale %5 n^(1/2)
%8 : n*n = input V 1
%9 : n[k:2] = matmul %8 %2
%10 : n*n = input W 0
%11 : n = matmul %10.T %1
%12 : n[k:2] = scale %4 n^(0) L^(a)
output a %2
output b %6
output c %7
output d %9
output e %11
output f %12
"""
    cells = """\
family W[0] : n*n orthogonal
family W[1] : n*n orthogonal
family x : n
family s[0] : () mean 1 cov 4
family s[1] : () mean 0 cov 9
family V[1] : n*n
%0 : n*n = input W[0]
%1 : n*n = input W[1]
%2 : n = input x
%3 : n = matmul %0.T %2
%4 : n = matmul %1.T %2
%5 : () = input s[0]
%6 : () = input s[1]
%7 : n = map {s0*x0**2} (%2; %5)
%8 : n = map {s0*x0**2} (%2; %6)
%9 : n = scale %7 n^(1) L^(a)
%10 : n = scale %8 n^(1) L^(a)
%11 : n*n = input V[1]
%12 : n = matmul %11 %3
%13 : n = matmul %11 %4
%14 : n = scale %7 n^(0) L^(a)
%15 : n = scale %8 n^(0) L^(a)
output a[0] %3
output a[1] %4
output b[0] %7
output b[1] %8
output c[0] %9
output c[1] %10
output d[0] %12
output d[1] %13
output e %3
output f[0] %14
output f[1] %15
"""
    assert lowered(block) == cells


def test_equal_arguments_are_one_and_other_names_meet_other_cells() -> None:
    """Rows and columns of an outer function stay apart; a sum over b stands beside a b that stays.

    A sum that cancels is 0, of scalars a number and of vectors one that keeps its dimension.
    """
    block = """\
family x : n[b:2]
family e : [b:2]
family c : ()
%0 : n[b:2] = input x
%1 : [b:2] = input e
%2 : () = input c
%3 : n[c:2] = rename %0 b>c
%4 : n[b:2,c:2] = outer {x0*x1*x2*s0*s1} (%0, %0; %3; %1, %2) %3
%5 : [b:2,c:2] = moment {x0*x1*s0*s1} (%0, %3; %1, %1)
%6 : [c:2] = sum 2*%1*%5 over b + 1*%2
%7 : [c:2] = map {0} (; %6)
%8 : n[b:2] = sum 1*%0 + 1*%1*%0 over b
%9 : [b:2] = moment {1} (%0)
%10 : n[b:2] = sum 1*%0 + -1*%0
%11 : [c:2] = map {s0} (; %6, %2)
%12 : n[b:2] = map {1} (%0)
%13 : n[b:2] = map {x1 + 0*x0} (%0, %8)
%14 : [b:2] = map {s1} (; %2, %1)
%15 : n[b:2] = sum 1/2*%2*%8
output o %4
output m %5
output s %6
output zero %7
output mixed %8
output one %9
output none %10
output same %11
output level %12
output itself %13
output number %14
output scaled %15
"""
    cells = """\
family x : n[b:2]
family e[0] : () mean 0 cov 1
family e[1] : () mean 0 cov 1
family c : ()
%0 : n = input x 0
%1 : n = input x 1
%2 : () = input e[0]
%3 : () = input e[1]
%4 : () = input c
%5 : n = outer {s0*s1*x0**2*x1} (%0; %0; %2, %4) %0
%6 : n = outer {s0*s1*x0**2*x1} (%0; %1; %2, %4) %1
%7 : n = outer {s0*s1*x0**2*x1} (%1; %0; %3, %4) %0
%8 : n = outer {s0*s1*x0**2*x1} (%1; %1; %3, %4) %1
%9 : () = moment {s0**2*x0**2} (%0; %2)
%10 : () = moment {s0**2*x0*x1} (%0, %1; %2)
%11 : () = moment {s0**2*x0*x1} (%0, %1; %3)
%12 : () = moment {s0**2*x0**2} (%1; %3)
%13 : () = map {2*s0*s1 + 2*s2*s3 + s4} (; %9, %2, %11, %3, %4)
%14 : () = map {2*s0*s1 + 2*s2*s3 + s4} (; %10, %2, %12, %3, %4)
%15 : () = map {0} ()
%16 : n = sum 1*%0 + 1*%2*%0 + 1*%3*%1
%17 : n = sum 1*%1 + 1*%2*%0 + 1*%3*%1
%18 : () = moment {1} (%0)
%19 : () = moment {1} (%1)
%20 : n = sum 0*%0
%21 : n = sum 0*%1
%22 : n = map {1} (%0)
%23 : n = map {1} (%1)
%24 : n = sum 1/2*%4*%16
%25 : n = sum 1/2*%4*%17
output o[0,0] %5
output o[0,1] %6
output o[1,0] %7
output o[1,1] %8
output m[0,0] %9
output m[0,1] %10
output m[1,0] %11
output m[1,1] %12
output s[0] %13
output s[1] %14
output zero[0] %15
output zero[1] %15
output mixed[0] %16
output mixed[1] %17
output one[0] %18
output one[1] %19
output none[0] %20
output none[1] %21
output same[0] %13
output same[1] %14
output level[0] %22
output level[1] %23
output itself[0] %16
output itself[1] %17
output number[0] %2
output number[1] %3
output scaled[0] %24
output scaled[1] %25
"""
    assert lowered(block) == cells


def test_functions_of_rows_are_functions_of_their_cells() -> None:
    """Of numbers that are given they have no arguments, and equal ones are one."""
    block = """\
family x : n[p:2]
family s : [p:2]
%0 : n[p:2] = input x
%1 : [p:2] = input s
%2 : [p:2,q:2] = data A[p:2,q:2] 1, 1, 0, 1/2
%3 : n[p:2] = rows shares[p] %0
%4 : [p:2] = rows shares[p] %1
%5 : [p:2,q:2] = rows shares[q] %2
%6 : n[p:2] = sum 1*%5*%0 over q
output v %3
output s %4
output n %6
"""
    cells = """\
family x : n[p:2]
family s[0] : () mean 0 cov 1
family s[1] : () mean 0 cov 1
%0 : n = input x 0
%1 : n = input x 1
%2 : () = input s[0]
%3 : () = input s[1]
%4 : n = map {(1 + exp(x0) + exp(x1))**(-1)*exp(x0)} (%0, %1)
%5 : n = map {(1 + exp(x0) + exp(x1))**(-1)*exp(x1)} (%0, %1)
%6 : () = map {(1 + exp(s0) + exp(s1))**(-1)*exp(s0)} (; %2, %3)
%7 : () = map {(1 + exp(s0) + exp(s1))**(-1)*exp(s1)} (; %2, %3)
%8 : () = map {(1 + 2*exp(1))**(-1)*exp(1)} ()
%9 : () = map {(1 + exp(0) + exp(1/2))**(-1)*exp(0)} ()
%10 : () = map {(1 + exp(0) + exp(1/2))**(-1)*exp(1/2)} ()
%11 : n = sum 2*%8*%0
%12 : n = sum 1*%9*%1 + 1*%10*%1
output v[0] %4
output v[1] %5
output s[0] %6
output s[1] %7
output n[0] %11
output n[1] %12
"""
    assert lowered(block) == cells


def test_nodes_keep_the_lines_that_they_are_written_on() -> None:
    def made(t: tp.Tracer) -> None:
        x, w = t.gaussian("x", axes={"b": 2}), t.matrix("W")
        h = w @ x
        y = tp.tanh(h)
        t.output("y", t.sum(y, "b"))
        t.output("x", x)

    program = tp.program(made).build()
    apart = split(program)
    places = {type(node): line for node, line in zip(program.nodes, program.where, strict=True)}
    assert len(set(places.values())) == 4
    for node, line in zip(apart.nodes, apart.where, strict=True):
        assert line == places[type(node)]


def test_a_program_of_single_vectors_is_itself() -> None:
    program = read("family x : n\n%0 : n = input x\noutput x %0\n")
    assert split(program) is program


def test_correlated_numbers_are_refused() -> None:
    """Vectors may be correlated, as they stay one family; numbers are drawn one by one."""
    cov = "1, 0, 0; 0, 1, 1/2; 0, 1/2, 1"
    text = f"family s : {{}}[k:3] mean 0, 0, 0 cov {cov}\n%0 : {{}}[k:3] = input s\noutput s %0\n"
    assert split(read(text.format("n", "n"))).group["s"].size == 3
    with pytest.raises(ProgramError, match=r"the random numbers 's' are correlated.*independent"):
        split(read(text.format("", "")))


def test_programs_without_lines() -> None:
    block = Input(Family("x", ("n",), (("b", 2),)))
    program = Program((Dim("n"),), (block, Scale(0, as_ex(1))), (("y", 1),))
    assert program.where == ()
    assert split(program).where == (None,) * 4


def test_cells_without_names_of_their_own_are_refused() -> None:
    """An output called as a cell of another is."""
    builder = Builder()
    builder.output("x", builder.add(Input(Family("x", ("n",), (("b", 2),)))))
    builder.output("x[0]", builder.add(Data("c", (1,))))
    with pytest.raises(ProgramError, match="named twice"):
        split(builder.finish())
