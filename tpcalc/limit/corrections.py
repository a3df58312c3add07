"""Corrections: which earlier products the limit of a product with a random matrix holds.

The limit of What x is its hat, a Gaussian of its own, and a sum of terms c Z^y, one for each
earlier product What^T y that x depends on. Symmetry makes some coefficients 0. Formulas,
dependency sets and tables of corrections all ask here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tpcalc.exponents.coset import Lattice
from tpcalc.limit.graph import LimitGraph, LNode, LRef, outer_of, product_of, the_product
from tpcalc.limit.parity import Parity, union
from tpcalc.program.base import references

LARGEST = 2000  # nodes below a product whose correction is read off a graph


@dataclass(frozen=True, slots=True)
class Dot:
    """The correction of a product: earlier products of the other side that its vector is of."""

    open: tuple[LRef, ...] = ()  # those whose coefficient may be different from 0
    zero: tuple[LRef, ...] = ()  # those whose coefficient is 0 by symmetry


def dot_of(
    nodes: Sequence[LNode] | Mapping[LRef, LNode],
    parity: Parity,
    vector: LRef,
    earlier: Sequence[LRef],
    depends: int,
) -> Dot:
    """The correction of a product, by what symmetry says of its coefficients.

    E[G Z^x] = 0 for all the orthonormal directions G of products whose vectors may be correlated
    makes their coefficients 0: these solve a linear system in those numbers.
    """
    inside = [q for q in earlier if depends >> q & 1]
    if not inside:
        return Dot()
    open_: set[LRef] = set()
    for block in _blocks(nodes, parity, earlier):
        felt = (parity.lattice.product(parity.coset(vector), parity.draws[q]) for q in block)
        if any(parity.lattice.has_zero(coset) for coset in felt):
            open_.update(block)
    return Dot(tuple(q for q in inside if q in open_), tuple(q for q in inside if q not in open_))


def correlated(
    nodes: Sequence[LNode] | Mapping[LRef, LNode], parity: Parity, a: LRef, b: LRef
) -> bool:
    """Whether the vectors of two products may have E[Z Z'] different from 0."""
    return all(
        parity.lattice.has_zero(parity.lattice.product(parity.coset(x), parity.coset(y)))
        for x, y in zip(references(nodes[a]), references(nodes[b]), strict=True)
    )


def _blocks(
    nodes: Sequence[LNode] | Mapping[LRef, LNode], parity: Parity, products: Sequence[LRef]
) -> list[list[LRef]]:
    """Products of one side in groups that are certainly uncorrelated."""
    blocks: list[list[LRef]] = []
    for product in products:
        joined = [b for b in blocks if any(correlated(nodes, parity, product, q) for q in b)]
        blocks = [b for b in blocks if b not in joined]
        blocks.append([*(other for b in joined for other in b), product])
    return blocks


def correction(graph: LimitGraph, product: LRef) -> Dot | None:
    """The correction of a product of a limit graph; None where too much lies below it.

    Source: Hajjar, Chizat, Giraud, section B.2 (ZDot).
    """
    cone = _below(graph, product)
    if len(cone) > LARGEST:
        return None
    parity = Parity({group.name: group for group in graph.groups}, graph.orthogonal, Lattice())
    depends: dict[LRef, int] = {}
    sides: dict[tuple[str, bool], list[LRef]] = {}
    found = Dot()
    for ref in cone:
        parity.add(ref, graph.nodes[ref])
        node = product_of(graph.nodes[ref])
        if node is not None:
            earlier = sides.get((node.matrix, not node.transpose), [])
            found = dot_of(graph.nodes, parity, node.vector, earlier, depends[node.vector])
            vectors = [the_product(graph.nodes[q]).vector for q in found.open]
            depends[ref] = 1 << ref | union(depends[vector] for vector in vectors)
            sides.setdefault((node.matrix, node.transpose), []).append(ref)
        else:
            depends[ref] = union(depends[v] for v in _vectors(graph, graph.nodes[ref]))
    return found  # the product itself is the last of its cone


def _vectors(graph: LimitGraph, node: LNode) -> tuple[LRef, ...]:
    """The vectors whose coordinates a vector is a function of; scalars are deterministic."""
    if (outer := outer_of(node)) is not None:
        return outer.rows
    return tuple(ref for ref in references(node) if graph.vector_dim[ref] is not None)


def _below(graph: LimitGraph, product: LRef) -> list[LRef]:
    """The vectors that a product is made of, in order."""
    needed, stack = {product}, [product]
    while stack and len(needed) <= LARGEST:
        refs = references(graph.nodes[stack.pop()])
        fresh = {r for r in refs if graph.vector_dim[r] is not None} - needed
        needed |= fresh
        stack += fresh
    return sorted(needed)
