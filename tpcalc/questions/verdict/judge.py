"""The word for a training run: questions asked step by step, and what their answers make.

Every question needs a part of one step and nothing later. So what is known of a step does not
depend on how many steps follow it, and the word for a longer run can differ only by a fact of a
later step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tpcalc.evaluate.settle import Witness
from tpcalc.exponents.chamber import Chamber, Region, joined
from tpcalc.program.program import restricted
from tpcalc.questions.verdict.ledger import DEPTHS, Answer, Ledger
from tpcalc.questions.verdict.probe import Probe
from tpcalc.questions.verdict.sizes import ASSUMED, Question, Sizes, grows, stays

# Answers a question about some outputs of a step, as a ledger does.
Ask = Callable[[tuple[str, ...], Question, int], Answer]


@dataclass(frozen=True)
class Judgement:
    """A verdict with the answers that make it."""

    verdict: str  # "unstable", "trivial", "kernel", "feature-learning" or "undecided"
    levels: tuple[Answer, ...]  # whether something grows, from step 0 on, up to the first yes
    # whether the output moves, from step 1 on; empty where it was not asked
    changes: tuple[Answer, ...] = ()
    # whether the last features move; empty where it was not asked
    features: tuple[Answer, ...] = ()
    region: Region = field(default_factory=Region)  # where it holds

    @property
    def deciding(self) -> tuple[Answer, ...]:
        """The answers that it rests on, the last question first."""
        asked = (self.features, self.changes) if self.changes else (self.levels,)
        return tuple(_deciding(answers) for answers in asked if answers)

    @property
    def fact(self) -> str:
        """What decided it, as formulas."""
        first, *others = self.deciding
        if self.verdict == "undecided":
            return first.fact
        return ", ".join(answer.fact for answer in (*others, first))

    @property
    def assumed(self) -> tuple[str, ...]:
        """The quantities whose coefficients it assumes to be different from 0."""
        every = (*self.levels, *self.changes, *self.features)
        return tuple(dict.fromkeys(answer.name for answer in every if answer.assumed))

    @property
    def notes(self) -> Iterator[str]:
        """What it rests on besides forms."""
        used = ((answer.name, answer.order.reason) for answer in self.deciding if answer.holds)
        yield from (f"{name}: {why}" for name, why in used if "particles" in why)
        yield from (f"{name}: {ASSUMED}" for name in self.assumed)

    @property
    def answers(self) -> dict[str, Any]:
        """The questions that are asked of the depth as well, with what is known."""
        grows = {"stable_start": self.levels[0].holds, "stable": _deciding(self.levels).holds}
        moved = {"moves": self.changes, "features": self.features}
        return {key: None if holds is None else not holds for key, holds in grows.items()} | {
            key: _deciding(own).holds if own else None for key, own in moved.items()
        }


def _deciding(answers: Sequence[Answer]) -> Answer:
    """A yes, which comes last; else the first that is open; else the last no."""
    waiting = [answer for answer in answers if answer.holds is None]
    return waiting[0] if waiting and not answers[-1].holds else answers[-1]


def judge(run: Probe, ask: Ask) -> Judgement:
    """The verdict on a run: whether what is read grows, the output moves, the last features do.

    Each is asked step by step, up to the first yes.

    Source: Yang and Hu, Feature Learning in Infinite-Width Neural Networks, section 3.2; Hajjar,
        Chizat, Giraud, Definitions B.1 and B.2.
    """

    def each(
        names: Callable[[int], tuple[str, ...]], question: Question, first: int = 1
    ) -> tuple[Answer, ...]:
        answers: list[Answer] = []
        for step in range(first, run.steps + 1):
            answers.append(ask(names(step), question, step))
            if answers[-1].holds:
                break
        return tuple(answers)

    levels = each(run.levels, grows, 0)
    exploded = _deciding(levels).holds
    if exploded is not False:
        return Judgement("unstable" if exploded else "undecided", levels)
    changes = each(run.changes, stays)
    moved = _deciding(changes).holds
    if not moved:
        return Judgement("undecided" if moved is None else "trivial", levels, changes)
    features = each(run.last_moved, stays)
    learned = _deciding(features).holds
    word = "undecided" if learned is None else "feature-learning" if learned else "kernel"
    return Judgement(word, levels, changes, features)


def decide(
    run: Probe,
    *,
    at: Mapping[str, Fraction] | None = None,
    verify: bool = True,
    seed: int = 0,
) -> Judgement:
    """The verdict on a run and nothing else: no more terms, comparisons and tests than it takes.

    Source: As ``judge``.

    Example:
        >>> from tpcalc.questions.verdict.probe import probe
        >>> from tpcalc.training.training import Training
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> decide(probe(Training(MLP(3, "relu"), "ntk"))).verdict
        'kernel'
    """
    tests = Witness(seed) if verify else None
    whole = restricted(run.program, [name for t in range(run.steps + 1) for name in run.asked(t)])
    ledgers = [Ledger(whole, tests=tests)]

    def ask(names: tuple[str, ...], question: Question, step: int) -> Answer:
        if at:  # no comparisons but those that a question needs
            ledgers.append(Ledger(restricted(whole, names), at, tests))
        return ledgers[-1].ask(names, question, step)

    found = judge(run, ask)
    return replace(found, region=joined(ledger.region for ledger in ledgers))


SMALL = 220  # nodes that a step needs: up to here a test costs little, and whole tables are tested


@dataclass
class Settled:
    """What is known of each step of a run; a step is settled before the next is looked at.

    Nothing is looked at after the step of an explosion. After the first step, a coefficient of a
    long program is tested only if something hangs on it that earlier steps leave open.
    """

    run: Probe
    # the sample point of symbols; with symbols only leading terms are followed, as every term costs
    # conditions
    point: Mapping[str, Fraction]
    tests: Witness | None  # of leading coefficients
    ledger: Ledger = field(init=False)  # of all that is asked
    _known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        run, depths = self.run, DEPTHS[:1] if self.point else DEPTHS
        self.ledger = Ledger(run.needed, self.point, self.tests, depths=depths)
        exploded = False
        for step in range(run.steps + 1):
            self.ledger.enter(run.names(step))  # all at once: claims are tested on fewer samples
            # First whether something explodes: the verdict then hangs on nothing later.
            exploded = exploded or bool(self.ledger.ask(run.levels(step), grows, step).holds)
            self.ledger.settle(self._wanted(step, exploded), run.names(step))
            if exploded and step:  # of a start that explodes, first updates are told all the same
                break
            orders, sign = self.ledger.orders, self.sizes.chamber.sign
            for subject, names in run.subjects(step).items():
                if any(stays(orders[name], sign) for name in names):
                    self._known.add(subject)

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
