"""Products with Haar matrices that undo each other: W^T W = 1 up to a number, exactly."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.limit.building import Building
from tpcalc.limit.graph import LRef, Product
from tpcalc.limit.views import product_of


def is_isometric(context: Building, node: Product) -> bool:
    """Whether a product with a Haar matrix keeps angles: it goes to the larger dimension."""
    rows, cols = context.orthogonal[node.matrix]
    return rows <= cols if node.transpose else cols <= rows


def known_product(context: Building, node: Product) -> tuple[Fraction, LRef] | None:
    """A product with a Haar matrix as a multiple of a node that is there."""
    inner = product_of(context.nodes[node.vector])
    if (
        inner is not None
        and (inner.matrix, inner.transpose) == (node.matrix, not node.transpose)
        and is_isometric(context, inner)
    ):
        return max(context.orthogonal[node.matrix]), inner.vector
    found = context.known.get(node)
    return None if found is None else (Fraction(1), found)
