"""What a report says of residual networks at the start: ratios of norms, diagrams, paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from tpcalc.results import Agreement, DepthExperiment, Ratio, TrainedRow, WalkRow
from tpcalc.results.data import grouped
from tpcalc.views.answers.check import REGIMES
from tpcalc.views.answers.depth_plot import RATIOS, on_the_way
from tpcalc.views.numbers import Measure, measured, plain, shown
from tpcalc.views.panels import COLOURS, Figure, Panel, Series
from tpcalc.views.tables import Cell, Table, number
from tpcalc.views.traces import spread_out

_OO, _BEYOND = "oo", "-> oo"
_TONES = {"unstable": "bad", "stationary": "warn", "identity": ""}
_SEVERAL = 4  # laws and powers from which a table is a diagram
_PANELS = 12
_AFTER = ("#H after training", "#Smoothness after training")
_SHARE = "share of the depth"


def growth_lead(found: DepthExperiment) -> str:
    """Where outputs and gradients are critical."""
    sentences = []
    for row in found.critical if len(found.critical) < _SEVERAL else ():
        side = f" ({row.side} at a fixed width)" if row.side not in ("", row.gradients) else ""
        sentences.append(
            f"With {row.along} weights outputs are critical at L^(-{row.outputs}), gradients at "
            f"L^(-{row.gradients}){side}."
        )
    return " ".join(sentences)


def growth_tables(found: DepthExperiment) -> Iterator[Table]:
    """Diagrams, or networks beside infinite width; critical powers; paths."""
    diagram = len(found.critical) >= _SEVERAL
    if diagram:
        for name, own in grouped(found.agreements, lambda one: one.name).items():
            yield _diagram(name, own)
    if found.critical:
        yield _critical(found)
    shown = [one for one in found.agreements if not diagram or one.same is not True]
    if shown:
        yield _agreements(shown, diagram)
    if found.paths:
        yield _paths(found.paths)
    if found.trained:
        yield _heat(found.trained)
        yield _after(found.trained)


def _diagram(name: str, own: Sequence[Agreement]) -> Table:
    means = [f"{one.networks.value:.2f} ({one.limit:.2f})" for one in own]
    note = (
        f"Networks, and in brackets infinite width, L = {own[0].depth}. Colours are what exponents "
        "say: explosion, critical, identity."
    )
    return _over_powers(f"log10 of {RATIOS[name]}", "Along the depth", own, means, note)


def _over_powers(
    title: str, laws: str, own: Sequence[Agreement | TrainedRow], shown: Sequence[str], note: str
) -> Table:
    """A row for each law along the depth, a column for each power of it."""
    powers = list(dict.fromkeys(one.alpha for one in own))
    known = {
        (one.along, one.alpha): number(text, _TONES[one.regime])
        for one, text in zip(own, shown, strict=True)
    }
    rows = (
        (Cell(law), *(known.get((law, alpha), number("")) for alpha in powers))
        for law in dict.fromkeys(one.along for one in own)
    )
    head = (laws, *(f"#L^(-{alpha})" for alpha in powers))
    return Table.of(title, head, rows, note)


def _critical(found: DepthExperiment) -> Table:
    return Table.of(
        "Critical powers, read from the program",
        ("Along the depth", "#Outputs", "#Gradients", "#Gradients at a fixed width"),
        ((row.along, row.outputs, row.gradients, row.side) for row in found.critical),
        "Below the power of 1/L blocks explode, above it they are the identity.",
    )


def _agreements(own: Sequence[Agreement], diagram: bool) -> Table:
    numbers = ("#Infinite width", "#Networks")
    facts = ("Along the depth", "#Power", "#L", "Ratio", "By exponents")
    head = (*facts, *numbers, "~Compared with", "Same")
    rows = (
        (
            one.along,
            one.alpha,
            one.depth,
            one.name,
            Cell(REGIMES[one.regime], tone=_TONES[one.regime]),
            plain(one.limit, 4),
            measured(Measure.of(one.networks)),
            one.beside,
            same(one.same, "not compared"),
        )
        for one in own
    )
    title = "Points that differ, or are not compared" if diagram else "Networks beside the limit"
    note = (
        "Decimal logarithms; ± is a standard error. The same: within 0.05 and 5 standard errors; "
        "where blocks explode, of the same sign."
    )
    return Table.of(title, head, rows, note)


def same(known: bool | None, unknown: str) -> Cell:
    """Whether two numbers are the same, where that is known."""
    words = {True: "yes", False: "no", None: unknown}
    return Cell(words[known], tone={True: "", False: "bad", None: "warn"}[known])


def _paths(own: Sequence[WalkRow]) -> Table:
    head = ("Along the depth", "#Exponent", "#Measured")
    rows = (
        (one.along, "" if one.expected is None else plain(one.expected, 4), shown(one.hurst))
        for one in own
    )
    return Table.of("Sums of m weights are of size m^H", head, rows)


def _heat(own: Sequence[TrainedRow]) -> Table:
    shares = [f"{measured(Measure.of(one.accuracy))} ({plain(one.rate, 2)})" for one in own]
    single = ", of which there is one" if own[0].accuracy.samples == 1 else ""
    note = (
        f"Shares of test images with the best learning rate, in brackets; L = {own[0].depth}, n = "
        f"{own[0].width}. ± is one standard error, of the images (binomial) and between networks"
        f"{single}. Colours are what exponents say of the start: explosion, critical, identity."
    )
    title, laws = "Accuracy after training", "Along the depth at the start"
    return _over_powers(title, laws, own, shares, note)


def _after(own: Sequence[TrainedRow]) -> Table:
    head = ("Along the depth at the start", "#Power", *_AFTER)
    rows = ((one.along, one.alpha, shown(one.hurst), shown(one.smoothness)) for one in own)
    note = (
        "H is the exponent of sums of weights over blocks, smoothness that of their differences: 0 "
        "of noise, 1 of smooth weights. Empty where training diverges."
    )
    return Table.of("Weights along the depth after training", head, rows, note)


def _panels(found: DepthExperiment) -> Iterator[Panel]:
    """Against the number of blocks, along the depth, paths."""
    panels: list[Panel] = []
    ratios = grouped(found.ratios, lambda row: (row.along, row.name))
    for (law, name), own in ratios.items():
        panels += _against(law, name, [row for row in own if row.place == 1.0])
        panels += _on_the_way(law, name, own)
    yield from panels[:_PANELS]
    if found.paths:
        series = []
        for ink, row in enumerate(found.paths):
            points = ((k / len(row.path), height) for k, height in enumerate(row.path))
            series.append(Series.of(points, ink, "line", row.along))
        words = f"Sums of one sequence of {len(series)} laws along the depth."
        yield Panel.of("Sums along the depth", _SHARE, series, words, numbers=True)
    for net in found.trained:
        if net.path and net.alpha in (found.trained[0].alpha, found.trained[-1].alpha):
            points = ((k / len(net.path), height) for k, height in enumerate(net.path, 1))
            one = Series.of(points, "0", "line", net.along)
            title = f"One weight after training, {net.along}, L^(-{net.alpha})"
            yield Panel.of(title, _SHARE, (one,), f"{title}.", numbers=True)


def _against(law: str, name: str, own: Sequence[Ratio]) -> Iterator[Panel]:
    """The ratio against L where there are several depths, against the power where there are not."""
    depths = list(dict.fromkeys(row.depth for row in own))
    powers = list(dict.fromkeys(row.alpha for row in own))
    lines = spread_out(powers, COLOURS) if len(depths) > 1 else ("",)
    if len(depths) == 1 and len(powers) < _SEVERAL:
        return
    series = []
    for ink, alpha in enumerate(lines):
        for width in dict.fromkeys(row.width for row in own):
            points = (
                (float(Fraction(row.depth if alpha else row.alpha)), row.value)
                for row in own
                if row.width == width and alpha in ("", row.alpha)
            )
            shape = {_OO: "line", _BEYOND: "dash"}.get(width, "dots")
            label = f"L^(-{alpha})" if alpha else f"n = {width}"
            series.append(Series.of(points, ink, shape, label))
    axis = "blocks L" if len(depths) > 1 else "power of 1/L"
    title = f"log10 {RATIOS[name]}, {law}"
    words = f"{title} against {axis}: {len(series)} lines."
    yield Panel.of(title, axis, series, words, log_x=len(depths) > 1, numbers=True)


def _on_the_way(law: str, name: str, own: Sequence[Ratio]) -> Iterator[Panel]:
    """The ratio along the depth, with bands of networks; infinite width as a guide."""
    if len(dict.fromkeys(row.place for row in own)) < 3:
        return
    series = []
    powers = spread_out(dict.fromkeys(row.alpha for row in own), COLOURS)
    for ink, alpha in enumerate(powers):
        for width in dict.fromkeys(row.width for row in own):
            points = (
                (row.place, row.value.value, row.value.std or 0.0)
                for row in own
                if (row.alpha, row.width) == (alpha, width)
            )
            shape, beyond = ("dash", ", infinite width") if width == _OO else ("line", "")
            series.append(Series.of(points, ink, shape, f"L^(-{alpha}){beyond}"))
    title = f"log10 {on_the_way(name)}, {law}"
    axis = "share of the blocks gone through"
    yield Panel.of(title, axis, series, f"{title} along the depth.", numbers=True)


def growth_figure(found: DepthExperiment) -> Figure | None:
    """All panels."""
    panels = tuple(_panels(found))
    note = (
        "Against L or its power, lines are infinite width and dots networks, with standard errors. "
        "Along the depth, lines are networks with the spread of them, dashes infinite width."
    )
    return Figure("At the start", note, panels) if panels else None
