"""The settings of a study as arguments of the functions that compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpcalc.cli.progress import progress_bar
from tpcalc.errors import UsageError

if TYPE_CHECKING:
    from tpcalc.results import FiniteTable, LimitTable
    from tpcalc.study import Model

__all__ = ["check_seeds", "limit_of", "networks_of"]


def limit_of(model: Model, formulas: Sequence[str] = ()) -> LimitTable:
    """The limits of a model, with formulas of the outputs whose names fit a pattern."""
    from tpcalc.evaluate.limit import limit

    chosen = model.study.limit.model_dump(exclude_none=True)
    with progress_bar("limit") as progress:
        found = limit(model.program, **chosen, formulas=formulas, progress=progress)
    return found.table


def networks_of(model: Model) -> FiniteTable:
    """The same program at finite widths."""
    from tpcalc.finite.simulate import simulate

    chosen = model.study.simulate.model_dump(exclude_none=True)
    with progress_bar("finite networks") as progress:
        return simulate(model.program, **chosen, progress=progress)


def check_seeds(model: Model) -> None:
    """Refuse a comparison without error bars before the long run, not after it.

    Raises:
        UsageError: There is one network of each width only.
    """
    if model.study.simulate.seeds < 2:
        raise UsageError(
            "--seeds: one network of each width shows no error bar to compare by.",
            hint="Take two or more; ten or more are better.",
        )
