"""The program of blocks of a training run, and the names of its cells in the split program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any
from unittest import mock

import tpcalc as tp
import tpcalc.passes.unroll as unrolled
from tpcalc.passes.cells import Report
from tpcalc.passes.split import split_reports
from tpcalc.passes.start import started_at_zero
from tpcalc.program.names import cell_name
from tpcalc.program.program import Builder, Program

__all__ = ["BlockRun", "block_run", "on_digits"]

NOTHING = Builder().finish()


@dataclass(frozen=True)
class BlockRun:
    """A training run as it is written, before it is split.

    Args:
        program: Its program of blocks.
        groups: What is reported.
        closed: What is a node where it stands.
        zeros: What starts at 0.
    """

    program: Program
    groups: Sequence[Sequence[Report]]
    closed: Collection[int]
    zeros: Collection[str]

    @property
    def reports(self) -> Iterator[tuple[str, Report]]:
        """What is reported, each under the name that it has as a block."""
        reports = (report for group in self.groups for report in group)
        for number, report in enumerate(reports):
            yield f"r{number}", report

    @cached_property
    def blocks(self) -> Program:
        """The program with a block for each report."""
        builder = Builder.copy(self.program)
        for name, report in self.reports:
            builder.output(name, report.ref)
        return started_at_zero(builder.finish(keep_unused=False), self.zeros)

    @cached_property
    def split(self) -> Program:
        """The program of single vectors."""
        found = split_reports(self.program, self.groups, self.closed)
        return started_at_zero(found, self.zeros)

    @cached_property
    def names(self) -> Mapping[str, str]:
        """For each name of the split program that of the cell of a block."""
        found: dict[str, str] = {}
        for name, report in self.reports:
            axes = [axis for axis, _ in self.program.types[report.ref].axes]
            for index in range(report.count):
                for cell in product(*(range(size) for _, size in report.axes)):
                    where = dict(zip((axis for axis, _ in report.axes), cell, strict=True))
                    where[report.axis] = index
                    own = cell_name(name, [where[axis] for axis in axes])
                    found[report.name(report.first + index, cell)] = own
        return found


def block_run(make: Callable[[], Any]) -> BlockRun:
    """What a function that writes one training run writes; the run is not split."""
    seen: list[Any] = []

    def unsplit(program: Program, groups: Iterable[Any], closed: Any) -> Program:
        seen.extend((program, [list(group) for group in groups], frozenset(closed)))
        return NOTHING

    def start(program: Program, names: Any) -> Program:
        seen.append(names)
        return program

    with (
        mock.patch.object(unrolled, "split_reports", unsplit),
        mock.patch.object(unrolled, "started_at_zero", start),
    ):
        make()
    return BlockRun(*seen)


def on_digits(steps: int, batch: int) -> BlockRun:
    """Three hidden layers of tanh in muP on digits."""
    samples = tp.digits(classes=(0, 1), samples=min((steps + 1) * batch, 360), seed=0)
    net = tp.MLP(3, "tanh")
    options: dict[str, Any] = {"steps": steps, "batch": batch, "watch": (), "lr": 0.1}
    return block_run(lambda: tp.train(net, "mup", samples, **options))
