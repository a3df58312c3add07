"""The numerical zero test: is a node of a limit graph different from 0?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tpcalc.errors import EvaluationError, LimitError
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.evaluate.particles.estimate import Budget, estimate, run_particles
from tpcalc.limit.context import Context
from tpcalc.limit.derive import graph_of
from tpcalc.limit.graph import (
    Draw,
    Fluctuation,
    LimitGraph,
    LRef,
    Target,
    graph_refs,
)
from tpcalc.results import Estimate

__all__ = ["Finding", "nonzero"]

BUDGET = Budget(samples=2**11, replicates=16)
ROUGH = Budget(samples=2**6, replicates=16)  # sampling errors squared are 32 times larger
STRONG = 5.0
TINY = 1e-20


@dataclass(frozen=True, slots=True)
class Finding:
    """What a numerical test says of a node.

    Args:
        nonzero: True: not 0. False: 0 within five standard errors. None: it has no value.
        text: The evidence.
        deeper: Whether a derivation with more terms may give it a value.
    """

    nonzero: bool | None
    text: str
    deeper: bool = False


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
    asked = list(dict.fromkeys(refs))
    found: dict[LRef, Finding] = {}
    ready = []
    for ref in asked:
        missing = context.missing[ref]
        if not missing:
            ready.append(ref)
        elif missing == "noise":
            found[ref] = Finding(None, "it depends on an average that is 0 in the limit")
        else:
            text = "it depends on gates that smaller terms decide"
            found[ref] = Finding(None, text, deeper=True)
    if not ready:
        return found
    try:
        found.update(_run(context, ready, seed))
    except (LimitError, EvaluationError) as error:
        found.update({ref: Finding(None, f"not evaluated: {error.message}") for ref in ready})
    return found


def _run(context: Context, refs: Sequence[LRef], seed: int) -> dict[LRef, Finding]:
    graph = graph_of(context, tuple((str(ref), Target(Fraction(0), ref)) for ref in refs))
    compiled = compile_graph(graph)
    draws = run_particles(compiled, BUDGET, seed, None)
    drawn = _drawn(graph)
    rough = run_particles(compiled, ROUGH, seed, None) if drawn else draws
    found = {}
    for name, target in graph.targets:
        ref = int(name)
        column = compiled.scalars[name] if name in compiled.scalars else compiled.moments[name][1]
        values, before = draws.values[:, column], rough.values[:, column]
        square = name not in compiled.scalars
        if target.node in drawn:
            found[ref] = _random(values, before, square)
        else:
            found[ref] = _fixed(estimate(draws, column), square)
    return found


def _drawn(graph: LimitGraph) -> frozenset[LRef]:
    """The nodes that depend on a random scalar."""
    drawn: set[LRef] = set()
    for ref, node in enumerate(graph.nodes):
        own = isinstance(node, Fluctuation) or (isinstance(node, Draw) and node.std != 0)
        if own or any(other in drawn for other in graph_refs(node)):
            drawn.add(ref)
    return frozenset(drawn)


def _fixed(value: Estimate, square: bool) -> Finding:
    what = "mean square " if square else ""
    text = f"particles: {what}{value.value:.3g} +- {value.stderr:.1g}"
    strong = abs(value.value) > STRONG * value.stderr
    return Finding(strong and abs(value.value) > TINY, text)


def _random(values: NDArray[np.float64], rough: NDArray[np.float64], square: bool) -> Finding:
    """A random number is not 0 if its size does not fall with the sampling error."""
    sizes = [float(np.mean(v if square else v * v)) for v in (values, rough)]
    text = f"particles: random, of mean square {sizes[0]:.3g}"
    return Finding(sizes[0] > TINY and sizes[0] > sizes[1] / 4, text)
