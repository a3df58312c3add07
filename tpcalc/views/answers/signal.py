"""What a report says of signals in a deep network: sentences and tables."""

from __future__ import annotations

import math

from tpcalc.doors.numbers import count
from tpcalc.results import Estimate, LengthDrift, Scale, Signal
from tpcalc.views.answers.signal_plot import signal_figures
from tpcalc.views.numbers import SETTLED, plain, settled
from tpcalc.views.tables import Table
from tpcalc.views.view import Judgement, Part, View, view

_REACH = 6.0  # depth scales of correlations that trained networks were found to bear
_GROWTH = math.log(1e4)
_EVERY = 0.5  # the error of c* where every correlation stays
_SAME = 1e-9  # of the weights of an edge of chaos
_ENDS = {
    "any": "",
    "0": ", in the limit of small lengths",
    "infinity": ", in the limit of large lengths",
}
_HEADLINES = {
    "ordered": "Ordered phase: inputs become alike",
    "edge of chaos": "At the edge of chaos",
    "chaotic": "Chaotic phase: inputs that are nearly alike part",
}


def signal_summary(found: Signal) -> str:
    """One sentence: what the network is."""
    rank = f" of rank {found.rank:g} N" if found.rank < 1 else ""
    return (
        f"{count(found.depth, 'layer')} of {found.activation} with {found.family} weights{rank}: "
        f"σ_w² = {plain(found.weights)}, σ_b² = {plain(found.biases)}."
    )


def signal_lead(found: Signal) -> str:
    """What stands above its tables: the variances that count."""
    lines = []
    if found.rank < 1:
        w, b = (plain(value) for value in found.effective)
        lines.append(
            f"A rank of {found.rank:g} N makes the variances act like σ_w² = {w} and σ_b² = {b} in "
            "a network of full rank."
        )
    lines.append("Numbers are those of infinite width, at the start of training.")
    if found.drift is not None:
        lines.append(
            "No length is a fixed point: correlations and spectra are those of signals divided by "
            f"their lengths{_ENDS[found.drift.end]}."
        )
    elif found.unstable:
        lines.append(f"They hold for inputs of the length q = {plain(found.length.value)} alone.")
    return " ".join(lines)


def judge_signal(found: Signal) -> Judgement:
    """The phase in a few words, and what it means for the depth."""
    if found.drift is not None:
        return _adrift(found, found.drift)
    reasons = (*_depth_lines(found), _gradient_line(found), *_edge_lines(found))
    if found.unstable:
        q = plain(found.length.value)
        said = f"The length q = {q} is an unstable fixed point: lengths that miss it move away."
        return Judgement(
            "warn", f"{_HEADLINES[found.phase]}, at an unstable length", (said, *reasons)
        )
    far = found.phase == "edge of chaos" or found.depth <= _REACH * found.correlation_scale.layers
    fine = far and abs(found.gradient.value) <= _GROWTH
    return Judgement("good" if fine else "warn", _HEADLINES[found.phase], reasons)


def _adrift(found: Signal, drift: LengthDrift) -> Judgement:
    """Lengths that grow or shrink from layer to layer."""
    excess, end = drift.growth.value - 1, _ENDS[drift.end]
    settles = abs(excess) <= drift.growth.stderr
    if settles:
        way = "shrink" if drift.end == "0" else "grow"
        headline = f"At the edge of chaos: lengths {way}, slower than exponentially"
        lines = [f"Second moments {way} by a factor that tends to 1{end}."]
    else:
        way = "shrink" if excess < 0 else "grow"
        headline = f"Lengths {way}: by the factor {plain(drift.growth.value, 4)} a layer"
        lines = [
            f"Over {count(found.depth, 'layer')} second moments {way} by the factor "
            f"{_power(drift.whole.value / math.log(10))}{end}; so do squared gradients on their "
            f"way back. σ_w² = {plain(drift.kept.value)} keeps them."
        ]
    apart = "are at the edge of chaos: their correlations tend to 1 like a power of the depth."
    if found.correlation.stderr > _EVERY:
        apart = "keep their correlations: the layers are linear."
    lines += [f"Signals divided by their lengths {apart}", *_edge_lines(found)]
    return Judgement("good" if settles else "warn", headline, tuple(lines))


def signal_sections(found: Signal) -> tuple[Part, ...]:
    """The parts of a page."""
    maps = [_scales(found), _survival(found)]
    if len(found.fixed_points) > 1:
        maps.append(_fixed_points(found))
    return (
        Part("signal", "Lengths and correlations", signal_lead(found), tuple(maps)),
        Part("signal-edge", "Edge of chaos", _sentence(found.edge_note), _edges(found)),
        Part("signal-spectrum", "Jacobian", _spectrum_lead(found), (_jacobian(found),)),
    )


def _depth_lines(found: Signal) -> tuple[str, ...]:
    scale = found.correlation_scale
    if found.phase == "edge of chaos":
        return (
            "χ is 1 within its error: correlations change like a power of the depth, not "
            "exponentially.",
        )
    times = found.depth / scale.layers if scale.layers else math.inf
    way = "c* = 1" if found.phase == "ordered" else f"c* = {plain(found.correlation.value, 4)}"
    lost = "almost nothing" if times > _REACH else f"about {plain(100 * math.exp(-times), 2)} %"
    verb = "is" if found.depth == 1 else "are"
    return (
        f"Correlations tend to {way} within ξ_c = {plain(scale.layers, 4)} layers; "
        f"{count(found.depth, 'layer')} {verb} {plain(times, 3)} times that, and "
        f"leave{'s' if found.depth == 1 else ''} {lost} of a small difference from c*. Networks "
        f"were found to train up to about 6 ξ_c = {plain(_REACH * scale.layers, 3)} layers.",
    )


def _gradient_line(found: Signal) -> str:
    if found.phase == "edge of chaos":
        return "Squared gradients keep their mean from layer to layer."
    exponent = found.gradient.value / math.log(10)
    word = "grow" if exponent > 0 else "shrink"
    return (
        f"Squared gradients {word} by a factor {plain(found.chi.value, 4)} a layer on their way "
        f"back: {_power(exponent)} over {count(found.depth, 'layer')}."
    )


def _edge_lines(found: Signal) -> tuple[str, ...]:
    """Variances at the edge of chaos do not keep a network there where lengths leave it."""
    outward = found.drift is not None and found.drift.end == "infinity"
    left = [
        plain(point.square.value)
        for point in found.edges
        if abs(found.weights / point.weights.value - 1) < _SAME
        and (point.kind == "unstable" or (outward and point.square.value == 0))
    ]
    stays = found.phase == "edge of chaos" and found.drift is None
    if stays or not left:
        return ()
    end = "" if found.drift is not None else f", to q* = {plain(found.length.value)}"
    return (
        f"The variances are those of the edge of chaos at q = {', '.join(left)}, but lengths move "
        f"away from there{end}.",
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _power(exponent: float) -> str:
    if abs(exponent) < 4:
        return plain(10**exponent, 3)
    whole = math.floor(exponent)
    return f"{plain(10 ** (exponent - whole), 3)}e{whole}"


def _scales(found: Signal) -> Table:
    lengths = [
        ("Length q*", settled(found.length), "second moment of a preactivation, fixed by a layer"),
        ("Input |x|²/N", settled(found.start), "mean square of an input at which lengths start so"),
        ("ξ_q", _layers(found.length_scale), "layers over which a difference from q* falls to 1/e"),
    ]  # fmt: skip
    if found.drift is not None:
        lengths = [
            ("Growth of q", settled(found.drift.growth), f"by layer{_ENDS[found.drift.end]}"),
            ("ln q", settled(found.drift.whole), "the logarithm of its growth over all layers"),
            ("σ_w² that keeps q", settled(found.drift.kept), "weights with which lengths stay"),
            ("ξ_q", _layers(found.length_scale), "layers over which q falls to 1/e, or grows by e"),
        ]  # fmt: skip
    rows = [
        *lengths,
        ("χ", settled(found.chi), _chi_words(found)),
        ("Correlation c*", settled(found.correlation), "to which correlations of two inputs tend"),
        ("ξ_c", _layers(found.correlation_scale), "the same for a difference from c*"),
        ("ξ_Δ", _layers(found.gradient_scale), _gradient_words(found)),
        ("ln gradient", settled(found.gradient), "the logarithm of their growth over all layers"),
    ]  # fmt: skip
    head = ("Quantity", "#Value", "~Meaning")
    return Table.of("Fixed points and depth scales", head, rows, SETTLED)


def _chi_words(found: Signal) -> str:
    if found.drift is not None:
        return "growth of squared gradients; over that of q: slope of the correlation map at 1"
    return "slope of the correlation map at 1; growth of squared gradients"


def _gradient_words(found: Signal) -> str:
    if found.gradient_scale.rate.value < 0 and found.gradient_scale.known:
        return "layers over which squared gradients grow by e on their way back (negative: growth)"
    return "layers over which squared gradients fall to 1/e on their way back"


def _survival(found: Signal) -> Table:
    depth = found.survival[0].depth if found.survival else found.depth
    rows = (
        (
            plain(each.start),
            settled(each.end),
            settled(each.left),
            f"> {each.depth}" if each.layers is None else str(each.layers),
        )
        for each in found.survival
    )
    after = f"#c after {count(depth, 'layer')}"
    head = ("#c at the start", after, "#share of c − c* left", "#layers to 1%")
    return Table.of("How long a correlation survives", head, rows)


def _fixed_points(found: Signal) -> Table:
    points = found.fixed_points
    rows = ((settled(point.square), settled(point.slope), point.kind) for point in points)
    head = ("#q", "#slope of the length map", "lengths near it")
    return Table.of("All fixed points of the lengths", head, rows)


def _edges(found: Signal) -> tuple[Table, ...]:
    if not found.edges:
        return ()
    rows = (
        (
            settled(point.weights),
            "every" if point.every else settled(point.square),
            plain(found.weights / point.weights.value, 5),
            point.kind,
        )
        for point in found.edges
    )
    head = ("#σ_w²", "#q", "#σ_w² here, over that", "lengths near q")
    note = "At q = 0 the edge is a limit: small lengths see a linear network."
    zero = any(point.square.value == 0 for point in found.edges)
    caption = f"The edge of chaos with biases of σ_b² = {plain(found.biases)}"
    return (Table.of(caption, head, rows, note if zero else ""),)


def _spectrum_lead(found: Signal) -> str:
    share = plain(found.nonzero, 6)
    mean = _power(found.gradient.value / math.log(10))
    return (
        f"Squared singular values of the Jacobian of {count(found.depth, 'layer')} have the mean "
        f"{mean}, χ to the power of the depth; a share of {share} of them is not 0."
    )


def _jacobian(found: Signal) -> Table:
    rows = (
        (
            f"{row.family}{' (this one)' if row.family == found.family else ''}",
            settled(row.layer),
            settled(row.whole),
            row.note,
        )
        for row in found.jacobian
    )
    head = ("Weights", "#one layer", f"#{count(found.depth, 'layer')}", "?~Remark")
    return Table.of("Variance of squared singular values over their squared mean", head, rows)


def _layers(scale: Scale) -> str:
    if not scale.known:
        return f"∞ (at least {plain(scale.least, 2)})"
    if not math.isfinite(scale.rate.value):
        return "0"
    return settled(Estimate(scale.layers, scale.error, scale.rate.method))


@view.register
def _(found: Signal) -> View:
    said, summary, drawn = judge_signal(found), signal_summary(found), signal_figures(found)
    parts = signal_sections(found)
    return View.of(found, "Signals", *parts, said=said, summary=summary, figures=drawn)
