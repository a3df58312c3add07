"""Closed forms, quadrature and Monte Carlo of every activation and its slope, at 20 covariances."""

from __future__ import annotations

import numpy as np
import pytest

from tpcalc.activations.entries import REGISTRY, lookup
from tpcalc.errors import NotDifferentiable
from tpcalc.functions import Expr, Fn
from tpcalc.functions.tape import evaluate
from tpcalc.integrals import exact, quadrature

NAMES = [name for name, family in REGISTRY.items() if not family.parameters]
NAMES += ["relu^2", "relu^3", "leaky_relu:0.2", "elu:1", "elu:1/2", "poly:1,0,1/2"]
BOUNDED = [name for name in NAMES if lookup(name).domain == (-np.inf, np.inf)]


def _covariances() -> list[tuple[float, float, float]]:
    """Variances and correlation: random ones, and the corners."""
    draws = np.random.default_rng(3)
    found = [
        (float(q), float(p), float(r))
        for q, p, r in zip(
            np.exp(draws.uniform(-3, 2, 12)),
            np.exp(draws.uniform(-3, 2, 12)),
            draws.uniform(-1, 1, 12),
            strict=True,
        )
    ]
    corners = [(1.0, 1.0, 1.0), (1.0, 1.0, -1.0), (2.0, 2.0, 1 - 1e-12), (1.0, 3.0, 0.0)]
    sizes = [(1e-12, 1e-12, 0.5), (1e-12, 1.0, 0.9), (1e6, 1e6, 0.5), (1e6, 1.0, -0.7)]
    return found + corners + sizes


COVARIANCES = _covariances()
SAMPLES = np.random.default_rng(11).standard_normal((2, 2**16))


def _pairs(name: str) -> list[tuple[Expr, Expr]]:
    value = lookup(name).fn
    pairs = [(value.expr, value.expr)]
    try:
        slope = value.by(0)
    except NotDifferentiable:
        return pairs
    return [*pairs, (value.expr, slope.expr), (slope.expr, slope.expr)]


def _growing(name: str, size: float) -> bool:
    """Whether exponentials of such a variance leave the floating-point range."""
    return lookup(name).facts.growth is None and size > 10


def _sampled(pair: tuple[Expr, Expr], q: float, p: float, r: float) -> tuple[float, float]:
    u = np.sqrt(q) * SAMPLES[0]
    v = np.sqrt(p) * (r * SAMPLES[0] + np.sqrt(max(1 - r * r, 0.0)) * SAMPLES[1])
    values = evaluate(Fn(pair[0], 1), [u]) * evaluate(Fn(pair[1], 1), [v])
    values = np.broadcast_to(values, u.shape)
    # What happens once in so many samples may not have happened in them.
    rare = 5 * float(np.abs(values).max()) / values.size
    return float(values.mean()), max(float(values.std()) / np.sqrt(values.size), rare)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDED)
def test_three_evaluators_agree(name: str) -> None:
    compared = 0
    for pair in _pairs(name):
        for q, p, r in COVARIANCES:
            if _growing(name, max(q, p)):
                continue
            c = r * np.sqrt(q * p) if abs(r) != 1 else np.copysign(q, r)
            cov = [[q, c], [c, p]]
            by_rule = quadrature.expectation(pair, [0.0, 0.0], cov)
            closed = exact.expectation(pair, [0.0, 0.0], cov) if exact.supported(pair) else None
            mean, stderr = _sampled(pair, q, p, r)
            assert by_rule is not None or closed is not None, (pair, cov)
            for found in (by_rule, closed):
                if found is not None and max(q, p) < 1e3:
                    gap = abs(float(found.value) - mean)
                    assert gap <= 5 * stderr + float(found.error) + 1e-12 * abs(mean), (pair, cov)
            if by_rule is not None and closed is not None:
                compared += 1
                gap = abs(float(by_rule.value) - float(closed.value))
                assert gap <= float(by_rule.error) + float(closed.error), (pair, cov)
    slopes = {"tanh", "even_tanh", "sigmoid", "softplus", "swish"}  # these have no closed form
    assert compared or name in slopes
