"""Random training runs, written out as programs by ``tp.train``."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import tpcalc as tp

__all__ = ["TRAININGS", "training"]

TRAININGS = ("mlp", "mlp-norm", "resnet", "recurrent")
# fmt: off
ACTS = (
    "relu", "tanh", "erf", "gelu", "swish", "sigmoid", "softplus", "elu", "abs", "sin", "cos",
    "identity", "selu", "gaussian", "leaky_relu:0.2", "relu^2", "step", "normal_cdf",
)
NAMES = (
    "mup", "ntk", "standard", "ip-llr", "ip:0", "hpz", "hp", "naive-ip", "ip-non-centered",
    "ip-bias",
)
# fmt: on


def training(family: str, seed: int) -> tp.Program:
    """One to three steps of a random network."""
    r = Random(f"{family} {seed}")
    act = r.choice(ACTS)
    loss = r.choice(("mse", "mse", "linear", "logistic"))
    if family == "recurrent":
        tokens = r.randint(2, 3)
        net: object = tp.RNN(tokens, act, weight_variance=r.choice((1, 2)))
        layers, dimension = 3, 2 * tokens
    elif family == "resnet":
        depth, dimension = r.randint(1, 2), 2
        variance = r.choice((None, Fraction(1, 2)))
        layer = r.choice(("none", "none", "layer"))
        net = tp.ResNet(depth, act, bias_variance=variance, norm=layer)
        layers = depth + 2
    else:
        depth, dimension = r.randint(1, 4 if family == "mlp" else 2), 2
        layer = "layer" if family == "mlp-norm" else "none"
        bias = r.choice(("none", "none", "first", "all"))
        net, layers = tp.MLP(depth, act, bias=bias, norm=layer), depth + 1
    rows = r.randint(1, 2)
    data = tp.Samples(
        tuple(tuple(r.choice((-1.0, 0.5, 1.5)) for _ in range(dimension)) for _ in range(rows)),
        tuple((r.choice((-1.0, 1.0)),) for _ in range(rows)),
    )
    return tp.train(
        net,
        _parameterization(r, layers),
        data,
        steps=r.choice((1, 1, 2) if layers > 3 else (1, 1, 2, 2, 3)),
        lr=Fraction(r.choice((1, 2)), 2),
        loss=loss,
        batch=r.randint(1, rows),
        watch=tuple(r.sample(("h", "x", "dh", "dx", "dW_x"), 2)),
    )


def _parameterization(r: Random, layers: int) -> str:
    if r.random() < 0.6:
        return r.choice(NAMES)
    a = [Fraction(0)] + [Fraction(r.choice((2, 2, 3, 4)), 4) for _ in range(layers - 2)]
    a.append(Fraction(r.choice((2, 3, 4, 4)), 4))
    c = [Fraction(r.choice((-8, -4, -4, -2, -1, 0, 0, 2)), 4) for _ in range(layers)]
    return f"ac:{','.join(map(str, a))};{','.join(map(str, c))}"
