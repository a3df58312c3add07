"""``watched``: a run with all outputs that a verdict is read from; ``Settled``: what is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import inf, prod
from typing import ClassVar

from tpcalc.evaluate.settle import Witness
from tpcalc.exponents.chamber import Chamber
from tpcalc.functions import Fn, Var
from tpcalc.program.base import matmul_of
from tpcalc.program.nodes import Moment
from tpcalc.program.program import Builder, Program, restricted
from tpcalc.program.types import ReadAs
from tpcalc.questions.verdict.judge import Stage
from tpcalc.questions.verdict.ledger import DEPTHS, Answer, Ledger
from tpcalc.questions.verdict.probe import Probe, probe
from tpcalc.questions.verdict.sizes import Question, Sizes, grows, stays
from tpcalc.training.training import Training

KERNEL = Fn(Var(0) * (Var(0) + 2 * Var(1)), 2)  # |x_t|^2 - |x_0|^2 from x_t - x_0 and x_0

FAR = 10_000  # nodes of one that is not followed either where first steps do not decide
DEEP = 2000  # nodes of a program of all steps that is followed where first steps decide


class Large(Exception):
    """A program of all steps that was not written out, as it has more nodes than are followed."""

    words = "more than {}"

    def __init__(self, program: Program, nodes: int) -> None:
        super().__init__()
        self.program, self.nodes = program, nodes


@dataclass(frozen=True)
class Run:
    """A training run and the names of what is asked of it.

    Args:
        probe: The run with everything that it watches.
        program: The same with the outputs that are asked.
        last: The last step that is followed; None: all are.
        first: The first step that an update comes before; those of a schedule's zeros are none.
    """

    probe: Probe
    program: Program
    last: int | None = None
    first: int = 1
    words: ClassVar[str] = "{}"  # of the number of its nodes

    @property
    def nodes(self) -> int:
        """The number of its nodes."""
        return len(self.program.nodes)

    @property
    def steps(self) -> range:
        """The steps t = 1..T that are followed."""
        return range(1, (self.probe.steps if self.last is None else self.last) + 1)

    def subjects(self, step: int) -> dict[str, tuple[str, ...]]:
        """The outputs of a step by what they tell: what moves, and which of its sizes say so."""
        if not step:
            return {}
        run = self.probe
        found = {"output": run.changes(step)}
        for label in run.maps:
            found[f"updates of {label}"] = run.updates(label, step)
        hidden = (label for label, role in run.maps.items() if role != "readout")
        for label in (*run.features, *hidden):
            found[f"features of {label}"] = run.moved(label, step)
        for label in run.features:
            found[f"kernel of {label}"] = self.kernel(label, step)
        return found

    def names(self, step: int) -> tuple[str, ...]:
        """All outputs that are asked of a step.

        Besides what moves, the vectors that first updates are made of: x and dh of the first
        sample, x at step 1.
        """
        run = self.probe
        names = [*run.asked(step), *(name for own in self.subjects(step).values() for name in own)]
        if step == 0:
            starts = (
                run.at("x", 0, 0),
                run.at("dh", 0, 0),
                {"": run.at("dx", 0, 0).get(run.features[-1], ())},
            )
            names += [name for labels in starts for own in labels.values() for name in own]
        if step == 1:
            names += [name for own in run.at("x", 1).values() for name in own]
        return tuple(dict.fromkeys(names))

    def gradients(self, step: int) -> tuple[str, ...]:
        """What the gradients of a step are made of: f, x and dh of its samples."""
        run, found = self.probe, []
        for sample in range(run.query):
            labels = (*run.at("x", step, sample).values(), *run.at("dh", step, sample).values())
            found += [*run.f(step, sample), *(name for names in labels for name in names)]
        return tuple(found)

    @property
    def asked(self) -> Program:
        """What the outputs that are asked of all steps need."""
        steps = range(self.probe.steps + 1)
        names = [name for step in steps for name in self.names(step)]
        names += [name for step in steps[:-1] for name in self.gradients(step)]
        between = [self.probe.at("between", step).values() for step in steps[:-1]]
        names += [name for labels in between for own in labels for name in own]
        return restricted(self.program, dict.fromkeys(names))

    def kernel(self, label: str, step: int) -> tuple[str, ...]:
        """The change of the kernel of some features at the query."""
        pairs = zip(self.probe.at("x", step)[label], self.probe.at("x", 0)[label], strict=True)
        return tuple(f"|{now}|^2-|{then}|^2" for now, then in pairs)

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """The outputs and their changes, with those of the last features."""
        run = self.probe
        names = list(run.f(0))
        for step in self.steps:
            names += [*run.f(step), *run.changes(step), *run.moved(run.features[-1], step)]
        return tuple(names)


def watched(run: Training, reading: ReadAs = "auto", most: float = inf) -> Run:
    """Write out a training run with the outputs that facts about its layers are read from.

    Source: Hajjar, Chizat, Giraud, Definitions B.1 and B.2 (features and kernels).
    """

    def written(run: Training) -> Program:
        blocks = run.unrolled.written
        # Few cells of products are 0 or equal, and of each several nodes are made.
        pairs = zip(blocks.nodes, blocks.types, strict=True)
        made = (type_ for node, type_ in pairs if matmul_of(node) is not None)
        products = sum(prod(size for _, size in type_.axes) for type_ in made)
        if products > most:
            raise Large(blocks, products)
        return run.named(reading)

    found = probe(run, written=written)
    builder = Builder.copy(found.program)
    names = Run(found, found.program)
    for step in names.steps:
        for label in found.features:
            moved, starts = found.moved(label, step), found.at("x", 0)[label]
            for name, change, start in zip(names.kernel(label, step), moved, starts, strict=True):
                refs = found.program.ref(change), found.program.ref(start)
                builder.output(name, builder.add(Moment(KERNEL, refs)))
    first = next(step for step, factor in enumerate(run.factors, 1) if factor)
    return Run(found, builder.finish(), first=first)


SMALL = 220  # nodes that a step needs: up to here a test costs little, and whole tables are tested


@dataclass
class Settled:
    """What is known of each step of a run; a step is settled before the next is looked at.

    Nothing is looked at after the step of an explosion. After the first step, a coefficient of a
    long program is tested only if something hangs on it that earlier steps leave open.
    """

    run: Run
    # the sample point of symbols; with symbols only leading terms are followed, as every term costs
    # conditions
    point: Mapping[str, Fraction]
    tests: Witness | None  # of leading coefficients
    ledger: Ledger = field(init=False)  # of all that is asked
    _known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        run, depths = self.run, DEPTHS[:1] if self.point else DEPTHS
        self.ledger = Ledger(run.asked, self.point, self.tests, depths=depths)
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
