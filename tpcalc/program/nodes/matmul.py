"""``MatMul``: a random matrix times a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tpcalc.program.types import Kind, Ref, Type
from tpcalc.program.typing import Typing


@dataclass(frozen=True, slots=True)
class MatMul:
    """``W @ x``, or ``W.T @ x`` with ``transpose``."""

    matrix: Ref
    vector: Ref
    transpose: bool = False

    grammar: ClassVar[str] = "matmul <matrix><transpose?.T> <vector>"

    def type(self, before: Typing) -> Type:
        """A vector on the other side of the matrix."""
        matrix, vector = before.types[self.matrix], before.vector(self.vector)
        if matrix.kind is not Kind.MATRIX:
            raise before.fail(f"%{self.matrix} is a {matrix.kind.value}, not a matrix.")
        rows, cols = matrix.width[::-1] if self.transpose else matrix.width
        if vector.width != (cols,):
            side = "W.T" if self.transpose else "W"
            raise before.fail(
                f"{side} (%{self.matrix}) takes vectors on {cols!r}; "
                f"%{self.vector} lives on {vector.width[0]!r}.",
                hint="Use the transpose, or a matrix between the right dimension classes.",
            )
        return Type((rows,), before.axes((self.vector, self.matrix)))
