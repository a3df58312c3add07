"""The settings of training runs whose limits are asked for, as grids."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import tpcalc as tp
from tpcalc.results import Samples
from tpcalc.training.parameterizations import lookup

__all__ = ["ACTS", "Cell", "cells"]

ACTS = ("relu", "gelu", "tanh", "elu", "erf", "relu^2")
CONSTANT = "ip:gamma"  # the rates of the first step of ip-llr at every step
PARAMS = (
    "ip-llr", "naive-ip", "ip-bias", "ip-non-centered", "mup", "ntk", "ip:-1", CONSTANT, "standard",
)  # fmt: skip
NORM_PARAMS = ("mup", "ntk", "standard:1")
DATA = ("one", "turn", "fresh", "batch")
ROWS = (
    (1.0, 0.5, -0.5, 0.25, 0.0, 1.0),
    (-0.5, 1.0, 0.75, 0.0, 0.5, -0.25),
    (0.25, -0.75, 1.0, 0.5, -1.0, 0.0),
    (0.0, 0.5, 0.25, -1.0, 0.75, 0.5),
    (0.75, 0.0, -0.25, 0.5, 0.5, 1.0),
)
SIGNS = ((1.0,), (-1.0,), (1.0,), (-1.0,), (1.0,))
CLASSES = ((1.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.0, 1.0), (1.0, 0.0))


@dataclass(frozen=True, slots=True)
class Cell:
    """A training run; ``data``: one sample repeated, two in turn, fresh ones, a batch of 2."""

    grid: str
    act: str
    param: str
    depth: int
    steps: int
    data: str
    bias: str
    loss: str

    def program(self) -> tp.Program:
        """The run as a program, with the outputs that ``tpcalc limit`` shows."""
        return tp.train(
            self.network(),
            self.parameterization(),
            self.samples(),
            steps=self.steps,
            loss=self.loss,
            batch=2 if self.data == "batch" else 1,
        )

    def network(self) -> tp.MLP | tp.ResNet:
        """Its network."""
        if self.grid == "layer norm, resnet":
            return tp.ResNet(self.depth, self.act, norm="layer")
        norm = "layer" if self.grid == "layer norm" else "none"
        return tp.MLP(self.depth, self.act, bias=self.bias, norm=norm)

    def parameterization(self) -> str:
        """Its exponents: those that are for a degree of homogeneity have that of the activation."""
        degree = 2 if self.act == "relu^2" else 1
        if self.param == "ip-llr":
            return f"ip-llr:{degree}"
        if self.param == CONSTANT:
            rates = lookup(f"ip-llr:{degree}").exponents(self.depth, 0).c
            return "ip:" + ",".join(map(str, rates))
        return self.param

    def samples(self) -> Samples:
        """Its data."""
        count = {"one": 1, "turn": 2, "fresh": self.steps + 1, "batch": 2}[self.data]
        targets = CLASSES if self.grid == "two outputs" else SIGNS
        return Samples(ROWS[:count], targets[:count])


def cells() -> tuple[Cell, ...]:
    """All cells."""
    one = [
        Cell("one output", act, *rest)
        for param in PARAMS
        for act in ACTS
        for rest in product(
            (param,), (2, 3, 5), (1, 2, 4), DATA, ("none", "first"), ("mse", "linear")
        )
    ]
    two = [
        Cell("two outputs", act, param, depth, steps, data, "none", loss)
        for param in PARAMS[:6]
        for act in ("relu", "gelu", "tanh", "elu")
        for depth, steps, data, loss in product((2, 3), (1, 2, 4), DATA, ("mse", "xent"))
    ]
    norm = [
        Cell("layer norm", act, *rest)
        for param in NORM_PARAMS
        for act in ("relu", "gelu", "tanh")
        for rest in product((param,), (2, 3), (1, 2, 4), DATA, ("none", "first"), ("mse", "linear"))
    ]
    resnet = [
        Cell("layer norm, resnet", act, param, 2, steps, "one", "none", loss)
        for param in NORM_PARAMS
        for act in ("relu", "gelu", "tanh")
        for steps, loss in product((1, 2), ("mse", "linear"))
    ]
    return (*resnet, *norm, *two, *one)
