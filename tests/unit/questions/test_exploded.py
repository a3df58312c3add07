"""Tables of a training run stop at the first explosion; what was known until then stays."""

from __future__ import annotations

import pytest

import tpcalc as tp
from tpcalc.questions.measure import measure
from tpcalc.results import Explosion, Name, codec
from tpcalc.views.answers.check import check_tables
from tpcalc.views.answers.orders import order_lines, row_tables

DATA = tp.Samples(((1.0, 0.5), (0.5, 1.0)), ((1.0,), (-1.0,)))
RESNET = tp.ResNet(2, "relu", alpha=1)


def trained(net: object, param: str, steps: int = 2) -> tp.Program:
    return tp.train(net, param, DATA, steps=steps, watch=("h", "x", "dW_x"))  # type: ignore[arg-type]


def test_check_stops_at_the_explosion() -> None:
    found = tp.check(RESNET, "standard", steps=3)
    fact = "layer 2: its preactivations grow like n^(1/2)"
    assert (found.verdict, found.steps, found.exploded) == ("unstable", 3, Explosion(1, fact))
    assert found.facts[0] == f"{fact} at step 1"
    steps = {Name.tabled(row.name).step for row in (*found.updates, *found.outputs)}
    assert steps == {0, 1}
    updates = {row.name: (str(row.n), row.status) for row in found.updates}
    assert updates["dW_x[2,1,1]"] == ("1/2", "exact")
    assert updates["dW_x[3,1,1]"] == ("1", "exact")
    first, *_ = check_tables(found)
    assert first.note == found.exploded.text and found.exploded.text.startswith("After step 1 ")
    assert ["Steps followed", "1 of 3"] in [[cell.text for cell in row] for row in first.rows]
    assert found.to_dict()["exploded"] == {"step": 1, "fact": fact}
    assert codec.from_json(codec.to_json(found)) == found


def test_a_start_that_explodes_is_followed_no_further() -> None:
    found = tp.check(tp.MLP(3, "tanh"), "ac:0,0,0,0;0,0,0,0", steps=2)
    assert found.exploded is not None and found.exploded.step == 0
    assert found.exploded.text.startswith("After the start nothing is followed")
    assert found.updates == () and [row.name for row in found.outputs] == ["f[0,1]"]
    assert {layer.moves for layer in found.layers} == {None}


@pytest.mark.parametrize("param", ["mup", "ntk", "naive-ip"])
def test_what_does_not_explode_is_followed(param: str) -> None:
    found = tp.check(tp.MLP(2, "relu"), param, steps=2)
    assert found.exploded is None and found.to_dict()["exploded"] is None
    assert {Name.tabled(row.name).step for row in found.updates} == {1, 2}
    table = tp.orders(trained(tp.MLP(2, "relu"), param)).table
    assert table.exploded is None and table.to_dict()["exploded"] is None


@pytest.mark.parametrize(("act", "name"), [("relu", "f[1,0]"), ("tanh", "h[2,1,0]")])
def test_the_table_of_orders_stops_at_the_explosion(act: str, name: str) -> None:
    found = tp.orders(trained(tp.MLP(2, act), "standard"))
    table = found.table
    assert table.exploded is not None and table.exploded.step == 1
    assert found[name].status == "exact" and found[name].n is not None
    assert {Name.tabled(row.name).step for row in table.rows} == {0, 1}
    assert "f[2,0]" in found and table.exploded.text in " ".join(str(found).split())
    assert order_lines(table) == (table.exploded.text,)
    tables = row_tables(table.rows, "")
    assert not any("[2,2," in cell.text for t in tables for r in t.rows for cell in r)


def test_what_layer_norm_takes_out_is_no_explosion() -> None:
    """The preactivations grow, and are normalised before anything reads them."""
    net = tp.MLP(2, "relu", norm="layer")
    found = tp.orders(tp.train(net, "ac:0,0,1/2;0,0,0", DATA, steps=1, watch=("h", "x")))
    assert found["h[2,0,0]"].text == "1/2" and found["x[2,0,0]"].text == "0"
    assert found.table.exploded is None


def test_measured_orders_run_what_the_table_shows() -> None:
    """Later steps would leave the floating-point range."""
    found = tp.orders(trained(RESNET, "standard", 3))
    table = measure(found, widths=[64, 128, 256], seeds=4)
    assert not any("floating-point" in note for note in table.notes)
    (row,) = (row for row in table.rows if row.name == "h[2,1,0]")
    assert row.slope is not None and {Name.tabled(row.name).step for row in table.rows} == {0, 1}


def test_bounds_of_one_reason_are_one_row() -> None:
    table = tp.orders(trained(tp.ResNet(2, "elu", alpha=1), "standard")).table
    bounds = [row for row in table.rows if row.status == "upper"]
    shown = next(t for t in row_tables(table.rows, "") if t.caption == "Upper bounds").rows
    assert len(shown) == len({(row.n, row.reason) for row in bounds}) < len(bounds)
    assert sum(len(row[0].text.split(", ")) for row in shown) == len(bounds)
