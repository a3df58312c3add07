"""The lattice of affine subspaces against sets of vectors of F_2^k that are written out."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tpcalc.exponents.coset import ALL, EVEN, Coset, Lattice

Points = frozenset[int]
BITS = 5


def affine(points: Points) -> Points:
    """All sums of an odd number of points."""
    found = set(points)
    while True:
        more = {a ^ b ^ c for a in found for b in found for c in points} - found
        if not more:
            return frozenset(found)
        found |= more


@dataclass
class Twins:
    """Cosets of a lattice, each with the set it stands for."""

    lattice: Lattice = field(default_factory=Lattice)
    cosets: list[Coset] = field(default_factory=lambda: [EVEN])
    sets: list[Points] = field(default_factory=lambda: [frozenset({0})])

    def step(self, kind: int, i: int, j: int) -> None:
        """Add the result of an operation to both lists."""
        a, b = self.cosets[i % len(self.cosets)], self.cosets[j % len(self.cosets)]
        x, y = self.sets[i % len(self.sets)], self.sets[j % len(self.sets)]
        differences = frozenset(p ^ q for p in x for q in x)
        cases = {
            0: lambda: (self.lattice.single(i % BITS), frozenset({1 << i % BITS})),
            1: lambda: (self.lattice.product(a, b), frozenset(p ^ q for p in x for q in y)),
            2: lambda: (self.lattice.hull(a, b), affine(x | y)),
            3: lambda: (self.lattice.even(a), differences),
            4: lambda: (self.lattice.span(a), affine(x | {0})),
        }
        coset, points = cases[kind]()
        self.cosets.append(coset)
        self.sets.append(points)


STEPS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=25
)


@given(STEPS)
def test_cosets_are_sets(steps: list[tuple[int, int, int]]) -> None:
    """In what operations make of them, in what is equal and in what holds what."""
    twins = Twins()
    for step in steps:
        twins.step(*step)
    pairs = list(zip(twins.cosets, twins.sets, strict=True))
    for coset, points in pairs:
        place, space = coset
        assert twins.lattice.has_zero(coset) == (0 in points)
        support = 0
        for point in points:
            support |= point
        assert twins.lattice.support(coset) == support
        for other, others in pairs:
            assert (coset == other) == (points == others)
            assert twins.lattice.holds({space: {place}}, other) == (others <= points)


@given(STEPS)
def test_small_lattices_claim_no_zero_that_large_ones_do_not(
    steps: list[tuple[int, int, int]],
) -> None:
    """Beyond the largest dimension a space stands for all of them: sets only grow."""
    exact, coarse = Twins(), Twins(Lattice(largest=1))
    for step in steps:
        exact.step(*step)
        coarse.step(*step)
    for coset, points in zip(coarse.cosets, exact.sets, strict=True):
        if not coarse.lattice.has_zero(coset):
            assert 0 not in points


def test_what_is_not_followed_may_feel_everything() -> None:
    lattice = Lattice(largest=1)
    two = lattice.hull(lattice.hull(lattice.single(0), lattice.single(1)), lattice.single(2))
    assert two == ALL
    assert lattice.has_zero(two) and lattice.support(two) == -1
    assert lattice.product(two, lattice.single(7)) == ALL
    assert lattice.hull(lattice.single(7), two) == ALL
    assert lattice.even(two) == lattice.span(two) == ALL
    assert lattice.holds({ALL[1]: {ALL[0]}}, lattice.single(7))
    assert not any(lattice.holds({space: {0}}, two) for space in (EVEN[1], lattice.span((1, 0))[1]))
