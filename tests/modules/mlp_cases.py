"""Recipes of multilayer perceptrons, 16 -> n -> n -> n -> outputs, with ReLU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

from torch.optim import SGD, Adafactor, Adam, AdamW, Muon, Optimizer
from torch_optimizers import Signs

from modules.case import NEVER, Case, Optimizers, Power, clip, rates
from modules.optimizers import Factored
from modules.parametrized import IN, MLP
from modules.rows import floats

MATRICES = ("inp.weight", "h1.weight", "h2.weight", "out.weight")
BIASES = ("inp.bias", "h1.bias", "h2.bias", "out.bias")
ONE, NTK = (0, 0, 0, 0), (0, 0.5, 0.5, 0.5)
SP = NTK  # as inits
ADAM, SGD_RATES, HALF = (0, 1, 1, 1), (-1, 0, 0, 1), (-0.5, -0.5, -0.5, -0.5)


def by_layer(
    kind: Callable[..., Optimizer], c: Sequence[float], biases: Sequence[float] = (), **how: Any
) -> Callable[[MLP, int], Optimizer]:
    """An optimizer with a rate for each matrix, and for each bias."""

    def optimizer(model: MLP, n: int) -> Optimizer:
        parameters = chain(model.matrices(), model.biases())
        return kind(rates(parameters, n, (*c, *biases)), **how)

    return optimizer


def muon_and_adam(
    adjust: str,
    c: Sequence[float] = (0, 0, 0, 1),
    biases: Sequence[float] = (),
    whole: bool = False,
) -> Callable[[MLP, int], list[Optimizer]]:
    """Muon on the matrices between widths, or on all, and Adam on the others."""

    def optimizer(model: MLP, n: int) -> list[Optimizer]:
        groups = rates(model.matrices(), n, c)
        inner, outer = (groups, []) if whole else (groups[1:3], [groups[0], groups[3]])
        outer += rates(model.biases(), n, biases)
        made: list[Optimizer] = [Muon(inner, weight_decay=0.0, adjust_lr_fn=adjust)]
        return [*made, Adam(outer)] if outer else made

    return optimizer


def mlp(
    name: str, optimizer: Callable[[MLP, int], Optimizers], verdict: str,
    update: Sequence[Power], output: Sequence[Power], also: tuple[Power, Power] | None = None,
    later: Sequence[Power] = (), before_step: Any = None, text: str = "", **network: Any,
) -> Case:  # fmt: skip
    """A case, its exponents in the order of matrices and biases."""
    names = (MATRICES + BIASES)[: len(update)]
    return Case(
        name, partial(MLP, **network), (floats(8, IN),), optimizer=optimizer, verdict=verdict,
        update=dict(zip(names, update, strict=True)),
        output=dict(zip(names, output, strict=True)),
        later=dict(zip(names, later, strict=bool(later))),
        also=dict(zip(("f", "df"), also, strict=True)) if also else {},
        before_step=before_step, text=text,
    )  # fmt: skip


def maximal(name: str, optimizer: Any, verdict: str = "maximal", **more: Any) -> Case:
    """A case of muP in which all is of order one."""
    zeros = (0, 0, 0, 0)
    return mlp(name, optimizer, verdict, zeros, zeros, **({"also": (-0.5, 0)} | more))


MLPS = (
    mlp("1", by_layer(SGD, ONE), "explodes at step 1; input layer lazy",
        (-0.5, 0.5, 0.5, 1), (0, 1, 1, 1), b=SP, also=(0, 1)),
    mlp("2", by_layer(SGD, (1, 1, 1, 1)), "kernel: f moves, no feature moves",
        (-1.5, -0.5, -0.5, 0), (-1, 0, 0, 0), b=SP, also=(0, 0)),
    maximal("3", by_layer(SGD, SGD_RATES)),
    mlp("4", by_layer(SGD, (0, 0, 0, 0)), "maximal, equivalent to 3", (-0.5, 0, 0, 0.5),
        (0, 0, 0, 0), a=(-0.5, 0, 0, 0.5), b=(0.5, 0.5, 0.5, 0.5), also=(-0.5, 0)),
    mlp("5", by_layer(SGD, ONE), "kernel", (-0.5, 0, 0, 0.5), (0, 0, 0, 0), a=NTK, b=ONE,
        also=(0, 0)),
    mlp("6", by_layer(SGD, (-1, -2, -2, -1)), "trivial start", (-1, 0.5, 0, -1),
        (-2, -1, -1, -2), a=(0, 1, 1, 1), b=ONE, also=(-1.5, -1)),
    mlp("7", by_layer(Adam, ONE), "explodes", (0, 1, 1, 1), (0.5, 1.5, 1.5, 1), b=SP,
        also=(0, 1.5)),
    mlp("8", by_layer(Adam, (1, 1, 1, 1)), "output explodes (readout b), input lazy",
        (-1, 0, 0, 0), (-0.5, 0.5, 0.5, 0), b=SP, also=(0, 0.5)),
    mlp("9", by_layer(Adam, ADAM), "output explodes through W_out Δx: readout b = 1/2",
        (0, 0, 0, 0), (0.5, 0.5, 0.5, 0), b=SP, also=(0, 0.5)),
    maximal("10", by_layer(Adam, ADAM)),
    mlp("11", by_layer(Adam, (0, 1, 1, 0)), "maximal, equivalent to 10", (0, 0, 0, 1),
        (0, 0, 0, 0), a=(0, 0, 0, 1), b=(0, 0.5, 0.5, 0), also=(-0.5, 0)),
    mlp("12", by_layer(Adam, (0, 0.5, 0.5, 0)), "maximal, equivalent to 10", (0, 0.5, 0.5, 1),
        (0, 0, 0, 0), a=(0, 0.5, 0.5, 1), b=ONE, also=(-0.5, 0)),
    mlp("13", by_layer(Adam, (0, 0, 0, 1)), "hidden updates explode", (0, 1, 1, 0), (0, 1, 1, 0),
        also=(-0.5, 1)),
    mlp("14", by_layer(Adam, ADAM), "df explodes; all u are fine", (0, 0, 0, 0),
        (0.5, 0.5, 0.5, 0), b=SP, also=(0, 0.5)),
    mlp("15", by_layer(Adam, (0, 1, 1, 0)), "readout update explodes", (0, 0, 0, 1),
        (0.5, 0.5, 0.5, 0.5), a=(0, 0, 0, 0.5), b=(0, 0.5, 0.5, 0), also=(0, 0.5)),
    mlp("16", by_layer(Adam, ADAM), "output vanishes", (0, 0, 0, 0), (-1, -1, -1, -1),
        a=(0, 0, 0, 1), also=(-1.5, -1)),
    mlp("17", by_layer(Adam, (1, 1, 1, 1)), "input layer frozen; f looks perfect", (-1, 0, 0, 0),
        (-1, 0, 0, 0), also=(-0.5, 0)),
    mlp("18", by_layer(Adam, ADAM, eps=1e-2), "vanishing updates, crossover inside the range",
        ((-1, 0), (-1, 0), (-1, 0), 0), ((-1, 0), (-1, 0), (-1, 0), 0), also=(-0.5, (-1, 0))),
    maximal("19", by_layer(Signs, ADAM), text="signsgd"),
    maximal("20", muon_and_adam("original", (0, 0, 0, 0.5), whole=True), "maximal with c = 0"),
    mlp("21", muon_and_adam("original", (0.5, 0, 0, 0), whole=True),
        "input lazy, readout explodes", (-0.5, 0, 0, 0.5), (-0.5, 0, 0, 0.5), also=(-0.5, 0.5)),
    maximal("22", by_layer(Factored, ADAM),
            text="optimizer factored()\nw = w - lr g / sqrt(factored(g^2))"),
    maximal("23", by_layer(AdamW, ADAM, weight_decay=0.1), "updates maximal; decay vanishes"),
    mlp("44 adam", by_layer(Adam, ADAM), "maximal, starts at step 2", (NEVER, NEVER, NEVER, 0),
        (NEVER, NEVER, NEVER, 0), zero=True, later=(0, 0, 0, 0)),
    mlp("44 sgd", by_layer(SGD, SGD_RATES), "maximal, starts at step 2",
        (NEVER, NEVER, NEVER, 0), (NEVER, NEVER, NEVER, 0), zero=True, later=(0, 0, 0, 0)),
    mlp("50", by_layer(SGD, SGD_RATES), "updates vanish: clipping by the readout's norm",
        HALF, HALF, before_step=clip),
    maximal("51", by_layer(Adam, ADAM), before_step=clip),
    maximal("52", by_layer(SGD, SGD_RATES, momentum=0.9, nesterov=True)),
    maximal("53 original", muon_and_adam("original")),
    mlp("53 match_rms", muon_and_adam("match_rms_adamw"), "hidden updates explode",
        (0, 0.5, 0.5, 0), (0, 0.5, 0.5, 0)),
    mlp("54", by_layer(Adafactor, ADAM, eps=(None, 1e-9)), "hidden updates and readout vanish",
        (0, -0.5, -0.5, -1), (0, -0.5, -0.5, -1)),
)  # fmt: skip

# With a bias in every layer and one output; rates of hidden biases as of vectors.
ZEROS, HALF8 = (0,) * 8, (-0.5,) * 8
SP_BIASES, SGD_BIASES = (0, 0.5, 0.5, 0.5), (-1, -1, -1, 0)
with_biases = partial(mlp, biases=ONE, outputs=1)
BIASED = (
    with_biases("O8", muon_and_adam("original", biases=ONE), "feature learning", ZEROS, ZEROS),
    with_biases("O9", muon_and_adam("original", (0, 0, 0, 0.5), ONE, whole=True),
        "feature learning", ZEROS, ZEROS),
    with_biases("O19", muon_and_adam("original", ONE, ONE), "unstable: the readout",
        (0, 0, 0, 1, 0, 0, 0, 0), (0.5, 0.5, 0.5, 1, 0.5, 0.5, 0.5, 0), b=SP, biases=SP_BIASES,
        also=(0, 1)),
    with_biases("O20", muon_and_adam("original", (1, 1, 1, 1), (1, 1, 1, 1)),
        "only the readout learns", (-1, -1, -1, 0, -1, -1, -1, -1),
        (-0.5, -0.5, -0.5, 0, -0.5, -0.5, -0.5, -1), b=SP, biases=SP_BIASES, also=(0, 0)),
    with_biases("O27", by_layer(SGD, SGD_RATES, SGD_BIASES), "updates vanish", HALF8, HALF8,
        before_step=clip),
    with_biases("O28", by_layer(Adam, ADAM, ONE), "feature learning", ZEROS, ZEROS,
        before_step=clip),
    with_biases("O33", muon_and_adam("original", ONE, ONE, whole=True), "unstable: the readout",
        (0, 0, 0, 0.5, 0, 0, 0, 0), (0, 0, 0, 0.5, 0, 0, 0, 0), also=(-0.5, 0.5)),
    with_biases("O34", muon_and_adam("match_rms_adamw", ONE, ONE, whole=True),
        "unstable: the readout", (0, 0.5, 0.5, 1, 0, 0, 0, 0), (0, 0.5, 0.5, 1, 0, 0, 0, 0),
        also=(-0.5, 1)),
    with_biases("O35", muon_and_adam("original", (0.5, 0, 0, 0), ONE, whole=True),
        "unstable: the readout", (-0.5, 0, 0, 0.5, 0, 0, 0, 0), (-0.5, 0, 0, 0.5, 0, 0, 0, 0),
        also=(-0.5, 0.5)),
)  # fmt: skip
