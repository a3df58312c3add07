"""The node types of a Tensor Program: frozen records without behaviour.

A node refers to earlier nodes by their index (``Ref``). Powers of the width and of the depth are
written out in ``Scale``; nothing else carries one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from tpcalc.functions import Fn
from tpcalc.orders import Ex

__all__ = [
    "NODE_TYPES",
    "Dim",
    "Group",
    "InputMatrix",
    "InputScalar",
    "InputVector",
    "Kind",
    "LinComb",
    "MatMul",
    "Moment",
    "Node",
    "Nonlin",
    "OuterNonlin",
    "Ref",
    "ScalarFn",
    "Scale",
]

Ref = int


class Kind(Enum):
    """What a node yields."""

    VECTOR = "vector"
    MATRIX = "matrix"
    SCALAR = "scalar"


@dataclass(frozen=True, slots=True)
class Dim:
    """A dimension class: a dimension that goes to infinity as ``ratio * n``."""

    name: str
    ratio: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Group:
    """A family of start vectors whose coordinates are iid draws of one Gaussian vector.

    Args:
        name: Its name.
        dim: The dimension class of all members.
        mean: One entry for each member.
        cov: The covariance between members (of one coordinate), rows as tuples. None: identity.
        moved: How far the smallest eigenvalue of the covariance that was given lies below 0, where
            rounding of the data put it and ``cov`` is the nearest covariance. Not part of equality.
    """

    name: str
    dim: str
    mean: tuple[Fraction | float, ...]
    cov: tuple[tuple[Fraction | float, ...], ...] | None = None
    moved: float = field(default=0.0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InputVector:
    """Member ``index`` of a Gaussian group."""

    group: str
    index: int


@dataclass(frozen=True, slots=True)
class InputMatrix:
    """A random matrix of shape (rows, cols).

    ``law="gaussian"``: entries iid N(0, 1). ``law="orthogonal"``: the columns (rows, if there are
    fewer) of a Haar-distributed orthogonal matrix, scaled so that entries have mean square 1.
    """

    name: str
    rows: str
    cols: str
    law: str = "gaussian"


@dataclass(frozen=True, slots=True)
class InputScalar:
    """A number: given (``std=0``), or a Gaussian draw N(value, std^2) independent of all else."""

    name: str
    value: Fraction | float = Fraction(0)
    std: Fraction | float = Fraction(0)


@dataclass(frozen=True, slots=True)
class MatMul:
    """``W @ x``, or ``W.T @ x`` with ``transpose``."""

    matrix: Ref
    vector: Ref
    transpose: bool = False


@dataclass(frozen=True, slots=True)
class Nonlin:
    """A coordinatewise function of vectors and scalars."""

    fn: Fn
    vectors: tuple[Ref, ...]
    scalars: tuple[Ref, ...] = ()


@dataclass(frozen=True, slots=True)
class LinComb:
    """Sum of number * scalar * vector; where ``scalars`` holds None the scalar is 1."""

    numbers: tuple[Fraction | float, ...]
    scalars: tuple[Ref | None, ...]
    vectors: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """The average of a coordinatewise function over the coordinates."""

    fn: Fn
    vectors: tuple[Ref, ...]
    scalars: tuple[Ref, ...] = ()


@dataclass(frozen=True, slots=True)
class OuterNonlin:
    """z_a = (1/d) sum_b psi(rows_a; cols_b; scalars) x_b, d the size of the column dimension.

    The vector arguments of ``fn`` are the row vectors, then the column vectors.
    """

    fn: Fn
    rows: tuple[Ref, ...]
    cols: tuple[Ref, ...]
    scalars: tuple[Ref, ...]
    vector: Ref


@dataclass(frozen=True, slots=True)
class ScalarFn:
    """A function of scalars (the loss derivative, say); ``fn`` has no vector argument."""

    fn: Fn
    scalars: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """A vector or scalar times n**n_power * L**depth_power."""

    of: Ref
    n_power: Ex
    depth_power: Ex = Ex()


Node = (
    InputVector
    | InputMatrix
    | InputScalar
    | MatMul
    | Nonlin
    | LinComb
    | Moment
    | OuterNonlin
    | ScalarFn
    | Scale
)

NODE_TYPES: tuple[type, ...] = (
    InputVector,
    InputMatrix,
    InputScalar,
    MatMul,
    Nonlin,
    LinComb,
    Moment,
    OuterNonlin,
    ScalarFn,
    Scale,
)
