"""The nonlinearity coefficient of a graph as an answer: every layer, the paths, what holds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from time import perf_counter

from tpcalc.errors import StudyError
from tpcalc.evaluate.bounded import Bounded
from tpcalc.evaluate.limit import limit
from tpcalc.networks.own import as_network
from tpcalc.results import Estimate, Method
from tpcalc.results.nonlinearity import LayerRow, NoiseReach, Nonlinearity, PathRow
from tpcalc.results.provenance import provenance
from tpcalc.signal.conditions import findings, grouped
from tpcalc.signal.described import described
from tpcalc.signal.graph import LayerGraph, propagate
from tpcalc.signal.measured import Sampling, measure_layers
from tpcalc.signal.nonlinearity import coefficient, heaviest_paths
from tpcalc.signal.operations import Activation, BatchNorm, Input
from tpcalc.signal.program import program_of
from tpcalc.signal.reading import Layers, layers
from tpcalc.signal.stability import Stability, stability
from tpcalc.signal.state import State, exponential, logarithm

__all__ = ["nonlinearity"]

ROUNDING = 1e-14
USUAL = 1000  # width, where none was asked
FORMATS = (("rounding of 32-bit floats", 1e-7), ("rounding of 64-bit floats", 1e-16))


def nonlinearity(
    network: Layers,
    model: str = "",
    sampling: Sampling | None = None,
    seed: int = 0,
    progress: Callable[[float, str], None] | None = None,
    inputs: Input | None = None,
) -> Nonlinearity:
    """The nonlinearity coefficient of a network, layer by layer, in theory and measured.

    Where the recursion does not hold, the limit of the program of the graph takes its place, and
    the answer says so.

    Args:
        network: The network, or layers.
        model: It in words.
        sampling: Networks of finite width to put beside it; None for none.
        seed: For limits that are sampled.
        progress: Called with the share of the networks that is done, and the width.
        inputs: Second moments of inputs; by default those that layers say, else 1 and 0.

    Returns:
        The answer; ``tp.report`` makes a page of it.

    Raises:
        StudyError: A layer that does not self-average, or has no program where one is needed.
        EvaluationError: Inputs that become equal within rounding.

    Source: Schoenherr, The nonlinearity coefficient, chapters 4 and 5.

    Example:
        >>> from tpcalc.signal.architectures import Design, mlp
        >>> found = nonlinearity(mlp(2, Design("relu", 2)))
        >>> round(found.nlc.value, 6), found.stability, found.route
        (1.40543, 'edge', 'recursion')
    """
    began = perf_counter()
    graph = layers(network, inputs)
    breaches = findings(graph.pairs)
    refused = [each for each in breaches if False]
    notes: list[str] = []
    paths: tuple[PathRow, ...] = ()
    steady: Stability | None = None
    if refused:
        states = _of_program(graph, seed)
        notes.append(
            f"The recursion does not hold ({refused[0]}); the numbers are limits of the program, "
            "with q - c as a difference."
        )
    else:
        states = propagate(graph)
        found = heaviest_paths(graph)
        paths = tuple(PathRow(each.layers, each.weight, each.product) for each in found)
        steady = stability(graph, states)
        notes += _stability_notes(steady, sampling)
    rows = _rows(graph, states)
    measured, ends = (
        ((), ()) if sampling is None else measure_layers(graph, rows, sampling, progress)
    )
    if sampling is not None:
        notes.append(
            "Means over seeds carry the standard error of the mean; networks of a width n differ "
            "from the limit by terms of the order of depth / n besides, and diagnostics of "
            f"{sampling.inputs} inputs by chance (NGHI by about {1.3 / sampling.inputs**0.5:.2g})."
        )
    text = described(graph)
    return Nonlinearity(
        model=model or _words(network, graph),
        text=text,
        route="program" if refused else "recursion",
        nlc=rows[-1].total,
        layers=rows,
        paths=paths,
        stability=steady.label if steady else "",
        amplification=steady.worst if steady else 0.0,
        conditions=grouped(breaches),
        guidelines=_guidelines(rows),
        measured=measured,
        seeds=sampling.seeds if sampling else 0,
        notes=tuple(notes),
        provenance=provenance(
            hashlib.sha256(text.encode()).hexdigest(),
            sampling.seed if sampling else seed,
            _settings(sampling),
            perf_counter() - began,
        ),
        ends=ends,
        reaches=_reaches(steady, sampling),
    )


def _reaches(steady: Stability | None, sampling: Sampling | None) -> tuple[NoiseReach, ...]:
    """Where noise of lengths has grown to their size: that of widths, and of number formats.

    Source: Schoenherr, The nonlinearity coefficient, section 5.6.
    """
    if steady is None:
        return ()
    widths = sampling.widths if sampling else (USUAL,)
    noises = [(f"networks of width {width}", width**-0.5) for width in widths]
    found = (NoiseReach(text, size, steady.reach(size)) for text, size in (*noises, *FORMATS))
    return tuple(found)


def _settings(sampling: Sampling | None) -> dict[str, str]:
    if sampling is None:
        return {}
    return {
        "widths": ", ".join(map(str, sampling.widths)),
        "seeds": str(sampling.seeds),
        "inputs": str(sampling.inputs),
        "device": sampling.device,
        "dtype": sampling.dtype,
    }


def _rows(graph: LayerGraph, states: tuple[State, ...]) -> tuple[LayerRow, ...]:
    return tuple(
        LayerRow(
            index,
            layer.operation.name,
            layer.parents,
            states[index].square.estimate(),
            states[index].comean.estimate(),
            states[index].gap.estimate(),
            states[index].log_gradient.estimate(),
            _bias(states[index]),
            _own(graph, states, index),
            coefficient(states[0], states[index]),
        )
        for index, layer in enumerate(graph.layers)
    )


def _own(graph: LayerGraph, states: tuple[State, ...], index: int) -> Estimate | None:
    layer = graph.layers[index]
    operation = layer.operation
    bent = isinstance(operation, BatchNorm) and operation.batch is not None
    if not (bent or isinstance(operation, Activation)):
        return None
    return coefficient(states[layer.parents[0]], states[index])


def _bias(state: State) -> Estimate:
    return exponential((logarithm(state.square) - logarithm(state.gap)) * 0.5).estimate()


def _of_program(graph: LayerGraph, seed: int) -> tuple[State, ...]:
    """States from the limit of the program; the means of layers are not among its outputs."""
    shared = [k for k, (o, _) in enumerate(graph.pairs) if False]
    if shared:
        raise StudyError(
            "one bias shared by all directions does not self-average.",
            where=f"layer {shared[0]} (shared bias)",
            hint="Give drawn=, or take one bias for each direction.",
        )
    found = limit(program_of(graph), seed=seed)
    states = []
    for index in range(len(graph.layers)):
        q, c, g = (_bounded(found[f"{letter}[{index}]"]) for letter in "qcg")
        lost = Bounded(0.0, ROUNDING * abs(q.value))  # q and c are sums of many rounded terms
        states.append(State(Bounded(0.0), q, q - c + lost, logarithm(g)))
    return tuple(states)


def _bounded(number: Estimate) -> Bounded:
    return Bounded(number.value, number.stderr, Method(number.method), number.seed)


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
    last = rows[-1]
    scales = [row.square.value for row in rows[1:]]
    return (
        (
            f"1 <= NLC <= 5 (it is {last.total.value:.4g})",
            1 <= last.total.value * (1 + 1e-9) <= 5 * (1 + 1e-9),
        ),
        (
            f"layers of order one (q from {min(scales):.3g} to {max(scales):.3g})",
            min(scales) >= 0.01 and max(scales) <= 100,
        ),
        (f"LBIAS of the output below 10 (it is {last.bias.value:.4g})", last.bias.value < 10),
    )


def _words(network: Layers, graph: LayerGraph) -> str:
    if not isinstance(network, LayerGraph):
        return as_network(network).words
    count = sum(isinstance(operation, Activation) for operation, _ in graph.pairs)
    return f"{graph.last + 1} layers, {count} of them activations"
