"""The word for a training run: questions asked step by step, and what their answers make.

Every stage is a program of its own, with what one question needs of one step and nothing later. So
what is known of a step does not depend on how many steps follow it, and the word for a longer run
can differ only by a fact of a later step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tpcalc.analyses.probe import Probe
from tpcalc.analyses.verdict.ledger import Answer, Ledger, Tests, particle_tests
from tpcalc.analyses.verdict.sizes import Question, grows, stays
from tpcalc.orders.chamber import Region, joined
from tpcalc.program.program import Program, prune

__all__ = ["Ask", "Judgement", "Stage", "Stages", "decide", "explosions", "judge", "restricted"]


@dataclass(frozen=True)
class Stage:
    """A part of a training run, and the outputs that a question is about.

    Args:
        step: The step t that they belong to.
        program: What they need; it may have other outputs of that step.
        names: These outputs.
    """

    step: int
    program: Program
    names: tuple[str, ...]


Ask = Callable[[Stage, Question], Answer]


def restricted(program: Program, names: Iterable[str]) -> Program:
    """The part of a program that some of its outputs need.

    Args:
        program: The program.
        names: The outputs.
    """
    kept = set(names)
    outputs = tuple(output for output in program.outputs if output[0] in kept)
    return prune(replace(program, outputs=outputs))


@dataclass(frozen=True)
class Stages:
    """A training run in the parts that a verdict asks for.

    Args:
        levels: Of each step from 0 what is read: preactivations and outputs.
        changes: Of each step from 1 the changes of the outputs.
        features: Of each step from 1 the change of the last features.
    """

    levels: tuple[Stage, ...]
    changes: tuple[Stage, ...]
    features: tuple[Stage, ...]

    @staticmethod
    def of(run: Probe, programs: Sequence[Program] = ()) -> Stages:
        """The stages of a run.

        Args:
            run: The run.
            programs: Of each step from 0 a program with all that is asked; empty: every question
                has a program of its own, so that it makes no comparisons but those it needs.
        """

        def stage(step: int, names: Iterable[str]) -> Stage:
            asked = tuple(names)
            program = programs[step] if programs else restricted(run.program, asked)
            return Stage(step, program, asked)

        later = range(1, run.steps + 1)
        return Stages(
            tuple(stage(step, run.levels(step)) for step in range(run.steps + 1)),
            tuple(stage(step, run.changes(step)) for step in later),
            tuple(stage(step, (run.features(run.depth, step),)) for step in later),
        )


@dataclass(frozen=True)
class Judgement:
    """A verdict with the answers that make it.

    Args:
        verdict: ``"unstable"``, ``"trivial"``, ``"kernel"``, ``"feature-learning"`` or
            ``"undecided"``.
        levels: Whether something grows, from step 0 on, up to the first yes.
        changes: Whether the output moves, from step 1 on; empty where it was not asked.
        features: Whether the last features move; empty where it was not asked.
        region: Where it holds.
    """

    verdict: str
    levels: tuple[Answer, ...]
    changes: tuple[Answer, ...] = ()
    features: tuple[Answer, ...] = ()
    region: Region = field(default_factory=Region)

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
    """Whether something that is read grows with the width, step by step, up to the first yes.

    Args:
        stages: The run.
        ask: Answers questions.
    """
    return _each(stages.levels, ask, grows)


def judge(stages: Stages, ask: Ask) -> Judgement:
    """The verdict on a run.

    Args:
        stages: The run.
        ask: Answers questions.

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


@dataclass
class Ledgers:
    """Answers from one ledger for each program.

    Args:
        at: The sample point of symbols.
        tests: Of leading coefficients.
    """

    at: Mapping[str, Fraction]
    tests: Tests | None
    made: dict[int, Ledger] = field(default_factory=dict)

    def __call__(self, stage: Stage, question: Question) -> Answer:
        ledger = self.made.get(id(stage.program))
        if ledger is None:
            ledger = self.made[id(stage.program)] = Ledger.of(stage.program, self.at, self.tests)
        return ledger.ask(stage.names, question, stage.step)

    @property
    def region(self) -> Region:
        """Where the answers hold."""
        return joined(ledger.region for ledger in self.made.values())


def decide(
    run: Probe,
    *,
    at: Mapping[str, Fraction] | None = None,
    verify: bool = True,
    seed: int = 0,
) -> Judgement:
    """The verdict on a run and nothing else: no more terms, comparisons and tests than it takes.

    Args:
        run: A run that watches h and x.
        at: The sample point for the symbols of its exponents.
        verify: Whether leading coefficients are tested where the verdict rests on them; else they
            are assumed to be different from 0.
        seed: Of these tests.

    Raises:
        ScaleError: A symbol without a value.

    Source: As ``judge``.

    Example:
        >>> from tpcalc.analyses.probe import probe
        >>> from tpcalc.catalog.architectures.mlp import MLP
        >>> decide(probe(MLP(3, "relu"), "ntk", steps=1)).verdict
        'kernel'
    """
    programs = [] if at else [restricted(run.program, run.asked(t)) for t in range(run.steps + 1)]
    ledgers = Ledgers(at or {}, particle_tests(seed) if verify else None)
    found = judge(Stages.of(run, programs), ledgers)
    return replace(found, region=ledgers.region)
