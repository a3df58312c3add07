"""The table of the corpus: for each family its runs, each made through public calls alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import tpcalc as tp
from tests.corpus.networks import REGIMES, STRUCTURES
from tests.corpus.programs import REFUSED, RULES
from tests.fuzz.programs import ASSUMED, NETWORKS, build

__all__ = ["FAMILIES", "Run"]

SEED = 0
AT = {"a": Fraction(3, 4)}
POINTS = ((1.0, 0.5), (-0.25, 0.75), (0.5, -1.0))
SEQUENCES = ((1.0, 0.5, -0.5, 0.75), (-0.25, 0.75, 0.5, 1.0), (0.5, -1.0, 0.25, 0.5))


@dataclass(frozen=True)
class Run:
    """A program, or a kernel, with what is asked of it.

    Args:
        program: Makes the program; None where a kernel is all there is.
        orders: Options of ``tp.orders``.
        limit: Options of ``tp.limit`` besides the seed.
        kernel: Makes the kernel at a seed.
    """

    program: Callable[[], tp.Program] | None = None
    orders: Mapping[str, Any] = field(default_factory=dict)
    limit: Mapping[str, Any] = field(default_factory=dict)
    kernel: Callable[[int], tp.Kernel] | None = None


# What is asked of single runs besides the rest.
ORDERS: dict[str, Mapping[str, Any]] = {"symbolic": {"at": AT}}
LIMITS: dict[str, Mapping[str, Any]] = {
    "adam-step": {"samples": 2**9},
    "correlated": {"samples": 2**9},
    "outer": {"samples": 2**9},
    "sign-step": {"samples": 2**9},
    "symbolic": {"values": AT},
}


def _programs(table: Mapping[str, Callable[[], tp.Program]]) -> dict[str, Run]:
    return {
        name: Run(make, ORDERS.get(name, {}), {"samples": 2**12, **LIMITS.get(name, {})})
        for name, make in table.items()
    }


def _network(net: Any, inputs: Any = POINTS, **options: Any) -> Run:
    return Run(kernel=lambda seed: tp.kernel(net, inputs, seed=seed, **options))


@tp.program
def two_inputs(t: tp.Tracer) -> None:
    """A network with one matrix in two layers, at two inputs."""
    a, b = t.gaussians(["a", "b"], cov=[[1, Fraction(1, 2)], [Fraction(1, 2), 1]])
    matrix, v = t.matrix("W"), t.gaussian("v")
    for name, x in (("a", a), ("b", b)):
        for _ in range(2):
            x = tp.n**-0.5 * (matrix @ tp.erf(x))
        t.output(f"f[{name}]", tp.n**0.5 * t.inner(v, tp.relu(x)))


@tp.program
def with_scalars(t: tp.Tracer) -> None:
    """Outputs that are products of a trained number and of averages."""
    a, b = t.gaussians(["a", "b"], cov=[[1, Fraction(1, 2)], [Fraction(1, 2), 1]])
    c, matrix = t.random_scalar("c", std=2), t.matrix("W")
    for name, x in (("a", a), ("b", b)):
        h = tp.n**-0.5 * (matrix @ tp.relu(x))
        scaled = c * t.inner(h, h)
        t.output(f"f[{name}]", scaled * tp.mean(tp.relu(h)))


KERNELS = {
    "mlp-relu": _network(tp.MLP(3, "relu", weight_variance=2)),
    "mlp-erf-biases": _network(tp.MLP(2, "erf", bias="all")),
    "mlp-tanh": _network(tp.MLP(2, "tanh")),
    "mlp-gelu-one-layer-trained": _network(tp.MLP(2, "gelu"), layers=[2]),
    "mlp-standard": _network(tp.MLP(2, "relu"), parameterization="standard:1"),
    "mlp-norm": _network(tp.MLP(2, "relu", norm="layer")),
    "resnet-relu": _network(tp.ResNet(3, "relu")),
    "rnn-erf-all": _network(tp.RNN(2, "erf", outputs="all"), SEQUENCES),
    "of-a-program": Run(
        two_inputs.build, {}, {}, lambda seed: tp.kernel(two_inputs, trained=["W", "v"], seed=seed)
    ),
    "with-scalars": Run(
        with_scalars.build, {}, {}, lambda seed: tp.kernel(with_scalars, trained=["c"], seed=seed)
    ),
}

# Random programs: the draws of a family at a seed stay as they are.
SEEDS = (0, 1)
RANDOM = {
    f"{family}-{seed}": partial(build, family, seed)
    for family in (*NETWORKS, *ASSUMED)
    for seed in SEEDS
}

FAMILIES: dict[str, dict[str, Run]] = {
    "kernels": KERNELS,
    "random": _programs(RANDOM),
    "refused": _programs(REFUSED),
    "regimes": _programs(REGIMES),
    "rules": _programs(RULES),
    "structures": _programs(STRUCTURES),
}
