"""``tpcalc report MODEL --out FILE``: limit, finite networks and their comparison on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tpcalc.cli.exits import clean
from tpcalc.cli.flags import DATA, LIMIT, NETWORK, RUN, SIMULATE, AsJson, Flags, ModelWord, takes

if TYPE_CHECKING:
    from tpcalc.results import Comparison

__all__ = ["report"]

Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Where to write it: .html (one page with plots) or .md.",
    ),
]


# The first passes and the first updated one show every rule; later steps repeat them, longer.
FORMULAS = ("h[?,0,0]", "dh[?,0,0]", "h[?,1,0]", "f[1,0]")


@clean
@takes(NETWORK, DATA, LIMIT, SIMULATE, RUN)
def report(
    model: ModelWord, flags: Flags, out: Out = Path("report.html"), as_json: AsJson = False
) -> None:
    """Limit, finite networks and their comparison, written as one page."""
    from tpcalc.analyses.compare import compare
    from tpcalc.cli import payload
    from tpcalc.cli.places import check_place
    from tpcalc.cli.runs import check_seeds, limit_of, networks_of
    from tpcalc.cli.show import check_tolerance, put
    from tpcalc.report.page import write
    from tpcalc.report.record import ReportInput
    from tpcalc.study import open_model

    check_place("--out", out, (".html", ".md"), "a report")
    opened = open_model(model, flags)
    check_seeds(opened)
    table = limit_of(opened, FORMULAS)
    finite = networks_of(opened)
    found = compare(table, finite)
    path = write(
        ReportInput(
            title=opened.title[0].upper() + opened.title[1:],
            model=opened.facts,
            program_words=opened.words,
            program_text=str(opened.program),
            formulas=opened.formulas,
            limit=table,
            finite=finite,
            comparison=found,
            input_names=opened.input_names,
        ),
        out,
    )
    if as_json:
        result = {
            "path": str(path),
            "limit": payload.limit(table),
            "compare": payload.comparison(found),
        }
        made = payload.provenance(found.provenance)
        put(payload.document("report", opened.description, result, made))
    else:
        put(f"{opened.title}\n{_agreement(found)}\n{path}")
    check_tolerance(table)


def _agreement(found: Comparison) -> str:
    """How far the widest networks are from the limit, in one line."""
    widest = max(row.width for row in found.rows)
    rows = [row for row in found.rows if row.width == widest]
    close = sum(row.z <= 3 for row in rows)
    return f"width {widest}: {close} of {len(rows)} numbers within 3 standard errors of the limit"
