"""NNGP and NTK of chains, fused over the layers, beside the same recursion in numpy.

    python -m pytest tests/benchmarks/test_kernel_speed.py -s

Ratios are taken within one run: the best of several rounds of both sides, on all cores that numpy
and the threads find. Differences are asserted, times are printed. ``neural_tangents.py`` beside
this file measures against neural-tangents.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import erf

from tests.benchmarks.figures import fastest
from tpcalc.engine.chains import Chain, Gram, chain_kernels

LENGTH = 64
CHAINS = {
    "relu": Chain("abrelu", 0.5, 0.5, 3, 2.0, 0.0, None, 2.0, 0.0),
    "relu with biases": Chain("abrelu", 0.5, 0.5, 3, 2.0, 0.01, None, 2.0, 0.01),
    "erf": Chain("erf", 1.0, 1.0, 3, 2.25, 0.01, None, 2.25, 0.01),
    "residual relu": Chain("abrelu", 0.5, 0.5, 3, 2.0, 0.0, 0.5, 1.0, 0.0),
}


def arrays(chain, inputs):
    """The recursion on whole matrices."""
    kernel = chain.first_weight * (inputs @ inputs.T) / inputs.shape[1] + chain.first_bias
    tangent = kernel.copy()
    keep = 0.0 if chain.residual is None else 1.0
    factor = 1.0 if chain.residual is None else chain.residual**2
    for layer in range(chain.depth):
        weight, bias = factor * chain.weight_variance, factor * chain.bias_variance
        if chain.residual is None and layer == chain.depth - 1:
            weight, bias = 1.0, 0.0
        variance = np.diag(kernel)
        if chain.family == "erf":
            square = np.outer(1 + 2 * variance, 1 + 2 * variance)
            value = 2 / math.pi * np.arcsin(2 * kernel / np.sqrt(square))
            slope = 4 / math.pi / np.sqrt(square - 4 * kernel**2)
        else:
            norm = np.sqrt(np.outer(variance, variance))
            rho = np.clip(kernel / norm, -1, 1)
            angle = np.arccos(rho)
            value = norm * (np.sqrt(1 - rho**2) + (math.pi - angle) * rho) / (2 * math.pi)
            slope = (math.pi - angle) / (2 * math.pi)
        kernel = keep * kernel + weight * value + bias
        tangent = tangent * (keep + weight * slope) + weight * value + bias
    return kernel, (tangent if chain.residual is None else kernel + tangent)


@pytest.mark.parametrize("depth", [3, 10, 30])
@pytest.mark.parametrize("name", CHAINS)
def test_square_kernel(benchmark, name, depth):
    chain = CHAINS[name]
    chain = Chain(**{**vars(chain), "depth": depth})
    inputs = np.random.default_rng(0).standard_normal((1000, LENGTH))
    gram = Gram(inputs, None, 1 / LENGTH)
    found, expected = chain_kernels(gram, chain), arrays(chain, inputs)
    off = ~np.eye(len(inputs), dtype=bool)
    np.testing.assert_allclose(found.nngp[off], expected[0][off], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.ntk[off], expected[1][off], rtol=1e-9, atol=1e-10)
    seconds = fastest(lambda: chain_kernels(gram, chain), 10)
    plain = fastest(lambda: arrays(chain, inputs), 2)
    benchmark.pedantic(lambda: chain_kernels(gram, chain), rounds=5)
    benchmark.extra_info["ratio to numpy"] = plain / seconds
    print(
        f"\n{name}, depth {depth}: {1e3 * seconds:.1f} ms, numpy {1e3 * plain:.0f} ms, "
        f"ratio {plain / seconds:.0f}"
    )


def test_erf_of_the_reference_is_the_activation():
    """The recursion above is for erf(z), by a small sum over draws."""
    z = np.random.default_rng(1).standard_normal((2, 10**5))
    u, v = z[0], 0.5 * z[0] + math.sqrt(0.75) * z[1]
    chain = Chain("erf", 1.0, 1.0, 1, 1.0, 0.0, None, 1.0, 0.0)
    inputs = np.array([[1.0, 0.0], [0.5, math.sqrt(0.75)]])
    value = arrays(chain, inputs * math.sqrt(2))[0][0, 1]
    assert np.mean(erf(u) * erf(v)) == pytest.approx(value, abs=0.01)
