"""``tpcalc sweep MODEL``: one question over a grid of settings."""

from __future__ import annotations

from pathlib import Path

from tpcalc.cli.flags import (
    DATA,
    DEVICE,
    LIMIT,
    MODULE,
    NETWORK,
    RUN,
    SIMULATE,
    SWEEP,
    Flags,
    takes,
)
from tpcalc.cli.option import many
from tpcalc.errors import Incomplete


@many
@takes(SWEEP, NETWORK, MODULE, DATA, LIMIT, SIMULATE, RUN, DEVICE)
def sweep(
    model: str,
    flags: Flags,
    work: Path | None = None,
    table: Path | None = None,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """One question over a grid of settings, as one table and one page."""
    from tpcalc.cli.show import answer, check_page, check_place, progress_bar
    from tpcalc.doors.numbers import count
    from tpcalc.experiments.sweep import Run
    from tpcalc.results.sweep import PROBLEM
    from tpcalc.views.faces import needed

    check_page(out)
    if table is not None:
        check_place("--table", table, (".csv", ".parquet"), "a table")
        if table.suffix.lower() == ".parquet":
            needed("pyarrow.parquet", "parquet")
    run = Run(model, flags)
    work = work or Path(model).with_name(f"{Path(model).stem}-sweep")
    table, out = table or work / "sweep.csv", out or work / "sweep.html"
    try:
        with progress_bar("sweep") as progress:
            run.go(work, progress)
    finally:  # what is there, where it was interrupted
        found = run.sweep
        if found.rows:
            found.save(table)
            found.save(out)
    answer("sweep", {"model": model}, found, "", as_json, written={"table": table, "out": out})
    failed = sum(bool(record[PROBLEM]) for record in found.rows)
    if failed:
        raise Incomplete(f"no answer of {count(failed, 'cell')}.", hint="The table says why.")
