"""``tpcalc report MODEL --out FILE``: limit, finite networks and their comparison on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpcalc.cli.flags import (
    ASKED,
    DATA,
    DEVICE,
    LIMIT,
    MODULE,
    NETWORK,
    RUN,
    SIMULATE,
    Flags,
    takes,
)
from tpcalc.cli.option import many
from tpcalc.errors import UsageError
from tpcalc.names import layered, stepped

if TYPE_CHECKING:
    from tpcalc.results import Card, Comparison, LimitTable
    from tpcalc.study import Model
    from tpcalc.study.model import Network


# The first passes and the first updated one show every rule; later steps repeat them, longer.
FORMULAS = (
    *(layered(what, "?", step, 0) for what, step in (("h", 0), ("dh", 0), ("h", 1))),
    stepped("f", 1, 0),
)


@many
@takes(NETWORK, MODULE, DATA, LIMIT, SIMULATE, ASKED, RUN, DEVICE)
def report(
    model: str,
    flags: Flags,
    out: Path = Path("report.html"),
    versus: str | None = None,
    as_json: bool = False,
) -> None:
    """What a network does: verdict, exponents, theorems, limits, finite networks, on one page."""
    from tpcalc.cli import payload
    from tpcalc.cli.depths import deep
    from tpcalc.cli.show import check_place, check_tolerance, put
    from tpcalc.questions.studies import check_seeds
    from tpcalc.study import open_model
    from tpcalc.views.page import write
    from tpcalc.views.record import ReportInput

    check_place("--out", out, (".html", ".md"), "a report")
    asked = deep(model, flags)
    opened: Model | Network
    other = limits = None
    if asked is not None:
        opened = asked[0]
        parts, told, lines = _deep(*asked, versus)
    else:
        opened = open_model(model, flags)
        check_seeds(opened)
        other = None if versus is None else _other(model, flags, versus, opened)
        parts, told, lines = _whole(opened, other)
        limits = told["limit"]
    title = opened.title[0].upper() + opened.title[1:]
    beside = "" if other is None else f", beside {other.name}"
    path = write(ReportInput(title=title + beside, **parts), out)
    if as_json:
        result = {"path": str(path), **{key: payload.result(own) for key, own in told.items()}}
        made = payload.provenance(told["check" if limits is None else "compare"].provenance)
        put(payload.document("report", opened.description, result, made))
    else:
        put("\n".join([opened.title, *lines, str(path)]))
    if limits is not None:
        check_tolerance(limits)


Parts = dict[str, Any]  # fields of a report
Told = tuple[Parts, Parts, list[str]]  # what JSON tells besides, and lines


def _whole(opened: Model, other: Card | None) -> Told:
    """The report of a model, beside another parameterization of its network."""
    from tpcalc.cli.runs import limit_of, networks_of, orders_of
    from tpcalc.questions.compare import compare
    from tpcalc.questions.losses import with_losses

    own = opened.network is None
    table = limit_of(opened, ("*",) if own else FORMULAS)
    card, why = _card(opened, table)
    sizes: Parts = {"orders": orders_of(opened, {}, True).table} if own else {}
    finite = networks_of(opened)
    found = compare(table, finite)
    shown = table, finite
    if opened.network is not None and opened.study.training.steps:
        shown = with_losses(opened.network.training, table, finite)
    parts = {
        "model": {**opened.facts, **({"Verdict": why} if why else {})},
        "program_words": opened.words,
        "program_text": str(opened.program),
        "formulas": opened.formulas,
        "limit": shown[0],
        "finite": shown[1],
        "comparison": found,
        "input_names": opened.input_names,
        **sizes,
        **_answers(replace(card, finite=finite) if card else None, other),
    }
    told = {"limit": table, "compare": found, **sizes, **_answers(card, None)}
    told |= {} if other is None else {"versus": other.check}
    verdicts = [f"{each.name}: {each.check.verdict}" for each in (card, other) if each]
    return parts, told, [*verdicts, _agreement(found)]


def _deep(network: Network, depths: Sequence[str], versus: str | None) -> Told:
    """The report of a network of L blocks."""
    from tpcalc.cli.depths import page

    if versus is not None:
        raise UsageError("--versus is for networks of a depth that is a number.",
                         hint="Give --depth a number, or write two reports.")  # fmt: skip
    parts = page(network, depths)
    told = {"check": parts["check"], "limit": parts["depths"]}
    return parts, told, [parts["check"].verdict]


def _card(opened: Model, limits: LimitTable) -> tuple[Card | None, str]:
    """The card of a network that is trained; of another model none, and why where one asks."""
    from tpcalc.cli.runs import card_of

    if opened.network is None or not opened.study.training.steps:
        return None, ""
    if opened.study.limit.values:
        return None, "none is made: its powers are symbols. Write numbers in their place."
    try:
        return card_of(opened.network, limits), ""
    except UsageError as error:  # a network that no verdict is made of has a limit all the same
        return None, f"none is made: {error.message}"


def _answers(card: Card | None, other: Card | None) -> dict[str, Any]:
    """What a card adds to a report, by field."""
    from tpcalc.results import Contrast

    if card is None:
        return {}
    beside = {"theorems": card.theorems, "versus": Contrast(card, other) if other else None}
    found = {key: part for key, part in beside.items() if part is not None}
    return {"check": card.check, "orders": card.orders, **found}


def _other(model: str, flags: Flags, versus: str, opened: Model) -> Card:
    """The card of the other parameterization, with limits and networks of the same outputs."""
    from tpcalc.cli.runs import card_of, limit_of, networks_of
    from tpcalc.study import Flag, open_model

    if opened.network is None or not opened.study.training.steps:
        raise UsageError(
            "--versus puts two trained networks side by side, and this model is not one.",
            hint="Give an architecture of the catalogue or a study file, and steps.",
        )
    others = [flag for flag in flags if flag.key not in ("model.param", "model.p")]
    second = open_model(model, [*others, Flag("--versus", "model.param", versus)])
    assert second.network is not None
    if second.network.parameterization.text == opened.network.parameterization.text:
        raise UsageError(
            f"--versus: both parameterizations are {versus}.", hint="Name another one."
        )
    return replace(card_of(second.network, limit_of(second)), finite=networks_of(second))


def _agreement(comparison: Comparison) -> str:
    """How far the widest networks are from the limit, in one line."""
    if not comparison.rows:
        return "no number of the limit is compared"
    widest = max(row.width for row in comparison.rows)
    rows = [row for row in comparison.rows if row.width == widest]
    close = sum(abs(row.z) <= 3 for row in rows)
    return f"width {widest}: {close} of {len(rows)} numbers within z = 3 of the limit"
