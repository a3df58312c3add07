"""``Matrix``: what is applied to vectors with ``W @ x``; means and covariances of start vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, NoReturn

from tpcalc.dsl.handles import Handle, Scalar
from tpcalc.dsl.operands import Number, misuse, noun, number, number_or_none, unsupported
from tpcalc.dsl.powers import Numeric, Power
from tpcalc.dsl.recorder import Recorder, bracketed
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import DimMismatch, TraceError
from tpcalc.program.family import Family
from tpcalc.program.nodes import MatMul, Ref
from tpcalc.program.types import Axes


class Matrix(Handle):
    """A random matrix; what stands in front of it is kept and multiplies the products.

    Attributes:
        ref: Its node.
        name: What it is called in the program.
        transposed: Whether products are those of the transpose.
    """

    __slots__ = ("_cols", "_front", "_rows", "_scalars", "name", "ref", "transposed")
    noun: ClassVar[str] = "a matrix"
    others: ClassVar[str] = "A matrix is only applied, W @ x or W.T @ x, times numbers."

    def __init__(self, recorder: Recorder, ref: Ref, name: str, dims: tuple[str, str]) -> None:
        super().__init__(recorder)
        self.ref = ref
        self.name = name
        self.transposed = False
        self._rows, self._cols = dims
        self._front = Power()
        self._scalars: tuple[Scalar, ...] = ()

    @property
    def T(self) -> Matrix:
        """The transpose."""
        other = self._copy()
        other.transposed = not self.transposed
        return other

    @property
    def rows(self) -> str:
        """The dimension class of the products W @ x."""
        return self._cols if self.transposed else self._rows

    @property
    def cols(self) -> str:
        """The dimension class of the vectors that it takes."""
        return self._rows if self.transposed else self._cols

    @property
    def text(self) -> str:
        """Its name, with ``.T`` if transposed."""
        return f"{self.name}.T" if self.transposed else self.name

    def _copy(self) -> Matrix:
        other = Matrix(self.recorder, self.ref, self.name, (self._rows, self._cols))
        other.transposed = self.transposed
        other._front, other._scalars = self._front, self._scalars
        return other

    def __matmul__(self, other: Vector) -> Vector:
        if not isinstance(other, Vector):
            hint = "Finite dimensions are written out: one product for each vector of a list."
            if isinstance(other, Matrix):
                hint = f"Apply them one after the other: {self.text} @ ({other.text} @ x)."
            raise misuse(f"{self.text} @ {noun(other)}: a matrix acts on a vector.", hint)
        self.together(other)
        if other.dim != self.cols:
            raise self._mismatch(other)
        node = MatMul(self.ref, other.ref, self.transposed)
        product = self._front * Vector(self.recorder, self.rows, self.recorder.add(node))
        for scalar in self._scalars:
            product = scalar * product
        return product

    def __call__(self, other: object) -> NoReturn:
        raise misuse(f"{self.text} is called with {noun(other)}.", f"Write {self.text} @ x.")

    def _mismatch(self, other: Vector) -> TraceError:
        shown = bracketed(other.text)
        hint = f"Use a matrix with columns on {other.dim!r}."
        if other.dim == self.rows:
            hint = f"{self.T.text} @ {shown} would fit."
        return misuse(
            f"{self.text} @ {shown}: {self.text} has columns on {self.cols!r}, {shown} lives on "
            f"{other.dim!r}.",
            hint,
            kind=DimMismatch,
        )

    def __mul__(self, other: Scalar | Power | Numeric) -> Matrix:
        scaled = self._copy()
        if isinstance(other, Scalar):
            self.together(other)
            scaled._scalars = (*self._scalars, other)
            return scaled
        if not isinstance(other, Power) and number_or_none(other) is None:
            raise unsupported("multiplied", self, other)
        scaled._front = self._front * other
        return scaled

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar | Power | Numeric) -> Matrix:
        if isinstance(other, Scalar):
            return self * other**-1
        if not isinstance(other, Power) and number_or_none(other) is None:
            raise unsupported("divided", self, other)
        return self * (1 / (other * Power()))

    def __neg__(self) -> Matrix:
        return self * -1

    def __pos__(self) -> Matrix:
        return self

    def _sum(self, other: object) -> NoReturn:
        raise unsupported("added", self, other)

    def _difference(self, other: object) -> NoReturn:
        raise unsupported("subtracted", self, other)

    def _no_power(self, other: object) -> NoReturn:
        raise misuse(
            "a matrix has no powers here.", "Apply it again and again: W @ (W @ x) in a loop."
        )

    def _no_division(self, other: object) -> NoReturn:
        raise unsupported("divided", other, self)

    def __rmatmul__(self, other: object) -> NoReturn:
        if isinstance(other, Vector):
            raise misuse(
                f"{other.text} @ {self.text}: there are no row vectors.",
                f"Write {self.T.text} @ {bracketed(other.text)}.",
            )
        raise misuse(
            f"{noun(other)} @ {self.text}: a matrix acts on a vector of the program.",
            f"Write {self.T.text} @ x.",
        )

    __add__ = __radd__ = _sum
    __sub__ = __rsub__ = _difference
    __pow__ = __rpow__ = _no_power
    __rtruediv__ = _no_division

    def __repr__(self) -> str:
        return f"<Matrix {self.text} from {self.cols!r} to {self.rows!r}>"


Rows = tuple[tuple[Number, ...], ...]


def mean_of(given: Any, names: Sequence[str]) -> tuple[Number, ...]:
    """One mean for each vector; None means 0."""
    if given is None:
        return (Fraction(0),) * len(names)
    entries = _entries(given, f"the mean of {names[0]!r}, ...")
    if len(entries) != len(names):
        raise misuse(f"there are {len(names)} vectors and {len(entries)} means.")
    return tuple(
        number(entry, f"the mean of {name!r}") for entry, name in zip(entries, names, strict=True)
    )


def covariance_of(given: Any, names: Sequence[str]) -> tuple[Rows | None, float]:
    """The covariance between the vectors (of one coordinate); None stands for the identity.

    A singular one is fine (two equal vectors, a vector of zeros). Entries that differ from their
    mirror image by rounding are averaged, and eigenvalues that rounding made negative are 0.

    Example:
        >>> covariance_of([[1, 1], [1, 1]], ["a", "b"])[0]
        ((Fraction(1, 1), Fraction(1, 1)), (Fraction(1, 1), Fraction(1, 1)))
    """
    if given is None:
        return None, 0.0
    size = len(names)
    given_rows = [_entries(row, "a row of the covariance") for row in _entries(given, "cov")]
    if len(given_rows) != size or any(len(row) != size for row in given_rows):
        lengths = sorted({len(row) for row in given_rows})
        raise misuse(
            f"the covariance of {size} vectors must be {size} x {size}, not {len(given_rows)} rows "
            f"of length {', '.join(map(str, lengths)) or '0'}."
        )
    rows = [
        [
            number(entry, f"the covariance of {a!r} and {b!r}")
            for b, entry in zip(names, row, strict=True)
        ]
        for a, row in zip(names, given_rows, strict=True)
    ]
    epsilon = _epsilon(given, rows)
    _symmetrise(rows, names, max(1e-9, 64 * epsilon))
    rows, moved = _semidefinite(rows, epsilon)
    if all(rows[i][j] == (i == j) for i in range(size) for j in range(size)):
        return None, 0.0
    return tuple(tuple(row) for row in rows), moved


def _entries(given: Any, what: str) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise misuse(f"{what} must be a list of numbers, not {noun(given)}.")
    return given.tolist() if hasattr(given, "tolist") else list(given)


def _epsilon(given: Any, rows: list[list[Number]]) -> float:
    """The rounding of the entries: that of their type, or single where all are single numbers."""
    import numpy as np

    size = getattr(getattr(given, "dtype", None), "itemsize", 8)
    array = np.array(rows, dtype=float)
    with np.errstate(over="ignore"):
        single = (array.astype(np.float32) == array).all()
    return {1: 2.0**-3, 2: 2.0**-7}.get(size, 2.0**-23 if single or size < 8 else 2.0**-52)


def _symmetrise(rows: list[list[Number]], names: Sequence[str], slack: float) -> None:
    scale = max((abs(float(entry)) for row in rows for entry in row), default=0.0)
    for i in range(len(rows)):
        for j in range(i):
            above, below = rows[j][i], rows[i][j]
            if above == below:
                continue
            if abs(float(above - below)) > slack * scale:
                raise misuse(
                    f"the covariance is not symmetric: {names[j]!r} with {names[i]!r} is "
                    f"{float(above):g} and the other way round {float(below):g}."
                )
            rows[i][j] = rows[j][i] = (above + below) / 2


def _semidefinite(rows: list[list[Number]], epsilon: float) -> tuple[list[list[Number]], float]:
    """The covariance without negative eigenvalues, if rounding alone can have made them."""
    import numpy as np

    array = np.array(rows, dtype=float)
    spectrum, basis = np.linalg.eigh(array)
    lowest, largest = float(spectrum[0]), float(np.abs(spectrum).max())
    slack = max(1e-9 * largest, epsilon * len(rows) * float(np.trace(array)))
    if lowest < -slack:
        raise misuse(
            "the covariance is not positive semidefinite: its smallest eigenvalue is "
            f"{lowest:.3g}, and rounding of its entries explains {-slack:.2g} at most.",
            "No Gaussian vector has it.",
        )
    if lowest >= -1e-12 * largest:
        return rows, 0.0  # as it was given, so that exact entries stay exact
    kept = (basis * np.maximum(spectrum, 0)) @ basis.T
    nearest: list[list[Number]] = ((kept + kept.T) / 2).tolist()
    return nearest, -lowest


def independent(name: str, dim: str, mean: Number, var: Number, axes: Axes) -> Family:
    """A block of independent start vectors with one mean and one variance."""
    block = Family(name, (dim,), axes)
    zero = Fraction(0)
    rows = (tuple(var if i == j else zero for j in range(block.size)) for i in range(block.size))
    return replace(block, mean=(mean,) * block.size, cov=None if var == 1 else tuple(rows))
