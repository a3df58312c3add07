"""``phases``: the verdict on training at every point of a box of exponents."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from tpcalc.analyses.follow import follow
from tpcalc.analyses.probe import Probe, probe
from tpcalc.analyses.verdicts import Answer, Judgement, explodes, judgement, moves
from tpcalc.catalog.architecture import Architecture
from tpcalc.catalog.parameterizations import Parameterization
from tpcalc.errors import LimitError, ScaleError, UnknownName, UsageError
from tpcalc.evaluate.witness import Finding, nonzero
from tpcalc.limit.derive import graph_of
from tpcalc.limit.graph import LimitGraph, LRef, Target
from tpcalc.limit.scales import Scale, Scales, symbols
from tpcalc.orders.chamber import Power, Region, minus
from tpcalc.orders.conditions import Axes
from tpcalc.orders.cover import Cell, cover
from tpcalc.program.program import Program, prune
from tpcalc.results import PhaseCell, PhaseDiagram, Samples, checks
from tpcalc.results.provenance import provenance

__all__ = ["phases"]

ZERO, HALF = Fraction(0), Fraction(1, 2)
# Beside generic data an input whose angles to all samples are moderate: coefficients are not small.
QUERY = (0.5, 0.3, 0.2, 0.4)
MOST_COPIES = 4  # of a small update, of higher order, that a depth may take in
Question = Callable[[Mapping[str, Scale], Callable[[Power], int]], Answer]
Box = Mapping[str, tuple[Fraction | float, Fraction | float]]


def phases(
    architecture: Architecture,
    parameterization: Parameterization | str,
    box: Box,
    data: Samples | None = None,
    *,
    steps: int = 2,
    loss: str = "mse",
    batch: int = 1,
    values: Mapping[str, object] | None = None,
    verify: bool = True,
    seed: int = 0,
    most: int = 1000,
) -> PhaseDiagram:
    """The phase diagram of a parameterization with symbols: every region, wall and point of a box.

    At a sample point the sizes of h, f and their changes are derived with the symbols kept; the
    comparisons that the verdict needed are the region where it holds. Points are taken until these
    regions cover the closed box, its walls and corners included.

    Args:
        architecture: The network.
        parameterization: A catalogue name or a parameterization, with symbols in its exponents:
            ``"ac:0,1/2,1/2,a;c"``.
        box: The two ends of the interval of each symbol; up to four symbols.
        data: Training data; None: generic data, on which exponents do not depend.
        steps: The number of updates that are followed.
        loss: Catalogue name.
        batch: Samples in a step.
        values: Numbers for the symbols that the box leaves out.
        verify: Whether leading coefficients that a verdict rests on are tested with the particle
            engine where they are not provably different from 0; else they are assumed to be.
        seed: Of that test.
        most: The number of points to take at most.

    Returns:
        Cells with verdict, conditions, corners and a sample; disjoint, together the whole box.

    Raises:
        ScaleError: The box is none, a symbol has neither interval nor number, a boundary is curved
            (a degree of homogeneity beside other symbols), or more points would be needed.
        UnknownName: A symbol that the parameterization does not have.
        StudyError: Numbers that make no sense, targets that do not fit the loss.

    Source: Yang and Hu, Feature Learning in Infinite-Width Neural Networks, section 3.2, for the
        verdicts; the diagram is by this package's exponent calculus.

    Example:
        >>> box = {"a": (Fraction(1, 2), 1), "c": (-1, 0)}
        >>> from tpcalc.catalog.architectures.mlp import MLP
        >>> found = phases(MLP(2, "tanh"), "ac:0,1/2,a;c", box, steps=1, verify=False)
        >>> [(c.sample, c.verdict) for c in found.cells if c.verdict == "feature-learning"]
        [((('a', '1'), ('c', '-1')), 'feature-learning')]
    """
    started = time.perf_counter()
    steps = checks.whole(steps, "steps", least=1, hint="It counts updates.")
    seed = checks.whole(seed, "seed", least=0)
    most = checks.whole(most, "most", least=1, hint="It counts sample points.")
    if not isinstance(verify, bool):
        raise UsageError(f"verify is {verify!r}.", hint="It is True or False.")
    if not isinstance(box, Mapping):
        raise UsageError(
            f"the box is {box!r}.", hint="It maps symbols to intervals: {'a': (0, 1)}."
        )
    watched = probe(
        architecture,
        parameterization,
        data,
        steps=steps,
        loss=loss,
        batch=batch,
        query=QUERY if data is None else None,
        watch=("h", "x", "dW_x"),
    )
    given = _given(watched.program, box, values)
    judge = _Judge(_Stages.of(watched), given, verify, seed)
    cells = cover(judge, box, most)
    axes = Axes.of(box)
    settings = {
        "steps": str(steps),
        "loss": loss,
        "batch": str(batch),
        "values": ", ".join(f"{name}={value}" for name, value in given.items()),
        "verify": str(verify),
    }
    return PhaseDiagram(
        tuple(box),
        tuple(
            (name, str(low), str(high))
            for name, (low, high) in zip(axes.names, axes.sides, strict=True)
        ),
        tuple(_cell(cell, box) for cell in cells),
        True,
        judge.runs,
        provenance(watched.program.digest, seed, settings, time.perf_counter() - started),
        judge.notes(steps),
    )


def _given(program: Program, box: Box, values: Mapping[str, object] | None) -> dict[str, Fraction]:
    known = symbols(program)
    given = checks.powers(values, known)
    for name in box:
        if name in given:
            raise UsageError(
                f"{name} has an interval and a number.", hint="Leave it out of box or of values."
            )
        if name not in known:
            raise UnknownName("symbol in the exponents of this network", name, known)
    for name in sorted(known - set(box) - given.keys()):
        raise ScaleError(
            f"the exponents hold the symbol {name!r}, which has no interval.",
            hint=f"Add it to the box, or give a number for it: values={{{name!r}: 1}}.",
        )
    return given


@dataclass(frozen=True)
class _Stage:
    """A part of the training run, and the outputs whose sizes are asked of it."""

    program: Program
    names: tuple[str, ...]

    @staticmethod
    def of(program: Program, names: Sequence[str]) -> _Stage:
        """Nothing but these outputs: what they do not need makes no comparisons."""
        outputs = tuple((name, program.ref(name)) for name in names)
        return _Stage(prune(replace(program, outputs=outputs)), tuple(names))


@dataclass(frozen=True)
class _Stages:
    """A training run in the order in which a verdict asks for its parts."""

    steady: tuple[_Stage, ...]
    changes: _Stage
    features: _Stage
    updates: _Stage
    pairs: tuple[tuple[str, str], ...]

    @staticmethod
    def of(found: Probe) -> _Stages:
        """Of each step h and f; the changes of f; those of the last features.

        Besides the updates, each with the preactivation that it is added to.
        """
        later = range(1, found.steps + 1)
        layers = range(1, found.depth + 1)
        program, query = found.program, found.query

        def steady(step: int) -> list[str]:
            return [*(f"h[{layer},{step},{query}]" for layer in layers), *found.f(step)]

        pairs = tuple(
            (f"h[{layer},{step},{query}]", f"dW_x[{layer},{step},{query}]")
            for step in later
            for layer in layers
        )
        return _Stages(
            tuple(_Stage.of(program, steady(step)) for step in range(found.steps + 1)),
            _Stage.of(program, [name for step in later for name in found.changes(step)]),
            _Stage.of(program, [found.features(found.depth, step) for step in later]),
            _Stage.of(program, [name for pair in pairs for name in pair]),
            pairs,
        )


@dataclass
class _Judge:
    """The verdict at a sample point, with the region where it holds."""

    stages: _Stages
    given: Mapping[str, Fraction]
    verify: bool
    seed: int
    runs: int = 0
    tested: dict[LimitGraph, Finding] = field(default_factory=dict)
    untested: set[str] = field(default_factory=set)

    def __call__(self, point: Mapping[str, Fraction]) -> tuple[Region, Judgement]:
        self.runs += 1
        here = _Point(self, point)
        for stage in self.stages.steady:  # one step after the other: later ones hold more
            exploded = here.ask(stage, explodes)
            if exploded.holds is not False:
                return here.region, judgement(exploded, None, None)
        outputs = here.ask(self.stages.changes, moves)
        features = here.ask(self.stages.features, moves) if outputs.holds else None
        return here.region, judgement(exploded, outputs, features)

    def checked(self, answer: Answer, run: Scales) -> Answer:
        """An answer that rests on a coefficient, after a test that it is not 0."""
        if answer.node is None or not self.verify:
            return answer
        finding = self._finding(run, answer.node)
        if finding.nonzero is False:
            return Answer(None, f"{answer.fact} or smaller ({finding.text})")
        if finding.nonzero is None:
            self.untested.add(f"{answer.fact}: {finding.text}")
        return answer

    def _finding(self, run: Scales, node: LRef) -> Finding:
        """The same coefficient comes back at many sample points; it is tested once."""
        try:
            key = graph_of(run.context, (("", Target(ZERO, node)),))
        except LimitError as error:
            return Finding(None, f"not evaluated: {error.message}")
        found = self.tested.get(key)
        if found is None:
            found = self.tested[key] = nonzero(run.context, (node,), self.seed)[node]
        return found

    def notes(self, steps: int) -> tuple[str, ...]:
        """What a reader should know besides."""
        notes = [f"verdicts on the steps t <= {steps}"]
        if not self.verify:
            return (*notes, "leading coefficients are assumed to be different from 0")
        count = sum(finding.nonzero is not None for finding in self.tested.values())
        notes.append(
            f"{count} leading coefficients were tested with the particle engine; the others that "
            "verdicts rest on are provably different from 0"
        )
        return (*notes, *sorted(f"assumed, not tested: {text}" for text in self.untested))


@dataclass
class _Point:
    """The derivations at one sample point."""

    judge: _Judge
    at: Mapping[str, Fraction]
    used: list[Scales] = field(default_factory=list)
    depth: Power = ZERO

    def ask(self, stage: _Stage, question: Question) -> Answer:
        """The answer of the first depth that has one; that of the question before comes first.

        Where no depth has one, the region is that of the coarsest: nothing is claimed there.
        """
        asked: list[Power] = []
        for depth in self._depths():
            if depth in asked:
                continue
            asked.append(depth)
            try:
                run = self._follow(stage, depth)
            except ScaleError:  # the depth takes in more orders of a function than are followed
                if depth == ZERO:
                    raise
                continue
            sizes = {name: run.scale(name) for name in stage.names}
            answer = question(sizes, run.context.ranking.chamber.sign)
            if answer.holds is not None:
                self.depth = depth
                self.used.append(run)
                return self.judge.checked(answer, run)
            if depth == ZERO:
                coarsest, unknown = run, answer
        self.used.append(coarsest)
        return unknown

    def _follow(self, stage: _Stage, depth: Power) -> Scales:
        return follow(stage.program, self.judge.given, self.at, depth)

    def _depths(self) -> Iterator[Power]:
        yield self.depth
        yield ZERO
        yield from self._gaps

    @cached_property
    def _gaps(self) -> list[Power]:
        """How far updates, and fluctuations, lie below what they are added to; smallest first.

        Any depth gives a right answer; these are those at which something new is seen.
        """
        updates = self.judge.stages.updates
        run = self._follow(updates, ZERO)
        at = run.context.ranking.chamber.at
        found: dict[Power, Fraction] = {HALF: HALF}
        for total, part in self.judge.stages.pairs:
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

    @property
    def region(self) -> Region:
        """Where all derivations that were used hold."""
        return Region(
            tuple(dict.fromkeys(g for run in self.used for g in run.region.positive)),
            tuple(dict.fromkeys(g for run in self.used for g in run.region.zero)),
        )


def _cell(cell: Cell[Judgement], box: Box) -> PhaseCell:
    corners = tuple((str(x), str(y)) for x, y in cell.corners) if len(box) == 2 else ()
    return PhaseCell(
        cell.dimension,
        cell.answer.verdict,
        cell.conditions.lines,
        corners,
        tuple((name, str(cell.sample[name])) for name in box),
        cell.answer.fact,
    )
