"""Handles: what a traced function computes with, in blocks of named finite axes, and scalars."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, Self

from tpcalc.dsl.operands import (
    Number,
    Operand,
    as_rational,
    misuse,
    noun,
    number,
    number_or_none,
    unsupported,
)
from tpcalc.dsl.powers import Numeric, Power
from tpcalc.dsl.recorder import Recorder
from tpcalc.errors import TraceError
from tpcalc.functions import Expr, Fn, Par, const
from tpcalc.functions.rows import RowFn
from tpcalc.program.nodes import Data, LinComb, Nonlin, Ref, Rename, RowNonlin
from tpcalc.program.types import Axes, bare


class Handle(Operand):
    """Base of what belongs to one traced program."""

    __slots__ = ("recorder",)

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def together(self, other: Handle) -> None:
        """Check that another handle belongs to the same program."""
        other.belongs(self.recorder)

    def belongs(self, recorder: Recorder) -> None:
        """Check that it is of a program."""
        if self.recorder is not recorder:
            raise misuse(
                f"{self.noun} of the program {self.recorder.title!r} meets what is of "
                f"{recorder.title!r}.",
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

    def sqrt(self) -> Self:
        """The root of each of its numbers."""
        root: Self = self ** Fraction(1, 2)  # type: ignore[operator]
        return root

    def rows(self, fn: RowFn, along: str | None = None) -> Self:
        """A function of each row along an axis, the only one if not said: ``tp.softmax(s)``."""
        if along is None:
            if len(self.axes) != 1:
                hint = f"Say which: tp.{fn.name}(x, along={next(iter(self.axes), 'p')!r})."
                if not self.axes:
                    hint = f"Of several it is tp.{fn.name}(t.stack([x, y], 'k')), over coordinates "
                    hint += "tp.exp(x) / tp.mean(tp.exp(x)) / tp.n."
                axes = ", ".join(self.axes) or "none"
                raise misuse(f"{fn.name} is along a finite axis; {self.noun} has {axes}.", hint)
            (along,) = self.axes
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


Binary = Callable[[Any, Any], Any]


class Scalar(Value):
    """A number that the program computes: an input, an average, or a function of these.

    Attributes:
        ref: Its node.

    Example:
        >>> from tpcalc.dsl.trace import program
        >>> @program
        ... def step(t):
        ...     t.output("w", 1 - 0.5 * t.scalar("eta", "1/3").sqrt())
        >>> [type(node).__name__ for node in step.nodes]
        ['Data', 'Nonlin', 'Nonlin', 'Nonlin']
    """

    __slots__ = ("_ref",)
    noun: ClassVar[str] = "a scalar"

    def __init__(self, recorder: Recorder, ref: Ref) -> None:
        super().__init__(recorder)
        self._ref = ref

    @property
    def ref(self) -> Ref:
        """Its node."""
        return self._ref

    def _at_node(self, ref: Ref) -> Scalar:
        return Scalar(self.recorder, ref)

    def _combine(self, op: Binary, verb: str, other: object, *, swapped: bool = False) -> Scalar:
        if isinstance(other, Scalar):
            self.together(other)
            # s/s stays a quotient of two arguments: it is not 1 where s is 0.
            if other.ref == self.ref and op is not operator.truediv:
                return scalar_fn(op(Par(0), Par(0)), [self])
            return scalar_fn(op(Par(0), Par(1)), [self, other])
        if isinstance(other, Handle):
            return NotImplemented  # type: ignore[no-any-return]  # the vector's operator records it
        value = number_or_none(other)
        if value is None:
            left, right = (other, self) if swapped else (self, other)
            raise unsupported(verb, left, right)
        if value == 0 and op is not operator.mul:
            if op is operator.truediv and not swapped:
                raise misuse("a scalar is divided by the number 0.")
            if not swapped and op in (operator.add, operator.sub):
                return self
        plain = const(value)
        return scalar_fn(op(plain, Par(0)) if swapped else op(Par(0), plain), [self])

    def _scaled(self, power: Power) -> Scalar:
        of = self * power.factor
        scaled = of.recorder.scaled(of.ref, power.n_power, power.depth_power)
        return Scalar(self.recorder, scaled)

    def __add__(self, other: Scalar | Numeric) -> Scalar:
        return self._combine(operator.add, "added", other)

    __radd__ = __add__

    def __sub__(self, other: Scalar | Numeric) -> Scalar:
        return self._combine(operator.sub, "subtracted", other)

    def __rsub__(self, other: Numeric) -> Scalar:
        return self._combine(operator.sub, "subtracted", other, swapped=True)

    def __mul__(self, other: Scalar | Power | Numeric) -> Scalar:
        if isinstance(other, Power):
            return self._scaled(other)
        if number_or_none(other) == 1:
            return self
        return self._combine(operator.mul, "multiplied", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar | Power | Numeric) -> Scalar:
        if isinstance(other, Power):
            return self._scaled(other.inverse())
        return self._combine(operator.truediv, "divided", other)

    def __rtruediv__(self, other: Power | Numeric) -> Scalar:
        if isinstance(other, Power):
            return (self**-1)._scaled(other)
        return self._combine(operator.truediv, "divided", other, swapped=True)

    def __pow__(self, exponent: object) -> Scalar:
        power = rational_power(self, exponent)
        return self if power == 1 else scalar_fn(Par(0) ** power, [self])

    def __rpow__(self, base: object) -> NoReturn:
        raise no_exponential(base, self)

    def __neg__(self) -> Scalar:
        return self * -1

    def __pos__(self) -> Scalar:
        return self

    def __matmul__(self, other: object) -> NoReturn:
        raise misuse(
            f"a scalar @ {noun(other)}: @ applies a matrix to a vector.",
            "Use * for the product with a number.",
        )

    __rmatmul__ = __matmul__

    def __repr__(self) -> str:
        return f"<Scalar {self.recorder.describe(self.ref)}>"


def scalar_fn(expr: Expr, scalars: Sequence[Scalar]) -> Scalar:
    """Record a function of scalars."""
    recorder = scalars[0].recorder
    fn = Fn(expr, 0, len(scalars))
    return Scalar(recorder, recorder.add(Nonlin(fn, (), tuple(s.ref for s in scalars))))


def rational_power(base: Operand, exponent: object) -> Fraction:
    """The exponent of a vector or scalar."""
    if isinstance(exponent, Operand):
        raise misuse(
            f"{base.noun} cannot be raised to {noun(exponent)}.",
            "Use tp.exp and tp.log: x**y is exp(y * log(x)).",
        )
    return as_rational(exponent, "the exponent")


def no_exponential(base: object, exponent: Operand) -> TraceError:
    """The error for a number raised to a handle."""
    return misuse(
        f"{noun(base)} cannot be raised to {exponent.noun}.",
        "Use tp.exp: a**x is exp(log(a) * x).",
    )
