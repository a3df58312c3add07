"""Functions of the depth p in [0, 1], by polynomials on panels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import chebyshev

from tpcalc.arrays import Array
from tpcalc.integrals import rules


@dataclass(frozen=True)
class Panels:
    """Panels of the depth, each with Chebyshev nodes that include its ends.

    Example:
        >>> panels = Panels(2)
        >>> values = panels.nodes.reshape(-1) ** 3
        >>> round(float(panels.at(values, 0.3)), 12)
        0.027
    """

    parts: int  # how many, of equal length in u
    order: int = 14  # the degree of polynomials on each
    power: int = 1  # p = u^power; 2 makes roots of p at its start smooth
    halved: int = 0  # how often the first one is halved

    @property
    def count(self) -> int:
        """How many panels there are."""
        return self.parts + self.halved

    @property
    def inner(self) -> float:
        """Where the first one ends."""
        return float(self._ends[1] ** self.power)

    @property
    def width(self) -> int:
        """Nodes of a panel."""
        return self.order + 1

    @cached_property
    def _ends(self) -> Array:
        first = 0.5 ** np.arange(self.halved, -1, -1)
        return np.concatenate([[0.0], first, np.arange(2, self.parts + 1)]) / self.parts

    @cached_property
    def _lengths(self) -> Array:
        return np.diff(self._ends)

    @cached_property
    def _points(self) -> Array:
        return -np.cos(np.pi * np.arange(self.order + 1) / self.order)

    @cached_property
    def _roots(self) -> Array:
        inside = (self._points + 1) / 2
        return self._ends[:-1, None] + inside * self._lengths[:, None]

    @cached_property
    def nodes(self) -> Array:
        """The nodes, a panel a row."""
        return self._roots**self.power

    @cached_property
    def _coefficients(self) -> Array:
        inverse = np.linalg.inv(chebyshev.chebvander(self._points, self.order))
        return inverse.astype(np.float64)

    @cached_property
    def _integrals(self) -> Array:
        integrals = chebyshev.chebint(self._coefficients, lbnd=-1, axis=0)
        return chebyshev.chebvander(self._points, self.order + 1) @ integrals / 2

    def from_left(self, panel: int) -> Array:
        """Integrals from the left end of a panel to its nodes, of values at its nodes."""
        return self._over(panel, self._integrals)

    def from_right(self, panel: int) -> Array:
        """Integrals from the nodes to the right end."""
        return self._over(panel, self._integrals[-1] - self._integrals)

    def from_right_beyond(self, panel: int, first: int) -> Array:
        """The same, of polynomials through all values but the first ones."""
        degree = self.order - first
        through = np.linalg.inv(chebyshev.chebvander(self._points[first:], degree))
        missing = chebyshev.chebvander(self._points[:first], degree) @ through
        rule = self._integrals[-1] - self._integrals
        found = np.zeros_like(rule)
        found[:, first:] = rule[:, first:] + rule[:, :first] @ missing
        return self._over(panel, found)

    def _over(self, panel: int, rule: Array) -> Array:
        speed = self.power * self._roots[panel] ** (self.power - 1)
        found: Array = rule * (speed * self._lengths[panel])
        return found

    def between(self, first: float, last: float) -> tuple[Array, Array]:
        """Places between two, and weights of an integral over p.

        Args:
            first: A place.
            last: A later one.
        """
        points, weights = rules.legendre(32)
        low, high = first ** (1 / self.power), last ** (1 / self.power)
        roots = low + (high - low) * (points + 1) / 2
        speed = self.power * roots ** (self.power - 1)
        return roots**self.power, (high - low) / 2 * weights * speed

    def at(self, values: Array, place: float) -> Array:
        """A function at one place, from its values at all nodes (the first axis)."""
        rule = self.at_all(np.array([place]))[0]
        near = np.flatnonzero(rule)
        return np.tensordot(rule[near], values[near], axes=1)

    def at_all(self, places: Array) -> Array:
        """What values at all nodes are taken times for the function at some places, one a row."""
        roots = places ** (1 / self.power)
        panels = np.clip(np.searchsorted(self._ends, roots, "right") - 1, 0, self.count - 1)
        inside = 2 * (roots - self._ends[panels]) / self._lengths[panels] - 1
        weights = chebyshev.chebvander(inside, self.order) @ self._coefficients
        found = np.zeros((len(places), self.count, self.width))
        found[np.arange(len(places)), panels] = weights
        return found.reshape(len(places), -1)
