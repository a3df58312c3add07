"""Copies of a template: what its nodes become for one sample and the current weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeVar

from tpcalc.errors import ProgramError
from tpcalc.functions import Expr, Fn, Par
from tpcalc.functions.expr import const, substitute
from tpcalc.passes.forms import Form
from tpcalc.passes.weights import Weights
from tpcalc.program.base import Table, renumbered
from tpcalc.program.nodes import (
    Data,
    Input,
    Kind,
    LinComb,
    MatMul,
    Moment,
    Node,
    Nonlin,
    OuterNonlin,
    Ref,
    Scale,
)
from tpcalc.program.program import Builder
from tpcalc.program.views import input_of

__all__ = ["Instance", "datum", "redrawn"]

Value = Ref | Form | Fraction | float
Function = TypeVar("Function", bound=Nonlin | Moment | OuterNonlin)
BITS = 10


def datum(value: float) -> Fraction | float:
    """A number of the data: exact where it has a few binary digits, so that products stay exact.

    Args:
        value: The number.

    Example:
        >>> datum(0.75), datum(0.1)
        (Fraction(3, 4), 0.1)
    """
    exact = Fraction(value)
    return exact if exact.denominator <= 2**BITS and abs(exact) < 2**BITS else value


def redrawn(node: Node, tag: str) -> Node:
    """A random input as another draw of its law.

    Args:
        node: The input.
        tag: Ends its name.
    """
    drawn = input_of(node)
    assert drawn is not None
    return Input(replace(drawn.family, name=f"{drawn.family.name}@{tag}"), drawn.cell)


@dataclass
class Instance:
    """One copy of the template: forward (and backward, once asked) for one sample.

    Args:
        builder: The program being written.
        template: The program that is copied.
        weights: The parameters as they are now.
        data: The sample: numbers for the data nodes of the template.
        noise: What this copy draws for itself.
        tag: Ends the names of what it draws.
        values: For each template node that has been copied, what it became.
    """

    builder: Builder
    template: Builder
    weights: Weights
    data: Mapping[Ref, float]
    noise: Collection[Ref] = ()
    tag: str = ""
    values: dict[Ref, Value | None] = field(default_factory=dict)

    def run(self, start: int, stop: int) -> None:
        """Copy the template nodes ``start`` to ``stop - 1``."""
        for ref in range(start, stop):
            self.builder.line = self.template.line_of(ref)
            self.values[ref] = self._value(ref, self.template.node(ref))
        self.builder.line = None

    def ref(self, ref: Ref) -> Ref:
        """The node of a template node, made if it is a linear form so far."""
        value = self.values.get(ref)
        if isinstance(value, Form):
            return self.weights.node_of(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise ProgramError(f"template node %{ref} has no node of its own, or none yet.")

    def _value(self, ref: Ref, node: Node) -> Value | None:
        if ref in self.data:
            return datum(float(self.data[ref]))
        if ref in self.noise:
            return self.builder.add(redrawn(node, self.tag))
        return _VALUES(node, ref, self)

    def _copy(self, node: Node) -> Ref:
        return self.builder.add(renumbered(node, self.ref))

    def _leaf(self, node: Data | Input, ref: Ref) -> Value:
        if self.template.type(ref).kind is Kind.MATRIX:
            return self._copy(node)
        return self.weights.current(ref, node)

    def _scale(self, node: Scale) -> Value:
        if isinstance(self.values[node.of], float | Fraction):
            raise ProgramError(f"a power of n in front of the datum %{node.of}.")
        return self._copy(node)

    def coefficient(
        self, number: Fraction | float, scalar: Ref | None
    ) -> tuple[Fraction | float, Ref | None]:
        """The factor of a term of a sum: data are multiplied into its number."""
        if scalar is None:
            return number, None
        value = self.values[scalar]
        if isinstance(value, float | Fraction):
            return number * value, None
        return number, self.ref(scalar)

    def _lincomb(self, node: LinComb) -> Form:
        total = Form()
        for number, scalar, vector in zip(node.numbers, node.scalars, node.vectors, strict=True):
            number, coefficient = self.coefficient(number, scalar)
            item = self.values[vector]
            if isinstance(item, Form) and coefficient is None:
                total.add(item, number)
            else:
                total.add_term(coefficient, self.ref(vector), number)
        return total

    def filled_in(self, node: Function) -> Function:
        """Put data into the function where a scalar argument is a datum."""
        given: dict[Expr, Expr] = {
            Par(index): const(value)
            for index, ref in enumerate(node.scalars)
            if isinstance(value := self.values.get(ref), float | Fraction)
        }
        if not given:
            return node
        keep = [i for i in range(len(node.scalars)) if Par(i) not in given]
        given.update({Par(old): Par(new) for new, old in enumerate(keep)})
        fn = Fn(substitute(node.fn.expr, given), node.fn.vectors, len(keep))
        return replace(node, fn=fn, scalars=tuple(node.scalars[i] for i in keep))


_VALUES: Table[Value] = Table(
    {
        Data: lambda node, ref, copy: copy._leaf(node, ref),
        Input: lambda node, ref, copy: copy._leaf(node, ref),
        LinComb: lambda node, ref, copy: copy._lincomb(node),
        MatMul: lambda node, ref, copy: copy.weights.multiply(node, copy.ref(node.vector)),
        Nonlin: lambda node, ref, copy: copy._copy(copy.filled_in(node)),
        Moment: lambda node, ref, copy: copy._copy(copy.filled_in(node)),
        OuterNonlin: lambda node, ref, copy: copy._copy(copy.filled_in(node)),
        Scale: lambda node, ref, copy: copy._scale(node),
    },
    lambda node, ref, copy: copy._copy(node),
)
