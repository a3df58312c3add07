"""Base learning rates of the first step, and how they grow with the width.

In the first step each layer gets a base rate of its own, with which its update contributes 1 to
the preactivations of the next batch. For homogeneous activations these rates do not depend on the
width; where they grow like a power of it, they make up for a contribution that vanishes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import Exploded, UsageError
from tpcalc.finite.networks.gradients import Gradients
from tpcalc.finite.statistics import Slope
from tpcalc.finite.training.steps import Updates, marks_of
from tpcalc.names import layered
from tpcalc.program.types import Ref

# Narrower networks have corrections as large as the powers that are looked for.
_NARROWEST = 16
_FEWEST = 3


def calibrated_rates(
    gradients: Gradients, second: Any, updates: Updates, cap: float
) -> tuple[float, ...]:
    """Base rates of the layers 1..L+1 for the update on the batch that gradients are of.

    From the first layer to the last: with base rate 1 the update of layer l changes its
    preactivations on the second batch by Delta^l = Delta W^l x^{l-1} + Delta B^l, where the x^{l-1}
    come from the layers below with the rates they were given; its rate is 1 / mean |Delta^l|, and
    at most ``cap``. The network stays as it is.

    Source: Hajjar, Chizat, Giraud, section 6.1, layer by layer as in their published code.
    """
    network = gradients.network
    program = network.program
    rates: list[float] = []
    seen: dict[Ref, Any] = {}
    marks = marks_of(program).items()
    written = {program.ref(layered("W_x", mark.label)): mark.layer - 1 for _, mark in marks}
    weights = {mark.layer - 1: name for name, mark in marks if not mark.bias}
    biases = {mark.layer - 1: name for name, mark in marks if mark.bias}
    reads = {layer: gradients.products[name][0].use.reads for layer, name in weights.items()}
    left = updates.scales.kept(0)

    def change(ref: Ref, z: Any) -> Any:
        if ref in written:
            layer = written[ref]
            read, name = seen[reads[layer]], biases.get(layer)
            contribution = updates.contribution(gradients, weights[layer], read)
            if name is not None:
                contribution += updates.contribution(gradients, name, read)
            rates.append(_rate(contribution, layer, network.width, cap))
            shift = 0.0 if name is None else network.parameters[name]
            kept = z if left[layer] == 1 else (z - shift) * left[layer] + shift
            z = kept + contribution * rates[-1]
        seen[ref] = z
        return z

    for _ in network.walk(network.known(second), written.keys(), change):
        pass
    return tuple(rates)


def _rate(contribution: Any, layer: int, width: int, cap: float) -> float:
    size = float(contribution.abs().mean())
    if not size < float("inf"):
        raise Exploded(
            f"the update of layer {layer + 1} with base rate 1 contributes {size}.",
            where=f"width {width}",
            hint="Use float64 for the first step, or a smaller width.",
        )
    return cap if size * cap <= 1 else 1 / size


def rate_slopes(
    rates: Mapping[int, Sequence[Sequence[float]]], cap: float | None = None
) -> tuple[Slope, ...]:
    """The power of n in the calibrated rates of each layer.

    A line is fitted to the means of their logarithms, all widths alike: rates are inverses of
    small numbers, so a mean of them would follow the largest. Its interval uses the spread over
    trials; where the points lie further from the line than that explains, it is wider by the
    ratio.

    Source: Hajjar, Chizat, Giraud, section 6.1.

    Example:
        >>> rates = {n: [[1.0, 2 * n**0.5], [1.1, 2.1 * n**0.5]] for n in (64, 256, 1024)}
        >>> [abs(round(found.value, 3)) for found in rate_slopes(rates)]
        [0.0, 0.5]
    """
    widths = sorted(rates)
    if len(widths) < _FEWEST or widths[0] < _NARROWEST:
        raise UsageError(
            f"the widths {', '.join(map(str, widths))} are too few or too small for a slope fit.",
            hint=f"Give at least {_FEWEST} widths, all of at least {_NARROWEST}.",
        )
    depths = {len(row) for width in widths for row in rates[width]}
    if len(depths) != 1:
        raise UsageError(
            f"rates of {', '.join(map(str, sorted(depths))) or 'no'} layers are given.",
            hint="Compare networks of one depth.",
        )
    return tuple(_layer_slope(rates, widths, layer, cap) for layer in range(depths.pop()))


def _layer_slope(
    rates: Mapping[int, Sequence[Sequence[float]]],
    widths: Sequence[int],
    layer: int,
    cap: float | None,
) -> Slope:
    logs = []
    for width in widths:
        found = np.array([row[layer] for row in rates[width]], dtype=np.float64)
        if cap is not None and np.any(found >= cap):
            return Slope(reason=f"at width {width} a rate reached the cap {cap:g}")
        if len(found) < 2:
            return Slope(reason=f"one trial at width {width}, and a slope needs at least 2")
        if not np.all((found > 0) & np.isfinite(found)):
            return Slope(reason=f"at width {width} a rate is not a positive number")
        logs.append(np.log(found))
    return _line(np.log(np.array(widths, dtype=np.float64)), logs)


def _line(x: Array, logs: Sequence[Array]) -> Slope:
    """The slope of the means, with its 95 % interval."""
    from scipy.special import stdtrit

    means = np.array([np.mean(found) for found in logs])
    errors = np.array([np.var(found, ddof=1) / len(found) for found in logs])
    x = x - np.mean(x)
    value = float(x @ means / (x @ x))
    off = means - np.mean(means) - value * x
    variance = float(np.mean(errors))
    excess = float(off @ off) / (len(x) - 2)
    error = float(np.sqrt(x**2 @ errors)) / float(x @ x)
    if excess > variance > 0:
        error *= (excess / variance) ** 0.5
    half = float(stdtrit(sum(len(found) - 1 for found in logs), 0.975)) * error
    return Slope(value, value - half, value + half)
