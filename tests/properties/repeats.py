"""Strategy: small programs with a block that is repeated along the depth."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st
from properties.programs import SIN, TANH

from tpcalc.exponents import Ex
from tpcalc.functions import Fn, Var
from tpcalc.program.nodes import (
    Carry,
    Family,
    Input,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    Ref,
    Repeat,
    Scale,
)
from tpcalc.program.program import Builder, Program

ONE = Fraction(1)


@st.composite
def repeat_programs(draw: st.DrawFn) -> Program:
    """x -> x + L^p (something of x, of matrices drawn along the depth and of shared vectors)."""
    out = Builder()
    x, u = (out.add(Input(Family(name, ("n",)))) for name in "xu")
    shared = out.add(Input(Family("S", ("n", "n"))))
    carry = out.add(Carry(x, draw(st.sampled_from("lm")), draw(st.sampled_from((0, 0, 2)))))
    inside: list[Ref] = [carry]
    for place in range(draw(st.integers(1, 5))):
        inside.append(_layer(draw, out, inside, u, shared, place))
    power = Ex.number(draw(st.sampled_from((Fraction(-1), Fraction(-1, 2), Fraction(0)))))
    added = out.add(Scale(inside[-1], Ex(), power)) if power != Ex() else inside[-1]
    following = out.add(LinComb((ONE, ONE), (None, None), (carry, added)))
    last = out.add(Repeat(carry, following))
    out.output("last", last)
    out.output("q", out.add(Moment(Fn(Var(0) ** 2, 1), (last,))))
    if draw(st.booleans()):
        out.output("h[{l}]", inside[-1])
    return out.finish(keep_unused=False)


def _layer(
    draw: st.DrawFn, out: Builder, inside: list[Ref], u: Ref, shared: Ref, place: int
) -> Ref:
    kind = draw(st.sampled_from(("matrix", "shared", "map", "sum", "center")))
    of = draw(st.sampled_from(inside))
    if kind in ("matrix", "shared"):
        matrix = shared
        if kind == "matrix":
            name = draw(st.sampled_from((f"W{place}", f"W{place}_{{l+1}}")))
            matrix = out.add(Input(Family(name, ("n", "n"), along="fresh")))
        product = out.add(MatMul(matrix, of, draw(st.booleans())))
        return out.add(Scale(product, Ex.number(Fraction(-1, 2))))
    if kind == "map":
        atom = draw(st.sampled_from((TANH, SIN)))
        return out.add(Nonlin(Fn(atom(Var(0)), 1), (of,)))
    if kind == "sum":
        return out.add(LinComb((Fraction(1, 2), -ONE), (None, None), (of, u)))
    mean = out.add(Moment(Fn(Var(0), 1), (of,)))
    return out.add(LinComb((ONE, -ONE), (None, mean), (of, u)))
