"""First steps as a headline, a table of parameters, read points, and a chart of powers of n."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from tpcalc.results import Exponent, FirstOrder, MeasuredSize, ParameterMove, ReadPoint
from tpcalc.results.first_order import kind_of
from tpcalc.views.answers.orders import size
from tpcalc.views.numbers import count, plain
from tpcalc.views.panels import Figure, Panel, Series
from tpcalc.views.tables import Cell, Table, number
from tpcalc.views.view import Judgement, Part, View, view

_LEVELS = {"may be unstable": "warn", "kernel": "limit", "feature learning": "good"}
MEANS = {
    "learns": ("", "its first step adds Θ(1) to the output"),
    "output later": ("", "its step adds Θ(1) to the output, but not the first one"),
    "inside only": ("", "it moves what functions read, and not the output"),
    "replaced": ("", "its first step is larger than what it is added to; a norm bounds it"),
    "slow": ("", "what it moves vanishes with the width"),
    "frozen": ("warn", "what it moves vanishes like 1/n or faster"),
    "exactly 0": ("warn", "it has no gradient"),
    "explodes": ("bad", "its step grows with the width"),
    "may explode": ("warn", "a bound on its step grows with the width"),
    "may explode later": ("warn", "a bound on its later steps grows with the width"),
}
_SIGNS = {"exact": "{}", "measured": "~ {}", "bound": "<= {}", "open": "<= {}?"}
_STATUS = (
    "Powers of n are exact; ~: measured at networks of finite width; <=: a bound; ?: a bound that "
    "they leave open. Later sizes, those inside and those at the start are bounds."
)
_READ_AS = (
    "Sizes are to first order in the rate that was given, slopes those of geometric means, ± one "
    "standard error. Two of these keep apart from the next half what agrees and what differs, of a "
    "bound only what lies above it; open: neither. A slope below its power may be a small "
    "coefficient: take wider networks."
)
FITS = ("agrees", "open", "differs")
_NAMED = 4
_Row = tuple[Cell | str, ...]


@view.register
def _(found: FirstOrder) -> View:
    facts = "; ".join(found.facts)
    headline = f"{found.word.capitalize()} at first order ({found.status}): {facts}"
    reasons = tuple(dict.fromkeys(_reasons(found)))
    said = Judgement(_LEVELS.get(found.word, "bad"), headline, reasons[:_NAMED])
    of = _alike(found.rows)
    groups = _grouped({name: _moves(row) for name, row in of.items()}, ".")
    rows = {names: of[first] for names, first in groups.items()}
    tables = (_parameters(rows), _points(found.points))
    part = Part("first", "First steps", _STATUS, tables, _figure(rows))
    more = () if found.width is None else (_measured(found),)
    return View.of(found, "First order", part, *more, said=said)


def _reasons(found: FirstOrder) -> Iterator[str]:
    """What grows or vanishes, and how large that is at a width, where it was measured."""
    for point in found.points:
        if found.word == "unstable at the start" and (point.size.constant or 0) > 0:
            yield f"{kind_of(point.name)} is {size(point.size)}{_value(point.start, found)}"
        if (point.change.constant or 0) > 0:
            change = _sized(point.change, point.status).text + _value(point.moved, found)
            yield f"{kind_of(point.name)} changes by {change}: {_names(map(kind_of, point.who))}"
    for row in found.rows:
        told = _value(row.measured, found)
        if told and ((row.output.constant or 0) > 0 or row.word in ("slow", "frozen")):
            power = _sized(row.output, row.status).text
            yield f"{kind_of(row.name)} ({row.word}) adds {power} to the output{told}"


def _value(told: MeasuredSize | None, found: FirstOrder) -> str:
    if told is None or told.value is None or found.width is None:
        return ""
    one = "" if told.one is None else f", 1 from n = {count(told.one)}"
    return f" (about {plain(told.value, 2)} at n = {count(found.width)}{one})"


def _measured(found: FirstOrder) -> Part:
    """What networks of finite width say, of equal blocks of the one that fits least."""
    rows = {kind_of(row.name): row for row in sorted(found.rows, key=_unfit)}
    points = {kind_of(point.name): point for point in sorted(found.points, key=_unfit)}
    sizes = [
        (kind, "to the output", _sized(row.output, row.status), row.measured)
        for kind, row in rows.items()
    ]
    for kind, own in points.items():
        change = _sized(own.change, own.status)
        sizes += [(kind, "at the start", _sized(own.size), own.start)]
        sizes += [(kind, f"by {kind_of(own.by)}", change, own.moved)]
    at = f"#At n = {count(found.width or 0)}"
    head = ("Of", "What", "#Power", "#Slope", "Slope and power", at)
    body = (
        (
            kind,
            what,
            power,
            slope(told),
            Cell(told.word, tone="warn" if told.word == "differs" else ""),
            "" if told.value is None else plain(told.value, 2),
        )
        for kind, what, power, told in sizes
        if told is not None
    )
    widths = dict.fromkeys(n for row in found.rows if row.measured for n in row.measured.widths)
    lead = f"Each parameter steps alone, at widths {', '.join(map(count, widths))}. {_READ_AS}"
    table = Table.of("Powers and slopes", head, body)
    return Part("measured", "First steps of explicit networks", lead, (table,), _sizes(rows))


def _unfit(own: ParameterMove | ReadPoint) -> int:
    told = [own.measured] if isinstance(own, ParameterMove) else [own.start, own.moved]
    return max((FITS.index(one.word) for one in told if one), default=0)


def _sizes(rows: Mapping[str, ParameterMove]) -> Figure | None:
    """A panel for each kind of parameter: what it adds against the width, the power beside it."""
    panels = []
    for kind, row in rows.items():
        told, power = row.measured, row.output.constant
        if told is not None and told.slope is not None and power is not None:
            dots = over_widths(told, "0", "networks")
            guide = power_of_width(told, power, "power of n, through the widest")
            title = f"{kind}: {row.output.raised('n')}"
            words = f"{title} against the width. {slope(told)}"
            panels.append(Panel(title, words, "width n", (dots, guide), True, True))
    note = "Geometric means over networks; bars: one standard error."
    title = "What a first step adds to the output"
    return Figure(title, note, tuple(panels)) if panels else None


def over_widths(told: MeasuredSize, colour: str | int, label: str) -> Series:
    """Sizes of networks of several widths, with their errors."""
    points = zip(told.widths, told.sizes, told.errors, strict=True)
    return Series.of(((n, y, y * error) for n, y, error in points), colour, "dots", label)


def power_of_width(told: MeasuredSize, power: Fraction, label: str) -> Series:
    """A power of the width through the size at the largest one."""
    size, last = told.sizes[-1], told.widths[-1]
    line = ((n, size * (n / last) ** float(power)) for n in told.widths)
    return Series.of(line, "limit", "dash", label)


def slope(told: MeasuredSize) -> str:
    """A slope with its standard error; nothing where there is none."""
    return "" if told.slope is None else f"{told.slope:.2f} ± {told.error:.2f}"


def _alike(rows: Iterable[ParameterMove]) -> dict[str, ParameterMove]:
    """Rows of equal blocks with the status of the least certain of them."""
    worst: dict[tuple[object, ...], str] = {}
    keyed = {row.name: (row, (kind_of(row.name), row.gradient, row.output)) for row in rows}
    for row, key in keyed.values():
        worst[key] = max(row.status, worst.get(key, row.status), key=[*_SIGNS].index)
    return {name: replace(row, status=worst[key]) for name, (row, key) in keyed.items()}


def _parameters(rows: Mapping[str, ParameterMove]) -> Table:
    used = dict.fromkeys(row.word for row in rows.values())
    legend = "; ".join(f"{word}: {MEANS[word][1]}" for word in used)
    lines = {row.line for row in rows.values()}
    files = {line.rpartition(":")[0] for line in lines}
    file = min(files) if len(files) == 1 < len(lines) else ""
    powers = ("#Gradient", "#Output", "#Later", "#Inside")
    head = ("Parameter", "Rate", *powers, "Where", "Word", len(lines) > 1 and "Line")
    body = (
        (names, *_moves(row)[:-1], row.line.removeprefix(f"{file}:")) for names, row in rows.items()
    )
    said = f"{legend}." if legend else "", f"Lines are those of {file}." if file else ""
    note = " ".join(filter(None, said))
    return Table.of("Parameters: what their steps add", head, body, note)


def _moves(row: ParameterMove) -> _Row:
    return (
        row.rate.raised("n"),
        _sized(row.gradient, row.status),
        _sized(row.output, row.status),
        _sized(row.later),
        _sized(row.inside),
        kind_of(row.where.removeprefix("argument of ")),
        Cell(row.word, tone=MEANS[row.word][0]),
        row.line,
    )


def _points(points: Iterable[ReadPoint]) -> Table:
    cells: dict[str, _Row] = {
        point.name: (
            _sized(point.size),
            _sized(point.change, point.status),
            _sized(point.later),
            _names(map(kind_of, point.who)),
        )
        for point in points
    }
    head = ("Read point", "#Start", "#Change", "#Later", "By")
    body = ((names, *cells[first]) for names, first in _grouped(cells, " (").items())
    return Table.of("What functions read", head, body, detail=True)


def _grouped(cells: Mapping[str, _Row], end: str) -> dict[str, str]:
    """Rows that say the same of equal blocks, and of parts of a layer: their names, the first."""
    same = Counter(name for name, _ in {(kind_of(name), own) for name, own in cells.items()})
    groups: dict[tuple[str, _Row], dict[str, str]] = {}
    for name, own in cells.items():
        shown = kind_of(name) if same[kind_of(name)] == 1 else name
        layer, mark, part = shown.rpartition(end)
        groups.setdefault((layer + mark, own), {}).setdefault(part, name)
    named = ((layer + _names(parts), parts) for (layer, _), parts in groups.items())
    return {label: next(iter(parts.values())) for label, parts in named}


def _sized(power: Exponent, status: str = "exact") -> Cell:
    unknown = power.exact is None and not power.is_zero
    sign = _SIGNS["exact" if unknown else status]
    return number(sign.format(size(power)))


def _names(names: Iterable[str]) -> str:
    every = list(dict.fromkeys(names))
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED + 1 else ""
    return ", ".join(every[: _NAMED if more else None]) + more


def _figure(rows: Mapping[str, ParameterMove]) -> Figure:
    """The powers of n in what a step adds to the output and changes inside, by parameter."""
    series: list[Series] = []
    for colour, name, shift in (("0", "output", -0.1), ("1", "inside", 0.1)):
        powers = [(k, getattr(row, name).constant) for k, row in enumerate(rows.values(), start=1)]
        points = [(k + shift, float(power)) for k, power in powers if power is not None]
        series += [Series.of(points, colour, "dots", name)] if points else []
    reach = ((0.6, 0.0), (len(rows) + 0.4, 0.0))
    guide = Series.of(reach, "limit", "dash", "n^0: it moves by Θ(1)")
    words = "; ".join(f"{k}: output {row.output}, inside {row.inside}" for k, row in rows.items())
    panel = Panel("Power of n", words, "parameter", (guide, *series))
    named = "; ".join(f"{k} is {names}" for k, names in enumerate(rows, start=1))
    note = f"Above the line a step grows with the width, below it vanishes. {named}."
    return Figure("What a first step of each parameter moves", note, (panel,))
