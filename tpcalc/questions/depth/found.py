"""``Found``: what is read off the parts of the stream of a network of L blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, product

import numpy as np

from tpcalc.activations.entries.relu import RELU
from tpcalc.errors import NotDifferentiable
from tpcalc.exponents import Ex, as_ex
from tpcalc.exponents.chamber import Region
from tpcalc.functions import Call, Expr, Fn, Var
from tpcalc.functions.expr import const, substitute, walk
from tpcalc.functions.tape import evaluate
from tpcalc.names import Name, layered, stepped
from tpcalc.networks.network import is_sum
from tpcalc.passes.block import Block
from tpcalc.passes.template import Template
from tpcalc.program.base import Table, applied_of, matmul_of, references
from tpcalc.program.nodes import Moment, Node, Nonlin, OuterNonlin
from tpcalc.questions.depth.flow import Flow, Regime, grows_faster
from tpcalc.questions.depth.generic import BACKWARD, FORWARD, NAMES, Pass
from tpcalc.questions.depth.rates import generic_block
from tpcalc.questions.depth.stream import Stream, stream
from tpcalc.results import BlockRate, CriticalPower, Exponent, OrderRow, SetRow
from tpcalc.training.training import Training

Pair = tuple[str, str]
Places = tuple[int, int]
PLACES = np.array([-1e8, -1e4, 1e4, 1e8])
CLOSE = 1e-3  # of slopes between these places
LISTED = 10  # matrices of which all sets are told; of more there are too many sets
_FAR: Table[Node] = Table(
    {
        Nonlin: lambda node: replace(node, fn=_of(node.fn)),
        Moment: lambda node: replace(node, fn=_of(node.fn)),
    },
    lambda node: node,
)
_CALLS: Table[Iterator[Call]] = Table(
    dict.fromkeys((Nonlin, Moment), lambda node: _calls(node.fn)), lambda node: iter(())
)

STARTS: tuple[Pass, ...] = ((FORWARD, 0), (BACKWARD, 0))
WORDS = {FORWARD: "outputs", BACKWARD: "gradients"}
FAR_OUT = (
    "preactivations in a block grow with the depth: its functions are taken as what they are far "
    "out, multiples of |z| on either side (derived)"
)


def found_of(training: Training, at: Mapping[str, Fraction]) -> Found:
    """What is read off the generic block of a run, or off what it is far out where that decides."""
    generic, rates = generic_block(training, at)
    found = Found(stream(generic, at), rates)
    if found.verdict == "undecided" and any(found.sign(power) > 0 for _, power in found.grown):
        block = far_out(generic.block)
        if block is not None:
            far = Found(stream(replace(generic, block=block), at), rates, (FAR_OUT,))
            return far if far.verdict != "undecided" else found
    return found


class Found:
    """What is read off the parts of the stream."""

    def __init__(
        self, stream: Stream, rates: tuple[BlockRate, ...], said: tuple[str, ...] = ()
    ) -> None:
        self.stream, self.rates, self.said = stream, rates, said
        self.block, self.steps = stream.generic.block, stream.generic.steps

    def sign(self, power: Ex) -> int:
        return self.stream.chamber.sign(power)

    @cached_property
    def flow(self) -> Mapping[Pass, Regime]:
        """What becomes of mean squares at the start where sums over blocks do not tell.

        Sums are of terms that do not change along the depth: of a stream that keeps its size.
        """
        step = None if self.exploded is None else self.exploded[1]
        if step != 0 or self.block.shared or self.block.correlated:
            return {}
        added = {power for power, _ in self.stream.found.series("F[0]").terms}
        regimes = Flow(self.stream.generic, self.stream.chamber, len(added) > 1).regimes
        return dict(zip(STARTS, regimes, strict=True))

    @cached_property
    def turned(self) -> bool:
        """Whether blocks add so much along the stream itself that they may shrink it."""
        total = self.stream.sums[FORWARD, 0]
        return any(
            direction.odd == FORWARD and self.sign(power) < 0
            for direction, power in total.drift.items()
        )

    @property
    def start_alone(self) -> bool:
        """Whether no step is followed."""
        return not self.steps

    @property
    def region(self) -> Region:
        """Where all of this holds."""
        return self.stream.region

    @cached_property
    def linear(self) -> bool:
        """Whether the block is linear in what it carries."""
        nodes = map(applied_of, self.block.body.nodes)
        return all(is_sum(node.fn) for node in nodes if node is not None)

    @cached_property
    def alpha(self) -> Ex:
        """The power of 1/L in front of a block."""
        lead, _ = self.stream.lead("F[0]")
        return Ex() if lead is None else -lead

    @property
    def exploded(self) -> Pass | None:
        return self.stream.exploded

    @cached_property
    def open(self) -> tuple[Pass, ...]:
        """The passes where what was not followed may grow."""
        return tuple(
            one
            for one, total in self.stream.sums.items()
            if total.bound is not None and self.sign(total.bound) < 0
        )

    @property
    def stable_start(self) -> bool | None:
        if self.exploded is not None and self.exploded[1] == 0:
            if self.exploded == STARTS[0] and not self.turned:
                return False
            starts = set(map(self.start, STARTS))
            return False if starts & {"unstable", "vanishing"} else None if "" in starts else True
        if self.start(STARTS[0]) == "" or any(step == 0 for _, step in self.open):
            return None
        return True

    @cached_property
    def first(self) -> int:
        """The sign of the power of L by which the first updates of all blocks move the output."""
        rates = ((o.gradient.exact, o.update.exact) for o in self.rates)
        powers = (one + other - 1 for one, other in rates if one is not None and other is not None)
        return max((-self.sign(power) for power in powers), default=-1)

    @property
    def stable(self) -> bool | None:
        if self.flow:
            if self.stable_start and not self.start_alone and self.first > 0:
                return False
            return False if "unstable" in map(self.start, STARTS) else None
        if self.exploded is not None:
            return None if self.may_cancel(self.exploded[1]) else False
        if self.start_alone:
            return None
        return None if self.open or not self.stable_start else True

    def may_cancel(self, step: int) -> bool:
        """Whether what blocks give back at a step may cancel along the depth: only bounds."""
        return bool(step and self.anticorrelated)

    def start(self, own: Pass) -> str:
        """What becomes of a pass at the start: explosion, a limit that is random, or the identity.

        "" where it is not known.
        """
        total = self.stream.sums.get(own)
        regime = self.flow.get(own)
        if regime is not None and (regime.form or self.turned):
            return self.became(regime)
        if total is None or own in self.open:
            return ""
        found = self.judged(min((self.sign(power) for _, power in total.all), default=1))
        return "" if found == "stationary" and self.accelerating else found

    @cached_property
    def accelerating(self) -> bool:
        """Whether blocks multiply a larger stream by more, so that its size decides what it does.

        It may then be infinite after a share of the blocks.
        """
        nodes = map(applied_of, self.block.body.nodes)
        if not any(node is not None and grows_faster(node.fn) for node in nodes):
            return False
        flow = Flow(self.stream.generic, self.stream.chamber)
        return bool(flow.unknown) or flow.accelerates

    def became(self, regime: Regime) -> str:
        """The same of a mean square."""
        if regime.form != "power":
            words = {"order": "stationary", "grows": "unstable", "shrinks": "vanishing", "": ""}
            return words[regime.form]
        if regime.real is not None:
            return "unstable" if regime.real.value.value > 0 else "vanishing"
        return {1: "unstable", 0: "stationary"}.get(self.sign(regime.power), "vanishing")

    @staticmethod
    def judged(sign: int) -> str:
        """What becomes of what adds up to L^(-power), by the sign of the power."""
        return {-1: "unstable", 0: "stationary"}.get(sign, "identity")

    @property
    def critical(self) -> Iterator[CriticalPower]:
        """The powers in front of a block that are critical at the start, and what this one is."""
        for own in STARTS:
            total = self.stream.sums.get(own)
            if total is None or total.shift is None or own in self.open or self.turned:
                continue
            status = self.status_at(0)
            yield self._critical(own, "oo", total.shift, status)
            if total.aside is not None and self.sign(total.aside + total.shift) < 0:
                yield self._critical(own, "n", -total.aside, "derived")

    def _critical(self, own: Pass, width: str, shift: Ex, status: str) -> CriticalPower:
        here = self.judged(-self.sign(shift))
        return CriticalPower(
            WORDS[own[0]], width, Exponent.number(self.alpha + shift), here, status
        )

    def moved(self, what: str) -> Iterator[tuple[Pass, Ex]]:
        """By how much updates push the stream: what is odd in the adjoint alone moves outputs."""
        for one in self.stream.forward:
            for direction, power in self.stream.sums[one].drift.items():
                updated = any(way == BACKWARD for way, _ in direction.of)
                if one[1] and updated and (what == "x" or direction.odd == BACKWARD):
                    yield one, power

    def _moves(self, what: str) -> bool | None:
        if self.start_alone:
            return None
        if self.flow:  # training is not followed: whether first updates move anything
            shrink = all(regime.form == "shrinks" for regime in self.flow.values())
            return False if shrink or (self.stable_start and self.first < 0) else None
        if any(self.sign(power) <= 0 for _, power in self.moved(what)):
            return True
        if self.stable_start is False:
            return None
        for one in self.stream.forward:
            bound = self.stream.sums[one].bound
            if one[1] and bound is not None and self.sign(bound) <= 0:
                return None
        return False

    @cached_property
    def moves(self) -> bool | None:
        return self._moves("f")

    @cached_property
    def features(self) -> bool | None:
        return self._moves("x")

    @cached_property
    def verdict(self) -> str:
        if self.start_alone:
            found = set(map(self.start, STARTS))
            ranked = ("unstable", "vanishing", "", "stationary", "identity")
            return min(found, key=ranked.index) or "undecided"
        if self.stable is False:
            return "unstable"
        if self.flow and self.moves is False:
            return "trivial"
        if self.stable is None or self.moves is None or self.features is None:
            return "undecided"
        return "feature-learning" if self.features else "trivial"

    @property
    def words(self) -> Iterator[str]:
        """What is said of a point of a diagram."""
        if self.start_alone:
            yield f"outputs {self.start((FORWARD, 0))}"
            yield f"gradients {self.start((BACKWARD, 0))}"
            return
        if self.stable is False:
            yield f"unstable {'in training' if self.stable_start else 'at the start'}"
            return
        if self.faithful is False:
            yield "unfaithful: preactivations in the blocks are not of order 1"
        if self.diversity:
            yield "diverse" if self.diversity == "1/2" else "redundant"
        if self.linearized is not None:
            yield "blocks linear in their updates" if self.linearized else "blocks not linear"

    @property
    def status(self) -> str:
        if self.flow:
            grown = [one for own, one in self.flow.items() if self.start(own) == "unstable"]
            return "proved" if any(one.proved for one in grown) else "derived"
        if self.start_alone:
            return self.status_at(0)
        if self.block.correlated:
            return self.status_at(0) if self.stable_start is False else "derived"
        decided = self.linear or self.stable_start is False
        return "proved" if decided and not self.said else "heuristic"

    @cached_property
    def grown(self) -> list[tuple[str, Ex]]:
        """Preactivations that are not of order one, with their growth exponents."""
        found = []
        for name, _ in self.stream.found.program.outputs:
            own = Name.of(name)
            if own.what != "h" or (FORWARD, own.step) not in self.stream.sums:
                continue
            lead, bound = self.stream.lead(name)
            if lead is None and not bound:  # it is 0 as long as weights in front of it are
                continue
            if lead is None or self.sign(lead) != 0:
                found.append((name, lead if lead is not None else as_ex(-1)))
        return found

    @property
    def faithful(self) -> bool | None:
        return None if self.stable is False or self.flow else not self.grown

    @property
    def diversity(self) -> str:
        if self.stable is not True or self.block.correlated:
            return ""
        noises = [self.stream.sums[one].noise for one in self.stream.forward]
        signs = {1 if noise is None else self.sign(noise) for noise in noises}
        return {frozenset({0}): "1/2", frozenset({1}): "0"}.get(frozenset(signs), "")

    @cached_property
    def linearized(self) -> bool | None:
        """Whether the second order of Taylor's formula in the updates, summed, vanishes."""
        if self.stable is not True or self.verdict == "trivial":
            return None
        pairs = sorted(curvature(self.block.template))
        for _, step in self.stream.forward[1:]:
            own = {label: self._updated(label, step) for label in dict.fromkeys(chain(*pairs))}
            for one, other in ((own[a], own[b]) for a, b in pairs):
                if one and other and self.sign(self.alpha + one[0] + other[0] - 1) <= 0:
                    return False
        return True

    def _updated(self, label: str, step: int) -> tuple[Ex, ...]:
        """The power of 1/L of the updates of weights, where they have one."""
        start, moved = (self.stream.lead(layered(of, label, step))[0] for of in "PW")
        return () if start is None or moved is None else (start - moved,)

    @cached_property
    def anticorrelated(self) -> bool:
        """Whether a law along the depth adds up to less than independent draws."""
        decays = [mu for mu in self.stream.generic.laws.values() if mu is not None]
        return any(self.sign(mu - 1) > 0 for mu in decays)

    def status_at(self, step: int) -> str:
        """How sure sizes at a step are."""
        if self.may_cancel(step):
            return "bound"
        if self.anticorrelated if step == 0 else self.block.correlated:
            return "derived"
        if step == 0 and self.accelerating and not self.stable_start:
            return "derived"
        return "proved" if self.linear or (step == 0 and not self.said) else "heuristic"

    @property
    def rows(self) -> Iterator[OrderRow]:
        for one, total in self.stream.sums.items():
            name = stepped(NAMES[one[0]], one[1])
            regime = self.flow.get(one)
            if regime is not None and regime.form:
                form = "power" if regime.form == "order" else regime.form
                status = "proved" if regime.proved else "derived"
                power = Exponent(regime.power if regime.real is None else None)
                yield OrderRow(name, status=status, L=power, form=form, real=regime.real)
            if regime is not None:
                continue
            parts = [(part, power, self.status_at(one[1])) for part, power in total.all]
            if total.bound is not None and self.sign(total.bound) <= 0:
                parts.append(("what is not followed", total.bound, "bound"))
            if total.aside is not None:
                parts.append(("noise of size n^(-1/2)", total.aside, "derived"))
            for part, own, status in parts:
                yield OrderRow(name, status=status, L=Exponent(-own), part=part)

    @property
    def sets(self) -> Iterator[SetRow]:
        gamma = {rate.label: rate.update.exact or Ex() for rate in self.rates if rate.starts}
        labels, training = list(gamma), self.stream.generic.training
        marks = {mark.label: mark for mark in self.block.template.parameters.values()}
        grown = {one: training.optimizer_of(marks[one]).degree == 1 for one in labels}
        sizes = range(1, len(labels) + 1) if len(labels) <= LISTED else (1, len(labels))
        for size in sizes if len(labels) > 1 else ():
            for some in combinations(labels, size):
                power = 1 - self.alpha - sum((gamma[label] for label in some), Ex())
                status, degree = "exact" if size == 1 else "bound", sum(grown[one] for one in some)
                yield SetRow(some, Exponent.number(power), status, degree)


def far_out(block: Block) -> Block | None:
    """The block with homogeneous functions in place of those that differ little from them."""
    nodes = tuple(_FAR(node) for node in block.program.nodes)
    calls = [call for node in nodes for call in _CALLS(node)]
    if nodes == block.program.nodes or any(call.atom.facts.homogeneity is None for call in calls):
        return None
    return replace(block, program=replace(block.program, nodes=nodes))


def _of(fn: Fn) -> Fn:
    found: dict[Expr, Expr] = {call: _line(call) for call in _calls(fn)}
    return Fn(substitute(fn.expr, found), fn.vectors, fn.scalars)


def _calls(fn: Fn) -> Iterator[Call]:
    """The functions of one variable in it."""
    return (part for part in walk(fn.expr) if isinstance(part, Call))


def _line(call: Call) -> Expr:
    """A function of one variable far out: its slopes on both sides times z; itself if none."""
    if call.atom.facts.homogeneity is not None:
        return call
    with np.errstate(all="ignore"):
        values = np.asarray(evaluate(Fn(call.atom(Var(0)), 1), [PLACES]), dtype=float)
        slopes = (values / PLACES).reshape(2, 2)
    below, above = (float(side[end]) for side, end in zip(slopes, (0, 1), strict=True))
    ends = np.array([[below], [above]])
    if not np.all(np.abs(slopes - ends) <= CLOSE) or max(abs(below), abs(above)) <= CLOSE:
        return call
    below, above = (round(slope, 6) for slope in (below, above))
    return const(above) * RELU(call.arg) - const(below) * RELU(-call.arg)


def curvature(block: Template) -> frozenset[Pair]:
    """The pairs of maps, by their labels, in whose updates a block has a second derivative.

    A map that reads what another writes is multiplied by it; besides only functions whose slopes
    depend on what they read have one.
    """
    reads: list[frozenset[str]] = []  # for each node the maps that it depends on
    found: list[frozenset[Pair]] = []
    for node in block.program.nodes:
        below = references(node)
        maps = frozenset[str]().union(*(reads[ref] for ref in below))
        pairs = frozenset[Pair]().union(*(found[ref] for ref in below))
        times = matmul_of(node)
        if times is not None and times.matrix in block.parameters:
            label = block.parameters[times.matrix].label
            pairs |= {(label, other) for other in maps}
            maps |= {label}
        for i, j in _CURVED(node):
            pairs |= set(product(reads[below[i]], reads[below[j]]))
        reads.append(maps)
        found.append(pairs)
    return found[block.outputs[0]]


def _entrywise(node: Nonlin | Moment) -> list[Places]:
    """The pairs of arguments of which the slope by one depends on the other."""
    fn, found = node.fn, list[Places]()
    for i in range(fn.vectors + fn.scalars):
        try:
            slope = fn.by(i) if i < fn.vectors else fn.by_scalar(i - fn.vectors)
        except NotDifferentiable:
            slope = fn
        vectors, scalars = slope.uses
        found += [(i, j) for j in (*vectors, *(fn.vectors + s for s in scalars))]
    return found


def _all(node: OuterNonlin) -> list[Places]:
    places = range(len(references(node)))
    return [(i, j) for i in places for j in places]


_CURVED: Table[list[Places]] = Table(
    {Nonlin: _entrywise, Moment: _entrywise, OuterNonlin: _all}, lambda node: []
)
