"""How deep networks of one kind behave: order, edge and chaos, types, the depth for a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import exp, fsum, inf, log, pi, sqrt
from typing import NamedTuple

import numpy as np

from tpcalc import checks
from tpcalc.errors import EvaluationError, StudyError, UsageError
from tpcalc.functions import Expr, Fn, Var
from tpcalc.functions.fn import derivative, slope_or_none
from tpcalc.functions.tape import values
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.integrals.given import Act, whole
from tpcalc.integrals.quadrature.polynomial import coefficients
from tpcalc.integrals.quadrature.shape import shape
from tpcalc.meanfield.activations.covariance import CovarianceKernel
from tpcalc.meanfield.drift import drift
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.maps.correlation import CorrelationMap
from tpcalc.meanfield.maps.layer_map import LayerMap
from tpcalc.meanfield.nonlinearity import coefficient
from tpcalc.meanfield.notation.architectures import Design, mlp
from tpcalc.meanfield.operations import batches, weights_of
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.meanfield.recursion import ONE, propagate
from tpcalc.meanfield.state import State, ratio
from tpcalc.meanfield.survey import repeated
from tpcalc.networks.own import is_network
from tpcalc.practice.limits import bottlenecks
from tpcalc.practice.rewrites import TAU
from tpcalc.results import CovarianceMap, Estimate, Method, Status
from tpcalc.results.sheet import CovarianceClass
from tpcalc.shown import Rows, Shown

WORDS = {None: "linear", 1: "order", 2: "edge", 3: "chaos"}
PHASES: dict[str, CovarianceClass] = {
    "ordered": "ordered",
    "edge of chaos": "edge",
    "chaotic": "chaotic",
}
CLOSE = 0.1  # 1 - c up to which a limit of correlations counts as all but 1
DONE, LAYERS, MOST = 1e-13, 1000, 2048
STEP = 1e-7  # beside a kink, where slopes are read
NEVER = Estimate(inf, 0.0, Method.EXACT, Status.EXACT)


@dataclass(frozen=True, slots=True)
class DepthRow(Shown):
    """A network of some depth.

    Args:
        activations: M, the number of layers of activations.
        macro_layers: M + 1, the number of dense layers: the last has no activation behind it.
        nlc: The nonlinearity coefficient from the input on.
        bias: LBIAS, sqrt(q / (q - c)).
    """

    activations: int
    macro_layers: int
    nlc: Estimate
    bias: Estimate


@dataclass(frozen=True, slots=True)
class Trichotomy(Shown):
    """Order, edge or chaos of a plain network, and what its depth does.

    Args:
        activation: Its activation.
        case: 1 (order), 2 (edge), 3 (chaos); None where it is linear.
        word: The case in a word.
        square: q', the second moment of preactivations, which layers keep; None where lengths go to
            0 or to infinity, or where every length is kept.
        chi: The slope at 1 of the map of correlations, at these lengths.
        gradient: The growth of mean squared gradients with each layer: chi, times the growth of
            squared lengths where they have one.
        limit: The correlation that inputs tend to.
        depth_scale: Layers over which the distance to it falls to 1/e.
        nlc_growth: The factor of the nonlinearity coefficient with each layer of a deep network.
        bias_growth: That of LBIAS.
        nlc_limit: What the coefficient tends to from independent inputs; infinite where it grows.
        bias_limit: What LBIAS tends to.
        edge_power: p of both ~ a M^p at the edge: 1 where the activation has kinks, else 1/2; 0 off
            the edge.
        edge_factor: a of that; None off the edge, or where kinks are not known.
        depths: Networks of some depths.

    Source: Schoenherr, The nonlinearity coefficient, section 5.4.3 (Theorem 7) and chapter 8.
    """

    activation: str
    case: int | None
    word: str
    square: Estimate | None
    chi: Estimate
    gradient: Estimate
    limit: Estimate
    depth_scale: float
    nlc_growth: float
    bias_growth: float
    nlc_limit: Estimate
    bias_limit: Estimate
    edge_power: float
    edge_factor: Estimate | None
    depths: tuple[DepthRow, ...]


def trichotomy(
    source: Act | Layers,
    weights: float | None = None,
    biases: float | None = None,
    depths: Sequence[int] = (1, 5, 19, 49),
) -> Trichotomy:
    """Whether deep plain networks are in order, at the edge or in chaos, and what grows how fast.

    Args:
        source: An activation, or a network of one layer that is repeated, which says its variances
            itself. Without variances an activation is scaled so that layers keep q = 1.
        weights: The variance of the weights, times the fan-in.
        biases: The variance of the biases; by default there are none.
        depths: How many activations the networks of ``depths`` have.

    Returns:
        The case with its rates, its limits and its depth scale.

    Raises:
        StudyError: A network whose layers differ, or that has normalisations or branches: no case
            is defined there.
        UsageError: A network and variances, biases without weights, depths below 1.
        EvaluationError: Lengths leave the floating-point range.

    Source: Schoenherr, The nonlinearity coefficient, sections 5.4.3, 8.2 and 9.5.

    Example:
        >>> found = trichotomy("softplus", depths=[19])
        >>> found.word, round(found.chi.value, 5), round(found.nlc_limit.value, 3)
        ('order', 0.31846, 1.057)
        >>> round(found.depths[0].bias.value)
        55583
    """
    sizes = [checks.whole(k, "a depth", least=1) for k in checks.sequence(depths, "depths")]
    own = _asked(source, weights, biases)
    kernel, found = own.kernel, _found(own.kernel)
    rows = {row.activations: row for row in islice(_followed(kernel), max(sizes, default=0))}
    power, factor = _edge(kernel) if found.kind == "edge" else (0.0, None)
    settles = {"ordered": lambda: _settled(kernel), "linear": lambda: ONE.estimate()}
    apart = 1 - bounded(found.limit)
    return Trichotomy(
        activation=own.text,
        case=found.case,
        word=WORDS[found.case],
        square=own.square,
        chi=found.end_slope,
        gradient=(kernel.chi * own.growth).estimate(),
        limit=found.limit,
        depth_scale=found.depth_scale,
        nlc_growth=found.nlc_growth,
        bias_growth=found.end_slope.value**-0.5 if found.kind == "ordered" else 1.0,
        nlc_limit=settles.get(found.kind, lambda: NEVER)(),
        bias_limit=apart.inverse().root().estimate() if apart.value > apart.error else NEVER,
        edge_power=power,
        edge_factor=factor.estimate() if factor else None,
        depths=Rows(rows[size] for size in sizes),
    )


class _Plain(NamedTuple):
    """A layer that is repeated: what it does to correlations, and to lengths."""

    text: str
    kernel: CorrelationMap
    growth: Bounded
    square: Estimate | None


def _asked(source: Act | Layers, weights: float | None, biases: float | None) -> _Plain:
    if is_network(source) or hasattr(source, "layers"):
        if not weights is biases is None:
            raise UsageError("a network says its variances itself.", where="trichotomy")
        layer = repeated(source)
        own = layer.activation
        assert own is not None
        return _with(own.name, own.expr, float(layer.weights), float(layer.biases))
    given = whole(source, "trichotomy")
    if weights is not None:
        return _with(given.text, given.expr, weights, biases or 0.0)
    if biases:
        raise UsageError("biases come with no variance of the weights.", where="trichotomy")
    return _Plain(given.text, CovarianceKernel(given.expr), ONE, ONE.estimate())


def _with(text: str, tau: Expr, weights: float, biases: float) -> _Plain:
    layer = LayerMap(tau, weights, biases, square=1.0)
    moving = drift(layer)
    if moving is not None:
        ends = {"0": Estimate(0.0, 0.0, Method.EXACT, Status.EXACT), "infinity": NEVER}
        return _Plain(text, moving.scaled, moving.growth, ends.get(moving.end))
    kept = None if layer.every_length else layer.fixed_point.estimate()
    return _Plain(text, layer, ONE, kept)


def _found(kernel: CorrelationMap) -> CovarianceMap:
    """What becomes of correlations, whatever layer it is."""
    if isinstance(kernel, CovarianceKernel):
        return kernel.found
    line = coefficients(kernel.tau)
    kind: CovarianceClass = (
        "linear" if line is not None and len(line) <= 2 else PHASES[kernel.phase]
    )
    limit = kernel.stable_correlation
    if kind == "linear":
        limit = ONE if kernel.effective[1].value else Bounded(0.0)
    slope = kernel.correlation_slope(limit) if kind == "chaotic" else kernel.chi
    parts = (kernel.correlation(0.0), kernel.correlation_slope(0.0), kernel.chi, limit, slope)
    zero, first, end, known, last = (part.estimate() for part in parts)
    return CovarianceMap(zero, first, end, kind, "", known, last)


def _followed(kernel: CorrelationMap) -> Iterator[DepthRow]:
    """Networks of all depths whose inputs are independent."""
    gap = 1 - kernel.effective[1] / kernel.fixed_point
    square, depth = ONE, 0
    while True:
        depth, after = depth + 1, kernel.gap(gap)
        square = square * ratio(kernel.chi * gap, after)
        bias = after.inverse().root()
        yield DepthRow(depth, depth + 1, square.root().estimate(), bias.estimate())
        gap = after


def _settled(kernel: CorrelationMap) -> Estimate:
    """The limit of the coefficient in order: steps fall like chi, like its root beside kinks."""
    rate, before = sqrt(kernel.chi.value), 0.0
    for row in islice(_followed(kernel), LAYERS):
        step, before = log(row.nlc.value) - before, log(row.nlc.value)
        if step <= DONE:
            break
    left = row.nlc.value * abs(step) * rate / (1 - rate)
    return (bounded(row.nlc) + Bounded(0.0, left)).estimate()


def _edge(kernel: CorrelationMap) -> tuple[float, Bounded | None]:
    """The p and a of 1 / sqrt(1 - c) ~ a M^p, by the slope C'(1 - x) of the map for small x.

    It is 1 - B sqrt(x) with a kink at p where tau' jumps by J: B = w J^2 phi(p / sqrt(q)) /
    sqrt(pi), and a = B / 3. Where tau is smooth it is 1 - C'' x with C'' = w q E tau''^2, and
    a = sqrt(C'' / 2).
    """
    (w, _), q = kernel.effective, kernel.fixed_point
    slope, bends = derivative(kernel.tau, Var(0)), shape(kernel.tau)
    if bends is not None and bends.smooth:
        curved = w * q * Kernels(slope).slope(q)
        return 0.5, (curved * 0.5).root()
    places = [] if bends is None else [part.place for part in bends.features if part.kink]
    if not places or slope_or_none(kernel.tau, Var(0)) is None:
        return 1.0, None
    at, step = np.array(places), STEP * np.maximum(1.0, np.abs(places))
    below, above = (values(Fn(slope, 1), at + side * step) for side in (-1, 1))
    weight = np.exp(-(at**2) / (2 * q.value)) / sqrt(2 * pi) / sqrt(pi) / 3
    total = float(np.sum((above - below) ** 2 * weight))
    return 1.0, w * Bounded(total, 4 * STEP * total, Method.QUADRATURE)


def least_depth(design: Design | Callable[[int], Layers], target: float) -> DepthRow:
    """The shallowest network of a kind whose nonlinearity coefficient is at least a target.

    Args:
        design: What layers of a fully connected network are, or a function of the number of
            activations that gives a network; deeper ones are not closer to linear.
        target: The coefficient, above 1.

    Returns:
        The network of this depth.

    Raises:
        UsageError: A target that is not above 1.
        EvaluationError: The coefficient stays below it, as in order, or a depth cannot be followed.

    Source: Schoenherr, The nonlinearity coefficient, section 8.2.

    Example:
        >>> found = least_depth(Design("relu", 2, norm="batch"), 2)
        >>> found.activations, found.macro_layers, round(found.nlc.value, 4)
        (4, 5, 2.1519)
    """
    target = float(checks.real(target, "the target", above=1))
    made = (lambda depth: mlp(depth, design)) if isinstance(design, Design) else design

    def at(depth: int) -> DepthRow:
        states = propagate(layers(made(depth)))
        nlc, bias = coefficient(states[0], states[-1]), states[-1].shared.estimate()
        return DepthRow(depth, depth + 1, nlc, bias)

    low, found = 0, at(1)
    while found.nlc.value < target:
        low, before = found.activations, found.nlc.value
        if low >= MOST or (low >= 16 and log(before) < log(target) * low / MOST):
            raise EvaluationError(
                f"the coefficient is {before:.6g} with {low} activations, and does not come to "
                f"{target:g} within {MOST}.",
                where="least_depth",
                hint="In order it tends to a limit (tp.signal.practice.trichotomy); remove the "
                "mean of the activation, or put batch norm in front of it.",
            )
        found = at(2 * low)
    while found.activations - low > 1:
        middle = at((found.activations + low) // 2)
        if middle.nlc.value < target:
            low = middle.activations
        else:
            found = middle
    return found


EXPECTED = {
    1: "a small coefficient, a large LBIAS",
    2: "a coefficient and an LBIAS that grow like the depth",
    3: "a large coefficient, an LBIAS near its limit",
}


@dataclass(frozen=True, slots=True)
class ArchitectureType(Shown):
    """What the depth of an architecture is paid with: its type.

    Args:
        type: 1 to 3. Batch norm makes it 3; so does a slope above 1, unless correlations come as
            close to 1 as at the edge.
        expected: What deep networks of the type have.
        case: That of the slope alone: 1 below 1, 2 at 1, 3 above.
        chi: The slope at 1 of the maps of correlations of its activations, a geometric mean.
        limit: The correlation that the last activation leads to.
        batch_norm: Whether there is batch norm, which takes out what inputs share.

    Source: Schoenherr, The nonlinearity coefficient, section 8.2.
    """

    type: int
    expected: str
    case: int
    chi: float
    limit: Estimate
    batch_norm: bool


def architecture_type(
    network: Layers, tolerance: float = 1e-6, close: float = CLOSE
) -> ArchitectureType:
    """The type of a whole architecture, by its activations at the lengths that they read.

    Args:
        network: The network.
        tolerance: How far from 1 a slope counts as 1.
        close: How far from 1 a limit of correlations counts as 1.

    Returns:
        The type, and what decides it.

    Raises:
        StudyError: A network that the recursion does not follow, or without activations.

    Source: Schoenherr, The nonlinearity coefficient, section 8.2.

    Example:
        >>> architecture_type(mlp(3, Design("relu", 2, norm="layer"))).type
        2
        >>> found = architecture_type(mlp(3, Design("even_tanh", 2.5362, norm="layer")))
        >>> found.type, found.case, round(found.limit.value, 4)
        (2, 3, 0.9866)
    """
    tolerance = float(checks.real(tolerance, "the tolerance", least=0))
    close = float(checks.real(close, "close", least=0))
    graph = layers(network)
    kernels = _kernels(graph, propagate(graph))
    if not kernels:
        raise StudyError("a network without activations has no type.", where="architecture_type")
    chi = exp(fsum(log(kernel.chi.value) for kernel in kernels) / len(kernels))
    case = 2 if abs(chi - 1) <= tolerance else 3 if chi > 1 else 1
    batch_norm = bool(batches(layer.operation for layer in graph.layers))
    limit = bounded(kernels[-1].found.limit)
    near = case == 3 and 1 - limit.value < close
    type_ = 3 if batch_norm else 2 if near else case
    return ArchitectureType(type_, EXPECTED[type_], case, chi, limit.estimate(), batch_norm)


def _kernels(graph: LayerGraph, states: Sequence[State]) -> list[CovarianceKernel]:
    """The maps of correlations of all activations, at the lengths that they read."""
    return [
        CovarianceKernel(tau, states[layer.parents[0]].square.value)
        for layer in graph.layers
        if (tau := TAU(layer.operation)) is not None
    ]


@dataclass(frozen=True, slots=True)
class UnitRow(Shown):
    """A residual unit: what is added, and what becomes of it.

    Args:
        layer: The number of the sum.
        start: The last layer before it that all paths lead through.
        shares: Of each branch w^2 (q - c), as a share of that of the sum.
        branches: The coefficient of each branch from ``start`` on.
        nlc: That of the unit: its square is the mean of those of branches, by shares.
        total: The coefficient of the sum as a function of the input.
        bias: LBIAS of the sum.
        square: q of the sum.
        power: Of as many units the coefficient grows like this power of their number where
            normalisations stand in blocks: half of what the last branch has above 1, squared.
    """

    layer: int
    start: int
    shares: tuple[Estimate, ...]
    branches: tuple[Estimate, ...]
    nlc: Estimate
    total: Estimate
    bias: Estimate
    square: Estimate
    power: float


def residual_units(network: Layers) -> tuple[UnitRow, ...]:
    """The sums of a network as residual units.

    n^2 of a unit is 1 + w^2 v (n_r^2 - 1) / sum w^2 v where the skip is linear, with v = q - c.

    Args:
        network: The network.

    Returns:
        A row for each sum of two or more layers.

    Raises:
        StudyError: A network that the recursion does not follow.

    Source: Schoenherr, The nonlinearity coefficient, section 8.9, with n_r^2 - 1 where n_r^2 is
        printed.

    Example:
        >>> from fractions import Fraction
        >>> from tpcalc.meanfield.notation.architectures import resnet
        >>> from tpcalc.meanfield.operations import Input
        >>> net = resnet(10, Design("relu", 2, norm="batch"), Input(Fraction(1, 2)))
        >>> rows = residual_units(net)
        >>> round(rows[0].nlc.value, 5), round(rows[-1].total.value, 5)
        (1.09054, 1.48947)
    """
    graph = layers(network)
    states, found = propagate(graph), []
    for index, (layer, through) in enumerate(zip(graph.layers, bottlenecks(graph), strict=True)):
        weights = [bounded(w) * bounded(w) for w in weights_of(layer.operation)]
        if len(weights) > 1:
            parts = list(zip(weights, (states[p] for p in layer.parents), strict=True))
            found.append(_unit(index, max(through - {index}), parts, states))
    return Rows(found)


def _unit(
    index: int, start: int, parts: list[tuple[Bounded, State]], states: Sequence[State]
) -> UnitRow:
    own, first = states[index], states[start]
    shares = tuple(ratio(w * state.gap, own.gap).estimate() for w, state in parts)
    branches = tuple(coefficient(first, state) for _, state in parts)
    both = coefficient(first, own), coefficient(states[0], own)
    power = (branches[-1].value ** 2 - 1) / 2
    sizes = own.shared.estimate(), own.square.estimate()
    return UnitRow(index, start, shares, branches, *both, *sizes, power)
