"""A trunk of L blocks: every pass of its run at infinite width."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine import trunks
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.integrals.bounded import Bounded
from tpcalc.recursions.kets import Kets
from tpcalc.recursions.run import EPS, Run, largest, only, places
from tpcalc.recursions.trunk import Trunk
from tpcalc.results import Method

WINDOW = 32  # edges whose averages are found at once


@dataclass(frozen=True, eq=False)
class Passes(Kets):
    """What the passes of a run left at each layer; a place is that of the nearest layer.

    Numbers are those of the recursion: of a linear trunk those of L blocks of infinite width, of
    another one they differ from these by O(1/L).
    """

    trunk: Trunk  # the network and its run
    layers: int  # L
    store: trunks.Store  # kets of all layers, as the engine keeps them
    outputs: Array  # f, of shape (T, B, k)
    chi: Array  # the derivative of the loss by the outputs, of the same shape
    errors: Array  # by step: those that sums of floats leave, and those of averages
    method: Method = Method.EXACT  # the least exact method behind the numbers

    def at(self, place: float) -> float:
        """The place of the nearest layer."""
        return self._layer(place) / self.layers

    def preactivations(self, place: float) -> Bounded:
        """The kernel of W^l x^(l-1) of the block that leads to a layer."""
        if not self.trunk.linear:
            raise EvaluationError("the kernel of preactivations is that of linear trunks.")
        s, edge = self.store, max(self._layer(place), 1)
        own, _ = places(self.trunk)
        first, second = s.features[edge - 1], s.gradients[edge]
        slopes = s.backward[edge] @ only(s.jumps[edge], own)[:, own]
        cross = s.drift[edge] @ slopes @ first
        value = first + cross + cross.T + s.drift[edge] @ second @ s.drift[edge].T
        return self._answer(value, square=True)

    def _edges(self, first: float, last: float) -> Iterator[tuple[float, Array, Array]]:
        for edge in range(self._layer(first) + 1, self._layer(last) + 1):
            yield 1.0, self.store.jumps[edge], self.store.law[edge]

    @property
    def _scale(self) -> float:
        return float(self.layers**0.5)

    def _beyond(self, edge: float) -> float:
        return max(self._layer(edge), 1) / self.layers

    def _layer(self, place: float) -> int:
        return round(self._inside(place) * self.layers)

    def _kept(self, part: Array, place: float) -> Array:
        found: Array = part[self._layer(place)]
        return found


def finite(trunk: Trunk, layers: int, passes: int | None = None) -> Passes:
    """All passes of a run at depth L.

    Source: Tensor Programs VI, Lemma 4.3 and section D.3; Appendix E and F.1, with the terms of
        phi'' and phi''' that Definition E.1 leaves out.

    Example:
        >>> trunk = Trunk(inputs=[1.3, 0.7], targets=[0.9, 0.0])
        >>> round(float(finite(trunk, 32).outputs[1, 0, 0]), 9)
        2.126016888
    """
    if layers < 1:
        raise UsageError(f"a trunk has at least one block, got {layers}.")
    run = _Finite(trunk, layers)
    with np.errstate(all="ignore"):
        for index in range(2 * trunk.steps if passes is None else passes):
            run.backward(index // 2) if index % 2 else run.forward(index // 2)
    if not all(np.isfinite(part).all() for part in (run.store.features, run.store.gradients)):
        raise EvaluationError(
            f"kets of a trunk of {layers} blocks leave the range of floats.",
            hint="Take smaller rates or a smaller multiplier, or alpha >= 1/2, alpha + gamma >= 1.",
        )
    # Coefficients are differences of terms as large as the solutions and jumps.
    errors = np.full(trunk.steps, 4 * EPS * layers**0.5 * trunk.count + run.off)
    for kets in (run.store.forward, run.store.backward):
        errors *= np.maximum(largest(kets, trunk.steps), 1.0)
    return Passes(trunk, layers, run.store, run.outputs, run.chi, errors, run.method)


class _Finite(Run):
    """The passes at a depth as they go on."""

    def __init__(self, trunk: Trunk, layers: int) -> None:
        super().__init__(trunk, trunks.store(layers, trunk.batch, trunk.steps))
        self.layers = layers
        self.m, self.updates = trunk.branch(layers), trunk.updates(layers)

    def forward(self, step: int) -> None:
        self.start_forward(step)
        first = 0
        while first < self.layers:
            last = self.layers if self.trunk.linear else min(first + WINDOW, self.layers)
            self._window(step, first, last)
            first = last
        self.read(step)

    def backward(self, step: int) -> None:
        self.start_backward(step)
        if not self.trunk.linear:
            self.fill_backward(step, slice(1, None), self.store.features[:-1])
        args = (self.layers, self.m, self.updates, self.trunk.linear)
        trunks.backward_edges(self.store, step, self.trunk.batch, *args)

    def _window(self, step: int, first: int, last: int) -> None:
        """Edges whose averages depend on kernels that they lead to: repeated until they stay."""
        s, trunk = self.store, self.trunk
        args = (s, step, trunk.batch, first, last, self.m, self.updates, trunk.linear)
        if trunk.linear:
            trunks.forward_edges(*args)
            return
        new, high = self.new(step)
        start = s.forward[first, new] @ s.gram[first] @ s.forward[first, :high].T
        past = s.features[first - 1, new, :high] if first else start
        ahead = np.arange(last - first)[:, None, None]
        before = start + ahead * (start - past)
        # Averages of an edge feel those before it alone: so many rounds would do for any phi.
        for _ in range(last - first + 1):
            self.fill_forward(step, slice(first + 1, last + 1), s.features[first:last], before)
            trunks.forward_edges(*args)
            after = s.features[first:last, new, :high].copy()
            moved, size = np.abs(after - before).max(), np.abs(after).max()
            if not np.isfinite(size) or moved <= (8 * EPS + self.off) * size:
                return
            before = after
