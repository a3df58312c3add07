"""Scalars that stay random in any way, by draws of the Gaussians that they are functions of.

What a limit leaves random are often a few jointly Gaussian numbers whose covariance is known. Then
nothing but these is drawn, a million times if need be, and all else is known to its last digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine.starts import factor
from tpcalc.evaluate.closure.chance import Chance
from tpcalc.functions.tape import evaluate
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.demand import Unknown
from tpcalc.limit.graph import LRef
from tpcalc.limit.views import function_of, is_drawn
from tpcalc.program.base import references
from tpcalc.results import Estimate, Method, Status

LOG2, REPLICATES = 14, 16  # samples of a replicate
SHARP = 1e-9  # relative error of what is known beside which that of samples is all there is
FAMILY = 2  # first entropy word: no draws are shared with particles or networks
ENOUGH = 256  # samples as large as the largest one, below which few of them may dominate
MOST = 32  # Gaussians: the first dimensions of a sequence are its best


class Joint:
    """Samples of random scalars."""

    def __init__(self, chance: Chance[Bounded], seed: int) -> None:
        self._chance, self._seed = chance, seed

    def estimate(self, ref: LRef) -> Estimate:
        """The mean and the spread of a random scalar."""
        values = self.samples((ref,))[ref]
        mean, square = self._mean(values), self._covariance(values, values)
        std = sqrt(square.value)
        error = square.stderr / (2 * std) if std > 0 else sqrt(square.stderr)
        return replace(mean, std=std, std_error=error)

    def covariance(self, left: LRef, right: LRef) -> Estimate:
        """The covariance of two random scalars.

        Args:
            left: The node of one.
            right: That of the other.

        Raises:
            Unknown: One of them holds more than functions of Gaussian scalars.
        """
        found = self.samples((left, right))
        return self._covariance(found[left], found[right])

    def _covariance(self, left: Array, right: Array) -> Estimate:
        a, b = (own - own.mean(axis=1, keepdims=True) for own in (left, right))
        return self._mean(a * b)

    def _mean(self, values: Array) -> Estimate:
        """The mean of replicates, with an error of one sample of their range at least.

        Points are balanced, so that replicates may agree on what a sample more or less would move;
        where all samples are one number, an event may be too rare for any of them.
        """
        own, centred = values.mean(axis=1), np.square(values - values.mean())
        mean, moved = float(own.mean()), float(np.ptp(values))
        rare = ENOUGH * float(centred.max()) >= float(centred.sum())
        return Estimate(
            mean,
            max(
                float(own.std(ddof=1)) / sqrt(len(own)),
                (moved or max(abs(mean), 1.0)) / values.size,
            ),
            Method.PARTICLES,
            Status.RARE if rare else Status.CONVERGED,
            values.shape[1],
            len(own),
            self._seed,
        )

    def samples(self, refs: tuple[LRef, ...]) -> Mapping[LRef, Array]:
        """Joint samples of scalars, each of shape (replicates, samples)."""
        nodes, random = self._chance.closure.graph.nodes, self._chance.random
        cone, stack = set(refs), list(refs)
        while stack:
            top = stack.pop()
            if top not in random or is_drawn(nodes[top]):
                continue
            if function_of(nodes[top]) is None:
                raise Unknown("an average over coordinates that depends on a random scalar")
            fresh = set(references(nodes[top])) - cone
            cone |= fresh
            stack += fresh
        bases = [ref for ref in sorted(cone) if is_drawn(nodes[ref])]
        values: dict[LRef, Array] = dict(zip(bases, self._gaussians(tuple(bases)), strict=True))
        for ref in sorted(cone - set(bases)):
            node = function_of(nodes[ref])
            if node is None or ref not in random:
                values[ref] = np.full((1, 1), _sharp(self._chance.closure.scalar(ref)))
            else:
                values[ref] = evaluate(node.fn, [], [values[s] for s in node.scalars])
        found = {ref: np.broadcast_to(values[ref], (REPLICATES, 2**LOG2)) for ref in refs}
        if not all(np.isfinite(own).all() for own in found.values()):
            raise Unknown("it leaves the floating-point range")
        return found

    def _gaussians(self, bases: tuple[LRef, ...]) -> list[Array]:
        """Joint samples of the Gaussians that others are functions of."""
        if len(bases) > MOST:
            raise Unknown("more random scalars than are drawn on their own")
        chance = self._chance
        means = [_sharp(chance.spread(base).mean) for base in bases]
        stds = [sqrt(_sharp(chance.covariance(base, base))) for base in bases]
        cov = np.diag(np.square(stds))
        for i, left in enumerate(bases):
            for j, right in enumerate(bases[:i]):
                scale = stds[i] * stds[j]
                cov[i, j] = cov[j, i] = _sharp(chance.covariance(left, right), scale)
        rows = np.array(factor(cov, "random scalars"))
        normals = self._normals(rows.shape[1])
        return [mean + normals @ row for mean, row in zip(means, rows, strict=True)]

    def _normals(self, count: int) -> Array:
        """Scrambled Sobol points as normals: replicates, samples, dimensions."""
        from tpcalc.engine.draws import SobolDraws

        found = np.empty((REPLICATES, 2**LOG2, count))
        for replicate, rows in enumerate(found):
            draws = SobolDraws(count, LOG2, (self._seed, FAMILY, replicate))
            for place in range(count):
                row = np.empty((1, 2**LOG2))
                draws.fill(row)
                rows[:, place] = row[0]
        return found


def _sharp(answer: Bounded, scale: float = 1e-6) -> float:
    value, error = float(answer.value), float(answer.error)
    if not error <= SHARP * max(abs(value), scale):
        raise Unknown("its error is too large")
    return value
