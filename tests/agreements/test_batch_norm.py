"""Batch norm over a finite batch, written with operators: forward, backward, and its kernels."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

import tpcalc as tp
from tpcalc.dsl.matrices import Matrix
from tpcalc.dsl.vectors import Vector

HALF, BATCH = Fraction(1, 2), 4
Function = Callable[[Vector], Vector]


def hat(matrix: Matrix, x: Vector) -> Vector:
    return tp.n**-HALF * (matrix @ x)


def mean(xs: list[Vector]) -> Vector:
    return sum(xs[1:], xs[0]) / len(xs)


def trained(act: Function, slope: Function) -> tp.Program:
    """A normalised layer below a tanh layer, and what comes back through it."""

    def build(t: tp.Tracer) -> None:
        xs, v = [t.gaussian(f"x{i}") for i in range(BATCH)], t.gaussian("v")
        low, high = t.matrix("W"), t.matrix("U")
        h = [hat(low, x) for x in xs]
        centred = [x - mean(h) for x in h]
        scale = (mean([x**2 for x in centred]) + Fraction(1, 100)) ** -HALF
        z = [x * scale for x in centred]
        y = [act(x) for x in z]
        back = [hat(high.T, v * (1 - tp.tanh(hat(high, x)) ** 2)) for x in y]
        dz = [g * slope(x) for g, x in zip(back, z, strict=True)]
        shared = mean([g * x for g, x in zip(dz, z, strict=True)])
        dh = [(g - mean(dz) - x * shared) * scale for g, x in zip(dz, z, strict=True)]
        for i in range(2):
            t.output(f"forward{i}", t.inner(y[0], y[i]))
            t.output(f"backward{i}", t.inner(hat(low.T, dh[0]), hat(low.T, dh[i])))

    return tp.program(build).build()


@pytest.mark.parametrize(
    ("act", "slope"), [(tp.tanh, lambda z: 1 - tp.tanh(z) ** 2), (tp.relu, tp.step)]
)
def test_batch_norm_against_networks(act: Function, slope: Function) -> None:
    """Kernels of both directions, of one sample and of two, at widths of 512."""
    program = trained(act, slope)
    found = tp.limit(program, samples=2**12)
    assert not found.table.uncovered
    finite = tp.simulate(program, widths=[512], seeds=16)
    for row in tp.compare(found, finite).rows:
        assert row.z < 5, row
