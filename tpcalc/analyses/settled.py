"""``Settled``: all that is known of a training run, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.analyses.verdict.judge import Stage
from tpcalc.analyses.verdict.ledger import DEPTHS, Answer, Ledger, Tests
from tpcalc.analyses.verdict.sizes import Question, grows, stays
from tpcalc.analyses.verdict.table import Sizes
from tpcalc.analyses.watched import Run
from tpcalc.limit.claims import Record
from tpcalc.orders import Ex
from tpcalc.orders.chamber import Chamber, Region, joined
from tpcalc.program.program import Program

__all__ = ["Settled"]

SMALL = 150  # nodes of a limit graph: up to here a test costs little, and whole tables are tested


@dataclass
class Settled:
    """What is known of each step of a run: one ledger for each step, of its own program.

    After the first step, a coefficient of a long program is tested only if something hangs on it
    that earlier steps leave open.

    Args:
        run: The run.
        point: The sample point of symbols; with symbols only leading terms are followed, as every
            term costs conditions.
        tests: Of leading coefficients.
        ledgers: One for each step from 0.
        record: What is known of claims.
    """

    run: Run
    point: Mapping[str, Fraction]
    tests: Tests | None
    ledgers: list[Ledger] = field(default_factory=list)
    record: Record = field(default_factory=Record)
    _known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        exploded = False
        for step in range(self.run.probe.steps + 1):
            program = self.run.program_of(step)
            depths = DEPTHS[:1] if self.point else DEPTHS
            ledger = Ledger.of(program, self.point, self.tests, depths=depths, record=self.record)
            self.ledgers.append(ledger)
            # First whether something explodes: the verdict then hangs on nothing later.
            exploded = exploded or bool(ledger.ask(self.run.probe.levels(step), grows, step).holds)
            ledger.settle(self._wanted(step, exploded), self.run.names(step))
            for subject, names in self.run.subjects(step).items():
                if any(stays(ledger.orders[name], self._sign) for name in names):
                    self._known.add(subject)

    def __call__(self, stage: Stage, question: Question) -> Answer:
        return self.ledgers[stage.step].ask(stage.names, question, stage.step)

    def moves(self, step: int, names: tuple[str, ...]) -> Answer:
        """Whether one of some outputs does not vanish.

        Args:
            step: Their step.
            names: The outputs.
        """
        return self.ledgers[step].ask(names, stays, step)

    @property
    def programs(self) -> list[Program]:
        """The program of each step."""
        return [ledger.program for ledger in self.ledgers]

    @property
    def sizes(self) -> Sizes:
        """All sizes in one table."""
        orders = {name: o for ledger in self.ledgers for name, o in ledger.orders.items()}
        return Sizes(orders, Chamber(self.point))

    @property
    def region(self) -> Region:
        """Where all of it holds."""
        return joined(ledger.region for ledger in self.ledgers)

    @property
    def depth(self) -> Fraction:
        """The largest depth that was derived."""
        return max(DEPTHS[len(ledger.runs) - 1] for ledger in self.ledgers)

    def _wanted(self, step: int, exploded: bool) -> Iterable[str]:
        """What is tested at a step."""
        names = self.run.names(step)
        if step <= 1 or len(self.ledgers[step].runs[0].context.nodes) <= SMALL:
            return names
        asked = () if exploded else self.run.subjects(step).items()
        return [name for subject, own in asked if subject not in self._known for name in own]

    def _sign(self, power: Fraction | Ex) -> int:
        return self.ledgers[-1].runs[-1].context.ranking.chamber.sign(power)
