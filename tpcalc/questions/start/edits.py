"""Edits of a network after which no first step grows, each tried: multipliers, starts, rates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tpcalc.exponents import as_ex
from tpcalc.names import what_of
from tpcalc.passes.rewriting import Rewriting
from tpcalc.program.base import Table, matmul_of, reached, references
from tpcalc.program.nodes import (
    Input,
    LinComb,
    MatMul,
    Moment,
    Node,
    Nonlin,
    Ref,
    Rename,
    Scale,
    Stack,
)
from tpcalc.program.program import Builder
from tpcalc.questions.start.moves import Sizes, largest
from tpcalc.questions.start.program import FirstSteps
from tpcalc.questions.start.words import Found, network, parameter
from tpcalc.results import Exponent, StableEdit
from tpcalc.results.first_order import kind_of

MOST = 6
LEARNS = ("kernel", "feature learning")
Powers = defaultdict[Ref, Fraction]


@dataclass(frozen=True)
class Edited:
    """A network in which powers of n were written."""

    sizes: Sizes  # its first steps
    # the powers before read points, by what reads them and the line
    points: Mapping[tuple[str, str], Fraction]
    starts: Mapping[str, Fraction]  # those before starts, by the name of the parameter

    @property
    def lines(self) -> Mapping[str, Fraction]:
        """All by what they are written to."""
        read = {what + f" ({at})" * bool(at): own for (what, at), own in self.points.items()}
        return read | {f"the start of {kind_of(one)}": own for one, own in self.starts.items()}


def stable_edits(sizes: Sizes, shifts: Mapping[Ref, Fraction]) -> tuple[StableEdit, ...]:
    """Edits after which nothing that is read grows, those of the fewest lines first, by bounds.

    None where nothing grows as it is.
    """
    if _first(sizes) is None or _first(sizes := Sizes.of(sizes.run, sizes.values)) is None:
        return ()
    names = {ref: f"the rate of {kind_of(one.name)}" for ref, one in sizes.steps.parameters.items()}
    lines: dict[str, Fraction] = defaultdict(Fraction)
    for ref, power in shifts.items():
        lines[names[ref]] = min(power, lines[names[ref]])
    lower = {ref: lines[name] for ref, name in names.items()}
    tried = (edited(sizes, of_starts) for of_starts in (False, True))
    found = [None if one is None else _edit(one.sizes, one.lines) for one in tried]
    if _first(slower := Sizes.of(sizes.run, sizes.values, lower)) is None:
        found.append(_edit(slower, lines))
    unique = dict.fromkeys(edit for edit in found if edit is not None and edit.word in LEARNS)
    return tuple(sorted(unique, key=lambda edit: len(edit.lines)))


def _edit(sizes: Sizes, lines: Mapping[str, Fraction]) -> StableEdit:
    found = Found(sizes, {})
    rows = [parameter(found, ref, node.name, "") for ref, node in sizes.steps.parameters.items()]
    told = ((what, Exponent.number(power).raised("n")) for what, power in lines.items() if power)
    return StableEdit(tuple(map(" times ".join, told)), network(found, rows).word)


def _first(sizes: Sizes) -> tuple[Ref, Fraction] | None:
    """The first read point that grows, of the first step at which one does, and the power."""
    start, *later = sizes.changes
    before = sizes.sizes(0, sizes.read)
    for powers in ({ref: largest((before[ref], start.get(ref))) for ref in sizes.read}, *later):
        for ref, name in sizes.read.items():
            power = powers.get(ref)
            if what_of(name) != "x" and isinstance(power, Fraction) and power > 0:
                return ref, power
    return None


def edited(sizes: Sizes, of_starts: bool) -> Edited | None:
    """One read point after the other with a power of n before it, or before the start of a map."""
    steps, run, powers = sizes.steps, sizes.run, Powers(Fraction)
    shifts = Powers(Fraction, sizes.shifts)
    points = defaultdict[tuple[str, str], Fraction](Fraction)
    starts = defaultdict[str, Fraction](Fraction)
    origin = {ref: ref for ref in sizes.read}
    for _ in range(MOST):
        grown = _first(sizes)
        if grown is None:
            return Edited(sizes, points, starts)
        at, power = grown
        place = _place(sizes, at)
        alike = [origin[ref] for ref in sizes.read if _place(sizes, ref) == place]
        maps = _maps(steps, alike) if of_starts else set()
        for ref in _uses(steps, maps) if maps else alike:
            powers[ref] -= power
        for own in maps:  # its rate stays
            mark = steps.parameters[own].family.mark
            assert mark is not None
            shifts[own] += (1 + run.optimizer_of(mark).degree) * power
            starts[steps.parameters[own].name] -= power
        if not maps:
            points[place] -= power
        written, new = scaled(steps, powers)
        origin = {made: ref for ref, made in enumerate(new)}
        both = zip(steps.parameters, written.parameters, strict=True)
        moved = {own: shifts[ref] for ref, own in both if ref in shifts}
        sizes = Sizes.of(run, sizes.values, moved, steps=written)
    return None


def _place(sizes: Sizes, ref: Ref) -> tuple[str, str]:
    """A read point and its line, without the number of a block."""
    return kind_of(sizes.read[ref]), kind_of(sizes.steps.network.line_of(ref) or "")


def scaled(steps: FirstSteps, powers: Powers) -> tuple[FirstSteps, list[Ref]]:
    """The network with powers of n behind some nodes, and what stands for each of its nodes."""
    own, parameters = Rewriting(steps.network, Builder(steps.network.dims)), dict[Ref, Input]()

    def powered(node: Node, ref: Ref) -> Ref:
        made = own.copied(node)
        if ref in steps.parameters:
            parameters[made] = steps.parameters[ref]
        return own.out.add(Scale(made, as_ex(powers[ref]))) if ref in powers else made

    network = own.by(powered).finish()
    return replace(steps, network=network, parameters=parameters).anew(), [*own.new.values()]


_SUMS: Table[Iterable[Ref]] = Table(
    dict.fromkeys((Scale, LinComb, Rename, Stack), references)
    | {Nonlin: lambda node: () if node.vectors else node.scalars},
    lambda node: (),
)
_NUMBERS: Table[Iterable[Ref]] = Table(dict.fromkeys((Scale, LinComb), references), lambda node: ())
_ROWS: Table[Iterable[Ref]] = Table(
    {Moment: lambda node: node.vectors, MatMul: lambda node: (node.matrix,)}, lambda node: ()
)


def _behind_numbers(nodes: Sequence[Node], ref: Ref) -> Ref:
    """What a node is a multiple of."""
    while len(own := list(_NUMBERS(nodes[ref]))) == 1:
        ref = own[0]
    return ref


def _maps(steps: FirstSteps, refs: Iterable[Ref]) -> set[Ref]:
    """The parameters of the maps that nodes are made of before any function."""
    nodes = steps.network.nodes
    sums = reached(refs, lambda ref: _SUMS(nodes[ref]))
    rows = (_behind_numbers(nodes, own) for ref in sums for own in _ROWS(nodes[ref]))
    return {own for own in rows if own in steps.parameters}


def _uses(steps: FirstSteps, maps: Collection[Ref]) -> list[Ref]:
    """All products with matrices, and vectors themselves."""
    products = ((ref, matmul_of(node)) for ref, node in enumerate(steps.network.nodes))
    made = [ref for ref, own in products if own is not None and own.matrix in maps]
    return made + [own for own in maps if len(steps.parameters[own].family.width) == 1]
