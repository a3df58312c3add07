"""``tpcalc list``: what the catalogue holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tpcalc import checks

if TYPE_CHECKING:
    from rich.console import Group


def catalogue(kind: str | None = None, as_json: bool = False) -> None:
    """Activations, networks, parameterizations, optimizers, schedules, losses, with sources."""
    from tpcalc.cli import payload
    from tpcalc.cli.show import put, put_table
    from tpcalc.study.program_file import catalogue as entries

    found = entries()
    if kind is not None:
        checks.one_of("kind of entry", kind, found)
        found = {kind: found[kind]}
    if as_json:
        put(payload.document("list", {}, found))
    else:
        put_table(_tables(found))


def _tables(found: dict[str, list[dict[str, Any]]]) -> Group:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    tables = []
    for kind, entries in found.items():
        table = Table(title=Text(kind), title_justify="left", title_style="bold", box=box.SIMPLE)
        for column in ("Name", "Also", "What", "Parameters", "Source"):
            table.add_column(column, overflow="fold", no_wrap=column == "Name")
        for entry in entries:
            cells = (
                entry["name"],
                ", ".join(entry["aliases"]),
                entry["text"],
                ", ".join(entry["parameters"]),
                entry["source"],
            )
            table.add_row(*map(Text, cells))
        tables.append(table)
    return Group(*tables)
