"""``Vector``: sums, scalings and coordinatewise operations.

Sums and scalings are recorded when they are first used for something else, so that
``a + 2*b - c`` is one linear combination of three terms.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, NoReturn

from tpcalc.dsl.handles import Binary, Handle, Scalar, Value, no_exponential, rational_power
from tpcalc.dsl.operands import Number, misuse, noun, number_or_none, unsupported, user_line
from tpcalc.dsl.powers import Numeric, Power, n
from tpcalc.dsl.recorder import Recorder, Term, bracketed
from tpcalc.errors import DimMismatch, TraceError
from tpcalc.functions import Expr, Fn, Par, Var, const
from tpcalc.functions.expr import add, substitute
from tpcalc.functions.forms import factored
from tpcalc.program.nodes import Moment, Nonlin, OuterNonlin, Ref

ONE, HALF = Fraction(1), Fraction(1, 2)
# A longer sum is recorded in parts, so that adding terms in a loop stays linear in their number.
LONGEST_SUM = 256


class Vector(Value):
    """A vector whose dimension goes to infinity with n.

    Attributes:
        dim: Its dimension class; vectors of one class have coordinates in common.

    Example:
        >>> from tpcalc.dsl.trace import program
        >>> @program
        ... def unit(t):
        ...     x = t.gaussian("x")
        ...     t.output("y", n**"1/2" * x / x.norm())
        >>> str(unit.types[-1])
        'n'
    """

    __slots__ = ("_line", "_node", "_terms", "dim")
    noun: ClassVar[str] = "a vector"

    def __init__(
        self,
        recorder: Recorder,
        dim: str,
        node: Ref | None,
        terms: tuple[Term, ...] = (),
        line: str | None = None,
    ) -> None:
        super().__init__(recorder)
        self.dim = dim
        self._node = node
        self._terms = terms
        self._line = line

    @property
    def ref(self) -> Ref:
        """Its node; a sum not recorded so far is recorded."""
        if self._node is None:
            self._node = self.recorder.linear(self._terms, self._line)
        return self._node

    def _at_node(self, ref: Ref) -> Vector:
        return Vector(self.recorder, self.dim, ref)

    @property
    def text(self) -> str:
        """The vector in the user's names, shortened."""
        if self._node is None:
            return self.recorder.describe_terms(self._terms)
        return self.recorder.describe(self._node)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The vector as a linear combination: its terms if it is an unrecorded sum, else itself."""
        return self._terms if self._node is None else ((ONE, None, self._node),)

    @property
    def T(self) -> NoReturn:
        """There is no row vector.

        Raises:
            TraceError: Always.
        """
        raise misuse(
            "a vector of a program has no transpose.",
            "x.T @ y / n is t.inner(x, y), the average of x*y over the coordinates.",
        )

    def norm(self) -> Scalar:
        """The root of the sum of the squares of its coordinates; it grows like n^(1/2)."""
        square = self.recorder.add(Moment(Fn(Var(0) ** 2, 1), (self.ref,)))
        ratio = self.recorder.builder.dim_of(self.dim).ratio
        return n**HALF * (ratio * Scalar(self.recorder, square)).sqrt()

    def _linear(self, terms: tuple[Term, ...]) -> Vector:
        return Vector(self.recorder, self.dim, None, terms, self.recorder.line or user_line())

    def _times_number(self, value: Number) -> Vector:
        if value == 1:
            return self
        return self._linear(
            tuple((number * value, scalar, vector) for number, scalar, vector in self.terms)
        )

    def _times_scalar(self, scalar: Scalar) -> Vector:
        self.together(scalar)
        terms = self.terms
        number, old, vector = terms[0]
        if len(terms) == 1 and old is not None:
            both = Scalar(self.recorder, old) * scalar
            return self._linear(((number, both.ref, vector),))
        if any(old is not None for _, old, _ in terms):
            terms = ((ONE, None, self.ref),)
        return self._linear(tuple((number, scalar.ref, vector) for number, _, vector in terms))

    def _scaled(self, power: Power) -> Vector:
        of = self * power.factor
        scaled = of.recorder.scaled(of.ref, power.n_power, power.depth_power)
        return Vector(self.recorder, self.dim, scaled)

    def _plus(self, other: Vector, sign: int) -> Vector:
        verb = "+" if sign > 0 else "-"
        _same_dim(verb, self, other)
        left, right = self.terms, other.terms
        if len(left) + len(right) > LONGEST_SUM:
            _ = self.ref if len(left) >= len(right) else other.ref  # records the longer one
            left, right = self.terms, other.terms
        if sign < 0:
            right = tuple((-number, scalar, vector) for number, scalar, vector in right)
        return self._linear(left + right)

    def _pointwise(self, op: Binary, verb: str, other: object, *, swapped: bool = False) -> Vector:
        """A coordinatewise operation with anything that is not added as a vector."""
        if isinstance(other, Vector):
            _same_dim({"multiplied": "*", "divided": "/"}[verb], self, other)
            if self.ref == other.ref and op is operator.mul:
                return nonlin(Fn(Var(0) ** 2, 1), [self])
            return nonlin(Fn(op(Var(0), Var(1)), 2), [self, other])
        plain: Expr
        if isinstance(other, Scalar):
            self.together(other)
            plain, scalars = Par(0), [other]
        else:
            value = number_or_none(other)
            if value is None:
                left, right = (other, self) if swapped else (self, other)
                raise unsupported(verb, left, right)
            plain, scalars = const(value), []
        expr = op(plain, Var(0)) if swapped else op(Var(0), plain)
        return nonlin(Fn(expr, 1, len(scalars)), [self], scalars)

    def __add__(self, other: Vector | Scalar | Numeric) -> Vector:
        if isinstance(other, Vector):
            return self._plus(other, 1)
        if number_or_none(other) == 0:  # sum([x, y]) starts at 0
            return self
        return self._pointwise(operator.add, "added", other)

    __radd__ = __add__

    def __sub__(self, other: Vector | Scalar | Numeric) -> Vector:
        if isinstance(other, Vector):
            return self._plus(other, -1)
        if number_or_none(other) == 0:
            return self
        return self._pointwise(operator.sub, "subtracted", other)

    def __rsub__(self, other: Scalar | Numeric) -> Vector:
        if number_or_none(other) == 0:
            return -self
        return self._pointwise(operator.sub, "subtracted", other, swapped=True)

    def __mul__(self, other: Vector | Scalar | Power | Numeric) -> Vector:
        if isinstance(other, Power):
            return self._scaled(other)
        if isinstance(other, Scalar):
            return self._times_scalar(other)
        value = number_or_none(other)
        if value is not None:
            return self._times_number(value)
        return self._pointwise(operator.mul, "multiplied", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Vector | Scalar | Power | Numeric) -> Vector:
        if isinstance(other, Power):
            return self._scaled(other.inverse())
        if isinstance(other, Scalar):
            return self._times_scalar(other**-1)
        value = number_or_none(other)
        if value == 0:
            raise misuse("a vector is divided by the number 0.")
        if value is not None:
            return self._times_number(1 / value)
        return self._pointwise(operator.truediv, "divided", other)

    def __rtruediv__(self, other: Scalar | Power | Numeric) -> Vector:
        if isinstance(other, Power):
            return (self**-1)._scaled(other)
        return self._pointwise(operator.truediv, "divided", other, swapped=True)

    def __pow__(self, exponent: object) -> Vector:
        power = rational_power(self, exponent)
        return self if power == 1 else nonlin(Fn(Var(0) ** power, 1), [self])

    def __rpow__(self, base: object) -> NoReturn:
        raise no_exponential(base, self)

    def __neg__(self) -> Vector:
        return self._times_number(Fraction(-1))

    def __pos__(self) -> Vector:
        return self

    def __matmul__(self, other: object) -> Any:
        if isinstance(other, Handle) and not isinstance(other, Vector | Scalar):
            return NotImplemented  # the matrix says how to write it
        raise misuse(
            f"{self.text} @ {other.text if isinstance(other, Vector) else noun(other)}: @ applies "
            "a matrix to a vector.",
            "Use t.inner(x, y) for the average of x*y over the coordinates.",
        )

    def __rmatmul__(self, other: object) -> NoReturn:
        raise misuse(
            f"{noun(other)} @ {self.text}: only a matrix of the program acts on its vectors.",
            "Make one with t.matrix; finite dimensions are written out, one handle for each entry.",
        )

    def __repr__(self) -> str:
        return f"<Vector {self.text} on {self.dim!r}>"


def nonlin(fn: Fn, vectors: Sequence[Vector], scalars: Sequence[Scalar] = ()) -> Vector:
    """Record a coordinatewise function of vectors and scalars."""
    dim = common_dim(vectors, scalars)
    node = Nonlin(fn, tuple(x.ref for x in vectors), tuple(s.ref for s in scalars))
    recorder = vectors[0].recorder
    return Vector(recorder, dim, recorder.add(node))


def outer(
    fn: Fn, rows: Sequence[Vector], cols: Sequence[Vector], x: Vector, scalars: Sequence[Scalar]
) -> Vector:
    """Record an outer function times a vector; a product of rows and columns as averages."""
    dim, recorder = common_dim(rows, scalars), x.recorder
    common_dim([*cols, x])
    above, below, given = (tuple(one.ref for one in some) for some in (rows, cols, scalars))
    products, rest = factored(fn.expr, len(rows))
    places: dict[Expr, Expr] = {Var(len(rows) + i): Var(i) for i in range(len(cols))}
    terms, numbers = list[Expr](), list(scalars)
    for row, col in products:
        own = Fn(substitute(col, places) * Var(len(cols)), len(cols) + 1, len(scalars))
        node = Moment(own, (*below, x.ref), given)
        terms.append(row * Par(len(numbers)))
        numbers.append(Scalar(recorder, recorder.add(node)))
    parts = [nonlin(Fn(add(terms), len(rows), len(numbers)), rows, numbers)] if terms else []
    if not parts or rest != const(0):
        left = OuterNonlin(Fn(rest, fn.vectors, fn.scalars), above, below, given, x.ref)
        parts.append(Vector(recorder, dim, recorder.add(left)))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def common_dim(vectors: Sequence[Vector], scalars: Sequence[Scalar] = ()) -> str:
    """The dimension class of vectors that are combined coordinate by coordinate."""
    first = vectors[0]
    for other in (*vectors[1:], *scalars):
        first.together(other)
    for vector in vectors[1:]:
        if vector.dim != first.dim:
            raise _mismatch(f"{first.text}, {vector.text}", first, vector)
    return first.dim


def _same_dim(verb: str, left: Vector, right: Vector) -> None:
    left.together(right)
    if left.dim != right.dim:
        raise _mismatch(f"{bracketed(left.text)} {verb} {bracketed(right.text)}", left, right)


def _mismatch(what: str, left: Vector, right: Vector) -> TraceError:
    return misuse(
        f"{what}: {left.text} lives on {left.dim!r}, {right.text} on {right.dim!r}. Coordinates of "
        "different dimension classes do not correspond.",
        "Take a moment of one of them first, or multiply it by a matrix.",
        kind=DimMismatch,
    )
