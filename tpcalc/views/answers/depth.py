"""What becomes of training as blocks are added: sentences and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10

from tpcalc.results import (
    DepthArray,
    DepthGap,
    DepthTable,
    Estimate,
)
from tpcalc.results.data import grouped
from tpcalc.views.answers.depth_plot import PROFILE, PROFILES, RATIOS, STEPS, depth_figures, gammas
from tpcalc.views.numbers import SETTLED, Measure, measured, settled
from tpcalc.views.tables import Table
from tpcalc.views.view import Part, View, view

SQUARES = (
    "R = |x_L| / |x_0| and D = |x_L - x_0| / |x_0| of the stream x, Rp = |p_0| / |p_L| and "
    "Dp = |p_0 - p_L| / |p_L| of the gradient p, which starts behind the last block."
)


def depth_profiles(found: DepthTable) -> tuple[Table, ...]:
    """Root mean squares along the depth, of the first sample of each step."""
    tables = list(_trajectories(found)) if found.start else []
    for one in found.arrays:
        if one.axes == ("p", "i", "j"):
            steps = range(0, one.values.shape[-1], found.batch)
            roots = [
                [max(float(one.values[k, i, i]), 0.0) ** 0.5 for i in steps]
                for k in range(len(one.places))
            ]
            tables.append(
                Table.of(
                    f"Root mean square of {PROFILES[one.name]}, L = {one.depth}",
                    ("#p = l/L", *(f"#t = {i // found.batch}" for i in steps)),
                    (
                        (f"{p:.4g}", *(f"{value:.6g}" for value in row))
                        for p, row in zip(one.places, roots, strict=True)
                    ),
                    f"{one.route[0].upper()}{one.route[1:]} ({one.method.value}).",
                )
            )
    return tuple(tables)


def depth_steps(found: DepthTable) -> tuple[Table, ...]:
    """Gamma over the steps, a table for each kind."""
    return tuple(
        Table.of(
            f"Gamma of {words}, L = {one.depth}",
            ("#t", *(f"#r = {r}" for r in range(values.shape[1]))),
            (
                (
                    str(t),
                    *(
                        _told(one, value, error) if r <= t else ""
                        for r, (value, error) in enumerate(zip(*row, strict=True))
                    ),
                )
                for t, row in enumerate(zip(values, errors, strict=True))
            ),
            "Coefficients at step t of what the middle block drew at step r, times sqrt(L). "
            + SETTLED,
        )
        for words, one, values, errors in gammas(found)
    )


def _told(one: DepthArray, value: float, error: float) -> str:
    """A number of an array, with its error where six digits show it."""
    return settled(Estimate(float(value), float(error), one.method))


def _trajectories(found: DepthTable) -> Iterator[Table]:
    """Mean squares along the depth, a table for each number of blocks."""
    for depth in dict.fromkeys(one.depth for one in found.arrays):
        own = [one for one in found.arrays if one.depth == depth]
        yield Table.of(
            f"The start along the depth, L = {depth}",
            ("#p = l/L", *(f"#{one.name}" for one in own)),
            (
                (f"{p:.4g}", *(_told(one, one.values[k], one.errors[k]) for one in own))
                for k, p in enumerate(own[0].places)
            ),
            f"{own[0].route[0].upper()}{own[0].route[1:]} ({own[0].method.value}). {SETTLED}",
        )


def depth_values(found: DepthTable) -> tuple[Table, ...]:
    """Numbers of a run at several depths, one column for each."""
    run = "The start: mean squares" if found.start else "A run"
    known = {(row.name, row.depth): str(row.estimate) for row in found.rows}
    routes = dict.fromkeys(f"L = {row.depth}: {row.route}." for row in found.rows)
    numbers = Table.of(
        f"{run} at infinite width, by the number of blocks L",
        ("`Name", *(f"#L = {depth}" for depth in found.depths)),
        ((one, *(known.get((one, depth), "") for depth in found.depths)) for one in found.names),
        " ".join((*routes, *([SQUARES] if found.start else []))),
    )
    drawn = (_networks(found),) if found.samples else ()
    return numbers, *drawn, _gaps(found.lacking)


def _gaps(lacking: Sequence[DepthGap]) -> Table:
    """What has no number and why: names and depths of one reason in one line."""
    body = (
        (
            ", ".join(dict.fromkeys(gap.name or "all" for gap in gaps)),
            ", ".join(dict.fromkeys(gap.depth for gap in gaps)),
            reason,
        )
        for reason, gaps in grouped(lacking, lambda gap: gap.reason).items()
    )
    return Table.of("No numbers", ("Name", "L", "Why"), body)


def _networks(found: DepthTable) -> Table:
    """Norms of networks beside those at infinite width, as logarithms."""
    depths = tuple(dict.fromkeys(str(sample.depth) for sample in found.samples))
    body: list[tuple[str, ...]] = []
    for ratio, words in RATIOS.items():
        known = {row.depth: row.estimate.value for row in found.rows if row.name == f"{ratio}^2"}
        limits = (f"{log10(known[L]) / 2:.4f}" if known.get(L, 0) > 0 else "" for L in depths)
        body.append((words, "oo", *limits))
        for width in dict.fromkeys(sample.width for sample in found.samples):
            means = {
                str(sample.depth): sample.log10(ratio, sample.alphas[0])
                for sample in found.samples
                if sample.width == width
            }
            shown = (measured(Measure.of(one)) if one else "" for one in map(means.get, depths))
            body.append((words, str(width), *shown))
    count = len(found.samples[0].logs[0][0][0])
    return Table.of(
        "Norms at the start, log10",
        ("Ratio", "#Width", *(f"#L = {depth}" for depth in depths)),
        body,
        f"Width oo: half the logarithm of the mean square. Networks: means over {count}, ± one "
        "standard error.",
    )


@view.register
def _(found: DepthTable) -> View:
    return View.of(
        found,
        "At infinite width",
        Part("depths", "At infinite width", "", depth_values(found)),
        Part(PROFILE, "Along the depth", "", depth_profiles(found)),
        Part(STEPS, "Along training", "", depth_steps(found)),
        figures=depth_figures(found),
    )
