"""Random DSL expressions, run node by node at a small width, against the same on arrays."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy_run import run
from unit.dsl.activations import relu, tanh

from tpcalc.dsl import L, Tracer, n, program

WIDTH, DEPTH = 8, 9
RATIO = Fraction(3, 2)
SIZES = {"n": WIDTH, "d": int(RATIO * WIDTH)}
numbers = st.sampled_from(
    [0, 1, -1, 2, Fraction(1, 3), Fraction(-3, 2), 0.7, -0.25, np.float64(1.5), np.int64(-2)]
)
exponents = st.sampled_from([0, -1, Fraction(1, 2), "-1/2", -0.5])


def bounded(value: Any) -> Any:
    """Kept small on both sides, so that rounding stays small."""
    return tanh(value / 4)


class Pair:
    """A handle, and the array or number that it stands for."""

    def __init__(self, handle: Any, value: Any, dim: str | None) -> None:
        self.handle = handle
        self.value = value
        self.dim = dim  # None for a scalar


def sides(function: Any, *pairs: Any, dim: str | None) -> Pair:
    """The same Python function on the handles and on the values; numbers go to both."""
    handles = [item.handle if isinstance(item, Pair) else item for item in pairs]
    values = [item.value if isinstance(item, Pair) else float(item) for item in pairs]
    return Pair(function(*handles), function(*values), dim)


class Machine:
    """Draws operations; every one is done on both sides."""

    def __init__(self, t: Tracer, data: st.DataObject, inputs: dict[Any, Any]) -> None:
        self.t = t
        self.data = data
        t.dim("d", RATIO)
        x, y = t.gaussians(["x", "y"])
        z = t.gaussian("z", dim="d")
        self.vectors = [
            Pair(x, inputs["x..y[0]"], "n"),
            Pair(y, inputs["x..y[1]"], "n"),
            Pair(z, inputs["z[0]"], "d"),
        ]
        self.scalars = [Pair(t.scalar("s", 0.6), 0.6, None)]
        self.matrices = {
            ("n", "n"): Pair(t.matrix("W"), inputs["W"], None),
            ("d", "n"): Pair(t.matrix("V", rows="d"), inputs["V"], None),
        }

    def vector(self, dim: str | None = None) -> Pair:
        of = [pair for pair in self.vectors if dim in (None, pair.dim)]
        return self.data.draw(st.sampled_from(of))

    def scalar(self) -> Pair:
        return self.data.draw(st.sampled_from(self.scalars))

    def step(self) -> None:
        kind = self.data.draw(st.sampled_from(sorted(STEPS)))
        made = STEPS[kind](self)
        (self.scalars if made.dim is None else self.vectors).append(made)


def _sum(m: Machine) -> Pair:
    x = m.vector()
    y, z = m.vector(x.dim), m.vector(x.dim)
    c = m.data.draw(numbers)
    return sides(lambda a, b, e, c: a + c * b - (e - a / 2), x, y, z, c, dim=x.dim)


def _nested(m: Machine) -> Pair:
    x = m.vector()
    y, s = m.vector(x.dim), m.scalar()
    c = m.data.draw(numbers)
    return sides(lambda a, b, e, c: c * (e * (a - b) + b) - (-a) * e, x, y, s, c, dim=x.dim)


def _shift(m: Machine) -> Pair:
    x, s, c = m.vector(), m.scalar(), m.data.draw(numbers)
    return sides(lambda a, e, c: (c - a) + e - (e - a) + (a + c), x, s, c, dim=x.dim)


def _product(m: Machine) -> Pair:
    x = m.vector()
    return sides(lambda a, b: bounded(a) * bounded(b) * a, x, m.vector(x.dim), dim=x.dim)


def _quotient(m: Machine) -> Pair:
    x = m.vector()
    s = m.scalar()
    return sides(
        lambda a, b, e: a / (b**2 + 1) + 1 / (b * b + 2) + a / (2 + e**2) + e / (2 + b**2),
        x,
        m.vector(x.dim),
        s,
        dim=x.dim,
    )


def _power(m: Machine) -> Pair:
    x, a, b = m.vector(), m.data.draw(exponents), m.data.draw(exponents)
    c = m.data.draw(numbers)
    factor = float(c) * float(WIDTH) ** float(Fraction(a)) * float(DEPTH) ** float(Fraction(b))
    return Pair(c * n**a * (L**b * x.handle), factor * x.value, x.dim)


def _activation(m: Machine) -> Pair:
    x = m.vector()
    return sides(lambda a: relu(a) - tanh(a), x, dim=x.dim)


def _product_with_matrix(m: Machine) -> Pair:
    (rows, cols), matrix = m.data.draw(st.sampled_from(sorted(m.matrices.items())))
    handle, value = matrix.handle, matrix.value
    if m.data.draw(st.booleans()):
        rows, cols, handle, value = cols, rows, handle.T, value.T
    x = m.vector(cols)
    if m.data.draw(st.booleans()):
        return Pair(n**-0.5 * handle @ x.handle, WIDTH**-0.5 * value @ x.value, rows)
    return Pair((handle @ x.handle) / n, value @ x.value / WIDTH, rows)


def _nonlin(m: Machine) -> Pair:
    x = m.vector()
    y, s = m.vector(x.dim), m.scalar()

    def formula(a: Any, b: Any, e: Any) -> Any:
        return tanh(a * e) * relu(b) + e * a

    handle = m.t.nonlin(formula, x.handle, y.handle, scalars=[s.handle])
    return Pair(handle, formula(x.value, y.value, s.value), x.dim)


def _outer(m: Machine) -> Pair:
    x, y = m.vector(), m.vector()
    z, s = m.vector(y.dim), m.scalar()

    def formula(a: Any, b: Any, e: Any) -> Any:
        return tanh(a * b + e)

    handle = m.t.outer(formula, x.handle, y.handle, z.handle, scalars=[s.handle])
    matrix = formula(x.value[:, None], y.value[None, :], s.value)
    assert y.dim is not None
    return Pair(handle, matrix @ z.value / SIZES[y.dim], x.dim)


def _moment(m: Machine) -> Pair:
    x = m.vector()
    y, s = m.vector(x.dim), m.scalar()

    def formula(a: Any, b: Any, e: Any) -> Any:
        return a * tanh(b) + e

    handle = m.t.moment(formula, x.handle, y.handle, scalars=[s.handle]) - m.t.inner(
        x.handle, bounded(y.handle)
    )
    mean = np.mean(formula(x.value, y.value, s.value)) - np.mean(x.value * bounded(y.value))
    return Pair(m.t.mean(x.handle) + handle, np.mean(x.value) + mean, None)


def _arithmetic(m: Machine) -> Pair:
    c = m.data.draw(numbers)
    return sides(
        lambda a, b, c: tanh(a * b - c * a + 2 / (1 + b**2)) / 2 - (c - b) / 3,
        m.scalar(),
        m.scalar(),
        c,
        dim=None,
    )


STEPS = {
    "sum": _sum,
    "nested": _nested,
    "shift": _shift,
    "product": _product,
    "quotient": _quotient,
    "power": _power,
    "activation": _activation,
    "matrix": _product_with_matrix,
    "nonlin": _nonlin,
    "outer": _outer,
    "moment": _moment,
    "arithmetic": _arithmetic,
}


@given(st.data())
def test_handles_and_arrays_compute_the_same(data: st.DataObject) -> None:
    rng = np.random.default_rng(1)
    inputs: dict[Any, Any] = {
        "x..y[0]": rng.normal(size=SIZES["n"]),
        "x..y[1]": rng.normal(size=SIZES["n"]),
        "z[0]": rng.normal(size=SIZES["d"]),
        "W": rng.normal(size=(SIZES["n"], SIZES["n"])),
        "V": rng.normal(size=(SIZES["d"], SIZES["n"])),
    }
    expected: dict[str, Any] = {}

    @program
    def whole(t: Tracer) -> None:
        machine = Machine(t, data, inputs)
        for _ in range(data.draw(st.integers(1, 10))):
            machine.step()
        for kind in ("vectors", "scalars"):
            for i, pair in enumerate(getattr(machine, kind)):
                t.output(f"{kind} {i}", pair.handle)
                expected[f"{kind} {i}"] = pair.value

    found = run(whole.build(), WIDTH, inputs, DEPTH)
    largest = max(float(np.max(np.abs(value))) for value in expected.values())
    for name, value in expected.items():
        assert np.shape(found[name]) == np.shape(value)
        assert np.allclose(found[name], value, rtol=1e-9, atol=1e-9 * (1 + largest))
