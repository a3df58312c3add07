"""Networks of finite width beside the limit: the metrics of layers over seeds and widths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tpcalc import checks
from tpcalc.engine.device.devices import with_device
from tpcalc.errors import EvaluationError, MissingBackend, OutOfMemory, StudyError, UsageError
from tpcalc.integrals.bounded import bounded
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.network import network_of
from tpcalc.meanfield.operations import Input, batches
from tpcalc.meanfield.reading import Layers
from tpcalc.meanfield.state import exponential
from tpcalc.progress import Progress
from tpcalc.results import Estimate, Method, Status
from tpcalc.results.nonlinearity import LayerRow, MeasuredEnd, MeasuredRow, MeasuredValue
from tpcalc.tasks.alone import alone
from tpcalc.tasks.run import results
from tpcalc.tasks.task import Task

if TYPE_CHECKING:
    from tpcalc.nonlinearity.tensors.layers import Between, LayerMetrics

EXACT_ZERO = Estimate(0.0, 0.0, Method.EXACT)
EXACT_ONE = Estimate(1.0, 0.0, Method.EXACT)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which networks are drawn, and on which inputs.

    Args:
        widths: The widths n.
        seeds: How many networks of each width.
        inputs: How many inputs; they have n features and the second moments of the graph's input.
        draws: Batches of directions for derivatives.
        seed: The first seed.
        device: ``"cpu"``, ``"cuda"``, ``"auto"``.
        dtype: ``"float64"`` or ``"float32"``.
        pairs: Pairs (m, l) of numbers of layers: layer l is measured as a function of layer m too.

    Raises:
        UsageError: Counts that are too small.
    """

    widths: tuple[int, ...]
    seeds: int = 4
    inputs: int = 500
    draws: int = 2
    seed: int = 0
    device: str = "cpu"
    dtype: str = "float64"
    pairs: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        sizes = [checks.whole(n, "a width") for n in checks.sequence(self.widths, "widths")]
        seeds, inputs = checks.whole(self.seeds, "seeds"), checks.whole(self.inputs, "inputs")
        if seeds < 2 or inputs < 8 or min(sizes, default=0) < 2:
            raise UsageError(
                f"{self.seeds} seeds, {self.inputs} inputs, widths "
                f"{', '.join(map(str, self.widths)) or 'none'}.",
                hint="A spread takes 2 seeds, metrics take 8 inputs, networks are 2 wide or more.",
            )


_Shared = tuple[Layers, LayerGraph, Sampling]


class _Metrics(NamedTuple):
    """What is measured of one network."""

    layers: tuple[LayerMetrics, ...]
    pairs: tuple[Between, ...]


def measure_layers(
    source: Layers,
    graph: LayerGraph,
    rows: Sequence[LayerRow],
    sampling: Sampling,
    progress: Progress | None = None,
) -> tuple[tuple[MeasuredRow, ...], tuple[MeasuredEnd, ...]]:
    """Every layer of random networks, beside the limit.

    Source: Schoenherr, The nonlinearity coefficient, section 5.3.3 (figures 5.8 to 5.14).
    """
    found: list[MeasuredRow] = []
    ends: list[MeasuredEnd] = []
    shared = source, graph, sampling
    pairs = [(n, sampling.seed + k) for n in sampling.widths for k in range(sampling.seeds)]
    tasks = [Task(f"width {n}, seed {seed}", (n, seed, graph.last)) for n, seed in pairs]
    with with_device(sampling.device):
        whole = iter(results(_tried, tasks, shared=shared, progress=progress))
    for width in sampling.widths:
        networks: list[_Metrics] = []
        last, why = graph.last, ""
        for seed in range(sampling.seed, sampling.seed + sampling.seeds):
            own, reached = next(whole), graph.last
            while isinstance(own, EvaluationError):
                why = why or f"{own.where or 'a layer'}: {own.message}"
                with alone():  # as in tasks
                    if reached == last:
                        last = _measurable(shared, last, width, seed)
                    own, reached = _tried(shared, width, seed, last), last
            networks.append(own)
        if why:
            ends.append(MeasuredEnd(width, last, why))
        for row in rows[: last + 1]:
            layers = [metrics.layers[row.index] for metrics in networks]
            found.append(MeasuredRow(width, row.index, _values(layers, row, sampling.seed)))
        for m, end in (pair for pair in sampling.pairs if pair[1] <= last):
            parts = [next(p for p in own.pairs if (p.start, p.end) == (m, end)) for own in networks]
            values = _of_pair(parts, rows[m], rows[end], sampling.seed)
            found.append(MeasuredRow(width, end, values, m))
    return tuple(found), tuple(ends)


def _measurable(shared: _Shared, last: int, width: int, seed: int) -> int:
    """The last layer of the longest beginning whose numbers stay in range, by halving."""
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if isinstance(_tried(shared, width, seed, middle), EvaluationError):
            high = middle
        else:
            low = middle
    return low


def _tried(
    shared: _Shared, width: int, seed: int, last: int, progress: Progress | None = None
) -> _Metrics | EvaluationError:
    """The metrics of the layers of one network, or why there are none."""
    try:
        return _network(*shared, last, width, seed)
    except (MissingBackend, OutOfMemory):
        raise
    except EvaluationError as error:
        return error


def _network(
    source: Layers, graph: LayerGraph, sampling: Sampling, last: int, width: int, seed: int
) -> _Metrics:
    """The metrics of the layers of one network, up to a last one."""
    from tpcalc.nonlinearity.tensors.functions import gaussian_inputs
    from tpcalc.nonlinearity.tensors.layers import between, layer_metrics

    start = cast("Input", graph.layers[0].operation)
    network = network_of(source, width, width, seed, sampling.device, sampling.dtype)
    if len(network.taps) <= graph.last:
        raise StudyError(
            "the layers of the recursion are no values of the forward pass.",
            where="networks of finite width",
            hint="Write a forward pass whose lines do not depend on the size of its data.",
        )
    network.taps = network.taps[: last + 1]
    q, c = float(start.square), float(start.comean)
    x = gaussian_inputs(sampling.inputs, width, q, c, seed, sampling.device, sampling.dtype)
    sizes = [size for size in batches(o for o, _ in graph.pairs) if size is not None]
    batch = min(sizes, default=None)
    more: dict[str, Any] = {"batch": batch, "draws": sampling.draws, "seed": seed}
    found = layer_metrics(network, x, **more)
    for own in found:
        if not isfinite(own.gaussianity.kurtosis.value):
            raise EvaluationError(
                "fourth powers of its neurons leave the range of float64.",
                where=f"layer {own.layer}",
            )
    pairs = [pair for pair in sampling.pairs if pair[1] <= last]
    return _Metrics(found, between(network, x, pairs, **more) if pairs else ())


def _values(
    layers: Sequence[LayerMetrics], row: LayerRow, seed: int
) -> tuple[tuple[str, MeasuredValue], ...]:
    square = bounded(row.square).root().estimate()
    gradient = exponential(bounded(row.log_gradient) * 0.5).estimate()
    limits: dict[str, tuple[Callable[[Any], Estimate], Estimate]] = {
        "LQM": (lambda own: own.root_mean_square, square),
        "LSCALE": (lambda own: own.scale, square),
        "QMNEX": (lambda own: own.mean_scale, bounded(row.comean).root().estimate()),
        "QMNSTD": (lambda own: own.deviation_scale, bounded(row.gap).root().estimate()),
        "JACF": (lambda own: own.jacobian, gradient),
        "NLCNUM": (lambda own: own.numerator, row.numerator),
        "LBIAS": (lambda own: own.bias, row.bias),
        "NLC": (lambda own: own.nlc, row.total),
        "NKURT": (lambda own: own.gaussianity.kurtosis, EXACT_ZERO),
        "NGHI": (lambda own: own.gaussianity.overlap, EXACT_ONE),
        "CVNSTD": (lambda own: own.gaussianity.deviation_spread, EXACT_ZERO),
        "LCV": (lambda own: own.gaussianity.length_spread, EXACT_ZERO),
    }
    return _each(
        {name: ([of(own) for own in layers], to) for name, (of, to) in limits.items()}, seed
    )


def _of_pair(
    found: Sequence[Between], start: LayerRow, end: LayerRow, seed: int
) -> tuple[tuple[str, MeasuredValue], ...]:
    whole = bounded(end.total) / bounded(start.total)
    grown = exponential((bounded(end.log_gradient) - bounded(start.log_gradient)) * 0.5)
    limits = {
        "JACF": ([own.jacobian for own in found], grown.estimate()),
        "NLCNUM": ([own.numerator for own in found], (whole * bounded(end.gap).root()).estimate()),
        "NLC": ([own.nlc for own in found], whole.estimate()),
    }
    return _each(limits, seed)


def _each(
    found: Mapping[str, tuple[Sequence[Estimate], Estimate]], seed: int
) -> tuple[tuple[str, MeasuredValue], ...]:
    return tuple((name, _over_seeds(*both, seed)) for name, both in found.items())


def _over_seeds(values: Sequence[Estimate], limit: Estimate, seed: int) -> MeasuredValue:
    numbers = [each.value for each in values]
    spread, count = stdev(numbers), len(numbers)
    counts = Status.CONVERGED, count, count
    mean = Estimate(fmean(numbers), spread / sqrt(count), Method.FINITE, *counts, seed)
    return MeasuredValue(mean, spread, limit)
