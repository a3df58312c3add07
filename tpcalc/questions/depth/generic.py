"""``Generic``: training of a network of L blocks, written out for one generic block.

What enters the block from the stream is a start vector for each pass (of order one: its parts at
the start and what many blocks added up), and besides what the passes before it added through *this*
block, by their powers of L. A power L^e is written as n^(e R) with a tiny R: so the calculus of the
width, which knows what a matrix and its transpose do, reads both, the width first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Fn, Var
from tpcalc.functions.expr import add, const, mul
from tpcalc.names import USE, layered, stepped
from tpcalc.passes.backward import Gradients, backward
from tpcalc.passes.block import CARRY, SEED, Block
from tpcalc.passes.course import Course
from tpcalc.passes.split import split
from tpcalc.passes.starts import started_at_zero
from tpcalc.passes.step import Step
from tpcalc.passes.sums import scaled, total
from tpcalc.passes.weights import Share, Weights
from tpcalc.program.along import along_of
from tpcalc.program.base import Table, matmul_of
from tpcalc.program.nodes import Family, Input, MatMul, Node, Nonlin, Ref, Scale
from tpcalc.program.program import Builder, Program
from tpcalc.training.training import Training

R = Fraction(1, 2**12)  # L = n^R: every power of n is larger than every power of L that is met
FORWARD, BACKWARD = "F", "B"
Pass = tuple[str, int]  # which way, and the step
ONE = Fraction(1)
NAMES = {FORWARD: "x", BACKWARD: "dx"}


class Clear(set[tuple[int, tuple[float, ...]]]):
    """Every vector: in a generic block none sits on a kink whose form does not say so."""

    def __contains__(self, item: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True, order=True)
class Direction:
    """Where blocks push the stream, all of them alike: a function of what the stream carries."""

    # which kinds of vectors it changes its sign with: "F" those of forward passes, "B" those of
    # backward passes; "": with none
    odd: str
    of: tuple[Pass, ...]  # the passes whose vectors it is made of

    @property
    def words(self) -> str:
        """What it is, for tables."""
        if not self.of:
            return "drift along a constant vector"
        names = [stepped(NAMES[way], step) for way, step in self.of]
        odd = " and ".join(NAMES[way] for way in self.odd)
        return f"drift, {f'odd in {odd}' if odd else 'even'}: a function of {', '.join(names)}"


@dataclass(frozen=True)
class Push:
    """How much the blocks before a generic one push the stream in a direction."""

    power: Ex  # the e of L^(-e)
    local: bool  # whether only what passed through the generic block itself counts


Pushes = Mapping[Pass, Mapping[Direction, Push]]


@dataclass(frozen=True)
class Generic:
    """A generic block of a network in training."""

    block: Block
    training: Training  # the run: the number of updates, rates, the optimizer
    power: Fraction  # the power of n of the adjoint of the stream
    speed: Mapping[str, Ex]  # for a label of a parameter the power of L of its rate

    @property
    def steps(self) -> int:
        """The number of updates."""
        return self.training.steps

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """The passes in order, up to the forward pass after the last update, if there is one."""
        found = [(way, step) for step in range(self.steps + 1) for way in (FORWARD, BACKWARD)]
        return tuple(found[:-1] if self.steps else found)

    @cached_property
    def laws(self) -> Mapping[str, Ex | None]:
        """How what the block draws is correlated along the depth, as of ``Correlation``."""
        families = self.block.program.families
        drawn = {name: families[name].along for name in self.block.body.families if name != CARRY}
        # What has no law is the same in all repetitions.
        return {name: along_of(law).decay if law else Ex() for name, law in drawn.items()}

    @cached_property
    def differentiated(self) -> tuple[Builder, Ref, Gradients]:
        """The block with its backward pass: its nodes, the adjoint of the carry, the gradients."""
        template = self.block.template
        builder = Builder.copy(template.bare)
        carry = template.program.inputs[CARRY]
        (output,) = template.outputs
        found = backward(builder, [(output, None)], [*template.parameters, carry])
        return builder, found.adjoints[carry], found

    def at_start(self, program: Program) -> Program:
        """A program with what starts at 0 put in."""
        return started_at_zero(program, self.block.template.zeros)

    def program(self, pushes: Pushes) -> Program:
        """The passes in a generic block.

        Args:
            pushes: For each pass the directions in which the blocks before it push the stream.

        Returns:
            Outputs ``F[t]``, ``B[t]``: what the block adds to the stream and to its adjoint;
            ``h[...,t]`` preactivations; ``P[k,t]``, ``W[k,t]`` the product with a matrix as it
            started, and what its updates add; ``r[k]``, ``c[k]`` the sides of its first gradient.
        """
        return _Writing(self, pushes).program()


@dataclass
class _Writing:
    """The passes while they are written."""

    generic: Generic
    pushes: Pushes
    out: Builder = field(init=False)
    start: dict[Pass, Ref] = field(default_factory=dict)  # what enters the block, but for its own
    entered: dict[Pass, Ref] = field(default_factory=dict)  # the same with its own
    done: dict[Pass, Ref] = field(default_factory=dict)  # what leaves it, in the passes so far

    def __post_init__(self) -> None:
        self.out = Builder(self.generic.block.program.dims)
        count = self.generic.steps + 1
        cov = tuple(tuple(1 + int(i == j) for j in range(count)) for i in range(count))
        for name in (CARRY, SEED):
            family = Family.group(name, self.generic.block.dim, (0,) * count, cov)
            cells = range(count) if family.axes else (None,)
            way = FORWARD if name == CARRY else BACKWARD
            for step, cell in enumerate(cells):
                self.start[way, step] = self.out.add(Input(family, cell))

    def program(self) -> Program:
        generic, out, template = self.generic, self.out, self.generic.block.template
        network, adjoint, gradients = generic.differentiated
        weights = Weights(out, network, "b")
        for ref, mark in template.parameters.items():
            path = generic.training.path(mark)
            if path is not None:
                axes = frozenset(name for name, _ in network.type(ref).axes)
                weights.courses[ref] = Course(path, axes, mark.start or ONE)
        carry, seed = (template.program.inputs[name] for name in (CARRY, SEED))
        for step in range(generic.steps + 1):
            copy = Step(template, weights, ((),), 0, step)
            copy.made[carry] = self.entering((FORWARD, step))
            copy.run(0, seed)
            self.added((FORWARD, step), copy.made[generic.block.body.ref("next")], copy.made[carry])
            for watch in template.watch:
                if watch.own.what == "h":
                    out.output(str(replace(watch.own, step=step)), copy.made[watch.ref])
            if step:
                self.changes(copy, step)
            if step and step == generic.steps:
                break
            enters = self.entering((BACKWARD, step))
            copy.made[seed] = scaled(out, enters, as_ex(generic.power + 1))
            copy.run(seed, len(network))
            leaves = scaled(out, copy.made[adjoint], as_ex(-generic.power))
            self.added((BACKWARD, step), leaves, enters)
            self.updated(weights, copy, gradients, step)
        return self.generic.at_start(in_width(split(out.finish())))

    def updated(self, weights: Weights, copy: Step, gradients: Gradients, step: int) -> None:
        """Take the step of an update; the sides of the first gradients are outputs."""
        for ref, mark in self.generic.block.template.parameters.items():
            pairs = [(copy.made[r], copy.made[c]) for r, c in gradients.matrices.get(ref, ())]
            adjoint = gradients.adjoints.get(ref)
            own = None if adjoint is None else copy.made[adjoint]
            shown = pairs if own is None else [(own,)]
            for place, sides in enumerate(shown if not step else ()):
                for side, name in zip(sides, "rc" if own is None else "b", strict=True):
                    self.out.output(layered(name, mark.label) + f"{USE}{place}" * (place > 0), side)
            if not self.generic.steps:
                continue
            _, power = self.generic.training.rate(mark, step)
            rate = power - R * self.generic.speed[mark.label]
            share = Share(-ONE, None, rate, 1)
            if ref in weights.courses:
                whole = Share(ONE, None, Ex(), 1)
                weights.follow(ref, pairs if own is None else own, whole, (ONE, rate))
            elif own is not None:
                weights.update(ref, own, share)
            else:
                weights.update_matrix(ref, pairs, share)

    def total(self, terms: Sequence[tuple[Fraction, Ref]]) -> Ref:
        return total(self.out, [(number, None, ref, ()) for number, ref in terms])

    def entering(self, own: Pass) -> Ref:
        """What enters the block: the start vector, and what comes through this block."""
        terms = [(ONE, self.start[own])]
        for direction, push in self.pushes.get(own, {}).items():
            before = [one for one in direction.of if one in self.done]
            if not before and (direction.of or push.local):
                continue
            ways = "".join(way for way, _ in before)
            kinds = [(ONE, self.done), (-ONE, self.entered)][: 1 + push.local]
            parts = [
                (number, self.vector(direction.odd, ways, [found[one] for one in before]))
                for number, found in kinds
            ]
            terms += [
                (number, self.out.add(Scale(ref, Ex(), -push.power))) for number, ref in parts
            ]
        self.entered[own] = self.total(terms)
        return self.entered[own]

    def vector(self, odd: str, ways: str, refs: Sequence[Ref]) -> Ref:
        """A simple function of vectors of passes with its signs."""
        sums = []
        for way in odd or FORWARD + BACKWARD:
            own = [ref for other, ref in zip(ways, refs, strict=True) if other == way]
            if own:
                sums.append(self.total([(ONE, r) for r in own]))
        if len(odd) == len(sums) == 1:
            return sums[0]
        if not sums:
            return self.out.add(Nonlin(Fn(const(1), 1), (self.start[FORWARD, 0],)))
        parts = [Var(place) for place in range(len(sums))]
        expr = mul(parts) if odd else add(mul((part, part)) for part in parts)
        return self.out.add(Nonlin(Fn(expr, len(sums)), tuple(sums)))

    def added(self, own: Pass, after: Ref, before: Ref) -> None:
        """Take note of what the block adds in a pass."""
        self.done[own] = after
        change = self.total([(ONE, after), (-ONE, before)])
        self.out.output(stepped(*own), change)

    def changes(self, copy: Step, step: int) -> None:
        """What the updates of each matrix add to what it is applied to."""
        template = self.generic.block.template
        for place, node in enumerate(template.program.nodes):
            product = matmul_of(node)
            if product is None or product.matrix not in template.parameters:
                continue
            matrix = self.out.add(template.bare.nodes[product.matrix])
            start = self.out.add(MatMul(matrix, copy.made[product.vector], product.transpose))
            label = template.parameters[product.matrix].label
            change = self.total([(ONE, copy.made[place]), (-ONE, start)])
            self.out.output(layered("W", label, step), change)
            self.out.output(layered("P", label, step), start)


def in_width(program: Program) -> Program:
    """The program with powers of n in place of powers of L."""
    return replace(program, nodes=tuple(map(_WRITTEN, program.nodes)))


_WRITTEN: Table[Node] = Table(
    {Scale: lambda node: Scale(node.of, node.n_power + R * node.depth_power)}, lambda node: node
)
