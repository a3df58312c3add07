"""Metrics of layers at several widths, each over several networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tpcalc.errors import UnknownName, UsageError
from tpcalc.finite.layered.network import Layered
from tpcalc.finite.layered.steps import Step
from tpcalc.finite.layered.surrogates import sphere_inputs
from tpcalc.finite.nonlinearity.layer_metrics import layer_metrics
from tpcalc.finite.statistics import summary
from tpcalc.results import Estimate, checks

__all__ = ["METRICS", "WidthRow", "width_sweep"]

METRICS = (
    "root_mean_square",
    "scale",
    "mean_scale",
    "deviation_scale",
    "bias",
    "jacobian",
    "numerator",
    "nlc",
)
"""What ``layer_metrics`` measures of every layer, and a limit is known of."""


@dataclass(frozen=True, slots=True)
class WidthRow:
    """One metric of one layer at one width.

    Args:
        width: The width n.
        layer: Number of the layer.
        metric: One of ``METRICS``.
        value: The mean over networks; its ``std`` is their scatter, the band of a plot.
    """

    width: int
    layer: int
    metric: str
    value: Estimate


def width_sweep(
    steps: Sequence[Step],
    widths: Sequence[int],
    seeds: Sequence[int],
    layers: Sequence[int] | None = None,
    *,
    metrics: Sequence[str] = METRICS,
    inputs: Callable[[int, int], Any] | None = None,
    draws: int = 2,
    device: str = "cpu",
    dtype: str = "float64",
) -> tuple[WidthRow, ...]:
    """Measure networks of the same layers at several widths.

    Args:
        steps: The layers.
        widths: The widths.
        seeds: One network for each; two or more.
        layers: Numbers of the layers; None: the output.
        metrics: Which metrics.
        inputs: Gives inputs for a width and a seed; None: 250 on a sphere, as many features as the
            network is wide.
        draws: As of ``layer_metrics``.
        device: Where the networks are.
        dtype: Their number format.

    Raises:
        UnknownName: There is no such metric.
        UsageError: No such layer, or fewer than two seeds.
        EvaluationError: A layer is not finite, or is the same for all inputs.

    Source: Schoenherr, The nonlinearity coefficient, section 5.3.3.

    Example:
        >>> from tpcalc.finite.layered.steps import Dense, Input
        >>> rows = width_sweep([Input(), Dense(2.0)], [20, 40], [0, 1], metrics=["scale"])
        >>> [(row.width, row.layer, row.metric) for row in rows]
        [(20, 1, 'scale'), (40, 1, 'scale')]
    """
    for name in metrics:
        if name not in METRICS:
            raise UnknownName("metric of layers", name, METRICS)
    if len(set(seeds)) < 2:
        raise UsageError(f"{len(set(seeds))} seeds show no scatter.", hint="Give two or more.")
    wanted = [len(steps) - 1] if layers is None else list(layers)
    for layer in wanted:
        if not 0 <= layer < len(steps):
            raise UsageError(
                f"there is no layer {layer}.", hint=f"They are numbered from 0 to {len(steps) - 1}."
            )
    found = []
    for given in widths:
        width = checks.whole(given, "a width", least=1)
        tables = []
        for seed in seeds:
            if inputs is None:
                x = sphere_inputs(250, width, seed=seed, device=device, dtype=dtype)
            else:
                x = inputs(width, seed)
            network = Layered(steps, width, x.shape[1], seed, device, dtype)
            tables.append(layer_metrics(network, x, draws=draws, seed=seed))
        for layer in wanted:
            for name in metrics:
                values = [getattr(table[layer], name).value for table in tables]
                found.append(WidthRow(width, layer, name, summary(values, random=True)))
    return tuple(found)
