"""What a report says of the nonlinearity coefficient: sentences and tables."""

from __future__ import annotations

from math import exp, expm1

from tpcalc.results import Estimate
from tpcalc.results.nonlinearity import (
    LayerRow,
    MeasuredEnd,
    MeasuredRow,
    MeasuredValue,
    Nonlinearity,
)
from tpcalc.views.answers.nonlinearity_plot import nonlinearity_figures
from tpcalc.views.numbers import SETTLED, count, plain, score, scores, settled
from tpcalc.views.tables import Cell, Table, number, numbers, sentence, texts, z_cell
from tpcalc.views.view import Judgement, Part, View, view

_SHOWN = ("NLC", "LBIAS", "LSCALE", "QMNEX", "QMNSTD", "JACF", "NKURT", "NGHI", "CVNSTD", "LCV")
_LINEAR, _NONLINEAR = 1.01, 5.0  # all but linear below, overfitting above
_FAINT, _ALIKE = 0.01, 10.0  # of the rules for second moments and LBIAS
_BIASED = 1e4  # from here on inputs differ by less than a float of 32 bits shows of the layer
_EXPONENT = 600  # beyond, e to this power leaves the range of a float
_STABLE = {
    "stable": "Gaussian stable: small deviations of lengths die out, or layer norm takes them out.",
    "edge": "Gaussian stability: at the edge; deviations of lengths neither grow nor die out.",
    "unstable": "Gaussian unstable: deviations of lengths grow.",
}


def nonlinearity_summary(found: Nonlinearity) -> str:
    """One sentence: the coefficient, and how it was found."""
    way = "mean-field recursion" if found.route == "recursion" else "limit of the program"
    text = f"NLC {settled(found.nlc)} of {found.model} ({way})"
    value = _output(found)
    if value is None:
        return text + "."
    z = f", z = {score(value.z)}" if value.z is not None else ""
    width = count(found.widths[-1])
    return f"{text}; {settled(value.mean)} at width {width} over {found.seeds} seeds{z}."


def nonlinearity_lead(found: Nonlinearity) -> str:
    """What the coefficient means for this network."""
    lines = [
        "The nonlinearity coefficient (NLC) is 1 for linear maps. A network of the NLC N looks "
        "linear to inputs within about 1 / N of their range."
    ]
    last = found.layers[-1]
    if last.bias.value > _BIASED:
        lines.append("Numbers of 32 bits hardly tell the outputs of two inputs apart.")
    if found.stability:
        lines.append(_STABLE[found.stability])
    return " ".join(lines)


def judge_nonlinearity(found: Nonlinearity) -> Judgement:
    """The coefficient in a few words."""
    fate = _fate(found)
    lines = tuple(f"Not met: {rule}." for rule, holds in found.guidelines if not holds)
    lines += tuple(sentence for _, sentence in fate)
    lines += tuple(_end(each, found) for each in found.ends)
    if found.stability == "unstable":
        lines = (*lines, f"{_STABLE['unstable'][:-1]} (by up to {plain(found.amplification, 3)}).")
    headline = f"NLC {plain(found.nlc.value, 4)}"
    if fate:
        headline += f", but {fate[0][0]}"
    elif found.nlc.value > _NONLINEAR:
        headline += f", above {_NONLINEAR:g}: such networks were found to generalize worse"
    elif not lines and found.nlc.value >= _LINEAR:
        headline += f", between 1 and {_NONLINEAR:g}, where networks were found to do best"
    return Judgement("warn" if lines else "good", headline, lines)


def _end(end: MeasuredEnd, found: Nonlinearity) -> str:
    """How far networks of a width were measured."""
    return (
        f"At width {count(end.width)} networks end before the output: {end.reason[:-1]}. Layers up "
        f"to {end.last} of {found.layers[-1].index} are measured."
    )


def _fate(found: Nonlinearity) -> list[tuple[str, str]]:
    """What becomes of signals that die out, explode, or are the same for all inputs."""
    last = found.layers[-1]
    said = []
    scale = last.square.value / found.layers[0].square.value
    if not _FAINT <= scale <= 1 / _FAINT:
        fate = "signals die out" if scale < 1 else "signals explode"
        size = f"the second moment of the output is {plain(scale, 3)} times that of the input"
        said.append((fate, f"{fate.capitalize()}: {size}."))
    if last.bias.value > _ALIKE:
        fate = "outputs are nearly alike for all inputs"
        share = plain(1 / last.bias.value, 2)
        said.append((fate, f"{fate.capitalize()}: their spread is {share} of their size."))
    return said


def nonlinearity_tables(found: Nonlinearity) -> tuple[Table, ...]:
    """Layers in the limit, networks beside them, the paths, rules and conditions."""
    tables = [_layers(found), _by_layer(found), _widths(found), _paths(found)]
    tables += [_reaches(found), _rules(found), _conditions(found)]
    return tuple(table for table in tables if table is not None and table.rows)


def _layers(found: Nonlinearity) -> Table:
    head = ("Layer", "Operation", "Reads", "q", "c", "LBIAS", "√g", "Own NLC", "NLC")
    rows = tuple(_layer(row) for row in found.layers)
    note = (
        "q, c: second moments of one and of two inputs; LBIAS = sqrt(q / (q - c)); √g: root mean "
        "square of derivatives; own NLC: of the activation alone, or of batch norm in a "
        f"finite batch; NLC: from the input to the layer. {SETTLED}"
    )
    return Table("Layers in the limit of infinite width", texts(*head), rows, note)


def _layer(row: LayerRow) -> tuple[Cell, ...]:
    reads = ", ".join(map(str, row.reads))
    gradient = _root(row.log_gradient)
    own = "" if row.own is None else settled(row.own)
    moments = map(settled, (row.square, row.comean, row.bias))
    return (
        number(str(row.index)),
        *texts(row.operation, reads),
        *numbers(*moments, gradient, own, settled(row.total)),
    )


def _root(logarithm: Estimate) -> str:
    """sqrt(g) from log g, also where it is no float."""
    half, error = logarithm.value / 2, logarithm.stderr / 2
    if abs(half) > _EXPONENT:
        return f"e^{plain(half, 5)}"
    return settled(Estimate(exp(half), exp(half) * expm1(error), logarithm.method))


def _by_layer(found: Nonlinearity) -> Table | None:
    if not found.measured:
        return None
    width = found.widths[-1]
    pairs = ((layer, found.at(width, layer.index)) for layer in found.layers[1:])
    rows = tuple(_measured_layer(layer, row) for layer, row in pairs if row is not None)
    head = texts("Layer", "Operation", "NLC, limit", "NLC", "z", "LBIAS", "LSCALE, limit", "LSCALE")
    return Table(
        f"Networks of width {count(width)}, {found.seeds} seeds",
        head + texts("NKURT", "LCV"),
        rows,
        f"Means over seeds with their standard errors. {scores(found.seeds)} The bias of finite "
        "width is not in them.",
    )


def _measured_layer(layer: LayerRow, row: MeasuredRow) -> tuple[Cell, ...]:
    values = dict(row.values)
    nlc, scale = values["NLC"], values["LSCALE"]
    means = (values["LBIAS"].mean, scale.limit, scale.mean, values["NKURT"].mean)
    return (
        number(str(layer.index)),
        Cell(layer.operation),
        *numbers(settled(nlc.limit), settled(nlc.mean)),
        Cell("") if nlc.z is None else z_cell(nlc.z),
        *numbers(*map(settled, (*means, values["LCV"].mean))),
    )


def _widths(found: Nonlinearity) -> Table | None:
    last = found.layers[-1].index
    known = ((at, row) for at in found.widths if (row := found.at(at, last)) is not None)
    cells = ((at, name, row.value(name)) for at, row in known for name in _SHOWN)
    rows = tuple(_width_row(at, name, value) for at, name, value in cells if value is not None)
    head = texts("Width", "Metric of the output", "Limit", "Mean over seeds", "SD between seeds")
    return Table("Output against width", head + texts("Difference"), rows)


def _width_row(width: int, name: str, value: MeasuredValue) -> tuple[Cell, ...]:
    off = value.relative
    difference = f"{100 * off:+.2g} %" if abs(off) < 1e4 and value.limit.value else ""
    return (
        number(count(width)),
        Cell(name),
        *numbers(settled(value.limit), settled(value.mean)),
        *numbers(plain(value.deviation, 2), difference),
    )


def _paths(found: Nonlinearity) -> Table | None:
    if len(found.paths) < 2:
        return None
    square = found.nlc.value**2
    rows = tuple(
        (
            sentence(_route(path.layers)),
            *numbers(plain(path.weight, 4), plain(path.product, 5)),
            number(f"{100 * path.weight * path.product / square:.3g} %"),
        )
        for path in found.paths
    )
    head = ("Layers", "Weight", "Product of squared NLCs", "Share of NLC²")
    note = "The weights of all paths add up to 1; NLC² is the weighted mean of the products."
    return Table("Paths that make the NLC", texts(*head), rows, note)


def _route(layers: tuple[int, ...]) -> str:
    """The numbers of the layers, runs of neighbours shortened."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def _reaches(found: Nonlinearity) -> Table | None:
    if all(each.layer is None for each in found.reaches):
        return None
    rows = (
        (each.cause, plain(each.noise, 3), "nowhere" if each.layer is None else str(each.layer))
        for each in found.reaches
    )
    head = texts("Noise of") + numbers("Of the length", "As large from layer")
    note = "By how deviations of the input's length grow; the mean-field prediction ends there."
    return Table.of("From which layer noise outgrows lengths", head, rows, note)


def _rules(found: Nonlinearity) -> Table:
    rows = (
        (rule, Cell("yes" if holds else "no", tone="" if holds else "warn"))
        for rule, holds in found.guidelines
    )
    return Table.of("Guidelines for the start of training", texts("Rule", "Followed"), rows)


def _conditions(found: Nonlinearity) -> Table:
    rows = tuple((sentence(text),) for text in found.conditions)
    note = "The recursion holds for these by limits or by rules beyond the theorem."
    if found.route == "program":
        note = "Where the recursion does not hold, the program of the graph has the limit."
    return Table("Conditions that the graph does not meet", texts("Condition"), rows, note)


def _output(found: Nonlinearity) -> MeasuredValue | None:
    if not found.measured:
        return None
    row = found.at(found.widths[-1], found.layers[-1].index)
    return None if row is None else row.value("NLC")


@view.register
def _(found: Nonlinearity) -> View:
    lead, tables, drawn = (
        nonlinearity_lead(found),
        nonlinearity_tables(found),
        nonlinearity_figures(found),
    )
    parts = [Part("nonlinearity", "Nonlinearity", lead, tables, drawn["nonlinearity"])]
    if (widths := drawn.get("nonlinearity-widths")) is not None:
        parts.append(Part("nonlinearity-widths", "Width", figure=widths))
    said, summary = judge_nonlinearity(found), nonlinearity_summary(found)
    return View("Nonlinearity", said, summary, tuple(parts), found.notes, found.provenance)
