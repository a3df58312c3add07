"""What is read off the kets of a run, at a depth or in the limit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.engine import trunks
from tpcalc.integrals.bounded import Bounded
from tpcalc.recursions.run import bounds, only, places
from tpcalc.recursions.trunk import Trunk
from tpcalc.results import Method


class Recursion(ABC):
    """What all closed routes have, by sample i = t B + b; places are shares of the depth."""

    trunk: Trunk  # the network and its run
    outputs: Array  # f, of shape (T, B, k)
    chi: Array  # the derivative of the loss by the outputs, of the same shape
    errors: Array  # relative to the largest number of a step and those before, by step
    method: Method = Method.QUADRATURE

    @abstractmethod
    def features(self, place: float = 1.0) -> Bounded:
        """The kernel <x_i | x_j>, of shape (T B, T B): at p = 1 that of the features.

        Source: Tensor Programs VI, Theorem 4.1, where the kernel is that of forward kets.
        """

    @abstractmethod
    def gradients(self, place: float = 0.0) -> Bounded:
        """The kernel <dx_i | dx_j>."""

    def at(self, place: float) -> float:
        """The place there is that is nearest."""
        return self._inside(place)

    @abstractmethod
    def preactivations(self, place: float) -> Bounded:
        """The kernel of preactivations of the block that leads to p."""

    @abstractmethod
    def distances(self, first: float, last: float) -> Bounded:
        """The kernel of x(last) - x(first).

        Source: Tensor Programs VI, Definition 7.6.
        """

    def _answer(self, value: Array, square: bool = False) -> Bounded:
        """Numbers with their errors, as ``bounds`` has them."""
        return Bounded(value, bounds(value, self.errors, square), self.method)

    def readout(self) -> Bounded:
        """The outputs."""
        return self._answer(self.outputs)

    @staticmethod
    def _inside(place: float) -> float:
        return float(checks.real(place, "a place along the depth", least=0, most=1))


class Kets(Recursion):
    """Kets of all passes."""

    store: trunks.Store  # kets as the engine keeps them

    @abstractmethod
    def _kept(self, part: Array, place: float) -> Array:
        """Something of layers, or of the edges that lead to them, at a place."""

    def features(self, place: float = 1.0) -> Bounded:
        return self._answer(self._kept(self.store.features, self._inside(place)), square=True)

    def gradients(self, place: float = 0.0) -> Bounded:
        return self._answer(self._kept(self.store.gradients, self._inside(place)), square=True)

    def ends(self, place: float) -> tuple[tuple[Bounded, Bounded], tuple[Bounded, Bounded]]:
        """Coefficients of U in x and in dx, of shape (T B, d); then those of n V, (T B, k).

        Source: Tensor Programs VI, Lemma 4.3: Gamma whose second index is -1.
        """
        first, last = places(self.trunk)
        kets = [self._kept(part, place) for part in (self.store.forward, self.store.backward)]
        chi = self.chi.reshape(self.trunk.count, -1)
        inputs, outputs = (
            tuple(self._answer(ket[:, columns] @ vectors) for ket in kets)
            for columns, vectors in ((first, self.trunk.starts), (last, chi))
        )
        return (inputs[0], inputs[1]), (outputs[0], outputs[1])

    def coefficients(self, place: float, edge: float) -> tuple[tuple[Bounded, ...], ...]:
        """Coefficients at p of the Gaussians of the block that leads to q, times sqrt(L).

        Source: Tensor Programs VI, Lemma 4.3: Gamma.
        """
        columns = places(self.trunk)
        jumps = self._kept(self.store.jumps, self._beyond(edge))
        # Beyond its edge they are the jumps of kets x, before it minus those of kets dx.
        beyond = self.at(place) >= self._beyond(edge)
        through = only(jumps, columns[0]) if beyond else -only(jumps, columns[1])
        kets = [self._kept(part, place) for part in (self.store.forward, self.store.backward)]
        return tuple(
            tuple(self._answer(self._scale * (ket @ through)[:, base]) for base in columns)
            for ket in kets
        )

    @property
    def _scale(self) -> float:
        """The root of the number of blocks, where coefficients are not divided by it."""
        return 1.0

    def _beyond(self, edge: float) -> float:
        """Where the stream holds the Gaussians of the block that leads to a place."""
        return edge

    def distances(self, first: float, last: float) -> Bounded:
        own, columns = places(self.trunk)
        start, end = (self._kept(self.store.forward, place) for place in (first, last))
        gram = np.zeros(self.store.gram.shape[1:])
        for place, rows in ((first, own), (last, columns)):
            gram[np.ix_(rows, rows)] = self._kept(self.store.gram, place)[np.ix_(rows, rows)]
        total: Array = (end - start) @ gram @ (end - start).T
        for weight, jumps, law in self._edges(first, last):
            # Before its edge the coefficients of a Gaussian are minus the jumps of dx.
            part = end @ only(jumps, own) + start @ only(jumps, columns)
            total += weight * (part @ law @ part.T)
        return self._answer(total, square=True)

    @abstractmethod
    def _edges(self, first: float, last: float) -> Iterator[tuple[float, Array, Array]]:
        """The edges between two places: how many one counts for, its jumps, their law."""
