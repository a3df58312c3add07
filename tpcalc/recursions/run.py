"""What the passes at a depth and those of the limit share: their ends, and averages of phi."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array
from tpcalc.engine import trunks
from tpcalc.integrals.bounded import Bounded
from tpcalc.recursions.averages import Averages, Pairs
from tpcalc.recursions.trunk import Trunk
from tpcalc.results import Method

EPS = float(np.finfo(float).eps)
Index = NDArray[np.intp]


def places(trunk: Trunk) -> tuple[Index, Index]:
    """The columns of x and of dx of all samples."""
    samples = np.arange(trunk.count)
    own = samples + trunk.batch * (samples // trunk.batch)
    return own, own + trunk.batch


def only(jumps: Array, rows: Index) -> Array:
    """The jumps of some rows, 0 in place of the others."""
    found = np.zeros_like(jumps)
    found[rows] = jumps[rows]
    return found


def largest(values: Array, steps: int, square: bool = False) -> Array:
    """The size of the largest number up to each step."""
    rows = np.abs(np.tril(values) if square else values).max(axis=-1)
    found = rows.reshape(-1, rows.shape[-1]).max(axis=0).reshape(steps, -1).max(axis=1)
    return np.asarray(np.maximum.accumulate(found))


def bounds(value: Array, errors: Array, square: bool = False) -> Array:
    """Errors of numbers, relative to the largest of their step and those before."""
    rows = np.arange(len(value)) * len(errors) // len(value)
    last = np.maximum.outer(rows, rows) if square else rows.reshape(-1, *(1,) * (value.ndim - 1))
    found = errors * largest(value.reshape(len(value), -1), len(errors), square)
    return np.broadcast_to(found[last], value.shape)


class Run:
    """The passes of a run as they go on.

    Args:
        trunk: The network and its run.
        store: Room for them.
    """

    def __init__(self, trunk: Trunk, store: trunks.Store) -> None:
        self.trunk, self.store = trunk, store
        self.outputs, self.chi = np.zeros_like(trunk.targets), np.zeros_like(trunk.targets)
        self.method, self.off = Method.EXACT, 0.0
        self.own, self.columns = places(trunk)
        self.averages = Averages(trunk.activation)

    def new(self, step: int) -> tuple[slice, int]:
        """The samples of a step, and how many there are with those before.

        Args:
            step: t.
        """
        high = (step + 1) * self.trunk.batch
        return slice(high - self.trunk.batch, high), high

    def start_forward(self, step: int) -> None:
        """x^0 of a step.

        Args:
            step: t.
        """
        s, xi, starts = self.store, self.trunk.samples, self.trunk.starts
        new, high = self.new(step)
        rates, _ = self.trunk.ends(step)
        s.forward[0, new] = -(xi[new] @ xi[: new.start].T * rates) @ s.backward[0, : new.start]
        s.forward[0, new, self.own[:high]] += self.trunk.lines[new, :high].T
        s.forward[0, np.arange(new.start, high), self.own[new]] = 1.0
        self._start(0, self.own[:high], self.own[new], starts[:high] @ starts[new].T)

    def start_backward(self, step: int) -> None:
        """dx^L of a step.

        Args:
            step: t.
        """
        s, chi = self.store, self.chi.reshape(self.trunk.count, -1)
        new, high = self.new(step)
        _, rates = self.trunk.ends(step)
        s.backward[-1, new] = -(chi[new] @ chi[: new.start].T * rates) @ s.forward[-1, : new.start]
        s.backward[-1, np.arange(new.start, high), self.columns[new]] = 1.0
        self._start(-1, self.columns[:high], self.columns[new], chi[:high] @ chi[new].T)

    def _start(self, layer: int, columns: Index, new: Index, kernel: Array) -> None:
        gram = self.store.gram[layer]
        gram[np.ix_(columns, new)] = kernel
        gram[np.ix_(new, columns)] = kernel.T

    def read(self, step: int) -> None:
        """The outputs of a step, and chi.

        Args:
            step: t.
        """
        s, trunk = self.store, self.trunk
        new, _ = self.new(step)
        low = new.start
        chi = self.chi.reshape(trunk.count, -1)[:low]
        _, rates = trunk.ends(step)
        found = s.forward[-1, new][:, self.columns[:low]] @ chi
        found -= s.features[-1, new, :low] * rates @ chi
        self.outputs[step] = found
        self.chi[step] = trunk.slope(found, trunk.targets[step])

    def fill_forward(self, step: int, edges: slice, old: Array, kernels: Array) -> None:
        """Vc and V11 of the pairs of a step with itself and all before.

        Args:
            step: t.
            edges: Where they are kept.
            old: Kernels of earlier samples at these edges.
            kernels: Those of the step with all, of shape (edges, B, samples so far).
        """
        new, high = self.new(step)
        low = new.start
        one, two = np.array([(i, j) for i in range(low, high) for j in range(i + 1)]).T
        variance = np.empty((len(kernels), high))
        variance[:, :low] = np.diagonal(old[:, :low, :low], axis1=1, axis2=2)
        variance[:, low:] = np.diagonal(kernels[:, :, low:], axis1=1, axis2=2)
        pairs = Pairs(variance[:, one], variance[:, two], kernels[:, one - low, two])
        for place, part in enumerate(self.averages.forward(pairs)):
            self._keep(part)
            table = self.store.averages[place]
            table[edges, one, two] = table[edges, two, one] = part.value

    def fill_backward(self, step: int, edges: slice, kernels: Array) -> None:
        """V22, V2c and V31 of the pairs of a step with all before, V2c of each sample with itself.

        Args:
            step: t.
            edges: Where they are kept.
            kernels: Kernels at these edges.
        """
        new, high = self.new(step)
        own = np.arange(new.start, high)
        found = self.averages.own(np.diagonal(kernels, axis1=1, axis2=2)[:, own])
        self._keep(found)
        self.store.averages[3][edges, own, own] = found.value
        if not new.start:
            return
        one, two, pairs = self.earlier(step, kernels)
        for place, part in enumerate(self.averages.backward(pairs)):
            self._keep(part)
            self.store.averages[2 + place][edges, one, two] = part.value

    def earlier(self, step: int, kernels: Array) -> tuple[Index, Index, Pairs]:
        """The pairs of the samples of a step with all before.

        Args:
            step: t.
            kernels: Kernels at some edges.
        """
        new, high = self.new(step)
        one = np.repeat(np.arange(new.start, high), new.start)
        two = np.tile(np.arange(new.start), high - new.start)
        variance = np.diagonal(kernels, axis1=1, axis2=2)
        return one, two, Pairs(variance[:, one], variance[:, two], kernels[:, one, two])

    def _keep(self, answer: Bounded) -> None:
        self.method = max(self.method, answer.method)
        size = max(float(np.abs(answer.value).max()), EPS)
        self.off = max(self.off, float(np.max(answer.error)) / size)
