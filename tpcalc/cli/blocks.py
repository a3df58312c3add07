"""Answers about networks of many blocks on the terminal, as JSON, and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpcalc.results import DepthExperiment

__all__ = ["show_blocks"]


def show_blocks(
    command: str, model: Mapping[str, Any], found: DepthExperiment, out: Path | None, as_json: bool
) -> None:
    """Print an answer, and write its page where one is asked for.

    Args:
        command: The command.
        model: What the answer is about.
        found: The answer.
        out: Where the page goes.
        as_json: Whether one JSON object is printed.
    """
    from tpcalc.cli import payload
    from tpcalc.cli.show import put, put_table

    title = f"{found.name}: {found.title}"
    if out is not None:
        from tpcalc.report.page import write
        from tpcalc.report.record import ReportInput

        write(ReportInput(title, blocks=found), out)
    if as_json:
        result = payload.blocks(found) | ({} if out is None else {"out": str(out)})
        made = payload.provenance(found.provenance)
        put(payload.document(command, dict(model), result, made))
        return
    from tpcalc.report.terminal import depth_experiment_group

    put_table(depth_experiment_group(found), title)
    if out is not None:
        put(str(out))
