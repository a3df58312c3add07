"""Limits of networks that explode: after the power of n is taken out, and which step was first."""

from __future__ import annotations

from fractions import Fraction

import pytest

import tpcalc as tp
from tpcalc.errors import ScaleError
from tpcalc.results import Explosion, LimitTable, NotCovered, Provenance, codec
from tpcalc.views.faces import html
from tpcalc.views.tables import exploded_line, limit_tables

DATA = tp.Samples(((1.0, 0.5),), ((1.0,),))


def trained(act: str, param: str, steps: int = 2) -> tp.Program:
    return tp.train(tp.MLP(2, act), param, DATA, steps=steps, lr=Fraction(1, 2), watch=("h", "x"))


def test_what_grows_is_given_after_its_power_and_what_vanishes_is_0() -> None:
    @tp.program
    def made(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        square = t.inner(v, v)
        t.output("large", tp.n ** Fraction(3, 2) * square)
        t.output("small", tp.n**-1 * square)
        t.output("plain", square)

    found = tp.limit(made, rescale="growing")
    rows = {row.name: (str(row.n_power), row.estimate.value) for row in found.table.scalars}
    assert rows == {"large": ("3/2", 1.0), "small": ("0", 0.0), "plain": ("0", 1.0)}
    refused = tp.limit(made)
    (row,) = refused.table.uncovered
    assert (row.name, str(row.n_power)) == ("large", "3/2")
    with pytest.raises(ScaleError, match=r"grows like n\^\(3/2\)"):
        refused["large"]
    assert found.table.exploded is None  # nothing of it belongs to a step


@pytest.mark.parametrize("rescale", [False, "growing"])
def test_the_first_explosion_of_a_run(rescale: bool | str) -> None:
    table = tp.limit(trained("relu", "standard", 1), rescale=rescale, samples=2**8).table
    assert table.exploded == Explosion(1, "f[1,0] grows like n^(3/2)")
    assert table.to_dict()["exploded"] == {"step": 1, "fact": "f[1,0] grows like n^(3/2)"}
    assert codec.from_json(codec.to_json(table)) == table
    (line,) = exploded_line(table.exploded)
    assert line.startswith("Unstable: f[1,0] grows like n^(3/2) at step 1.")
    assert "Unstable: f[1,0] grows like n" in html(table)[:80]


def test_what_a_function_reads_is_the_explosion_where_it_is_not_homogeneous() -> None:
    table = tp.limit(trained("tanh", "standard"), rescale="growing", samples=2**8).table
    assert table.exploded == Explosion(1, "h[2,1,0] grows like n^(1/2)")
    (shown,) = [one for one in limit_tables(table) if one.caption == "Not covered"]
    (row,) = shown.rows  # one cause, of both steps
    assert "f[1,0]" in row[0].text and "f[2,0]" in row[0].text
    assert "its argument explodes like n^(1/2)" in row[3].text


def test_what_only_later_steps_lose_is_one_row() -> None:
    """What an earlier step loses for the same cause names it still."""
    names = ("h[2,1,0]", "h[2,2,0]", "x[1,2,0]", "f[2,0]")
    nodes = ("%1", "%1", "%2", "%3")
    rows = tuple(
        NotCovered(name, node, "nonlin", f"the reason of {node}.")
        for name, node in zip(names, nodes, strict=True)
    )
    end = Explosion(1, "f[1,0] grows like n^(3/2)")
    (shown,) = limit_tables(LimitTable((), (), Provenance("0", "ab"), (), rows, end))
    first, after = [[cell.text for cell in row] for row in shown.rows]
    assert first == ["h[2,1,0], h[2,2,0]", "%1", "nonlin", "the reason of %1."]
    text = "it belongs to a step after the explosion at step 1: f[1,0] grows like n^(3/2)"
    assert after == ["x[1,2,0], f[2,0]", "", "", text]


@pytest.mark.parametrize("param", ["mup", "ntk", "naive-ip"])
def test_nothing_explodes_elsewhere(param: str) -> None:
    table = tp.limit(trained("relu", param), rescale="growing", samples=2**8).table
    assert table.exploded is None and exploded_line(None) == ()


def test_a_comparison_divides_finite_networks_by_the_power() -> None:
    program = trained("relu", "standard", 1)
    limit = tp.limit(program, rescale="growing", seed=1)
    found = tp.compare(limit, tp.simulate(program, widths=[4096], seeds=32))
    assert found.exploded == limit.table.exploded
    assert found.to_dict()["exploded"] == {"step": 1, "fact": "f[1,0] grows like n^(3/2)"}
    (row,) = (row for row in found.rows if row.name == "f[1,0]")
    assert row.z < 5 and row.limit_std is not None and row.limit_std > 0


def test_what_has_no_law_after_rescaling_keeps_its_power() -> None:
    @tp.program
    def grows(t: tp.Tracer) -> None:
        v, w = t.gaussian("v"), t.gaussian("w")
        h = tp.n**-0.5 * (t.matrix("W") @ v)
        t.output("y", tp.n**1.5 * t.inner(tp.tanh(h), tp.tanh(w)))
        t.output("fine", t.mean(v**2))

    table = tp.limit(grows, rescale="growing", samples=2**8).table
    (row,) = table.uncovered
    assert (row.name, str(row.n_power), row.bound) == ("y", "", "O(n^(1))")
    assert "(y)" in row.text and "It is O(n^(1))" in row.text
    program = tp.train(tp.ResNet(4, "relu", alpha=1), "standard", DATA, steps=1)
    found = tp.limit(program, rescale="growing", samples=2**8, outputs=["f*", "x[2*"]).table
    assert found.exploded == Explosion(1, "f[1,0] grows like n^(5/2)")
    last = next(row for row in found.scalars if row.name == "f[1,0]")
    assert str(last.n_power) == "5/2" and last.estimate.random
