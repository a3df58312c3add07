"""How unequal the squared singular values of a network's Jacobian are: m_2 / m_1^2 of J J^T."""

from __future__ import annotations

from functools import partial
from math import inf, nan, sqrt
from statistics import fmean, stdev
from typing import Any, cast

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import StudyError
from tpcalc.integrals.activation_moments import average
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.measured import Sampling
from tpcalc.meanfield.network import network_of
from tpcalc.meanfield.operations import Activation, Addition, Dense, Gain, Input, Product, batches
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.meanfield.recursion import ONE
from tpcalc.meanfield.spectra.singular_values import slope_variance
from tpcalc.meanfield.spectra.spectrum import weight_spectrum
from tpcalc.meanfield.state import State
from tpcalc.program.base import Table
from tpcalc.results import Estimate, Method
from tpcalc.results.nonlinearity import MeasuredValue

FAMILIES = ("gaussian", "orthogonal")
PROBES = 32  # inputs, each with noise of its own


def inequality(graph: LayerGraph, states: tuple[State, ...]) -> tuple[Bounded, ...]:
    """m_2 / m_1^2 of J J^T for every layer as a function of the input; 1 where all are equal.

    Weights and slopes are free of what comes before them: a chain of square layers has 1 + the sum
    of mu_2 / mu_1^2 - 1 - s, with s = -1 for Gaussian weights and 0 for orthogonal ones.

    Raises:
        StudyError: Sums and products of layers, padded weights.
    """
    found: list[tuple[Bounded, Bounded]] = []  # the number, and the width over n
    for index, layer in enumerate(graph.layers):
        with graph.at(index):
            read = [(*found[p], states[p]) for p in layer.parents]
            found.append(_INEQUALITY(layer.operation, *read))
    return tuple(number for number, _ in found)


Read = tuple[Bounded, Bounded, State]
Known = tuple[Bounded, Bounded]


def _dense(own: Dense, read: Read) -> Known:
    before, width, _ = read
    size = bounded(own.width if own.outputs is None else 1)
    share = size * width.inverse()
    if own.family not in FAMILIES or (own.rank is not None and share.value != 1):
        raise StudyError(f"the spectrum of {own.family} weights of this shape is not followed.")
    if own.rank is not None:
        law = weight_spectrum(own.family, float(own.rank), 1)
        return before + bounded(float(law.relative_variance)), size
    if own.family == "gaussian":
        return share * before + 1, size
    if share.value <= 1:  # rows of a Haar matrix: a part of J J^T
        return share * (before - 1) + 1, size
    return share * before, size


def _activation(own: Activation, read: Read) -> Known:
    return read[0] + slope_variance(own.tau, read[2].square), read[1]


def _gain(own: Gain, read: Read) -> Known:
    first, second = (average(own.tau**k, bounded(own.variance)) for k in (2, 4))
    return read[0] + second / (first * first) - 1, read[1]


def _refused(own: Addition | Product, *read: Read) -> Known:
    if len(read) == 1:
        return read[0][:2]
    raise StudyError(
        "slopes on both ways to it are correlated, so that no product of free factors tells the "
        "spectrum behind it.",
        hint="Networks of finite width do: give widths.",
    )


_INEQUALITY: Table[Known] = Table(
    {
        Input: lambda own: (ONE, ONE),
        Dense: _dense,
        Activation: _activation,
        Gain: _gain,
        Addition: _refused,
        Product: _refused,
    },
    lambda own, read: read[:2],
)


def _noise(source: np.random.Generator, end: int, value: Any) -> Array:
    return source.standard_normal(tuple(value.shape))


def drawn_inequality(network: Layers, sampling: Sampling) -> MeasuredValue:
    """sqrt(m_2) / m_1 of drawn networks of the largest width, by noise sent back and forth."""
    from tpcalc.nonlinearity.tensors.functions import gaussian_inputs, network_on

    graph, width = layers(network), max(sampling.widths)
    start = cast("Input", graph.layers[0].operation)
    normed = batches(layer.operation for layer in graph.layers)
    batch, place = min(filter(None, normed), default=None), (sampling.device, sampling.dtype)
    count = sampling.inputs if normed else min(PROBES, sampling.inputs)
    found = []
    for seed in range(sampling.seed, sampling.seed + sampling.seeds):
        drawn = network_of(network, width, width, seed, *place)
        moments = float(start.square), float(start.comean)
        x = gaussian_inputs(count, width, *moments, seed, *place)
        function, sample = network_on(drawn, x, batch, seed)
        rows = next(iter(sample.batches()))
        noise = np.random.default_rng((seed, width))
        last = len(drawn.taps) - 1
        (back,) = function.vjp(rows, {last: [0]}, partial(_noise, noise)).values()
        first = np.mean(back**2) * back.shape[1]
        forth = function.jvp(rows, back / sqrt(first))[-1]
        second = np.mean(forth**2) / first * forth.shape[1] * forth.shape[1]
        found.append(sqrt(second))
    spread = stdev(found)
    mean = Estimate(fmean(found), spread / sqrt(len(found)), Method.FINITE, samples=len(found))
    return MeasuredValue(mean, spread, Estimate(nan, inf, Method.QUADRATURE))
