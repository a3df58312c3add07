"""What the engine executes: straight-line instructions on vector and scalar registers.

Both interpretations that sample coordinates compile to these: the particles of a limit graph
(``evaluate/particles``) and the lazily revealed finite network (``finite/compile``). Registers are
numbered from 0, vectors and scalars apart; each is written once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.functions import Fn

SHARE = 8  # of many columns this part of them is averaged over where not all need be


@dataclass(frozen=True, slots=True)
class Space:
    """A dimension class: vectors of ``ratio`` times the width coordinates."""

    name: str
    ratio: float = 1.0


@dataclass(frozen=True, slots=True)
class Matrix:
    """A random matrix from the space ``cols`` to the space ``rows``, entries N(0, 1/n).

    ``law="orthogonal"``: a Haar matrix, with entries of the same size. ``adjoint``: y·(W x) and
    (W^T y)·x agree on the samples of a limit, and not in the limit alone.
    """

    name: str
    rows: str
    cols: str
    law: str = "gaussian"
    adjoint: bool = False


@dataclass(frozen=True, slots=True)
class Starts:
    """Jointly Gaussian start vectors: out_i = mean_i + sum_j factor[i][j] * (fresh N(0,1))_j.

    ``factor`` None is the identity.
    """

    space: str
    mean: tuple[float, ...]
    factor: tuple[tuple[float, ...], ...] | None
    out: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Number of fresh draws."""
        if self.factor is None:
            return len(self.out)
        return len(self.factor[0]) if self.factor else 0


@dataclass(frozen=True, slots=True)
class Multiply:
    """out_j = W x_j (or W^T x_j) for a batch of inputs."""

    matrix: str
    transpose: bool
    vectors: tuple[int, ...]
    out: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Map:
    """A coordinatewise function."""

    fn: Fn
    vectors: tuple[int, ...]
    scalars: tuple[int, ...]
    out: int


@dataclass(frozen=True, slots=True)
class Sum:
    """sum_i numbers_i * scalar_i * vector_i (scalar None: 1)."""

    numbers: tuple[float, ...]
    scalars: tuple[int | None, ...]
    vectors: tuple[int, ...]
    out: int


@dataclass(frozen=True, slots=True, eq=False)
class PanelTerm:
    """sum_i numbers_ij * scalar_ij * vector_i for each output j of a panel."""

    vectors: tuple[int, ...]  # the vectors; of as many as there are outputs, one each, if each
    numbers: Array  # shape (vectors, outputs), or (vectors,) if each
    scalars: Index | None  # registers of the same shape; None: 1
    each: bool = False  # whether output j takes vector j alone


@dataclass(frozen=True, eq=False)
class Panel:
    """Many linear combinations of the same vectors: a matrix product."""

    terms: tuple[PanelTerm, ...]
    out: tuple[int, ...]

    @cached_property
    def vectors(self) -> tuple[int, ...]:
        """What it reads."""
        return tuple(dict.fromkeys(vector for term in self.terms for vector in term.vectors))

    @cached_property
    def scalars(self) -> tuple[int, ...]:
        """The scalars it reads."""
        held = [term.scalars.ravel() for term in self.terms if term.scalars is not None]
        found: list[int] = np.unique(np.concatenate(held)).tolist() if held else []
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Gram:
    """The averages of x_i y_j of two lists, in registers ``out + i * len(rights) + j``."""

    lefts: tuple[int, ...]
    rights: tuple[int, ...]
    out: int

    @property
    def outs(self) -> tuple[int, ...]:
        """The registers it writes."""
        return tuple(range(self.out, self.out + len(self.lefts) * len(self.rights)))


@dataclass(frozen=True, slots=True)
class Mean:
    """The average of a coordinatewise function."""

    fn: Fn
    vectors: tuple[int, ...]
    scalars: tuple[int, ...]
    out: int


@dataclass(frozen=True, slots=True)
class Dot:
    """out_j = average of x * y_j: inner products with one common vector."""

    vector: int
    others: tuple[int, ...]
    out: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outer:
    """out_ja = (1/N) sum_b psi(a, b) x_jb for each vector, psi of rows_a, cols_b and scalars.

    With ``forms`` psi is a function of sums of products: argument s is the sum of row_k(a) col_k(b)
    over the k with forms[k] = s. With ``columns`` the average is over the first of them, so many
    (or a share of more), divided by ``part``; 0 takes all.
    """

    fn: Fn
    rows: tuple[int, ...]
    cols: tuple[int, ...]
    scalars: tuple[int, ...]
    vectors: tuple[int, ...]
    out: tuple[int, ...]
    forms: tuple[int, ...] = ()
    columns: int = 0
    part: int = 1

    def inner(self, size: int) -> int:
        """How many of the columns the average is over."""
        found = min(size, max(self.columns, size // SHARE)) if self.columns else size
        return max(found // self.part, 1)


@dataclass(frozen=True, slots=True)
class ScalarMap:
    """A function of scalars (``fn`` has no vector argument; none at all for a number)."""

    fn: Fn
    scalars: tuple[int, ...]
    out: int


@dataclass(frozen=True, slots=True)
class DrawScalar:
    """A Gaussian draw N(value, std^2), one for each replicate."""

    value: float
    std: float
    out: int


@dataclass(frozen=True, slots=True)
class Noise:
    """A Gaussian draw, linear in its weights and in each of its vectors.

    In a family the covariance of two is the inner product of their weights, times the average of
    x y for each pair x, y of their vectors: the limit of n^(1/2) (1/d) sum u x over coordinates, u
    a start vector independent of x, or of n^(1/2) (1/d) g^T What x.
    """

    family: str
    weights: tuple[float, ...]
    vectors: tuple[int, ...]
    out: int


Instruction = (
    Starts
    | Multiply
    | Map
    | Sum
    | Panel
    | Mean
    | Dot
    | Gram
    | Outer
    | ScalarMap
    | DrawScalar
    | Noise
)


@dataclass(frozen=True)
class Script:
    """A list of instructions with what it declares and what it yields."""

    spaces: tuple[Space, ...]  # dimension classes
    matrices: tuple[Matrix, ...]  # random matrices
    instructions: tuple[Instruction, ...]  # in order of computation
    vector_space: tuple[str, ...]  # space name of each vector register
    scalars: int  # number of scalar registers
    labels: tuple[str, ...]  # a name for each vector register, for messages ("" if it has none)
    results: tuple[int, ...]  # scalar registers that are returned, in order
    vectors: tuple[int, ...] = ()  # vector registers whose coordinates are returned, in order


def vector_inputs(step: Instruction) -> tuple[int, ...]:
    """Vector registers that an instruction reads."""
    if isinstance(step, Multiply | Map | Sum | Panel | Mean | Noise):
        return step.vectors
    if isinstance(step, Gram):
        return (*step.lefts, *step.rights)
    if isinstance(step, Dot):
        return (step.vector, *step.others)
    if isinstance(step, Outer):
        return (*step.rows, *step.cols, *step.vectors)
    return ()


def scalar_inputs(step: Instruction) -> tuple[int, ...]:
    """Scalar registers that an instruction reads."""
    if isinstance(step, Sum):
        return tuple(scalar for scalar in step.scalars if scalar is not None)
    if isinstance(step, Map | Panel | Mean | Outer | ScalarMap):
        return step.scalars
    return ()


def vector_outputs(step: Instruction) -> tuple[int, ...]:
    """Vector registers that an instruction writes."""
    if isinstance(step, Starts | Multiply | Panel | Outer):
        return step.out
    if isinstance(step, Map | Sum):
        return (step.out,)
    return ()


def scalar_outputs(step: Instruction) -> tuple[int, ...]:
    """Scalar registers that an instruction writes."""
    if isinstance(step, Dot):
        return step.out
    if isinstance(step, Gram):
        return step.outs
    if isinstance(step, Mean | ScalarMap | DrawScalar | Noise):
        return (step.out,)
    return ()
