"""What the last update of a parameter adds to a node of the forward pass.

A node that is linear in a parameter w, such as W x for the weights W, changes by the same function
of the change of w: (W_t - W_{t-1}) x_t. That function is read off the template, so that its powers
of n stay written out, and its nodes come before those that it is a part of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import NoReturn

from tpcalc.errors import ProgramError
from tpcalc.functions import Fn, Par
from tpcalc.functions.expr import mul, walk
from tpcalc.functions.fn import INNER, derivative
from tpcalc.passes.step import Step
from tpcalc.passes.sums import Term, total
from tpcalc.passes.template import Contribution
from tpcalc.program.base import Table, leaf_of, matmul_of, references
from tpcalc.program.nodes import Kind, LinComb, Moment, Node, Nonlin, Ref, Rename, Scale, slots_of
from tpcalc.program.program import Builder

Changes = Mapping[Ref, Ref]


class Contributions:
    """The contributions of a template, each made before its parameters are read."""

    def __init__(self, template: Builder, forward: int, wanted: Sequence[Contribution]) -> None:
        self._due: dict[Ref, list[tuple[Contribution, frozenset[Ref]]]] = {}
        for item in wanted:
            path = _path(template, item)
            self._due.setdefault(_due(template, item, path), []).append((item, path))
        self._forward = forward

    @property
    def pieces(self) -> tuple[tuple[Ref, Ref], ...]:
        """The forward pass cut where contributions are due: pairs (start, stop)."""
        return tuple(pairwise((0, *sorted({*self._due} - {0}), self._forward)))

    def before(self, ref: Ref, step: Step) -> Iterator[tuple[Contribution, Ref]]:
        """What is due before a template node is typed, with its node."""
        for item, inside in self._due.get(ref, ()):
            change = _change(item.watch.ref, step, item.parameters, inside)
            if change is not None and item.between is not None:
                at = step.before
                change = None if at is None else _read(step, change, at.made[item.between])
            if change is not None:
                yield item, change


def _read(step: Step, change: Ref, factor: Ref) -> Ref:
    """A change times what stands between it and what reads it."""
    out = step.weights.out
    scalar, vector = (factor, change) if out.type(factor).kind is Kind.SCALAR else (change, factor)
    if out.type(scalar).kind is Kind.SCALAR:
        return total(out, [(1, scalar, vector, ())])
    return out.add(Nonlin(INNER, (change, factor)))


def _path(template: Builder, item: Contribution) -> frozenset[Ref]:
    """The parameters and the nodes from them to what is written: those of this use alone."""
    path = set(item.parameters)

    def leads(ref: Ref) -> bool:
        node = template.node(ref)
        below = [leads(operand) for operand in _SUMMED(node)]
        entered = _entered(template, references(node), item.parameters)
        if any(below) or entered:
            path.update((ref, *entered))
        return ref in path

    if not leads(item.watch.ref):
        _not_linear(template.node(item.watch.ref), item.watch.ref)
    return frozenset(path)


def _entered(
    template: Builder, operands: Sequence[Ref], parameters: frozenset[Ref]
) -> tuple[Ref, ...]:
    """Those operands that are parameters, also times a number or with other names of axes."""

    def is_one(ref: Ref) -> bool:
        if ref in parameters:
            return True
        of = _SAME(template.node(ref))
        return of is not None and is_one(of)

    return tuple(ref for ref in operands if is_one(ref))


def _due(template: Builder, item: Contribution, path: frozenset[Ref]) -> Ref:
    """Before the parameters are read; where their factors are not there yet, once they are."""
    first = min(item.parameters)
    own = item.parameters.union(_entered(template, sorted(path), item.parameters))
    operands = {ref: references(template.node(ref)) for ref in path - own}
    readers = {ref: others for ref, others in operands.items() if own.intersection(others)}
    factors = {other for others in readers.values() for other in others} - own
    last = max(factors, default=-1)
    return first if last < first else max(min(readers), last + 1)  # of a sum of several the last


# What a node is up to a number, or to names of axes.
_SAME: Table[Ref | None] = Table(
    {
        Rename: lambda node: node.of,
        LinComb: lambda node: (
            node.vectors[0] if node.scalars == (None,) and not any(node.over) else None
        ),
    },
    lambda node: None,
)

# What is summed up in a node. What a map is applied to may hold an earlier use of it.
_SUMMED: Table[tuple[Ref, ...]] = Table(
    {
        LinComb: lambda node: node.vectors,
        Scale: lambda node: (node.of,),
        Rename: lambda node: (node.of,),
        Nonlin: lambda node: () if node.vectors else node.scalars,
    },
    lambda node: (),
)


def _change(ref: Ref, step: Step, parameters: frozenset[Ref], inside: frozenset[Ref]) -> Ref | None:
    """The change of a template node by the last update; None where it does not change."""
    if ref not in inside:
        return None
    node = step.weights.network.node(ref)
    matmul = matmul_of(node)
    if matmul is not None and matmul.matrix in parameters and matmul.vector not in inside:
        return step.weights.last_product(matmul, step.made[matmul.vector])
    if leaf_of(node) is not None:
        return step.weights.last_change(ref)
    changes = {
        other: change
        for other in references(node)
        if (change := _change(other, step, parameters, inside)) is not None
    }
    return _CHANGES(node, ref, step, changes) if changes else None


def _not_linear(node: Node, ref: Ref, *_: object) -> NoReturn:
    raise ProgramError(
        f"template node %{ref} ({type(node).__name__}) is not a linear function of one updated "
        "parameter, whose contribution could be told apart.",
        hint="Ask for the contribution to a sum of products with the parameters.",
    )


def _scale(node: Scale, ref: Ref, step: Step, changes: Changes) -> Ref:
    return step.weights.out.add(Scale(changes[node.of], node.n_power, node.depth_power))


def _rename(node: Rename, ref: Ref, step: Step, changes: Changes) -> Ref:
    return step.weights.out.add(Rename(changes[node.of], node.names))


def _sum(node: LinComb, ref: Ref, step: Step, changes: Changes) -> Ref:
    if any(scalar in changes for scalar in node.scalars):
        _not_linear(node, ref)
    out, network, terms = step.weights.out, step.weights.network, list[Term]()
    for number, scalar, vector, axes in node.terms:
        if vector in changes:
            own = None if scalar is None else step.made[scalar]
            refs = [ref for ref in (own, changes[vector]) if ref is not None]
            held = {name for ref in refs for name, _ in out.type(ref).axes}
            every = dict(network.type(vector).axes)  # along those that a change lacks it is one
            number = number * prod(every[name] for name in axes if name not in held)
            terms.append((number, own, changes[vector], tuple(a for a in axes if a in held)))
    return total(out, terms)


def _applied(node: Moment | Nonlin, ref: Ref, step: Step, changes: Changes) -> Ref:
    """A moment or a function of scalars: its slope in the one changed argument times the change."""
    if step.weights.network.type(ref).kind is not Kind.SCALAR or len(changes) != 1:
        _not_linear(node, ref)
    changed = [argument for argument, other in slots_of(node) if other in changes]
    slope = derivative(node.fn.expr, changed[0])
    if len(changed) != 1 or changed[0] in walk(slope):
        _not_linear(node, ref)
    fn, keep_v, keep_s = Fn(mul((slope, changed[0])), node.fn.vectors, node.fn.scalars).compact()

    def part(other: Ref) -> Ref:
        return changes[other] if other in changes else step.made[other]

    out, scalars = step.weights.out, tuple(part(node.scalars[i]) for i in keep_s)
    if keep_v:
        return out.add(Moment(fn, tuple(part(node.vectors[i]) for i in keep_v), scalars))
    return scalars[0] if fn.expr == Par(0) else out.add(Nonlin(fn, (), scalars))


_CHANGES: Table[Ref] = Table(
    {LinComb: _sum, Scale: _scale, Rename: _rename, Moment: _applied, Nonlin: _applied},
    _not_linear,
)
