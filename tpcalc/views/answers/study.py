"""What random networks that were trained say of their coefficient before training."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, log10

from tpcalc.results.scales import Study, StudyPoint
from tpcalc.views.numbers import count, plain, settled
from tpcalc.views.panels import Figure, Panel, Series
from tpcalc.views.tables import Table
from tpcalc.views.view import Judgement, Part, View, view

LOW, HIGH = 5.0, 1e3  # where coefficients are appropriate, and where nothing generalizes
HEAD = ("~Network", "#Width", "#NLC", "#LBIAS", "#Rate", "#Training error", "#Test error")
NOTE = "Each dot is a network with the best of its learning rates."


@view.register
def _(found: Study) -> View:
    rows = (
        (
            one.network,
            count(one.width),
            settled(one.nlc),
            settled(one.bias),
            *(plain(x, 3) for x in (one.rate, one.train, one.test)),
        )
        for one in sorted(found.points, key=lambda one: one.nlc.value)
    )
    panels = tuple(
        Panel.of(title, axis, [Series.of(_points(found, x), "0", "dots", "networks")], numbers=True)
        for title, axis, x in _AXES
    )
    part = Part("study", found.title, _lead(found), (Table.of("Networks", HEAD, rows),))
    figure = {"study": Figure("Test error", NOTE, panels)}
    said = Judgement("info", _headline(found))
    return View.of(found, found.name, part, said=said, figures=figure)


def _headline(found: Study) -> str:
    low = [one.test for one in found.points if one.nlc.value <= LOW]
    high = [one.test for one in found.points if one.nlc.value > HIGH]
    ends = (plain(min(own), 3) if own else "none" for own in (low, high))
    return "Least test error {} for NLC up to 5, {} above 1000".format(*ends)


def _lead(found: Study) -> str:
    networks = f"{len(found.points)} random networks trained on {found.data}."
    return f"{networks} {found.source}." if found.source else networks


def _points(found: Study, x: Callable[[StudyPoint], float]) -> list[tuple[float, float]]:
    return [(x(one), one.test) for one in found.points if isfinite(one.test) and isfinite(x(one))]


_AXES: tuple[tuple[str, str, Callable[[StudyPoint], float]], ...] = (
    ("Test error", "log10 of NLC before training", lambda one: log10(one.nlc.value)),
    ("Test error, by bias", "log10 of LBIAS before training", lambda one: log10(one.bias.value)),
)
