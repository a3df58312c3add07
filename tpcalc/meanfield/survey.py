"""``survey``: all that the theory says of signals in a deep network with layers that are alike."""

from __future__ import annotations

import time
from contextlib import suppress
from math import log
from typing import NamedTuple

import numpy as np

from tpcalc import checks
from tpcalc.activations.given import Given
from tpcalc.errors import EvaluationError, StudyError, UsageError
from tpcalc.functions import Expr
from tpcalc.integrals.bounded import EPS, Bounded, bounded
from tpcalc.integrals.given import Act, whole
from tpcalc.meanfield.drift import Drift, drift
from tpcalc.meanfield.maps.curves import (
    correlation_curve,
    correlation_step,
    drawn,
    edge_curve,
    length_curve,
    scale_curve,
)
from tpcalc.meanfield.maps.edge import checked_rank, edges
from tpcalc.meanfield.maps.layer_map import LayerMap
from tpcalc.meanfield.maps.roots import rate, scale
from tpcalc.meanfield.operations import Activation, Bias, Dense, Number, Operation, checked_family
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.meanfield.spectra.finite import finite_moments
from tpcalc.meanfield.spectra.singular_values import PADDED, singular_values, slope_variance
from tpcalc.meanfield.spectra.spectrum import FAMILIES
from tpcalc.networks.own import is_network
from tpcalc.program.base import Table
from tpcalc.results import (
    Curve,
    EdgePoint,
    Estimate,
    FixedPoint,
    JacobianRow,
    LengthDrift,
    Method,
    Signal,
    Survival,
)
from tpcalc.results.tables import provenance

STARTS = (0.2, 0.5, 0.8)
"""Correlations of the first layer from which they are followed."""

FOLLOWED, DONE, LEFT = 300, 1e-7, 0.01
TOP = 2.5  # the largest length drawn where there is no fixed point
WIDTH = 1000  # of the network whose finite-width moments are told
RANKS = 40
ADDED = {"gaussian": 0.0, "orthogonal": -1.0, "gaussian-gaussian": 1.0}  # to 1 / rank, a layer


def survey(
    activation: Act | Layers,
    weights: float | None = None,
    biases: float | None = None,
    rank: float = 1.0,
    family: str = "gaussian",
    depth: int | None = None,
) -> Signal:
    """Phase, depth scales, gradients, spectra and the edge of chaos of one kind of layer.

    Args:
        activation: The activation: a name, ``tp.tanh``, a formula or a function of expressions; or
            a network of one layer that is repeated, which says the variances and the depth too.
        weights: The variance of the weights, times the fan-in.
        biases: The variance of the biases; by default there are none.
        rank: Rank over width of the weights; both variances then count as much less.
        family: The law of the weights: ``"gaussian"`` (C A with orthonormal C and Gaussian A),
            ``"orthogonal"`` (U V^T with Haar factors), ``"gaussian-gaussian"`` (both Gaussian).
        depth: The number of layers; 50 by default.

    Returns:
        A record; ``report`` makes a page of it.

    Raises:
        StudyError: Negative variances, a rank of 0 or above the width, an unknown family.
        EvaluationError: Lengths diverge or vanish faster than by a factor for each layer.

    Source: Poole et al., Exponential expressivity in deep neural networks through transient chaos;
        Schoenholz et al., Deep information propagation; On the initialisation of wide low-rank
        feedforward neural networks.

    Example:
        >>> found = survey("erf", 6.0, 0.4, rank=0.25, depth=10)
        >>> found.phase, round(found.chi.value, 6), round(found.correlation_scale.layers, 2)
        ('ordered', 0.984359, 63.43)
    """
    begun = time.perf_counter()
    found, weights, biases, depth = _asked(activation, weights, biases, depth)
    tau, layers = found.expr, checks.whole(depth, "depth", least=1)
    checked_family(family, FAMILIES)
    rank = checked_rank(rank, "survey")
    given = LayerMap(tau, weights, biases, rank, square=1.0)
    moving = drift(given)
    layer = moving.scaled if moving else given
    growth = moving.growth if moving else Bounded(1.0)
    points, reason = _edges(tau, given)
    survival, dynamics = _survival(layer, layers)
    top = TOP if moving else None
    curves = [length_curve(given, top=top), correlation_curve(layer), *dynamics]
    curves += [*_edge_curves(tau, layer), *_scale_curves(given)]
    chi = layer.chi * growth
    curves += [_gradients(chi, layers), *_variances(layer, layers)]
    log_growth = singular_values(layer, family, layers).log_mean - rate(growth) * layers
    made = {"activation": found.text, "weights": f"{weights:g}", "biases": f"{biases:g}"}
    made |= {"rank": f"{rank:g}", "family": family, "depth": str(layers)}
    return Signal(
        activation=found.text,
        weights=float(weights),
        biases=float(biases),
        rank=float(rank),
        family=family,
        depth=layers,
        phase=layer.phase,
        fixed_points=tuple(
            FixedPoint(point.square.estimate(), point.slope.estimate(), point.kind)
            for point in given.fixed_points
        ),
        length=layer.fixed_point.estimate(),
        start=layer.start.estimate(),
        chi=chi.estimate(),
        correlation=layer.stable_correlation.estimate(),
        length_scale=scale(growth) if moving else layer.length_scale,
        correlation_scale=layer.correlation_scale,
        gradient_scale=scale(chi),
        gradient=log_growth.estimate(),
        survival=survival,
        nonzero=singular_values(layer, family, layers).nonzero,
        jacobian=_jacobian(layer, layers),
        edges=points,
        edge_note=reason,
        curves=tuple(curves),
        provenance=provenance(tau.text, None, made, time.perf_counter() - begun),
        notes=_notes(layer, moving is not None, family, layers),
        drift=_drifting(moving, layers),
    )


def _asked(
    activation: Act | Layers, weights: float | None, biases: float | None, depth: int | None
) -> tuple[Given, float, float, int]:
    """The activation, the variances of weights and biases, and the depth."""
    if is_network(activation):
        if weights is not None or biases is not None:
            raise UsageError("a network says its variances itself.", where="survey")
        own = repeated(activation)
        assert own.activation is not None
        named = Given(own.activation.tau, own.activation.name)
        return named, float(own.weights), float(own.biases), depth or own.depth
    if weights is None:
        raise UsageError(
            "the variance of the weights is missing.",
            where="survey",
            hint="Give it after the activation, times the fan-in, or give a network.",
        )
    w, b = checks.real(weights, "weights"), checks.real(biases or 0, "biases")
    return whole(activation, "survey"), float(w), float(b), 50 if depth is None else depth


def _drifting(moving: Drift | None, depth: int) -> LengthDrift | None:
    if moving is None:
        return None
    kept = bounded(moving.scaled.weights) + Bounded(0.0, 4 * EPS * moving.scaled.weights)
    whole = -rate(moving.growth) * depth
    return LengthDrift(moving.growth.estimate(), whole.estimate(), moving.end, kept.estimate())


def _edges(tau: Expr, layer: LayerMap) -> tuple[tuple[EdgePoint, ...], str]:
    try:
        found = edges(tau, float(layer.biases), float(layer.rank))
    except EvaluationError as error:
        return (), f"{error.message} {error.hint}" if error.hint else error.message
    if all(point.kind == "unstable" for point in found):
        return found, "Lengths are unstable there: a deep network does not stay at the edge."
    return found, ""


def _survival(layer: LayerMap, depth: int) -> tuple[tuple[Survival, ...], list[Curve]]:
    """The correlations layer by layer, until they are all but c* or for so many layers."""
    limit = 1.0 - layer.stable_correlation
    x = 1.0 - np.array(STARTS)
    rows = [(x, np.zeros_like(x))]
    while len(rows) <= min(depth, FOLLOWED) and abs(rows[-1][0] - limit.value).max() > DONE:
        rows.append(correlation_step(layer, *rows[-1]))
    (values, errors), count = np.stack(rows, axis=1), len(rows) - 1
    apart = np.maximum(abs(values - limit.value), EPS)  # a start may be c* itself
    first = apart[0]
    found, curves = [], []
    for k, start in enumerate(STARTS):
        small = np.flatnonzero(apart[:, k] < LEFT * first[k])
        end, error = float(values[-1, k]), float(errors[-1, k] + limit.error)
        share = float(apart[-1, k] / first[k])
        if count < min(depth, FOLLOWED):  # all but there
            error, share, end = error + DONE, 0.0, limit.value
        method = layer.stable_correlation.method if error else Method.EXACT
        method = layer.chi.method if method is Method.EXACT else method
        left = Estimate(share, error / float(first[k]), method)
        found.append(
            Survival(
                start,
                Estimate(float(1 - end), error, method),
                left,
                min(depth, FOLLOWED),
                int(small[0]) if small.size else None,
            )
        )
        label, followed, off = f"c = {start:g} at the start", 1 - values[:, k], errors[:, k]
        curves.append(drawn("dynamics", label, range(count + 1), followed, off))
    return tuple(found), curves


def _edge_curves(tau: Expr, layer: LayerMap) -> list[Curve]:
    """The edge of chaos around the layer, where there is one."""
    q = layer.fixed_point.value
    with suppress(EvaluationError):
        return [edge_curve(tau, layer.rank, min(1e-4, q / 10), max(10.0, 4 * q), 160).curve]
    return []


def _scale_curves(layer: LayerMap) -> list[Curve]:
    """xi_c against the variance of the weights, for these biases."""
    if not layer.biases > 0:
        return []
    high = 3 * float(layer.weights)
    try:
        found = scale_curve(layer.tau, layer.biases, high / 60, high, float(layer.rank), 48)
    except EvaluationError:
        return []
    return [drawn("scale", "rate of correlations", found.weights, found.rates, found.error)]


def _gradients(chi: Bounded, depth: int) -> Curve:
    """log10 of the mean squared gradient of each layer, as a share of that of the last."""
    growth = log(chi.value) / log(10)
    places, error = np.arange(1, depth + 1), depth * chi.error / chi.value / log(10)
    return drawn("gradient", "squared gradient", places, growth * (depth - places), error)


def _variances(layer: LayerMap, depth: int) -> list[Curve]:
    """The relative variance of squared singular values against the rank."""
    ranks, own = np.geomspace(0.05, 1.0, RANKS), slope_variance(layer.tau, layer.fixed_point)
    return [
        drawn("variance", family, ranks, depth * (own.value + 1 / ranks + added), depth * own.error)
        for family, added in ADDED.items()
    ]


def _jacobian(layer: LayerMap, depth: int) -> tuple[JacobianRow, ...]:
    rows = []
    for family in (*FAMILIES, PADDED):
        parts = (singular_values(layer, family, count) for count in (1, depth))
        one, whole = (part.relative_variance.estimate() for part in parts)
        padded = family == PADDED
        note = "W^T W is diagonal: it does not act like a free factor" if padded else ""
        rows.append(JacobianRow(family, one, whole, note))
    return tuple(rows)


def _notes(layer: LayerMap, moving: bool, family: str, depth: int) -> tuple[str, ...]:
    found = []
    if layer.every_length and not moving:
        found.append("Every length is a fixed point; numbers are those of q = 1.")
    if len(layer.fixed_points) > 1:
        named = ", ".join(
            f"{point.square.value:.6g} ({point.kind})" for point in layer.fixed_points
        )
        found.append(f"Lengths have several fixed points: {named}.")
    if layer.phase == "edge of chaos" and not moving:
        found.append(
            "chi is 1 within its error. At the edge of chaos correlations tend to c* like a power "
            "of the depth, and a depth scale is no number of layers."
        )
    if layer.phase == "edge of chaos" and layer.stable_correlation.error > 0.5:
        found.append("Every correlation is a fixed point: the layers are linear.")
    found.append(
        "Squared gradients and squared singular values are means over networks, for a backward "
        "pass with weights of its own; a typical deep network lies below its mean."
    )
    if layer.rank < 1:
        found.append(
            "Biases are independent in each direction of the span. One scalar shared by all of "
            "them has the same mean length, but lengths then stay random at any width, with a "
            f"standard deviation of {2**0.5 * float(layer.rank) * float(layer.biases):.4g} for "
            "each layer."
        )
    found.append(_finite(layer, family, depth))
    return tuple(found)


def _finite(layer: LayerMap, family: str, depth: int) -> str:
    """How far networks of finite width are from the limit, where that is known exactly."""
    rank = max(1, round(float(layer.rank) * WIDTH))
    exact = finite_moments(family, WIDTH, rank, depth).relative_variance
    limit = depth * (WIDTH / rank + ADDED[family])
    return (
        "At a finite width N corrections to the spectrum are of the order depth / (gamma N): a "
        f"linear network of these weights with N = {WIDTH} and rank {rank} has a relative "
        f"variance of {exact:.6g}, where its limit is {limit:.6g}."
    )


class Repeated(NamedTuple):
    """Weights, biases and an activation, layer after layer.

    Args:
        activation: The activation.
        weights: The variance of the weights, times the fan-in.
        biases: The variance of the biases.
        depth: How many layers there are.
    """

    activation: Activation | None
    weights: Number
    biases: Number
    depth: int


def repeated(network: Layers) -> Repeated:
    """The layer that a network repeats; what enters and what leaves may be of other variances.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> found = repeated(lookup("mlp").make(3, "tanh", weight_variance=1.5))
        >>> found.activation.name, found.weights, found.depth
        ('tanh', Fraction(3, 2), 3)
    """
    blocks = list[Repeated]()
    for index, layer in enumerate(layers(network).layers[1:], 1):
        operation = layer.operation
        if layer.parents != (index - 1,) or type(operation) not in _NEXT.rows:
            raise _other(index, operation, "is none of them")
        if operation.matrix:
            blocks.append(Repeated(None, 0, 0, 1))
        if not blocks or blocks[-1].activation is not None:
            raise _other(index, operation, "comes with no matrix before it")
        blocks[-1] = _NEXT(operation, blocks[-1])
    curved = [block for block in blocks if block.activation is not None]
    if not curved:
        raise StudyError("a network without activations repeats none.", where="survey")
    first, *others = curved[1:] or curved
    for place, block in enumerate(others, 3):
        if block != first:
            raise StudyError(
                f"layers 2 and {place} of the network differ, and the maps are those of one layer "
                "that is repeated.",
                where="survey",
                hint="tp.signal.nonlinearity goes through the layers as they are.",
            )
    return first._replace(depth=len(curved))


_NEXT: Table[Repeated] = Table(
    {
        Dense: lambda operation, block: block._replace(weights=operation.variance),
        Bias: lambda operation, block: block._replace(biases=block.biases + operation.variance),
        Activation: lambda operation, block: block._replace(activation=operation),
    }
)


def _other(index: int, operation: Operation, said: str) -> StudyError:
    return StudyError(
        f"the maps are those of matrix, biases and activation, layer after layer; layer {index} "
        f"({operation.name}) {said}.",
        where="survey",
        hint="tp.signal.nonlinearity goes through any layers.",
    )
