"""``train``: architecture, parameterization, data, loss and rates -> a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isfinite

from tpcalc.catalog.architectures.mlp import MLP
from tpcalc.catalog.losses import lookup as find_loss
from tpcalc.catalog.optimizers import lookup as find_optimizer
from tpcalc.catalog.parameterizations import Parameterization
from tpcalc.catalog.parameterizations import lookup as find_parameterization
from tpcalc.errors import StudyError
from tpcalc.functions import Par
from tpcalc.orders import Ex
from tpcalc.passes.unroll import Parameter, Schedule, unroll
from tpcalc.program.program import Program
from tpcalc.results import Samples

__all__ = ["train"]

Rate = float | Fraction | Callable[[int, int], float | Fraction]
NAMES = ("h", "x", "dh", "dx")


def train(
    architecture: MLP,
    parameterization: Parameterization | str,
    data: Samples,
    *,
    steps: int = 1,
    optimizer: str = "sgd",
    lr: Rate = Fraction(1),
    loss: str = "mse",
    batch: int = 1,
    queries: Sequence[Sequence[float]] = (),
    watch: Sequence[str] = NAMES,
) -> Program:
    """The program of ``steps`` training steps.

    Step t trains on rows t*batch, t*batch + 1, ... of the data, starting again at the end; the
    gradient is that of the mean loss over the batch.

    Args:
        architecture: The network.
        parameterization: A catalogue name or a parameterization: the exponents a_l and c_l(t).
        data: Inputs and targets.
        steps: Number of updates T; outputs are reported at t = 0..T.
        optimizer: Catalogue name; ``"sgd"``.
        lr: The factor eta of the learning rate eta n^(-c_l): a number, or a function of (layer,
            step) for rates per layer and step.
        loss: Catalogue name.
        batch: Samples in a step.
        queries: Inputs evaluated at every step without training on them.
        watch: Which vectors become outputs besides f: of ``h``, ``x``, ``dh``, ``dx``.

    Returns:
        A program with outputs ``f[t,i]``, ``h[l,t,i]``, ...; powers of n as the parameterization
        writes them.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UnknownName: No such parameterization, loss or optimizer.

    Source: Hajjar, Chizat, Giraud, Definitions 2.1 and 2.2.
    """
    find_optimizer(optimizer)
    found = (
        find_parameterization(parameterization)
        if isinstance(parameterization, str)
        else parameterization
    )
    chosen = find_loss(loss)
    chosen.check(data)
    _check(steps, batch, lr, data, queries, watch)
    depth = architecture.depth
    start = found.exponents(depth, 0)
    model = architecture.model(data.dimension, data.outputs, start.a, start.bias_a)
    rows = [[(t * batch + i) % len(data) for i in range(batch)] for t in range(steps + 1)]
    outputs = [Par(k) for k in range(data.outputs)]
    targets = [Par(data.outputs + k) for k in range(data.outputs)]

    def rate(parameter: Parameter, step: int) -> tuple[Fraction | float, Ex]:
        exponents = found.exponents(depth, step)
        table = exponents.bias_c if parameter.bias else exponents.c
        return _rate(lr, parameter.layer, step), table[parameter.layer - 1]

    schedule = Schedule(
        batches=tuple(tuple(data.inputs[row] for row in step) for step in rows),
        targets=tuple(tuple(data.targets[row] for row in step) for step in rows),
        queries=tuple(tuple(float(value) for value in query) for query in queries),
        chi=tuple(chosen.chi(outputs, targets)),
        rate=rate,
    )
    return unroll(model, schedule, keep=set(watch).__contains__)


def _rate(lr: Rate, layer: int, step: int) -> Fraction | float:
    value = lr(layer, step) if callable(lr) else lr
    if not isinstance(value, int | float | Fraction) or not isfinite(value):
        raise StudyError(f"the learning rate of layer {layer} at step {step} is {value!r}.")
    return Fraction(value) if isinstance(value, int) else value


def _check(
    steps: int,
    batch: int,
    lr: Rate,
    data: Samples,
    queries: Sequence[Sequence[float]],
    watch: Sequence[str],
) -> None:
    if steps < 0 or batch < 1:
        raise StudyError(
            f"steps={steps} and batch={batch}: steps counts updates (0 or more), a batch has at "
            "least one sample."
        )
    if not callable(lr) and not isfinite(lr):
        raise StudyError(f"the learning rate is {lr}.", hint="Give a finite number.")
    for index, query in enumerate(queries):
        if len(query) != data.dimension or not all(isfinite(value) for value in query):
            raise StudyError(
                f"query {index} has {len(query)} numbers, the data have {data.dimension} features "
                "(and every number must be finite).",
                where=data.origin,
            )
    unknown = set(watch) - set(NAMES)
    if unknown:
        raise StudyError(
            f"watch names {', '.join(sorted(unknown))}.", hint=f"It takes {', '.join(NAMES)}."
        )
