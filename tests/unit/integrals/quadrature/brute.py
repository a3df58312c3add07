"""Expectations by brute force, to judge quadrature: own functions, own grids, no adaptivity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit, ndtr

Array = NDArray[np.float64]
REACH = 14.0
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(16)
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


@dataclass(frozen=True)
class Known:
    """A function in numpy, and the points to grade a grid around."""

    values: Callable[[Array], Array]
    kinks: tuple[float, ...] = (0.0,)


def density(z: Array) -> Array:
    return np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0.0)))


KNOWN = {
    "relu": Known(lambda x: np.maximum(x, 0.0)),
    "abs": Known(np.abs),
    "step": Known(lambda x: (x > 0) * 1.0),
    "sign": Known(np.sign),
    "leaky_relu": Known(lambda x: np.where(x > 0, x, 0.01 * x)),
    "relu^1/2": Known(lambda x: np.sqrt(np.maximum(x, 0.0))),
    "relu^3/2": Known(lambda x: np.maximum(x, 0.0) ** 1.5),
    "relu^2": Known(lambda x: np.maximum(x, 0.0) ** 2),
    "relu^3": Known(lambda x: np.maximum(x, 0.0) ** 3),
    "elu": Known(_elu),
    "selu": Known(lambda x: SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * _elu(x))),
    "gelu": Known(lambda x: x * ndtr(x)),
    "erf": Known(erf),
    "sin": Known(np.sin),
    "cos": Known(np.cos),
    "exp": Known(np.exp),
    "softplus": Known(lambda x: np.logaddexp(0.0, x)),
    "swish": Known(lambda x: x * expit(x)),
    "sigmoid": Known(expit),
    "tanh": Known(np.tanh),
    "normal_pdf": Known(density),
    "normal_cdf": Known(ndtr),
}
SLOPES = {
    "relu": Known(lambda x: (x > 0) * 1.0),
    "abs": Known(np.sign),
    "leaky_relu": Known(lambda x: np.where(x > 0, 1.0, 0.01)),
    "relu^3/2": Known(lambda x: 1.5 * np.sqrt(np.maximum(x, 0.0))),
    "relu^2": Known(lambda x: 2.0 * np.maximum(x, 0.0)),
    "elu": Known(lambda x: np.exp(np.minimum(x, 0.0))),
    "gelu": Known(lambda x: ndtr(x) + x * density(x)),
    "erf": Known(lambda x: 2.0 / np.sqrt(np.pi) * np.exp(-x * x)),
    "sin": Known(np.cos),
    "softplus": Known(expit),
    "swish": Known(lambda x: expit(x) * (1.0 + x * expit(-x))),
    "tanh": Known(lambda x: np.cosh(np.clip(x, -300, 300)) ** -2.0),
    "sigmoid": Known(lambda x: expit(x) * expit(-x)),
}


def grid(centres: Sequence[float]) -> tuple[NDArray[np.intp], Array, Array]:
    """Offsets from the nearest centre, halved towards it 52 times, with weights."""
    order = np.argsort(centres, kind="stable")
    places = np.asarray(centres)[order]
    middle = 0.5 * (places[1:] + places[:-1])
    below = np.concatenate([[-REACH], middle])
    above = np.concatenate([middle, [REACH]])
    owner, offsets, weights = [], [], []
    for k, place in enumerate(places):
        for sign, length in ((1.0, above[k] - place), (-1.0, place - below[k])):
            if length <= 0:
                continue
            ends = np.concatenate([[0.0], length * 2.0 ** np.arange(-52.0, 1.0)])
            even = np.arange(0.0, length, 0.7)
            ends = np.unique(np.concatenate([ends, even]))
            half = 0.5 * np.diff(ends)
            points = (ends[:-1] + half)[:, None] + half[:, None] * POINTS
            owner.append(np.full(points.size, order[k]))
            offsets.append(sign * points.ravel())
            weights.append((half[:, None] * WEIGHTS).ravel())
    return np.concatenate(owner), np.concatenate(offsets), np.concatenate(weights)


def two(
    first: Known, second: Known, mean: Sequence[float], plane: tuple[float, float, float, float]
) -> float:
    """E f(u) g(v), for (standard deviations, rho, sqrt(1 - rho^2))."""
    su, sv, rho, kappa = plane
    centres, values = [], []
    for k in first.kinks:
        centres.append((k - mean[0]) / su)
        values.append(k)
    for k in second.kinks:
        if rho:
            z = (k - mean[1]) / (sv * rho)
            centres.append(z)
            values.append(mean[0] + su * z)
    seen = [i for i, z in enumerate(centres) if abs(z) < 13.0]
    places = np.asarray([centres[i] for i in seen] or [0.0])
    base = np.asarray([values[i] for i in seen] or [mean[0]])
    owner, offset, weight = grid(places.tolist())
    z = places[owner] + offset
    front = first.values(base[owner] + su * offset) * density(z) * weight
    z, front = z[front != 0.0], front[front != 0.0]
    centre, width = mean[1] + sv * rho * z, sv * kappa
    far = np.ones(len(z), dtype=bool)
    total = 0.0
    for row in range(len(z)):
        turns = [(k - centre[row]) / width for k in second.kinks]
        if any(abs(w) < 13.0 for w in turns):
            far[row] = False
            kept = [(w, k) for w, k in zip(turns, second.kinks, strict=True) if abs(w) < 13.0]
            own, moved, share = grid([w for w, _ in kept])
            w = np.asarray([w for w, _ in kept])[own] + moved
            x = np.asarray([k for _, k in kept])[own] + width * moved
            total += front[row] * float((second.values(x) * density(w) * share).sum())
    _, moved, share = grid([0.0])
    bell = density(moved) * share
    for start in range(0, len(z), 256):
        some = np.flatnonzero(far)[start : start + 256]
        x = centre[some][:, None] + width * moved
        total += float(front[some] @ (second.values(x) @ bell))
    return total
