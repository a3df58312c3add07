"""What has no known moments: no zero by symmetry, and no size, is proved of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from agree import agree
from one_output import made

import tpcalc as tp
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import TpcalcError
from tpcalc.functions import Expr, Var
from tpcalc.limit.degrees import Degree, degree_of

Build = Callable[[tp.Tracer, Vector, Vector, Vector], object]
small = tp.n**-0.5


# Zeros by symmetry, if they exist.
WILD: dict[str, Build] = {
    "square": lambda t, u, v, w: t.mean(tp.exp(w * w) * v),
    "sign": lambda t, u, v, w: t.mean(tp.exp(w * w) * tp.sign(v)),
    "odd": lambda t, u, v, w: t.mean(tp.exp(w * w) * w),
    "cosh": lambda t, u, v, w: t.mean((tp.exp(w * w) + tp.exp(-w * w)) * v),
    "fourth": lambda t, u, v, w: t.mean(tp.exp(w**4) * v),
    "product": lambda t, u, v, w: t.mean(tp.exp(u * w) * v),
    "twice": lambda t, u, v, w: t.mean(tp.exp(tp.exp(w)) * v),
    "inner": lambda t, u, v, w: t.inner(tp.exp(w * w), v),
    "multiplied": lambda t, u, v, w: t.inner(small * (t.matrix("W") @ tp.exp(w * w)), v),
    "outer": lambda t, u, v, w: t.mean(t.outer(lambda a, b: tp.exp(a * b), u, w, v) ** 2),
    "columns": lambda t, u, v, w: t.mean(
        t.outer(lambda a, b: tp.tanh(a * b), u, w, tp.exp(w * w) * v) ** 2
    ),
    "vector": lambda t, u, v, w: tp.exp(w * w) * v,
    "matrix": lambda t, u, v, w: small * (t.matrix("W") @ tp.exp(w * w)),
}
# Means that are not 0, if they are finite.
POSITIVE: dict[str, Build] = {
    "square": lambda t, u, v, w: t.mean(tp.exp(w * w)),
    "times relu": lambda t, u, v, w: t.mean(tp.exp(w * w) * tp.relu(v)),
    "fourth": lambda t, u, v, w: t.mean(tp.exp(w**4)),
    "product": lambda t, u, v, w: t.mean(tp.exp(u * w)),
}
TAME: dict[str, Build] = {
    "exp": lambda t, u, v, w: t.mean(tp.exp(w) * v),
    "small": lambda t, u, v, w: t.mean(tp.exp(w * w / 8) * v),
    "falling": lambda t, u, v, w: t.mean(tp.exp(-w * w) * v),
    "bounded": lambda t, u, v, w: t.mean(tp.tanh(tp.exp(w * w)) * v),
    "divided": lambda t, u, v, w: t.mean(v / tp.softplus(w)),
    "multiplied": lambda t, u, v, w: t.inner(small * (t.matrix("W") @ tp.exp(w)), v),
}


@pytest.mark.parametrize("build", [*WILD.values(), *POSITIVE.values()], ids=[*WILD, *POSITIVE])
def test_what_may_have_no_mean_has_neither_limit_nor_size(build: Build) -> None:
    with pytest.raises(TpcalcError, match=r"infinite|not known|no mean"):
        tp.limit(made(build, "uvw"), samples=2**8)
    try:
        order = tp.orders(made(build, "uvw"))["q"]
    except TpcalcError:
        return
    assert (order.n, order.status) == (None, "upper")


@pytest.mark.parametrize("name", TAME)
def test_zeros_by_symmetry_of_what_has_moments_are_exact(name: str) -> None:
    program = made(TAME[name], "uvw")
    found = tp.limit(program, samples=2**8)["q"]
    assert (found.value, found.stderr) == (0, 0)
    assert repr(tp.orders(program)["q"]) == "n**(-1/2)"


@pytest.mark.parametrize(
    ("expr", "degree"),
    [
        (tp.exp(Var(0)), np.inf),
        (tp.exp(Var(0)) ** 3 * Var(1), np.inf),
        (tp.exp(Var(0) * Var(1)), None),
        (tp.exp(tp.exp(Var(0))), None),
        (tp.exp(-(Var(0) ** 2)), 0),
        (tp.tanh(tp.exp(Var(0) ** 4)), 0),
        (tp.log(1 + Var(0) ** 2), 2),
        (tp.log(tp.tanh(Var(0))), None),
    ],
)
def test_degrees(expr: Expr, degree: Degree) -> None:
    assert degree_of(expr, [1, 1], []) == degree


PRETENDED = tp.function(
    "pretended", np.sign, lambda z: 1 / np.cosh(z) ** 2, kinks=[0], parity="odd", check=False
)
JUMPING = tp.function("jumping", np.sign, 0, kinks=[0], parity="odd")


@pytest.mark.parametrize("sign", [PRETENDED, JUMPING])
def test_nothing_is_told_from_surrogate_slopes(sign: Callable[[Vector], Vector]) -> None:
    def hidden(t: tp.Tracer, u: Vector, v: Vector, w: Vector) -> object:
        """What is read beside the jump is 0 on all coordinates, so that w decides."""
        return t.inner(tp.step(sign(u) - tp.sign(u) + small * w), w)

    agree(tp.limit(made(hidden, "uvw"), samples=2**10)["q"], 1 / np.sqrt(2 * np.pi), rounding=1e-6)

    def moved(t: tp.Tracer, u: Vector, v: Vector, w: Vector) -> object:
        """The slope of a jump is no function."""
        return tp.n**0.5 * t.inner(sign(v + small * w) - sign(v), w)

    with pytest.raises(TpcalcError, match="not covered"):
        tp.limit(made(moved, "uvw"), samples=2**8)
    assert tp.orders(made(moved, "uvw"))["q"].status == "upper"
