"""The canonical text spelled out, and errors of reading it. (Round trips: tests/properties.)"""

from __future__ import annotations

import numpy as np
import pytest
from properties.programs import atoms

from tpcalc.errors import ProgramError, StudyError, UnknownName
from tpcalc.functions import Atom, Fn, Var
from tpcalc.program.nodes import Family, InputVector, Nonlin
from tpcalc.program.parse import from_text
from tpcalc.program.program import Builder
from tpcalc.program.text import to_text

TEXT = """\
tpcalc program 1
dim n 1
dim m 3/2
group x on n mean 0, 1/2 cov 1, 0.5; 0.5, 1
group "two words" on m mean -0.25
%0 = vector x 1
%1 = vector "two words" 0
%2 = matrix W m n gaussian
%3 = matrix Q n n orthogonal
%4 = scalar lr 1/10 std 0
%5 = matmul %2 %0
%6 = matmul %2.T %1
%7 = scale %5 n^(-1/2 + a) L^(-1)
%8 = nonlin {s0*x0*tanh(x1)} (%7, %1; %4)
%9 = lincomb 1/2*%8 + -0.1*%4*%1
%10 = moment {x0**2} (%9)
%11 = outer {x0*x1} (%0; %9; ) %1
%12 = scalarfn {-1 + s0} (%10)
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
    loose = loose.replace("n^(-1/2 + a)", "n^(a - 0.5)").replace(" on m", ' on "m"')
    assert to_text(from_text(loose, atoms)) == TEXT


def changed(line: str, by: str) -> str:
    assert line in TEXT
    return TEXT.replace(line, by)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "an empty text is not a program"),
        ("# only this", 1, "an empty text is not a program"),
        ("dim n 1", 1, "'dim n 1' is not the first line of a program.*tpcalc program 1"),
        (changed("program 1", "program 2"), 1, "schema version 2; this release reads version 1"),
        (changed("dim m 3/2", "dim m 1.5"), 3, "the ratio 1.5 must be exact"),
        (changed("dim m 3/2", "dim m"), 3, "cannot be read.*dim NAME RATIO"),
        (changed("dim m 3/2", "dim m -1"), 3, "the ratio -1 is not above 0"),
        (changed("dim m 3/2", "dim n 2"), 3, "declared twice"),
        (changed("dim m 3/2", "dimension m 2"), 3, "no dimension, group, node or output"),
        (changed("mean 0, 1/2", "mean 0, inf"), 4, "cannot be read.*group NAME on DIM"),
        (changed("mean 0, 1/2", "mean 0, 1/0"), 4, "'1/0' is not a number"),
        (changed("cov 1, 0.5; 0.5, 1", "cov 1, 2; 2, 1"), 4, "negative eigenvalue"),
        (changed("on m mean", "on k mean"), 5, "dimension class 'k' is not declared"),
        (changed('group "two words"', r'group "two\q"'), 5, "quoted name"),
        (changed("%1 = vector", "%2 = vector"), 7, "node %2 stands where %1 must come"),
        (changed("vector x 1", "vector x one"), 6, r"%INDEX = vector GROUP MEMBER"),
        (changed("vector x 1", "vector x 7"), 6, "there is no 7"),
        (changed("%2 = matrix", "%2 = tensor"), 8, "there is no node called 'tensor'.*matmul"),
        (changed("n gaussian", "n cauchy"), 8, "'gaussian' or 'orthogonal', not 'cauchy'"),
        (changed("1/10 std 0", "ten std 0"), 10, "'ten' is not a number"),
        (changed("1/10 std 0", "1 std -1"), 10, "the second not negative"),
        (changed("matmul %2 %0", "matmul %2 %1"), 11, "takes vectors on 'n'; %1 lives on 'm'"),
        (changed("matmul %2 %0", "matmul %2 %9"), 11, "%9 is not an earlier node"),
        (changed("matmul %2 %0", "matmul W x"), 11, r"%MATRIX\[.T\] %VECTOR"),
        (changed("n^(-1/2 + a)", "n^(1/a)"), 13, "is not a polynomial"),
        (changed("n^(-1/2 + a)", "n^a"), 13, r"%OF n\^\(POWER\)"),
        (changed("tanh(x1)", "tanh(x2)"), 14, "uses x2 but has 2 vector arguments"),
        (changed("tanh(x1)", "tanh(x1"), 14, "is not an expression"),
        (changed("(%7, %1; %4)", "(%7, %1; %4; %4)"), 14, "holds 3 lists of nodes; at most 2"),
        (changed("(%7, %1; %4)", "(%7, y; %4)"), 14, "'y' is not a node"),
        (changed("1/2*%8", "1/2 %8"), 15, "is not a term of a linear combination"),
        (changed("-0.1*%4*%1", "*%1"), 15, "is not a term of a linear combination"),
        (changed("(%10)", "(%9)"), 18, "%9 is a vector; a scalar is needed"),
        (changed("output f[0,1] %12", "output f[0,1] %99"), 19, "%99 is not a node"),
        (changed("output f[0,1] %12", "output f[0,1] %2"), 19, "%2 is a matrix"),
        (changed('output "two words"', "output f[0,1]"), 20, "named twice"),
        (changed("output f[0,1] %12", "output f[0 %12"), 19, "output NAME %REF"),
    ],
)
def test_errors_carry_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        from_text(text, atoms)
    assert caught.value.where is not None
    assert caught.value.where.split(" (")[0] == f"line {line}"


def test_unknown_functions_carry_the_line() -> None:
    with pytest.raises(UnknownName, match=r"line 14: .*'tanhh'.*Did you mean 'tanh'"):
        from_text(changed("tanh(x1)", "tanhh(x1)"), atoms)


def test_two_functions_of_one_name_are_refused() -> None:
    builder = Builder()
    builder.group(Family.group("x", "n", (0.0,)))
    x = builder.add(InputVector("x", 0))
    for rule in (np.abs, np.sign):
        builder.add(Nonlin(Fn(Atom("phi", rule, None)(Var(0)), 1), (x,)))
    assert len(builder) == 3
    with pytest.raises(ProgramError, match="two different functions are called 'phi'"):
        to_text(builder.finish())


def test_errors_of_the_catalogue_carry_the_line() -> None:
    def strict(name: str, params: tuple[object, ...]) -> Atom:
        raise StudyError(f"{name} takes one parameter.")

    with pytest.raises(StudyError, match=r"line 14: tanh takes one parameter\."):
        from_text(TEXT, strict)
