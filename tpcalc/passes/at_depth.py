"""``at_depth``: a program whose repeated blocks are written out, L a number.

In names and labels ``{l}``, ``{l+1}`` stand for the number of the repetition; a name without one
gets it at its end. What is correlated along the depth is written as combinations of independent
draws U_m, W_l = sum_m F_lm U_m with F F^T the correlation of the repetitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tpcalc.doors.budget import spend_nodes
from tpcalc.errors import ProgramError
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Fn, Par, const
from tpcalc.functions.numbers import root
from tpcalc.names import cell_name
from tpcalc.passes.rewriting import Rewriting
from tpcalc.passes.starts import factor_along
from tpcalc.passes.sums import scaled, total
from tpcalc.program.along import along_of
from tpcalc.program.base import Table, carry_of, input_of, references, repeat_of
from tpcalc.program.family import Family, Mark
from tpcalc.program.nodes import Input, Kind, LinComb, MatMul, Node, Nonlin, Ref, Repeat, Scale
from tpcalc.program.program import Builder, Program

_NUMBER = re.compile(r"\{(\w+)([+-]\d+)?\}")


def within(program: Program, repeat: Repeat) -> list[Ref]:
    """The nodes of a repetition of a block, its carry first."""
    inside = {repeat.carry}
    for ref in range(repeat.carry + 1, len(program.nodes)):
        if repeat_of(program.nodes[ref]) == repeat:
            break
        drawn = input_of(program.nodes[ref])
        fresh = drawn is not None and drawn.family.along
        if fresh or inside.intersection(references(program.nodes[ref])):
            inside.add(ref)
    return sorted(inside)


def at_depth(program: Program, depth: int | None = None, base: int = 1) -> Program:
    """The program with every repeated block written out, repetition by repetition.

    Args:
        program: The program.
        depth: The number that the symbol L stands for, in counts and in powers L^p.
        base: Powers are of L / base, so that a network of this depth has none.

    Returns:
        A program without repeats. What is drawn along the depth has a family for each repetition
        (or independent draw, where it is correlated: these are no parameters), an output of a
        repetition has one output for each; a program that repeats nothing is itself but for its
        powers of L, which are numbers.

    Raises:
        ProgramError: L stands in the program and is given no number, or one below 1.

    Example:
        >>> import tpcalc as tp
        >>> net = tp.parse('''tpcalc program 2
        ... dim n 1
        ... family x : n
        ... family W : n*n along fresh
        ... %0 : n = input x
        ... %1 : n = carry %0 over l:L
        ... %2 : n*n = input W
        ... %3 : n = matmul %2 %1
        ... %4 : n = scale %3 n^(-1/2) L^(-1/2)
        ... %5 : n = sum 1*%1 + 1*%4
        ... %6 : n = repeat %1 to %5
        ... output "x" %6
        ... ''')
        >>> list(at_depth(net, 3).families)
        ['x', 'W.1', 'W.2', 'W.3']
    """
    for number, what in ((depth, "the depth L"), (base, "the base depth")):
        if number is not None and number < 1:
            raise ProgramError(f"{what} is {number}.", hint="A block is repeated at least once.")
    made = _Made(program, Builder(program.dims), depth, base)
    spend_nodes(f"a depth of {depth} blocks", (depth or 1) * len(made.inside))
    left = [ref for ref in range(len(program.nodes)) if ref not in made.inside]
    made.each(made.written, left)
    for name, ref in program.outputs:
        for own, value in made.named(name, ref):
            made.out.output(own, value)
    return made.out.finish(keep_unused=False)


@dataclass
class _Made(Rewriting):
    """A program while its blocks are written out."""

    depth: int | None
    base: int
    layers: dict[Ref, list[Ref]] = field(default_factory=dict)  # of what stands in a block
    inside: set[Ref] = field(default_factory=set)
    multiples: dict[Ref, float] = field(default_factory=dict)  # matrices that are not random
    mixed: dict[Ref, list[tuple[float, Ref]]] = field(default_factory=dict)  # matrices, as sums
    factors: dict[tuple[str, int], Any] = field(default_factory=dict)
    shift: int = 0  # by which layers in tables are further down
    last: int = 0  # of these layers in the blocks so far

    def __post_init__(self) -> None:
        for ref in self.program.repeats:
            repeat = repeat_of(self.program.nodes[ref])
            assert repeat is not None
            self.inside.update(within(self.program, repeat))

    def number(self, ref: Ref) -> int:
        """What L stands for."""
        if self.depth is None:
            raise ProgramError(
                "the depth L is a symbol here.",
                where=self.program.place(ref),
                hint="Give it a number: depth=8.",
            )
        return self.depth

    def written(self, node: Node, ref: Ref) -> Ref:
        return _RULES(node, ref, self)

    def named(self, name: str, ref: Ref) -> Iterator[tuple[str, Ref]]:
        """An output, or one for each repetition."""
        if ref not in self.layers:
            yield name, self.new[ref]
            return
        for number, value in enumerate(self.layers[ref], 1):
            placed = _NUMBER.search(name)
            yield numbered(name, number) if placed else cell_name(name, (number,)), value

    def correlated(self, drawn: Input, ref: Ref, number: int, count: int) -> None:
        """What a repetition draws, as a combination of independent draws."""
        family, law = drawn.family, along_of(drawn.family.along)
        if law.row.path is not None:
            if law.mixes:
                raise ProgramError(
                    f"{family.name} is {law} along the depth, which no program writes.",
                    where=self.program.place(ref),
                    hint="tp.limit(..., depths=) and tp.simulate(..., depth=) take it.",
                )
            self.multiples[ref], self.new[ref] = float(law.path(count)[number - 1, 0, 0]), ref
            return
        if (family.along, count) not in self.factors:
            self.factors[family.along, count] = factor_along(law, count, family.name)
        terms = [
            (weight, self.out.add(replace(drawn, family=_fresh(replace(family, mark=None), m, 0))))
            for m, weight in enumerate(self.factors[family.along, count][number - 1], 1)
            if weight
        ]
        if len(family.width) == 2:
            self.mixed[ref] = terms
            self.new[ref] = terms[0][1]
        else:
            self.new[ref] = total(self.out, [(weight, None, own, ()) for weight, own in terms])

    def block(self, repeat: Repeat) -> Ref:
        """All repetitions of a block; returns what leaves the last one."""
        nodes, refs = self.program.nodes, within(self.program, repeat)
        carry = carry_of(nodes[repeat.carry])
        assert carry is not None
        x, count = self.new[carry.start], carry.count or self.number(repeat.carry)
        marks = [drawn.family.mark for ref in refs if (drawn := input_of(nodes[ref])) is not None]
        own = {mark.layer for mark in marks if mark is not None}
        for number in range(1, count + 1):
            self.new[repeat.carry] = x
            self.layers.setdefault(repeat.carry, []).append(x)
            for ref in refs[1:]:
                drawn = input_of(nodes[ref])
                self.out.line = self.program.line_of(ref)
                if drawn is None:
                    self.new[ref] = self.written(nodes[ref], ref)
                elif not along_of(drawn.family.along).fresh:
                    self.correlated(drawn, ref, number, count)
                else:
                    shift = self.shift + (number - 1) * len(own)
                    family = _fresh(drawn.family, number, shift)
                    self.new[ref] = self.out.add(replace(drawn, family=family))
                self.layers.setdefault(ref, []).append(self.new[ref])
            x = self.new[repeat.next]
        self.shift += (count - 1) * len(own)
        self.last = max(own, default=self.last)
        return x


def numbered(text: str, number: int) -> str:
    """A name in a repetition."""
    found, places = _NUMBER.subn(lambda m: str(number + int(m[2] or 0)), text)
    return found if places or not text else f"{text}.{number}"


def _fresh(family: Family, number: int, shift: int) -> Family:
    """What a repetition draws anew."""
    mark = family.mark
    if mark is not None:
        whole = numbered(mark.whole, number)
        label = numbered(mark.label, number)
        mark = replace(mark, label=label, whole=whole, layer=mark.layer + shift)
    return replace(family, name=numbered(family.name, number), along="", mark=mark)


def _input(node: Input, ref: Ref, made: _Made) -> Ref:
    mark: Mark | None = node.family.mark
    if mark is None or not made.last or mark.layer <= made.last:
        return made.out.add(node)
    moved = replace(mark, layer=mark.layer + made.shift)
    return made.out.add(replace(node, family=replace(node.family, mark=moved)))


def _scale(node: Scale, ref: Ref, made: _Made) -> Ref:
    of = scaled(made.out, made.new[node.of], node.n_power)
    if node.depth_power == Ex():
        return of
    power = node.depth_power.constant
    if power is None:
        raise ProgramError(
            f"L^({node.depth_power}) is no number.",
            where=made.program.place(ref),
            hint="Give its symbols numbers first.",
        )
    number = root(Fraction(made.number(ref), made.base), power)
    if made.out.type(of).kind is Kind.SCALAR:
        return made.out.add(Nonlin(Fn(const(number) * Par(0), 0, 1), (), (of,)))
    return made.out.add(LinComb((number,), (None,), (of,)))


def _matmul(node: MatMul, ref: Ref, made: _Made) -> Ref:
    if node.matrix in made.multiples:
        number = made.multiples[node.matrix]
        of = made.out.add(LinComb((number,), (None,), (made.new[node.vector],)))
        return made.out.add(Scale(of, as_ex(Fraction(1, 2))))
    if node.matrix not in made.mixed:
        return made.copied(node)
    x, mixed = made.new[node.vector], made.mixed[node.matrix]
    terms = [(w, None, made.out.add(MatMul(own, x, node.transpose)), ()) for w, own in mixed]
    return total(made.out, terms)


_RULES: Table[Ref] = Table(
    {
        Input: _input,
        MatMul: _matmul,
        Scale: _scale,
        Repeat: lambda node, ref, made: made.block(node),
    },
    lambda node, ref, made: made.copied(node),
)
