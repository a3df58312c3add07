"""``Block``: one repetition of a repeated block as a network of its own, and what comes after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tpcalc.errors import ProgramError
from tpcalc.functions.fn import INNER
from tpcalc.names import what_of
from tpcalc.passes.at_depth import within
from tpcalc.passes.rewriting import Rewriting
from tpcalc.passes.template import Template
from tpcalc.program.along import along_of
from tpcalc.program.base import Table, carry_of, cone, repeat_of
from tpcalc.program.nodes import Family, Input, Moment, Node, Ref, Repeat
from tpcalc.program.program import Builder, Program

CARRY, SEED = "x", "d"  # what enters a repetition, and the adjoint of what leaves it


@dataclass(frozen=True)
class Block:
    """A repeated block of a network."""

    program: Program  # the network
    repeat: Repeat  # what closes the block

    @cached_property
    def dim(self) -> str:
        """The dimension class of what it carries."""
        return self.program.types[self.repeat.carry].width[0]

    @cached_property
    def shared(self) -> tuple[str, ...]:
        """The matrices that are the same in every repetition."""
        families = self.program.families
        own = (family.name for family in self.body.families.values() if len(family.width) == 2)
        return tuple(name for name in own if not families[name].along)

    @cached_property
    def correlated(self) -> Mapping[str, str]:
        """What depends on itself along the depth, with its law, by name."""
        inside = [self.program.families[name] for name in self.body.families if name != CARRY]
        found = {family.name: family.along for family in inside if family.along}
        return {name: law for name, law in found.items() if not along_of(law).fresh}

    @cached_property
    def body(self) -> Program:
        """A repetition: its outputs are ``next``, what leaves it, and what is reported of it."""
        repeat = self.repeat
        inside = set(within(self.program, repeat))
        reported = [(name, ref) for name, ref in self.program.outputs if ref in inside]
        leaf = Input(Family(CARRY, (self.dim,)))
        return _cut(self.program, {repeat.carry: leaf}, {"next": repeat.next, **dict(reported)})

    @cached_property
    def template(self) -> Template:
        """A repetition whose output is the average of what leaves it times its adjoint."""
        out = Builder.copy(replace(self.body, outputs=()))
        seed = out.add(Input(Family(SEED, (self.dim,))))
        following = self.body.ref("next")
        out.output("f", out.add(Moment(INNER, (following, seed))))
        for name, ref in self.body.outputs:
            if name != "next":
                out.output(name, ref)
        return Template(out.finish(), ())

    @cached_property
    def run(self) -> Program:
        """All repetitions, from a start vector in place of what enters the first one.

        Its outputs are ``first`` and ``last``, what enters and what leaves.
        """
        carry = carry_of(self.program.nodes[self.repeat.carry])
        assert carry is not None
        leaf = Input(Family(CARRY, (self.dim,)))
        outputs = {"first": carry.start, "last": self.program.repeats[0]}
        return _cut(self.program, {carry.start: leaf}, outputs, Table({}, lambda node: node))

    @cached_property
    def tail(self) -> Program:
        """The network after the last repetition, of a start vector in its place."""
        last = self.program.repeats[0]
        leaf = Input(Family(CARRY, (self.dim,)))
        outputs = {name: ref for name, ref in self.program.outputs if what_of(name) == "f"}
        return _cut(self.program, {last: leaf}, outputs)


def block_of(program: Program) -> Block:
    """The repeated block of a network."""
    if len(program.repeats) != 1:
        raise ProgramError(
            f"the program repeats {len(program.repeats)} blocks along the depth.",
            hint="Limits in the depth are of one such block: t.repeat('L', x, block).",
        )
    (ref,) = program.repeats
    repeat = repeat_of(program.nodes[ref])
    assert repeat is not None and carry_of(program.nodes[repeat.carry]) is not None
    if program.types[ref].axes:
        raise ProgramError(
            f"what is carried along the depth is {program.types[ref]}, and limits in the depth are "
            "of blocks that carry one vector.",
            where=program.place(ref),
        )
    return Block(program, repeat)


def _cut(
    program: Program,
    leaves: Mapping[Ref, Node],
    outputs: Mapping[str, Ref],
    drawn: Table[Node] | None = None,
) -> Program:
    """The part of a program that some nodes need, with leaves in place of others."""
    nodes = [leaves.get(ref, node) for ref, node in enumerate(program.nodes)]
    keep = cone(nodes, outputs.values())
    made, rule = Rewriting(program, Builder(program.dims)), drawn or _ONE
    kept = [ref for ref, needed in enumerate(keep) if needed]
    made.each(lambda node, ref: made.copied(rule(nodes[ref])), kept)
    for name, ref in outputs.items():
        made.out.output(name, made.new[ref])
    return made.out.finish()


_ONE: Table[Node] = Table(  # of one repetition nothing is drawn along the depth
    {Input: lambda node: Input(replace(node.family, along=""), node.cell)}, lambda node: node
)
