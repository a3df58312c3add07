"""Generic data: for questions whose answer depends on the data only through what is exactly 0."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from tpcalc.errors import StudyError
from tpcalc.results import Samples
from tpcalc.training.loss import Loss
from tpcalc.training.losses import lookup as find_loss
from tpcalc.training.training import Training

# Acute angles and targets of one sign: no gate of a rectifier closes, no expectation is nearly 0.
INPUTS = (
    (1.1, 0.5, 0.6, -0.1),
    (0.6, 0.9, 0.1, 0.5),
    (0.9, -0.2, 0.7, 0.6),
    (0.4, 0.7, 0.9, 0.3),
    (1.0, 0.3, -0.1, 0.7),
)
FEATURES = len(INPUTS[0])  # of a token
TARGETS = (1.0, 0.7, 1.3, 0.6, 1.1)
TURN = 0.13
LENGTHS = (1.0, 0.6, 1.4, 0.8)
QUERY = (0.5, 0.3, 0.2, 0.4)
CANDIDATES = 64


def generic(loss: str | Loss, rows: int, tokens: int = 1, outputs: int = 1) -> Samples:
    """Data without accidents, with targets that fit the loss: exponents do not depend on them.

    Example:
        >>> generic("logistic", 2).targets
        ((1.0,), (1.0,))
    """
    inputs = _inputs(rows, tokens)
    numbers = tuple((TARGETS[row % len(TARGETS)],) * outputs for row in range(rows))
    signs = tuple((1.0,) * outputs for _ in range(rows))
    classes = tuple((1.0, 0.0) if row % 2 else (0.0, 1.0) for row in range(rows))
    chosen = find_loss(loss)
    for targets in (numbers, signs):
        with suppress(StudyError):
            chosen.check(Samples(inputs, targets))
            return Samples(inputs, targets)
    return Samples(inputs, classes)


def generic_data(run: Training) -> Samples:
    """The data of a training run; where it has none, generic ones for all its steps."""
    if run.data is not None:
        return run.data
    rows, network = (run.steps + 1) * run.batch, run.network
    return generic(run.loss, rows, network.tokens, network.targets(FEATURES))


def same_targets(data: Samples, rows: int, tokens: int = 1) -> Samples:
    """Data without accidents, with the targets of other data, one after the other.

    Example:
        >>> same_targets(Samples(((1.0,),), ((2.0,),)), 2).targets
        ((2.0,), (2.0,))
    """
    targets = tuple(data.targets[row % len(data)] for row in range(rows))
    return Samples(_inputs(rows, tokens), targets)


def uneven(tokens: int, row: int = 0) -> tuple[float, ...]:
    """An input whose tokens have different lengths and angles, so that what they share is little.

    Example:
        >>> uneven(1), uneven(2)[4:]
        ((1.1, 0.5, 0.6, -0.1), (0.36, 0.54, 0.06, 0.3))
    """
    places = range(row, row + tokens)
    scaled = ((LENGTHS[p % len(LENGTHS)], INPUTS[p % len(INPUTS)]) for p in places)
    return tuple(round(length * x, 6) for length, token in scaled for x in token)


def query(tokens: int = 1) -> tuple[float, ...]:
    """An input at moderate angles to all generic ones, so that coefficients are not small.

    It is the same however many samples are used, so that a longer run asks its questions at the
    input of a shorter one.
    """
    return tuple(x for token in range(tokens) for x in _token(QUERY, INPUTS, token))


def _inputs(rows: int, tokens: int) -> tuple[tuple[float, ...], ...]:
    found = []
    for row in range(rows):
        others = (*INPUTS[row % len(INPUTS) :], *INPUTS)
        found.append(tuple(x for p in range(tokens) for x in _token(others[0], others, p)))
    return tuple(found)


def _token(
    first: tuple[float, ...], others: Sequence[tuple[float, ...]], token: int
) -> tuple[float, ...]:
    """The tokens of an input turn away from the first one: none are collinear."""
    other = others[1 + token % (len(INPUTS) - 1)]
    return tuple(round(x + TURN * token * y, 6) for x, y in zip(first, other, strict=True))


def far_query(data: Samples) -> tuple[float, ...]:
    """An input at acute angles to all samples, if there is one, and collinear to none.

    Example:
        >>> len(far_query(generic("mse", 3)))
        4
    """
    rows = np.asarray(data.inputs, dtype=float)
    rows = rows[np.linalg.norm(rows, axis=1) > 0]
    drawn = np.random.default_rng(0).standard_normal((CANDIDATES, data.dimension))
    candidates = np.round(np.concatenate([drawn, np.abs(drawn)]), 2)
    if not len(rows):
        return tuple(float(entry) for entry in candidates[0])
    lengths = np.linalg.norm(candidates, axis=1)[:, None] * np.linalg.norm(rows, axis=1)
    cosines = candidates @ rows.T / np.maximum(lengths, 1e-12)
    apart = np.all(np.abs(cosines) < 0.95, axis=1)
    worst = np.min(cosines, axis=1)
    worth = np.where(worst > 0, 1 + worst, np.min(np.abs(cosines), axis=1))
    return tuple(float(entry) for entry in candidates[int(np.argmax(worth + 2 * apart))])
