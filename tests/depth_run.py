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


class Reference:
    """The recursion over all coefficients at L blocks, as the specification of the paper has it.

    Args:
        L: Blocks.
        xi: Inputs.
        y: Targets.
        alpha: In front of a block.
        gamma: Of updates.
        a: Multiplier.
        eta: Learning rate.
        moments: Vc, V11, V22, V2c, V31 of Gaussians (z, w) by their variances and covariance, and
            Cov(phi'(z), phi'(w)); None: phi is the identity.
        printed: Definition E.1 as it is printed: Cov in place of V11 in front of Gamma, and
            without V22, V2c, V31.

    Attributes:
        f, C0, C1, D0, D1: Outputs, kernels and coefficients; of C0[t, s, l] the layer is l - 1, of
            the others l.
    """

    def __init__(
        self,
        L: int,
        xi: Sequence[float],
        y: Sequence[float],
        alpha: float = 0.5,
        gamma: float = 0.5,
        a: float = 1.0,
        eta: float = 1.0,
        moments: Moments | None = None,
        printed: bool = False,
    ) -> None:
        T = len(xi)
        self.L, self.m, self.u = L, a * L**-alpha, eta * a * L**-gamma
        self.moments, self.printed = moments, printed
        self.D0 = np.zeros((T, L + 1, T + 1, 2, L))
        self.D1 = self.D0.copy()
        self.C0, self.C1 = np.zeros((T, T, L + 1)), np.zeros((T, T, L + 1))
        self.V = np.zeros((6, T, T, L + 1))
        self.V[:2] = 1.0  # of the identity the others are 0
        self.law0 = self.C0 if moments is None else self.V[0]
        self.law1 = np.zeros((T, T, L + 1))
        self.f, self.chi = np.zeros(T), np.zeros(T)
        for t in range(T):
            self.D0[t, 0, 0, 0] = xi[t]
            self.forward(t)
            self.f[t] = self.D0[t, L, 0, 1, 0]
            self.chi[t] = self.f[t] - y[t]
            self.D1[t, L, 0, 1] = self.chi[t]
            self.backward(t)

    def forward(self, t: int) -> None:
        D0, D1, C0, V = self.D0, self.D1, self.C0, self.V
        for edge in range(1, self.L + 1):
            for s in range(t + 1):
                C0[t, s, edge] = C0[s, t, edge] = self.inner(D0[t, edge - 1], D0[s, edge - 1], t)
            for s in range(t + 1 if self.moments else 0):
                one, two, both = C0[t, t, edge], C0[s, s, edge], C0[t, s, edge]
                V[:, t, s, edge] = self.moments(one, two, both)
                V[:, s, t, edge] = self.moments(two, one, both)
            D0[t, edge] = D0[t, edge - 1]
            D0[t, edge, t + 1, 0, edge - 1] += self.m
            for s in range(t):
                D0[t, edge] += self.m * V[1, t, s, edge] * D1[s, edge] * self.ahead(t, s, edge)

    def backward(self, t: int) -> None:
        D1, C1 = self.D1, self.C1
        for edge in range(self.L, 0, -1):
            for s in range(t + 1):
                C1[t, s, edge] = C1[s, t, edge] = self.inner(D1[t, edge], D1[s, edge], t)
                value = self.V[1, t, s, edge] * C1[t, s, edge]
                self.law1[t, s, edge] = self.law1[s, t, edge] = value
            D1[t, edge - 1] = D1[t, edge]
            D1[t, edge - 1, t + 1, 1, edge - 1] += self.m
            for s, k in enumerate(self.bracket(t, edge)):
                D1[t, edge - 1] += self.m * k * self.D0[s, edge - 1]

    def inner(self, A: Array, B: Array, t: int) -> float:
        K = t + 1
        total = A[0, 0, 0] * B[0, 0, 0] + A[0, 1, 0] * B[0, 1, 0]
        for side, law in ((0, self.law0), (1, self.law1)):
            part = A[1 : K + 1, side], law[:K, :K, 1:], B[1 : K + 1, side]
            total += np.einsum("im,ijm,jm->", *part)
        return float(total)

    def ahead(self, t: int, s: int, edge: int) -> float:
        return float(self.D0[t, edge - 1, s + 1, 1, edge - 1] - self.u * self.C0[t, s, edge])

    def bracket(self, t: int, edge: int) -> list[float]:
        """K_ts, s = 0 ... t."""
        by = [self.D1[t, edge, s + 1, 0, edge - 1] for s in range(t + 1)]
        c, v, u = self.C1[t, :, edge], self.V[:, t, :, edge], self.u
        if self.printed:
            return [v[5, s] * by[s] - v[1, s] * u * c[s] for s in range(t)]
        ahead = [self.ahead(t, s, edge) for s in range(t)]
        found = [v[1, s] * (by[s] - u * c[s]) + v[2, s] * c[s] * ahead[s] for s in range(t)]
        own = v[1, t] * by[t] + sum(v[3, r] * by[r] for r in range(t + 1))
        own += sum(v[4, r] * c[r] * ahead[r] for r in range(t))
        return found if self.moments is None else [*found, own]


def sine(one: float, two: float, both: float) -> tuple[float, ...]:
    """The averages of sin."""
    g = np.exp(-(one + two) / 2)
    odd, even = g * np.sinh(both), g * np.cosh(both)
    return odd, even, odd, -odd, -even, even - g
