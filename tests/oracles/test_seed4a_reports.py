"""What reports of networks say beyond the coefficient: labels, noise, conditions, checklists."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

import tpcalc as tp

s = tp.signal
Design = s.Design


def test_S4_37_labels_are_products_along_paths() -> None:
    """GUA: square and odd square without layer norm. GEA: ReLU without it, biases or not."""
    unstable = [Design("square", 1 / 3), Design("odd_square", 1 / 3, norm="batch")]
    edge = [Design("relu", 2), Design("relu", 1.9, 0.05), Design("relu", 2, norm="batch")]
    neither = [Design(name, norm="layer") for name in ("square", "odd_square", "relu", "tanh")]
    neither += [Design(name, 1.5) for name in ("selu", "tanh", "sigmoid", "even_tanh", "gaussian")]
    for designs, word in ((unstable, "GUA"), (edge, "GEA"), (neither, "")):
        for design in designs:
            assert s.stability(s.mlp(5, design)).architecture == word, design
            assert s.nonlinearity(s.mlp(5, design)).architecture == word
    # Batch norm cuts nothing, and branches of a sum add up.
    squares = s.stability(s.mlp(5, Design("square", 1 / 3, norm="batch")))
    assert squares.along == pytest.approx(2**5, rel=1e-12) and squares.label == "unstable"
    assert s.stability(s.resnet(4, Design("relu", 2, norm="batch"))).architecture == "GEA"
    assert s.stability(s.resnet(4, Design("square", 1 / 3, norm="layer"))).architecture == ""
    assert s.stability(s.resnet(4, Design("tanh", 2, norm="batch"))).label == "stable"


def test_S4_37_products_of_different_activations() -> None:
    """One square among layers that make deviations smaller: the largest product along the path."""

    def net(*names: str) -> object:
        lines = ["h0 = input(1, 0)"]
        for index, name in enumerate(names):
            lines += [f"a{index} = dense(h{index})", f"h{index + 1} = {name}(a{index})"]
        return s.parse_graph("\n".join(lines))

    numbers = {name: s.stability(net(name)).numbers[2].value for name in ("tanh", "swish")}
    assert numbers == pytest.approx({"tanh": 0.461071, "swish": 1.172594}, abs=2e-6)
    found = s.stability(net("swish", "tanh", "tanh"))
    shares = [each.value for each in found.numbers if each is not None]
    assert found.label == "unstable" and found.along == pytest.approx(shares[0], rel=1e-12)
    assert s.stability(net("tanh", "swish", "tanh")).along == pytest.approx(
        s.stability(net("tanh", "swish")).numbers[4].value, rel=1e-12
    )
    # Biases make a deviation smaller: of swish at q = 1 less than by how much it grows.
    bare, damped = (s.stability(s.mlp(6, Design("swish", *w))) for w in ((2, 0), (2, 0.01)))
    assert damped.along < bare.along and damped.factors[-1].value < bare.factors[-1].value


def test_S4_37_numbers_of_activations_are_a_column() -> None:
    rows = s.nonlinearity(s.mlp(2, Design("selu"))).layers
    assert [row.growth is None for row in rows] == [True, True, False, True, False, True]
    assert rows[2].growth.value == pytest.approx(0.782648, abs=1e-6)
    assert "GEA" in str(s.nonlinearity(s.mlp(2, Design("relu", 2))))


def test_S4_42_rounding_explodes_at_the_thirtieth_square() -> None:
    """(1 + 1e-7)^(2^M) passes 1e38 at M = 30, and 1e-7 2^M passes 1 at M = 24."""
    net = s.mlp(40, Design(s.activations.normalized("square")))
    narrow, single, double = s.nonlinearity(net).reaches
    assert (single.layer, single.overflow) == (2 * 24, 2 * 30)
    largest = log(3.4028235e38)
    assert 2**29 * np.log1p(1e-7) < largest < 2**30 * np.log1p(1e-7)
    depth = next(m for m in range(40) if 2**m * np.log1p(1000**-0.5) > largest)
    assert (narrow.cause, narrow.layer) == ("networks of width 1000", 2 * 5)
    assert narrow.overflow == pytest.approx(2 * depth, abs=2)
    assert (double.layer, double.overflow) == (None, None)  # 1e-16 2^40 is small
    said = str(s.nonlinearity(net))
    assert "overflow at layer 60" in said and "Gaussian unstable architecture" in said


def test_S4_42_layer_norm_takes_the_alarm_away() -> None:
    for norm, word in (("layer", "stable"), ("batch", "unstable")):
        found = s.nonlinearity(s.mlp(40, Design("square", norm=norm)))
        assert found.stability == word
        # One input of a batch deviates by sqrt(B) of the length at most, which is no overflow.
        assert all(each.overflow is None for each in found.reaches)
        assert all((each.layer is None) == (norm == "layer") for each in found.reaches[:2])
        assert any("prediction is unreliable" in note for note in found.notes) == (norm == "batch")
