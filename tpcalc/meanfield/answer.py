"""The nonlinearity coefficient of a graph as an answer: every layer, the paths, what holds."""

from __future__ import annotations

import hashlib
from math import sqrt
from time import perf_counter
from typing import NamedTuple

from tpcalc.errors import StudyError, TpcalcError
from tpcalc.evaluate.limit import limit
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.meanfield.conditions import findings, grouped
from tpcalc.meanfield.control import conditions
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.layers.parts import NotFollowed
from tpcalc.meanfield.measured import Sampling, measure_layers
from tpcalc.meanfield.noise import reaches
from tpcalc.meanfield.nonlinearity import coefficient, heaviest_paths
from tpcalc.meanfield.notation.notation import described
from tpcalc.meanfield.operations import Input, batches
from tpcalc.meanfield.program import program_of
from tpcalc.meanfield.reading import Layers, layers, start_of
from tpcalc.meanfield.recursion import STATE, propagate
from tpcalc.meanfield.stability import Stability, stability
from tpcalc.meanfield.state import State, logarithm
from tpcalc.names import Name, layered
from tpcalc.networks.own import as_network
from tpcalc.program.base import input_of
from tpcalc.progress import Progress
from tpcalc.results import Estimate
from tpcalc.results.nonlinearity import (
    Condition,
    LayerRow,
    MeasuredEnd,
    MeasuredRow,
    NoiseReach,
    Nonlinearity,
    PathRow,
    Route,
)
from tpcalc.results.practice import SLACK, Thresholds
from tpcalc.results.tables import provenance

ROUNDING = 1e-14


def nonlinearity(
    network: Layers,
    model: str = "",
    sampling: Sampling | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    inputs: Input | None = None,
) -> Nonlinearity:
    """The nonlinearity coefficient of a network, layer by layer, in theory and measured.

    Where the recursion does not hold, the limit of the program of the network takes its place, and
    the answer says so.

    Args:
        network: The network.
        model: It in words.
        sampling: Networks of finite width to put beside it; None for none.
        seed: For limits that are sampled.
        progress: Called with the share of the networks that is done, and the width.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.

    Returns:
        The answer; ``tp.report`` makes a page of it.

    Raises:
        StudyError: A layer that does not self-average, or has no program where one is needed.
        EvaluationError: Inputs that become equal within rounding.

    Source: Schoenherr, The nonlinearity coefficient, chapters 4 and 5.

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> found = nonlinearity(mlp(2, Design("relu", 2)))
        >>> round(found.nlc.value, 6), found.stability, found.route
        (1.40543, 'edge', 'recursion')
    """
    began = perf_counter()
    try:
        found = _by_recursion(network, inputs, sampling, progress)
    except NotFollowed as error:
        found = _by_program(network, inputs, seed, error)
    return Nonlinearity(
        model=model or (network if isinstance(network, LayerGraph) else as_network(network)).words,
        text=found.text,
        route=found.route,
        nlc=found.rows[-1].total,
        layers=found.rows,
        paths=found.paths,
        stability=found.steady.label if found.steady else "",
        amplification=found.steady.worst if found.steady else 0.0,
        conditions=found.conditions,
        guidelines=_guidelines(found.rows),
        measured=found.measured,
        seeds=sampling.seeds if sampling and found.measured else 0,
        notes=found.notes,
        provenance=provenance(
            hashlib.sha256(found.text.encode()).hexdigest(),
            sampling.seed if sampling else seed,
            _settings(sampling),
            perf_counter() - began,
        ),
        ends=found.ends,
        reaches=found.reaches,
        architecture=found.steady.architecture if found.steady else "",
        theorem=found.theorem,
    )


class _Found(NamedTuple):
    """What one of the two routes says."""

    route: Route
    text: str
    rows: tuple[LayerRow, ...]
    notes: tuple[str, ...]
    paths: tuple[PathRow, ...] = ()
    steady: Stability | None = None
    conditions: tuple[str, ...] = ()
    measured: tuple[MeasuredRow, ...] = ()
    ends: tuple[MeasuredEnd, ...] = ()
    reaches: tuple[NoiseReach, ...] = ()
    theorem: tuple[Condition, ...] = ()


def _by_recursion(
    network: Layers, inputs: Input | None, sampling: Sampling | None, progress: Progress | None
) -> _Found:
    graph = layers(network, inputs)
    states = propagate(graph)
    steady = stability(graph, states)
    rows = layer_rows(graph, states, steady)
    notes = _stability_notes(steady, sampling)
    measured: tuple[MeasuredRow, ...] = ()
    ends: tuple[MeasuredEnd, ...] = ()
    if sampling is not None:
        measured, ends = measure_layers(network, graph, rows, sampling, progress)
        notes.append(
            "Means over seeds carry the standard error of the mean; networks of a width n differ "
            "from the limit by terms of the order of depth / n besides, and diagnostics of "
            f"{sampling.inputs} inputs by chance (NGHI by about {1.3 / sampling.inputs**0.5:.2g})."
        )
    paths, noise = tuple(heaviest_paths(graph)), reaches(graph, states, steady, sampling)
    found = (tuple(notes), paths, steady, grouped(findings(graph)), measured, ends, noise)
    return _Found("recursion", described(graph), rows, *found, conditions(graph, states))


def _by_program(network: Layers, inputs: Input | None, seed: int, refused: NotFollowed) -> _Found:
    """The limit of the program, for the vectors that the network reports."""
    start = inputs or start_of(network)
    try:
        program = program_of(network, start)
    except TpcalcError:
        raise refused from None
    drawn = [node for node in map(input_of, program.nodes) if node is not None]
    if not all(node.family.width for node in drawn):
        raise StudyError(
            "one bias shared by all coordinates does not self-average.",
            where=refused.where,
            hint="Give it a number, or take one bias for each coordinate.",
        )
    limits = limit(program, seed=seed)
    first = STATE(start)
    rows = [_row((0, "input", ()), first, first)]
    for name in [own.layer for own in map(Name.of, program.output) if own.what == "g"]:
        q, v, g = (bounded(limits[layered(letter, name)]) for letter in "qvg")
        lost = Bounded(0.0, ROUNDING * abs(q.value))  # q and c are sums of many rounded terms
        state = State(Bounded(0.0), q, v + lost, logarithm(g))
        rows.append(_row((len(rows), name, ()), first, state))
    said = (
        f"{refused.where}: {refused.message.rstrip('.')}; the numbers are limits of the program at "
        "the vectors that the network reports, with q - c as a difference."
    )
    return _Found("program", str(program), tuple(rows), (said,))


def _settings(sampling: Sampling | None) -> dict[str, str]:
    if sampling is None:
        return {}
    words = {name: str(getattr(sampling, name)) for name in ("seeds", "inputs", "device", "dtype")}
    return {"widths": ", ".join(map(str, sampling.widths)), **words}


def layer_rows(
    graph: LayerGraph, states: tuple[State, ...], steady: Stability
) -> tuple[LayerRow, ...]:
    """Every layer in the limit."""
    places = ((k, own.operation.name, own.parents) for k, own in enumerate(graph.layers))
    return tuple(
        _row(place, states[0], state, _own(graph, states, place[0]), growth)
        for place, state, growth in zip(places, states, steady.numbers, strict=True)
    )


def _row(
    place: tuple[int, str, tuple[int, ...]],
    start: State,
    state: State,
    own: Estimate | None = None,
    growth: Bounded | None = None,
) -> LayerRow:
    square, comean, gap = state.square, state.comean, state.gap
    q, c, v, g, bias = (
        x.estimate() for x in (square, comean, gap, state.log_gradient, state.shared)
    )
    s = None if growth is None else growth.estimate()
    return LayerRow(*place, q, c, v, g, bias, own, coefficient(start, state), s)


def _own(graph: LayerGraph, states: tuple[State, ...], index: int) -> Estimate | None:
    layer = graph.layers[index]
    bent = len(layer.parents) == 1 and layer.operation.bends
    if not (bent or any(batches([layer.operation]))):
        return None
    return coefficient(states[layer.parents[0]], states[index])


def _stability_notes(steady: Stability, sampling: Sampling | None) -> list[str]:
    if steady.label != "unstable":
        return []
    said = (
        "Gaussian instability: relative deviations of lengths grow by up to "
        f"{steady.worst:.3g}, so that the mean-field prediction is unreliable for narrow networks"
    )
    widths = sampling.widths if sampling else ()
    bad = [width for width in widths if steady.excess(width) > 0.1]
    if bad:
        said += f" (width {max(bad)}: about {steady.excess(max(bad)):.2g} of the length)"
    return [said + "."]


def _guidelines(rows: tuple[LayerRow, ...]) -> tuple[tuple[str, bool], ...]:
    """Rules for architectures at the start of training.

    Source: Schoenherr, The nonlinearity coefficient, chapter 1 (guidelines 1, 3, 5).
    """
    bar, last = Thresholds(), rows[-1]
    low, high = (end(sqrt(row.square.value) for row in rows[1:]) for end in (min, max))
    nlc, most, bias = last.total.value, bar.nlc[0], last.bias.value
    return (
        (f"1 <= NLC <= {most:g} (it is {nlc:.4g})", nlc <= most * (1 + SLACK)),
        (
            f"layers of order one (LSCALE from {low:.3g} to {high:.3g})",
            "fail" not in {bar.grade("scale", low), bar.grade("scale", high)},
        ),
        (
            f"LBIAS of the output below {bar.bias[1]:g} (it is {bias:.4g})",
            bar.grade("bias", bias) != "fail",
        ),
    )
