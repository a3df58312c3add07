"""What a report says of networks of many blocks along their depth, and of their best rates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from tpcalc.results import (
    DepthExperiment,
    Estimate,
    LossRow,
    Method,
    Optimum,
    Profile,
    Reference,
    Transfer,
)
from tpcalc.results.data import grouped
from tpcalc.views.answers.growth import growth_figure, growth_lead, growth_tables, same
from tpcalc.views.numbers import plain
from tpcalc.views.panels import Figure, Panel, Series
from tpcalc.views.tables import Table
from tpcalc.views.view import Judgement, Part, View, view

OO = "oo"
_BEST = (
    "Bands: two standard errors. Points: the least loss, with the rates between which the best one "
    "lies. Losses far above the others are left out; a least one far below them is drawn nearer."
)
_EDGE = "At an edge of the rates that were tried the least loss may lie outside: try more of them."
_SPREAD = "±: one standard error, over networks or samples. Without it: to the digits shown."
_FAR = 100  # times as large as the loss at the smallest rate
_ERRORS = 2  # standard errors of a band


def transfer_lead(found: Transfer) -> str:
    """How far the best rates move, recipe by recipe."""
    return " ".join([*_by_depth(found), *_by_width(found)])


def _by_depth(found: Transfer) -> Iterable[str]:
    for (recipe, width), own in grouped(found.optima, lambda one: (one.recipe, one.width)).items():
        slopes = [one.slope for one in own if one.slope is not None]
        if slopes:
            wide = "" if width == OO else f" at width {width}"
            yield f"With {recipe}{wide} the best rate goes like L^({slopes[-1]:.3g}) at the end."


def _by_width(found: Transfer) -> Iterable[str]:
    for (recipe, depth), own in grouped(found.optima, lambda one: (one.recipe, one.depth)).items():
        if len(own) > 1:
            slopes = [one.width_slope for one in own if one.width_slope is not None]
            power = f"the best rate goes like n^({slopes[-1]:.3g}) at the end; " if slopes else ""
            lows, highs = (
                [end for one in own if (end := getattr(one, side))] for side in ("low", "high")
            )
            low, high = max(lows, default=None), min(highs, default=None)
            said = f"a rate in {_span(low, high)} may be best at all widths"
            if low and high and low >= high:
                said = "the intervals of some widths are apart"
            deep = f", L = {depth}," if depth else ""
            yield f"With {recipe}{deep} {power}{said}."


def transfer_tables(found: Transfer) -> tuple[Table, ...]:
    """The best rates, losses by rate, and what has no loss."""
    deep = _deep(found)
    numbers = ("#Best rate", "#Between", "#Loss", deep and "#Slope in L", "?#Slope in n")
    head = ("Recipe", "?#L", "#Width", deep and "#Multiplier", *numbers, "How")
    edges = {one: _edge(found, one) for one in found.optima}
    rows = [
        (one.recipe, one.depth, one.width, plain(one.multiplier, 4), plain(one.rate, 6),
         _between(one), short(one.loss), *map(_slope, (one.slope, one.width_slope)),
         one.how + edges[one])
        for one in found.optima
    ]  # fmt: skip
    caption = f"Best learning rates: {found.measured}"
    notes = [*found.notes, _EDGE] if any(edges.values()) else found.notes
    tables = [Table.of(caption, head, rows, " ".join(notes)), _by_rate(found)]
    lost = [row for row in found.rows if row.loss is None]
    if lost:
        tables.append(_lost(lost))
    return tuple(tables)


def _by_rate(found: Transfer) -> Table:
    """A line for each rate of the best multiplier, a column for each width."""
    widths = list(dict.fromkeys(row.width for row in found.rows))
    lines: dict[tuple[str, str, str, float], dict[str, str]] = {}
    for row in found.rows:
        own = row.recipe, row.depth, plain(row.multiplier, 4), row.rate
        lines.setdefault(own, {})[row.width] = short(row.loss)
    deep = (_deep(found) and name for name in ("#L", "#Multiplier"))
    head = ("Recipe", *deep, "#Rate", *(f"#n = {width}" for width in widths))
    body = (
        (*own, plain(rate, 4), *(cells.get(width, "") for width in widths))
        for (*own, rate), cells in lines.items()
    )
    return Table.of("Losses by rate", head, body, _SPREAD, detail=True)


def _lost(rows: Sequence[LossRow]) -> Table:
    """One line for each recipe, depth and width, with the smallest rate that has no loss."""
    cells = grouped(sorted(rows, key=lambda row: row.rate), _place)
    body = ((*place, plain(first.rate, 4), first.note) for place, (first, *_) in cells.items())
    return Table.of("Without a loss", ("Recipe", "?#L", "#Width", "#From the rate", "~Why"), body)


def _slope(value: float | None) -> str:
    return "" if value is None else plain(value, 3)


def _between(one: Optimum) -> str:
    if one.how == "minimised" and one.low is not None:
        return f"± {plain(one.rate - one.low, 2)}"
    return _span(one.low, one.high)


def _span(low: float | None, high: float | None) -> str:
    ends = ("?" if end is None else plain(end, 4) for end in (low, high))
    return " .. ".join(ends)


def _edge(found: Transfer, one: Optimum) -> str:
    """Whether the best of the rates that were tried is the first or the last of them."""
    own = [row.rate for row in found.rows if _place(row) == _place(one)]
    first, last = one.rate <= min(own, default=0), one.rate >= max(own, default=one.rate)
    return ", edge" if (first and one.low is None) or (last and one.high is None) else ""


def _place(one: Optimum | LossRow) -> tuple[str, str, str]:
    return one.recipe, one.depth, one.width


def _deep(found: Transfer) -> bool:
    return any(row.depth for row in found.rows)


def short(value: Estimate | None) -> str:
    """A number in a column of many: with its error where it is sampled."""
    if value is None:
        return ""
    if value.method in (Method.PARTICLES, Method.FINITE):
        return f"{plain(value.value, 4)} ± {plain(value.stderr, 2)}"
    return plain(value.value, 6)


def transfer_figure(found: Transfer) -> Figure:
    """Losses against learning rates: a line for each width, or where there is one, each depth."""
    return Figure("Loss against learning rate", _BEST, tuple(_panels(found)))


def _panels(found: Transfer) -> Iterable[Panel]:
    best = {_place(one): one for one in found.optima}
    widths = len({row.width for row in found.rows}) > 1
    panels: dict[tuple[str, str], dict[str, list[LossRow]]] = {}
    for row in found.rows:
        own = best.get(_place(row))
        if row.loss is not None and own is not None and row.multiplier == own.multiplier:
            beside, line = (row.depth, row.width) if widths else (row.width, row.depth)
            panels.setdefault((row.recipe, beside), {}).setdefault(line, []).append(row)
    for (recipe, beside), lines in panels.items():
        deep = (
            f"L = {beside}" if widths else f"width {beside}".replace("width oo", "infinite width")
        )
        title = f"{recipe}, {deep}" if beside else recipe
        words = f"{found.measured} against the learning rate, {title}."
        # Losses above say how far a run that diverges went, and would flatten all others.
        top = _FAR * median(_losses(rows)[0].value for rows in lines.values())
        series: list[Series] = []
        for ink, (line, rows) in enumerate(lines.items()):
            colour = "limit" if widths and line == OO else ink
            label = f"n = {line}" if widths else f"L = {line}" if line else f"n = {beside}"
            series += _line(rows, best[_place(rows[0])], top, colour, label)
        yield Panel(title, words, "learning rate", tuple(series), True, top > 0, True)


def _losses(rows: Iterable[LossRow]) -> list[Estimate]:
    return [row.loss for row in rows if row.loss is not None]


def _line(
    rows: Sequence[LossRow], best: Optimum, top: float, colour: str | int, label: str
) -> Iterable[Series]:
    """The losses with their band, and the best rate on the bar of its interval."""
    losses = _losses(rows)
    pairs = [(row.rate, one) for row, one in zip(rows, losses, strict=True) if one.value <= top]
    points = ((rate, one.value, _ERRORS * one.stderr) for rate, one in pairs)
    yield Series.of(points, colour, "line", label)
    height = max(best.loss.value, min(loss.value for loss in losses) / _FAR)
    if height <= top:
        ends = (best.low or rows[0].rate, best.rate, best.high or rows[-1].rate)
        yield Series.of(((rate, height) for rate in ends), colour, "dash", label)
        yield Series.of([(best.rate, height)], colour, "dots", label)


@view.register
def _(found: Transfer) -> View:
    lead, tables, drawn = transfer_lead(found), transfer_tables(found), transfer_figure(found)
    part = Part("transfer", "Learning rates", lead, tables, drawn if drawn.panels else None)
    return View("Best learning rates", None, "", (part,), (), found.provenance)


_WORDS = {
    "size": ("Root mean square of the stream", "share of the depth", False),
    "distance": ("Distance of features", "distance in the depth", True),
    "slope": ("Local slope of distances", "distance in the depth", True),
}
_NOTE = "Lines: infinite width; dots: networks, with standard errors."
_Z = 5  # standard errors beyond which a reference number is another one


def judge_depth_experiment(found: DepthExperiment) -> Judgement:
    """The headline."""
    agree = [_agrees(found, one) for one in found.references]
    agree += [one.same for one in found.agreements]
    known, apart = len(agree) - agree.count(None), agree.count(False)
    lacking = tuple(f"{own}: {why}" for own, why in found.lacking)
    what = "numbers of networks and references" if found.agreements else "reference numbers"
    if apart:
        return Judgement("warn", f"{apart} of {known} {what} differ", lacking)
    if known:
        return Judgement("good", f"All {known} {what} are found", lacking)
    return Judgement("warn" if lacking else "info", found.title, lacking)


def depth_experiment_lead(found: DepthExperiment) -> str:
    """One sentence on each part."""
    parts = [found.source and f"{found.source}.", growth_lead(found)]
    if found.transfer is not None:
        parts.append(transfer_lead(found.transfer))
    return " ".join(filter(None, parts))


def depth_experiment_tables(found: DepthExperiment) -> tuple[Table, ...]:
    """Reference numbers, numbers along the depth, best rates, what is lacking."""
    tables = [*_references(found), *growth_tables(found)]
    tables += [_profiles(what, rows) for what, rows in _by_what(found)]
    if found.transfer is not None:
        tables += transfer_tables(found.transfer)
    if found.lacking:
        tables.append(Table.of("No numbers", ("Network", "~Why"), found.lacking))
    return tuple(tables)


def _by_what(found: DepthExperiment) -> Iterable[tuple[str, list[Profile]]]:
    known = grouped(found.profiles, lambda row: row.what)
    return ((what, known[what]) for what in _WORDS if what in known)


def _agrees(found: DepthExperiment, one: Reference) -> bool | None:
    value = found.beside(one)
    if value is None:
        return None
    sampled = value.method in (Method.PARTICLES, Method.FINITE)
    off = _Z * value.stderr if sampled else value.stderr
    return abs(value.value - one.value) <= off + one.digits


def _references(found: DepthExperiment) -> Iterable[Table]:
    if not found.references:
        return
    rows = []
    for one in found.references:
        value = found.beside(one)
        place = "" if one.what == "rate" else f", step {one.step}, at {plain(one.place, 6)}"
        what = f"{one.what}, {one.recipe}, L = {one.depth}{place}"
        if one.name:
            at = f" at {plain(one.place, 4)}" if one.what == "quantile" else ""
            what = f"{one.what} of {one.name}{at}, {one.along}, alpha = {one.alpha}, L = "
            what += f"{one.depth}, n = {one.width}"
        shown = "" if value is None else _found(value)
        agrees = same(_agrees(found, one), "not asked")
        rows.append((one.where, what, plain(one.value, 7), shown, agrees))
    head = ("Where", "What", "#Reference", "#Found", "Same")
    yield Table.of("Reference numbers", head, rows)


def _profiles(what: str, rows: Sequence[Profile]) -> Table:
    title, axis, _ = _WORDS[what]
    places = sorted({row.place for row in rows})
    known = {(r.recipe, r.depth, r.width, r.step, r.place): r.value for r in rows}
    lines = dict.fromkeys((row.recipe, row.depth, row.width, row.step) for row in rows)
    return Table.of(
        f"{title}, by {axis}",
        ("Recipe", "#L", "#Width", "#Step", *(f"#{plain(place, 4)}" for place in places)),
        (
            (*line[:3], str(line[3]), *(short(known.get((*line, place))) for place in places))
            for line in lines
        ),
        _sure(rows),
    )


def _found(value: Estimate) -> str:
    error = "" if value.stderr == 0 else f" ± {plain(value.stderr, 2)}"
    return f"{plain(value.value, 7)}{error} ({value.method.value})"


def _sure(rows: Sequence[Profile]) -> str:
    """How sure the numbers of a table are."""
    known = [row.value for row in rows if row.value.method is not Method.PARTICLES]
    text = ""
    if known:
        worst = max(value.stderr for value in known)
        bound = f"with errors of at most {plain(worst, 2)}" if worst else "exact to rounding"
        text = f"Without ±: infinite width, {bound}."
    if len(known) < len(rows):
        text += " ± is a standard error, over networks or samples."
    return text.strip()


def depth_experiment_figures(found: DepthExperiment) -> dict[str, Figure]:
    """The figures, by the key of their section."""
    figures = {}
    panels = [panel for what, rows in _by_what(found) for panel in _along(what, rows)]
    if panels:
        figures["blocks"] = Figure("Along the depth", _NOTE, tuple(panels))
    start = growth_figure(found)
    if start is not None:
        figures["start" if panels else "blocks"] = start
    if found.transfer is not None:
        figures["transfer" if figures else "blocks"] = transfer_figure(found.transfer)
    return figures


def _along(what: str, rows: Sequence[Profile]) -> Iterable[Panel]:
    title, axis, log = _WORDS[what]
    widths = len({row.width for row in rows}) > 2
    for (recipe, step), own in grouped(rows, lambda row: (row.recipe, row.step)).items():
        lines = grouped(own, lambda row: (row.depth, row.width))
        labels = list(dict.fromkeys(width if widths else depth for depth, width in lines))
        series = []
        for (depth, width), line in lines.items():
            name, told = ("n", width) if widths else ("L", depth)
            shape = "line" if width == OO else "dots"
            points = ((row.place, row.value) for row in line)
            series.append(Series.of(points, labels.index(told), shape, f"{name} = {told}"))
        words = f"{title}, {recipe}, step {step}: {len(series)} lines over the {axis}."
        name = f"{title}: {recipe}, step {step}"
        yield Panel(name, words, axis, tuple(series), log, what == "distance", True)


@view.register
def _(found: DepthExperiment) -> View:
    lead, tables = depth_experiment_lead(found), depth_experiment_tables(found)
    parts = (
        Part("blocks", found.title, lead, tables),
        Part("start", "At the start"),
        Part("transfer", "Learning rates"),
    )
    said, drawn = judge_depth_experiment(found), depth_experiment_figures(found)
    summary = f"{said.headline}."
    return View.of(found, found.title, *parts, said=said, summary=summary, figures=drawn)
