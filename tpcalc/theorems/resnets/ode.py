"""Propositions 11 to 13: matrices that are a path of l/L, and the ordinary differential equation.

Blocks h + L^(-beta) V_(l/L) g(h) at the right end of their interval, V given as a function of t.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log, log1p
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.functions import Fn
from tpcalc.functions.tape import evaluate
from tpcalc.networks.architecture import activation_of
from tpcalc.results import Bound, Hypothesis
from tpcalc.shown import Shown
from tpcalc.theorems.closed import RESNETS
from tpcalc.theorems.resnets.entries import vector_of

Path = Callable[[float], Any]


@dataclass(frozen=True)
class PathRun(Shown):
    """A network along a path of matrices.

    Args:
        last: h_L / |h_L|.
        log_ratio: ln R, R = |h_L| / |h_0|.
        displacement: D = |h_L - h_0| / |h_0|.
        farthest: ln of the largest |h_k - h_0| / |h_0| over all blocks.
    """

    last: tuple[float, ...]
    log_ratio: float
    displacement: float
    farthest: float


@dataclass(frozen=True)
class EulerError(Shown):
    """How far networks of L blocks are from the solution H of the differential equation at 1.

    Args:
        solution: H_1.
        depths: L.
        scaled: L (h_L - H_1) at each, which has a limit.
        slope: The power of L of |h_L - H_1|, fitted.
    """

    solution: tuple[float, ...]
    depths: tuple[int, ...]
    scaled: tuple[tuple[float, ...], ...]
    slope: float


def _matrix(path: Path, t: float, size: int) -> Array:
    value = np.asarray(path(t), dtype=np.float64)
    if value.ndim == 0:
        return value * np.eye(size)
    if value.shape != (size, size):
        raise UsageError(
            f"the path is of shape {value.shape} at t = {t:g}, and h_0 has {size} coordinates.",
            hint=f"A matrix of shape ({size}, {size}), or a number times the identity.",
        )
    return value


def _act(act: str) -> Callable[[Array], Array]:
    fn = Fn(activation_of(act, "a network along a path"), 1)
    return lambda h: np.broadcast_to(evaluate(fn, [h], []), h.shape)


def run_path(
    path: Path, start: Sequence[float], depth: int, beta: float = 1.0, act: str = "identity"
) -> PathRun:
    """A network with V_l = path(l / L), L^(-beta) in front of its blocks; norms as logarithms.

    Args:
        path: The matrices, a function of t in [0, 1]; a number stands for that times the identity.
        start: h_0, shape (d,).
        depth: L.
        beta: The power of 1/L.
        act: The activation; where it is homogeneous, norms may leave the range of floating point.

    Returns:
        The direction of the output, the logarithm of its length beside the start, displacements.

    Raises:
        EvaluationError: Numbers leave the range of floating point.
        UsageError: A start that is 0, or a path of other matrices.

    Source: Marion, Fermanian, Biau, Vert, equation (13).

    Example:
        >>> found = run_path(lambda t: 1, [1, 0], 10**4, 0.5)  # 1.01^10000
        >>> round(found.log_ratio, 5)
        99.50331
    """
    depth = checks.whole(depth, "depth", least=1, hint="It counts the blocks.")
    sigma, first = _act(act), vector_of(start, "h_0")
    scale, far = 0.0, -np.inf
    homogeneous = bool(np.allclose(sigma(2.5 * first), 2.5 * sigma(first)))
    h, front, own = first.copy(), float(depth) ** -beta, float(np.linalg.norm(first))
    for layer in range(1, depth + 1):
        h = h + front * (_matrix(path, layer / depth, len(h)) @ sigma(h))
        size = float(np.abs(h).max())
        if not np.isfinite(size):
            raise EvaluationError(
                f"the stream leaves the range of floating point at block {layer}."
            )
        if homogeneous and size > 1e100:
            h, scale = h / size, scale + log(size)
        gap = float(np.linalg.norm(h - first * exp(-scale)))
        far = max(far, log(gap / own) + scale if gap else -np.inf)
    norm = float(np.linalg.norm(h))
    gap = float(np.linalg.norm(h - first * exp(-scale)))
    moved = (log(gap / own) + scale) if gap else -np.inf
    direction = tuple((h / norm).tolist())
    return PathRun(direction, log(norm / own) + scale, exp(min(moved, 700.0)), far)


def proposition_11(
    path: Path,
    start: Sequence[float],
    depths: Sequence[int] = (100, 1000, 10000),
    act: str = "identity",
) -> EulerError:
    """The rate 1/L at which networks along a path tend to the differential equation.

    Args:
        path: The matrices, a Lipschitz function of t in [0, 1].
        start: h_0, shape (d,).
        depths: Numbers of blocks.
        act: The activation, Lipschitz.

    Returns:
        The solution at t = 1, L times what networks are off by, and the slope in L.

    Raises:
        EvaluationError: The solution was not found.

    Source: Marion, Fermanian, Biau, Vert, Proposition 11.

    Example:
        >>> found = proposition_11(lambda t: 1 + t, [1.0])
        >>> round(found.solution[0], 5), round(found.scaled[-1][0], 5)  # e^1.5, -2/3 e^1.5 + o(1)
        (4.48169, -2.98747)
    """
    sigma, first = _act(act), vector_of(start, "h_0")
    found = solve_ivp(
        lambda t, h: _matrix(path, t, len(first)) @ sigma(h),
        (0.0, 1.0),
        first,
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
    )
    if not found.success:
        raise EvaluationError(f"the differential equation was not solved: {found.message}.")
    solution = found.y[:, -1]
    gaps = []
    for depth in depths:
        one = run_path(path, start, depth, 1.0, act)
        size = exp(one.log_ratio) * np.linalg.norm(first)
        gaps.append(np.array(one.last) * size - solution)
    sizes = [max(float(np.linalg.norm(gap)), 1e-300) for gap in gaps]
    slope = float(np.polyfit(np.log(depths), np.log(sizes), 1)[0]) if len(depths) > 1 else np.nan
    scaled = tuple(tuple((depth * gap).tolist()) for depth, gap in zip(depths, gaps, strict=True))
    return EulerError(tuple(solution.tolist()), tuple(depths), scaled, slope)


def rate_11(first: float, second: float) -> float:
    """The constant c of |H - h| <= c / L: exp(K1) (K2 + 1) K1 / 2.

    Args:
        first: K1, the Lipschitz constant of (h, t) -> V_t g(h, W_t) in each argument.
        second: K2, that of the solution in t.

    Returns:
        The constant.

    Source: Marion, Fermanian, Biau, Vert, Proposition 11.

    Example:
        >>> round(rate_11(1.0, 1.0), 6)
        2.718282
    """
    return exp(first) * (second + 1) * first / 2


def proposition_13(path: Path, start: Sequence[float], depth: int, beta: float) -> Bound:
    """Growth of the linear res-1 along a path whose V_0^T has a positive real eigenvalue.

    Args:
        path: The matrices, a Lipschitz function of t in [0, 1].
        start: h_0, shape (d,).
        depth: L.
        beta: The power of 1/L, between 0 and 1.

    Returns:
        A lower bound of the largest |h_k| / |h_0|: of a constant path (1 + lambda L^(-beta))^L
        |<h_0, y>|; else to leading order in L lambda^2 |<h_0, y>| L^(1 - beta) / (2 c), with y the
        unit eigenvector of the largest such eigenvalue and c the Lipschitz constant of the path,
        estimated on a grid. 0 where there is no such eigenvalue.

    Source: Marion, Fermanian, Biau, Vert, Proposition 13: the maximum over k, with the discrete
        weights of its proof corrected.

    Example:
        >>> import numpy as np
        >>> turn = np.array([[0, 1], [-1, 0]])
        >>> found = proposition_13(lambda t: turn, [1, 0], 10**4, 0.75)
        >>> found.admissible, found.violated[0].found
        (False, 'eigenvalues -1i, 1i')
    """
    first = vector_of(start, "h_0")
    matrix = _matrix(path, 0.0, len(first))
    values, vectors = np.linalg.eig(matrix.T)
    real = (np.abs(values.imag) < 1e-12) & (values.real > 1e-12)
    shown = ", ".join(sorted(shown_complex(value) for value in values))
    grid = np.linspace(0.0, 1.0, 257)
    matrices = np.array([_matrix(path, t, len(first)) for t in grid])
    lipschitz = float(np.linalg.norm(np.diff(matrices, axis=0), 2, axis=(1, 2)).max()) * 256
    lower, notes = 0.0, tuple[str, ...]()
    if real.any():
        best = int(np.argmax(np.where(real, values.real, -np.inf)))
        y = vectors[:, best].real
        overlap = abs(float(first @ y)) / float(np.linalg.norm(y) * np.linalg.norm(first))
        top = float(values[best].real)
        if lipschitz < 1e-12:
            lower = exp(min(depth * log1p(top * float(depth) ** -beta), 700.0)) * overlap
        else:
            lower = top**2 * overlap * float(depth) ** (1 - beta) / (2 * lipschitz)
            notes = ("to leading order in L, with the Lipschitz constant of a grid",)
    conditions = (
        Hypothesis("0 < beta < 1", 0 < beta < 1, f"beta = {beta:g}"),
        Hypothesis(
            "V_0^T has a positive real eigenvalue", bool(real.any()), f"eigenvalues {shown}"
        ),
    )
    of = "max_k |h_k| / |h_0|"
    return Bound(of, lower, None, 1.0, conditions, RESNETS.at("Proposition 13"), notes=notes)


def shown_complex(value: complex) -> str:
    """A number with as few digits as can be."""
    real, imaginary = round(value.real, 12), round(value.imag, 12)
    if not imaginary:
        return f"{real:g}"
    return f"{real:g}{imaginary:+g}i" if real else f"{imaginary:g}i"


def growth_is_possible(width: int) -> float:
    """A probability that V_0^T has a positive real eigenvalue, at least, in wide networks.

    Args:
        width: d.

    Returns:
        The bound 1 - 1 / d.

    Source: Marion, Fermanian, Biau, Vert, section 3.2 (cited there).

    Example:
        >>> growth_is_possible(40)
        0.975
    """
    return 1 - 1 / checks.whole(width, "width", least=1)
