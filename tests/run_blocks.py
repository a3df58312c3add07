"""The program of blocks of a training run, with the names that its cells have when it is split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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

__all__ = ["BlockRun", "block_run_of"]


@dataclass(frozen=True)
class BlockRun:
    """A run as blocks and split.

    Args:
        blocks: Its program of blocks, an output for each report.
        split: The program of single vectors.
        names: For each name of the split program that of the cell.
    """

    blocks: Program
    split: Program
    names: Mapping[str, str]


def block_run_of(make: Any) -> BlockRun:
    """A training run that ``make`` writes.

    Args:
        make: Makes a program with ``tp.train``.
    """
    seen: list[tuple[Program, list[Report]]] = []

    def spy(program: Program, groups: Iterable[Any], closed: Any) -> Program:
        groups = [list(group) for group in groups]
        seen.append((program, [report for group in groups for report in group]))
        return split_reports(program, groups, closed)

    zeros: list[Any] = []

    def start(program: Program, names: Any) -> Program:
        zeros.append(names)
        return started_at_zero(program, names)

    with (
        mock.patch.object(unrolled, "split_reports", spy),
        mock.patch.object(unrolled, "started_at_zero", start),
    ):
        lowered = make()
    ((program, reports),) = seen
    builder = Builder.copy(program)
    names: dict[str, str] = {}
    for number, report in enumerate(reports):
        builder.output(f"r{number}", report.ref)
        axes = program.types[report.ref].axes
        for index in range(report.count):
            for cell in product(*(range(size) for _, size in report.axes)):
                where = {report.axis: index}
                where |= {name: k for (name, _), k in zip(report.axes, cell, strict=True)}
                own = cell_name(f"r{number}", tuple(where[name] for name, _ in axes))
                names[report.name(report.first + index, cell)] = own
    blocks = started_at_zero(builder.finish(keep_unused=False), zeros[0])
    return BlockRun(blocks, lowered, names)


def mlp_run(steps: int, batch: int, rule: str = "mup") -> Any:
    """A function that writes a run on digits."""
    samples = tp.digits(classes=(0, 1), samples=steps * batch + batch, seed=0)
    return lambda: tp.train(
        tp.MLP(3, "tanh"), rule, samples, steps=steps, batch=batch, watch=(), lr=0.1
    )
