"""Second moments and changes of networks: the recursion, the limit of the program, networks."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tests.agree import agree
from tpcalc.errors import ProgramError, StudyError
from tpcalc.meanfield.program import program_of
from tpcalc.results import Estimate, Method
from tpcalc.signal import Input, layers, propagate

START = Input(1.3, 0.4)


@tp.network
def gated(t: Any, x: Any) -> Any:
    h = t.linear(t.n, "in", name="u")(x)
    up, gate = t.linear(t.n, t.n, bias=True, name="up"), t.linear(t.n, t.n, name="gate")
    z = tp.rms_norm(h)
    h = h + tp.gelu(up(z)) * tp.sigmoid(gate(z))
    return t.linear(t.outputs, t.n, name="v")(h)


@tp.network
def tied(t: Any, x: Any) -> Any:
    """A matrix and its transpose: no recursion."""
    w = t.linear(t.n, t.n, name="w")
    h = w(tp.tanh(t.linear(t.n, "in", name="u")(x)))
    h = w.T(tp.tanh(h)) + h
    return t.linear(t.outputs, t.n, name="v")(tp.tanh(h))


@pytest.mark.parametrize(
    "net",
    [
        tp.MLP(3, "tanh", norm="layer", bias="all"),
        tp.ResNet(2, "gelu", norm="rms"),
        tp.ResNet(3, "relu"),
        gated,
    ],
    ids=["mlp", "resnet norm", "resnet", "gated"],
)
def test_the_recursion_is_the_limit_of_the_program(net: Any) -> None:
    places, states = dict(layers(net).names), propagate(net, inputs=START)
    found = tp.limit(program_of(net, START), seed=1)
    compared = 0
    for row in found.table.scalars:
        letter, name = row.name[0], row.name[2:-1]
        if name not in places:
            continue
        state = states[places[name]]
        wanted = {"q": state.square, "c": state.comean, "v": state.gap}
        value = wanted[letter].value if letter in wanted else state.gradient
        error = 5 * row.estimate.stderr + 1e-9 * abs(value)
        assert abs(row.estimate.value - value) <= error, row.name
        compared += 1
    assert compared >= 8


@pytest.mark.parametrize("net", [gated, tied], ids=["gated", "tied"])
def test_networks_approach_the_limit(net: Any) -> None:
    program = program_of(net, START)
    found = tp.limit(program, seed=1)
    table = tp.simulate(program, widths=[1024], seeds=32, seed=2)
    rows = {row.name: np.array(row.values) for row in table.rows}
    for row in found.table.scalars:
        values = rows[row.name]
        stderr = float(values.std(ddof=1)) / len(values) ** 0.5
        own = Estimate(float(values.mean()), stderr, Method.FINITE, replicates=len(values))
        agree(row.estimate, own, rounding=6 / 1024 * max(1.0, abs(row.estimate.value)))


@pytest.mark.parametrize("power", [Fraction(-1, 2), Fraction(1, 4)])
def test_orders_of_the_program_say_what_vanishes_and_grows(power: Fraction) -> None:
    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u")(x)
        h = tp.n**power * t.linear(t.n, t.n, name="w")(tp.tanh(h))
        return t.linear(t.outputs, t.n, name="v")(tp.relu(h))

    found = tp.orders(program_of(net))
    for letter in "qvg":
        assert found[f"{letter}[h[u]]"].text == "0"
        assert found[f"{letter}[h[w]]"].text == str(2 * power)
        assert found[f"{letter}[x[v]]"].text == str(2 * power)


def test_what_has_no_two_moments_is_refused() -> None:
    @tp.network(axes={"p": 2})
    def several(t: Any, x: Any) -> Any:
        h = t.sum(t.linear(t.n, "in", name="u")(x), "p")
        return t.linear(t.outputs, t.n, name="v")(tp.tanh(h))

    with pytest.raises(StudyError, match="is 2 vectors"):
        program_of(several)

    @tp.network
    def squared(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u")(x * x)
        return t.linear(t.outputs, t.n, name="v")(tp.tanh(h))

    with pytest.raises(ProgramError, match="other than as a coefficient"):
        program_of(squared)
