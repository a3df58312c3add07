"""What a report says of networks of many blocks along their depth, and of their best rates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tpcalc.results import DepthExperiment, Estimate, Method, Profile, Reference
from tpcalc.results.data import grouped
from tpcalc.views.answers.growth import growth_figure, growth_lead, growth_tables, same
from tpcalc.views.answers.transfer import short, transfer_figure, transfer_lead, transfer_tables
from tpcalc.views.numbers import plain
from tpcalc.views.panels import COLOURS, Figure, Panel, Series
from tpcalc.views.tables import Cell, Table, numbers, texts
from tpcalc.views.view import Judgement, Part, View, view

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
        lines = ((what, Cell(why, "sentence")) for what, why in found.lacking)
        tables.append(Table.of("No numbers", texts("Network", "Why"), lines))
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
        shown, agrees = (
            "" if value is None else _found(value),
            same(_agrees(found, one), "not asked"),
        )
        rows.append((one.where, what, plain(one.value, 7), shown, agrees))
    head = texts("Where", "What") + numbers("Reference", "Found") + texts("Same")
    yield Table.of("Reference numbers", head, rows)


def _profiles(what: str, rows: Sequence[Profile]) -> Table:
    title, axis, _ = _WORDS[what]
    places = sorted({row.place for row in rows})
    known = {(r.recipe, r.depth, r.width, r.step, r.place): r.value for r in rows}
    lines = dict.fromkeys((row.recipe, row.depth, row.width, row.step) for row in rows)
    return Table.of(
        f"{title}, by {axis}",
        texts("Recipe") + numbers("L", "Width", "Step", *(plain(place, 4) for place in places)),
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
            points = [(row.place, row.value) for row in line]
            name = f"n = {width}" if widths else f"L = {depth}"
            series.append(_series(points, labels.index(width if widths else depth), width, name))
        words = f"{title}, {recipe}, step {step}: {len(series)} lines over the {axis}."
        name = f"{title}: {recipe}, step {step}"
        yield Panel(name, words, axis, tuple(series), log, what == "distance", True)


def _series(ends: Iterable[tuple[float, Estimate]], ink: int, width: str, label: str) -> Series:
    line = width == "oo"
    points = ((x, one.value, 0.0 if line else one.stderr) for x, one in ends)
    return Series.of(points, str(ink % COLOURS), "line" if line else "dots", label)


@view.register
def _(found: DepthExperiment) -> View:
    drawn = depth_experiment_figures(found)
    lead, tables = depth_experiment_lead(found), depth_experiment_tables(found)
    titles = {"start": "At the start", "transfer": "Learning rates"}
    more = (Part(key, title, figure=drawn[key]) for key, title in titles.items() if key in drawn)
    parts = (Part("blocks", found.title, lead, tables, drawn.get("blocks")), *more)
    said = judge_depth_experiment(found)
    return View(found.title, said, f"{said.headline}.", parts, found.notes, found.provenance)
