"""``lazy``: seeds, refusals, explosions; its law is tested against ``dense`` elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.cli import payload
from tpcalc.errors import Exploded, StudyError
from tpcalc.finite import statistics
from tpcalc.functions import Fn, Par, Var, const
from tpcalc.program.nodes import Dim, Family, Input, Moment
from tpcalc.program.program import Builder, prune
from tpcalc.results import FiniteRow, FiniteTable, Provenance

DATA = tp.Samples(((0.6, -0.3),), ((1.0,),))


def program(lr: float = 0.5, steps: int = 3) -> tp.Program:
    return tp.train(tp.MLP(2, "relu"), "mup", DATA, steps=steps, lr=lr, watch=("h",))


def values(table: tp.FiniteTable, name: str) -> tuple[float, ...]:
    return next(row.values for row in table.rows if row.name == name)


def test_a_step_that_explodes_is_said_and_leaves_earlier_ones() -> None:
    table = tp.simulate(program(lr=1e60, steps=12), widths=[64, 128], seeds=2)
    (note,) = table.notes
    assert note.startswith("at width 64, 128: numbers leave the floating-point range at ")
    names = dict.fromkeys(row.name for row in table.rows)
    lost = note.partition(" range at ")[2].partition(";")[0]
    assert "f[0,0]" in names and lost not in names and "f[12,0]" not in names
    assert all(np.isfinite(row.values).all() for row in table.rows)
    with pytest.raises(Exploded, match="learning rate"):
        tp.simulate(prune_to(program(lr=1e60, steps=12), "f[12,0]"), widths=[64], seeds=1)


def prune_to(whole: tp.Program, name: str) -> tp.Program:
    return prune(replace(whole, outputs=((name, whole.ref(name)),)))


def test_large_numbers_have_errors() -> None:
    """Squares of what is in the floating-point range may not be."""

    @tp.program
    def large(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        t.output("large", tp.n**100 * t.inner(v, v))

    table = tp.simulate(large, widths=[64, 128, 256], seeds=8)
    found = tp.compare(tp.limit(large, rescale=True), table)
    assert all(0 < row.stderr < 1 for row in found.rows)
    plain = [statistics.summary(row.values) for row in table.rows]
    for one, row in zip(plain, found.rows, strict=True):
        assert one.stderr / one.value == pytest.approx(row.stderr / row.mean, rel=1e-9)
    fit = statistics.slope([64, 128, 256], [row.values for row in table.rows])
    assert fit.value == pytest.approx(100, abs=0.5)


@pytest.mark.parametrize("width", [100, 8192, 10000])
def test_the_mean_of_a_number_is_that_number(width: int) -> None:
    """Also where coordinates are summed in parts, of which the last is shorter."""
    builder = Builder((Dim("n"),))
    x, s = builder.add(Input(Family("x", ("n",)))), builder.add(Input(Family("s", ())))
    builder.output("half", builder.add(Moment(Fn(const(0.5), 1), (x,))))
    builder.output("mean of s", builder.add(Moment(Fn(Par(0), 1, 1), (x,), (s,))))
    builder.output("s", s)
    rows = tp.simulate(builder.finish(), [width], seeds=2).rows
    found = {row.name: row.values for row in rows}
    assert found["half"] == (0.5, 0.5)
    assert found["mean of s"] == pytest.approx(found["s"], rel=1e-14)


@pytest.mark.parametrize("backend", ["lazy", "dense"])
@pytest.mark.parametrize("width", [8192, 10000])
def test_averages_are_over_all_coordinates(backend: str, width: int) -> None:
    """Of vectors that are 1 but for a millionth, at a width that is no multiple of a part."""
    if backend == "dense":
        pytest.importorskip("torch")
    builder = Builder((Dim("n"),))
    x = builder.add(Input(Family("x", ("n",), mean=(1,), cov=((1e-12,),))))
    builder.output("q", builder.add(Moment(Fn(Var(0) ** 2, 1), (x,))))
    (row,) = tp.simulate(builder.finish(), [width], seeds=2, backend=backend).rows
    assert row.values == pytest.approx((1, 1), abs=1e-5)


def test_orthogonal_matrices_keep_lengths() -> None:
    @tp.program
    def haar(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        h = tp.n**-0.5 * (t.matrix("W", law="orthogonal") @ v)
        t.output("change", t.inner(h, h) - t.inner(v, v))

    (row,) = tp.simulate(haar, widths=[16], seeds=3).rows
    assert row.values == pytest.approx([0.0] * 3, abs=1e-14)


def test_sizes_are_whole_numbers() -> None:
    @tp.program
    def thirds(t: tp.Tracer) -> None:
        t.dim("m", "1/3")
        t.output("h", tp.n**-0.5 * (t.matrix("W", "m", "n") @ t.gaussian("v")))

    with pytest.raises(StudyError, match="multiples of 3"):
        tp.simulate(thirds, widths=[64], seeds=1)
    table = tp.simulate(thirds, widths=[513], seeds=2)
    assert 0.5 < values(table, "h")[0] + 1 < 2


def test_means_of_the_largest_numbers_are_in_json() -> None:
    row = FiniteRow("f", "value", 64, (1e308, 1.7e308))
    found = payload.result(FiniteTable((row,), (64,), 2, "lazy", Provenance("0", "ab")))
    assert found["rows"][0]["mean"] == pytest.approx(1.35e308)
