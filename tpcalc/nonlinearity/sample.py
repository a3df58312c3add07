"""The inputs that a function is measured on, in batches: given ones, or draws of a law."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import inf
from typing import Any, NamedTuple

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array, Index
from tpcalc.errors import UsageError
from tpcalc.nonlinearity.estimators import Measured, mean_of, mean_of_draws
from tpcalc.nonlinearity.laws import Given, Law

CELLS = 2**22  # numbers in one array of inputs
MOST = 1024  # draws of a law in a batch


class Move(NamedTuple):
    """Inputs, vectors along which they move, and where both were taken from."""

    x: Array
    v: Array
    places: Index
    others: Index | None


@dataclass(frozen=True, eq=False)
class Sample:
    """Inputs in batches of one size, but for the last."""

    law: Law  # what they are drawn from
    count: int  # how many
    batch: int  # inputs of a batch
    seed: int  # the seed
    order: Index | None = None  # where given inputs were before; None: draws of a law
    left_out: int = 0  # how many given inputs filled no batch

    def __len__(self) -> int:
        return self.count

    @cached_property
    def rows(self) -> Array:
        """The given inputs in their order here."""
        assert isinstance(self.law, Given)
        found: Array = self.law.inputs
        return found

    @cached_property
    def mean(self) -> Array:
        """The mean of given inputs."""
        return np.asarray(self.rows.mean(axis=0))

    @cached_property
    def spread(self) -> float:
        """Tr Cov of given inputs."""
        with np.errstate(over="ignore"):
            return float(((self.rows - self.mean) ** 2).sum()) / (len(self) - 1)

    @property
    def correction(self) -> float:
        """What a mean square of deviations from the mean of n inputs lacks: n / (n - 1)."""
        return len(self) / (len(self) - 1)

    def stream(self, what: str, draw: int) -> np.random.Generator:
        """The random numbers of one draw."""
        digest = blake2b(what.encode(), digest_size=8).digest()
        words = [self.seed, int.from_bytes(digest, "little"), draw]
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence(words)))

    def noise(self, shape: tuple[int, ...], what: str, draw: int) -> Array:
        """Independent N(0, 1) entries."""
        return self.stream(what, draw).standard_normal(shape)

    def places(self, what: str, draw: int) -> Index:
        """Where the different inputs of a random batch are."""
        return self.stream(what, draw).choice(len(self), self.batch, replace=False)

    def repeatable_places(self, what: str, draw: int) -> Index:
        """Where inputs that are drawn one by one are, so that some may be the same."""
        return self.stream(what, draw).integers(len(self), size=self.batch)

    def parts(self) -> Iterator[Index]:
        """The places of all inputs, batch by batch."""
        for start in range(0, len(self), self.batch):
            yield np.arange(start, min(start + self.batch, len(self)))

    def batches(self) -> Iterator[Array]:
        """All inputs, batch by batch; the same batches every time."""
        for number, part in enumerate(self.parts()):
            if self.order is None:
                yield self.law.points(self.stream("points", number), len(part))
            else:
                yield self.rows[part]

    def moves(self, draws: int) -> Iterator[Move]:
        """Inputs along independent vectors with their covariance."""
        if self.order is not None:
            for draw in range(draws):
                places = self.places("inputs", draw)
                # Drawn one by one: then directions of different positions of a batch are
                # independent, and means are right for functions with batch norm as well.
                others = self.repeatable_places("directions", draw)
                yield Move(self.rows[places], self.rows[others] - self.mean, places, others)
            return
        for number, (part, x) in enumerate(zip(self.parts(), self.batches(), strict=True)):
            v = self.law.changes(self.stream("changes", number), len(x))
            yield Move(x, v, part, None)

    def tangents(self, draws: int) -> Iterator[Move]:
        """Inputs along Gaussian noise."""
        for draw in range(draws):
            places = self.places("inputs", draw)
            x = self.rows[places]
            yield Move(x, self.noise(x.shape, "tangents", draw), places, None)

    def mean_over(
        self, terms: list[Array], places: list[Index], others: Any = None, columns: Any = None
    ) -> Measured:
        """The mean of numbers of inputs at places, of two each where there are others."""
        if self.order is None:
            return mean_of(np.concatenate(terms))
        if others is None or others[0] is None:
            return mean_of_draws(np.array(terms), len(self), np.array(places))
        own = None if columns is None else np.array(columns)
        found = mean_of_draws(np.array(terms), len(self), np.array(places), np.array(others), own)
        return found.times(self.correction)


def given(rows: Array, batch: int, seed: int, kept: int | None = None) -> Sample:
    """Given inputs in a random order; those after the first ``kept`` are left out."""
    count = len(rows)
    words = [checks.seed(seed), count]
    stream = np.random.Generator(np.random.SFC64(np.random.SeedSequence(words)))
    order = stream.permutation(count)[:kept]
    law = Given(rows[order])
    found = Sample(law, len(order), batch, seed, order, count - len(order))
    if bool((law.inputs == law.inputs[0]).all()):
        raise UsageError("all inputs are equal.", hint="A nonlinearity needs inputs that differ.")
    if not 0 < found.spread < inf:
        raise UsageError(
            "squares of inputs leave the range of floats.",
            where="x",
            hint="Give inputs in another unit: the coefficient of x -> f(s x) under x / s is that "
            "of f under x.",
        )
    return found


def sample_of(law: Law, count: int, seed: int) -> Sample:
    """A sample of a law; of given inputs all."""
    most = max(2, min(MOST, CELLS // law.dimension))
    if isinstance(law, Given):
        return given(law.inputs, min(len(law.inputs), most), seed)
    return Sample(law, count, min(count, most), seed)
