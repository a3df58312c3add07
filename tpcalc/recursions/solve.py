"""The Volterra equations of the limit of a trunk, on panels of the depth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine import trunks
from tpcalc.recursions.averages import proportional
from tpcalc.recursions.panels import Panels
from tpcalc.recursions.run import EPS, Index, Run
from tpcalc.recursions.trunk import HALF, Trunk

ROUNDS = 100
FEW = 3  # nodes of a panel that others tell


class Solved(Run):
    """The passes of a run, each repeated on a panel until it stays.

    The solutions of a pass and the Gram matrices that it adds to are integrals over the depth of
    what they are made of; both begin at the end of the panel that the pass comes from.
    """

    def __init__(
        self, trunk: Trunk, panels: Panels, passes: int, near: Solved | None = None
    ) -> None:
        super().__init__(trunk, trunks.store(panels.nodes.size - 1, trunk.batch, trunk.steps))
        self.panels, self.begun, self.near = panels, 0, near
        # Coefficients of a Gaussian of depth p, by the root of dp; beyond alpha = 1/2 none is left.
        self.noise = trunk.multiplier if trunk.alpha == HALF else 0.0
        moves = trunk.alpha + trunk.gamma == 1
        self.updates = trunk.updates(1) * trunk.multiplier * moves
        with np.errstate(all="ignore"):
            for index in range(passes):
                self._backward(index // 2) if index % 2 else self._forward(index // 2)
        self.near = None

    def _forward(self, step: int) -> None:
        self.start_forward(step)
        self._through(step, "forward", self.own, self.panels.from_left, self._ahead)
        s, (new, high) = self.store, self.new(step)
        s.features[:, :high, new] = s.features[:, new, :high].transpose(0, 2, 1)
        self.read(step)

    def _backward(self, step: int) -> None:
        self.start_backward(step)
        s, (new, high) = self.store, self.new(step)
        begun = self._begun(step)
        self.begun = max(self.begun, begun)
        if not self.trunk.linear:
            self.fill_backward(step, slice(begun, None), s.features[begun:])

        def to_end(panel: int) -> Array:
            begins = begun and not panel
            beyond = self.panels.from_right_beyond
            return beyond(panel, begun) if begins else self.panels.from_right(panel)

        self._through(step, "backward", self.columns, to_end, self._back)
        s.gradients[:, :high, new] = s.gradients[:, new, :high].transpose(0, 2, 1)

    def _through(
        self,
        step: int,
        name: str,
        columns: Index,
        integral: Callable[[int], Array],
        change: Callable[[int, slice], tuple[Array, Array]],
    ) -> None:
        """Solutions and Gram matrices of a pass, panel by panel from where it enters them."""
        solutions, gram, (new, high) = getattr(self.store, name), self.store.gram, self.new(step)
        own, columns, last = columns[new], columns[:high], self.panels.count - 1
        order = range(last + 1) if name == "forward" else range(last, -1, -1)
        for panel in order:
            nodes = self._nodes(panel)
            ends = nodes.start - min(panel, 1), nodes.stop - (panel == last)
            known = ends[name != "forward"]
            out, kernels, rule = solutions[nodes, new], gram[nodes], integral(panel)
            start, begin = solutions[known, new].copy(), gram[known][np.ix_(own, columns)].copy()
            guess = self._guess(name, nodes, new)
            out[:] = start if guess is None else guess[0]
            first = np.broadcast_to(begin, (len(kernels), *begin.shape))
            if guess is not None:
                first = guess[1][:, own[:, None], columns]
            _write(kernels, own, columns, first)
            for _ in range(ROUNDS):
                by, sources = change(step, nodes)
                moved = start + np.tensordot(rule, by, axes=1)
                grown = begin + np.tensordot(rule, sources, axes=1)
                gap = max(_gap(moved, out), _gap(grown, kernels[:, own[:, None], columns]))
                out[:] = moved
                _write(kernels, own, columns, grown)
                if not gap > 4 * EPS + self.off:
                    break
            change(step, nodes)

    def _begun(self, step: int) -> int:
        """How many nodes lie where averages of phi'' are infinite, but for rounding.

        Streams of inputs on one line start as one. Times dp / du what they bring is finite there.
        """
        if not self.averages.kinked:
            return 0
        *_, pairs = self.earlier(step, self.store.features)
        alike = np.any(proportional(pairs), axis=1)
        return min(int(np.argmin(alike)), FEW)

    def _nodes(self, panel: int) -> slice:
        return slice(panel * self.panels.width, (panel + 1) * self.panels.width)

    def _guess(self, name: str, nodes: slice, new: slice) -> tuple[Array, Array] | None:
        """Solutions and Gram matrices at the nodes of a panel, by those that are near."""
        if self.near is None:
            return None
        rule = self.near.panels.at_all(self.panels.nodes.ravel()[nodes])
        found = getattr(self.near.store, name)[:, new], self.near.store.gram
        return np.tensordot(rule, found[0], axes=1), np.tensordot(rule, found[1], axes=1)

    def _ahead(self, step: int, nodes: slice) -> tuple[Array, Array]:
        """What solutions of x and their Gram matrices change by, at the nodes of a panel."""
        s, (new, high) = self.store, self.new(step)
        low, old = new.start, 2 * new.start
        own, width = self.own[new], 2 * new.start + self.trunk.batch
        rows, jumps, law = s.forward[nodes, new], s.jumps[nodes], s.law[nodes]
        kernel = rows[..., :width] @ s.gram[nodes, :width, :width]
        kernel = kernel @ s.forward[nodes, :high, :width].transpose(0, 2, 1)
        s.features[nodes, new, :high] = kernel
        products, slopes = kernel, np.ones_like(kernel)
        if not self.trunk.linear:
            self.fill_forward(step, nodes, s.features[nodes], kernel)
            products, slopes = (s.averages[part, nodes, new, :high] for part in (0, 1))
        _write(law, own, self.own[:high], products)
        drift = -self.updates[:low] * kernel[..., :low]
        if self.noise:
            self._jump(rows, jumps, own, self.noise)
            places = self.columns[:low]
            inner = jumps[:, places[:, None], places]
            drift = drift - self.noise * (rows[..., places] @ inner)
        s.drift[nodes, new, :low] = drift
        by = np.zeros_like(rows)
        by[..., :old] = (drift * slopes[..., :low]) @ s.backward[nodes, :low, :old]
        return by, _sources(jumps, law, own, self.own[:high])

    def _back(self, step: int, nodes: slice) -> tuple[Array, Array]:
        """The same of dx, against the direction of p."""
        s, (new, high) = self.store, self.new(step)
        low, old = new.start, 2 * new.start + self.trunk.batch
        own, columns = self.columns[new], self.columns[:high]
        rows, jumps, law = s.backward[nodes, new], s.jumps[nodes], s.law[nodes]
        width = 2 * high
        kernel = rows[..., :width] @ s.gram[nodes, :width, :width]
        kernel = kernel @ s.backward[nodes, :high, :width].transpose(0, 2, 1)
        s.gradients[nodes, new, :high] = kernel
        first = np.ones_like(kernel)
        if not self.trunk.linear:
            first = s.averages[1, nodes, new, :high]
        _write(law, own, columns, kernel * first)
        slopes = np.zeros_like(kernel)
        if self.noise:
            self._jump(rows, jumps, own, -self.noise)
            places = self.own[:high]
            slopes = self.noise * (rows[..., places] @ jumps[:, places[:, None], places])
        weights = first * slopes
        weights[..., low:] = 0.0
        weights[..., :low] -= first[..., :low] * self.updates[:low] * kernel[..., :low]
        if not self.trunk.linear:
            own_slopes = np.diagonal((first * slopes)[..., low:], axis1=1, axis2=2)
            twice, mixed, third = (s.averages[part, nodes, new, :high] for part in (2, 3, 4))
            pull = kernel[..., :low] * s.drift[nodes, new, :low]
            weights[..., :low] += twice[..., :low] * pull
            alone = own_slopes + (mixed * slopes).sum(-1) + (third[..., :low] * pull).sum(-1)
            place = np.arange(high - low)
            weights[:, place, low + place] = alone
        by = np.zeros_like(rows)
        by[..., :old] = weights @ s.forward[nodes, :high, :old]
        return by, _sources(jumps, law, own, columns)

    @staticmethod
    def _jump(rows: Array, jumps: Array, own: Index, size: float) -> None:
        """The jumps of new kets: by their own Gaussians, and what earlier jumps do to them."""
        jumps[:, own] = 0.0
        for place, column in enumerate(own):
            row = rows[:, place, None, :column]
            jumps[:, column, :column] = -(row @ jumps[:, :column, :column])[:, 0]
            jumps[:, column, column] = size


def _sources(jumps: Array, law: Array, own: Index, columns: Index) -> Array:
    return jumps[:, own] @ law @ jumps[:, columns].transpose(0, 2, 1)


def _write(kernels: Array, own: Index, columns: Index, values: Array) -> None:
    kernels[:, own[:, None], columns] = values
    kernels[:, columns[:, None], own] = values.transpose(0, 2, 1)


def _gap(one: Array, two: Array) -> float:
    size = float(np.abs(one).max())
    return float(np.abs(one - two).max()) / size if size else 0.0
