"""One layer as a function of another: lengths of Jacobians and nonlinearity in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.engine.device.devices import load_torch
from tpcalc.networks.order import no_bottleneck, no_such_layers, not_made_from
from tpcalc.nonlinearity.tensors.layer_moments import LayerMoments, layer_moments
from tpcalc.nonlinearity.tensors.shard import Shard, numbers, shard_of
from tpcalc.nonlinearity.tensors.taps import HasLayers, measuring
from tpcalc.nonlinearity.tensors.uncertainty import Measured, mean_of, mean_of_draws, root_of_ratio
from tpcalc.results import Estimate
from tpcalc.shown import Rows, Shown

Tensor = Any
_DRAWN = ("inputs", "others")


@dataclass(frozen=True)
class Between(Shown):
    """Layer l as a function of layer m.

    Attributes:
        start: m.
        end: l.
        jacobian: JACF: Frobenius norm of the derivative, over the root of the neurons of l.
        numerator: NLCNUM: root of E Tr J Cov_m J^T over the neurons of l.
        nlc: The nonlinearity coefficient of l as a function of m.
    """

    start: int
    end: int
    jacobian: Estimate
    numerator: Estimate
    nlc: Estimate


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
        network: A drawn network, or ``tapped(module)``.
        x: The inputs, on the network's device.
        pairs: Pairs (m, l) of numbers of layers, m before l; every path to l leads through m.
        batch: Inputs of a batch; None: 250, or all if there are fewer.
        draws: Pairs of batches.
        seed: The seed.

    Returns:
        A row for each pair, in their order.

    Raises:
        UsageError: No such layers, or a path leads around m.
        EvaluationError: A layer, or a derivative, is not finite.

    Source: Schoenherr, The nonlinearity coefficient, sections 4.4.14 and 5.3.2.

    Example:
        >>> from tpcalc.nonlinearity.tensors.surrogates import gaussian_inputs
        >>> from tpcalc.nonlinearity.tensors.taps import Tapped
        >>> cubes = Tapped(lambda x: [h := 2 * x, h**3])
        >>> (row,) = between(cubes, gaussian_inputs(400, 20), [(1, 2)])
        >>> abs(row.nlc.value - (9 / 5) ** 0.5) < 0.1
        True
    """
    wanted = tuple((int(start), int(end)) for start, end in pairs)
    draws = checks.whole(draws, "draws", least=2)
    shard = shard_of(x, batch, seed)
    with measuring(network):
        moments = layer_moments(network, shard)
        _check(network, wanted, len(moments))
        terms = _terms(network, shard, wanted, moments, draws)
    places, others = (
        np.array([shard.places(what, draw) for draw in range(draws)]) for what in _DRAWN
    )
    found = []
    for start, end in wanted:
        numerator, columns, frobenius = terms[start, end]
        size, one = moments[end].size, Measured(1.0, 0.0)
        over = mean_of_draws(numerator, len(shard), places, others, columns)
        over = over.times(shard.correction / size)
        spread = mean_of(moments[end].deviations).times(shard.correction)
        jacobian = mean_of_draws(frobenius, len(shard), places).times(1 / size)
        found.append(
            Between(
                start,
                end,
                root_of_ratio(jacobian, one, seed),
                root_of_ratio(over, one, seed),
                root_of_ratio(over, spread, seed),
            )
        )
    return Rows(found)


def _check(network: HasLayers, pairs: Sequence[tuple[int, int]], count: int) -> None:
    leads: Callable[[int, int], bool] | None = getattr(network, "is_bottleneck", None)
    for start, end in pairs:
        if not 0 <= start < end < count:
            raise no_such_layers(start, end, count - 1)
        if leads is not None and not leads(start, end):
            raise no_bottleneck(start, end)


def _terms(
    network: HasLayers,
    shard: Shard,
    pairs: Sequence[tuple[int, int]],
    moments: Sequence[LayerMoments],
    draws: int,
) -> dict[tuple[int, int], tuple[Any, Any, Any]]:
    torch = load_torch()
    means = {
        start: torch.from_numpy(moments[start].mean).to(shard.rows.device) for start, _ in pairs
    }
    numerators: dict[tuple[int, int], list[Any]] = {pair: [] for pair in pairs}
    columns: dict[tuple[int, int], list[Any]] = {pair: [] for pair in pairs}
    frobenius: dict[tuple[int, int], list[Any]] = {pair: [] for pair in pairs}
    for draw in range(draws):
        with torch.no_grad():
            others = network.layers(shard.drawn("others", draw))
            away = {m: _rows(others[m]) - mean for m, mean in means.items()}
        layers = network.layers(shard.drawn("inputs", draw).detach().requires_grad_())
        for end in sorted({end for _, end in pairs}):
            starts = [m for m, known in pairs if known == end]
            u = shard.noise(layers[end], f"layer {end}", draw)
            parts = [layers[m] for m in starts]
            pulled = torch.autograd.grad(
                layers[end], parts, u, retain_graph=True, allow_unused=True
            )
            for m, back in zip(starts, pulled, strict=True):
                if back is None:
                    raise not_made_from(f"layer {end}", m)
                g = _rows(back)
                squares = (g @ away[m].T) ** 2
                numerators[m, end].append(numbers(squares.mean(1)))
                columns[m, end].append(numbers(squares.mean(0)))
                frobenius[m, end].append(numbers((g * g).sum(1)))
    return {
        pair: (np.array(numerators[pair]), np.array(columns[pair]), np.array(frobenius[pair]))
        for pair in pairs
    }


def _rows(layer: Tensor) -> Tensor:
    return layer.reshape(len(layer), -1).to(load_torch().float64)
