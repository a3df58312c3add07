"""What a report says of the nonlinearity coefficient: sentences and tables."""

from __future__ import annotations

from math import exp, expm1

from tpcalc.results import Estimate
from tpcalc.results.nonlinearity import (
    MeasuredEnd,
    MeasuredRow,
    MeasuredValue,
    NoiseReach,
    Nonlinearity,
)
from tpcalc.results.practice import Thresholds
from tpcalc.views.answers.nonlinearity_plot import nonlinearity_figures
from tpcalc.views.numbers import SETTLED, count, plain, score, scores, settled
from tpcalc.views.tables import Cell, Table, z_cell
from tpcalc.views.view import Judgement, Part, View, view

_LIMITS = ("NLC", "NLCNUM", "LBIAS", "LSCALE", "QMNEX", "QMNSTD", "JACF")
_SHOWN = (*_LIMITS, "NKURT", "NGHI", "CVNSTD", "LCV")
_BAR = Thresholds()
_LINEAR, _NONLINEAR = _BAR.linear, _BAR.nlc[0]  # all but linear below, overfitting above
_FAINT, _ALIKE = _BAR.scale[1] ** -2, _BAR.bias[1]  # of the rules for second moments and LBIAS
_BIASED = 1e4  # from here on inputs differ by less than a float of 32 bits shows of the layer
_EXPONENT = 600  # beyond, e to this power leaves the range of a float
_STABLE = {
    "stable": "Gaussian stable: small deviations of lengths die out, or layer norm takes them out.",
    "edge": "Gaussian stability: at the edge; deviations of lengths neither grow nor die out.",
    "unstable": "Gaussian unstable: deviations of lengths grow.",
}
_KNOWN_AS = {
    "GUA": " It is a Gaussian unstable architecture (GUA).",
    "GEA": " It is a Gaussian edge architecture (GEA).",
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
        lines.append(_STABLE[found.stability] + _KNOWN_AS.get(found.architecture, ""))
    return " ".join(lines)


def judge_nonlinearity(found: Nonlinearity) -> Judgement:
    """The coefficient in a few words."""
    fate = _fate(found)
    lines = tuple(f"Not met: {rule}." for rule, holds in found.guidelines if not holds)
    lines += tuple(sentence for _, sentence in fate)
    lines += tuple(_end(each, found) for each in found.ends)
    lines += tuple(_overflow(each) for each in found.reaches if each.overflow is not None)
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


def _overflow(each: NoiseReach) -> str:
    """What a deviation as small as a rounding does in the end."""
    return f"Noise of {each.cause} grows until numbers overflow at layer {each.overflow}."


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
    tables += [_reaches(found), _rules(found), _conditions(found), _theorem(found)]
    return tuple(table for table in tables if table.rows)


def _layers(found: Nonlinearity) -> Table:
    columns = ("#q", "#c", "#LBIAS", "#√g", "#s", "#Own NLC", "#NLC")
    note = (
        "q, c: second moments of one and of two inputs; LBIAS = sqrt(q / (q - c)); √g: root mean "
        "square of derivatives; s: how many times as large an activation makes relative "
        "deviations of lengths; own NLC: of the activation alone, or of batch norm in a "
        f"finite batch; NLC: from the input to the layer. {SETTLED}"
    )
    rows = (
        (
            str(row.index),
            row.operation,
            ", ".join(map(str, row.reads)),
            *map(settled, (row.square, row.comean, row.bias)),
            _root(row.log_gradient),
            "" if row.growth is None else settled(row.growth),
            "" if row.own is None else settled(row.own),
            settled(row.total),
        )
        for row in found.layers
    )
    head = ("#Layer", "Operation", "Reads", *columns)
    return Table.of("Layers in the limit of infinite width", head, rows, note)


def _root(logarithm: Estimate) -> str:
    """sqrt(g) from log g, also where it is no float."""
    half, error = logarithm.value / 2, logarithm.stderr / 2
    if abs(half) > _EXPONENT:
        return f"e^{plain(half, 5)}"
    return settled(Estimate(exp(half), exp(half) * expm1(error), logarithm.method))


def _by_layer(found: Nonlinearity) -> Table:
    width = found.widths[-1] if found.measured else 0
    rows = []
    for layer in found.layers[1:]:
        if found.measured and (row := found.at(width, layer.index)) is not None:
            values = dict(row.values)
            nlc, scale = values["NLC"], values["LSCALE"]
            means = (values["LBIAS"].mean, scale.limit, scale.mean, values["NKURT"].mean)
            rows.append(
                (
                    str(layer.index),
                    layer.operation,
                    *map(settled, (nlc.limit, nlc.mean)),
                    "" if nlc.z is None else z_cell(nlc.z),
                    *map(settled, (*means, values["LCV"].mean)),
                )
            )
    numbers = ("#NLC, limit", "#NLC", "#z", "#LBIAS", "#LSCALE, limit", "#LSCALE", "#NKURT", "#LCV")
    return Table.of(
        f"Networks of width {count(width)}, {found.seeds} seeds",
        ("#Layer", "Operation", *numbers),
        rows,
        f"Means over seeds with their standard errors. {scores(found.seeds)} The bias of finite "
        "width is not in them.",
    )


def _widths(found: Nonlinearity) -> Table:
    last = found.layers[-1].index
    known = [row for row in found.measured if row.layer == last or row.start]
    cells = (
        (row.width, _named(name, row), row.value(name))
        for row in sorted(known, key=lambda row: row.width)
        for name in _SHOWN
    )
    rows = (
        (
            count(width),
            name,
            settled(value.limit),
            settled(value.mean),
            plain(value.deviation, 2),
            f"{100 * off:+.2g} %" if abs(off := value.relative) < 1e4 and value.limit.value else "",
        )
        for width, name, value in cells
        if value is not None
    )
    numbers = ("#Limit", "#Mean over seeds", "#SD between seeds", "#Difference")
    return Table.of("Output against width", ("#Width", "Metric of the output", *numbers), rows)


def _named(name: str, row: MeasuredRow) -> str:
    """The metric, of a pair of layers with their numbers."""
    return f"{name}, layers {row.start} to {row.layer}" if row.start else name


def _paths(found: Nonlinearity) -> Table:
    square = found.nlc.value**2
    rows = (
        (
            _route(path.layers),
            plain(path.weight, 4),
            plain(path.product, 5),
            f"{100 * path.part / square:.3g} %",
        )
        for path in found.paths
        if len(found.paths) > 1
    )
    head = ("~Layers", "#Weight", "#Product of squared NLCs", "#Share of NLC²")
    note = "The weights of all paths add up to 1; NLC² is the weighted mean of the products."
    return Table.of("Paths that make the NLC", head, rows, note)


def _route(layers: tuple[int, ...]) -> str:
    """The numbers of the layers, runs of neighbours shortened."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def _reaches(found: Nonlinearity) -> Table:
    known = any(each.layer is not None for each in found.reaches)
    rows = (
        (each.cause, plain(each.noise, 3), *map(_place, (each.layer, each.overflow)))
        for each in found.reaches
        if known
    )
    head = ("Noise of", "#Of the length", "#As large from layer", "#Overflow at layer")
    note = "By how deviations of the input's length grow; the mean-field prediction ends there. "
    note += "Overflow: of 32-bit floats for a width, if inputs are longer by the noise."
    return Table.of("From which layer noise outgrows lengths", head, rows, note)


def _place(layer: int | None) -> str:
    return "nowhere" if layer is None else str(layer)


def _rules(found: Nonlinearity) -> Table:
    rows = (
        (rule, Cell("yes" if holds else "no", tone="" if holds else "warn"))
        for rule, holds in found.guidelines
    )
    return Table.of("Guidelines for the start of training", ("Rule", "Followed"), rows)


def _conditions(found: Nonlinearity) -> Table:
    rows = ((text,) for text in found.conditions)
    note = "The recursion holds for these by limits or by rules beyond the theorem."
    if found.route == "program":
        note = "Where the recursion does not hold, the program of the graph has the limit."
    return Table.of("Conditions that the graph does not meet", ("~Condition",), rows, note)


def _theorem(found: Nonlinearity) -> Table:
    rows = (
        (each.name, Cell("yes" if each.met else "no", tone="" if each.met else "warn"), each.found)
        for each in found.theorem
    )
    head = ("Condition", "Met", "~How that is known")
    return Table.of("Conditions of the Master theorem", head, rows)


def _output(found: Nonlinearity) -> MeasuredValue | None:
    if not found.measured:
        return None
    row = found.at(found.widths[-1], found.layers[-1].index)
    return None if row is None else row.value("NLC")


@view.register
def _(found: Nonlinearity) -> View:
    part = Part(
        "nonlinearity", "Nonlinearity", nonlinearity_lead(found), nonlinearity_tables(found)
    )
    parts, drawn = (part, Part("nonlinearity-widths", "Width")), nonlinearity_figures(found)
    said, summary = judge_nonlinearity(found), nonlinearity_summary(found)
    return View.of(found, "Nonlinearity", *parts, said=said, summary=summary, figures=drawn)
