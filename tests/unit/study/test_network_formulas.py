"""Formulas of networks of one's own, read off their programs."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

import tpcalc as tp
from tpcalc.networks.own import as_network
from tpcalc.study.formulas import network_formulas
from tpcalc.training.parameterizations import lookup


def formulas(net: Any, parameterization: str = "mup") -> dict[str, str]:
    found = network_formulas(as_network(net), lookup(parameterization), 0)
    for _, formula in found:
        ElementTree.fromstring(formula.mathml)
        assert formula.latex.count("{") == formula.latex.count("}")
        assert formula.text.count("(") == formula.text.count(")")
    return {title: formula.text for title, formula in found}


@tp.network(axes={"p": 3})
def attention(t: Any, x: Any) -> Any:
    """Tied weights, rows, sums over positions, a renamed axis, a finite width."""
    t.dim("d", "1/4")
    e = t.linear(t.n, "in", name="embed")(x)
    q, k, v = (t.linear("d", t.n, name=name)(e) for name in "qkv")
    scores = t.inner(q, k.renamed(p="p'"))
    mixed = t.sum(tp.softmax(scores, "p'") * v.renamed(p="p'"), "p'")
    out = t.linear(t.n, "d", name="o")
    y = e - out(mixed) + out(out.T(e))
    t.watch("y", "stream", y)
    return t.linear(t.outputs, t.n, name="read")(y.at(p=1))


def test_formulas_say_what_a_network_computes() -> None:
    found = formulas(attention)
    assert found["y^stream"].startswith("y^stream = ")
    for part in ("softmax_(p')(", "sum_(p')", "embed ξ", "o^T", "+ n^(-1) (-o ("):
        assert any(part in text for text in found.values()), part
    assert "_(p=1)" in found["x^read"]
    assert found["f"] == "f = n^(-1) read x^read"


def test_what_is_used_twice_has_a_name_and_is_written_once() -> None:
    @tp.network
    def twice(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u")(x)
        h = h + t.linear(t.n, t.n, name="w", bias=True)(tp.tanh(h))
        return t.linear(t.outputs, t.n, name="v")(h * tp.sigmoid(h))

    found = formulas(twice, "ntk")
    assert found == {
        "h^u": "h^u = u ξ",
        "h^sigmoid": "h^sigmoid = h^u + n^(-1/2) w tanh(h^u) + w.bias",
        "h^product": "h^product = sigmoid(h^sigmoid)",
        "x^v": "x^v = h^sigmoid h^product",
        "f": "f = n^(-1/2) v x^v",
    }


@pytest.mark.parametrize("depth", [1, 2, 6])
def test_layers_that_are_written_alike_share_a_formula(depth: int) -> None:
    found = formulas(tp.MLP(depth, "tanh", weight_variance="1/4"))
    hidden = "h^l = n^(-1/2) 1/2 W^l x^(l-1)"
    assert (hidden in found.values()) == (depth > 2)
    assert len(found) == {1: 3, 2: 4}.get(depth, 4)
    uneven = formulas(tp.MLP(3, "tanh", weight_variance=(1, 2, 3)))
    assert uneven["h^3"] == "h^3 = n^(-1/2) sqrt(3) W^3 x^2"
