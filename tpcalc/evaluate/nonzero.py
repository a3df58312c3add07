"""The numerical zero test: is a node of a limit graph different from 0?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tpcalc.errors import EvaluationError, LimitError, ScaleError
from tpcalc.evaluate.closure.chance import random_nodes
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.evaluate.particles.estimate import Budget, Draws, estimate, run_particles
from tpcalc.functions import Call, Expr, Fn
from tpcalc.functions.expr import Add, walk
from tpcalc.functions.indicator import AT_ZERO
from tpcalc.limit.context import Context
from tpcalc.limit.derive import graph_of
from tpcalc.limit.graph import (
    Apply,
    Combine,
    Expect,
    LRef,
    ScalarApply,
    Target,
    graph_refs,
)
from tpcalc.results import Estimate

__all__ = ["Finding", "nonzero"]

BUDGETS = tuple(Budget(samples=size, replicates=16) for size in (2**10, 2**13, 2**15))
MOST = 2**24  # samples times nodes: what a test of a long program may cost
STRONG = 8.0  # of 16 replicates: as rare by chance as five standard deviations of a Gaussian
ROUNDING = 1e-26  # of mean squares
SMALL = 1e-18
FALLS = 3.0
STEADY = 0.35  # of a square, at 64 times the samples: that of a sampling error falls by 64


@dataclass(frozen=True, slots=True)
class Finding:
    """What a numerical test says of a node.

    Args:
        nonzero: True: not 0. False: perhaps 0. None: it has no value.
        text: The evidence.
        deeper: Whether a derivation with more terms may give it a value.
        tiny: Whether it is so small that it may be rounding.
    """

    nonzero: bool | None
    text: str
    deeper: bool = False
    tiny: bool = False


def nonzero(context: Context, refs: Iterable[LRef], seed: int = 0) -> dict[LRef, Finding]:
    """Test nodes with the particle engine: scalars by their value, vectors by their mean square.

    Args:
        context: A graph under construction.
        refs: Nodes.
        seed: Of the draws.

    Returns:
        A finding for each node.

    Source: Hajjar, Chizat, Giraud, Lemma C.1 (positive finite moments), by numbers.
    """
    found: dict[LRef, Finding] = {}
    ready = []
    for ref in dict.fromkeys(refs):
        missing = context.missing[ref]
        if not missing:
            ready.append(ref)
        elif missing == "noise":
            found[ref] = Finding(None, "it depends on an average that is 0 in the limit")
        else:
            text = "it depends on gates that smaller terms decide"
            found[ref] = Finding(None, text, deeper=True)
    for budget in BUDGETS:
        if not ready or budget.samples * len(context.nodes) > MOST:
            break
        found.update(_tried(context, ready, budget, seed))
        ready = [ref for ref in ready if found[ref].nonzero is False]
    tiny = [ref for ref, finding in found.items() if finding.nonzero and finding.tiny]
    found.update(_rounded(context, tiny, seed))
    return found


def _tried(
    context: Context, refs: Sequence[LRef], budget: Budget, seed: int
) -> dict[LRef, Finding]:
    """A run for all nodes; where it fails, halves of them, so that one spoils no other."""
    try:
        with np.errstate(all="ignore"):  # what overflows is not a finding
            return _run(context, refs, budget, seed)
    except (LimitError, EvaluationError, ScaleError) as error:
        if len(refs) == 1:
            return {refs[0]: Finding(None, f"not evaluated: {error.message}")}
    middle = len(refs) // 2
    halves = (refs[:middle], refs[middle:])
    return {k: v for half in halves for k, v in _tried(context, half, budget, seed).items()}


def _rounded(context: Context, refs: Sequence[LRef], seed: int) -> dict[LRef, Finding]:
    """Of very small nodes those that rest on a sum of which only rounding is left."""
    below = {ref: _sums(context, ref) for ref in refs}
    asked = list(dict.fromkeys(ref for own in below.values() for ref in own))
    if not asked:
        return {}
    plain = [ref for ref in asked if _is_sum(context, ref)]  # whose terms can be told apart
    sums = _tried(context, plain, BUDGETS[0], seed) if plain else {}
    lost = Finding(None, "it rests on a difference of which rounding may be all that is left")
    return {
        ref: lost
        for ref, own in below.items()
        if any(part not in sums or not sums[part].nonzero for part in own)
    }


def _adds(context: Context, ref: LRef) -> bool:
    """Whether a function adds its arguments up; a part that lives where another is 0 is no sum."""
    node = context.nodes[ref]
    return isinstance(node, Apply | Expect) and any(
        isinstance(part, Add) and not any(_is_gate(inner) for inner in walk(part))
        for part in walk(node.fn.expr)
    )


def _is_gate(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.atom == AT_ZERO


def _sums(context: Context, ref: LRef) -> list[LRef]:
    """The sums that a node depends on."""
    seen, stack, out = {ref}, [ref], []
    while stack:
        top = stack.pop()
        if _is_sum(context, top) or _adds(context, top):
            out.append(top)
        fresh = set(graph_refs(context.nodes[top])) - seen
        seen |= fresh
        stack.extend(fresh)
    return out


@dataclass(frozen=True, slots=True)
class _Sizes:
    """A target in both runs, beside the mean squares of the terms that it is the sum of."""

    value: Estimate
    rough: Estimate
    square: float
    before: float
    lasting: bool
    terms: float
    vector: bool


def _run(context: Context, refs: Sequence[LRef], budget: Budget, seed: int) -> dict[LRef, Finding]:
    terms = {ref: _terms(context, ref) for ref in refs}
    asked = dict.fromkeys([*refs, *(term for own in terms.values() for term in own)])
    graph = graph_of(context, tuple((str(ref), Target(Fraction(0), ref)) for ref in asked))
    compiled = compile_graph(graph)
    draws = run_particles(compiled, budget, seed, None)
    drawn = random_nodes(graph)
    # What rests on a coefficient that is 0 falls with its sampling error, however strong it looks.
    rough = run_particles(compiled, replace(budget, samples=budget.samples // 64), seed, None)
    node = {name: target.node for name, target in graph.targets}

    def column(name: str) -> int:
        own = compiled.scalars[name] if name in compiled.scalars else compiled.moments[name][1]
        assert own is not None
        return own

    def square(run: Draws, ref: LRef) -> float:
        values = run.values[:, column(str(ref))]
        return float(np.mean(values**2 if str(ref) in compiled.scalars else values))

    found = {}
    for ref in refs:
        sizes = _Sizes(
            estimate(draws, column(str(ref))),
            estimate(rough, column(str(ref))),
            square(draws, ref),
            square(rough, ref),
            _lasts(draws.values[:, column(str(ref))], rough.values[:, column(str(ref))]),
            max((square(draws, term) for term in terms[ref]), default=0.0),
            str(ref) not in compiled.scalars,
        )
        found[ref] = _random(sizes) if node[str(ref)] in drawn else _fixed(sizes)
    return found


def _lasts(values: NDArray[np.float64], rough: NDArray[np.float64]) -> bool:
    """Whether all replicates have one sign and their typical size does not fall with the samples.

    For heavy tails, whose mean has a large error though no replicate is small: by chance the signs
    of 16 replicates agree once in 32768 times, and a mean square that is an error falls.
    """
    if not np.all(values * values[0] > 0):
        return False
    sizes = [np.mean(np.log(np.abs(v[v != 0]))) if np.any(v) else -np.inf for v in (values, rough)]
    power = 1.0 if np.all(rough >= 0) else 2.0  # a mean square, or a value to be squared
    return bool(power * (sizes[0] - sizes[1]) > np.log(STEADY))


def _is_sum(context: Context, ref: LRef) -> bool:
    node = context.nodes[ref]
    if isinstance(node, Combine):
        return len(node.vectors) > 1
    return isinstance(node, ScalarApply) and isinstance(node.fn.expr, Add)


def _terms(context: Context, ref: LRef) -> list[LRef]:
    """The terms of a sum as nodes of their own: what is left of them may be rounding only."""
    node = context.nodes[ref]
    if isinstance(node, Combine) and len(node.vectors) > 1:
        parts = zip(node.numbers, node.scalars, node.vectors, strict=True)
        dim = context.dims[ref]
        return [context.add(Combine((c,), (s,), (v,)), dim) for c, s, v in parts]
    if isinstance(node, ScalarApply) and isinstance(node.fn.expr, Add):
        count = len(node.scalars)
        return [
            context.add(ScalarApply(Fn(term, 0, count), node.scalars), None)
            for term in node.fn.expr.terms
        ]
    return []


def _fixed(sizes: _Sizes) -> Finding:
    if not math.isfinite(sizes.square):
        return Finding(None, "its estimate overflows")
    value = sizes.value
    what = "mean square " if sizes.vector else ""
    text = f"particles: {what}{value.value:.3g} +- {value.stderr:.1g}"
    tiny = sizes.square < SMALL
    strong = abs(value.value) > STRONG * value.stderr or sizes.lasting
    if not strong or sizes.square <= ROUNDING * sizes.terms:
        return Finding(False, text, tiny=tiny)
    falls = sizes.square <= STEADY * sizes.before and value.z(sizes.rough) > FALLS
    return (
        Finding(False, text + ", falling with the samples")
        if falls
        else Finding(True, text, tiny=tiny)
    )


def _random(sizes: _Sizes) -> Finding:
    """A random number is not 0 if its size does not fall with the sampling error.

    Both runs draw the same random scalars, so that their sizes can be compared.
    """
    if not math.isfinite(sizes.square):
        return Finding(None, "its estimate overflows")
    text = f"particles: random, of mean square {sizes.square:.3g}"
    steady = sizes.square > STEADY * sizes.before
    return Finding(steady and sizes.square > ROUNDING * sizes.terms, text)
