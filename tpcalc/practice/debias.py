"""Debiased runs: weights that learn from deviations, outputs without their average at the start.

A unit W x + b becomes W (x - m) + W(0) m + b, where m is the average of x over the data at the
start and W(0) m + b stays: what descent does to W there is debiased descent of W and b.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tpcalc.errors import StudyError
from tpcalc.functions.fn import INNER
from tpcalc.functions.numbers import Number
from tpcalc.passes.rewriting import Rewriting
from tpcalc.passes.sums import total
from tpcalc.passes.template import Template
from tpcalc.program.base import Table, references, renumbered
from tpcalc.program.nodes import Family, Input, LinComb, MatMul, Moment, Node, Ref
from tpcalc.program.program import Builder

UNITS, OUTPUTS = "units", "outputs"
HINT = "Write every map with a bias of its own: tp.MLP(2, bias='all'), t.linear(..., bias=True)."


def debiased(template: Template, parts: Collection[str], scale: Number = 1) -> Template:
    """The template with units, or outputs, in terms of averages at the start; outputs over a scale.

    Source: Schoenherr, The nonlinearity coefficient, Definitions 33 and 34.
    """
    own = _Debiasing(template.program, Builder(template.program.dims), template)
    units = UNITS in parts
    if units:
        _check(template)
    own.each(own.rule if units else lambda node, ref: own.copied(node), range(len(own.nodes)))
    for name, ref in template.program.outputs:
        shown = (
            own.output(own.new[ref], OUTPUTS in parts, scale)
            if ref in template.outputs
            else own.new[ref]
        )
        own.out.output(name, shown)
    marks = template.parameters.items() if units else ()
    still = frozenset(own.new[ref] for ref, mark in marks if mark.bias)
    return replace(template, program=own.out.finish(), averages=own.averages, still=still)


@dataclass
class _Debiasing(Rewriting):
    """The program while it is written anew."""

    template: Template
    averages: dict[Ref, Ref] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Those of the program as it was."""
        return tuple(self.program.nodes)

    def average(self, source: Ref) -> Ref:
        """A node for the average of another over the data, at the start."""
        kind = self.out.type(source)
        name = f"average of {source} at the start"
        leaf = self.out.add(Input(Family(name, kind.width, kind.axes)))
        self.averages[leaf] = source
        return leaf

    def rule(self, node: Node, ref: Ref) -> Ref:
        """A node; a weight times a vector becomes one times its deviation, and what stays."""
        copy, found = self.copied(node), _READ(node)
        weights = [r for r in found if r in self.template.parameters and not self._bias(r)]
        if not weights:
            return copy
        (x,) = {*found} - {*weights}
        mean = self.average(self.new[x])
        moved = self.out.add(renumbered(node, lambda r: mean if r == x else self.new[r]))
        terms = ((1, copy), (-1, moved), (1, self.average(moved)))
        return total(self.out, [(Fraction(sign), None, part, ()) for sign, part in terms])

    def _bias(self, ref: Ref) -> bool:
        return self.template.parameters[ref].bias

    def output(self, f: Ref, debias: bool, scale: Number) -> Ref:
        """An output without its average, over a number."""
        share = 1 / Fraction(scale) if isinstance(scale, int | Fraction) else 1 / scale
        terms = ((share, f), (-share, self.average(f))) if debias else ((share, f),)
        return total(self.out, [(number, None, part, ()) for number, part in terms])


def _check(template: Template) -> None:
    """Whether all that is trained stands in maps with a bias, each of which is used once."""
    marks, nodes = template.parameters, template.program.nodes
    biased = {mark.label for mark in marks.values() if mark.bias}
    mapped = {mark.label for mark in marks.values() if not mark.bias}
    reads = Counter(ref for node in nodes for ref in references(node))
    for ref, mark in marks.items():
        read = sum(ref in _READ(node) for node in nodes)
        if mark.label not in (mapped if mark.bias else biased):
            lack = "belongs to no linear map" if mark.bias else "has no bias beside it"
        elif mark.role == "finite" or (not mark.bias and (read, reads[ref]) != (1, 1)):
            lack = "is not one linear map of one vector"
        else:
            continue
        raise StudyError(
            f"debiased descent is of linear maps with biases, and {mark.label} ({mark.role}) "
            f"{lack}.",
            where=template.program.place(ref),
            hint=HINT,
        )


def _inner(node: Moment) -> tuple[Ref, ...]:
    return node.vectors if node.fn == INNER else ()


def _multiple(node: LinComb) -> tuple[Ref, ...]:
    (scalar, *others), vectors = node.scalars, node.vectors
    return () if others or scalar is None else (scalar, *vectors)


_READ: Table[tuple[Ref, ...]] = Table(
    {
        MatMul: lambda node: () if node.transpose else (node.matrix, node.vector),
        Moment: _inner,
        LinComb: _multiple,
    },
    lambda node: (),
)
"""What a linear map of a weight and a vector, or of data, reads."""
