"""``tpcalc sheet ACTIVATION``: what an activation does to signals in wide networks."""

from __future__ import annotations

from pathlib import Path

MOST = 6  # activations side by side, one colour each


def sheet(
    activation: str,
    against: str | None = None,
    dilate: str = "1",
    shift: str = "0",
    debias: bool = False,
    normalize: bool = False,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """What an activation does to signals: nonlinearity, lengths and correlations by layer."""
    from tpcalc.cli.show import answer, check_page, write_page
    from tpcalc.cli.values import activation as activation_of
    from tpcalc.cli.values import rational
    from tpcalc.meanfield.sheet import sheet as made
    from tpcalc.results import Sheets

    check_page(out)
    names = _names(activation, against)
    wide, moved = float(rational("--dilate", dilate)), float(rational("--shift", shift))
    found = Sheets(
        tuple(
            made(activation_of(name), dilate=wide, shift=moved, debias=debias, normalize=normalize)
            for name in names
        )
    )
    title = ", ".join(each.name for each in found.sheets)
    write_page(out, f"{'Activation' if len(names) == 1 else 'Activations'}: {title}", found)
    model = {
        "activations": list(names),
        "dilate": wide,
        "shift": moved,
        "debias": debias,
        "normalize": normalize,
    }
    answer("sheet", model, found, title, as_json, written={"out": out})


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
