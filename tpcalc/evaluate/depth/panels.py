"""Functions of the depth p in [0, 1], by polynomials on panels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import chebyshev

from tpcalc.evaluate.depth.trunk import Array

__all__ = ["Panels"]


@dataclass(frozen=True)
class Panels:
    """So many equal panels, each with Chebyshev nodes that include its ends.

    Args:
        count: How many.
        order: The degree of polynomials on each.

    Example:
        >>> panels = Panels(2)
        >>> values = panels.nodes.reshape(-1) ** 3
        >>> round(float(panels.at(values, 0.3)), 12)
        0.027
    """

    count: int
    order: int = 14

    @property
    def width(self) -> int:
        """Nodes of a panel."""
        return self.order + 1

    @cached_property
    def _points(self) -> Array:
        return -np.cos(np.pi * np.arange(self.order + 1) / self.order)

    @cached_property
    def nodes(self) -> Array:
        """The nodes, a panel a row."""
        starts = np.arange(self.count)[:, None]
        found: Array = (starts + (self._points + 1) / 2) / self.count
        return found

    @cached_property
    def _coefficients(self) -> Array:
        inverse = np.linalg.inv(chebyshev.chebvander(self._points, self.order))
        return inverse.astype(np.float64)

    @cached_property
    def from_left(self) -> Array:
        """Integrals from the left end of a panel to its nodes, of values at its nodes."""
        integrals = chebyshev.chebint(self._coefficients, lbnd=-1, axis=0)
        values = chebyshev.chebvander(self._points, self.order + 1)
        found: Array = values @ integrals / (2 * self.count)
        return found

    @cached_property
    def from_right(self) -> Array:
        """Integrals from the nodes to the right end."""
        found: Array = self.from_left[-1] - self.from_left
        return found

    def at(self, values: Array, place: float) -> Array:
        """A function at one place, from its values at all nodes (the first axis).

        Args:
            values: The values.
            place: p.
        """
        panel = min(int(place * self.count), self.count - 1)
        inside = 2 * (place * self.count - panel) - 1
        weights = chebyshev.chebvander(np.array([inside]), self.order)[0] @ self._coefficients
        own = values[panel * self.width : (panel + 1) * self.width]
        found: Array = np.tensordot(weights, own, axes=1)
        return found
