"""Residual networks at the start whose matrices are no random ones, but paths along the depth.

A block is x + a L^(-alpha) V phi(W x), V and W multiples of the identity or matrices of pairs of
coordinates: pairs go through the blocks on their own. So the limit of the width is an average over
one pair of Gaussians, and the limit of the depth at alpha = 1 that of a differential equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, expm1

import numpy as np
from scipy.integrate import solve_ivp

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr, Fn
from tpcalc.functions.form import slopes_of
from tpcalc.functions.tape import values
from tpcalc.integrals import rules
from tpcalc.program.along import Along, along_of
from tpcalc.program.branch import Branch

Function = Callable[[Array], Array]
NODES = (32, 24)  # of each coordinate; the coarser rule tells the error
ANGLES = (1200, 800)  # of pairs, where a function has a kink at 0
TOLERANCE, SOLVED = 1e-11, 1e-9
ROUNDING = 1e-14


def is_path(block: Branch) -> bool:
    """Whether matrices of a block are paths."""
    laws = [along_of(law) for law in (block.outer, block.inner) if law is not None]
    paths = [law.row.path is not None for law in laws]
    if not any(paths):
        return False
    if not all(paths) or block.centred:
        raise EvaluationError(
            "blocks of a random matrix and of a path of matrices, or less their average, are "
            "followed at no infinite width.",
            hint="tp.simulate(..., depth=) draws networks of finite width.",
        )
    return True


def follow(block: Branch, depth: int) -> list[tuple[Array, ...]]:
    """Mean squares of pairs and of their adjoints, by a fine and by a coarse rule."""
    front = block.multiplier * float(depth) ** -float(block.alpha)  # type: ignore[arg-type]
    shares = np.arange(1, depth + 1) / depth
    outer, inner = (_Path.of(law, shares) for law in _laws(block))
    value, slope = _functions(block)
    found: list[tuple[Array, ...]] = []
    for x, weights in _rules(block):
        first, slopes = x, np.empty((depth, *x.shape))
        moved, length = np.zeros(depth + 1), np.ones(depth + 1)
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(depth):
                h = inner.times(k, x)
                slopes[k] = slope(h)
                x = x + front * outer.times(k, value(h))
                moved[k + 1] = _mean(x - first, weights)
                length[k + 1] = _mean(x, weights)
            # An adjoint of independent coordinates: both start behind the last block alone.
            last = np.repeat(np.eye(2)[:, :, None], len(weights), axis=2)
            p, grown, adjoint = last, np.zeros(depth + 1), np.ones(depth + 1)
            for k in range(depth - 1, -1, -1):
                p = p + front * inner.times(k, slopes[k] * outer.times(k, p, True), True)
                grown[depth - k] = 2 * _mean(p - last, weights)
                adjoint[depth - k] = 2 * _mean(p, weights)
        found.append((length, moved, adjoint, grown))
    return found


def path_limit(block: Branch) -> tuple[tuple[float, float], ...]:
    """The limits of R^2 and D^2 of the stream and of its adjoint in many blocks, with errors.

    Source: Marion, Fermanian, Biau, Vert, Proposition 11.
    """
    laws = _laws(block)
    if _linear(block.activation) and not _mixing(block):
        # Products of numbers: R = exp(integral), by a rule that is exact of polynomials.
        t, w = rules.legendre(64)
        number = block.multiplier * float(_functions(block)[0](np.array([1.0]))[0])
        rates = [np.ones(64) if law is None else law.path_at((t + 1) / 2)[:, 0, 0] for law in laws]
        power = number * float(w @ (rates[0] * rates[1])) / 2
        size, moved = exp(2 * power), expm1(power) ** 2
        return ((size, ROUNDING * size), (moved, ROUNDING * size)) * 2
    found = []
    for x, weights in _rules(block):
        end = _solved(block, laws, x)
        state, jacobian = end[0], end[1:]
        off = jacobian - np.eye(2)[:, :, None]
        squares = (state, state - x, jacobian, off)
        found.append(
            [own * _mean(one, weights) for own, one in zip((1, 1, 2, 2), squares, strict=True)]
        )
    fine, coarse = found[0], found[-1]
    return tuple(
        (one, abs(one - two) + SOLVED * max(one, 1.0))
        for one, two in zip(fine, coarse, strict=True)
    )


def _solved(block: Branch, laws: Sequence[Along | None], x: Array) -> Array:
    """The pairs, and their derivatives by each of the coordinates where they start."""
    value, slope = _functions(block)
    shape = (3, *x.shape)

    def speed(t: float, flat: Array) -> Array:
        state = flat.reshape(shape)
        outer, inner = (_Path.of(law, np.array([t])) for law in laws)
        h = inner.times(0, state)
        rates = slope(h[0]) * h
        rates[0] = value(h[0])
        return (block.multiplier * outer.times(0, rates)).ravel()

    ones = np.repeat(np.eye(2)[:, :, None], x.shape[1], axis=2)
    start = np.concatenate([x[None], ones]).ravel()
    solved = solve_ivp(speed, (0.0, 1.0), start, method="DOP853", rtol=TOLERANCE, atol=TOLERANCE)
    if not solved.success:
        raise EvaluationError(f"the differential equation is not solved: {solved.message}.")
    end: Array = solved.y[:, -1].reshape(shape)
    return end


@dataclass(frozen=True)
class _Path:
    """Matrices of pairs of coordinates, on the last axis but one of what they are applied to."""

    matrices: Array | None

    @staticmethod
    def of(law: Along | None, t: Array) -> _Path:
        return _Path(None if law is None else law.path_at(t))

    def times(self, k: int, x: Array, back: bool = False) -> Array:
        """The k-th one times something, or its transpose."""
        if self.matrices is None:
            return x
        found: Array = (self.matrices[k].T if back else self.matrices[k]) @ x
        return found


def _laws(block: Branch) -> list[Along | None]:
    return [None if law is None else along_of(law) for law in (block.outer, block.inner)]


def _mixing(block: Branch) -> bool:
    """Whether coordinates depend on each other."""
    return any(law is not None and law.mixes for law in _laws(block))


def _rules(block: Branch) -> Iterator[tuple[Array, Array]]:
    """Pairs of Gaussians, shape (2, points), with weights: a fine and a coarse rule.

    Where coordinates go on their own, both are the same: each is Gaussian, which is all that
    matters. Where the function is linear, squares are all that is averaged; where it is on both
    sides of 0, lengths are factors, and kinks are met at some angles.
    """
    straight, linear = slopes_of(block.activation) is not None, _linear(block.activation)
    for count in (2,) if linear else ANGLES if straight and _mixing(block) else NODES:
        points, weights = rules.normal(count if count not in ANGLES else 2)
        if count in ANGLES:
            turn = (np.arange(count) + 0.5) * 2 * np.pi / count
            yield np.sqrt(2) * np.stack([np.cos(turn), np.sin(turn)]), np.full(count, 1 / count)
        elif _mixing(block):
            pairs = np.stack([grid.ravel() for grid in np.meshgrid(points, points)])
            yield pairs, np.outer(weights, weights).ravel()
        else:
            yield np.stack([points, points]), weights


def _mean(x: Array, weights: Array) -> float:
    """The mean square of coordinates."""
    rows = x.reshape(-1, x.shape[-1])
    return float(np.einsum("cn,cn,n->", rows, rows, weights)) / len(rows)


def _functions(block: Branch) -> tuple[Function, Function]:
    """The activation and its slope."""
    fn = Fn(block.activation, 1)
    return partial(values, fn), partial(values, fn.by(0))


def _linear(expr: Expr) -> bool:
    """Whether a function is a number times its argument."""
    slopes = slopes_of(expr)
    return slopes is not None and slopes[0] == slopes[1]
