"""The settings of a study as arguments of the functions that compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import typer

from tpcalc.cli.show import progress_bar
from tpcalc.errors import UsageError

if TYPE_CHECKING:
    from tpcalc.cli.flags import Flags
    from tpcalc.questions.orders import Orders
    from tpcalc.results import (
        Card,
        DepthTable,
        FiniteTable,
        LimitTable,
        ModuleCheck,
        OrderTable,
        Suggestion,
        Theorems,
        Verdict,
    )
    from tpcalc.study import Model, Network, Study

Point = Mapping[str, Fraction]

WIDTH, NETWORKS = 40, 16  # of networks whose start is drawn, where none are asked for

# What a network reports to questions about orders: the contributions of updates as well.
WATCHED = ("h", "x", "dh", "dx", "dW_x", "dB")


def limit_of(
    model: Model, formulas: Sequence[str] = (), given: Mapping[str, float] | None = None
) -> LimitTable:
    """The limits of a model, with a bar."""
    from tpcalc.questions import studies

    with progress_bar("limit") as progress:
        return studies.limit_of(model, formulas, given, progress)


def depths_of(
    network: Network, depths: Sequence[str] = (), places: Sequence[float] = ()
) -> DepthTable:
    """A run of L blocks at some depths, with a bar."""
    from tpcalc.questions import studies

    with progress_bar("limit in the depth") as progress:
        return studies.depths_of(network, depths, places, progress or _beforehand)


def _beforehand(fraction: float, text: str) -> None:
    """Say how long a run takes where no bar shows it."""
    if not fraction and "about" in text:
        typer.echo(text, err=True)


def with_drawn(network: Network, table: DepthTable, places: Sequence[float]) -> DepthTable:
    """The start at numbers of blocks with networks of finite width beside it, where there are."""
    from tpcalc.questions.depth.simulate import depth_simulate

    part = network.study.simulate
    typed = part.model_fields_set
    widths = part.widths if "widths" in typed else (WIDTH,)
    seeds = NETWORKS if part.seeds is None else part.seeds
    asked = [(int(depth), width) for depth in table.depths if depth.isdigit() for width in widths]
    given: dict[str, Any] = {"seed": part.seed, "threads": part.threads, "places": places}
    drawn = []
    try:
        with progress_bar("finite networks") as progress:
            for place, (depth, width) in enumerate(asked):
                if progress is not None:
                    progress(place / len(asked), f"L = {depth}, n = {width}")
                drawn.append(depth_simulate(network.training.network, depth, width, seeds, **given))
    except UsageError as error:  # other blocks are sampled at infinite width alone
        return replace(table, notes=(*table.notes, f"no networks: {error.message}"))
    return replace(table, samples=tuple(drawn))


def networks_of(model: Model) -> FiniteTable:
    """The same program at finite widths, with a bar."""
    from tpcalc.questions import studies

    with progress_bar("finite networks") as progress:
        return studies.networks_of(model, progress)


def coordinates_of(network: Network) -> ModuleCheck:
    """First steps of the modules themselves, at finite widths."""
    from tpcalc.questions.coordinate_check import WIDTHS, coordinate_check

    part = network.study.simulate
    widths = part.widths if "widths" in part.model_fields_set else WIDTHS
    asked: dict[str, Any] = {} if part.seeds is None else {"seeds": part.seeds}
    with progress_bar("modules") as progress:
        return coordinate_check(network.training, widths=widths, seed=part.seed, progress=progress,
                                **asked)  # fmt: skip


def suggested(network: Network, base: int, width: int | None) -> Suggestion:
    """What to write instead, of modules."""
    from tpcalc.questions.suggest import suggest

    asked: dict[str, Any] = {} if width is None else {"width": width}
    return suggest(network.training, base=base, **asked)


def orders_of(model: Model, at: Point, verify: bool, budget: Fraction | None = None) -> Orders:
    """The orders of all outputs of a model."""
    from tpcalc.questions.orders import width_orders

    part = model.study.limit
    own: dict[str, Any] = {"values": part.values, "at": at or None}
    return width_orders(model.program, budget=budget, verify=verify, seed=part.seed, **own)


def slopes_of(study: Study, orders: Orders) -> OrderTable:
    """Orders beside slopes measured at finite widths: those of the study where it has some."""
    from tpcalc.questions.measure import measure

    part = study.simulate
    widths = part.widths if "widths" in part.model_fields_set else None
    seeds = part.seeds if "seeds" in part.model_fields_set else None
    with progress_bar("finite networks") as progress:
        return measure(orders, widths=widths, seeds=seeds, progress=progress)


def theorems_of(network: Network, verdict: Verdict) -> Theorems:
    """What theorems say of a network, beside a verdict that is known."""
    from tpcalc.results import Theorems
    from tpcalc.theorems.integrable.predicates.registry import applicable

    if verdict.at != "width":
        from tpcalc.theorems.resnets import about_the_start

        asked = network.training.network
        return Theorems(() if verdict.steps else about_the_start(asked), verdict.provenance)
    return Theorems(applicable(network.training, verdict=verdict), verdict.provenance)


def card_of(network: Network, limits: LimitTable) -> Card:
    """Everything about the parameterization of a network whose limits are known."""
    from tpcalc.theorems.card import card

    with progress_bar("orders"):
        return card(network.training, seed=network.study.limit.seed, limits=limits)


def check_measured(flags: Flags, measured: bool) -> None:
    """Refuse settings of finite networks where none are run."""
    typed = [flag.name for flag in flags if flag.name in ("--widths", "--seeds")]
    if typed and not measured:
        raise UsageError(
            f"{', '.join(typed)}: finite networks are run with --measure only.",
            hint="Add --measure.",
        )
