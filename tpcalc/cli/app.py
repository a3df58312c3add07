"""``tpcalc COMMAND``: the commands in one place."""

from __future__ import annotations

from typing import Annotated

import typer

from tpcalc.cli.commands.catalogue import catalogue
from tpcalc.cli.commands.check import check
from tpcalc.cli.commands.compare import compare
from tpcalc.cli.commands.doctor import doctor
from tpcalc.cli.commands.experiment import experiment
from tpcalc.cli.commands.kernel import kernel
from tpcalc.cli.commands.limit import limit
from tpcalc.cli.commands.nlc import nlc
from tpcalc.cli.commands.orders import orders
from tpcalc.cli.commands.phases import phases
from tpcalc.cli.commands.recipe import recipe
from tpcalc.cli.commands.regularity import regularity
from tpcalc.cli.commands.report import report
from tpcalc.cli.commands.sheet import sheet
from tpcalc.cli.commands.show import show
from tpcalc.cli.commands.signal import signal
from tpcalc.cli.commands.simulate import simulate
from tpcalc.cli.commands.solve import solve
from tpcalc.cli.commands.sweep import sweep
from tpcalc.cli.commands.transfer import transfer
from tpcalc.cli.commands.warm import warm
from tpcalc.cli.exits import Exits, ends_in_order
from tpcalc.cli.option import answering

app = typer.Typer(
    name="tpcalc",
    cls=Exits,
    help="Infinite-width limits of neural networks and of their training.",
    epilog="For example: tpcalc report mlp --depth 4 --act tanh --param mup --lr 0.5 --steps 4. "
    "Exit codes: 0 fine; 1 the check says no (trivial or unstable); 2 wrong usage; 3 invalid "
    "program or file; 4 tolerance not met, undecided or no number; 5 a backend is missing; "
    "70 a fault of tpcalc; 130 interrupted; 143 terminated.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    orders,
    check,
    solve,
    phases,
    limit,
    kernel,
    sheet,
    signal,
    simulate,
    compare,
    report,
    nlc,
    experiment,
    recipe,
    transfer,
    sweep,
    regularity,
    show,
    catalogue,
    doctor,
    warm,
):
    app.command("list" if command is catalogue else command.__name__)(answering(command))


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
