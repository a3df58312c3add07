"""The metrics of every layer of a network, as functions of the input and of other layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import hypot, inf, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array, Index
from tpcalc.errors import UsageError
from tpcalc.finite.networks.uses import HasTaps
from tpcalc.networks.order import no_bottleneck, no_such_layers
from tpcalc.nonlinearity.estimators import ONE, Measured, estimate, mean_of, root_of_ratio
from tpcalc.nonlinearity.measured import ULPS, backward, crossed, forward, noise
from tpcalc.nonlinearity.sample import Sample
from tpcalc.nonlinearity.shapes import Gaussianity, LayerMoments, gaussianity, layer_moments
from tpcalc.nonlinearity.tensors.functions import HasLayers, Torch, network_on
from tpcalc.results import Estimate
from tpcalc.shown import Rows, Shown

CORRELATED = 256  # neurons of each layer whose correlations are measured
CURVED = ("coordinates", "product", "norm")


@dataclass(frozen=True)
class LayerMetrics(Shown):
    """One layer l; each quantity has its limit in wide networks in parentheses."""

    layer: int  # its number; 0 is the input
    size: int  # its neurons
    root_mean_square: Estimate  # LQM: of the neurons, the mean over inputs (sqrt q)
    scale: Estimate  # LSCALE: root of the mean square over neurons and inputs (sqrt q)
    mean_scale: Estimate  # QMNEX: root mean square of the neurons' means (sqrt c)
    deviation_scale: Estimate  # QMNSTD: root mean square of the neurons' deviations (sqrt(q - c))
    bias: Estimate  # LBIAS: LSCALE over QMNSTD (sqrt(q / (q - c)))
    # JACF: Frobenius norm of the derivative by the input over sqrt(size), root mean square
    # over inputs (sqrt g)
    jacobian: Estimate
    numerator: Estimate  # NLCNUM: root of E Tr J Cov_x J^T over the size
    nlc: Estimate  # the nonlinearity coefficient of the layer as a function of the input
    # LCORR: root mean square of the correlation over neurons of two inputs
    # ((c - m^2) / (q - m^2))
    correlation: Estimate
    gaussianity: Gaussianity  # how far its neurons are from independent Gaussians
    # whether it is the same for all inputs within a few roundings; then bias and coefficient
    # are what rounding left
    collapsed: bool


def moments_of(function: Torch, sample: Sample) -> list[LayerMoments]:
    """The moments of all layers over the inputs."""

    def passes() -> Iterator[list[Array]]:
        return map(function.layers, sample.batches())

    return layer_moments(
        passes, len(sample), lambda k, n: sample.stream("neurons", k).permutation(n)[:CORRELATED]
    )


def layer_metrics(
    network: HasLayers, x: Any, *, batch: int | None = None, draws: int = 4, seed: int = 0
) -> tuple[LayerMetrics, ...]:
    """Measure every layer, in three passes over the inputs and two derivatives for each draw.

    Args:
        network: A drawn network, or ``tapped(module)``.
        x: The inputs, on the network's device.
        batch: Inputs of a batch; None: 250, or all if there are fewer.
        draws: Batches of directions for the derivatives.
        seed: The seed.

    Returns:
        A row for each layer, the input first.

    Raises:
        UsageError: Inputs that are too few or all equal.
        EvaluationError: A layer, or its derivative, is not finite.

    Source: Schoenherr, The nonlinearity coefficient, chapter 3 and section 5.3.2.

    Example:
        >>> from tpcalc.nonlinearity.tensors.functions import Tapped, gaussian_inputs
        >>> rows = layer_metrics(Tapped(lambda x: [3 * x]), gaussian_inputs(400, 20))
        >>> [round(row.jacobian.value) for row in rows]
        [1, 3]
    """
    draws = checks.whole(draws, "draws", least=2)
    function, sample = network_on(network, x, batch, seed)
    moments = moments_of(function, sample)
    numerators = forward(function, sample, sample.moves(draws))
    frobenius = forward(function, sample, sample.tangents(draws))
    return Rows(
        _metrics(index, *parts, sample, function.input_eps)
        for index, parts in enumerate(zip(moments, numerators, frobenius, strict=True))
    )


def _metrics(
    index: int,
    own: LayerMoments,
    numerator: Measured,
    frobenius: Measured,
    sample: Sample,
    eps: float,
) -> LayerMetrics:
    seed, size = sample.seed, own.size
    square = mean_of(own.squares)
    spread = mean_of(own.deviations).times(sample.correction)
    offset = sqrt(float(np.mean(own.mean**2)))
    over = numerator.times(1 / size)
    alike = mean_of(own.alike)
    alike = replace(alike, stderr=2 * alike.stderr)  # each input is in pairs on both sides
    collapsed = sqrt(spread.value) <= ULPS * eps * offset
    if collapsed:
        bias, nlc = (
            Estimate(value, inf, Torch.method, samples=len(sample), seed=seed)
            for value in (inf, 1.0)
        )
    else:
        bias, nlc = (root_of_ratio(part, spread, seed) for part in (square, over))
    return LayerMetrics(
        index,
        size,
        mean_of(np.sqrt(own.squares)).estimate(seed),
        root_of_ratio(square, ONE, seed),
        _mean_scale(own, offset, spread, seed),
        root_of_ratio(spread, ONE, seed),
        bias,
        root_of_ratio(frobenius.times(1 / size), ONE, seed),
        root_of_ratio(over, ONE, seed),
        nlc,
        root_of_ratio(alike, ONE, seed),
        gaussianity(own, seed),
        collapsed,
    )


def _mean_scale(own: LayerMoments, offset: float, spread: Measured, seed: int) -> Estimate:
    """The length of a mean; of n inputs it is too long by their spread over n, squared."""
    count = len(own.squares)
    scatter = 2 * mean_of(own.projections).stderr
    excess = spread.value / count
    error = hypot(scatter, excess) / (2 * offset) if offset else sqrt(excess)
    return estimate(offset, error, count, seed)


@dataclass(frozen=True)
class Between(Shown):
    """Layer l as a function of layer m."""

    start: int  # m
    end: int  # l
    jacobian: Estimate  # JACF: Frobenius norm of the derivative, over the root of the neurons of l
    numerator: Estimate  # NLCNUM: root of E Tr J Cov_m J^T over the neurons of l
    nlc: Estimate  # the nonlinearity coefficient of l as a function of m


def between(
    network: HasLayers,
    x: Any,
    pairs: Iterable[tuple[int, int]],
    *,
    batch: int | None = None,
    draws: int = 4,
    seed: int = 0,
) -> tuple[Between, ...]:
    """Measure layers as functions of other layers.

    Noise sent back from layer l meets all layers m on its way, so the work is one backward pass for
    each l and draw, however many pairs there are.

    Args:
        network, x, batch, seed: As of ``layer_metrics``.
        pairs: Pairs (m, l) of numbers of layers, m before l; every path to l leads through m.
        draws: Pairs of batches.

    Returns:
        A row for each pair, in their order.

    Raises:
        UsageError: No such layers, or a path leads around m.
        EvaluationError: A layer, or a derivative, is not finite.

    Source: Schoenherr, The nonlinearity coefficient, sections 4.4.14 and 5.3.2.

    Example:
        >>> from tpcalc.nonlinearity.tensors.functions import Tapped, gaussian_inputs
        >>> cubes = Tapped(lambda x: [h := 2 * x, h**3])
        >>> (row,) = between(cubes, gaussian_inputs(400, 20), [(1, 2)])
        >>> abs(row.nlc.value - (9 / 5) ** 0.5) < 0.1
        True
    """
    try:
        wanted = tuple((int(start), int(end)) for start, end in pairs)
    except (TypeError, ValueError):
        raise UsageError("pairs are pairs (m, l) of numbers of layers.") from None
    draws = checks.whole(draws, "draws", least=2)
    function, sample = network_on(network, x, batch, seed)
    moments = moments_of(function, sample)
    _check(network, wanted, len(moments))
    ends = {end: [m for m, known in wanted if known == end] for _, end in wanted}

    def away(places: Index) -> dict[int, Array]:
        layers = function.layers(sample.rows[places])
        return {start: layers[start] - moments[start].mean for start, _ in wanted}

    terms = backward(function, sample, draws, ends=ends, away=away)
    found = []
    for start, end in wanted:
        over, jacobian = (part.times(1 / moments[end].size) for part in terms[start, end])
        spread = mean_of(moments[end].deviations).times(sample.correction)
        ratios = ((jacobian, ONE), (over, ONE), (over, spread))
        found.append(Between(start, end, *(root_of_ratio(*ratio, seed) for ratio in ratios)))
    return Rows(found)


def _check(network: HasLayers, pairs: Sequence[tuple[int, int]], count: int) -> None:
    leads: Callable[[int, int], bool] | None = getattr(network, "is_bottleneck", None)
    for start, end in pairs:
        if not 0 <= start < end < count:
            raise no_such_layers(start, end, count - 1)
        if leads is not None and not leads(start, end):
            raise no_bottleneck(start, end)


def layerwise_nlc(network: HasTaps, x: Any, *, batch: int | None = None, seed: int = 0) -> Estimate:
    """LNLC: each nonlinear layer's own coefficient, combined along the network.

    Along a chain coefficients multiply. At a sum of branches their squares average with the weights
    w^2 Tr Cov of the branches. Dense layers and biases have 1; activations of one layer and
    normalizations are measured.

    Args:
        x, batch, seed: As of ``measured_nlc``.
        network: The network; its activations read one layer each.

    Returns:
        The coefficient, with its standard error.

    Raises:
        UsageError: Inputs that are too few or all equal.
        EvaluationError: A layer is not finite, or is the same for all inputs.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.11.

    Example:
        >>> import tpcalc as tp
        >>> from tpcalc.nonlinearity.tensors.functions import gaussian_inputs
        >>> network = tp.signal.network_of(tp.MLP(1, "relu"), 200, 100)
        >>> abs(layerwise_nlc(network, gaussian_inputs(500, 100)).value - 1.211) < 0.02
        True
    """
    function, sample = network_on(network, x, batch, seed)
    moments = moments_of(function, sample)
    spreads = [mean_of(own.deviations).times(sample.correction * own.size) for own in moments]
    own = _local(network, function, sample, moments)
    # For each layer the squared coefficient from the input on, and its error.
    found = [ONE]
    for index, step in enumerate(network.taps[1:], start=1):
        below = [found[parent] for parent in step.parents]
        if not below:
            raise UsageError(
                f"layer {index} does not say what it is computed from.",
                hint="The layers of a network are those that the recursion follows, if it does.",
            )
        if step.kind == "sum":
            shares = [
                weight**2 * spreads[parent].value
                for weight, parent in zip(step.weights, step.parents, strict=True)
            ]
            found.append(_average(shares, below))
        elif index in own:
            factor = root_of_ratio(own[index], spreads[index], seed)
            error = hypot(2 * factor.stderr / factor.value, below[0].stderr / below[0].value)
            value = below[0].value * factor.value**2
            found.append(Measured(value, value * error))
        else:
            found.append(below[0])
    last = found[-1]
    value = last.value**0.5
    return estimate(value, last.stderr / (2 * value), len(sample), seed)


def chain_nlc(
    network: HasLayers,
    x: Any,
    linear: Sequence[int] = (),
    *,
    batch: int | None = None,
    draws: int = 4,
    seed: int = 0,
) -> Estimate:
    """LNLC of a chain of layers: the product of the coefficients of each as a function of the last.

    Args:
        x, batch, seed: As of ``measured_nlc``.
        network, draws: As of ``between``; the network has no branches.
        linear: Numbers of the layers that are linear in the one before; their coefficient is 1.

    Returns:
        The product, with its standard error.

    Raises:
        UsageError, EvaluationError: As of ``between``.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.11.

    Example:
        >>> from tpcalc.nonlinearity.tensors.functions import Tapped, gaussian_inputs
        >>> cubes = Tapped(lambda x: [h := 2 * x, h**3])
        >>> abs(chain_nlc(cubes, gaussian_inputs(1000, 20), linear=[1]).value - 1.34) < 0.1
        True
    """
    function, sample = network_on(network, x, batch, seed)
    count = len(function.layers(next(sample.batches())))
    pairs = [(index - 1, index) for index in range(1, count) if index not in set(linear)]
    rows = between(network, x, pairs, batch=batch, draws=draws, seed=seed)
    value = float(np.prod([row.nlc.value for row in rows]))
    relative = hypot(*(row.nlc.stderr / row.nlc.value for row in rows)) if rows else 0.0
    return estimate(value, value * relative, len(sample), seed)


def _average(shares: Sequence[float], parts: Sequence[Measured]) -> Measured:
    total = sum(shares)
    value = sum(share * part.value for share, part in zip(shares, parts, strict=True)) / total
    errors = [share * part.stderr for share, part in zip(shares, parts, strict=True)]
    return Measured(value, hypot(*errors) / total)


def _local(
    network: HasTaps, function: Torch, sample: Sample, moments: Sequence[LayerMoments]
) -> dict[int, Measured]:
    """For each nonlinear layer E Tr J Cov J^T of it as a function of the layer that it reads."""
    curved = {index: step for index, step in enumerate(network.taps) if step.kind in CURVED}
    for index, step in curved.items():
        if len(step.parents) != 1:
            raise UsageError(
                f"layer {index} is a function of {len(step.parents)} layers.",
                hint="A layerwise coefficient takes activations of one layer.",
            )
    ends = {index: step.parents for index, step in curved.items()}
    terms: dict[int, list[Array]] = {index: [] for index in curved}
    for number, batch in enumerate(sample.batches()):
        others = function.layers(sample.rows[sample.places("others", number)])

        def above(end: int, value: Any, number: int = number) -> Array:
            if curved[end].kind == "coordinates":  # J is diagonal: no noise is needed
                return np.ones(tuple(value.shape))
            return noise(sample, number, end, value)

        for (parent, index), g in function.vjp(batch, ends, above).items():
            if curved[index].kind == "coordinates":
                part = g**2 @ moments[parent].variance
            else:
                part = crossed(g, others[parent] - moments[parent].mean)[0] * sample.correction
            terms[index].append(part)
    return {index: mean_of(np.concatenate(parts)) for index, parts in terms.items()}
