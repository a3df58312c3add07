"""Affine subspaces of F_2^k: which sign flips a random variable may feel.

The law of an infinite network does not change when one of its independent symmetric directions
changes sign. A variable expands in characters of these flips; its ``Coset`` (an affine subspace
over F_2, a bit for each direction) contains every character that occurs. Where the coset does not
contain 0 the variable has mean 0.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

Coset = tuple[int, int]  # (representative reduced by the space, number of the space)
EVEN: Coset = (0, 0)  # what no flip changes: constants
ALL: Coset = (0, 1)  # may feel every flip
NOWHERE = -1  # the representative of what is in no coset of a space


@dataclass
class Lattice:
    """Interned subspaces in reduced echelon form, with remembered joins.

    Example:
        >>> lattice = Lattice()
        >>> x, y = lattice.single(0), lattice.single(1)
        >>> lattice.has_zero(lattice.product(x, y)), lattice.has_zero(lattice.product(x, x))
        (False, True)
        >>> lattice.has_zero(lattice.product(lattice.hull(x, y), x))
        True
    """

    # dimension up to which a subspace is followed; beyond it ALL stands for it, which claims fewer
    # zeros
    largest: int = 128
    _tables: list[dict[int, int]] = field(default_factory=lambda: [{}, {}])  # pivot bit -> row
    _pivots: list[int] = field(default_factory=lambda: [0, 0])
    _numbers: dict[frozenset[int], int] = field(default_factory=lambda: {frozenset(): 0})
    _inserted: dict[tuple[int, int], int] = field(default_factory=dict)
    _joined: dict[tuple[int, int], int] = field(default_factory=dict)
    _products: dict[tuple[Coset, Coset], Coset] = field(default_factory=dict)
    _hulls: dict[tuple[Coset, Coset], Coset] = field(default_factory=dict)
    _inside: dict[Coset, dict[int, int]] = field(default_factory=dict)  # representatives

    def single(self, direction: int) -> Coset:
        """The coset of a direction itself."""
        return (1 << direction, 0)

    def has_zero(self, coset: Coset) -> bool:
        """Whether the coset contains 0; if not, the mean is 0."""
        return coset[0] == 0

    def product(self, a: Coset, b: Coset) -> Coset:
        """The coset of a product: the sum of the cosets.

        Args:
            a: Of one factor.
            b: Of the other.
        """
        key = (a, b)
        found = self._products.get(key)
        if found is None:
            space = self._join(a[1], b[1])
            found = self._products[key] = (self._reduce(a[0] ^ b[0], space), space)
        return found

    def hull(self, a: Coset, b: Coset) -> Coset:
        """The coset of a sum: the affine hull."""
        if a == b:
            return a
        key = (a, b)
        found = self._hulls.get(key)
        if found is None:
            space = self._insert(self._join(a[1], b[1]), a[0] ^ b[0])
            found = self._hulls[key] = (self._reduce(a[0], space), space)
        return found

    def holds(self, cosets: Mapping[int, Container[int]], inner: Coset) -> bool:
        """Whether a coset lies in one of several."""
        known = self._inside.setdefault(inner, {})
        for space, places in cosets.items():
            place = known.get(space)
            if place is None:
                there = self._contains(space, inner[1])
                place = known[space] = self._reduce(inner[0], space) if there else NOWHERE
            if place in places:
                return True
        return False

    def dimension(self, coset: Coset) -> int:
        """The number of directions of a coset; beyond any other where they are not followed."""
        return self.largest + 1 if coset[1] == ALL[1] else len(self._tables[coset[1]])

    def even(self, coset: Coset) -> Coset:
        """The coset of an even function: the directions of the space."""
        return (0, coset[1])

    def span(self, coset: Coset) -> Coset:
        """The coset of any function: the space spanned by the coset."""
        return (0, self._insert(coset[1], coset[0]))

    def inside(self, coset: Coset, bits: int) -> tuple[int, ...] | None:
        """Characters of a coset that feel none but some directions: one, and what spans them."""
        if coset[1] == ALL[1]:
            return (0, *(1 << place for place in range(bits.bit_length()) if bits >> place & 1))
        place, kept = coset[0], list[int]()
        pivots: list[tuple[int, int]] = []  # of what feels other directions
        for row in self._tables[coset[1]].values():
            for pivot, other in pivots:
                row ^= other if row & pivot else 0
            out = row & ~bits
            if out:
                pivots.append((out & -out, row))
            else:
                kept += [row] if row else []
        for pivot, other in pivots:
            place ^= other if place & pivot else 0
        return None if place & ~bits else (place, *kept)

    def within(self, coset: Coset, bits: int) -> Coset | None:
        """The coset of the characters that feel none but some directions; None: there is none."""
        if coset[1] == ALL[1]:
            return ALL
        found = self.inside(coset, bits)
        return None if found is None else self._spanned(found[0], found[1:])

    def shifted(self, coset: Coset, places: int) -> Coset:
        """The coset of an independent copy, whose directions have other numbers."""
        if coset[1] == ALL[1]:
            return ALL
        rows = self._tables[coset[1]].values()
        return self._spanned(coset[0] << places, [row << places for row in rows])

    def _spanned(self, place: int, rows: Iterable[int]) -> Coset:
        space = 0
        for row in rows:
            space = self._insert(space, row)
        return (self._reduce(place, space), space)

    def support(self, coset: Coset) -> int:
        """The bits of all directions that occur; every bit (-1) where they are not followed."""
        if coset[1] == ALL[1]:
            return -1
        bits = coset[0]
        for row in self._tables[coset[1]].values():
            bits |= row
        return bits

    def _contains(self, space: int, other: int) -> bool:
        """Whether a space holds another."""
        if other in (0, space) or space == ALL[1]:
            return True
        if other == ALL[1] or len(self._tables[other]) >= len(self._tables[space]):
            return False
        return self._join(space, other) == space

    def _reduce(self, vector: int, space: int) -> int:
        if space == ALL[1]:
            return 0
        table = self._tables[space]
        hit = vector & self._pivots[space]
        while hit:  # rows hold no pivot but their own, so one pass is enough
            low = hit & -hit
            vector ^= table[low]
            hit ^= low
        return vector

    def _insert(self, space: int, vector: int) -> int:
        vector = self._reduce(vector, space)
        if not vector:
            return space
        key = (space, vector)
        found = self._inserted.get(key)
        if found is None:
            pivot = vector & -vector
            table = {
                own: row ^ vector if row & pivot else row
                for own, row in self._tables[space].items()
            }
            table[pivot] = vector
            found = self._inserted[key] = self._intern(table)
        return found

    def _intern(self, table: dict[int, int]) -> int:
        if len(table) > self.largest:
            return ALL[1]
        rows = frozenset(table.values())
        found = self._numbers.get(rows)
        if found is None:
            found = self._numbers[rows] = len(self._tables)
            self._tables.append(table)
            self._pivots.append(sum(table))
        return found

    def _join(self, a: int, b: int) -> int:
        if a == b or b == 0:
            return a
        if a == 0:
            return b
        if ALL[1] in (a, b):
            return ALL[1]
        key = (a, b) if a < b else (b, a)
        found = self._joined.get(key)
        if found is None:
            small, found = sorted(key, key=lambda space: len(self._tables[space]))
            for row in self._tables[small].values():
                found = self._insert(found, row)  # ALL takes every row
            self._joined[key] = found
        return found
