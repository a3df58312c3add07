"""``Matrix``: what is applied to vectors with ``W @ x`` and ``W.T @ y``."""

from __future__ import annotations

from typing import ClassVar, NoReturn

from tpcalc.dsl.handles import Handle, Scalar
from tpcalc.dsl.operands import misuse, noun, number_or_none, unsupported
from tpcalc.dsl.powers import Numeric, Power
from tpcalc.dsl.recorder import Recorder, bracketed
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import DimMismatch, TraceError
from tpcalc.program.nodes import MatMul, Ref


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
