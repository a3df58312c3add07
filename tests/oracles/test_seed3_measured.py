"""Low-rank networks measured beside theory, by public calls: rows S3.10 and S3.14."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import UnknownName, UsageError

pytestmark = pytest.mark.torch
s = tp.signal


def graph(rank: str, depth: int, weights: float, biases: float = 0.0, act: str = "tanh") -> Any:
    """Layers of low rank; the activation is read by the next one."""
    rows, last = ["x = input(1, 0)"], "x"
    for k in range(1, depth + 1):
        rows.append(f"w{k} = dense({last}, {weights}, rank={rank})")
        last = f"w{k}"
        if biases:
            rows.append(f"b{k} = span_bias(w{k}, {biases}, {rank})")
            last = f"b{k}"
        if act and k < depth:
            rows.append(f"a{k} = {act}({last})")
            last = f"a{k}"
    return s.parse_graph("\n".join(rows))


def gradients(depth: int, width: int, rank: str, seeds: int, asked: tuple[int, ...]) -> Any:
    """Cross-entropy over ten of the outputs, with labels, beside theory."""
    import torch

    share = eval(rank)
    weights, biases = 1.7 / share, 0.05 / share
    layer = s.LayerMap("tanh", weights, biases, rank=share)
    start = float(layer.start.value)
    x = s.functions.gaussian_inputs(6, width, seed=1)
    x = x * (start / (x**2).mean(1, keepdim=True)) ** 0.5
    whole = s.LayerSequence([layer] * depth, [width] * (depth + 1)).gradients(start).weights
    theory = {f"w{k}.right": weights * whole[k - 1].value for k in asked}
    layers = graph(rank, depth, weights, biases)
    networks = (s.network_of(layers, width, width, seed=seed) for seed in range(seeds))
    loss = torch.nn.functional.cross_entropy
    return s.functions.parameter_gradients(
        networks, x, np.arange(6), lambda y, t: loss(y[:, :10], t, reduction="none"), theory
    )


def test_S3_10_A21_gradients_by_the_factor_of_each_layer() -> None:
    rows = gradients(12, 160, "1/4", 10, tuple(range(1, 13)))
    for row in rows:
        # Networks of width N are off by a part of order depth / rank.
        assert abs(row.share.value - row.theory) < 5 * row.share.stderr + row.theory * 12 / 40 / 4
        assert row.square.value > 0


def test_S3_10_what_is_refused() -> None:
    net = s.network_of(graph("1/4", 1, 4.0), 8, 8, seed=0)
    x = s.functions.gaussian_inputs(2, 8)
    square = lambda y, t: ((y - t) ** 2).sum(1)  # noqa: E731
    with pytest.raises(UsageError, match="two or more"):
        s.functions.parameter_gradients([net], x, x, square)
    with pytest.raises(UnknownName, match="w9"):
        s.functions.parameter_gradients([net] * 2, x, x, square, {"w9": 1.0})
    with pytest.raises(UsageError, match="each input"):
        s.functions.parameter_gradients([net] * 2, x, x, lambda y, t: square(y, t).sum())


def test_S3_14_A14_A25_variance_over_ranks() -> None:
    """Linear layers: L / gamma, with the part of order depth / rank; shares that are gamma."""
    width, depth = 120, 3
    ranks = ("1/4", "1/2", "1")
    found = s.functions.jacobian_sweep(
        lambda rank, seed: s.network_of(
            graph(rank, depth, 1 / eval(rank), act=""), width, width, seed
        ),
        ranks,
        s.functions.gaussian_inputs(1, width)[0],
        seeds=6,
        theory=lambda rank: (
            s.spectra.finite_moments(
                "gaussian", width, round(eval(rank) * width), depth
            ).relative_variance
        ),
    )
    for row, rank in zip(found, ranks, strict=True):
        assert row.nonzero.value == pytest.approx(eval(rank))
        # Of one network the variance is over its own mean: off by a part of order depth / rank.
        bias = row.theory * 2 * depth / (eval(rank) * width)
        assert (
            abs(row.relative_variance.value - row.theory) < 5 * row.relative_variance.stderr + bias
        )
        assert row.deviation == pytest.approx(row.relative_variance.stderr * 6**0.5, rel=1e-9)
        assert len(row.values) == 6 * width and row.values[0] == max(row.values)


def test_S3_14_A18_distributions_over_depths() -> None:
    """tanh on the edge of chaos at q = 1/2: variances add up layer by layer."""
    weights, biases = 6.7519, 0.152165
    layer = s.LayerMap("tanh", weights, biases, rank=0.25)
    x = s.functions.gaussian_inputs(1, 200, seed=3)[0]
    x = x * (float(layer.start.value) / float((x**2).mean())) ** 0.5

    def draw(depth: int, seed: int) -> Any:
        return s.network_of(graph("1/4", depth, weights, biases), 200, 200, seed)

    found = s.functions.jacobian_sweep(
        draw,
        (2, 4),
        x,
        seeds=5,
        # Slopes stand between the matrices: one less than these.
        theory=lambda depth: depth * 4 + (depth - 1) * 0.299244,
    )
    for row in found:
        bias = row.theory * row.setting / 50
        assert (
            abs(row.relative_variance.value - row.theory) < 5 * row.relative_variance.stderr + bias
        )
        assert row.nonzero.value == pytest.approx(0.25)
        assert len(row.values) == 5 * 200
    one = s.functions.jacobian_values(draw(2, 0), x)
    assert set(one) <= set(found[0].values)
    with pytest.raises(UsageError, match="two or more"):
        s.functions.jacobian_sweep(draw, (2,), x, seeds=1)
