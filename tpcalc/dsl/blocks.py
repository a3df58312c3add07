"""``Handle``, the base of what a traced function computes with, and blocks: named finite axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Self

from tpcalc.dsl.lines import misuse
from tpcalc.dsl.operands import Number, Operand, noun, number
from tpcalc.dsl.recorder import Recorder
from tpcalc.functions.rows import RowFn
from tpcalc.program.nodes import Data, LinComb, Ref, Rename, RowNonlin
from tpcalc.program.types import Axes, bare


class Handle(Operand):
    """Base of what belongs to one traced program."""

    __slots__ = ("recorder",)

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def together(self, other: Handle) -> None:
        """Check that another handle belongs to the same program."""
        if other.recorder is not self.recorder:
            raise misuse(
                f"{self.noun} of the program {self.recorder.title!r} meets {other.noun} of "
                f"{other.recorder.title!r}.",
                "Each program makes its own inputs: call t.gaussian and t.matrix of its own t.",
            )


class Value(Handle):
    """A vector or a scalar, or a block of them: one for each cell of its finite axes.

    Two blocks meet by the names of their axes: ``x * U`` with ``x`` of axes b, in and ``U`` of axis
    in has both, and ``t.sum(x * U, "in")`` has b.
    """

    __slots__ = ()

    @property
    def ref(self) -> Ref:
        """Its node."""
        raise NotImplementedError

    def _at_node(self, ref: Ref) -> Self:
        """The same kind of value, at another node."""
        raise NotImplementedError

    @property
    def axes(self) -> dict[str, int]:
        """Its finite axes with their sizes; none for a single vector or scalar."""
        return dict(self.recorder.builder.type(self.ref).axes)

    def renamed(self, **names: str) -> Self:
        """The block with other names of axes: ``x.renamed(b="b'")`` beside ``x`` makes pairs."""
        node = Rename(self.ref, tuple(names.items()))
        return self._at_node(self.recorder.add(node))

    def rows(self, fn: RowFn, along: str) -> Self:
        """A function of each row along an axis: ``tp.softmax(s, along="p")``."""
        return self._at_node(self.recorder.add(RowNonlin(fn, self.ref, along)))

    def at(self, **cells: int) -> Self:
        """What stands at some cells: ``x.at(b=0)``."""
        ref, sizes = self.ref, self.axes
        for axis, index in cells.items():
            size = sizes.get(axis)
            if size is None or not isinstance(index, int) or not 0 <= index < size:
                known = ", ".join(f"{name}: 0 to {count - 1}" for name, count in sizes.items())
                raise misuse(f"there is no cell {axis}={index!r}.", f"Axes: {known or 'none'}.")
            chosen = Data(
                f"at({axis}={index}:{size})",
                tuple(Fraction(int(i == index)) for i in range(size)),
                ((axis, size),),
            )
            coefficient = self.recorder.add(chosen)
            ref = self.recorder.add(LinComb((Fraction(1),), (coefficient,), (ref,), ((axis,),)))
        return self._at_node(ref)


def axes_of(given: object, name: str) -> Axes:
    """The axes of an input, from ``{"b": 4}``; None means none."""
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise misuse(f"the axes of {name!r} are names with sizes, not {noun(given)}.",
                     'Write axes={"b": 4}.')  # fmt: skip
    for axis, size in given.items():
        if not isinstance(axis, str) or not bare(axis):
            raise misuse(f"an axis of {name!r} cannot be called {axis!r}.", "Use a word: b, in, p.")
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise misuse(f"the axis {axis!r} of {name!r} has {size!r} cells.", "It needs one.")
    return tuple(given.items())


def cells_of(values: Any, axes: Sequence[str], name: str) -> tuple[tuple[Number, ...], Axes]:
    """The numbers of an array, cell by cell, with its axes."""
    if isinstance(axes, str) or not isinstance(axes, Sequence):
        raise misuse(f"the axes of {name!r} are a list of names, not {noun(axes)}.")
    if hasattr(values, "tolist"):
        values = values.tolist()
    level: list[Any] = [values]
    sizes: list[int] = []
    for axis in axes:
        rows = [row for row in level if isinstance(row, list | tuple)]
        lengths = {len(row) for row in rows}
        if len(rows) < len(level) or len(lengths) != 1:
            raise misuse(
                f"the values of {name!r} are no array with the axes {', '.join(axes)}.",
                f"Along {axis!r} they have "
                + (f"{sorted(lengths)} cells." if len(rows) == len(level) else "no cells."),
            )
        sizes.append(lengths.pop())
        level = [item for row in rows for item in row]
    found = tuple(number(item, f"a value of {name!r}") for item in level)
    return found, axes_of(dict(zip(axes, sizes, strict=True)), name)
