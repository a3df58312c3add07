"""What a report says of activations: tables with a column for each, pictures of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tpcalc.results import Asymptote, Estimate, LengthMap, LengthPoint, Method, Sheet, Sheets
from tpcalc.views.numbers import SETTLED, Measure, measured, plain, settled
from tpcalc.views.panels import COLOURS, Figure, Panel, Series, told
from tpcalc.views.tables import Table
from tpcalc.views.view import Judgement, Part, View, view

# Kind, title, words on the horizontal axis, whether the axes are logarithmic.
_PANELS = (
    ("activation", "Activation", "s", False),
    ("length", "Length kernel L(λ)", "length λ of the input", True),
    ("covariance", "Normalized covariance kernel", "correlation c", False),
    ("nlc of length", "n(λ², 0)", "length λ of the input", True),
    ("nlc of covariance", "n(1, c)", "correlation c", False),
)
_IDENTITY = ("length", "covariance")


def sheet_figure(found: Sheets) -> Figure:
    """The panels of a page."""
    drawn = found.sheets[:COLOURS]
    panels = []
    for kind, title, x_label, log in _PANELS:
        series = [
            Series.of(zip(curve.x, curve.y, strict=True), index, "line", each.name)
            for index, each in enumerate(drawn)
            for curve in each.curves
            if curve.kind == kind and curve.x
        ]
        words = f"{title}. {told(series) or 'Nothing to draw.'}"
        x = [x for one in series for x in one.x]
        ends = (min(x), max(x)) if x else None
        if kind in _IDENTITY and ends:
            series.append(Series(ends, ends, (0.0, 0.0), "muted", "dash", "identity"))
        panels.append(Panel(title, words, x_label, tuple(series), log, log, x_ends=ends))
    error = max(curve.error for each in drawn for curve in each.curves)
    note = f"Errors of the curves are below {plain(max(error, 1e-15), 2)}, far below their width."
    return Figure("Activation and kernels", note, tuple(panels))


_SPLIT: tuple[tuple[str, Callable[[Sheet], Estimate | None]], ...] = (
    ("b = E τ(s)", lambda each: each.split.mean),
    ("a = E s τ(s)", lambda each: each.split.coefficient),
    ("E τ(s)²", lambda each: each.split.second),
    ("E τ′(s)²", lambda each: each.split.slope),
    ("Nonlinearity coefficient n(1, 0)", lambda each: each.split.nlc),
    ("the same of the nonlinear part", lambda each: each.split.rest_nlc),
    ("LAR, linear share", lambda each: each.split.linear),
    ("CAR, constant share", lambda each: each.split.constant),
    ("NAR, nonlinear share", lambda each: each.split.nonlinear),
)
_CASES = {
    "linear": "linear",
    "ordered": "case 1: ordered",
    "edge": "case 2: edge of chaos",
    "chaotic": "case 3: chaotic",
}
_FATES = {
    "linear": "linear",
    "ordered": "inputs become alike",
    "edge": "inputs become alike, slowly",
    "chaotic": "inputs that are nearly alike part",
}
_METHODS = {Method.EXACT: "closed form", Method.QUADRATURE: "quadrature, with a bound on the error"}


_STABILITY = (
    "λL′/L: below 1 a relative deviation of the length shrinks in a layer, above 1 it grows."
)

# What stands side by side: caption, first column, rows, what they are by, and what is shown.
_SIDES = (
    ("n(λ², 0) for inputs of length λ", "λ", ("lengths", "length", "nlc"), ""),
    ("Length kernel L(λ)", "λ", ("lengths", "length", "kernel"), ""),
    ("Gaussian stability number λL′/L", "λ", ("lengths", "length", "stability"), _STABILITY),
    ("Normalized covariance kernel", "c", ("correlations", "correlation", "kernel"), ""),
    ("n(1, c) for inputs of correlation c", "c", ("correlations", "correlation", "nlc"), ""),
)


def sheet_summary(found: Sheets) -> str:
    """One sentence for each activation: its coefficient, its case and what deep networks do."""
    return " ".join(
        f"{each.name}: nonlinearity coefficient n(1, 0) = {plain(each.split.nlc.value)}, "
        f"{_CASES[each.covariance.kind]}, Gaussian stability: {each.stability}."
        for each in found.sheets
    )


def judge_sheets(found: Sheets) -> Judgement:
    """How the numbers were found, and what deep networks of each activation do."""
    reasons = []
    for each in found.sheets:
        reasons += [f"{each.name}: {note}" for note in each.notes]
    unstable = [each.name for each in found.sheets if each.stability == "unstable"]
    if unstable:
        reasons.append(
            f"Unstable: {', '.join(unstable)}. Relative deviations of lengths near 1 grow from "
            "layer to layer, so that networks of finite width depart from the limit."
        )
    headline = "; ".join(f"{each.name}: {_FATES[each.covariance.kind]}" for each in found.sheets)
    return Judgement("warn" if unstable else "info", headline, tuple(reasons))


def sheet_tables(found: Sheets) -> tuple[Table, ...]:
    """All tables."""
    sheets = found.sheets

    def by(rows: str, at: str, pick: str) -> Iterable[tuple[str, list[str]]]:
        known = [{getattr(row, at): row for row in getattr(each, rows)} for each in sheets]
        for place in sorted(set().union(*known)):
            found = [own.get(place) for own in known]
            yield plain(place), [_estimate(getattr(row, pick)) if row else "" for row in found]

    if len(sheets) == 1:
        middle = _alone(sheets[0])
    else:
        middle = tuple(
            _table(caption, first, sheets, by(*rows), note) for caption, first, rows, note in _SIDES
        )
    split = [(word, [_estimate(of(each)) for each in sheets]) for word, of in _SPLIT]
    split.append(("Method", [_METHODS[each.split.nlc.method] for each in sheets]))
    parts = "Linear, constant and nonlinear part, for a standard Gaussian s"
    return (
        _table(parts, "", sheets, split, SETTLED),
        *middle,
        _table("At both ends", "", sheets, (*_starts(sheets), *_ends(sheets))),
        _table("Length kernel, layer after layer", "", sheets, _maps(sheets)),
        _table(
            "Covariance kernel, layer after layer",
            "",
            sheets,
            _covariances(sheets),
            "The depth scale is the number of layers over which a distance to the limit falls to "
            "1/e.",
        ),
    )


def _alone(each: Sheet) -> tuple[Table, ...]:
    """Of one activation the quantities stand beside each other."""
    head = ("λ", "Length kernel L(λ)", "Stability λL′/L", "n(λ², 0)")
    lengths = [
        (plain(row.length), *map(_estimate, (row.kernel, row.stability, row.nlc)))
        for row in each.lengths
    ]
    pairs = ("c", "Normalized covariance kernel", "n(1, c)")
    correlations = [
        (plain(row.correlation), _estimate(row.kernel), _estimate(row.nlc))
        for row in each.correlations
    ]
    return (
        _listed("Inputs of length λ", head, lengths, _STABILITY),
        _listed("Inputs of correlation c", pairs, correlations),
    )


def _listed(
    caption: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]], note: str = ""
) -> Table:
    return Table.of(caption, (head[0], *(f"#{name}" for name in head[1:])), rows, note)


def _table(
    caption: str,
    first: str,
    sheets: tuple[Sheet, ...],
    rows: Iterable[tuple[str, list[str]]],
    note: str = "",
) -> Table:
    names = (each.name for each in sheets)
    return _listed(caption, (first, *names), ((word, *found) for word, found in rows), note)


def _estimate(found: Estimate | None) -> str:
    return "none" if found is None else settled(found)


def _starts(sheets: tuple[Sheet, ...]) -> Iterable[tuple[str, list[str]]]:
    yield "L(0)", [plain(each.start) for each in sheets]
    slopes = [each.start_slope for each in sheets]
    yield "L′(0)", ["none" if slope is None else plain(slope) for slope in slopes]


def _ends(sheets: tuple[Sheet, ...]) -> Iterable[tuple[str, list[str]]]:
    for end, word in (("0", "n(λ², 0), λ → 0"), ("infinity", "n(λ², 0), λ → ∞")):
        yield word, [_end([part for part in each.asymptotes if part.end == end]) for each in sheets]


def _end(parts: list[Asymptote]) -> str:
    if not parts:
        return "not found"
    (part,) = parts
    power, factor = part.power, part.factor
    if part.derived:
        text = settled(factor)
        shown = text if power.value == 0 else f"{text} · λ^{plain(power.value)}"
        return f"{shown} ({part.reason})"
    shown = f"{plain(factor.value)} · λ^{plain(power.value)}"
    return f"{shown} (measured: the power to {plain(power.stderr, 1)})"


def _maps(sheets: tuple[Sheet, ...]) -> Iterable[tuple[str, list[str]]]:
    for index, word in enumerate(("L(λ)", "L(λ)/L(1)")):
        found = [each.maps[index] for each in sheets]
        yield word, [part.label for part in found]
        yield f"fixed points of {word}", [_points(part) for part in found]


def _points(found: LengthMap) -> str:
    if found.label == "identity":
        return "all lengths"
    said = "; ".join(_point(point) for point in found.points) or "none"
    return "; ".join((said, *found.notes))


def _point(point: LengthPoint) -> str:
    slope = "" if point.slope is None else f"slope {plain(point.slope.value)}, "
    rate = f", {point.rate}" if point.rate else ""
    return f"{_estimate(point.length)} ({slope}{point.kind}{rate})"


def _covariances(sheets: tuple[Sheet, ...]) -> Iterable[tuple[str, list[str]]]:
    maps = [each.covariance for each in sheets]
    yield "value at 0", [_estimate(part.start) for part in maps]
    yield "slope at 0", [_estimate(part.start_slope) for part in maps]
    yield "slope at 1", [_estimate(part.end_slope) for part in maps]
    yield "what becomes of correlations", [_case(part.kind, part.proof) for part in maps]
    yield "limit", [_estimate(part.limit) for part in maps]
    yield "slope at the limit", [_estimate(part.limit_slope) for part in maps]
    yield (
        "depth scale",
        [
            measured(
                Measure(part.depth_scale, part.depth_scale_error, part.limit_slope.method.value)
            )
            for part in maps
        ],
    )


def _case(kind: str, proof: str) -> str:
    return f"{_CASES[kind]} ({proof})" if kind == "edge" else _CASES[kind]


@view.register
def _(found: Sheets) -> View:
    lead = "Numbers hold for Gaussian inputs of a layer, in the limit of infinite width."
    part = Part("sheet", "Activations", lead, sheet_tables(found), sheet_figure(found))
    said, summary = judge_sheets(found), sheet_summary(found)
    return View.of(found, "Activations", part, said=said, summary=summary)


@view.register
def _(found: Sheet) -> View:
    return view(Sheets((found,)))
