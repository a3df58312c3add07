"""Compiled averages of outer functions beside those of arrays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tpcalc.activations.entries import lookup
from tpcalc.engine import outer_loops
from tpcalc.engine.outer_loops import outer_average
from tpcalc.functions import Fn, Par, Var, const
from tpcalc.functions.atoms import Atom
from tpcalc.functions.form import RECIPROCAL, reciprocal
from tpcalc.functions.forms import averaged

SQUARES = const(Fraction(999, 1999)) * Var(0) ** 2 + const(Fraction(1000, 1999)) * Var(1) ** 2
ADAM = (const(0.3) * Var(0) + Par(0) * Var(1)) * reciprocal(Fraction(1, 2))(SQUARES)
MORE = ADAM * reciprocal(Fraction(3, 2))(Var(1)) + SQUARES ** Fraction(1, 2) - Var(0) ** -2
OTHER = Atom(RECIPROCAL, lambda xp, z: z * z, lambda z: 2 * z, params=(Fraction(1, 2),))(Var(0))
SIGN = lookup("sign").fn.expr * Var(1)


@pytest.mark.parametrize(
    ("expr", "forms", "vectors", "compiled"),
    [
        (ADAM, (0, 1), 1, True),
        (ADAM, (0, 1, 1), 2, True),
        (MORE, (0, 1), 1, True),
        (Var(0) * Var(1) + Par(0), (), 1, True),
        (OTHER + Var(1), (0, 1), 1, False),  # another function of that name
        (SIGN, (0, 1), 1, False),
    ],
)
def test_what_is_compiled_is_what_arrays_say(
    expr: object,
    forms: tuple[int, ...],
    vectors: int,
    compiled: bool,
) -> None:
    rng, sides = np.random.default_rng(3), max(len(forms), 1)
    rows, cols = (list(1 + rng.random((sides, size))) for size in (2101, 2003))
    if expr is ADAM:  # 0 / 0 is 0
        rows[0][:3] = rows[1][:3] = rows[-1][:3] = 0.0
    x, fn = rng.normal(size=(vectors, 2003)), Fn(expr, 2, 1)
    want = averaged(fn, rows, cols, x, [0.37], forms)
    found = outer_average(fn, rows, cols, x, [0.37], forms)
    np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-13 * np.abs(want).max())
    kinds = outer_loops._compiled(fn, sides, vectors, forms)
    assert (kinds is not None) == compiled
