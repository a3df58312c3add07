"""Kernels of functions that jump, beside the arc of order 0 in many digits.

Source: Cho, Saul, Kernel methods for deep learning, equation (6).
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import NotDifferentiable

VARIANCE = 1.96


def inputs():
    rng = np.random.default_rng(1)
    found = rng.standard_normal((10, 16))
    first = found[0]
    found[1], found[2], found[3] = first, -first, 2 * first
    found[4], found[5] = first * (1 + 1e-8), first + 1e-3 * found[5]
    found[6], found[7] = -first + 1e-8 * found[6], 1e-4 * first + 1e-9 * found[7]
    return found


def arc(x, y, depth, a, b, bias):
    """The correlation of the outputs of a sign(z) + b."""
    with mp.workdps(150):
        x, y = ([mp.mpf(float(one)) for one in row] for row in (x, y))
        variance, bias = mp.mpf(VARIANCE), mp.mpf(bias)

        def product(p, q):
            return mp.fsum(u * v for u, v in zip(p, q, strict=True)) / 16 * variance + bias

        qx, qy, k = product(x, x), product(y, y), product(x, y)
        square = (qx * qy - k * k) / (qx * qy)
        theta = mp.atan2(
            mp.sqrt(square if square > mp.mpf(10) ** -100 else 0), k / mp.sqrt(qx * qy)
        )
        for layer in range(depth):
            last = layer == depth - 1
            jump = a**2 * (1 if last else variance)
            rest = b**2 * (1 if last else variance) + (0 if last else bias)
            found = (rest + jump * (1 - 2 * theta / mp.pi)) / (jump + rest)
            v = jump * theta / mp.pi / (jump + rest)
            theta = 2 * mp.atan2(mp.sqrt(v), mp.sqrt(1 - v))
        return float(found)


@pytest.mark.parametrize("bias", [0.0, 0.01])
@pytest.mark.parametrize("depth", [1, 3, 10])
@pytest.mark.parametrize(
    ("act", "a", "b"),
    [("sign", 1, 0), ("step", 0.5, 0.5), (lambda z: 0.25 - 2 * tp.sign(3 * z), -2, 0.25)],
    ids=["sign", "step", "mixture"],
)
def test_errors_are_no_more_than_stated(act, a, b, depth, bias):
    x = inputs()
    net = tp.MLP(depth, act, weight_variance=VARIANCE, bias_variance=bias)
    found = tp.kernel(net, x, kinds="nngp")
    sizes = np.sqrt(found.nngp.diagonal())
    lengths = np.linalg.norm(x, axis=1)
    near = abs(x @ x.T) > 0.98 * np.outer(lengths, lengths)
    alike = {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
    for i in range(len(x)):
        for j in range(i, len(x)):
            gap = abs(found.nngp[i, j] / (sizes[i] * sizes[j]) - arc(x[i], x[j], depth, a, b, bias))
            stated = found.coincident_error if near[i, j] and i != j else found.error
            assert gap <= (1e-15 if (i, j) in alike else stated) + 4e-16
    assert found.error < 1e-9
    assert tp.kernel(net, x[:5], x, kinds="nngp").nngp[1, 7] == found.nngp[1, 7]


def test_a_jump_has_no_tangent_kernel():
    with pytest.raises(NotDifferentiable, match="nngp"):
        tp.kernel(tp.MLP(2, "sign"), inputs())
