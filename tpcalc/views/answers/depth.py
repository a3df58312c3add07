"""What becomes of training as blocks are added: sentences and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import log10

from tpcalc.results import (
    DepthArray,
    DepthGap,
    DepthTable,
    DepthVerdict,
    Estimate,
    Exponent,
)
from tpcalc.results.data import grouped
from tpcalc.views.answers.check import ANSWERS
from tpcalc.views.answers.depth_plot import PROFILE, PROFILES, RATIOS, STEPS, depth_figures, gammas
from tpcalc.views.answers.orders import bounded, depth_rows, region_lines
from tpcalc.views.numbers import SETTLED, Measure, measured, settled
from tpcalc.views.tables import Table, name, numbers, texts
from tpcalc.views.view import Judgement, Part, View, view

_WORDS = {
    "feature-learning": ("good", "Feature learning at any depth: the stream moves"),
    "trivial": ("bad", "Trivial at large depth: the updates of the blocks vanish"),
    "unstable": ("bad", "Unstable as blocks are added"),
    "undecided": ("warn", "Undecided"),
}
_START = {
    "stationary": ("good", "Critical: what all blocks add is of order 1"),
    "identity": ("warn", "Identity: what all blocks add vanishes"),
    "unstable": ("bad", "Explosion: what all blocks add grows with their number"),
    "vanishing": ("bad", "Vanishing: blocks shrink the stream to nothing"),
}
REGIMES = {
    "stationary": "critical",
    "identity": "identity",
    "unstable": "explosion",
    "vanishing": "vanishing",
    "": "not known",
}
_STATUS = {"derived": "derived, not proved"}
_WIDTHS = {"oo": "infinite, then L", "n": "fixed"}
SQUARES = (
    "R = |x_L| / |x_0| and D = |x_L - x_0| / |x_0| of the stream x, Rp = |p_0| / |p_L| and "
    "Dp = |p_0 - p_L| / |p_L| of the gradient p, which starts behind the last block."
)
_DIVERSITY = {
    "1/2": "1/2: blocks at distance p differ by sqrt(p)",
    "0": "0: neighbouring blocks compute the same",
    "": "not known",
}


def judge_depth(found: DepthVerdict) -> Judgement:
    """The headline of a verdict on the depth, with the facts that it rests on."""
    if not found.steps:
        level, words = _START.get(found.verdict, _WORDS["undecided"])
        return Judgement(level, f"{words}, at the start", found.facts)
    level, words = _WORDS.get(found.verdict, ("info", found.verdict))
    if found.verdict == "feature-learning" and found.faithful is False:
        level = "warn"
    return Judgement(level, f"{words}, for t<={found.steps}", found.facts)


def depth_tables(found: DepthVerdict) -> tuple[Table, ...]:
    """What was decided, the learning rates, the parts of the stream, sets of updates."""
    if not found.steps:
        return tuple(_start_tables(found))
    facts = (
        ("Verdict", f"{found.verdict} ({found.status})"),
        ("Stable at the start", ANSWERS[found.stable_start]),
        ("Stable in training", ANSWERS[found.stable]),
        ("Outputs move by updates of blocks", ANSWERS[found.moves]),
        ("Features move", ANSWERS[found.features]),
        ("Preactivations in blocks of order 1 (faithful)", ANSWERS[found.faithful]),
        ("Diversity exponent kappa", _DIVERSITY[found.diversity]),
        ("Blocks linear in their updates", ANSWERS[found.linearized]),
        ("In front of a block", _power(found.alpha)),
    )
    tables = [
        _facts(facts),
        Table.of(
            "Parameters of a block, as powers of L",
            texts("Parameter") + numbers("Gradient, -delta", "Update, -gamma", "Learning rate"),
            (
                (rate.label, _power(rate.gradient), _power(rate.update), f"L^({rate.raw})")
                for rate in found.rates
            ),
            "The learning rate is the raw one, as it is typed in a training script.",
        ),
        depth_rows(found.rows),
        *_critical(found),
    ]
    if found.sets:
        tables.append(
            Table.of(
                "What updates of several matrices of a block add up to",
                texts("Matrices") + numbers("Size"),
                (
                    (", ".join(row.labels), bounded(row.L.size("L"), row.status))
                    for row in found.sets
                ),
                "A bound: a product of updates may vanish faster.",
            )
        )
    return tuple(tables)


def _facts(facts: Iterable[tuple[str, str]]) -> Table:
    return Table.of("What was decided", texts("Fact", "Answer"), facts)


def _start_tables(found: DepthVerdict) -> Iterator[Table]:
    """What is decided at the start, and which power of 1/L would be critical."""
    yield _facts(
        (
            ("Verdict", f"{REGIMES.get(found.verdict, found.verdict)} ({found.status})"),
            ("Outputs", REGIMES[found.outputs]),
            ("Gradients", REGIMES[found.gradients]),
            ("In front of a block", _power(found.alpha)),
        )
    )
    yield from _critical(found)
    yield depth_rows(found.rows)


def _critical(found: DepthVerdict) -> Iterator[Table]:
    if found.critical:
        yield Table.of(
            "Which power in front of a block suits: above it blocks are the identity, below it the "
            "stream explodes or vanishes",
            texts("Of", "Width") + numbers("Critical") + texts("Here", "Status"),
            (
                (
                    row.of,
                    _WIDTHS[row.width],
                    _power(row.alpha),
                    REGIMES[row.here],
                    _STATUS.get(row.status, row.status),
                )
                for row in found.critical
            ),
        )


def _power(less: Exponent) -> str:
    """L to the power of minus something."""
    if less.exact is None or less.constant is not None or str(-less).isalnum():
        return (-less).size("L")
    return f"L^(-{less})" if str(less).isalnum() else f"L^(-({less}))"


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
                    numbers("p = l/L", *(f"t = {i // found.batch}" for i in steps)),
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
            numbers("t", *(f"r = {r}" for r in range(values.shape[1]))),
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
            numbers("p = l/L", *(one.name for one in own)),
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
    tables = []
    if found.rows:
        routes = dict.fromkeys(f"L = {row.depth}: {row.route}." for row in found.rows)
        tables.append(
            Table.of(
                f"{run} at infinite width, by the number of blocks L",
                texts("Name") + numbers(*(f"L = {depth}" for depth in found.depths)),
                (
                    (name(one), *(known.get((one, depth), "") for depth in found.depths))
                    for one in found.names
                ),
                " ".join((*routes, *([SQUARES] if found.start else []))),
            )
        )
    if found.samples:
        tables.append(_networks(found))
    if found.lacking:
        tables.append(_gaps(found.lacking))
    return tuple(tables)


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
    return Table.of("No numbers", texts("Name", "L", "Why"), body)


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
        texts("Ratio") + numbers("Width", *(f"L = {depth}" for depth in depths)),
        body,
        f"Width oo: half the logarithm of the mean square. Networks: means over {count}, ± one "
        "standard error.",
    )


@view.register
def _(found: DepthVerdict) -> View:
    lead = " ".join(region_lines(found.region, ()))
    part = Part("depth", "Depth", lead, depth_tables(found))
    shown = View("Depth", judge_depth(found), "", (part,), found.notes, found.provenance)
    if found.first_order is None:
        return shown
    first = view(found.first_order)
    said = "" if first.said is None else f"In the width: {first.said.headline}."
    parts, notes = (*shown.parts, *first.parts), (*shown.notes, *first.notes)
    return replace(shown, summary=said, parts=parts, notes=notes)


@view.register
def _(found: DepthTable) -> View:
    drawn = depth_figures(found)
    made = [
        Part("depths", "At infinite width", "", depth_values(found), drawn.get("depths")),
        Part(PROFILE, "Along the depth", "", depth_profiles(found), drawn.get(PROFILE)),
        Part(STEPS, "Along training", "", depth_steps(found), drawn.get(STEPS)),
    ]
    parts = tuple(part for part in made if part.tables or part.figure)
    return View("At infinite width", None, "", parts, found.notes, found.provenance)
