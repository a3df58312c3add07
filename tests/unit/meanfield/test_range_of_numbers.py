"""Networks whose numbers leave the range of floats, and layers where noise outgrows lengths."""

from __future__ import annotations

import pytest
from layered import Activation, Dense, Input, Lines, chain

from tpcalc import signal
from tpcalc.views.answers.nonlinearity import judge_nonlinearity, nonlinearity_tables


def squares(count: int) -> Lines:
    """Blocks of s^2 that keep the second moment 3: deviations of lengths double in each."""
    square = Activation("square")
    return chain(Input(1, 0.25), [Dense(1), square, *[Dense(1 / 3), square] * (count - 1)])


def test_S4_42_from_which_layer_rounding_is_as_large_as_lengths() -> None:
    """2^24 > 1e7: layer 48; 2^5 > sqrt(1000): layer 10; 2^30 < 1e16: nowhere in 30 blocks."""
    found = signal.nonlinearity(squares(30))
    layers = {each.cause: each.layer for each in found.reaches}
    assert layers["rounding of 32-bit floats"] == 48
    assert layers["rounding of 64-bit floats"] is None
    assert layers["networks of width 1000"] == 10
    (table,) = [t for t in nonlinearity_tables(found) if "outgrows" in t.caption]
    told = [[cell.text for cell in row[-2:]] for row in table.rows]
    assert told == [["10", "24"], ["48", "60"], ["nowhere", "nowhere"]]
    steady = signal.nonlinearity(signal.mlp(20, signal.Design("relu", 2)))
    assert all(each.layer is None for each in steady.reaches)
    assert not any("outgrows" in t.caption for t in nonlinearity_tables(steady))


@pytest.mark.torch
def test_S4_42_the_limit_stays_where_networks_overflow() -> None:
    pytest.importorskip("torch")
    graph = squares(12)
    alone = signal.nonlinearity(graph)
    found = signal.nonlinearity(
        graph, sampling=signal.Sampling((16,), seeds=2, inputs=40, dtype="float32")
    )
    assert found.nlc == alone.nlc
    (end,) = found.ends
    assert end.width == 16 and "layer " in end.reason and "range" in end.reason
    told = int(end.reason.split("layer ")[1].split(":")[0])
    assert 0 < end.last < told <= graph.last
    assert [row.layer for row in found.measured] == list(range(end.last + 1))
    lines = judge_nonlinearity(found).reasons
    assert any(line.startswith("At width 16 networks end before the output") for line in lines)
