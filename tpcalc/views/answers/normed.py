"""What is said of activations that were made for a nonlinearity coefficient."""

from __future__ import annotations

from dataclasses import replace

from tpcalc.results.normed import Normed
from tpcalc.views.numbers import SETTLED, plain, settled
from tpcalc.views.panels import Figure, Panel, Series
from tpcalc.views.tables import Table
from tpcalc.views.view import Judgement, Part, View, view

_FEW = 3  # numbers of layers that are all told
_STEADY = {
    "stable": "deviations of lengths die out",
    "edge": "deviations of lengths stay as they are",
    "unstable": "deviations of lengths grow",
}


@view.register
def _(found: Normed) -> View:
    where = "the network" if any(row.layers for row in found.rows) else "the activation"
    said = f"NLC of {where}: {plain(found.nlc.value, 6)}; Gaussian stability: {found.steady}"
    one = found.rows[0]
    summary = f"F(s) = c τ(l, s) + b, {one.method} of {one.name}"
    if len(found.rows) == 1:
        numbers = zip("lcb", (one.amount, one.scale, one.shift), strict=True)
        summary += ": " + ", ".join(f"{key} = {settled(own)}" for key, own in numbers)
    curve = Series.of(((row.length, row.nlc) for row in found.lengths), 0, "line", "n(λ², 0)")
    words = "The coefficient of the activation on inputs of other lengths, as when weights grow."
    panel = Panel("n(λ², 0)", words, "length λ of the input", (curve,), True, numbers=True)
    body = (
        (
            row.name,
            *map(settled, (row.amount, row.scale, row.shift, row.nlc, row.excess, row.stability)),
            plain(row.square),
            _layers(row.layers),
        )
        for row in found.rows
    )
    tables = Table.of("Activations", _HEAD, body, _NOTE), _facts(found)
    part = Part("normed", "Activations", "", tables, Figure("Off its length", "", (panel,)))
    level = "warn" if found.steady == "unstable" else "good"
    shown = View.of(found, "nlnorm", part, said=Judgement(level, said), summary=f"{summary}.")
    return replace(shown, text=found.code)


_HEAD = ("Activation", "#l", "#c", "#b", "#n(q, 0)", "#n - 1", "#R", "#q", "?Layers")
_NOTE = (
    "F(s) = c τ(l, s) + b has mean 0 and second moment 1 for s ~ N(0, q); R: by how much a "
    f"relative deviation of the length is multiplied. {SETTLED}"
)


def _layers(where: tuple[int, ...]) -> str:
    few = ", ".join(map(str, where[:_FEW]))
    return few if len(where) <= _FEW else f"{few}, ..., {where[-1]} ({len(where)})"


def _facts(found: Normed) -> Table:
    inside = "inside of it" if found.base_inside else "outside of it"
    reach, monotone = (" to ".join(map(plain, own)) for own in (found.reach, found.monotone))
    rows = (
        ("NLC that amounts reach", reach, "least and largest"),
        ("Base", settled(found.base) if found.base else "", f"scaled to length 1 alone; {inside}"),
        ("Amounts around l", monotone, "over which the NLC falls, or rises"),
        ("Other amounts", ", ".join(map(plain, found.roots[1:])), "that meet the target as well"),
        (
            f"Growth over {found.depth}",
            plain(found.growth, 4),
            f"of deviations of lengths, R for each: {_STEADY[found.steady]}",
        ),
    )
    shown = (row for row in rows if row[1])
    return Table.of("What it rests on", ("Quantity", "#Value", "~Meaning"), shown)
