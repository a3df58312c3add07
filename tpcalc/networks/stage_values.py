"""What ``stages`` knows of nodes of a network: vectors over positions as matrices."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.functions import Expr
from tpcalc.program.family import Family, Mark
from tpcalc.program.types import Axes


class NoStages(Exception):
    """A network that is none over positions; the message names what is not covered."""


@dataclass(frozen=True, eq=False)
class Product:
    """Products of a family of weights with vectors: of each row the weights and what they meet."""

    mark: Mark
    weights: Index  # the member of the family in each row
    read: Block


@dataclass(frozen=True, eq=False)
class Block:
    """Vectors, or numbers, at the cells of axes: a matrix for each of what they are made of."""

    axes: Axes
    terms: dict[Any, Any]  # of stages by number, of products, of biases by mark: (cells, theirs)
    averaged: bool = False  # an average of products that lacks its factor n


@dataclass(frozen=True, eq=False)
class Noise:
    """Gaussian vectors that every input has of its own."""

    axes: Axes


@dataclass(frozen=True, eq=False)
class Numbers:
    """Given numbers at the cells of axes."""

    axes: Axes
    values: Array


@dataclass(frozen=True, eq=False)
class Applied:
    """A function that nothing has read so far, of a block or of noise: ``Var(0)``.

    ``Var(k)`` is parameter k of the network, a vector that is 0 at the start.
    """

    base: Block | Noise | None
    expr: Expr


@dataclass(frozen=True, eq=False)
class Average:
    """Numbers at cells: the mean of a block, that of its squares, or a function of these."""

    block: Block
    kind: str  # "mean"; "square", with eps added; "inverse", of the root of that
    eps: float = 0.0


Value = Block | Numbers | Family | Applied | Average | Noise


@dataclass(frozen=True)
class Traits:
    """What a stage depends on."""

    outer: frozenset[str]  # families without any of which its mean is 0, whatever else is given
    inner: frozenset[str]  # all
    gaussian: bool = True  # given what is read by the outer ones


def together(traits: list[Traits]) -> Traits:
    """Of a sum of what is uncorrelated; Gaussian ones are independent."""
    for k, one in enumerate(traits):
        for other in traits[:k]:
            new = (one.outer and not one.outer & other.inner) or (
                other.outer and not other.outer & one.inner
            )
            if not new:
                raise NoStages("a sum or a product of what is not independent")
    inner = frozenset[str]().union(*(one.inner for one in traits))
    all_outer = all(one.outer for one in traits)
    outer = frozenset[str]().union(*(one.outer for one in traits)) if all_outer else frozenset()
    return Traits(outer, inner, all(one.gaussian for one in traits))


def size_of(axes: Axes) -> int:
    """How many cells there are."""
    return prod(size for _, size in axes)


def places_of(axes: Axes, target: Axes) -> Index:
    """For each cell of some axes that of fewer axes."""
    names = [name for name, _ in axes]
    order = [names.index(name) for name, _ in target if name in names]
    grid = np.arange(size_of(axes)).reshape([size for _, size in axes]).transpose(order)
    shape = [size if name in names else 1 for name, size in target]
    found: Index = np.broadcast_to(grid.reshape(shape), [size for _, size in target]).ravel()
    return found


def matrix_of(values: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    """A sparse matrix from its entries."""
    from scipy.sparse import csr_matrix

    found = csr_matrix((np.asarray(values, dtype=float), (rows, columns)), shape=shape)
    found.sum_duplicates()
    return found


def identity(size: int) -> Any:
    """The matrix of cells as they are."""
    return matrix_of(np.ones(size), np.arange(size), np.arange(size), (size, size))
