"""Curves of the theory of signals: many points at once, each with a bound on its error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, StudyError
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import derivative
from tpcalc.integrals.activation_moments import means, method_of, products
from tpcalc.integrals.bounded import EPS, Bounded
from tpcalc.integrals.given import of_activation
from tpcalc.meanfield.maps.edge import checked_rank, edge_biases
from tpcalc.meanfield.maps.layer_map import LayerMap
from tpcalc.results import Curve
from tpcalc.results.signal import Kind
from tpcalc.shown import Shown

Step = Callable[[LayerMap, Array, Array], tuple[Array, Array]]

NEWTON = 40
FAIR = 1e-6  # relative error of 1 - c that a curve may have from each layer


def drawn(kind: Kind, label: str, x: Any, y: Any, error: Any) -> Curve:
    """A curve by its points, with bounds on their errors."""
    places, heights = (tuple(map(float, part)) for part in (x, y))
    return Curve(kind, label, places, heights, float(np.max(error)))


@dataclass(frozen=True, eq=False)
class EdgeCurve(Shown):
    """The edge of chaos, by the length q at each of its points.

    Args:
        squares: q.
        weights: sigma_w^2 at each.
        biases: sigma_b^2 at each.
        error: A bound on the error of either.
        left_out: How many of the q that were asked for need biases of a negative variance.
        note: The same in words.
    """

    squares: Array
    weights: Array
    biases: Array
    error: float
    left_out: int
    note: str

    @property
    def curve(self) -> Curve:
        """sigma_w against sigma_b, as in the field's figures."""
        x, y = np.sqrt(self.biases), np.sqrt(self.weights)
        off = self.error / max(float(y.min()), 1e-8)
        return drawn("edge", "edge of chaos", x, y, off)


@of_activation
def edge_curve(
    tau: Expr, rank: float = 1.0, low: float = 1e-3, high: float = 10.0, points: int = 100
) -> EdgeCurve:
    """The edge of chaos in the plane of the two variances.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        rank: Rank over width of the weights; both variances are divided by it.
        low: The smallest q.
        high: The largest q.
        points: How many q, spread evenly on a logarithmic scale.

    Returns:
        The two variances for each q, bounds, and how many q have no edge.

    Raises:
        StudyError: No range of q.
        EvaluationError: No q of the range has an edge.

    Source: On the initialisation of wide low-rank feedforward neural networks, figures 1 and 10.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> found = edge_curve(lookup("erf").fn.expr, low=0.5, high=5.0, points=2)
        >>> found.weights.round(6).tolist(), found.left_out
        ([1.36035, 3.599147], 0)
    """
    gamma = checked_rank(rank, "edge_curve")
    if not 0 < checks.real(low, "low") < checks.real(high, "high"):
        raise StudyError(f"q runs from {low} to {high}.", where="edge_curve")
    squares = np.geomspace(float(low), float(high), checks.whole(points, "points", least=2))
    slope = derivative(tau, Var(0))
    slopes, biases = means((slope, slope), squares), edge_biases(tau, squares)
    weights = 1 / slopes.value
    kept = biases.value >= -biases.error
    left = int((~kept).sum())
    if not kept.any():
        raise EvaluationError(
            f"there is no edge of chaos for q from {low:g} to {high:g}: biases would need "
            "negative variances.",
            hint="Take other q.",
        )
    off = np.maximum(slopes.error * weights**2 + EPS * weights, biases.error)[kept] / gamma
    note = ""
    if left:
        gone = squares[~kept]
        note = (
            f"{left} of {len(squares)} lengths q, between {gone.min():.3g} and {gone.max():.3g}, "
            "have no edge: biases would need negative variances."
        )
    return EdgeCurve(
        squares[kept],
        weights[kept] / gamma,
        np.maximum(biases.value[kept], 0.0) / gamma,
        float(off.max()),
        left,
        note,
    )


def length_curve(layer: LayerMap, points: int = 121, top: float | None = None) -> Curve:
    """The length map from 0 to well above its fixed point.

    Args:
        layer: The layer.
        points: How many.
        top: The largest length, where there is no fixed point.

    Returns:
        The points, with a bound on all their errors.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> found = length_curve(LayerMap(lookup("relu").fn.expr, 1.0, 0.5), 3)
        >>> [round(q, 9) for q in (*found.x, *found.y)]
        [0.0, 1.25, 2.5, 0.5, 1.125, 1.75]
    """
    checks.of_type(layer, LayerMap, "layer")
    points = checks.whole(points, "points", least=2)
    end = 2.5 * layer.fixed_point.value if top is None else float(checks.real(top, "top"))
    q = np.linspace(0.0, end, points)
    q[0] = 1e-12 * q[-1]
    found = layer.lengths(q)
    q[0], value = 0.0, np.where(np.arange(points) == 0, np.round(found.value, 9), found.value)
    return drawn("length", "next layer", q, value, found.error)


def correlation_curve(layer: LayerMap, points: int = 101) -> Curve:
    """The correlation map between 0 and 1.

    Args:
        layer: The layer, whose lengths are at their fixed point.
        points: How many.

    Returns:
        The points, with a bound on all their errors.

    Source: On the initialisation of wide low-rank feedforward neural networks, figure 6.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> found = correlation_curve(LayerMap(lookup("relu").fn.expr, 2.0, square=1.0), 3)
        >>> [round(c, 6) for c in found.y]
        [0.31831, 0.608998, 1.0]
    """
    checks.of_type(layer, LayerMap, "layer")
    c = np.linspace(0.0, 1.0, checks.whole(points, "points", least=2))
    found = layer.correlations(c)
    return drawn("correlation", "next layer", c, found.value, found.error)


def lengths(layer: LayerMap, starts: Sequence[float], depth: int) -> Bounded:
    """The lengths over layers, from several starts.

    Args:
        layer: The layers.
        starts: Lengths of the first layer.
        depth: How many layers follow.

    Returns:
        A row for each layer, a column for each start.

    Raises:
        StudyError: A length that is not above 0.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> layer = LayerMap(lookup("tanh").fn.expr, 8, 0.4, rank=0.25)
        >>> lengths(layer, [2.0], 2).value.round(6).tolist()
        [[2.0], [1.139951], [0.936355]]
    """
    checks.of_type(layer, LayerMap, "layer")
    q = np.array(checks.floats(starts, "starts"))
    if not (q > 0).all():
        raise StudyError("lengths are larger than 0.", where="lengths")

    def step(layer: LayerMap, q: Array, off: Array) -> tuple[Array, Array]:
        found = layer.lengths(np.concatenate([q, q + off]))
        here, moved = np.split(found.value, 2)
        error = np.broadcast_to(found.error, found.value.shape)[: len(q)]
        return here, error + abs(moved - here)

    return _over_layers(layer, step, (q, np.zeros_like(q)), depth)


def correlations(layer: LayerMap, starts: Sequence[float], depth: int) -> Bounded:
    """The correlations over layers, from several starts, at the fixed point of the lengths.

    Args:
        layer: The layers.
        starts: Correlations in the first layer, from -1 to 1.
        depth: How many layers follow.

    Returns:
        1 - c, a row for each layer, a column for each start: near c = 1 it keeps its digits.

    Raises:
        StudyError: A correlation outside of [-1, 1].

    Source: On the initialisation of wide low-rank feedforward neural networks, figures 7 to 9.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> layer = LayerMap(lookup("relu").fn.expr, 2.0, square=1.0)
        >>> (1 - correlations(layer, [0.5], 2).value).round(6).tolist()
        [[0.5], [0.608998], [0.683906]]
    """
    checks.of_type(layer, LayerMap, "layer")
    x = 1.0 - np.array(checks.floats(starts, "starts"))
    if not ((x >= 0) & (x <= 2)).all():
        raise StudyError("correlations lie between -1 and 1.", where="correlations")
    return _over_layers(layer, correlation_step, (x, EPS * x), depth)


def _over_layers(layer: LayerMap, step: Step, start: tuple[Array, Array], depth: int) -> Bounded:
    rows = [start]
    for _ in range(checks.whole(depth, "depth", least=0)):
        rows.append(step(layer, *rows[-1]))
    values, errors = np.stack(rows, axis=1)
    return Bounded(values, errors, method_of((layer.tau, layer.tau)))


def correlation_step(layer: LayerMap, x: Array, off: Array) -> tuple[Array, Array]:
    """1 - c one layer on, at the fixed point of the lengths, with its error.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> layer = LayerMap(lookup("relu").fn.expr, 2.0, square=1.0)
        >>> value, error = correlation_step(layer, np.array([0.5]), np.zeros(1))
        >>> (1 - value).round(6).tolist(), bool(error[0] < 1e-14)
        ([0.608998], True)
    """
    at = np.maximum(x, 1e-300)
    found = layer.gap_growth(at, FAIR)
    # 1 - C(1 - x) is concave for c >= 0, so that its slope is at most its chord from 0, and that
    # of C is at -c at most what it is at c.
    chord = found.value + found.error
    if (x > 1).any():
        mirror = layer.gap_growth(np.maximum(np.where(x > 1, 2 - x, x), 1e-300), FAIR)
        chord = mirror.value + mirror.error
    near = np.where(x > 1, 2 - x, x)
    chi = layer.chi.value + layer.chi.error
    steep = np.where(near > 2 * off, chord * near / np.maximum(near - off, 1e-300), chi)
    value = np.where(x > 0, found.value * at, 0.0)
    return value, np.where(x > 0, found.error * at, 0.0) + np.minimum(steep, chi) * off


@dataclass(frozen=True, eq=False)
class ScaleCurve(Shown):
    """How far correlations reach, against the variance of the weights, for given biases.

    Args:
        weights: sigma_w^2.
        scales: xi_c at each.
        rates: 1 / xi_c at each.
        error: A bound on the error of ``rates``.
        chi: chi at each.
    """

    weights: Array
    scales: Array
    rates: Array
    error: float
    chi: Array


@of_activation
def scale_curve(
    tau: Expr, biases: float, low: float, high: float, rank: float = 1.0, points: int = 60
) -> ScaleCurve:
    """The depth scale of correlations, which has its pole at the edge of chaos.

    Each length q above the variance of the biases is a fixed point for one variance of the weights,
    so that the curve is found by q. Unstable fixed points are left out.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        biases: sigma_b^2, above 0.
        low: The smallest sigma_w^2.
        high: The largest.
        rank: Rank over width.
        points: How many lengths q are taken.

    Returns:
        The scales and their inverses by the variance of the weights, and a bound.

    Raises:
        StudyError: No such variances.
        EvaluationError: No stable length belongs to them.

    Source: On the initialisation of wide low-rank feedforward neural networks, figure 11.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> found = scale_curve(lookup("erf").fn.expr, 0.1, 1.0, 3.0, points=20)
        >>> bool((found.scales > 0).all()), bool((np.diff(found.weights) > 0).all())
        (True, True)
    """
    gamma = checked_rank(rank, "scale_curve")
    b = gamma * float(checks.real(biases, "biases"))
    if not b > 0 or not 0 < checks.real(low, "low") < checks.real(high, "high"):
        raise StudyError(
            f"biases have the variance {biases}, weights from {low} to {high}.",
            where="scale_curve",
            hint="All are larger than 0, the second of weights above the first.",
        )
    q = _squares(tau, b, (gamma * float(low), gamma * float(high)), points)
    second, slope = means((tau, tau), q), derivative(tau, Var(0))
    w = (q - b) / second.value
    slopes = means((slope, slope), q)
    chi = w * slopes.value
    c, off = np.ones(len(q)), np.zeros(len(q))
    some = chi > 1
    if some.any():
        c[some], off[some] = _stable(tau, q[some], w[some], b)
    found = products(slope, q, q, q * c)
    moved = products(slope, q, q, q * np.minimum(c + off, 1.0))
    steep = w * found.value
    error = w * (found.error + np.abs(moved.value - found.value)) / steep + EPS
    rates = -np.log(steep)
    return ScaleCurve(w / gamma, 1 / rates, rates, float(np.max(error)), chi)


def _squares(tau: Expr, b: float, weights: tuple[float, float], points: int) -> Array:
    """Stable fixed points q for variances of the weights between two."""
    most = LayerMap(tau, weights[1], b).fixed_points
    stable = [point.square.value for point in most if point.kind == "stable"]
    high = 1.01 * max(stable) if stable else 1e4 * max(b, 1.0)
    q = b + np.geomspace(min(1e-4 * b, 1e-2 * (high - b)), high - b, 400)
    w = (q - b) / means((tau, tau), q).value
    rising = np.gradient(w, q) > 0
    inside = rising & (w >= weights[0]) & (w <= weights[1])
    if inside.sum() < 2:
        raise EvaluationError(
            f"no stable length belongs to weights of the variance {weights[0]:g} to "
            f"{weights[1]:g} with biases of {b:g}."
        )
    # Spread evenly over the weights, not over q.
    order = np.argsort(w[inside])
    w, q = w[inside][order], q[inside][order]
    wanted = np.linspace(w[0], w[-1], points)
    slope = derivative(tau, Var(0))
    excess = w * means((slope, slope), q).value - 1
    near = (w[-1] - w[0]) * np.geomspace(1e-5, 0.5 / points, 8)
    for k in np.flatnonzero(np.sign(excess[1:]) != np.sign(excess[:-1])):
        # More points where the scale has a pole.
        pole = w[k] - excess[k] * (w[k + 1] - w[k]) / (excess[k + 1] - excess[k])
        wanted = np.concatenate([wanted, pole - near, pole + near])
    wanted = np.unique(wanted[(wanted >= w[0]) & (wanted <= w[-1])])
    found: Array = np.interp(wanted, w, q)
    return found


def _stable(tau: Expr, q: Array, w: Array, b: float) -> tuple[Array, Array]:
    """c* for many lengths at once with its error, by Newton's method from 0, which is below it."""
    slope, c, off = derivative(tau, Var(0)), np.zeros(len(q)), np.zeros(len(q))
    left = np.arange(len(q))
    for _ in range(NEWTON):
        at, length = q[left] * c[left], q[left]
        found = products(tau, length, length, at)
        change = (w[left] * found.value + b) / length - c[left]
        steep = np.minimum(w[left] * products(slope, length, length, at).value - 1, -1e-12)
        doubt = w[left] * found.error / length + 4 * EPS
        off[left] = 2 * (np.abs(change) + doubt) / -steep
        # The map is convex: steps from below stay below, and end where the change is rounding.
        step = np.where(change > doubt, -change / steep, 0.0)
        c[left] = np.minimum(c[left] + step, 1.0)
        left = left[step > 1e-12]
        if not left.size:
            break
    return c, off
