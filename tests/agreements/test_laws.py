"""Laws of the entries of matrices: networks draw them, limits are those of their variance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tests.agree import agree
from tpcalc.errors import ProgramError, TraceError, UsageError
from tpcalc.program.laws import LAWS
from tpcalc.results import Estimate, Method

DATA = tp.Samples(((1.0, 0.5), (0.2, -0.7)), ((1.0,), (-0.5,)))
DRAWN = [law for law in LAWS.values() if law.draw is not None]


def network(law: str) -> Any:
    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u")(x)
        for name in ("w", "z"):
            h = t.linear(t.n, t.n, name=name, law=law)(tp.tanh(h))
        return t.linear(t.outputs, t.n, name="v")(tp.tanh(h))

    return net


@pytest.mark.parametrize("law", DRAWN, ids=lambda law: law.name)
def test_entries_have_the_moments_that_the_row_states(law: Any) -> None:
    entries = law.draw(np.random.default_rng(3), (2000, 1000))
    for power, moment in ((1, 0), (2, 1), (3, 0), (4, float(law.fourth))):
        values = entries**power
        error = values.std() / values.size**0.5
        assert abs(values.mean() - moment) <= 5 * error + 1e-12
    if law.proxy is not None:
        for c in (0.5, 1.0, 2.0):
            values = np.exp(c * entries)
            error = values.std() / values.size**0.5
            assert values.mean() - 5 * error <= np.exp(c * c * law.proxy**2 / 2)


@pytest.mark.slow
@pytest.mark.parametrize("law", list(LAWS))
def test_limits_of_training_agree_with_networks_of_every_law(law: str) -> None:
    program = tp.train(network(law), "mup", DATA, steps=1, lr=0.5, watch=("x",))
    assert tp.parse(str(program)) == program
    limit = tp.limit(program, samples=2**14, seed=1)
    finite = tp.simulate(program, widths=[512], seeds=48, seed=2, backend="dense")
    compared = 0
    for row in limit.table.scalars:
        for one in finite.rows:
            if one.name == row.name and one.statistic == "value":
                values = np.array(one.values)
                stderr = float(values.std(ddof=1)) / len(values) ** 0.5
                found = Estimate(float(values.mean()), stderr, Method.FINITE, replicates=48)
                agree(row.estimate, found, rounding=6 / 512)
                compared += 1
    assert compared >= 2


@pytest.mark.parametrize("law", ["uniform", "laplace"])
def test_orders_do_not_depend_on_the_law(law: str) -> None:
    program, plain = (
        tp.train(network(own), "mup", DATA, steps=1, watch=("h", "x")) for own in (law, "gaussian")
    )
    assert str(tp.orders(program)) == str(tp.orders(plain))
    one, other = (tp.check(network(own), "mup") for own in (law, "gaussian"))
    assert (one.verdict, one.layers) == (other.verdict, other.layers)


def test_products_reveal_gaussian_and_orthogonal_matrices_only() -> None:
    program = tp.train(network("rademacher"), "mup", DATA, steps=0)
    with pytest.raises(UsageError, match="has rademacher entries"):
        tp.simulate(program, widths=[64], seeds=2)


def test_a_law_is_one_of_a_row_and_of_maps_between_widths() -> None:
    with pytest.raises(TraceError, match="the weights of a map are 'cauchy'"):
        tp.train(network("cauchy"), "mup", DATA)

    @tp.network
    def entered(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u", law="uniform")(x)
        return t.linear(t.outputs, t.n)(tp.tanh(h))

    with pytest.raises(TraceError, match="a finite side has uniform weights"):
        tp.train(entered, "mup", DATA)
    text = "tpcalc program 2\ndim n 1\nfamily x : n uniform\n%0 : n = input x\noutput y %0\n"
    with pytest.raises(ProgramError, match="'uniform' is one of matrices"):
        tp.parse(text)
