"""The limit of a trunk as its depth grows: kets are functions of p = l / L."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine import trunks
from tpcalc.errors import EvaluationError
from tpcalc.evaluate.closure.gaussians import is_odd
from tpcalc.integrals.bounded import Bounded
from tpcalc.recursions.averages import Averages
from tpcalc.recursions.kets import Kets
from tpcalc.recursions.panels import Panels
from tpcalc.recursions.run import EPS, largest
from tpcalc.recursions.solve import Solved
from tpcalc.recursions.trunk import HALF, Trunk

TARGET = 1e-11
MOST = 6  # levels
NOISE = 1e-6  # a difference that does not fall any more is one of rounding


@dataclass(frozen=True, eq=False)
class Limit(Kets):
    """A run in the limit of infinite width, then infinite depth.

    Args:
        trunk: The network and its run.
        panels: How functions of the depth are kept.
        store: Kets at all nodes; coefficients of a Gaussian of depth q by the root of dq.
        outputs: f, of shape (T, B, k).
        chi: The derivative of the loss by the outputs, of the same shape.
        errors: Relative, by step, as ``bounds`` takes them; by comparison with fewer panels.
        told: Where coefficients of Gaussians behind begin to be known. Streams that start as one
            differ by a Gaussian of next to no size there, with a coefficient like log p.
    """

    trunk: Trunk
    panels: Panels
    store: trunks.Store
    outputs: Array
    chi: Array
    errors: Array
    told: float = 0.0

    def preactivations(self, place: float) -> Bounded:
        """The kernel of preactivations of blocks at p.

        Args:
            place: p.

        Raises:
            EvaluationError: They grow with the depth, or phi is not the identity at gamma = 0.
        """
        kernel, trunk = self.features(place), self.trunk
        if trunk.gamma > 0:
            return kernel
        if trunk.gamma < 0 or not trunk.linear:
            raise EvaluationError("preactivations grow with the depth, or feel all steps at once.")
        before = np.arange(trunk.count) // trunk.batch
        moves = -trunk.updates(1) * kernel.value * (before[:, None] > before)
        return self._answer(kernel.value + moves @ self.gradients(place).value @ moves.T, True)

    def _edges(self, first: float, last: float) -> Iterator[tuple[float, Array, Array]]:
        for place, weight in zip(*self.panels.between(first, last), strict=True):
            yield weight, self._kept(self.store.jumps, place), self._kept(self.store.law, place)

    def coefficients(self, place: float, edge: float) -> tuple[tuple[Bounded, ...], ...]:
        """As of ``Kets``; of no certainty where they are not told.

        Args:
            place: p.
            edge: q.
        """
        found = super().coefficients(place, edge)
        if not edge <= place < self.told:
            return found
        parts = [(one.value, np.full_like(one.value, np.inf), one.method) for one in found[1]]
        return found[0], tuple(Bounded(*part) for part in parts)

    def _kept(self, part: Array, place: float) -> Array:
        return self.panels.at(part, place)


def limit(trunk: Trunk, passes: int | None = None) -> Limit:
    """A run in the limit n -> infinity, then L -> infinity.

    At alpha = gamma = 1/2 it is the functional-integral limit of Depth-muP, for 1/2 < alpha < 1 and
    alpha + gamma = 1 an ordinary differential equation, for a linear trunk also at alpha >= 1. For
    alpha + gamma > 1 nothing moves. Volterra equations of each pass are solved to about 1e-11 by
    polynomials in p: nothing is extrapolated in L.

    Args:
        trunk: The network and its run.
        passes: How many passes, a forward and a backward one for each step; by default all.

    Raises:
        EvaluationError: There is no limit, or averages of phi have no value.

    Source: Tensor Programs VI, Propositions 4.4 and C.2, section D.3, Appendix E, F.1 and F.3 with
        the terms of phi'' and phi''' that are missing there.

    Example:
        >>> found = limit(Trunk(inputs=[1.3, 0.7], targets=[0.9, 0.0]))
        >>> round(float(found.outputs[1, 0, 0]), 9)
        2.226272818
    """
    count = 2 * trunk.steps if passes is None else passes
    _refuse(trunk, count > 2)
    kinked = Averages(trunk.activation).kinked
    found, errors, level = Solved(trunk, _panels(0, kinked), count), np.full(1, np.inf), 0
    while errors.max() > TARGET and level < MOST:
        level += 1
        try:
            finer = Solved(trunk, _panels(level, kinked), count, found)
        except EvaluationError:
            if errors.max() > NOISE:
                raise
            break
        apart = _apart(found, finer)
        if not np.isfinite(apart).all() or errors.max() <= min(apart.max(), NOISE):
            errors = apart
            break
        found, errors = finer, apart
    if not np.isfinite(errors).all():
        raise EvaluationError(
            "kets of the trunk leave the range of floats as its depth grows.",
            hint="Take smaller rates or a smaller multiplier.",
        )
    errors = np.maximum(errors, 100 * EPS) + found.off
    kets = found.panels, found.store, found.outputs, found.chi
    return Limit(trunk, *kets, errors, found.panels.inner if found.begun else 0.0)


def _panels(level: int, kinked: bool) -> Panels:
    """Twice as many at each level; with a kink they are small where streams may start as one."""
    if not kinked:
        return Panels(2**level)
    return Panels(2 ** (level // 2), power=2, halved=(level + 3) // 2)


def _apart(coarse: Solved, fine: Solved) -> Array:
    """The largest relative differences of two solutions up to each step, at ends and in between."""
    steps = fine.trunk.steps
    worst = np.zeros(steps)
    for name in ("features", "gradients", "forward", "backward"):
        one, two = getattr(coarse.store, name), getattr(fine.store, name)
        square = name in ("features", "gradients")
        sizes = np.maximum(largest(two, steps, square), EPS)
        for place in (0.0, 0.17, 0.5, 0.83, 1.0):
            if not place and fine.begun and name == "backward":  # like log p, times next to nothing
                continue
            gap = coarse.panels.at(one, place) - fine.panels.at(two, place)
            worst = np.maximum(worst, largest(gap, steps, square) / sizes)
    return np.where(np.isfinite(worst), worst, np.inf)


def _refuse(trunk: Trunk, moves: bool) -> None:
    """Where there is no limit, or another one; without updates gamma does not matter."""
    alpha, gamma = trunk.alpha, trunk.gamma
    reason = None
    if alpha < HALF:
        reason = "features at initialization grow like exp(L^(1 - 2 alpha))", "alpha >= 1/2"
    elif moves and alpha + gamma < 1:
        reason = "one step moves the output by L^(1 - alpha - gamma)", "alpha + gamma >= 1"
    elif not trunk.centred and alpha <= 1 and not is_odd(trunk.activation):
        reason = (
            "the mean of phi adds up over the blocks",
            "mean_field for alpha = 1, else centred=True, or an odd phi",
        )
    elif moves and not trunk.linear and alpha >= 1 and alpha + gamma == 1:
        reason = (
            "phi is not the identity and updates of a block are not small",
            "mean_field for alpha = 1; for alpha > 1 preactivations grow",
        )
    if reason:
        raise EvaluationError(
            f"alpha = {alpha}, gamma = {gamma} has no limit of this kind: {reason[0]}.",
            hint=f"Take {reason[1]}.",
        )
