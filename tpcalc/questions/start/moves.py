"""What first steps move: sizes of gradients and steps, of read points, and of their changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import inf

from tpcalc.activations.entries.sign import SIGN
from tpcalc.exponents import as_ex
from tpcalc.functions import Call, Expr, Fn, Par, Var
from tpcalc.functions.expr import walk
from tpcalc.names import what_of
from tpcalc.passes.change import Changes, Direction, scaled
from tpcalc.passes.starts import zero_starts
from tpcalc.program.base import Table, references
from tpcalc.program.family import Mark
from tpcalc.program.nodes import Input, Kind, Moment, Nonlin, Ref, RowNonlin
from tpcalc.program.program import Program
from tpcalc.questions.start.bounds import Power, StartSizes, size_of
from tpcalc.questions.start.program import FirstSteps, Pass
from tpcalc.questions.start.tangents import Tangents
from tpcalc.results import Exponent
from tpcalc.results.first_order import kind_of
from tpcalc.training.optimizer_sizes import Entries, FirstStep
from tpcalc.training.training import Training

CLIPS = "clipped"
SHARE = "decay takes a share of order {} of {} in a step, beside what its gradient adds"
CLIPPED = (
    "the norm of all gradients by what is trained has size {}, by {}, and clipping divides by what "
    "is above its limit: bounds hold where this norm is as large as its own bound"
)
LOOSE = "clipping divides by a norm of gradients of which a bound is known"
BY_WEIGHT = "the decay decides: in the step the weight is larger than its gradient"


def by_size(text: str, sizes: Mapping[str, Fraction | None]) -> tuple[str, ...]:
    """A line for each size, from the smallest, with the parameters that have it.

    Example:
        >>> by_size("{} by {}", {"u": Fraction(0), "v": Fraction(-1), "w": Fraction(0)})
        ('n^(-1) by v', '1 by u, w')
    """
    found: dict[Fraction, list[str]] = {}
    for name, size in sizes.items():
        if size is not None:
            found.setdefault(size, []).append(name)
    lines = ((Exponent.number(size).size("n"), ", ".join(found[size])) for size in sorted(found))
    return tuple(text.format(*line) for line in lines)


DIVISORS = "bounds hold where what is divided by is as large as its own bound: {}"
EPS_LEFT_OUT = (
    "eps of {} is no power of the width and counts as absent: where what it stands beside vanishes "
    "with the width it decides from some width on"
)
MOST = 8  # steps that are followed until no new parameter starts


@dataclass(frozen=True, slots=True)
class Move:
    """What one step of a parameter does."""

    gradient: Power  # the exponent of the entries of its gradient; None: it is 0
    step: Power  # that of the entries of its step
    term: Power  # that of what it adds to the probe, <gradient, step>
    # those of what its first step that is not 0 changes at the read points of the network; one for
    # all parameters whose names differ by the number of a block
    changes: Mapping[Ref, Power] = field(default_factory=dict)
    # the read points whose change a norm on the way keeps small
    capped: frozenset[Ref] = frozenset()
    # the exponent of the part of the weight that decay takes; None: it takes none
    share: Fraction | None = None
    # whether the weight decides, by a decay that stands beside the gradient
    by_weight: bool = False


@dataclass
class Sizes:
    """Sizes of the first steps of a training run."""

    run: Training
    values: Mapping[str, Fraction]  # numbers for symbols
    # powers of n that learning rates are multiplied by, by parameter
    shifts: Mapping[Ref, Fraction]
    # whether a norm caps changes; not where rates are looked for at which nothing is replaced
    capped: bool
    steps: FirstSteps  # the passes
    bounds: StartSizes  # bounds on all nodes
    passes: list[Pass] = field(default_factory=list)  # those that were written
    # for each of them what each parameter moves along, the power of n in front of it included, by
    # its node in the network
    directions: list[dict[Ref, Direction]] = field(default_factory=list)
    # for each of them what each parameter does
    moves: list[dict[Ref, Move]] = field(default_factory=list)
    # for each of them what all parameters together change at the read points
    changes: list[dict[Ref, Power]] = field(default_factory=list)
    # for each of them the norms of the gradients of parameters
    norms: list[dict[Ref, Fraction]] = field(default_factory=list)
    _firsts: dict[tuple[Ref, int, Fraction], FirstStep] = field(default_factory=dict)

    @staticmethod
    def of(
        run: Training,
        values: Mapping[str, Fraction],
        shifts: Mapping[Ref, Fraction] | None = None,
        capped: bool = True,
        steps: FirstSteps | None = None,
    ) -> Sizes:
        """The first steps: two, and more while what was small at all steps before grows."""
        run = run.replace(steps=MOST, schedule=None)
        steps = FirstSteps.of(run) if steps is None else steps
        found = Sizes(run, values, shifts or {}, capped, steps, StartSizes(steps.builder, values))
        for step in range(MOST):
            before = found.terms
            found._follow(step)
            if step and not found._grows(before):
                break
        return found

    def anew(self, shifts: Mapping[Ref, Fraction] | None = None, capped: bool = True) -> Sizes:
        """The same steps at other rates."""
        own = self.shifts if shifts is None else shifts
        return Sizes.of(self.run, self.values, own, capped, self.steps.anew())

    @cached_property
    def read(self) -> Mapping[Ref, str]:
        """The read points of the network, each with what reads it."""
        return read_points(self.steps.network)

    @cached_property
    def behind(self) -> Mapping[Ref, frozenset[Ref]]:
        """The parameters that each node of the network depends on."""
        found: list[frozenset[Ref]] = []
        for ref, node in enumerate(self.steps.network.nodes):
            own = frozenset({ref} & self.steps.parameters.keys())
            found.append(own.union(*(found[below] for below in references(node))))
        return dict(enumerate(found))

    @property
    def terms(self) -> dict[Ref, Power]:
        """The largest that each parameter has added to the probe, of those with a gradient."""
        terms = ({ref: move.term for ref, move in moves.items()} for moves in self.moves)
        return {ref: term for ref, term in _largest(terms).items() if term is not None}

    def _grows(self, before: Mapping[Ref, Power]) -> bool:
        """Whether a parameter has started, or one that was small may have made another larger."""
        now = self.terms
        powers = [power for power in now.values() if power is not None]
        small = bool(powers) and min(powers) < 0 and max(powers) <= 0
        return now.keys() != before.keys() or (small and now != before)

    @property
    def moving(self) -> set[Ref]:
        """The parameters that have had a gradient."""
        moved = (pair for moves in self.moves for pair in moves.items())
        return {ref for ref, move in moved if isinstance(move.term, Fraction)}

    @property
    def zeros(self) -> frozenset[str]:
        """The names of the parameters that start at 0."""
        return zero_starts(self.steps.network)

    @cached_property
    def clips(self) -> bool:
        """Whether gradients are clipped."""
        return any(CLIPS in self.run.optimizer_of(m).whole for m in self.run.network.marks)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What bounds rest on besides, and what steps do besides."""
        lines = (self.steps.builder.line_of(ref) for ref in self.bounds.divisors)
        where = ", ".join(dict.fromkeys(line for line in lines if line))
        divisors = (DIVISORS.format(where or "norms"),) if self.bounds.divisors else ()
        used = (self.run.optimizer_of(self._mark(ref)) for ref in self.steps.parameters)
        left = dict.fromkeys(one.name for one in used if one.has_constant_eps)
        eps = (EPS_LEFT_OUT.format(name) for name in left)
        names = {ref: node.name for ref, node in self.steps.parameters.items()}
        shares = {name: self.moves[0][ref].share for ref, name in names.items()}
        norms = {names[ref]: norm for ref, norm in self.norms[0].items() if self.clips}
        clip = by_size(CLIPPED, norms)
        return (*divisors, *eps, *by_size(SHARE, shares), *clip[-1:])

    def units(self, ref: Ref) -> tuple[Fraction, Fraction]:
        """What is added to the exponents of gradient and rate where the weights n^(-a) w are meant.

        The network is written with weights n^(-a) w, of which w is what is followed.
        """
        mark, values = self._mark(ref), self.values
        a = self.run.parameterization.power(mark, self.run.tables[0]).at(values)
        optimizer = self.run.optimizer_of(mark)
        gauge = (1 + optimizer.degree) * a - optimizer.weight_degree * (a - self._unit(ref))
        return a, self.run.rate(mark, 0)[1].at(values) + gauge

    def term(self, ref: Ref, step: int, gradient: Fraction) -> Fraction | None:
        """What a step adds to the probe, where the entries of the gradient have this size."""
        own = self.first(ref, step, gradient).size
        sides = len(self.steps.parameters[ref].family.width)
        return None if own is None else gradient + own + sides

    def first(self, ref: Ref, step: int, gradient: Fraction) -> FirstStep:
        """What the text of the optimizer of a parameter makes of its gradient."""
        key = ref, step, gradient
        if key not in self._firsts:
            self._firsts[key] = self._first(*key)
        return self._firsts[key]

    def _first(self, ref: Ref, step: int, gradient: Fraction) -> FirstStep:
        node, mark, unit = self.steps.parameters[ref], self._mark(ref), self._unit(ref)
        optimizer, values = self.run.optimizer_of(mark), self.values
        rate = self.run.rate(mark, step)[1].at(values) - self.shifts.get(ref, Fraction(0))
        before = (moves[ref].step for moves in self.moves[:step])
        weights = [size - unit for size in before if isinstance(size, Fraction)]
        weights += [] if node.name in self.zeros else [-unit]
        weight, sides = max(weights, default=None), len(node.family.width)
        norm = max(self.norms[step].values(), default=None)
        at = Entries(gradient + unit, weight, sides, mark.role, norm)
        found = optimizer.first(at, rate + (1 + optimizer.degree) * unit, values)
        return found if found.size is None else replace(found, size=found.size + unit)

    def _unit(self, ref: Ref) -> Fraction:
        """The s of the n^(-s) w that is trained."""
        return self.run.parameterization.stored(self._mark(ref), self.run.tables[0]).at(self.values)

    def _mark(self, ref: Ref) -> Mark:
        mark = self.steps.parameters[ref].family.mark
        assert mark is not None
        return mark

    def is_linear(self, ref: Ref) -> bool:
        """Whether the step of a parameter is along its gradient."""
        return ref in self._linear

    @cached_property
    def _linear(self) -> frozenset[Ref]:
        marks = {ref: self._mark(ref) for ref in self.steps.parameters}
        return frozenset(ref for ref, m in marks.items() if self.run.optimizer_of(m).is_along)

    def is_lifted(self, ref: Ref) -> bool:
        """Whether small parts of a gradient may be larger in the first step than they stand here.

        A step that does not grow with the gradient has entries of one size; what stands for that
        of a matrix is the gradient, whose outer products may have several.
        """
        first = self.passes[0]
        found = first.gradients.of(first.new[ref])
        if self.is_linear(ref) or found is None or isinstance(found, Ref):
            return False
        parts = (part for pair in found for part in pair)
        return len(found) > 1 or any(self.steps.builder.type(part).axes for part in parts)

    def largest_changes(self, ref: Ref) -> dict[Ref, Fraction]:
        """The largest changes that first steps make at a read point, by parameter."""
        found = {by: move.changes.get(ref) for by, move in self.moves[0].items()}
        top = largest(found.values())
        return {by: top for by, own in found.items() if own == top and isinstance(top, Fraction)}

    def change_nodes(self, asked: Iterable[tuple[Ref, Ref]]) -> dict[tuple[Ref, Ref], Ref]:
        """The nodes of changes of read points by first steps of parameters, written out."""
        first, steps = self.passes[0], self.directions[0]
        pairs, found = list(asked), dict[tuple[Ref, Ref], Ref]()
        places = {first.new[ref]: ref for ref, _ in pairs}
        params = {by: first.new[by] for _, by in pairs}
        changes = Changes(self.steps.builder, params.values(), places, given=first.given)
        for by, own in params.items():
            moved = changes.along({own: steps[by]})
            found |= {(places[place], by): node for place, node in moved.items()}
        return {pair: found[pair] for pair in pairs if pair in found}

    def sizes(self, step: int, refs: Iterable[Ref]) -> dict[Ref, Power]:
        """The sizes of nodes of the network at a step."""
        new = self.passes[step].new
        return {ref: self.bounds.size(new[ref]) for ref in refs}

    def _follow(self, step: int) -> None:
        """Write the pass of a step, and what every parameter does at it."""
        made, known = self.steps.next(step), self.moving
        moves: dict[Ref, Move] = {}
        steps: dict[Ref, Direction] = {}
        lost = any(move.term == inf for each in self.moves for move in each.values())
        found = {ref: self._gradient(made, made.new[ref]) for ref in self.steps.parameters}
        self.norms.append(self._norms({ref: power for ref, (power, _) in found.items()}))
        for ref, (power, gradient) in found.items():
            if gradient is None or power is None:
                moves[ref] = Move(None, None, None)
                continue
            if lost or not isinstance(power, Fraction):  # by itself, or by what moved before
                moves[ref] = Move(inf, inf, inf, dict.fromkeys(self.read, inf))
                continue
            own = self.first(ref, step, power)
            term = self.term(ref, step, power)
            moves[ref] = Move(power, own.size, term, share=own.share, by_weight=own.by_weight)
            if own.size is not None:
                steps[ref] = self._direction(ref, gradient, own.size, power)
        nodes = (ref for ref in range(made.last) if ref not in made.given)
        tangents = Tangents(self.bounds, list(nodes), self.capped)

        def moved(refs: Iterable[Ref]) -> dict[Ref, Power]:
            found = tangents.along({made.new[ref]: steps[ref] for ref in refs})
            places = ((ref, made.new[ref]) for ref in self.read)
            return {ref: size_of(found[place]) for ref, place in places if place in found}

        for kind in _kinds(self.steps.parameters, [ref for ref in steps if ref not in known]):
            changes = moved(kind)
            capped = frozenset(ref for ref in self.read if made.new[ref] in tangents.capped)
            for ref in kind:
                reached = {at: by for at, by in changes.items() if ref in self.behind[at]}
                moves[ref] = replace(moves[ref], changes=reached, capped=capped)
        for ref, direction in steps.items():
            self.steps.move(ref, direction)
        self.passes.append(made)
        self.moves.append(moves)
        self.directions.append(steps)
        parts = [move.changes for move in moves.values()]
        self.changes.append(_largest([*parts, moved(steps)] if known else parts))

    def _norms(self, gradients: Mapping[Ref, Power]) -> dict[Ref, Fraction]:
        """The norms of gradients, in units of what is trained."""
        found = {}
        for ref, power in gradients.items():
            if isinstance(power, Fraction):
                sides = len(self.steps.parameters[ref].family.width)
                found[ref] = power + self._unit(ref) + Fraction(sides, 2)
        return found

    def _direction(
        self, ref: Ref, gradient: Direction, size: Fraction, power: Fraction
    ) -> Direction:
        """What a parameter moves along, with entries of a size, along a gradient of a power."""
        out = self.steps.builder
        if isinstance(gradient, Ref) and not self.is_linear(ref) and out.type(gradient).axes:
            wide = out.type(gradient).kind is Kind.VECTOR
            sign = Fn(SIGN(Var(0)), 1) if wide else Fn(SIGN(Par(0)), 0, 1)
            ones = Nonlin(sign, (gradient,)) if wide else Nonlin(sign, (), (gradient,))
            return scaled(out, out.add(ones), as_ex(size))
        if isinstance(gradient, Ref) or self.is_linear(ref):
            return scaled(out, gradient, as_ex(size - power))
        # Where the largest part is 0 a step of bounded entries is as large along the others.
        found: list[tuple[Ref, Ref]] = []
        for pair in gradient:
            row, col = map(self.bounds.size, pair)
            if isinstance(row, Fraction) and isinstance(col, Fraction):
                moved = scaled(out, pair[0], as_ex(size - row - col))
                assert isinstance(moved, Ref)
                found.append((moved, pair[1]))
        return tuple(found)

    def _gradient(self, made: Pass, own: Ref) -> tuple[Power, Direction | None]:
        """The size of a gradient, with what it is made of."""
        found = made.gradients.of(own)
        if found is None or isinstance(found, Ref):
            return (None, None) if found is None else (self.bounds.size(found), found)
        sizes = ((self.bounds.size(row), self.bounds.size(col)) for row, col in found)
        return largest(
            None if row is None or col is None else row + col for row, col in sizes
        ), found


def _kinds(parameters: Mapping[Ref, Input], refs: Iterable[Ref]) -> Iterable[list[Ref]]:
    """Parameters whose names differ by the number of a block, together."""
    found: dict[tuple[str, int], list[Ref]] = {}
    for ref in refs:
        family = parameters[ref].family
        found.setdefault((kind_of(family.name), len(family.width)), []).append(ref)
    return found.values()


def largest(powers: Iterable[Power]) -> Power:
    """The largest exponent; None where all is 0."""
    return max((power for power in powers if power is not None), default=None)


def _largest(parts: Iterable[Mapping[Ref, Power]]) -> dict[Ref, Power]:
    found: dict[Ref, Power] = {}
    for part in parts:
        for ref, power in part.items():
            found[ref] = largest((power, found.get(ref)))
    return found


def read_points(program: Program) -> dict[Ref, str]:
    """What functions read, the features that readouts read, and the outputs, each in words."""
    named = {ref: name for name, ref in program.outputs if what_of(name) in ("h", "x", "f")}
    found: dict[Ref, str] = {}
    for node in program.nodes:
        for ref, reader in _READ(node):
            found.setdefault(ref, named.get(ref, f"argument of {reader}"))
    return found | {ref: name for ref, name in named.items() if what_of(name) != "h"}


def _arguments(node: Nonlin | Moment) -> Iterator[tuple[Ref, str]]:
    for part in walk(node.fn.expr):
        if isinstance(part, Call):
            for slot in walk(part.arg):
                yield from _slot(node, slot, part.atom.name)


def _slot(node: Nonlin | Moment, slot: Expr, reader: str) -> Iterator[tuple[Ref, str]]:
    if isinstance(slot, Var):
        yield node.vectors[slot.index], reader
    elif isinstance(slot, Par):
        yield node.scalars[slot.index], reader


_READ: Table[Iterable[tuple[Ref, str]]] = Table(
    {
        Nonlin: _arguments,
        Moment: _arguments,
        RowNonlin: lambda node: [(node.of, node.row.name)],
    },
    lambda node: (),
)
