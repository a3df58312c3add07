"""The program of blocks of a training run, and the names of its cells in the split program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any
from unittest import mock

import tpcalc as tp
from tpcalc.names import cell_name
from tpcalc.passes.cells import Report
from tpcalc.passes.starts import started_at_zero
from tpcalc.passes.unroll import Unrolled
from tpcalc.program.program import Builder, Program

__all__ = ["BlockRun", "block_run", "on_digits"]


@dataclass(frozen=True)
class BlockRun:
    """A training run as it is written, before it is split; also one whose names tell no cells."""

    run: Unrolled

    @property
    def reports(self) -> Iterator[tuple[str, Report]]:
        """What is reported, each under the name that it has as a block."""
        reports = (report for group in self.run.groups for report in group)
        for number, report in enumerate(reports):
            yield f"r{number}", report

    @cached_property
    def blocks(self) -> Program:
        """The program with a block for each report."""
        builder = Builder.copy(self.run.written)
        for name, report in self.reports:
            builder.output(name, report.ref)
        return started_at_zero(builder.finish(keep_unused=False), self.run.zeros)

    @cached_property
    def split(self) -> Program:
        """The program of single vectors."""
        return self.run.cells

    @cached_property
    def names(self) -> Mapping[str, str]:
        """For each name of the split program that of the cell of a block."""
        found: dict[str, str] = {}
        for name, report in self.reports:
            axes = [axis for axis, _ in self.run.written.types[report.ref].axes]
            for index in range(report.count):
                for cell in product(*(range(size) for _, size in report.axes)):
                    where = dict(zip((axis for axis, _ in report.axes), cell, strict=True))
                    where[report.axis] = index
                    own = cell_name(name, [where[axis] for axis in axes])
                    found[str(report.name(report.first + index, cell))] = own
        return found


def block_run(make: Callable[[], Any]) -> BlockRun:
    """What a function that writes one training run writes; the run is not split."""
    seen: list[tp.Training] = []

    def noted(run: tp.Training) -> Program:
        seen.append(run)
        return Builder().finish()

    with mock.patch.object(tp.Training, "blocks", property(noted)):
        make()
    (run,) = seen
    return BlockRun(run.unrolled)


def on_digits(steps: int, batch: int) -> BlockRun:
    """Three hidden layers of tanh in muP on digits."""
    samples = tp.digits(classes=(0, 1), samples=min((steps + 1) * batch, 360), seed=0)
    net = tp.MLP(3, "tanh")
    options: dict[str, Any] = {"steps": steps, "batch": batch, "watch": (), "lr": 0.1}
    return BlockRun(tp.Training(net, "mup", samples, **options).unrolled)
