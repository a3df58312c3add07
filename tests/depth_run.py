"""Runs of residual networks of L blocks as Tensor Programs VI writes them, and its recursions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tpcalc as tp

Array = NDArray[np.float64]
STILL = {"input": {"lr": 0}, "readout": {"lr": 0}}
FOUR = ((1.0, 0.8, -0.5, 1.0), (1.0, -0.5, 0.7, 1.0))  # inputs and targets of case A6


def deep_run(
    inputs: Sequence[float],
    targets: Sequence[float],
    alpha: object = "1/2",
    gamma: object = None,
    act: str = "identity",
    a: float = 1.0,
    eta: float = 1.0,
    steps: int | None = None,
    **settings: Any,
) -> tp.Training:
    """One input and one target a step; only blocks are trained."""
    shape = {"nonlin": "post", "center": True}
    for name in ("nonlin", "center", "layers", "shared"):
        shape[name] = settings.pop(name, shape.get(name))
    net = tp.ResNet(
        "L", act, alpha=alpha, multiplier=a, **{k: v for k, v in shape.items() if v is not None}
    )
    rows = tuple((float(x),) for x in inputs), tuple((float(y),) for y in targets)
    own = {
        "steps": len(inputs) - 1 if steps is None else steps,
        "lr": eta,
        "groups": STILL,
        "lr_depth": gamma,
        **settings,
    }
    return tp.Training(net, "mup", tp.Samples(*rows), **own)


def outputs(found: Any, depth: int | str) -> Array:
    """f of all steps."""
    rows = [row for row in found.rows if row.depth == str(depth) and row.name.startswith("f[")]
    return np.array([row.estimate.value for row in rows])


Moments = Callable[[float, float, float], tuple[float, ...]]


def reference(
    L: int,
    xi: Sequence[float],
    y: Sequence[float],
    alpha: float = 0.5,
    gamma: float = 0.5,
    a: float = 1.0,
    eta: float = 1.0,
    moments: Moments | None = None,
    printed: bool = False,
) -> tuple[Array, ...]:
    """The recursion over all coefficients, as the specification of the paper has it.

    Args:
        L: Blocks.
        xi: Inputs.
        y: Targets.
        alpha: In front of a block.
        gamma: Of updates.
        a: Multiplier.
        eta: Learning rate.
        moments: Vc, V11, V22, V2c, V31 of Gaussians (z, w) by their variances and covariance;
            None: phi is the identity.
        printed: Definition E.1 as it is printed, which leaves terms out.

    Returns:
        f, C0, C1, D0, D1: of C0[t, s, l] the layer is l - 1, of the others l.
    """
    T = len(xi)
    m, u = a * L**-alpha, eta * a * L**-gamma
    D0 = np.zeros((T, L + 1, T + 1, 2, L))
    D1 = D0.copy()
    C0, C1 = np.zeros((T, T, L + 1)), np.zeros((T, T, L + 1))
    V = np.zeros((5, T, T, L + 1))
    V[:2] = 1.0  # of the identity the others are 0
    law0, law1 = (C0, C1) if moments is None else (V[0], np.zeros((T, T, L + 1)))

    def ip(A: Array, B: Array, K: int) -> float:
        total = A[0, 0, 0] * B[0, 0, 0] + A[0, 1, 0] * B[0, 1, 0]
        for side, law in ((0, law0), (1, law1)):
            part = A[1 : K + 1, side], law[:K, :K, 1:], B[1 : K + 1, side]
            total += np.einsum("im,ijm,jm->", *part)
        return float(total)

    def ahead(t: int, s: int, edge: int) -> float:
        return float(D0[t, edge - 1, s + 1, 1, edge - 1] - u * C0[t, s, edge])

    def bracket(t: int, edge: int) -> list[float]:
        """K_ts, s = 0 ... t."""
        by = [D1[t, edge, s + 1, 0, edge - 1] for s in range(t + 1)]
        c, v = C1[t, :, edge], V[:, t, :, edge]
        if printed:
            return [-v[1, s] * u * c[s] for s in range(t)] + [0.0]
        if moments is None:
            return [by[s] - u * c[s] for s in range(t)] + [0.0]
        found = [
            v[1, s] * (by[s] - u * c[s]) + v[2, s] * c[s] * ahead(t, s, edge) for s in range(t)
        ]
        own = v[1, t] * by[t] + sum(v[3, r] * by[r] for r in range(t + 1))
        return [*found, own + sum(v[4, r] * c[r] * ahead(t, r, edge) for r in range(t))]

    def average(t: int, edge: int) -> None:
        for s in range(t + 1):
            one, two, both = C0[t, t, edge], C0[s, s, edge], C0[t, s, edge]
            if moments is not None:
                V[:, t, s, edge] = moments(one, two, both)
                V[:, s, t, edge] = moments(two, one, both)

    f, chi = np.zeros(T), np.zeros(T)
    for t in range(T):
        D0[t, 0, 0, 0] = xi[t]
        for edge in range(1, L + 1):
            for s in range(t + 1):
                C0[t, s, edge] = C0[s, t, edge] = ip(D0[t, edge - 1], D0[s, edge - 1], t + 1)
            average(t, edge)
            D0[t, edge] = D0[t, edge - 1]
            D0[t, edge, t + 1, 0, edge - 1] += m
            for s in range(t):
                D0[t, edge] += m * V[1, t, s, edge] * D1[s, edge] * ahead(t, s, edge)
        f[t] = D0[t, L, 0, 1, 0]
        chi[t] = f[t] - y[t]
        D1[t, L, 0, 1] = chi[t]
        for edge in range(L, 0, -1):
            for s in range(t + 1):
                C1[t, s, edge] = C1[s, t, edge] = ip(D1[t, edge], D1[s, edge], t + 1)
                law1[t, s, edge] = law1[s, t, edge] = V[1, t, s, edge] * C1[t, s, edge]
            D1[t, edge - 1] = D1[t, edge]
            D1[t, edge - 1, t + 1, 1, edge - 1] += m
            for s, k in enumerate(bracket(t, edge)):
                D1[t, edge - 1] += m * k * D0[s, edge - 1]
    return f, C0, C1, D0, D1


def sine(one: float, two: float, both: float) -> tuple[float, ...]:
    """The averages of sin: Vc, V11, V22, V2c, V31."""
    g = np.exp(-(one + two) / 2)
    odd, even = g * np.sinh(both), g * np.cosh(both)
    return odd, even, odd, -odd, -even
