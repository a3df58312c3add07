"""``Form``: a sum that is not a node yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.functions.numbers import Number
from tpcalc.program.nodes import LinComb, Ref
from tpcalc.program.program import Builder


@dataclass
class Form:
    """A linear form: numbers in front of (scalar node or None) * vector node.

    Terms with the same scalar and vector are collected, so an input layer applied to finite data
    becomes a kernel: sum_j x_j u_j(t) = sum_j x_j u_j - sum_s (x_s . x) chi_s dh_s.
    """

    terms: dict[tuple[Ref | None, Ref], Number] = field(default_factory=dict)

    def add_term(self, scalar: Ref | None, vector: Ref, number: Number) -> None:
        """Add one term."""
        key = (scalar, vector)
        self.terms[key] = self.terms.get(key, Fraction(0)) + number

    def add(self, other: Form, factor: Number) -> None:
        """Add a multiple of another form."""
        for (scalar, vector), number in other.terms.items():
            self.add_term(scalar, vector, factor * number)

    @property
    def is_zero(self) -> bool:
        """Whether nothing is left of it but its dimension."""
        return not any(self.terms.values())

    @property
    def single(self) -> tuple[Ref, Number] | None:
        """The vector that it is a multiple of by a number, with the number; None: it is none."""
        items = [(pair, number) for pair, number in self.terms.items() if number != 0]
        return (items[0][0][1], items[0][1]) if len(items) == 1 and items[0][0][0] is None else None

    def simple(self) -> Form | Ref:
        """The form; where it is one vector, that vector."""
        items = [pair for pair, number in self.terms.items() if number != 0]
        if len(items) == 1 and items[0][0] is None and self.terms[items[0]] == 1:
            return items[0][1]
        return self

    def node(self, builder: Builder, line: str | None = None) -> Ref:
        """The node of the sum; of one that cancels a 0 of its dimension."""
        simple = self.simple()
        if not isinstance(simple, Form):
            return simple
        items = [(pair, number) for pair, number in self.terms.items() if number != 0]
        if not items:
            items = [((None, next(iter(self.terms))[1]), Fraction(0))]
        return builder.add(
            LinComb(
                tuple(number for _, number in items),
                tuple(scalar for (scalar, _), _ in items),
                tuple(vector for (_, vector), _ in items),
            ),
            line,
        )
