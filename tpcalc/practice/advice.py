"""All guidelines, the worst first, and what would help, with the numbers that result."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf, log, sqrt
from time import perf_counter
from typing import Any, NamedTuple

from tpcalc import checks
from tpcalc.doors.budget import within
from tpcalc.errors import EvaluationError, TpcalcError
from tpcalc.meanfield.activations.calibrate import calibrated, debiased, normalized
from tpcalc.meanfield.answer import layer_rows, nonlinearity
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.layers.parts import NotFollowed
from tpcalc.meanfield.measured import Sampling
from tpcalc.meanfield.noise import FORMATS
from tpcalc.meanfield.operations import BatchNorm, Input, LayerNorm, batches, weights_of
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.meanfield.recursion import propagate
from tpcalc.meanfield.stability import stability
from tpcalc.practice.guidelines import (
    ACTIVATION,
    DOUBLED,
    GUIDELINES,
    LIGHT,
    Case,
    Noise,
    all_or_nothing,
    guideline,
)
from tpcalc.practice.nlnorm import nlnorm
from tpcalc.practice.orthogonality import drawn_inequality
from tpcalc.practice.rewrites import (
    norm_first,
    orthogonal,
    rebuilt,
    retune,
    unit_weights,
    with_skips,
)
from tpcalc.progress import Progress
from tpcalc.results.nonlinearity import Nonlinearity
from tpcalc.results.practice import GRADES, Advice, Change, Effect, Guideline, Thresholds
from tpcalc.results.tables import provenance
from tpcalc.shown import Rows

HARMED = 5000.0, 250  # the coefficient from which noise of batches of that size did harm
MOVED = 0.05  # of a logarithm: what counts as a change
JUDGED = [key for key, rule in GUIDELINES.items() if rule.threshold]


def guidelines(
    network: Layers,
    thresholds: Thresholds | None = None,
    noise: Sequence[float] = (),
    dtype: str = "float32",
    inputs: Input | None = None,
) -> tuple[Guideline, ...]:
    """A network judged by the guidelines for designs, in the limit of infinite width.

    Args:
        network: The network.
        thresholds: Where guidelines pass and fail; None: the usual ones.
        noise: Noise of the inputs that the network has to bear, over their size.
        dtype: The number format of a training.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.

    Returns:
        The guidelines G1 to G9.

    Raises:
        UsageError: Noise or a format that is none.
        EvaluationError: Neither the recursion nor a limit of its program covers the network.

    Source: Schoenherr, The nonlinearity coefficient, chapter 6.

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> [each.grade for each in guidelines(mlp(10, Design("relu", 2)))]
        ['pass', 'warn', 'pass', 'pass', 'warn', 'pass', 'warn', 'pass', 'report']
    """
    found = _answered(network, "", None, 0, None, inputs)
    case = _case(network, found, _bar(thresholds), inputs, None, dtype, noise)
    return Rows(guideline(key, case) for key in GUIDELINES)


def _bar(thresholds: Thresholds | None) -> Thresholds:
    given = Thresholds() if thresholds is None else thresholds
    return checks.of_type(given, Thresholds, "thresholds")


def _answered(network: Layers, *asked: Any) -> Nonlinearity:
    try:
        return nonlinearity(network, *asked)
    except NotFollowed as error:
        raise EvaluationError(error.message, where=error.where, hint=error.hint) from None


def advise(
    network: Layers,
    thresholds: Thresholds | None = None,
    widths: Sequence[int] = (),
    seeds: int = 4,
    noise: Sequence[float] = (),
    dtype: str = "float32",
    inputs: Input | None = None,
    seed: int = 0,
    device: str = "cpu",
    model: str = "",
    progress: Progress | None = None,
) -> Advice:
    """A network judged by the guidelines for designs, and what to change.

    Each change is computed: its numbers are those of the network that it makes. Only changes that
    help are told, with what they harm.

    Args:
        network: The network.
        thresholds: Where guidelines pass and fail; None: the usual ones.
        widths: Widths at which networks are drawn and measured besides.
        seeds: How many networks of each width.
        noise: Noise of the inputs that the network has to bear, over their size.
        dtype: The number format of a training: ``"float16"``, ``"bfloat16"``, ``"float32"``,
            ``"float64"``.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.
        seed: For networks, and limits that are sampled.
        device: Of networks: ``"cpu"``, ``"cuda"``, ``"auto"``.
        model: The network in words.
        progress: Called with the share of the networks that is done, and the width.

    Returns:
        The guidelines and the changes; ``tp.report`` makes a page of it.

    Raises:
        UsageError: Noise or a format that is none.
        EvaluationError: Neither the recursion nor a limit of its program covers the network.

    Source: Schoenherr, The nonlinearity coefficient, chapter 6.

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> found = advise(mlp(50, Design("relu", 2)))
        >>> found.grade, [each.key for each in found.guidelines][:2]
        ('fail', ['G7', 'G5'])
    """
    began = perf_counter()
    bar = _bar(thresholds)
    sampling = Sampling(tuple(widths), seeds, seed=seed, device=device) if len(widths) else None
    found = _answered(network, model, sampling, seed, progress, inputs)
    case = _case(network, found, bar, inputs, sampling, dtype, noise)
    judged = {key: guideline(key, case) for key in GUIDELINES}
    noisy = bool(noise) or (case.graph is not None and bool(_batches(case.graph)))
    bias = max(row.bias.value for row in found.layers[1:])
    unstable = found.architecture == "GUA"
    settings = {"thresholds": str(bar), "widths": ", ".join(map(str, widths)), "dtype": dtype}
    digest = hashlib.sha256(found.text.encode()).hexdigest()
    return Advice(
        found.model,
        found.text,
        found.route,
        tuple(sorted(judged.values(), key=lambda each: _rank(case, each))),
        tuple(_changes(case, judged)),
        all_or_nothing(found.nlc.value, bias, unstable, noisy),
        bar,
        found.widths,
        found.seeds,
        found.ends,
        found.notes,
        provenance(digest, seed, settings, perf_counter() - began),
    )


def _case(
    network: Layers,
    found: Nonlinearity,
    bar: Thresholds,
    inputs: Input | None,
    sampling: Sampling | None,
    dtype: str,
    noise: Sequence[float],
) -> Case:
    checks.one_of("format", dtype, FORMATS)
    case = Case(found.layers, bar)
    if found.route == "recursion":
        case = case_of(layers(network, inputs), case)
    measured = None if sampling is None else drawn_inequality(network, sampling)
    noises = tuple(_noises(case, dtype, noise))
    return replace(case, noises=noises, measured=found.measured, inequality=measured)


def case_of(graph: LayerGraph, like: Case) -> Case:
    """The layers as guidelines look at them, in the limit alone."""
    states = propagate(graph)
    steady = stability(graph, states)
    rows = layer_rows(graph, states, steady)
    return Case(rows, like.thresholds, like.noises, graph, states, steady)


def _batches(graph: LayerGraph) -> list[int | None]:
    return batches(layer.operation for layer in graph.layers)


def _noises(case: Case, dtype: str, given: Sequence[float]) -> Iterator[Noise]:
    for name, known in FORMATS.items():
        yield Noise(name, known.epsilon, name == dtype)
    for size in checks.floats(given, "noise"):
        yield Noise("noise of inputs", float(checks.real(size, "noise", above=0)))
    finite = [size for size in _batches(case.graph) if size] if case.graph else []
    if finite:
        size = min(finite)
        coefficient, seen = HARMED
        yield Noise(f"batches of {size}, by 1/sqrt(B)", size**-0.5, False)
        yield Noise(f"batches of {size}, as observed", sqrt(seen / size) / coefficient)


# -------------------------------------------------------------------------------------- what helps


class Candidate(NamedTuple):
    """Something to do otherwise."""

    what: str
    code: str
    make: Callable[[], LayerGraph]


def _changes(case: Case, judged: dict[str, Guideline]) -> list[Change]:
    """The changes that help, the best first."""
    if case.graph is None:
        return []
    found: list[tuple[tuple[float, ...], Change]] = []
    for each in _candidates(case.graph, case):
        try:
            with within(LIGHT):
                other = replace(case_of(each.make(), case), scales=(DOUBLED,))
        except TpcalcError:  # a network without states is no advice
            continue
        then = {key: guideline(key, other) for key in JUDGED}
        sizes = {key: (excess(case, judged[key]), excess(case, then[key])) for key in JUDGED}
        effects = {key: _effect(judged[key], then[key]) for key in JUDGED}
        helps, harms = (
            tuple(
                effect
                for key, effect in effects.items()
                if effect and sign * (sizes[key][0] - sizes[key][1]) > MOVED
            )
            for sign in (1, -1)
        )
        if helps:
            grades = [each.grade for each in then.values()]
            rank = (grades.count("fail"), grades.count("warn"), sum(b for _, b in sizes.values()))
            found.append((rank, Change(each.what, each.code, helps, harms)))
    return [change for _, change in sorted(found, key=lambda pair: pair[0])]


def _rank(case: Case, own: Guideline) -> tuple[int, float]:
    """The worst grade comes first, of one grade what is farthest from what passes."""
    worse = min(own.grade, own.measured_grade, key=GRADES.index) if own.measured else own.grade
    return GRADES.index(worse), -excess(case, own)


def _effect(now: Guideline, then: Guideline) -> Effect | None:
    if now.value is None or then.value is None:
        return None
    return Effect(now.key, now.metric, now.value, then.value, now.grade, then.grade)


def excess(case: Case, own: Guideline) -> float:
    """How far a number is from what passes, as a logarithm."""
    if own.value is None or own.grade == "pass":
        return 0.0
    value, limit = own.value.value, own.limits[0]
    name = GUIDELINES[own.key].threshold
    if name == "nlc" and value < limit:
        value, limit = case.thresholds.linear - 1, value - 1
    if name == "bend":
        value, limit = limit, value
    if name == "scale":
        value = max(value, 1 / value) if value > 0 else inf
    if value <= 0 or limit <= 0:
        return inf
    return max(log(value / limit), 0.0) + (own.grade == "fail")


def _candidates(graph: LayerGraph, case: Case) -> Iterator[Candidate]:
    for what, code, rule in _RULES:
        yield Candidate(what, f"rewritten(net, {code})", partial(rebuilt, graph, rule))
    own = dict.fromkeys(ACTIVATION(graph.layers[row.index].operation) for row in case.activations)
    if own:
        target = sqrt(case.thresholds.linear * case.thresholds.nlc[0])
        yield Candidate(
            f"activations made for the NLC {target:.3g} (nlnorm)",
            f"nlnorm(act, {target:.3g}, network=net).network",
            lambda: layers(nlnorm(list(own), target, network=graph).network or graph),
        )
    count = len(case.activations)
    if count > 1 and not any(weights_of(layer.operation) for layer in graph.layers):
        for skip, branch in ((0.5, 0.5), (1 - 1 / count, 1 / count)):
            pair = sqrt(skip), sqrt(branch)
            yield Candidate(
                f"skip connections, {pair[0]:.3g} h + {pair[1]:.3g} block(h)",
                f"skipping(net, {pair[0]:.6g}, {pair[1]:.6g})",
                partial(with_skips, graph, *pair),
            )
    yield from _shorter(graph, case)


def _shorter(graph: LayerGraph, case: Case) -> Iterator[Candidate]:
    """The deepest beginning of the network whose coefficient and bias pass."""
    bar, count = case.thresholds, len(case.activations)
    for row in reversed(case.activations):
        good = row.total.value <= bar.nlc[0] and row.bias.value <= bar.bias[0]
        if good and row.index < graph.last - 1:
            depth = sum(each.index <= row.index for each in case.activations)
            made = partial(LayerGraph, graph.layers[: row.index + 1])
            yield Candidate(f"{depth} activations in place of {count}", "fewer layers", made)
            return


_RULES = (
    ("debiased activations", "retune(debiased)", retune(debiased)),
    ("activations of mean square 1", "retune(normalized)", retune(normalized)),
    (
        "debiased activations of mean square 1",
        "retune(lambda tau, q: calibrated(tau, debias=True, q=q))",
        retune(lambda tau, q: calibrated(tau, debias=True, q=q)),
    ),
    ("layer norm before every activation", "norm_first(LayerNorm())", norm_first(LayerNorm())),
    ("batch norm before every activation", "norm_first(BatchNorm())", norm_first(BatchNorm())),
    ("weights that keep lengths 1", "unit_weights", unit_weights),
    ("orthogonal weights", "orthogonal", orthogonal),
)
