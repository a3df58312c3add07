"""``phases``: the verdict on training at every point of a box of exponents."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Unpack

from tpcalc import checks
from tpcalc.errors import ScaleError, UsageError
from tpcalc.evaluate.settle import Witness
from tpcalc.evaluate.witness import Finding
from tpcalc.exponents.chamber import Power, Region, joined, minus
from tpcalc.exponents.conditions import Axes, meet
from tpcalc.exponents.cover import Cell, cover
from tpcalc.limit.context import Record
from tpcalc.limit.scales import scales, symbols
from tpcalc.networks.network import Architecture
from tpcalc.program.program import Program, restricted
from tpcalc.questions.depth.found import Found, found_of
from tpcalc.questions.verdict.judge import judge
from tpcalc.questions.verdict.ledger import Answer, Ledger
from tpcalc.questions.verdict.probe import Probe, probe
from tpcalc.questions.verdict.sizes import Question
from tpcalc.results import PhaseCell, PhaseDiagram, Samples
from tpcalc.results.tables import provenance
from tpcalc.torch.training import QuestionSettings, as_run
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.training import Training

ZERO, HALF = Fraction(0), Fraction(1, 2)
CALM = Fraction(1, 2**12)  # of a rate at which samples do not tell
MOST_COPIES = 4  # of a small update, of higher order, that a depth may take in
NEAR = Fraction(1, 8)
CHECKED = (
    "a region is where the comparisons of sums over blocks have one answer; it was tried near its "
    "corners as well ({} points)"
)
_Found = tuple[Answer, Ledger]
Told = tuple[str, str]  # a verdict, and what is said of it
Box = Mapping[str, tuple[Fraction | float, Fraction | float]]


def phases(
    architecture: Architecture | Training,
    parameterization: Parameterization | str | None = None,
    box: Box | None = None,
    data: Samples | None = None,
    *,
    values: Mapping[str, object] | None = None,
    verify: bool = True,
    seed: int = 0,
    most: int = 1000,
    **settings: Unpack[QuestionSettings],
) -> PhaseDiagram:
    """The phase diagram of a parameterization with symbols: every region, wall and point of a box.

    At a sample point the sizes of h, f and their changes are derived with the symbols kept; the
    comparisons that the verdict needed are the region where it holds. Points are taken until these
    regions cover the closed box, its walls and corners included.

    Args:
        architecture: The network; or a training run, ``tp.Training``, and nothing of it besides:
            ``tp.phases(run, box=...)``.
        parameterization: A catalogue name or a parameterization, with symbols in its exponents:
            ``"ac:0,1/2,1/2,a;c"``.
        box: The two ends of the interval of each symbol; up to four symbols.
        data: Training data; None: generic data, on which exponents do not depend.
        values: Numbers for the symbols that the box leaves out.
        verify: Whether leading coefficients that a verdict rests on are tested with the particle
            engine where they are not provably different from 0; else they are assumed to be.
        seed: Of that test. Where samples are too wild to tell, a verdict is that at a rate 2^12
            times smaller, and its fact says so.
        most: The number of points to take at most.
        settings: As ``tp.Training`` takes them: steps (2), lr, schedule, groups, loss, batch,
            optimizer; the powers of groups may hold symbols as well.

    Returns:
        Cells with verdict, conditions, corners and a sample; disjoint, together the whole box.

    Raises:
        ScaleError: The box is none, a symbol has neither interval nor number, a boundary is curved
            (a degree of homogeneity beside other symbols), or more points would be needed.
        UnknownName: A symbol that the parameterization does not have.
        UsageError: Arguments of another kind, or a symbol with both an interval and a number.
        StudyError: Numbers that make no sense, targets that do not fit the loss.

    Source: Yang and Hu, Feature Learning in Infinite-Width Neural Networks, section 3.2, for the
        verdicts; the diagram is by this package's exponent calculus.

    Example:
        >>> box = {"a": (Fraction(1, 2), 1), "c": (-1, 0)}
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = phases(MLP(2, "tanh"), "ac:0,1/2,a;c", box, steps=1, verify=False)
        >>> [(c.sample, c.verdict) for c in found.cells if c.verdict == "feature-learning"]
        [((('a', '1'), ('c', '-1')), 'feature-learning')]
    """
    started = time.perf_counter()
    training = as_run(architecture, parameterization, data, settings, steps=2)
    repeats = bool(training.network.smallest.repeats)
    steps = checks.whole(training.steps, "steps", least=int(not repeats), hint="Of updates.")
    seed = checks.seed(seed)
    most = checks.whole(most, "most", least=1, hint="It counts sample points.")
    checks.flag(verify, "verify")
    if not isinstance(box, Mapping):
        raise UsageError(
            f"the box is {box!r}.", hint="It maps symbols to intervals: {'a': (0, 1)}."
        )
    asked: _InDepth | _InWidth
    if repeats:
        asked = _InDepth(training, Axes.of(box))
        made_of: tuple[str, int | None] = "", None
        settings_of = {"steps": str(steps)}
    else:
        watch = ("h", "x", "dW_x")
        run = probe(training, watch=watch)
        given = _given(run.program, box, values)
        calmer = partial(probe, training.replace(lr=CALM), watch=watch)
        asked = _InWidth(run, given, verify, seed, calmer)
        made_of = run.program.digest, seed
        settings_of = {
            "steps": str(steps),
            "loss": training.loss.name,
            "batch": str(training.batch),
            "values": ", ".join(f"{name}={value}" for name, value in given.items()),
            "verify": str(verify),
        }
    cells = tuple(_cell_of(cell, box) for cell in cover(asked, box, most))
    axes = Axes.of(box)
    sides = zip(axes.names, axes.sides, strict=True)
    return PhaseDiagram(
        tuple(box),
        tuple((name, Fraction(low), Fraction(high)) for name, (low, high) in sides),
        cells,
        True,
        asked.runs,
        provenance(*made_of, settings_of, time.perf_counter() - started),
        asked.notes(steps),
    )


def _cell_of(cell: Cell[Told], box: Box) -> PhaseCell:
    """A cell as results have it."""
    return PhaseCell(
        cell.dimension,
        cell.answer[0],
        cell.conditions.lines,
        tuple((x, y) for x, y in cell.corners) if len(box) == 2 else (),
        tuple((name, str(cell.sample[name])) for name in box),
        cell.answer[1],
    )


@dataclass
class _InDepth:
    """The verdict on L blocks at a sample point, with a region where it holds.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, Figure 1, by the calculus of
        docs/theory/depth.md.
    """

    training: Training
    axes: Axes
    tried: int = 0
    found: dict[tuple[Fraction, ...], tuple[Found, Told]] = field(default_factory=dict)

    def __call__(self, point: Mapping[str, Fraction]) -> tuple[Region, Told]:
        here, answer = self.at(point)
        own = here.stream.chamber.region
        if here.linear:
            return here.stream.region, answer
        for near in self.near(own, point):
            self.tried += 1
            if self.at(near)[1] != answer:
                return here.stream.region, answer
        return own, answer

    @property
    def runs(self) -> int:
        """How many points were decided."""
        return len(self.found)

    def at(self, point: Mapping[str, Fraction]) -> tuple[Found, Told]:
        """The verdict at a point, with what is said of it."""
        key = tuple(point.values())
        if key not in self.found:
            here = found_of(self.training, point)
            self.found[key] = here, (here.verdict, ", ".join(here.words))
        return self.found[key]

    def near(self, region: Region, point: Mapping[str, Fraction]) -> Iterator[dict[str, Fraction]]:
        """Points of a region near its corners."""
        signs = self.axes.signs(region)
        for face in self.axes.faces():
            shape = meet(face, signs)
            for corner in shape.points if shape is not None and face.dimension else ():
                yield {
                    name: end + NEAR * (point[name] - end)
                    for name, end in zip(self.axes.names, corner, strict=True)
                }

    def notes(self, steps: int) -> tuple[str, ...]:
        """What a reader should know besides."""
        alone = all(here.start_alone for here, _ in self.found.values())
        when = "at the start" if alone else f"on the steps t <= {steps}"
        checked = (CHECKED.format(self.tried),) if self.tried else ()
        return (f"verdicts {when}; the width goes to infinity first", *checked)


def _given(program: Program, box: Box, values: Mapping[str, object] | None) -> dict[str, Fraction]:
    known = symbols(program)
    given = checks.powers(values, known)
    for name in box:
        if name in given:
            raise UsageError(
                f"{name} has an interval and a number.", hint="Leave it out of box or of values."
            )
        checks.one_of("symbol in the exponents of this network", name, known)
    for name in sorted(known - set(box) - given.keys()):
        raise ScaleError(
            f"the exponents hold the symbol {name!r}, which has no interval.",
            hint=f"Add it to the box, or give a number for it: values={{{name!r}: '1'}}.",
        )
    return given


@dataclass
class _InWidth:
    """The verdict at a sample point, with the region where it holds."""

    run: Probe
    given: Mapping[str, Fraction]
    verify: bool
    seed: int
    calmer: Callable[[], Probe] | None = None
    runs: int = 0
    calmed: int = 0
    kept: dict[object, Finding] = field(default_factory=dict)  # what tests found
    programs: dict[tuple[str, ...], Program] = field(default_factory=dict)
    record: Record = field(default_factory=Record)

    def __call__(self, point: Mapping[str, Fraction]) -> tuple[Region, Told]:
        self.runs += 1
        here = _Point(self, point)
        found = judge(self.run, here.ask)
        if found.verdict == "undecided" and self.verify and self.calm is not None:
            region, answer = self.calm(point)
            if answer[0] != "undecided":
                self.calmed += 1
                verdict, fact = answer
                return region, (verdict, f"{fact} (at {CALM} of the rate)")
        return joined(ledger.region for ledger in here.used), (found.verdict, found.fact)

    @cached_property
    def calm(self) -> _InWidth | None:
        """The same at a smaller rate, where fewer coefficients are huge; one list of tests."""
        if self.calmer is None:
            return None
        return _InWidth(self.calmer(), self.given, self.verify, self.seed, kept=self.kept)

    def program(self, names: tuple[str, ...]) -> Program:
        """What some outputs need and nothing else, so that it makes no comparisons but those."""
        if names not in self.programs:
            self.programs[names] = restricted(self.run.program, names)
        return self.programs[names]

    @cached_property
    def updates(self) -> tuple[Program, tuple[tuple[str, str], ...]]:
        """The updates, each with the preactivation that it is added to."""
        run = self.run
        pairs = tuple(
            pair
            for step in range(1, run.steps + 1)
            for label, updates in run.at("dW_x", step).items()
            if label in run.at("h", step)
            for pair in zip(run.at("h", step)[label], updates, strict=True)
        )
        return restricted(run.program, [name for pair in pairs for name in pair]), pairs

    def notes(self, steps: int) -> tuple[str, ...]:
        """What a reader should know besides."""
        notes = [f"verdicts on the steps t <= {steps}"]
        if not self.verify:
            return (*notes, "leading coefficients are assumed to be different from 0")
        count = sum(finding.nonzero is not None for finding in self.kept.values())
        untested = {finding.text for finding in self.kept.values() if finding.nonzero is None}
        notes.append(
            f"{count} leading coefficients were tested with the particle engine; the others that "
            "verdicts rest on are provably different from 0"
        )
        if self.calmed:
            notes.append(
                f"{self.calmed} verdicts are decided at {CALM} of the rate, where samples at the "
                "rate itself are too wild to tell"
            )
        if untested:
            why = "; ".join(sorted(untested))
            notes.append(
                f"some coefficients could not be tested, and no verdict rests on them: {why}"
            )
        return tuple(notes)


@dataclass
class _Point:
    """The derivations at one sample point."""

    judge: _InWidth
    at: Mapping[str, Fraction]
    used: list[Ledger] = field(default_factory=list)
    first: dict[Question, Power] = field(default_factory=dict)

    def ask(self, names: tuple[str, ...], question: Question, step: int) -> Answer:
        """The answer of the first depth that has one; that of the question before comes first.

        Where no depth has one, the region is that of the coarsest: nothing is claimed there.
        """
        first = self.first.get(question, ZERO)
        coarse = self._at(names, question, step, (first, ZERO))
        assert coarse is not None
        found = coarse
        if coarse[0].holds is None and len(names) > 1:
            # A yes from one quantity makes fewer comparisons than all of them.
            alone = self._at((coarse[0].name,), question, step, self._gaps)
            found = alone if alone is not None and alone[0].holds else coarse
        if found[0].holds is None:
            deeper = self._at(names, question, step, self._gaps)
            found = deeper if deeper is not None and deeper[0].holds is not None else coarse
        self.used.append(found[1])
        if found[0].holds is not None:
            self.first[question] = found[1].depths[0]
        return found[0]

    def _at(
        self, names: tuple[str, ...], question: Question, step: int, depths: Iterable[Power]
    ) -> _Found | None:
        """The answer of the first depth that has one; else that of the last one."""
        found = None
        for depth in dict.fromkeys(depths):
            ledger = self._ledger(self.judge.program(names), depth)
            try:
                found = ledger.ask(names, question, step), ledger
            except ScaleError:  # the depth takes in more orders of a function than are followed
                if depth == ZERO:
                    raise
                continue
            if found[0].holds is not None:
                break
        return found

    def _ledger(self, program: Program, depth: Power) -> Ledger:
        tests = Witness(self.judge.seed, self.judge.kept) if self.judge.verify else None
        return Ledger(program, self.at, tests, self.judge.given, (depth,), self.judge.record)

    @cached_property
    def _gaps(self) -> list[Power]:
        """How far updates, and fluctuations, lie below what they are added to; smallest first.

        Any depth gives a right answer; these are those at which something new is seen.
        """
        updates, pairs = self.judge.updates
        run = scales(updates, values=self.judge.given, at=self.at)
        at = run.context.ranking.chamber.at
        found: dict[Power, Fraction] = {HALF: HALF}
        for total, part in pairs:
            large, small = run.scale(total), run.scale(part)
            if large.power is None or large.bound:
                continue
            apart = [minus(ZERO, large.power)]  # the orders of a function of what vanishes
            if small.power is not None and not small.bound:
                apart.append(minus(large.power, small.power))
            found.update({gap: at(gap) for gap in apart})
        positive = {gap: value for gap, value in found.items() if value > 0}
        least = min(positive.values())
        near = [gap for gap, value in positive.items() if value <= MOST_COPIES * least]
        return sorted(near, key=positive.__getitem__)
