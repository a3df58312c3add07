"""Passes through a deep residual network of infinite width, edge by edge.

What a pass adds to the kets x^l (l = 0 ... L) and dx^l obeys a linear recurrence in l whose sources
are the Gaussians of one edge. So the coefficient of a Gaussian of edge m in the ket of layer l is a
solution of the homogeneous recurrence times a vector that depends on m alone, on either side of m.
A pass keeps these solutions (``forward``, ``backward``), those vectors (``jumps``) and their Gram
matrices (``gram``): L of each where all coefficients would be L^2.

A step of B samples takes 2 B columns, first those of x, then those of dx; columns of solutions,
vectors and Gaussians are numbered alike.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.doors.budget import spend
from tpcalc.engine.kernels_compile import inner, loose


class Store(NamedTuple):
    """What passes leave behind; the first axis is the layer, and edge l leads to layer l."""

    forward: Array  # homogeneous solutions, of x for each sample and column
    backward: Array  # the same of dx
    jumps: Array  # for each Gaussian (last axis) by how much coefficients jump at its edge
    law: Array  # covariances of the Gaussians of an edge
    gram: Array  # gram matrices of the coefficients, edges up to l for x and beyond l for dx
    features: Array  # <x_i | x_j>
    gradients: Array  # <dx_i | dx_j>
    drift: Array  # what of dx_j is in the preactivation of sample i
    averages: Array  # cov, V11, V22, V2c, V31 of each pair (i, j); unread where phi is the identity


def store(layers: int, batch: int, steps: int) -> Store:
    """Room for the passes of so many steps."""
    count = batch * steps
    solutions = layers + 1, count, 2 * count
    square = layers + 1, 2 * count, 2 * count
    pairs = layers + 1, count, count
    shapes = (solutions, solutions, square, square, square, pairs, pairs, pairs, (5, *pairs))
    spend(f"what {count} samples leave in {layers} blocks", memory=8 * sum(map(prod, shapes)))
    return Store(*map(np.zeros, shapes))


@inner
def _column(sample: int, batch: int) -> int:
    """The column of x of a sample; that of dx is ``batch`` further."""
    return sample + batch * (sample // batch)


@loose
def _kernel(row: Any, gram: Any, rows: Any, width: int, out: Any, count: int) -> None:
    """``out[j] = row gram rows[j]`` for the first samples j."""
    through = np.zeros(width)
    for k in range(width):
        if row[k] != 0.0:
            for c in range(width):
                through[c] += row[k] * gram[k, c]
    for j in range(count):
        total = 0.0
        for c in range(width):
            total += through[c] * rows[j, c]
        out[j] = total


@loose
def _jump(row: Any, jumps: Any, own: int, size: float) -> None:
    """The jump of a new ket: that of its own Gaussian, and what earlier ones do to it."""
    out = jumps[own]
    out[:own] = 0.0
    for k in range(own):
        if row[k] != 0.0:
            for c in range(k + 1):
                out[c] -= row[k] * jumps[k, c]
    out[own] = size


@loose
def _added(gram: Any, before: Any, jumps: Any, law: Any, own: int, columns: Any) -> None:
    """A row of a Gram matrix of coefficients: that of the layer before and the part of an edge."""
    through = np.zeros(own + 1)
    for k in range(own + 1):
        if jumps[own, k] != 0.0:
            for c in range(own + 1):
                through[c] += jumps[own, k] * law[k, c]
    for other in columns:
        total = 0.0
        for c in range(other + 1):
            total += through[c] * jumps[other, c]
        gram[own, other] = gram[other, own] = before[own, other] + total


@loose
def _slope(row: Any, jumps: Any, columns: Any, place: int) -> float:
    """What the jumps at these columns, of one Gaussian, are in a ket."""
    total = 0.0
    for k in columns:
        total += row[k] * jumps[k, place]
    return total


@loose
def _joined(laws: Any, values: Any, weights: Any, columns: Any, low: int) -> None:
    """Covariances of the Gaussians of a step with all before."""
    for i in range(low, len(columns)):
        for j in range(len(columns)):
            value = values[i, j] * weights[i, j]
            laws[columns[i], columns[j]] = laws[columns[j], columns[i]] = value


@loose
def _mirrored(kernels: Any, low: int, high: int) -> None:
    """Kernels of earlier samples with those of a step."""
    for layer in range(len(kernels)):
        for i in range(low, high):
            for j in range(low):
                kernels[layer, j, i] = kernels[layer, i, j]


@loose
def forward_edges(
    s: Store, step: int, batch: int, first: int, last: int, m: float, rates: Any, linear: bool
) -> None:
    """Edges ``first + 1`` to ``last`` of the forward pass of a step."""
    low, high = step * batch, (step + 1) * batch
    old, width = 2 * low, 2 * low + batch
    columns = np.array([_column(j, batch) for j in range(high)])
    ones = np.ones((high, high))
    for edge in range(first + 1, last + 1):
        for i in range(low, high):
            row = s.forward[edge - 1, i]
            features = s.features[edge - 1, i]
            _kernel(row, s.gram[edge - 1], s.forward[edge - 1], width, features, high)
            _jump(row, s.jumps[edge], columns[i], m)
            s.forward[edge, i] = row
            for j in range(low):
                # Beyond an edge coefficients of its Gaussians are jumps of x, before it of -dx.
                slope = -_slope(row, s.jumps[edge], columns[:low] + batch, columns[j] + batch)
                drift = slope - rates[j] * features[j]
                s.drift[edge, i, j] = drift
                weight = m * drift if linear else m * drift * s.averages[1, edge, i, j]
                for c in range(old):
                    s.forward[edge, i, c] += weight * s.backward[edge, j, c]
        law = s.features[edge - 1] if linear else s.averages[0, edge]
        _joined(s.law[edge], law, ones, columns, low)
        for i in range(low, high):
            near = columns[: i + 1]
            gram, before = s.gram[edge], s.gram[edge - 1]
            _added(gram, before, s.jumps[edge], s.law[edge], columns[i], near)
    for i in range(low, high):
        row, features = s.forward[last, i], s.features[last, i]
        _kernel(row, s.gram[last], s.forward[last], width, features, high)
    _mirrored(s.features[first : last + 1], low, high)


@loose
def _bracket(s: Store, edge: int, i: int, low: int, slopes: Any, rates: Any) -> Any:
    """What of each x there is in the change of dx_i, for a phi that is not the identity."""
    found = np.zeros(len(slopes))
    averages, gradients, drift = s.averages[:, edge, i], s.gradients[edge, i], s.drift[edge, i]
    own = averages[1, i] * slopes[i]
    for j in range(len(slopes)):
        own += averages[3, j] * slopes[j]
    for j in range(low):
        found[j] = averages[1, j] * (slopes[j] - rates[j] * gradients[j])
        found[j] += averages[2, j] * gradients[j] * drift[j]
        own += averages[4, j] * gradients[j] * drift[j]
    found[i] = own
    return found


@loose
def backward_edges(
    s: Store, step: int, batch: int, layers: int, m: float, rates: Any, linear: bool
) -> None:
    """All edges of the backward pass of a step; layer ``layers`` of this pass is known."""
    low, high = step * batch, (step + 1) * batch
    old, width = 2 * low + batch, 2 * high
    features = np.array([_column(j, batch) for j in range(high)])
    columns = features + batch
    ones, slopes, weights = np.ones((high, high)), np.zeros(high), np.zeros(high)
    for edge in range(layers, 0, -1):
        for i in range(low, high):
            row, gradients = s.backward[edge, i], s.gradients[edge, i]
            _kernel(row, s.gram[edge], s.backward[edge], width, gradients, high)
            _jump(row, s.jumps[edge], columns[i], -m)
            for j in range(high):
                slopes[j] = _slope(row, s.jumps[edge], features, features[j])
            if linear:
                weights[:low] = slopes[:low] - rates[:low] * gradients[:low]
            else:
                weights = _bracket(s, edge, i, low, slopes, rates)
            s.backward[edge - 1, i] = row
            for j in range(high):
                if weights[j] != 0.0:
                    for c in range(old):
                        s.backward[edge - 1, i, c] += m * weights[j] * s.forward[edge - 1, j, c]
        law = ones if linear else s.averages[1, edge]
        _joined(s.law[edge], s.gradients[edge], law, columns, low)
        for i in range(low, high):
            near = columns[: i + 1]
            gram, before = s.gram[edge - 1], s.gram[edge]
            _added(gram, before, s.jumps[edge], s.law[edge], columns[i], near)
    for i in range(low, high):
        row, gradients = s.backward[0, i], s.gradients[0, i]
        _kernel(row, s.gram[0], s.backward[0], width, gradients, high)
    _mirrored(s.gradients, low, high)
