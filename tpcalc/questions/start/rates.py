"""The largest learning rates at which no first step grows; edits after which all is well.

Each edit is tried: a multiplier, a start, rates; bounds decide.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf

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
from tpcalc.questions.start.bounds import Power
from tpcalc.questions.start.moves import Sizes, largest
from tpcalc.questions.start.program import FirstSteps
from tpcalc.questions.start.words import Found, network, parameter
from tpcalc.results import Exponent, ParameterMove, StableEdit, StableRate
from tpcalc.results.first_order import FINE, kind_of
from tpcalc.training.training import Training

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
    if _first(sizes) is None or _first(sizes := sizes.anew({})) is None:
        return ()
    names = {ref: f"the rate of {kind_of(one.name)}" for ref, one in sizes.steps.parameters.items()}
    lines: dict[str, Fraction] = defaultdict(Fraction)
    for ref, power in shifts.items():
        lines[names[ref]] = min(power, lines[names[ref]])
    lower = {ref: lines[name] for ref, name in names.items()}
    tried = (edited(sizes, of_starts) for of_starts in (False, True))
    found = [None if one is None else _edit(one.sizes, one.lines) for one in tried]
    if _first(slower := sizes.anew(lower)) is None:
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


Top = tuple[Power, str]
ROUNDS = 4  # what later steps add depends on the rates, which are set by it


@dataclass(frozen=True)
class Largest:
    """What the largest rates have beside theirs, and what decides, by parameter."""

    shifts: Mapping[Ref, Fraction]
    tops: Mapping[Ref, list[Top]]


def stable_rates(
    run: Training, values: Mapping[str, Fraction], ratio: Fraction | None = None
) -> tuple[tuple[StableRate, ...], tuple[StableEdit, ...]]:
    """The largest powers of rates, the same at all steps, at which no step grows, by bounds.

    With them what to edit besides where something grows as it is. No rates where they are not found
    in a few rounds: where the start is nearly stationary.

    A change is proportional to the rate: the largest one at any read point says by which power of n
    the rate is too large, or may be raised. The first round looks at the first step, later ones at
    the later steps with the rates that were found as well. With the ratio of two widths every rate
    has its factor from one to the other.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found, _ = stable_rates(Training(MLP(2, "tanh"), "mup", optimizer="adam"), {})
        >>> print(*(f"{row.name}: n^({row.rate}) by {row.where}" for row in found))
        W1: n^(0) by h[1] W2: n^(-1) by h[2] W3: n^(-1) by the output
    """
    given = Sizes.of(run, values, capped=False)
    found = largest_shifts(given)
    if found is None:
        return (), stable_edits(given, {})
    rows = []
    for ref, node in given.steps.parameters.items():
        own, ((power, where), *rest) = -given.units(ref)[1], found.tops[ref]
        reach = own + found.shifts.get(ref, Fraction(0))
        rate = Exponent.number(reach) if isinstance(power, Fraction) else Exponent()
        role = node.family.mark.role if node.family.mark is not None else ""
        known = None if ratio is None or rate.constant is None else rate.constant
        factor = None if known is None or ratio is None else float(ratio) ** float(known)
        row = StableRate(node.name, role, rate, Exponent.number(own), where, factor)
        for less, place in rest:
            if isinstance(power, Fraction) and isinstance(less, Fraction) and less != power:
                row = replace(row, other=Exponent.number(reach + power - less), beside=place)
        rows.append(row)
    return tuple(rows), stable_edits(given, found.shifts)


def largest_shifts(given: Sizes) -> Largest | None:
    """The powers of n that the largest rates have beside theirs; None: not in a few rounds."""
    shifts, sizes = dict(given.shifts), given
    for turn in range(ROUNDS):
        if turn:
            sizes = given.anew(shifts, capped=False)
        tops = {ref: _tops(sizes, ref, later=turn > 0) for ref in sizes.steps.parameters}
        tried = {ref: own[0][0] for ref, own in tops.items()}
        found = {ref: power for ref, power in tried.items() if isinstance(power, Fraction)}
        if turn and not any(found.values()):
            return Largest(shifts, tops)
        moved = {ref: shifts.get(ref, Fraction(0)) - power for ref, power in found.items()}
        shifts = {**shifts, **moved}
    return None


def _tops(sizes: Sizes, ref: Ref, *, later: bool) -> list[Top]:
    """The largest changes that steps of a parameter make inside and of the output, and where."""
    moves = [step[ref] for step in sizes.moves]
    first = next((move for move in moves if move.changes), moves[0])
    read = ((by, sizes.read[at]) for at, by in first.changes.items())
    started = next((k for k, move in enumerate(moves) if move.term is not None), 0)
    output = [(moves[started].term, "the output")]
    if later:
        rest = (move.term for move in moves[started + 1 :])
        output.append((largest(rest), "the output at a later step"))
    inside = [pair for pair in read if what_of(pair[1]) != "f"]
    found = [max(pairs, key=_size) for pairs in (inside, output) if pairs]
    return sorted(found, key=_size, reverse=True)


def _size(pair: tuple[Power, str]) -> Fraction | float:
    return -inf if pair[0] is None else pair[0]


Shifts = Mapping[Ref, Fraction]


@dataclass(frozen=True)
class Fix:
    """Edits of a network, and powers of n beside its rates."""

    edited: Edited  # the network with its edits
    rates: Shifts  # the powers beside rates, by parameter
    deciding: Mapping[Ref, str]  # what decides them, where they are the largest
    word: str  # what the network does then
    rows: Mapping[Ref, ParameterMove]  # what each parameter does
    slow: int  # how many have lower rates than those at which each layer moves by itself

    @property
    def wrong(self) -> tuple[int, int, int]:
        """How far it is from a network all of which learns, and at the pace of each layer."""
        known = LEARNS[::-1].index(self.word) if self.word in LEARNS else len(LEARNS)
        return known, sum(row.word not in FINE for row in self.rows.values()), self.slow

    @property
    def lines(self) -> tuple[str, ...]:
        """What to write, all rates in a line of a script."""
        told = (
            f"{what} times {Exponent.number(power).raised('n')}"
            for what, power in self.edited.lines.items()
        )
        parameters = self.edited.sizes.steps.parameters
        moved = dict.fromkeys(kind_of(parameters[ref].name) for ref, p in self.rates.items() if p)
        return (*told, *([f"rates of {', '.join(moved)}"] if moved else ()))

    @property
    def wholes(self) -> Mapping[str, list[Ref]]:
        """Parameters as they stand in a module, each with its parts."""
        return _wholes(self.edited.sizes)

    def start(self, ref: Ref) -> Fraction:
        """The power before the start of a parameter."""
        name = self.edited.sizes.steps.parameters[ref].name
        return self.edited.starts.get(name, Fraction(0))


def fixes(run: Training, values: Mapping[str, Fraction], rates_only: bool) -> tuple[Fix, list[Fix]]:
    """A run as it is, and what is best, of the fewest lines first: nothing where all is right."""
    plain = Sizes.of(run, values)
    tries = _Tries(plain, _by_layer(plain))
    as_is = tries.judged(Edited(plain, {}, {}), {}, {})
    if not any(as_is.wrong[:2]):
        return as_is, []
    tried = sorted(tries.made(rates_only), key=lambda fix: (*fix.wrong, len(fix.lines)))
    better = [fix for fix in tried if fix.word in LEARNS and fix.wrong < as_is.wrong]
    kept = [tries.kept(fix) for fix in better if fix.wrong == better[0].wrong]
    return as_is, sorted(kept, key=lambda fix: len(fix.lines))


@dataclass(frozen=True)
class _Tries:
    """What is tried of a run."""

    plain: Sizes  # its first steps as they are
    # the powers beside rates at which each layer moves by itself, by parameter
    by_layer: Mapping[str, Fraction]

    def made(self, rates_only: bool) -> Iterator[Fix]:
        """The largest rates alone, else behind edits at rates at which layers move by themselves.

        Where these edits are not enough, behind those at the rates that were given.
        """
        plain, found = self.plain, [self.largest(Edited(self.plain, {}, {}))]
        for of in (self.by_layer, {}):
            yield from (fix for fix in found if fix is not None)
            if rates_only or any(fix is not None and not any(fix.wrong) for fix in found):
                return
            parameters = plain.steps.parameters.items()
            shifts = {ref: of.get(node.name, Fraction(0)) for ref, node in parameters}
            grown = plain.anew(shifts)
            both = (edited(grown, of_starts) for of_starts in (True, False))
            found = [self.largest(one) for one in both if one is not None]
        yield from (fix for fix in found if fix is not None)

    def largest(self, one: Edited) -> Fix | None:
        """The largest rates of a network."""
        behind, found = _behind(one), largest_shifts(one.sizes.anew(capped=False))
        if found is None:
            return None
        rates = {ref: power - behind[ref] for ref, power in found.shifts.items()}
        return self.judged(one, rates, {ref: tops[0][1] for ref, tops in found.tops.items()})

    def kept(self, fix: Fix) -> Fix:
        """The same with rates as they were of the parameters that are right with them."""
        given = self.judged(fix.edited, {}, {})
        rates = {ref: p for ref, p in fix.rates.items() if given.rows[ref].word not in FINE}
        found = self.judged(fix.edited, rates, fix.deciding)
        return fix if found.wrong > fix.wrong else found

    def judged(self, one: Edited, rates: Shifts, deciding: Mapping[Ref, str]) -> Fix:
        """What a network does at some rates; parts of a parameter have the smallest of theirs."""
        given, behind = one.sizes, _behind(one)
        lowest = {
            ref: min(rates.get(part, Fraction(0)) for part in parts)
            for parts in _wholes(given).values()
            for ref in parts
        }
        shifts = {ref: power + behind[ref] for ref, power in lowest.items()}
        sizes = given.anew(shifts)
        found, nodes = Found(sizes, {}), sizes.steps.parameters
        rows = {ref: parameter(found, ref, node.name, "") for ref, node in nodes.items()}
        slow = sum(shifts[ref] < self.by_layer[node.name] for ref, node in nodes.items())
        word = network(found, list(rows.values())).word
        return Fix(one, lowest, deciding, word, rows, slow)


def _by_layer(plain: Sizes) -> dict[str, Fraction]:
    """Shifts at which a first step changes what it is added to by as much as there is.

    Of readouts, and of what starts at 0, those at which what changes least changes by order one.
    """
    given = plain.anew(capped=False)
    shifts = dict[Ref, Fraction]()
    for ref, node in given.steps.parameters.items():
        move = next((step[ref] for step in given.moves if step[ref].changes), given.moves[0][ref])
        mark, sides = node.family.mark, len(node.family.width)
        start = Fraction(0) if sides == 2 else given.sizes(0, [ref])[ref]
        readout = mark is not None and mark.role == "readout"
        inner = [own for at, own in move.changes.items() if what_of(given.read[at]) != "f"]
        powers = [own for own in inner or [move.term] if isinstance(own, Fraction)]
        if isinstance(start, Fraction) and isinstance(move.step, Fraction) and not readout:
            powers = [move.step - start + Fraction(sides == 2) / 2]
        shifts[ref] = -min(powers, default=Fraction(0))
    # Equal blocks are moved together, so that one's change may be another's.
    names = {ref: node.name for ref, node in given.steps.parameters.items()}
    ranked = sorted(shifts, key=lambda ref: shifts[ref])
    most = {kind_of(names[ref]): shifts[ref] for ref in ranked}
    return {name: most[kind_of(name)] for name in names.values()}


def _wholes(sizes: Sizes) -> dict[str, list[Ref]]:
    """Parameters as they stand in a module, each with its parts."""
    found: dict[str, list[Ref]] = {}
    for ref, node in sizes.steps.parameters.items():
        mark = node.family.mark
        found.setdefault((mark.whole if mark else "") or node.name, []).append(ref)
    return found


def _behind(one: Edited) -> dict[Ref, Fraction]:
    """What a start stands for beside a rate: the weights behind its power move as before."""
    found = {}
    for ref, node in one.sizes.steps.parameters.items():
        mark = node.family.mark
        degree = one.sizes.run.optimizer_of(mark).degree if mark is not None else 0
        found[ref] = -(1 + degree) * one.starts.get(node.name, Fraction(0))
    return found
