"""The word for a training run: questions asked step by step, and what their answers make.

Every question needs a part of one step and nothing later. So what is known of a step does not
depend on how many steps follow it, and the word for a longer run can differ only by a fact of a
later step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tpcalc.evaluate.settle import Witness
from tpcalc.exponents.chamber import Region, joined
from tpcalc.program.program import restricted
from tpcalc.questions.verdict.ledger import Answer, Ledger
from tpcalc.questions.verdict.probe import Probe
from tpcalc.questions.verdict.sizes import Question, grows, stays


@dataclass(frozen=True)
class Stage:
    """A question about a part of a training run."""

    step: int  # the step t that the outputs belong to
    names: tuple[str, ...]  # these outputs


Ask = Callable[[Stage, Question], Answer]


@dataclass(frozen=True)
class Stages:
    """A training run in the parts that a verdict asks for."""

    levels: tuple[Stage, ...]  # of each step from 0 what is read: preactivations and outputs
    changes: tuple[Stage, ...]  # of each step from 1 the changes of the outputs
    features: tuple[Stage, ...]  # of each step from 1 the change of the last features

    @staticmethod
    def of(run: Probe) -> Stages:
        """The stages of a run.

        Args:
            run: The run.
        """
        later = range(1, run.steps + 1)
        return Stages(
            tuple(Stage(step, tuple(run.levels(step))) for step in range(run.steps + 1)),
            tuple(Stage(step, tuple(run.changes(step))) for step in later),
            tuple(Stage(step, run.moved(run.features[-1], step)) for step in later),
        )


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


def _deciding(answers: Sequence[Answer]) -> Answer:
    """A yes, which comes last; else the first that is open; else the last no."""
    waiting = [answer for answer in answers if answer.holds is None]
    return waiting[0] if waiting and not answers[-1].holds else answers[-1]


def explosions(stages: Stages, ask: Ask) -> tuple[Answer, ...]:
    """Whether something that is read grows with the width, step by step, up to the first yes."""
    return _each(stages.levels, ask, grows)


def judge(stages: Stages, ask: Ask) -> Judgement:
    """The verdict on a run.

    Source: Yang and Hu, Feature Learning in Infinite-Width Neural Networks, section 3.2; Hajjar,
        Chizat, Giraud, Definitions B.1 and B.2.
    """
    levels = explosions(stages, ask)
    exploded = _deciding(levels).holds
    if exploded is not False:
        return Judgement("unstable" if exploded else "undecided", levels)
    changes = _each(stages.changes, ask, stays)
    moved = _deciding(changes).holds
    if not moved:
        return Judgement("undecided" if moved is None else "trivial", levels, changes)
    features = _each(stages.features, ask, stays)
    learned = _deciding(features).holds
    word = "undecided" if learned is None else "feature-learning" if learned else "kernel"
    return Judgement(word, levels, changes, features)


def _each(stages: Iterable[Stage], ask: Ask, question: Question) -> tuple[Answer, ...]:
    answers: list[Answer] = []
    for stage in stages:
        answers.append(ask(stage, question))
        if answers[-1].holds:
            break
    return tuple(answers)


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

    def ask(stage: Stage, question: Question) -> Answer:
        if at:  # no comparisons but those that a question needs
            ledgers.append(Ledger(restricted(whole, stage.names), at, tests))
        return ledgers[-1].ask(stage.names, question, stage.step)

    found = judge(Stages.of(run), ask)
    return replace(found, region=joined(ledger.region for ledger in ledgers))
