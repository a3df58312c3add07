"""Sizes of random programs: networks of growing width never exceed the derived powers of n."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tpcalc as tp
from tpcalc.dsl import Scalar
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import Exploded, ScaleError
from tpcalc.questions.orders import Order, orders

HALF = Fraction(1, 2)
ACTIVATIONS: dict[str, Callable[..., Vector]] = {
    "relu": tp.relu,
    "tanh": tp.tanh,
    "abs": tp.abs,
    "relu^2": tp.relu_pow(2),
    "leaky": tp.leaky_relu(0.25),
    "step": tp.step,
    "sign": tp.sign,
    "gelu": tp.gelu,
    "elu": tp.elu(1),
}
MOVED = ("relu", "tanh", "abs", "leaky", "relu^2")
SMALL = (Fraction(-1), -HALF)
Step = tuple[str, int, int, int]
KINDS = ("product", "product", "act", "act", "times", "sum", "moved", "inner", "scalar", "factor")


@dataclass
class Pool:
    """Vectors and scalars of a program under construction, and how they were made."""

    tracer: tp.Tracer
    vectors: list[Vector] = field(default_factory=list)
    scalars: list[Scalar] = field(default_factory=list)

    def vector(self, index: int) -> Vector:
        """A vector; the latest ones first."""
        return self.vectors[-1 - index % len(self.vectors)]

    def scalar(self, index: int) -> Scalar:
        """A scalar; a first one is made where there is none."""
        if not self.scalars:
            self.scalars.append(self.tracer.inner(self.vectors[0], self.vectors[0]))
        return self.scalars[-1 - index % len(self.scalars)]

    def grow(self, step: Step, matrices: Sequence[object]) -> None:
        """Add the result of one step."""
        kind, i, j, k = step
        x, y = self.vector(i), self.vector(j)
        if kind in ("inner", "scalar"):
            self.scalars.append(self._number(kind, x, y, self.scalar(i), self.scalar(j), k))
            return
        cases: dict[str, Callable[[], Vector]] = {
            "product": lambda: self._product(matrices[k % 2], x, k // 2),
            "act": lambda: list(ACTIVATIONS.values())[k % len(ACTIVATIONS)](x),
            "times": lambda: x * y,
            "sum": lambda: (1 + k % 2) * x + tp.n ** ((k % 4 - 2) * HALF) * ((-1) ** (k // 4) * y),
            "moved": lambda: _moved(ACTIVATIONS[MOVED[k % 5]], x, tp.n ** SMALL[k // 5 % 2] * y),
            "factor": lambda: self.scalar(k) * x,
        }
        self.vectors.append(cases[kind]())

    def _product(self, matrix: object, x: Vector, k: int) -> Vector:
        side = matrix.T if k % 2 else matrix  # type: ignore[attr-defined]
        return tp.n ** (Fraction(-1), -HALF, -HALF, Fraction(0))[k // 2 % 4] * (side @ x)

    def _number(self, kind: str, x: Vector, y: Vector, s: Scalar, r: Scalar, k: int) -> Scalar:
        if kind == "inner":
            return tp.n ** (k % 3 * HALF) * (self.tracer.inner(x, y) if k // 3 % 2 else tp.mean(x))
        return (lambda: tp.tanh(s), lambda: 1 / (1 + s * s), lambda: s - r, lambda: s * r)[k % 4]()


def _moved(act: Callable[..., Vector], x: Vector, by: Vector) -> Vector:
    return act(x + by) - act(x)


STEPS = st.lists(
    st.tuples(st.sampled_from(KINDS), *(st.integers(0, 4),) * 2, st.integers(0, 40)),
    min_size=3,
    max_size=9,
)


def program_of(steps: Sequence[Step]) -> tp.Program:
    @tp.program
    def made(t: tp.Tracer) -> None:
        pool = Pool(t, [t.gaussian("u"), t.gaussian("v")])
        matrices = (t.matrix("V"), t.matrix("W"))
        for step in steps:
            pool.grow(step, matrices)
        for place, vector in enumerate(pool.vectors[2:]):
            t.output(f"v{place}", vector)
        for place, scalar in enumerate(pool.scalars):
            t.output(f"s{place}", scalar)

    return made.build()


Sizes = dict[str, list[tuple[float, float]]]
ROUNDING = -42.0  # log2 of sizes below which differences are rounding


def sizes(program: tp.Program, widths: Sequence[int], seeds: int, seed: int) -> Sizes:
    """For each output and width the mean of log2 of its size, and the error of that mean.

    The size of a vector is its root mean square. Networks are the larger half of the ones drawn:
    a gate of a random number shuts the others.
    """
    out: Sizes = {}
    for row in tp.simulate(program, widths=widths, seeds=seeds, seed=seed).rows:
        if row.statistic == "mean":
            continue
        logs = np.sort(np.log2(np.maximum(np.abs(row.values), 1e-300)))[seeds // 2 :]
        logs = logs / 2 if row.statistic == "second_moment" else logs
        stderr = 1.5 * float(logs.std(ddof=1)) / math.sqrt(len(logs))
        out.setdefault(row.name, []).append((float(logs.mean()), stderr))
    return out


def breaks(
    order: Order, found: list[tuple[float, float]], widths: Sequence[int], slack: float
) -> bool:
    """Whether local slopes of the size are beyond the exponent, and do not come nearer to it."""
    (first, _), (middle, error), (last, other) = found
    if order.n is None:
        return order.zero and last > ROUNDING
    exact, power = order.status == "exact", order.n.constant
    assert power is not None
    if last < ROUNDING + min(float(power) * math.log2(widths[-1]), 0.0):
        return exact  # nothing but rounding
    octaves = math.log2(widths[-1] / widths[-2])
    early = (middle - first) / octaves - float(power)
    late = (last - middle) / octaves - float(power)
    spread = 5 * math.hypot(error, other) / octaves + slack
    above = last > ROUNDING and late > spread and late > 0.8 * early
    below = exact and late < -spread and late < 0.8 * early
    return above or below


def violations(program: tp.Program) -> list[str]:
    """Outputs whose size contradicts their order at moderate widths and at large ones."""
    claimed = orders(program)
    suspects = list(claimed)
    stages = (((2**8, 2**11, 2**14), 16, 0.15), ((2**10, 2**14, 2**18), 24, 0.07))
    for seed, (widths, seeds, slack) in enumerate(stages):
        measured = sizes(program, widths, seeds, 1000 * seed)
        suspects = [
            name for name in suspects if breaks(claimed[name], measured[name], widths, slack)
        ]
        if not suspects:
            return []
    return [f"{name} is {claimed[name]!r}; log2 sizes {measured[name]}" for name in suspects]


@pytest.mark.slow
@settings(max_examples=60)
@given(STEPS)
def test_sizes_never_exceed_their_orders(steps: list[Step]) -> None:
    """And where the order is exact they do not fall below it."""
    program = program_of(steps)
    try:
        found = violations(program)
    except (ScaleError, Exploded):  # a function that has no order there, or numbers out of range
        assume(False)
    assert not found, "\n".join(found)


def test_the_measurement_sees_a_wrong_order() -> None:
    """The comparison is not blind: half a power too little or too much is seen."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        t.output("q", tp.n**-0.5 * tp.tanh(v))
        t.output("m", t.inner(v, tp.tanh(t.gaussian("w"))))

    widths = (2**8, 2**11, 2**14)
    measured = sizes(made.build(), widths, 400, 0)
    claimed = orders(made)
    for name in ("q", "m"):
        right = claimed[name]
        assert right.n is not None and right.n.constant == -HALF
        assert not breaks(right, measured[name], widths, 0.15)
        for status, shift in (("exact", HALF), ("exact", -HALF), ("upper", -HALF)):
            assert breaks(Order(right.n + shift, status, ""), measured[name], widths, 0.15)
        assert not breaks(Order(right.n + HALF, "upper", ""), measured[name], widths, 0.15)
