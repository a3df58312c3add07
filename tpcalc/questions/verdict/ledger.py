"""A ledger: what is known of the outputs of a program, from no more terms and tests than it takes.

One ledger holds one program. It is derived with leading terms, then with more terms where something
is open; leading coefficients are tested together, for the names that somebody asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tpcalc.errors import ScaleError
from tpcalc.evaluate.settle import Witness
from tpcalc.evaluate.wanted import MOST
from tpcalc.exponents import Ex, as_ex
from tpcalc.exponents.chamber import Power, Region, joined
from tpcalc.limit.axes import NeedsCells
from tpcalc.limit.classes import Uneven, refine
from tpcalc.limit.context import Record
from tpcalc.limit.scales import Scales, scales, symbols
from tpcalc.passes.as_blocks import cells_of
from tpcalc.passes.split import split
from tpcalc.program.program import Builder, Program
from tpcalc.questions.verdict.sizes import LOST, Known, Order, Question, after, known
from tpcalc.questions.verdict.stationary import NodeBounds

DEPTHS = tuple(Fraction(k, 2) for k in range(5))
COARSE = "a bound from sizes alone"
ROUNDS = 12  # derivations at one depth in which atoms may still be found


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question about several quantities: yes if of one, no if of none.

    Args:
        holds: Whether it is so; None: open.
        name: The quantity that decided it, or the first that is open; "" where there is none.
        order: What is known of it.
        step: The step of the run that the quantities belong to.
        assumed: Whether a yes rests on a coefficient that was not tested because tests were not
            wanted.
        orders: All quantities that were looked at.
    """

    holds: bool | None
    name: str
    order: Order
    step: int = 0
    assumed: bool = False
    orders: tuple[tuple[str, Order], ...] = ()

    @property
    def fact(self) -> str:
        """What decided it, as a formula."""
        known = f"{self.name} is {self.order.formula}"
        return (
            known
            if self.holds is not None
            else f"{known}, and no more is known: {self.order.reason}"
        )


@dataclass
class Ledger:
    """What is known of the outputs of one program, as far as somebody asks."""

    program: Program
    at: Mapping[str, Fraction] | None = None  # the sample point of the symbols that stay
    tests: Witness | None = None  # of leading coefficients and claims; None: they are not tested
    values: Mapping[str, Ex | Fraction] | None = None  # numbers for symbols of its exponents
    depths: Sequence[Power] = DEPTHS  # the depths that may be taken, smallest first
    record: Record = field(default_factory=Record)  # what is known of claims
    found: dict[str, Known] = field(default_factory=dict)  # by name of the output
    _runs: dict[int, Scales] = field(default_factory=dict)
    _level: dict[str, int] = field(default_factory=dict)  # the last depth that was derived
    _run: dict[str, Scales] = field(default_factory=dict)  # what the knowledge of a name is from
    _assumed: dict[str, Known] = field(default_factory=dict)
    _sizes: NodeBounds | None = None  # bounds that rest on no claim

    @property
    def runs(self) -> tuple[Scales, ...]:
        """The derivations, one for each depth that was taken, smallest first."""
        return tuple(self._runs[level] for level in sorted(self._runs))

    @property
    def depth(self) -> Power:
        """The largest depth that was taken."""
        return self.depths[max(self._level.values())]

    @property
    def region(self) -> Region:
        """Where all derivations hold."""
        return joined(run.region for run in (*self.runs, *self._run.values()))

    @property
    def orders(self) -> dict[str, Order]:
        """What is known of each output that was asked for, in the order of the program."""
        names = (name for name, _ in self.program.outputs)
        return {name: self.found[name].order for name in names if name in self.found}

    @property
    def explosions(self) -> tuple[str, ...]:
        """The first functions whose arguments explode, in words."""
        words = [
            f"{explosion.where}: the argument of {explosion.text} explodes like "
            f"n^({explosion.power}); after it only bounds are known"
            for explosion in self.runs[-1].context.exploded[:3]
        ]
        return tuple(dict.fromkeys(words))

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is taken from the form of the program alone, in words."""
        return self.record.doubts(
            {claim: None for name, run in self._run.items() for claim in run.claims([name])}
        )

    def enter(self, names: Iterable[str]) -> None:
        """Derive what was not asked for before."""
        new = [name for name in dict.fromkeys(names) if name not in self.found]
        if new or not self._runs:
            self._derive(0, new)

    def settle(self, tested: Iterable[str], others: Iterable[str] = ()) -> None:
        """Put down all that derivations and tests tell."""
        names = list(tested)
        followed = [*names, *others]
        self.enter(followed)
        self._test(names)
        while self._deepen(followed):
            self._test(names)

    def ask(self, names: Iterable[str], question: Question, step: int = 0) -> Answer:
        """The answer to a question; derives and tests as it takes."""
        every, tries = list(names), 0
        self.enter(every)
        while True:
            answer, leads = self._answer(every, question, step)
            if answer.holds is not None:
                return answer
            if leads and self.tests is None:
                self._assumed |= {
                    name: Known(self.found[name].if_led) for name in leads[: 1 if tries else None]
                }
            elif leads:
                self._test(leads if tries else leads[:1])  # one is enough for a yes
                tries += 1
            elif not self._deepen(every):
                return answer

    def _answer(
        self, names: Sequence[str], question: Question, step: int
    ) -> tuple[Answer, list[str]]:
        """The answer from what is known, with the names whose tests may change it."""
        sign = next(iter(self._runs.values())).context.ranking.chamber.sign
        seen: list[tuple[str, Order]] = []
        waiting, leads = "", []
        for name in names:
            entry = self._assumed.get(name) or self.found[name]
            seen.append((name, entry.order))
            holds = question(entry.order, sign)
            if holds:
                guess = name in self._assumed
                return Answer(True, name, entry.order, step, guess, tuple(seen)), []
            if holds is None:
                waiting = waiting or name
                if entry.node is not None:
                    leads.append(name)
        orders = dict(seen)
        if waiting:
            return Answer(None, waiting, orders[waiting], step, orders=tuple(seen)), leads
        name = seen[-1][0] if seen else ""
        order = orders.get(name, Order(None, "exact", ""))
        guess = any(name in self._assumed for name in orders)
        return Answer(False, name, order, step, guess, tuple(seen)), []

    def _derive(self, level: int, names: Sequence[str]) -> None:
        """What a depth tells of outputs; where an atom is found, all is derived anew from there."""
        for _ in range(ROUNDS):
            run = self._reached(level, names)
            again = self.tests is not None and self.tests.claims(run.context, run.claims(names))
            if self._is_refused(run, names):
                self._split()
            elif not again:
                break
            self._runs.clear()
        self._runs[level] = run
        for name in names:
            entry, before = known(run, name), self.found.get(name)
            self._level[name] = level
            if before is not None and entry.order.n is None and not entry.order.zero:
                self.found[name] = replace(before, more=entry.more)  # its bound still holds
            else:
                self.found[name], self._run[name] = self._bounded(name, entry, run), run

    def _reached(self, level: int, names: Sequence[str]) -> Scales:
        """A derivation that has followed outputs; blocks may need classes, or have to be split."""
        while True:
            if level not in self._runs:
                self._runs[level] = scales(
                    self.program,
                    values=self.values,
                    at=self.at,
                    depth=self.depths[level],
                    record=self.record,
                )
            try:
                return self._runs[level].reach(names)
            except Uneven as found:
                refine(self.record, found)
            except NeedsCells:
                self._split()
            self._runs.clear()

    def _is_refused(self, run: Scales, names: Iterable[str]) -> bool:
        """Whether a claim fails in some cells, and single vectors may know more of it."""
        if not self.program.has_blocks or cells_of(self.program) > MOST:
            return False
        return self.record.is_broken and bool(self.record.fault(run.claims(names)))

    def _split(self) -> None:
        """Read every cell on its own; outputs are single cells, so that their names stay."""
        self.program, self.record, self._sizes = split(self.program), Record(), None

    def _bounded(self, name: str, entry: Known, run: Scales) -> Known:
        """What is known, with a bound that rests on no claim where there is none.

        Where moments may not exist there is no bound either.
        """
        if entry.order.n is not None or entry.order.zero or symbols(self.program):
            return entry
        if self.record.fault(claim for claim in run.claims([name]) if claim.is_moment):
            return entry
        if self._sizes is None:
            self._sizes = NodeBounds(Builder.copy(self.program), {})
        bound = self._sizes.of(self.program.ref(name))
        if not bound:
            return entry
        reason = f"{COARSE}: {entry.order.reason.removeprefix(LOST)}"
        return replace(entry, order=Order(as_ex(bound[0][0]), "upper", reason))

    def _deepen(self, names: Iterable[str]) -> bool:
        """One depth more for what is open; False if none is left."""
        levels = {name: self._level[name] for name in names if self.found[name].more}
        level = min(levels.values(), default=len(self.depths)) + 1
        if level >= len(self.depths):
            return False
        try:
            self._derive(level, [name for name, last in levels.items() if last < level])
        except ScaleError:  # the depth takes in more orders of a function than are followed
            self._runs.pop(level, None)
            self.depths = self.depths[:level]
            return self._deepen(names)
        return True

    def _test(self, names: Iterable[str]) -> None:
        """One test for all names that were last derived at the same depth."""
        if self.tests is None:
            return
        every = list(names)
        for run in {id(self._run[name]): self._run[name] for name in every}.values():
            nodes = {
                name: node
                for name in every
                if self._run[name] is run and (node := self.found[name].node) is not None
            }
            if nodes:
                wanted = tuple(dict.fromkeys(nodes.values()))
                findings = self.tests.coefficients(run.context, wanted)
                for name, node in nodes.items():
                    self.found[name] = after(self.found[name], findings[node])
