"""What a loss is: its value and slope as expressions, and what they are of given targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import StudyError, UsageError
from tpcalc.functions import Expr, Fn, Par
from tpcalc.functions.expr import add
from tpcalc.functions.tape import evaluate
from tpcalc.networks.network import Architecture
from tpcalc.results import Samples
from tpcalc.sources import Source


def _any_targets(samples: Samples) -> None:
    """Targets of every kind are fine."""


@dataclass(frozen=True)
class Loss:
    """An entry of the catalogue: a loss of one sample.

    Example:
        >>> from tpcalc.training.losses import lookup
        >>> from tpcalc.functions import Par
        >>> [part.text for part in lookup("mse").chi([Par(0)], [Par(1)])]
        ['s0 + -1*s1']
    """

    name: str  # the name it is listed under
    # value(outputs, targets): the loss
    value: Callable[[Sequence[Expr], Sequence[Expr]], Expr] = field(repr=False)
    # chi(outputs, targets): its derivative by each output
    chi: Callable[[Sequence[Expr], Sequence[Expr]], tuple[Expr, ...]] = field(repr=False)
    text: str  # what it is, in one line
    source: Source  # where it is defined
    # check(samples) raises StudyError where the targets do not fit
    check: Callable[[Samples], None] = field(default=_any_targets, repr=False)
    aliases: tuple[str, ...] = ()  # other names


OverArrays = Callable[[Array, Array], Array]


def check_data(architecture: Architecture, data: Any, loss: Loss) -> None:
    """Whether targets fit the readouts of a network and the loss."""
    if not isinstance(data, Samples):
        raise no_samples(data)
    positions = architecture.positions
    if data.outputs % positions:
        raise StudyError(
            f"a sample has {data.outputs} targets, and the network is read off at {positions} "
            "tokens.",
            where=data.origin,
            hint="Give the targets of every token, token by token.",
        )
    for part in _parts(data.outputs, positions):
        loss.check(replace(data, targets=tuple(row[part] for row in data.targets)))


def no_samples(data: object) -> UsageError:
    """What is said where data are no samples."""
    return UsageError(
        f"the data are of type {type(data).__name__}, not Samples.",
        hint="Give tp.Samples(inputs, targets), tp.digits(...) or tp.csv(path).",
    )


def _parts(outputs: int, positions: int) -> list[slice]:
    """The outputs at each place of the readout."""
    size = outputs // positions
    return [slice(start, start + size) for start in range(0, outputs, size)]


def slopes(loss: Loss, outputs: int, positions: int = 1) -> tuple[Expr, ...]:
    """The derivatives of the loss, the sum over the places of the readout, by the outputs."""
    f = [Par(k) for k in range(outputs)]
    targets = [Par(outputs + k) for k in range(outputs)]
    slopes: list[Expr] = []
    for part in _parts(outputs, positions):
        slopes += loss.chi(f[part], targets[part])
    return tuple(slopes)


def slope_values(loss: Loss, outputs: int, positions: int = 1) -> OverArrays:
    """Derivative of a loss by its outputs, for arrays (samples, outputs) of them and targets."""
    return _over_arrays(slopes(loss, outputs, positions), outputs)


def loss_values(loss: Loss, outputs: int, positions: int = 1) -> OverArrays:
    """The same of the loss itself, an array (samples, 1).

    Example:
        >>> from tpcalc.training.losses import lookup
        >>> loss_values(lookup("mse"), 1)(np.array([[3.0]]), np.array([[1.0]])).tolist()
        [[2.0]]
    """
    f, targets = [Par(k) for k in range(outputs)], [Par(outputs + k) for k in range(outputs)]
    places = _parts(outputs, positions)
    return _over_arrays((add(loss.value(f[one], targets[one]) for one in places),), outputs)


def _over_arrays(parts: tuple[Expr, ...], outputs: int) -> OverArrays:
    fns = [Fn(expr, 0, 2 * outputs) for expr in parts]

    def values(f: Array, y: Array) -> Array:
        columns = [*np.transpose(f), *np.transpose(y)]
        found = [np.broadcast_to(evaluate(fn, [], columns), len(f)) for fn in fns]
        return np.stack(found, axis=1).astype(float)

    return values
