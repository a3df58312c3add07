"""``Matrix``: what is applied to vectors with ``W @ x`` and ``W.T @ y``."""

from __future__ import annotations

from typing import ClassVar, NoReturn

from tpcalc.dsl.handles import Handle, Scalar
from tpcalc.dsl.lines import misuse
from tpcalc.dsl.operands import noun, number_or_none, unsupported
from tpcalc.dsl.powers import Numeric, Power
from tpcalc.dsl.recorder import Recorder, bracketed
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import DimMismatch
from tpcalc.program.nodes import MatMul, Ref

__all__ = ["Matrix"]

Factor = Scalar | Power | Numeric


class Matrix(Handle):
    """A random matrix; numbers in front of it are kept and multiply the products."""

    __slots__ = ("_cols", "_factors", "_rows", "name", "ref", "transposed")
    noun: ClassVar[str] = "a matrix"

    def __init__(
        self,
        recorder: Recorder,
        ref: Ref,
        name: str,
        dims: tuple[str, str],
        transposed: bool = False,
        factors: tuple[Factor, ...] = (),
    ) -> None:
        super().__init__(recorder)
        self.ref = ref
        self.name = name
        self.transposed = transposed
        self._rows, self._cols = dims
        self._factors = factors

    @property
    def T(self) -> Matrix:
        """The transpose."""
        return self._with(self._factors, transposed=not self.transposed)

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

    def _with(self, factors: tuple[Factor, ...], *, transposed: bool) -> Matrix:
        dims = (self._rows, self._cols)
        return Matrix(self.recorder, self.ref, self.name, dims, transposed, factors)

    def __matmul__(self, other: Vector) -> Vector:
        if not isinstance(other, Vector):
            hint = "Finite dimensions are written out: one product for each vector of a list."
            if isinstance(other, Matrix):
                hint = f"Apply them one after the other: {self.text} @ ({other.text} @ x)."
            raise misuse(f"{self.text} @ {noun(other)}: a matrix acts on a vector.", hint)
        self.together(other)
        if other.dim != self.cols:
            shown = bracketed(other.text)
            hint = f"Use a matrix with columns on {other.dim!r}."
            if other.dim == self.rows:
                hint = f"{self.T.text} @ {shown} would fit."
            raise misuse(
                f"{self.text} @ {shown}: {self.text} has columns on {self.cols!r}, {shown} lives "
                f"on {other.dim!r}.",
                hint,
                kind=DimMismatch,
            )
        node = MatMul(self.ref, other.ref, self.transposed)
        product = Vector(self.recorder, self.rows, self.recorder.add(node))
        for factor in self._factors:
            product = product * factor
        return product

    def __mul__(self, other: Scalar | Power | Numeric) -> Matrix:
        if isinstance(other, Scalar):
            self.together(other)
        elif not isinstance(other, Power) and number_or_none(other) is None:
            raise unsupported("multiplied", self, other)
        return self._with((*self._factors, other), transposed=self.transposed)

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar | Power | Numeric) -> Matrix:
        if isinstance(other, Power):
            return self * other.inverse()
        if isinstance(other, Scalar):
            return self * other**-1
        value = number_or_none(other)
        if value is None:
            raise unsupported("divided", self, other)
        if value == 0:
            raise misuse("a matrix is divided by the number 0.")
        return self * (1 / value)

    def __neg__(self) -> Matrix:
        return self * -1

    def __pos__(self) -> Matrix:
        return self

    def _sum(self, other: object) -> NoReturn:
        raise unsupported("added", self, other)

    def _difference(self, other: object) -> NoReturn:
        raise unsupported("subtracted", self, other)

    def _power(self, other: object) -> NoReturn:
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
    __pow__ = __rpow__ = _power
    __rtruediv__ = _no_division

    def __repr__(self) -> str:
        return f"<Matrix {self.text} from {self.cols!r} to {self.rows!r}>"
