"""The guidelines for designs at the start of training, each a number with limits: a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import expm1, inf
from types import MappingProxyType
from typing import NamedTuple

from tpcalc.doors.budget import limits_of, within
from tpcalc.errors import StudyError, TpcalcError
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import derivative
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import EPS, Bounded, bounded
from tpcalc.integrals.given import of_activation
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.noise import FORMATS, USUAL, overflow
from tpcalc.meanfield.nonlinearity import coefficient, log_square
from tpcalc.meanfield.operations import Bias, Dense, Number, batches
from tpcalc.meanfield.recursion import propagate
from tpcalc.meanfield.stability import Stability, mean_growth, stability_number
from tpcalc.meanfield.state import State
from tpcalc.practice.limits import sizes
from tpcalc.practice.orthogonality import inequality
from tpcalc.practice.rewrites import TAU, rebuilt, scale_weights
from tpcalc.program.base import Table
from tpcalc.results import Estimate, Method
from tpcalc.results.nonlinearity import LayerRow, MeasuredRow, MeasuredValue
from tpcalc.results.practice import GRADES, Grade, Guideline, LayerValue, Thresholds

# LBIAS, and the coefficient of noisy networks, above which nothing is learned
HARMFUL_BIAS, LOST = 10.0, 1000.0
LIGHT = limits_of(None, "128MiB")  # of averages at lengths that explode
DOUBLED = 2.0
SCALES = (0.5, DOUBLED, 10.0)  # of the variances of weights


class Noise(NamedTuple):
    """Noise of inputs or layers, over their size; whether a network is judged by it."""

    text: str
    size: float
    judged: bool = True


@dataclass(frozen=True)
class Case:
    """A network as guidelines look at it.

    Args:
        rows: Its layers in the limit.
        thresholds: What is judged by.
        noises: What it has to bear.
        graph: Its layers, where the recursion follows them.
        states: Their states.
        steady: Their Gaussian stability.
        measured: Networks of finite width.
        inequality: Of drawn networks sqrt(m_2) / m_1, where it was measured.
        scales: What variances of weights are multiplied by.
    """

    rows: Sequence[LayerRow]
    thresholds: Thresholds
    noises: tuple[Noise, ...] = ()
    graph: LayerGraph | None = None
    states: tuple[State, ...] = ()
    steady: Stability | None = None
    measured: tuple[MeasuredRow, ...] = ()
    inequality: MeasuredValue | None = None
    scales: tuple[float, ...] = SCALES

    @property
    def followed(self) -> tuple[LayerGraph, Stability]:
        """The layers, where the recursion follows them."""
        if self.graph is None or self.steady is None:
            raise StudyError("the recursion does not follow the network.")
        return self.graph, self.steady

    @property
    def activations(self) -> list[LayerRow]:
        """Layers that bend one other."""
        return [row for row in self.rows if row.growth is not None and len(row.reads) == 1]

    @property
    def batches(self) -> list[int | None]:
        """The batches of batch norms, None for infinite ones."""
        return batches(each.operation for each in self.graph.layers) if self.graph else []

    def at_width(self, name: str) -> dict[int, MeasuredValue]:
        """A metric of the layers of the widest networks."""
        width = max((row.width for row in self.measured), default=0)
        here = (row for row in self.measured if row.width == width)
        return {row.layer: value for row in here if (value := row.value(name)) is not None}


class Found(NamedTuple):
    """What a guideline sees: layers with numbers, the number that is judged, and where."""

    layers: Iterable[tuple[int, Estimate]] = ()
    value: Estimate | None = None
    layer: int | None = None
    measured: Mapping[int, MeasuredValue] = MappingProxyType({})
    judged: MeasuredValue | None = None
    notes: tuple[str, ...] = ()
    least: Grade = "report"


class Rule(NamedTuple):
    """A guideline: its thresholds by name, what it asks for, what it looks at, and how."""

    threshold: str
    title: str
    metric: str
    look: Callable[[Case], Found]


def guideline(key: str, case: Case) -> Guideline:
    """A network judged by one guideline; what cannot be had is said."""
    rule = GUIDELINES[key]
    try:
        found = rule.look(case)
    except TpcalcError as error:
        where = f"{error.where}: " if error.where else ""
        found = Found(notes=(f"{where}{error.message}",))
    names = {row.index: row.operation for row in case.rows}
    layers = tuple(LayerValue(k, names[k], v, found.measured.get(k)) for k, v in found.layers)
    means = found.value, found.judged.mean if found.judged else None
    theory, measured = (_grade(rule.threshold, value, case.thresholds) for value in means)
    limits = getattr(case.thresholds, rule.threshold) if rule.threshold else ()
    shown = found.value, found.layer, limits, layers, found.judged, measured, found.notes
    worse = min(theory, found.least, key=GRADES.index)
    return Guideline(key, rule.title, rule.metric, worse, *shown)


def _grade(name: str, value: Estimate | None, bar: Thresholds) -> Grade:
    if not name:
        return "report"
    return "open" if value is None else bar.grade(name, value.value)


# ------------------------------------------------------------------------------ what they look at


def _nlc(case: Case) -> Found:
    last, own = case.rows[-1], case.at_width("NLC")
    layers = [(row.index, row.total) for row in case.rows[1:]]
    return Found(layers, last.total, last.index, own, own.get(last.index))


def _gaussian(case: Case) -> Found:
    graph, steady = case.followed
    layers = [(row.index, row.growth) for row in case.activations if row.growth is not None]
    worst = max(layers, key=lambda pair: abs(pair[1].value), default=(None, None))[0]
    notes = ["measured: LCV, the spread of lengths between inputs"] if case.measured else []
    if steady.architecture:
        notes.append(f"a Gaussian {'unstable' if steady.architecture == 'GUA' else 'edge'} "
                     f"architecture ({steady.architecture})")  # fmt: skip
    beyond = overflow(graph, case.states, steady, FORMATS["float32"])
    if beyond is not None:
        notes.append(f"a rounding of the inputs leaves the range of float32 at layer {beyond}")
    grade: Grade = "pass" if steady.label == "stable" else "warn"
    value = Estimate(steady.along, EPS * steady.along, Method.QUADRATURE)
    return Found(layers, value, worst, case.at_width("LCV"), None, tuple(notes), grade)


def _worst(case: Case, name: str, metric: str, layers: list[tuple[int, Estimate]]) -> Found:
    """The layer where a number is worst, in the limit and of networks."""
    own, size = case.at_width(metric), partial(case.thresholds.size, name)
    layer, value = max(layers, key=lambda pair: size(pair[1].value))
    judged = max((own[k] for k in own if k), key=lambda each: size(each.mean.value), default=None)
    return Found(layers, value, layer, own, judged)


def _scale(case: Case) -> Found:
    layers = [(row.index, bounded(row.square).root().estimate()) for row in case.rows[1:]]
    return _worst(case, "scale", "LSCALE", layers)


def _bias(case: Case) -> Found:
    found = _worst(case, "bias", "LBIAS", [(row.index, row.bias) for row in case.rows[1:]])
    return found._replace(notes=(f"of the output: {case.rows[-1].bias.value:.4g}",))


def _training(case: Case) -> Found:
    graph, _ = case.followed
    now, last = case.rows[-1], len(case.rows) - 1
    notes, change = [], Estimate(inf, 0.0, Method.QUADRATURE)
    for factor in case.scales:
        said = f"weights of {factor:g} times the variance"
        try:
            with within(LIGHT):
                states = propagate(rebuilt(graph, scale_weights(factor)))
            own = bounded(coefficient(states[0], states[last]))
        except TpcalcError as error:
            notes.append(f"{said}: {error.message}")
            continue
        ratio = own / bounded(now.total)
        if factor == DOUBLED:
            change = (ratio if ratio.value >= 1 else ratio.inverse()).estimate()
        size = states[last].square.value / now.square.value
        bias = max(state.bias for state in states[1:])
        notes.append(f"{said}: NLC {own.value:.4g}, q {size:.3g} times, LBIAS up to {bias:.3g}")
    layers = []
    for row in case.activations if case.scales == SCALES else ():
        square = case.states[row.reads[0]].square
        tau = TAU(graph.layers[row.index].operation)
        layers.append((row.index, elasticity(tau, square).estimate()))
    worst = max(layers, key=lambda pair: abs(pair[1].value), default=(None, None))[0]
    return Found(layers, change, worst, notes=tuple(notes))


def _noise(case: Case) -> Found:
    nlc, worst = case.rows[-1].total, max(row.bias.value for row in case.rows[1:])
    notes, least = [], case.thresholds.grade("noise", 0)
    for each in case.noises:
        size = each.size * nlc.value
        notes.append(f"{each.text}: noise x NLC = {size:.3g}, outputs are off by about twice that")
        if each.judged and size * worst >= 1 > size:
            notes.append(f"{each.text}: times the largest LBIAS it is {size * worst:.3g}")
            least = "warn"
        if each.judged and each.size * worst >= 1:
            notes.append(f"{each.text}: noise x LBIAS >= 1, so that no metric can be measured")
    largest = max((each for each in case.noises if each.judged), key=lambda each: each.size)
    value = (bounded(nlc) * largest.size).estimate()
    own = case.at_width("NLC").get(case.rows[-1].index)
    judged = own and replace(own, mean=(bounded(own.mean) * largest.size).estimate(), limit=value)
    return Found((), value, None, {}, judged, tuple(notes), least)


def _inequality(case: Case) -> Found:
    graph, _ = case.followed
    shown = {len(case.rows) - 1} | {row.index for row in case.activations}
    try:
        roots = [each.root().estimate() for each in inequality(graph, case.states)]
    except StudyError as error:
        if case.inequality is None:
            raise
        return Found((), None, None, {}, case.inequality, (f"{error.where}: {error.message}",))
    layers = [(k, each) for k, each in enumerate(roots) if k in shown]
    own = case.inequality and replace(case.inequality, limit=roots[-1])
    return Found(layers, roots[-1], len(roots) - 1, {len(roots) - 1: own} if own else {}, own)


def _bend(case: Case) -> Found:
    layers: list[tuple[int, Estimate]] = []
    _ = case.followed
    for row in case.activations:
        half = log_square(case.states[row.reads[0]], case.states[row.index]) * 0.5
        value = expm1(half.value)
        layers.append((row.index, Bounded(value, (1 + value) * half.error).estimate()))
    if not layers:
        linear = Estimate(0.0, 0.0, Method.EXACT)
        return Found((), linear, notes=("no activation bends a layer: the network is linear",))
    return _worst(case, "bend", "", layers)


def _width(case: Case) -> Found:
    graph, _ = case.followed
    widths = sorted({row.width for row in case.measured}) or [USUAL]
    ranks = [float(rank) for each in graph.layers if (rank := _RANK(each.operation)) is not None]
    narrowest = min(*filter(None, sizes(graph)), *ranks)
    notes = [f"narrowest layer or rank: {narrowest:g} n"]
    for width in widths:
        wide = sizes(graph, width=width)
        counts = (
            _COUNT(each.operation, width, size, *(wide[p] for p in each.parents))
            for each, size in zip(graph.layers, wide, strict=True)
        )
        said = f"width {width}: {sum(counts):,.0f} parameters"
        last = [row for row in case.measured if (row.width, row.layer) == (width, graph.last)]
        value = last[0].value("NLC") if last else None
        notes.append(said if value is None else f"{said}, NLC {value.mean.value:.4g}")
    return Found(notes=tuple(notes))


def _weights(own: Dense, n: int, size: float, read: float) -> float:
    return size * read * n * n if own.rank is None else float(own.rank) * n * n * (size + read)


_RANK: Table[Number | None] = Table({Dense: lambda own: own.rank}, lambda own: None)
_COUNT: Table[float] = Table(
    {Dense: _weights, Bias: lambda own, n, size, read: size * n}, lambda own, n, *sizes: 0.0
)

GUIDELINES: dict[str, Rule] = {
    "G1": Rule("nlc", "Coefficient", "NLC", _nlc),
    "G2": Rule("growth", "Gaussian stability", "R along paths", _gaussian),
    "G3": Rule("scale", "Scale stability", "LSCALE", _scale),
    "G4": Rule("sensitivity", "Training stability", "NLC at twice the variance", _training),
    "G5": Rule("bias", "Neuron bias", "LBIAS", _bias),
    "G6": Rule("noise", "Noise stability", "noise x NLC", _noise),
    "G7": Rule("inequality", "Orthogonality", "sqrt(m2)/m1 of J J^T", _inequality),
    "G8": Rule("bend", "Pseudo-linearity", "NLC of a layer - 1", _bend),
    "G9": Rule("", "Width", "parameters", _width),
}
"""The guidelines of chapter 6 of Schoenherr, The nonlinearity coefficient, and of section 9.7."""


# ----------------------------------------------------------------------------------- single numbers


@of_activation
def elasticity(tau: Expr, q: Bounded | float = 1.0) -> Bounded:
    """How the coefficient grows with the input: d log n(q, 0) / d log lambda at q = lambda^2.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        q: The variance.

    Returns:
        The elasticity, with a bound on its error.

    Source: Schoenherr, The nonlinearity coefficient, section 6.3; by derivatives of the density.

    Example:
        >>> round(elasticity("tanh").value, 6), abs(elasticity("relu").value) < 1e-12
        (0.155003, True)
    """
    q = bounded(q)
    kernels = Kernels(tau)
    mean, second = kernels.mean(q), kernels.second(q)
    spread = second - mean * mean
    steep = stability_number(derivative(tau, Var(0)), q)
    moved = stability_number(tau, q) * second - 2 * mean * mean_growth(tau, q)
    return 1 + steep - moved / spread


def all_or_nothing(nlc: float, bias: float, unstable: bool = False, noisy: bool = False) -> str:
    """Why a network cannot generalize, whatever the learning rate: one word, the first that holds.

    Args:
        nlc: Its nonlinearity coefficient.
        bias: Its LBIAS.
        unstable: Whether its architecture is Gaussian unstable.
        noisy: Whether inputs come with noise, of batch norm or of augmentation.

    Returns:
        A word of ``FAILURES``, with the colour of figure 6.19; empty for none.

    Source: Schoenherr, The nonlinearity coefficient, section 6.8 (figure 6.19).

    Example:
        >>> all_or_nothing(3, 17), all_or_nothing(2000, 1, noisy=True), all_or_nothing(2000, 1)
        ('biased', 'noise', '')
    """
    if unstable:
        return "Gaussian unstable"
    if bias > HARMFUL_BIAS:
        return "biased"
    return "noise" if noisy and nlc > LOST else ""
