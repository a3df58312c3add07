"""``Scalar``: the numbers that a traced function computes with."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, NoReturn

from tpcalc.dsl.blocks import Handle, Value
from tpcalc.dsl.lines import misuse
from tpcalc.dsl.operands import Operand, as_rational, noun, number_or_none, unsupported
from tpcalc.dsl.powers import Numeric, Power
from tpcalc.dsl.recorder import Recorder
from tpcalc.errors import TraceError
from tpcalc.functions import Expr, Fn, Par, const
from tpcalc.program.nodes import Nonlin, Ref

Binary = Callable[[Any, Any], Any]


class Scalar(Value):
    """A number that the program computes: an input, an average, or a function of these.

    Attributes:
        ref: Its node.
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
