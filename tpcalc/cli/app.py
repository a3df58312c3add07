"""``tpcalc COMMAND``: the commands in one place."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from tpcalc.cli.exits import Exits, ends_in_order
from tpcalc.cli.option import answering

app = typer.Typer(
    name="tpcalc",
    cls=Exits,
    help="Infinite-width limits of neural networks and of their training.",
    epilog="For example: tpcalc report mlp --depth 4 --act tanh --param mup --lr 0.5 --steps 4. "
    "Exit codes: 0 fine; 1 a check says no (trivial, unstable, a guideline fails); 2 wrong usage; "
    "3 invalid program or file; 4 tolerance not met, undecided or no number; "
    "5 a backend is missing; 70 a fault of tpcalc; 130 interrupted; 143 terminated.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# The commands in the order in which --help lists them; each is the function of its file.
COMMANDS = (
    "orders check solve phases limit kernel sheet signal simulate compare report nlc advise "
    "nlnorm experiment recipe transfer sweep regularity show catalogue doctor warm"
)
for name in COMMANDS.split():
    command = getattr(import_module(f"tpcalc.cli.commands.{name}"), name)
    app.command("list" if name == "catalogue" else name)(answering(command))


def _version(asked: bool) -> None:
    if asked:
        import tpcalc

        typer.echo(tpcalc.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Infinite-width limits of neural networks and of their training."""


def main() -> None:
    """The entry point of the ``tpcalc`` command."""
    ends_in_order()
    app()
