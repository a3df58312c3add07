"""The template of the multilayer perceptron: means of the initial weights."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy_run import run

import tpcalc as tp
from tpcalc.errors import ScaleError, StudyError
from tpcalc.exponents import Ex, as_ex
from tpcalc.program.nodes import Scale
from tpcalc.sources import Source
from tpcalc.training.parameterization import Exponents, Parameterization
from tpcalc.training.parameterizations import lookup
from tpcalc.training.written import template_of

DATA = tp.Samples(((0.6, -0.3), (0.1, 0.7)), ((1.0,), (0.5,)))


def table(a: Sequence[Ex], mean: Sequence[Fraction | int]) -> Parameterization:
    """A table of one's own; its learning rates are those of NTK."""
    zeros = (as_ex(0),) * len(a)
    own = Exponents(tuple(a), zeros, tuple(a), zeros, tuple(map(Fraction, mean)))
    return Parameterization("own", lambda depth, step: own, "all", Source("this test"))


def test_weights_with_means_are_weights_shifted() -> None:
    """One forward pass with a = (0, 3/4, 1/2, 1) and means against explicit matrices."""
    net, width = tp.MLP(3, "tanh", bias="all"), 10
    a = [as_ex(e) for e in (0, Fraction(3, 4), Fraction(1, 2), 1)]
    mean = (0, Fraction(1, 2), -2, 3)
    template = template_of(net, table(a, mean), 2, 2).program
    rng = np.random.default_rng(3)
    inputs = {f"W1[{j}]": rng.standard_normal(width) for j in range(2)}
    inputs |= {f"W{layer}": rng.standard_normal((width, width)) for layer in (2, 3)}
    inputs |= {f"b{layer}[0]": rng.standard_normal(width) for layer in (1, 2, 3)}
    inputs |= {f"W4[{k}]": rng.standard_normal(width) for k in range(2)}
    inputs |= {f"b4[{k}]": rng.standard_normal() for k in range(2)}
    inputs |= {"x[0]": 0.3, "x[1]": -1.2}
    found = run(template, width, inputs)
    x = 0.3 * inputs["W1[0]"] - 1.2 * inputs["W1[1]"] + inputs["b1[0]"]
    for layer in (2, 3):
        shifted = inputs[f"W{layer}"] + float(mean[layer - 1])
        power = float(a[layer - 1].constant or 0)
        x = width**-power * (shifted @ np.tanh(x) + inputs[f"b{layer}[0]"])
    for k in range(2):
        wanted = (inputs[f"W4[{k}]"] @ np.tanh(x) + inputs[f"b4[{k}]"]) / width
        assert found[f"f[{k}]"] == pytest.approx(wanted, rel=1e-12)
    groups = {group.name: group.mean for group in template.groups}
    assert groups["W4"] == (3, 3)
    assert not any(groups["W1"]) and not any(groups["b2"])


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["lazy", pytest.param("dense", marks=pytest.mark.torch)])
def test_the_output_of_a_network_with_means(backend: str) -> None:
    """At t = 0, relu, all u = 1: the constant E relu(N(0, |x|^2)) in every layer and at the end."""
    if backend == "dense":
        pytest.importorskip("torch")
    program = tp.train(tp.MLP(3, "relu"), "ip-non-centered", DATA, steps=0)
    (row,) = [
        r for r in tp.simulate(program, [4096], seeds=6, backend=backend).rows if r.name[0] == "f"
    ]
    assert np.mean(row.values) == pytest.approx(np.sqrt(0.45 / (2 * np.pi)), abs=0.02)


@pytest.mark.parametrize("mean", [(0, 1), (1, 1, 1), (0, 1, 1, 1)])
def test_means_that_do_not_fit(mean: tuple[int, ...]) -> None:
    own = table(lookup("naive-ip").exponents(2).a, mean)
    with pytest.raises(StudyError, match="the first one centred"):
        template_of(tp.MLP(2), own, 2, 1)
    with pytest.raises(StudyError, match="MLP: the means of the initial weights are"):
        tp.train(tp.MLP(2), own, DATA)
    with pytest.raises(StudyError, match="Give 0 for the first layer and one mean for each"):
        tp.kernel(tp.MLP(2), [[1.0, 2.0]], parameterization=own)


def test_a_network_with_a_symbolic_power_is_written_but_not_run() -> None:
    program = tp.train(tp.MLP(2, "relu^p"), "ip:c", DATA, steps=1, watch=("dW_x",))
    powers = {s for node in program.nodes if isinstance(node, Scale) for s in node.n_power.symbols}
    assert powers == {"c"}
    assert "relu_pow[-1 + p]" in str(program) and len(program.digest) == 64
    for backend in ("lazy", "dense"):
        if backend == "dense":
            pytest.importorskip("torch")
        with pytest.raises(ScaleError, match="has no values"):
            tp.simulate(program, [8], seeds=1, backend=backend, values={"c": Fraction(0)})


def test_symbolic_exponents_stay_in_the_means_part() -> None:
    a = Ex.symbol("a")
    template = template_of(tp.MLP(2), table((as_ex(0), a, as_ex(1)), (0, 1, 0)), 1, 1).program
    powers = {node.n_power for node in template.nodes if isinstance(node, Scale)}
    assert powers == {-a, 1 - a}
