"""All guidelines, the worst first, and what would help, with the numbers that result."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import sqrt
from time import perf_counter
from typing import Any, NamedTuple

from tpcalc import checks
from tpcalc.doors.budget import within
from tpcalc.errors import EvaluationError, TpcalcError
from tpcalc.functions import Expr
from tpcalc.integrals.given import tau_of
from tpcalc.meanfield.activations.calibrate import calibrated, debiased, normalized
from tpcalc.meanfield.answer import layer_rows, nonlinearity
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.layers.parts import NotFollowed
from tpcalc.meanfield.measured import Sampling
from tpcalc.meanfield.noise import FORMATS
from tpcalc.meanfield.operations import Input, weights_of
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.meanfield.recursion import propagate
from tpcalc.meanfield.stability import stability
from tpcalc.practice.guidelines import (
    DOUBLED,
    GUIDELINES,
    LIGHT,
    Case,
    Noise,
    all_or_nothing,
    guideline,
)
from tpcalc.practice.nlnorm import fitted
from tpcalc.practice.orthogonality import drawn_inequality
from tpcalc.practice.rewrites import (
    TAU,
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
MEASURED = 200  # inputs of networks, of which means are asked alone
MOVED = 0.05  # of a logarithm: what counts as a change
JUDGED = [key for key, rule in GUIDELINES.items() if rule.threshold]
Judged = dict[str, Guideline]


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
    case, _ = _asked(network, thresholds, noise, dtype, inputs)
    return Rows(judged(case, GUIDELINES).values())


def judged(case: Case, keys: Iterable[str] = JUDGED) -> Judged:
    """A network judged by guidelines."""
    return {key: guideline(key, case) for key in keys}


def _asked(
    network: Layers,
    thresholds: Thresholds | None,
    noise: Sequence[float],
    dtype: str,
    inputs: Input | None,
    model: str = "",
    sampling: Sampling | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Case, Nonlinearity]:
    """The network as guidelines look at it, and its coefficients."""
    checks.one_of("format", dtype, FORMATS)
    bar = Thresholds() if thresholds is None else thresholds
    checks.of_type(bar, Thresholds, "thresholds")
    try:
        found = nonlinearity(network, model, sampling, seed, progress, inputs)
    except NotFollowed as error:
        raise EvaluationError(error.message, where=error.where, hint=error.hint) from None
    case = Case(found.layers, bar)
    if found.route == "recursion":
        case = case_of(layers(network, inputs), case)
    measured = None if sampling is None else drawn_inequality(network, sampling)
    noises = tuple(_noises(case, dtype, noise))
    return replace(case, noises=noises, measured=found.measured, inequality=measured), found


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
    more: dict[str, Any] = {"inputs": MEASURED, "seed": seed, "device": device}
    sampling = Sampling(tuple(widths), seeds, **more) if len(widths) else None
    given = thresholds, noise, dtype, inputs, model, sampling, seed, progress
    case, found = _asked(network, *given)
    all_ = judged(case, GUIDELINES)
    bias = max(row.bias.value for row in found.layers[1:])
    failure = all_or_nothing(
        found.nlc.value, bias, found.architecture == "GUA", bool(noise) or bool(case.batches)
    )
    bar = case.thresholds
    settings = {"thresholds": str(bar), "widths": ", ".join(map(str, widths)), "dtype": dtype}
    digest = hashlib.sha256(found.text.encode()).hexdigest()
    return Advice(
        found.model,
        found.text,
        found.route,
        tuple(sorted(all_.values(), key=partial(_rank, bar))),
        tuple(_changes(case, all_)),
        failure,
        bar,
        found.widths,
        found.seeds,
        found.ends,
        found.notes,
        provenance(digest, seed, settings, perf_counter() - began),
    )


def case_of(graph: LayerGraph, like: Case) -> Case:
    """The layers as guidelines look at them, in the limit alone."""
    states = propagate(graph)
    steady = stability(graph, states)
    rows = layer_rows(graph, states, steady)
    return replace(like, rows=rows, graph=graph, states=states, steady=steady)


def _noises(case: Case, dtype: str, given: Sequence[float]) -> Iterator[Noise]:
    for name, known in FORMATS.items():
        yield Noise(name, known.epsilon, name == dtype)
    for size in checks.floats(given, "noise"):
        yield Noise("noise of inputs", float(checks.real(size, "noise", above=0)))
    for size in sorted(filter(None, case.batches))[:1]:
        coefficient, seen = HARMED
        yield Noise(f"batches of {size}, by 1/sqrt(B)", size**-0.5, False)
        yield Noise(f"batches of {size}, as observed", sqrt(seen / size) / coefficient)


def _rank(bar: Thresholds, own: Guideline) -> tuple[int, float]:
    """The worst grade comes first, of one grade what is farthest from what passes."""
    return GRADES.index(own.worst), -excess(bar, own)


def excess(bar: Thresholds, own: Guideline) -> float:
    """How far a number is from what passes, as a logarithm; failures count 1 more."""
    if own.value is None or own.grade == "report":
        return 0.0
    name = GUIDELINES[own.key].threshold
    return bar.excess(name, own.value.value) + (own.grade == "fail")


def moved(bar: Thresholds, before: Judged, after: Judged) -> dict[str, int]:
    """Of each guideline 1 where its number came closer to what passes, -1 where it went away."""
    found = {}
    for key, now in before.items():
        change = excess(bar, now) - excess(bar, after[key])
        lacks = now.value is None or after[key].value is None
        found[key] = 0 if lacks or abs(change) <= MOVED else 1 if change > 0 else -1
    return found


# -------------------------------------------------------------------------------------- what helps


class Candidate(NamedTuple):
    """Something to do otherwise."""

    what: str
    code: str
    make: Callable[[], LayerGraph]


def _changes(case: Case, now: Judged) -> list[Change]:
    """The changes that help, the best first."""
    found, bar = list[tuple[tuple[float, ...], Change]](), case.thresholds
    like = replace(case, scales=(DOUBLED,), measured=(), inequality=None)
    for each in _candidates(case.graph, case) if case.graph else ():
        try:
            with within(LIGHT):
                other = case_of(each.make(), like)
        except TpcalcError:  # a network without states is no advice
            continue
        then = judged(other)
        signs = moved(bar, {key: now[key] for key in then}, then)
        helps, harms = (
            tuple(_effect(now[key], then[key]) for key, own in signs.items() if own == sign)
            for sign in (1, -1)
        )
        if helps:
            grades = [own.grade for own in then.values()]
            left = sum(excess(bar, own) for own in then.values())
            rank = (grades.count("fail"), grades.count("warn"), left)
            found.append((rank, Change(each.what, each.code, helps, harms)))
    return [change for _, change in sorted(found, key=lambda pair: pair[0])]


def _effect(now: Guideline, then: Guideline) -> Effect:
    assert now.value and then.value
    return Effect(now.key, now.metric, now.value, then.value, now.grade, then.grade)


def _candidates(graph: LayerGraph, case: Case) -> Iterator[Candidate]:
    for what, code, rule in _RULES:
        yield Candidate(what, f"p.rewritten(net, {code})", partial(rebuilt, graph, rule))
    bent = [graph.layers[row.index].operation for row in case.activations]
    own = {tau: each.name for each in bent if (tau := TAU(each)) is not None}
    bar, count = case.thresholds, len(bent)
    if own:
        target = sqrt(bar.linear * bar.nlc[0])
        names = ", ".join(_named(name, tau) for tau, name in own.items())
        yield Candidate(
            f"activations made for the NLC {target:.3g} (nlnorm)",
            f"s.nlnorm([{names}], {target:.6g}, network=net).network",
            lambda: fitted(list(own), float(f"{target:.6g}"), graph),
        )
    if count > 1 and not any(weights_of(layer.operation) for layer in graph.layers):
        for share in (0.5, 1 / count):
            pair = [float(f"{sqrt(part):.6g}") for part in (1 - share, share)]
            yield Candidate(
                "skip connections, {:.3g} h + {:.3g} block(h)".format(*pair),
                "p.skipping(net, {:g}, {:g})".format(*pair),
                partial(with_skips, graph, *pair),
            )
    for depth, row in reversed([*enumerate(case.activations, 1)]):
        good = row.total.value <= bar.nlc[0] and row.bias.value <= bar.bias[0]
        if good and row.index < graph.last - 1:  # the deepest beginning that passes
            end = row.index + 1
            what = f"{depth} activations in place of {count}"
            yield Candidate(what, f"s.layers(net)[:{end}]", partial(graph.__getitem__, slice(end)))
            break


def _named(name: str, tau: Expr) -> str:
    with suppress(TpcalcError):
        if tau_of(name) == tau:
            return repr(name)
    return "act"


_UNIT = "lambda tau, q: s.activations.calibrated(tau, debias=True, q=q)"
_RULES = (
    ("debiased activations", "p.retune(s.activations.debiased)", retune(debiased)),
    ("activations of mean square 1", "p.retune(s.activations.normalized)", retune(normalized)),
    (
        "debiased activations of mean square 1",
        f"p.retune({_UNIT})",
        retune(lambda tau, q: calibrated(tau, debias=True, q=q)),
    ),
    ("layer norm before every activation", 'p.norm_first("layer")', norm_first("layer")),
    ("batch norm before every activation", 'p.norm_first("batch")', norm_first("batch")),
    ("weights that keep lengths 1", "p.unit_weights", unit_weights),
    ("orthogonal weights", "p.orthogonal", orthogonal),
)
