"""Numbers without a law: what they multiply may be 0, and then nothing hangs on them."""

from __future__ import annotations

from fractions import Fraction

import pytest

import tpcalc as tp
from tpcalc.errors import LimitError

H = Fraction(1, 2)


def test_products_with_matrices_leave_the_number_in_front() -> None:
    """V (W (z - s u)) has no part along v, so that its average with v is 0 whatever s is."""

    def build(t: tp.Tracer) -> None:
        u, v, z = (t.gaussian(name) for name in "uvz")
        first, second = t.matrix("W"), t.matrix("V")
        s = tp.n**H * tp.mean(tp.n**-H * (first @ tp.tanh(u)))
        y = tp.n**-H * (second @ (z - s * u))
        t.output("apart", t.inner(v, v + tp.tanh(v) * y))
        t.output("square", t.inner(z - s * u, z))
        odd = tp.n**H * tp.mean(tp.tanh(tp.n**-H * (first @ u)) * tp.tanh(v))
        t.output("lawless", t.inner(v, v + odd * tp.tanh(v) * y))
        t.output("inside", t.inner(v, tp.tanh(v + odd)))

    found = tp.limit(tp.program(build))
    assert found["apart"].value == pytest.approx(1.0, abs=1e-12)
    assert found["lawless"].value == pytest.approx(1.0, abs=1e-12)
    assert found["square"].value == pytest.approx(1.0, abs=1e-12)
    (row,) = found.table.uncovered
    assert row.name == "inside"
    with pytest.raises(LimitError, match="0 by symmetry"):
        tp.limit(tp.program(lambda t: inside(t)))


def inside(t: tp.Tracer) -> None:
    u, v = t.gaussian("u"), t.gaussian("v")
    s = tp.n**H * tp.mean(tp.tanh(u) * tp.tanh(tp.n**-H * (t.matrix("W") @ u)))
    t.output("inside", t.inner(v, tp.tanh(v + s)))
