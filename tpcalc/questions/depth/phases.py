"""``depth_phases``: the verdict on deep networks at every point of a box of exponents."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.exponents.chamber import Region
from tpcalc.exponents.conditions import Axes, meet
from tpcalc.exponents.cover import Cell, cover
from tpcalc.questions.depth.found import Found, found_of
from tpcalc.questions.depth.generic import BACKWARD, FORWARD
from tpcalc.results import PhaseCell, PhaseDiagram
from tpcalc.results.tables import provenance
from tpcalc.training.training import Training

Box = Mapping[str, tuple[Fraction | float, Fraction | float]]
Answer = tuple[str, str]
NEAR = Fraction(1, 8)
CHECKED = (
    "a region is where the comparisons of sums over blocks have one answer; it was tried near its "
    "corners as well ({} points)"
)


def depth_phases(training: Training, box: Box, most: int) -> PhaseDiagram:
    """The phase diagram in the exponents of the depth.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, Figure 1, by the calculus of
        docs/theory/depth.md.
    """
    started = time.perf_counter()
    asked = _Judge(training, Axes.of(box))
    cells = cover(asked, box, most)
    sides = zip(asked.axes.names, asked.axes.sides, strict=True)
    alone = all(here.start_alone for here, _ in asked.found.values())
    when = "at the start" if alone else f"on the steps t <= {training.steps}"
    notes = [f"verdicts {when}; the width goes to infinity first"]
    notes += [CHECKED.format(asked.tried)] if asked.tried else []
    return PhaseDiagram(
        tuple(box),
        tuple((name, Fraction(low), Fraction(high)) for name, (low, high) in sides),
        tuple(cell_of(cell, box) for cell in cells),
        True,
        len(asked.found),
        provenance("", None, {"steps": str(training.steps)}, time.perf_counter() - started),
        tuple(notes),
    )


@dataclass
class _Judge:
    """The verdict at a sample point, with a region where it holds."""

    training: Training
    axes: Axes
    tried: int = 0
    found: dict[tuple[Fraction, ...], tuple[Found, Answer]] = field(default_factory=dict)

    def __call__(self, point: Mapping[str, Fraction]) -> tuple[Region, Answer]:
        here, answer = self.at(point)
        own = here.stream.chamber.region
        if here.linear:
            return here.stream.region, answer
        for near in self.near(own, point):
            self.tried += 1
            if self.at(near)[1] != answer:
                return here.stream.region, answer
        return own, answer

    def at(self, point: Mapping[str, Fraction]) -> tuple[Found, Answer]:
        """The verdict at a point, with what is said of it."""
        key = tuple(point.values())
        if key not in self.found:
            here = found_of(self.training, point)
            self.found[key] = here, (here.verdict, ", ".join(_words(here)))
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


def cell_of(cell: Cell[Answer], box: Box) -> PhaseCell:
    """A cell as results have it."""
    return PhaseCell(
        cell.dimension,
        cell.answer[0],
        cell.conditions.lines,
        tuple((x, y) for x, y in cell.corners) if len(box) == 2 else (),
        tuple((name, str(cell.sample[name])) for name in box),
        cell.answer[1],
    )


def _words(here: Found) -> Iterator[str]:
    if here.start_alone:
        yield f"outputs {here.start((FORWARD, 0))}"
        yield f"gradients {here.start((BACKWARD, 0))}"
        return
    if here.stable is False:
        yield f"unstable {'in training' if here.stable_start else 'at the start'}"
        return
    if here.faithful is False:
        yield "unfaithful: preactivations in the blocks are not of order 1"
    if here.diversity:
        yield "diverse" if here.diversity == "1/2" else "redundant"
    if here.linearized is not None:
        yield "blocks linear in their updates" if here.linearized else "blocks not linear"
