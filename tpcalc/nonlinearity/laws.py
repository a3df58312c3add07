"""Laws of the inputs of a function: what its nonlinearity is measured under."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.functions.numbers import Number

Draws = np.random.Generator

PILOT = 4096  # draws from which the covariance of a sampler is taken
SINGULAR = 1e-13  # relative: an eigenvalue below it is none


class Law(ABC):
    """What a random input of d numbers is drawn from."""

    dimension: int
    is_gaussian = False

    @abstractmethod
    def points(self, rng: Draws, size: int) -> Array:
        """Independent inputs, one in each row."""

    @abstractmethod
    def root(self, rng: Draws) -> Array:
        """D standard deviations of independent coordinates, or L with L L^T the covariance."""

    def factor(self, rng: Draws) -> Array:
        """A matrix L of d rows with L L^T the covariance."""
        root = self.root(rng)
        return np.diag(root) if root.ndim == 1 else root

    def sphere(self, rng: Draws, size: int) -> Array:
        """L u with u uniform on the sphere of radius sqrt(d)."""
        z = rng.standard_normal((size, self.dimension))
        if self.dimension == 1:
            return turned(np.copysign(1.0, z), self.root(rng))
        length = np.linalg.norm(z, axis=1, keepdims=True)
        return turned(z * (np.sqrt(self.dimension) / length), self.root(rng))

    def noise(self, rng: Draws, size: int) -> Array:
        """Independent Gaussian vectors of mean 0 with the covariance of an input."""
        return turned(rng.standard_normal((size, self.dimension)), self.root(rng))

    def changes(self, rng: Draws, size: int) -> Array:
        """Independent vectors of mean 0 with the covariance of an input."""
        return self.sphere(rng, size)


def turned(u: Array, root: Array) -> Array:
    """L u for vectors whose law is the same in every basis: its first entries belong to L."""
    return u * root if root.ndim == 1 else np.asarray(u[:, : root.shape[1]] @ root.T)


@dataclass(frozen=True, eq=False)
class Gaussian(Law):
    """The Gaussian law N(mean, cov).

    Args:
        mean: A number for all coordinates, or one for each.
        cov: The d x d covariance matrix, d variances, or one variance for all.
        dimension: d; by default what ``mean`` and ``cov`` have, or 1.

    Raises:
        UsageError: Numbers that are no mean or covariance, or of sizes that differ.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.7.

    Example:
        >>> law = Gaussian(0, [4, 1])
        >>> law.dimension, law.rank
        (2, 2)
    """

    mean: Any = 0
    cov: Any = 1
    dimension: int = 0
    is_gaussian = True

    def __post_init__(self) -> None:
        shapes = _shape(self.mean, "mean"), _shape(self.cov, "cov")
        sizes = {size for shape in shapes for size in shape}
        if self.dimension:
            sizes.add(checks.whole(self.dimension, "dimension", least=1))
        if len(sizes) > 1 or len(shapes[0]) > 1 or len(shapes[1]) > 2 or 0 in sizes:
            raise UsageError(
                f"a mean of shape {shapes[0]} and a covariance of shape {shapes[1]} are no law"
                + (f" of {self.dimension} numbers." if self.dimension else "."),
                hint="A law of d numbers has d means and d variances or d x d covariances.",
            )
        object.__setattr__(self, "dimension", sizes.pop() if sizes else 1)
        if self.table.ndim == 2 and not np.array_equal(self.table, self.table.T):
            raise UsageError("the covariance matrix is not symmetric.")
        self._root  # noqa: B018 (negative variances are refused now)

    @cached_property
    def centre(self) -> Array:
        """The mean, d numbers."""
        return np.broadcast_to(np.asarray(self.mean, dtype=float), (self.dimension,))

    @cached_property
    def table(self) -> Array:
        """Variances or covariances: d numbers, or d x d."""
        given = np.asarray(self.cov, dtype=float)
        return given if given.ndim == 2 else np.broadcast_to(given, (self.dimension,))

    def entries(self) -> tuple[list[Number], list[list[Number]]]:
        """Mean and covariance matrix with the numbers as they were given."""
        size = self.dimension
        mean = np.broadcast_to(np.asarray(self.mean, dtype=object), (size,))
        given = np.asarray(self.cov, dtype=object)
        if given.ndim < 2:
            own = np.broadcast_to(given, (size,))
            given = np.full((size, size), 0, dtype=object)
            given[np.arange(size), np.arange(size)] = own
        rows = [[checks.real(value, "a covariance") for value in row] for row in given]
        return [checks.real(value, "a mean") for value in mean], rows

    @cached_property
    def _root(self) -> Array:
        values, vectors = self.table, None
        if self.table.ndim == 2:
            values, vectors = np.linalg.eigh(self.table)
        largest = float(np.abs(values).max())
        if values.min() < -SINGULAR * self.dimension * largest:
            raise UsageError(
                f"the covariance matrix has the negative eigenvalue {values.min():.3g}.",
                hint="Variances of every direction are at least 0.",
            )
        if vectors is None:
            return np.sqrt(values)
        return np.asarray(vectors * np.sqrt(np.where(values > SINGULAR * largest, values, 0.0)))

    @property
    def rank(self) -> int:
        """How many directions vary."""
        return int(np.count_nonzero(np.atleast_2d(self._root).any(axis=0)))

    def points(self, rng: Draws, size: int) -> Array:
        """Independent inputs, one in each row."""
        return self.centre + self.noise(rng, size)

    def root(self, rng: Draws) -> Array:
        """Standard deviations, or L with L L^T the covariance."""
        return self._root


@dataclass(frozen=True, eq=False)
class Box(Law):
    """Independent uniform coordinates.

    Args:
        low: The lower ends, d numbers.
        high: The upper ends.

    Raises:
        UsageError: Ends that are no intervals.

    Source: Schoenherr, The nonlinearity coefficient, section 4.2.

    Example:
        >>> Box([0, 0], [1, 2]).dimension
        2
    """

    low: Any
    high: Any
    dimension: int = field(init=False)

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            ends = checks.inputs([np.atleast_1d(getattr(self, name)).tolist()], name)[0]
            object.__setattr__(self, name, ends)
        if self.low.shape != self.high.shape or not (self.low < self.high).all():
            raise UsageError("a box needs a lower end below an upper end for each coordinate.")
        object.__setattr__(self, "dimension", len(self.low))

    def points(self, rng: Draws, size: int) -> Array:
        """Independent inputs, one in each row."""
        return np.asarray(rng.uniform(self.low, self.high, (size, self.dimension)))

    def root(self, rng: Draws) -> Array:
        """Standard deviations."""
        return np.asarray((self.high - self.low) / np.sqrt(12.0))


@dataclass(frozen=True)
class Sphere(Law):
    """The uniform law on a sphere around 0.

    Args:
        dimension: d.
        radius: Its radius; by default sqrt(d), with which coordinates have variance 1.

    Raises:
        UsageError: Numbers that make no sphere.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.6.

    Example:
        >>> Sphere(4).length
        2.0
    """

    dimension: int
    radius: float | None = None

    def __post_init__(self) -> None:
        checks.whole(self.dimension, "dimension", least=1)
        if self.radius is not None:
            checks.real(self.radius, "radius", above=0)

    @property
    def length(self) -> float:
        """The radius."""
        return float(np.sqrt(self.dimension) if self.radius is None else self.radius)

    def points(self, rng: Draws, size: int) -> Array:
        """Independent inputs, one in each row."""
        return self.sphere(rng, size)

    def root(self, rng: Draws) -> Array:
        """Standard deviations."""
        return np.full(self.dimension, self.length / np.sqrt(self.dimension))


@dataclass(frozen=True, eq=False)
class Given(Law):
    """The unknown law that given inputs were drawn from, whatever their number."""

    inputs: Any
    dimension: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", checks.inputs(self.inputs, "inputs"))
        object.__setattr__(self, "dimension", self.inputs.shape[1])

    def points(self, rng: Draws, size: int) -> Array:
        """Independent inputs, one in each row."""
        rows = [rng.permutation(len(self.inputs)) for _ in range(-(-size // len(self.inputs)))]
        return np.asarray(self.inputs[np.concatenate(rows)[:size]])

    def root(self, rng: Draws) -> Array:
        """A matrix L with L L^T the covariance."""
        return self._root

    @cached_property
    def _root(self) -> Array:
        return root_of_covariance(self.inputs)


@dataclass(frozen=True, eq=False)
class Empirical(Given):
    """The unknown law that given inputs were drawn from.

    Each input is used as often as every other. Errors are those of the inputs as a sample of
    their law, and do not vanish however often they are used.

    Args:
        inputs: Inputs, a row each; at least 6.

    Raises:
        UsageError: They are no inputs, or too few for an error.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.4.

    Example:
        >>> Empirical([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]).dimension
        1
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole(len(self.inputs), "the number of inputs", least=6)  # for an error


@dataclass(frozen=True, eq=False)
class Sampler(Law):
    """A law that can be drawn from.

    Args:
        draw: ``draw(rng, size)`` gives ``size`` independent inputs, a row each.
        dimension: d.

    Source: Schoenherr, The nonlinearity coefficient, section 4.2.

    Example:
        >>> law = Sampler(lambda rng, size: rng.exponential(size=(size, 2)), 2)
        >>> law.points(np.random.default_rng(0), 3).shape
        (3, 2)
    """

    draw: Callable[[Draws, int], Any]
    dimension: int

    def points(self, rng: Draws, size: int) -> Array:
        """Independent inputs, one in each row."""
        found = np.asarray(self.draw(rng, size), dtype=float)
        if found.shape != (size, self.dimension):
            raise UsageError(
                f"the sampler gave an array of shape {found.shape} for {size} inputs of "
                f"{self.dimension} numbers."
            )
        if not np.isfinite(found).all():
            raise EvaluationError("the sampler gave an input that is not finite.")
        return found

    def root(self, rng: Draws) -> Array:
        """A matrix L with L L^T about the covariance."""
        return root_of_covariance(self.points(rng, PILOT))

    def changes(self, rng: Draws, size: int) -> Array:
        """Half differences of two draws; their mean is not needed."""
        both = self.points(rng, 2 * size)
        return np.asarray((both[:size] - both[size:]) / np.sqrt(2.0))


def root_of_covariance(rows: Array) -> Array:
    """L with L L^T the covariance of a sample, with n - 1; no more columns than it needs."""
    away = (rows - rows.mean(axis=0)) / np.sqrt(max(len(rows) - 1, 1))
    if len(rows) > rows.shape[1]:
        values, vectors = np.linalg.eigh(away.T @ away)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
    _, sizes, axes = np.linalg.svd(away, full_matrices=False)
    return np.asarray(axes.T * sizes)


def law_of(value: Any) -> Law:
    """What a user gave as a law: a law, or an array of inputs."""
    if isinstance(value, Law):
        return value
    if callable(value):
        raise UsageError(
            "a function is no law of inputs.", hint="Wrap it: Sampler(draw, dimension)."
        )
    if isinstance(value, Sequence | np.ndarray) or hasattr(value, "to_numpy"):
        return Empirical(value)
    raise UsageError(
        f"a {type(value).__name__} is no law of inputs.",
        hint="Give Gaussian(mean, cov), Box(low, high), Sphere(d), Sampler(draw, d) or inputs.",
    )


def _shape(given: Any, name: str) -> tuple[int, ...]:
    """The shape of numbers that are real and finite."""
    try:
        found = np.asarray(given)
    except ValueError:
        raise UsageError(f"{name} has rows of different lengths.") from None
    if found.dtype.kind not in "iuf" or not np.isfinite(found).all():
        for value in np.ravel(np.asarray(given, dtype=object)):
            checks.real(value, f"an entry of {name}")
    return found.shape
