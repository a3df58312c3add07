"""Answers that rest on which terms cancel: normalised networks in the kernel regime, and ELU.

Truths: the linear dynamics of the tangent kernel, which ``tp.kernel`` has by another way, and
networks of finite width.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from agree import agree
from oracles.seed0_data import XI0, XI1

import tpcalc as tp
from tpcalc.results import Estimate, Method

TARGETS = np.array([1.0, -1.0])
DATA = tp.Samples((XI0, XI1), ((1.0,), (-1.0,)))
NETS = {
    "relu-2": tp.MLP(2, "relu", norm="layer"),
    "relu-3": tp.MLP(3, "relu", norm="layer", bias="first"),
    "relu-resnet": tp.ResNet(2, "relu", norm="layer"),
    "gelu-resnet": tp.ResNet(2, "gelu", norm="layer"),
}


def by_kernel(
    net: tp.MLP | tp.ResNet, parameterization: str, loss: str, batch: int, steps: int
) -> list[np.ndarray]:
    """Means and standard deviations of the outputs at both samples, after each step.

    f_t = A_t f_0 + b_t, where f_0 is Gaussian with the covariance NNGP.
    """
    found = tp.kernel(net, [XI0, XI1], parameterization=parameterization, scale=1)
    assert found.ntk is not None
    a, b = np.eye(2), np.zeros(2)
    rows = []
    for step in range(steps + 1):
        rows.append(np.array([b, np.sqrt(np.diag(a @ found.nngp @ a.T))]))
        used = [step % 2] if batch == 1 else [0, 1]
        pull, gap = (a, b - TARGETS) if loss == "mse" else (0 * a, -np.ones(2))
        a = a - found.ntk[:, used] @ pull[used] / batch
        b = b - found.ntk[:, used] @ gap[used] / batch
    return rows


# Each pair of a network and a rule in one way of training; other ways are slow.
FIRST = {("ntk", "mse", 2), ("standard:1", "linear", 1)}
TRAINED = [
    pytest.param(name, *way, marks=[pytest.mark.slow] * (way not in FIRST))
    for name in NETS
    for way in product(("ntk", "standard:1"), ("mse", "linear"), (1, 2))
]


@pytest.mark.parametrize(("name", "parameterization", "loss", "batch"), TRAINED)
def test_layer_norm_in_the_kernel_regime(
    name: str, parameterization: str, loss: str, batch: int
) -> None:
    net = NETS[name]
    program = tp.train(net, parameterization, DATA, steps=2, loss=loss, batch=batch)
    found = tp.limit(program, outputs=["f*"])
    assert not found.table.uncovered
    for step, (means, spreads) in enumerate(by_kernel(net, parameterization, loss, batch, 2)):
        for place, sample in enumerate([step % 2] if batch == 1 else [0, 1]):
            output = found[f"f[{step},{place}]"]
            agree(output, Estimate(means[sample], 1e-9, Method.QUADRATURE))
            spread = Estimate(output.std, output.std_error, output.method)
            agree(spread, Estimate(spreads[sample], 1e-9, Method.QUADRATURE))


def values(program: tp.Program, name: str, width: int, seeds: int) -> np.ndarray:
    """An output, or the mean square of a vector, of networks of a width."""
    table = tp.simulate(program, [width], seeds, seed=11, threads=1)
    kinds = ("value", "second_moment")
    return np.array(
        next(r.values for r in table.rows if r.name == name and r.statistic in kinds), dtype=float
    )


def of(sample: np.ndarray, power: float = 1.0) -> Estimate:
    """The mean of a sample times a power of the width."""
    error = sample.std(ddof=1) / len(sample) ** 0.5
    return Estimate(float(sample.mean() * power), float(error * power), Method.PARTICLES)


@pytest.mark.parametrize(
    ("name", "parameterization", "loss", "steps"),
    [("relu-2", "standard:1", "mse", 2), ("gelu-resnet", "ntk", "linear", 1)],
    ids=["relu", "gelu"],
)
def test_layer_norm_beside_networks(
    name: str, parameterization: str, loss: str, steps: int
) -> None:
    program = tp.train(NETS[name], parameterization, DATA, steps=steps, loss=loss)
    output = f"f[{steps},0]"
    found = tp.limit(program, outputs=[output])[output]
    networks = values(program, output, 16384, 64)
    agree(of(networks), found.value)
    assert networks.std(ddof=1) == pytest.approx(found.std, rel=0.3)


def constant_rates(act: str) -> tuple[tp.MLP, str]:
    """Three layers with the rates of the first step of IP-LLR."""
    rates = "-2,-5/2,-5/2,-2"
    return tp.MLP(3, act), f"ip:{rates}"


@pytest.mark.parametrize(
    ("act", "output", "power", "batch"),
    [
        ("elu", "x[3,1,0]", 1, 1),
        pytest.param("gelu", "dh[1,1,0]", 3, 2, marks=pytest.mark.slow),
    ],
)
def test_what_vanishes_beside_networks(act: str, output: str, power: int, batch: int) -> None:
    """Mean squares of vectors that vanish, of averages that fluctuate and of their products."""
    net, parameterization = constant_rates(act)
    program = tp.train(net, parameterization, DATA, loss="linear", batch=batch)
    found = tp.limit(program, outputs=[output])
    (row,) = found.table.vectors
    assert row.n_power.constant == Fraction(-power, 2)
    agree(found[output].second_moment, of(values(program, output, 65536, 48), 65536.0**power))
