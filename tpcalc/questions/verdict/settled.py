"""``Settled``: all that is known of a training run, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.exponents.chamber import Chamber
from tpcalc.questions.verdict.judge import Stage, restricted
from tpcalc.questions.verdict.ledger import DEPTHS, Answer, Ledger, Trials
from tpcalc.questions.verdict.sizes import Question, grows, stays
from tpcalc.questions.verdict.table import Sizes
from tpcalc.questions.verdict.watched import Run

SMALL = 220  # nodes that a step needs: up to here a test costs little, and whole tables are tested


@dataclass
class Settled:
    """What is known of each step of a run; a step is settled before the next is looked at.

    Nothing is looked at after the step of an explosion. After the first step, a coefficient of a
    long program is tested only if something hangs on it that earlier steps leave open.

    Args:
        run: The run.
        point: The sample point of symbols; with symbols only leading terms are followed, as every
            term costs conditions.
        tests: Of leading coefficients.
        ledger: Of all that is asked.
    """

    run: Run
    point: Mapping[str, Fraction]
    tests: Trials | None
    ledger: Ledger = field(init=False)
    _known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        run, depths = self.run, DEPTHS[:1] if self.point else DEPTHS
        self.ledger = Ledger.of(run.asked, self.point, self.tests, depths=depths)
        exploded = False
        for step in range(run.probe.steps + 1):
            self.ledger.enter(run.names(step))  # all at once: claims are tested on fewer samples
            # First whether something explodes: the verdict then hangs on nothing later.
            exploded = exploded or bool(self.ledger.ask(run.probe.levels(step), grows, step).holds)
            self.ledger.settle(self._wanted(step, exploded), run.names(step))
            if exploded and step:  # of a start that explodes, first updates are told all the same
                break
            orders, sign = self.ledger.orders, self.sizes.chamber.sign
            for subject, names in run.subjects(step).items():
                if any(stays(orders[name], sign) for name in names):
                    self._known.add(subject)

    def __call__(self, stage: Stage, question: Question) -> Answer:
        return self.ledger.ask(stage.names, question, stage.step)

    def moves(self, step: int, names: tuple[str, ...]) -> Answer:
        """Whether one of some outputs does not vanish."""
        return self.ledger.ask(names, stays, step)

    @property
    def sizes(self) -> Sizes:
        """All sizes in one table."""
        return Sizes(self.ledger.orders, Chamber(self.point))

    def _wanted(self, step: int, exploded: bool) -> Iterable[str]:
        """What is tested at a step."""
        names = self.run.names(step)
        if step <= 1 or len(restricted(self.run.program, names).nodes) <= SMALL:
            return names
        asked = () if exploded else self.run.subjects(step).items()
        return [name for subject, own in asked if subject not in self._known for name in own]
