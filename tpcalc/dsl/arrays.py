"""What a tracer writes about finite axes: given numbers, sums, and blocks of single values."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeVar

from tpcalc.dsl.handles import Scalar, Value, cells_of
from tpcalc.dsl.operands import misuse, noun
from tpcalc.dsl.recorder import Recorder
from tpcalc.dsl.vectors import Vector
from tpcalc.program.nodes import Data, LinComb, Stack
from tpcalc.program.types import bare

Block = TypeVar("Block", Vector, Scalar)


class Arrays:
    """The words of a tracer for blocks."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def data(self, name: str, values: Any, axes: Sequence[str]) -> Scalar:
        """Given numbers, one for each cell: inputs, targets, a mask.

        Example:
            >>> from tpcalc.dsl.trace import program
            >>> @program
            ... def first_layer(t):
            ...     x = t.data("x", [[1, 0, 2], [0, 1, -1]], ("b", "in"))
            ...     U = t.gaussian("U", axes={"in": 3})
            ...     t.output("h", t.sum(x * U, "in"))
            >>> str(first_layer.types[-1])
            'n[b:2]'
        """
        taken = self._recorder.claim("scalar", name)
        cells, finite = cells_of(values, axes, taken)
        return Scalar(self._recorder, self._recorder.add(Data(taken, cells, finite)))

    def constant(self, values: Any, axes: Sequence[str], name: str = "constant") -> Scalar:
        """Given numbers that belong to what is computed and not to the data: a mask, a window.

        Equal constants are one, and none needs a name.

        Example:
            >>> from tpcalc.dsl.trace import program
            >>> @program
            ... def differences(t):
            ...     x = t.gaussian("x", axes={"p": 3})
            ...     step = t.constant([[-1, 1, 0], [0, -1, 1]], ("q", "p"))
            ...     t.output("d", t.sum(step * x, "p"))
            >>> str(differences.types[-1])
            'n[q:2]'
        """
        cells, finite = cells_of(values, axes, "a constant")
        content = repr((finite, cells))
        if not isinstance(name, str) or not name.strip():
            raise misuse(f"a constant cannot be called {name!r}.", "Use words.")
        name = f"{name} {hashlib.sha256(content.encode()).hexdigest()[:12]}"
        return Scalar(self._recorder, self._recorder.add(Data(name, cells, finite)))

    def stack(self, values: Sequence[Any], axis: str) -> Any:
        """Vectors or scalars as one block, a cell of a new axis for each.

        Example:
            >>> from tpcalc.dsl.trace import program
            >>> @program
            ... def pair(t):
            ...     x = t.gaussian("x")
            ...     t.output("both", t.stack([x, x * x], "k"))
            >>> str(pair.types[-1])
            'n[k:2]'
        """
        items: list[Any] = self._alike(values, axis)
        node = Stack(tuple(item.ref for item in items), axis)
        return items[0]._at_node(self._recorder.add(node))

    def _alike(self, values: Any, axis: object) -> list[Any]:
        if not isinstance(axis, str) or not bare(axis):
            raise misuse(f"an axis cannot be called {axis!r}.", "Use a word: b, in, p.")
        if isinstance(values, Value) or not isinstance(values, Sequence) or not values:
            empty = isinstance(values, list | tuple)
            raise misuse(
                "t.stack takes a list of vectors or of scalars, not "
                f"{'an empty one' if empty else noun(values)}."
            )
        kind = Scalar if isinstance(values[0], Scalar) else Vector
        for value in values:
            if not isinstance(value, kind):
                raise misuse(
                    f"t.stack takes vectors or scalars, all of one kind; {noun(values[0])} and "
                    f"{noun(value)} are not.",
                )
            value.belongs(self._recorder)
            if axis in value.axes:
                raise misuse(
                    f"a value that is stacked along {axis!r} has this axis already.",
                    "Give the new axis another name, or rename that of the value.",
                )
        return list(values)

    def sum(self, value: Block, *over: str) -> Block:
        """The sum of a block over finite axes.

        Args:
            value: A vector or scalar with these axes.
            over: The names of the axes.

        Raises:
            TraceError: No axis is named, or the value is no vector or scalar.
            ProgramError: A term of it does not have an axis that is summed.
        """
        if not isinstance(value, Vector | Scalar):
            raise misuse(f"t.sum takes a vector or a scalar, not {noun(value)}.")
        if not over:
            raise misuse("t.sum needs the axes to sum over.", "Write t.sum(x * U, 'in').")
        value.belongs(self._recorder)
        # A sum that nobody has recorded yet is not, as a block that nobody needs.
        terms = value.terms if isinstance(value, Vector) else ((Fraction(1), None, value.ref),)
        node = LinComb(
            tuple(number for number, _, _ in terms),
            tuple(scalar for _, scalar, _ in terms),
            tuple(vector for _, _, vector in terms),
            (over,) * len(terms),
        )
        return value._at_node(self._recorder.add(node))

    def chosen(self, value: Block, marks: Scalar, along: str) -> Block:
        """The cells of a block that given numbers, 1 and 0 along an axis, choose."""
        node = LinComb((Fraction(1),), (marks.ref,), (value.ref,), ((along,),))
        return value._at_node(self._recorder.add(node))
