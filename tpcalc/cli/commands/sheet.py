"""``tpcalc sheet ACTIVATION``: what an activation does to signals in wide networks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tpcalc.cli.exits import clean
from tpcalc.cli.flags import AsJson, ReportOut

if TYPE_CHECKING:
    from tpcalc.results import Sheets

__all__ = ["sheet"]

MOST = 6  # activations side by side, one colour each

Word = Annotated[
    str,
    typer.Argument(
        metavar="ACTIVATION",
        help="A name of the catalogue, with parameters after a colon: gelu, leaky_relu:0.2; a "
        "formula: z*tanh(z); or one of your own: file.py:name.",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        metavar="ACT,ACT,...",
        help="More activations, side by side; those with several parameters in brackets.",
    ),
]
Dilate = Annotated[str, typer.Option(metavar="D", help="Take the activation at D s + H.")]
Shift = Annotated[str, typer.Option(metavar="H", help="Take the activation at D s + H.")]
Debias = Annotated[
    bool, typer.Option("--debias", help="Subtract the mean under a standard Gaussian.")
]
Normalize = Annotated[
    bool, typer.Option("--normalize", help="Divide by the length under a standard Gaussian, last.")
]


@clean
def sheet(
    activation: Word,
    against: Against = None,
    dilate: Dilate = "1",
    shift: Shift = "0",
    debias: Debias = False,
    normalize: Normalize = False,
    out: ReportOut = None,
    as_json: AsJson = False,
) -> None:
    """What an activation does to signals: nonlinearity, lengths and correlations by layer."""
    from tpcalc.cli import payload
    from tpcalc.cli.activations import activation as activation_of
    from tpcalc.cli.places import check_place
    from tpcalc.cli.show import put, put_table
    from tpcalc.cli.values import rational
    from tpcalc.results import Sheets
    from tpcalc.results.codec import to_json
    from tpcalc.signal.activations.sheet import sheet as made

    if out is not None:
        check_place("--out", out, (".html", ".md"), "a report")
    names = _names(activation, against)
    wide, moved = float(rational("--dilate", dilate)), float(rational("--shift", shift))
    found = Sheets(
        tuple(
            made(activation_of(name), dilate=wide, shift=moved, debias=debias, normalize=normalize)
            for name in names
        )
    )
    title = ", ".join(each.name for each in found.sheets)
    if out is not None:
        _report(found, title, out)
    if as_json:
        model = {
            "activations": list(names),
            "dilate": wide,
            "shift": moved,
            "debias": debias,
            "normalize": normalize,
        }
        result: dict[str, Any] = {"sheets": [to_json(each) for each in found.sheets]}
        result |= {} if out is None else {"out": str(out)}
        made_by = payload.provenance(found.sheets[0].provenance)
        put(payload.document("sheet", model, result, made_by))
        return
    from tpcalc.report.terminal import sheet_group

    put_table(sheet_group(found), title)
    if out is not None:
        put(str(out))


def _names(first: str, against: str | None) -> tuple[str, ...]:
    """The activations, in order; a comma inside brackets does not part two of them."""
    import re

    from tpcalc.errors import UsageError

    more = [] if against is None else re.split(r",(?![^\[]*\])", against)
    names = (first, *(word.strip() for word in more))
    if "" in names:
        raise UsageError(f"--against: {against!r} holds an empty name.")
    if len(names) > MOST:
        raise UsageError(f"--against: at most {MOST} activations fit side by side.")
    return names


def _report(found: Sheets, title: str, out: Path) -> None:
    from tpcalc.report.page import write
    from tpcalc.report.record import ReportInput

    word = "Activation" if len(found.sheets) == 1 else "Activations"
    write(ReportInput(f"{word}: {title}", sheet=found), out)
