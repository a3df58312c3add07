"""The canonical text spelled out, and errors of reading it. (Round trips: tests/properties.)"""

from __future__ import annotations

import numpy as np
import pytest
from properties.programs import atoms

from tpcalc.errors import ProgramError, StudyError, UnknownName
from tpcalc.functions import Atom, Fn, Var
from tpcalc.program.nodes import Family, Input, Nonlin
from tpcalc.program.parse import from_text
from tpcalc.program.program import Builder
from tpcalc.program.text import to_text

TEXT = """\
tpcalc program 2
dim n 1
dim m 3/2
family x : n[k:2] mean 0, 1/2 cov 1, 0.5; 0.5, 1
family "two words" : m mean -0.25
family W : m*n
family Q : n*n orthogonal
%0 : n = input x 1
%1 : m = input "two words"
%2 : m*n = input W
%3 : n*n = input Q
%4 : () = data lr 1/10
%5 : m = matmul %2 %0
%6 : n = matmul %2.T %1
%7 : m = scale %5 n^(-1/2 + a) L^(-1)
%8 : m = map {s0*x0*tanh(x1)} (%7, %1; %4)
%9 : m = sum 1/2*%8 + -0.1*%4*%1
%10 : () = moment {x0**2} (%9)
%11 : n = outer {x0*x1} (%0; %9) %1
%12 : () = map {-1 + s0} (; %10)
output f[0,1] %12
output "two words" %9
"""


def test_canonical_text() -> None:
    program = from_text(TEXT, atoms)
    assert to_text(program) == TEXT
    assert [program.types[ref].kind.value for _, ref in program.outputs] == ["scalar", "vector"]


def test_comments_blank_lines_and_other_spellings() -> None:
    loose = TEXT.replace("dim n 1", "\n# the width\n  dim n 1  ")
    loose = loose.replace("{x0**2} (%9)", "{x0*x0} (%9; )").replace("cov 1, 0.5;", "cov 1,0.5 ;")
    loose = loose.replace("n^(-1/2 + a)", "n^(a - 0.5)").replace("dim m 3/2", 'dim "m" 3/2')
    loose = loose.replace("(%0; %9) %1", "(%0; %9; ) %1").replace("(%7, %1; %4)", "(%7,%1; %4)")
    loose = loose.replace("input W", 'input "W"')
    assert to_text(from_text(loose, atoms)) == TEXT


def changed(line: str, by: str) -> str:
    assert line in TEXT
    return TEXT.replace(line, by)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "an empty text is not a program"),
        ("# only this", 1, "an empty text is not a program"),
        ("dim n 1", 1, "'dim n 1' is not the first line of a program.*tpcalc program 2"),
        (changed("program 2", "program 1"), 1, "schema version 1; this release reads version 2"),
        (changed("program 2", "program 3"), 1, "schema version 3; this release reads version 2"),
        (changed("dim m 3/2", "dim m 1.5"), 3, "the ratio 1.5 must be exact"),
        (changed("dim m 3/2", "dim m"), 3, "cannot be read.*dim NAME RATIO"),
        (changed("dim m 3/2", "dim n 2"), 3, "declared twice"),
        (changed("dim m 3/2", 'dim "two words" 2'), 3, "a dimension class is called by a word"),
        (changed("dim m 3/2", "dimension m 2"), 3, "no dimension, input, node or output"),
        (changed("mean 0, 1/2", "mean 0, inf"), 4, "cannot be read.*family NAME : TYPE"),
        (changed("mean 0, 1/2", "mean 0, 1/0"), 4, "'1/0' is not a number"),
        (changed(": m mean", ": k mean"), 5, "dimension class 'k' is not declared"),
        (changed('family "two words"', r'family "two\q"'), 5, "quoted name"),
        (changed('family "two words"', "family two words"), 5, "family NAME : TYPE"),
        (changed("family W", "family x"), 6, "the input 'x' is declared twice"),
        (changed("n*n orthogonal", "n*n cauchy"), 7, r"family NAME : TYPE \[LAW\]"),
        (changed("%1 : m = input", "%2 : m = input"), 9, "node %2 stands where %1 must come"),
        (changed("input x 1", "input x one"), 8, "INDEX : TYPE = input <family><cell>"),
        (changed("input x 1", "input y"), 8, "the input 'y' is not declared.*Declared: x, two"),
        (changed("%3 : n*n = input Q", "%3 : m*n = input W"), 11, "'W' is declared twice"),
        (changed("%2 : m*n = input", "%2 : m*n = tensor"), 10, "no node called 'tensor'.*matmul"),
        (changed("%2 : m*n", "%2 : n*m"), 10, r"the type of the node is m\*n; n\*m is written"),
        (changed("%2 : m*n", "%2"), 10, "%INDEX : TYPE = NODE"),
        (changed("lr 1/10", "lr ten"), 12, r"data <name><axes><values\? >"),
        (changed("lr 1/10", "lr 1/0"), 12, "'1/0' is not a number"),
        (changed("matmul %2 %0", "matmul %2 %1"), 13, "takes vectors on 'n'; %1 lives on 'm'"),
        (changed("matmul %2 %0", "matmul W x"), 13, r"matmul <matrix><transpose\?.T> <vector>"),
        (changed("n^(-1/2 + a)", "n^(1/a)"), 15, "is not a polynomial"),
        (changed("n^(-1/2 + a)", "n^a"), 15, r"scale <of> n\^\(<n_power>\)"),
        (changed("tanh(x1)", "tanh(x2)"), 16, "uses x2 but has 2 vector arguments"),
        (changed("tanh(x1)", "tanh(x1"), 16, "is not an expression"),
        (changed("(%7, %1; %4)", "(%7, %1; %4; %4)"), 16, r"map <fn> \(<vectors><scalars"),
        (changed("(%7, %1; %4)", "(%7, y; %4)"), 16, r"y; %4\)' cannot be read.*map <fn>"),
        (changed("(%7, %1; %4)", "(%7, , %1; %4)"), 16, "cannot be read.*map <fn>"),
        (changed("1/2*%8", "1/2 %8"), 17, r"sum 1/2 %8.* cannot be read.*sum <numbers><scalars>"),
        (changed("-0.1*%4*%1", "*%1"), 17, r"sum \*%1.* cannot be read.*sum <numbers><scalars>"),
        (changed("output f[0,1] %12", "output f[0,1] %2"), 21, "%2 is a matrix"),
        (changed("output f[0,1] %12", "output f[0 %12"), 21, "output NAME %REF"),
    ],
)
def test_errors_carry_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        from_text(text, atoms)
    assert caught.value.where.split(" (")[0] == f"line {line}"


def test_unknown_functions_carry_the_line() -> None:
    with pytest.raises(UnknownName, match=r"line 16: .*'tanhh'.*Did you mean 'tanh'"):
        from_text(changed("tanh(x1)", "tanhh(x1)"), atoms)


def test_two_functions_of_one_name_are_refused() -> None:
    builder = Builder()
    x = builder.add(Input(Family.group("x", "n", (0.0,))))
    for rule in (np.abs, np.sign):
        builder.add(Nonlin(Fn(Atom("phi", rule, None)(Var(0)), 1), (x,)))
    assert len(builder) == 3
    with pytest.raises(ProgramError, match="two different functions are called 'phi'"):
        to_text(builder.finish())


def test_errors_of_the_catalogue_carry_the_line() -> None:
    def strict(name: str, params: tuple[object, ...]) -> Atom:
        raise StudyError(f"{name} takes one parameter.")

    with pytest.raises(StudyError, match=r"line 16: tanh takes one parameter\."):
        from_text(TEXT, strict)
