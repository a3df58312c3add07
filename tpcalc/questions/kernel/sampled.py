"""Kernel entries one by one: closed forms and quadrature where they reach, else particles."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from tpcalc.arrays import Array
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.evaluate.particles.estimate import Budget, estimate, run_particles
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.numeric import Numeric
from tpcalc.limit.graph import LimitGraph, LNode, LRef, product_mean, restricted, with_targets
from tpcalc.names import cell_name
from tpcalc.progress import Progress
from tpcalc.questions.kernel.entries import Entries, Evaluated
from tpcalc.results import Method

Place = tuple[str, int, int, int, int]  # kind, copy, output, copy, output


@dataclass(frozen=True)
class _Term:
    """A product of known numbers and of targets of a particle run."""

    factors: tuple[Bounded, ...]
    targets: tuple[str, ...] = ()


def sampled(
    entries: Entries,
    gram: Sequence[Sequence[float]] | None,
    kinds: Sequence[str],
    numeric: Numeric,
    seed: int,
    progress: Progress | None = None,
) -> tuple[dict[str, Array], float, Method]:
    """Kernels (copies, outputs, copies, outputs), their largest error, and the least method.

    The error is in units of sqrt(K_ii K_jj).
    """
    count, outputs = entries.tangent.copies, range(entries.tangent.outputs)
    pairs = [(i, j) for i in range(count) for j in range(i, count)]
    asked = product(kinds, pairs, outputs, outputs)
    places = [(kind, i, k, j, m) for kind, (i, j), k, m in asked]
    cells = _entries(entries, gram, places, numeric, seed, progress)
    found = np.empty((len(kinds), 2, count, len(outputs), count, len(outputs)))
    for (kind, i, k, j, m), answer in cells.items():
        own = found[kinds.index(kind)]
        for part, value in zip(own, (answer.value, answer.error), strict=True):
            part[i, k, j, m] = part[j, m, i, k] = value
    worst = 0.0
    for matrix, error in found.reshape(len(kinds), 2, count * len(outputs), -1):
        sizes = np.sqrt(np.abs(np.diagonal(matrix)))
        scale = np.outer(sizes, sizes)
        worst = max(worst, float(np.max(error[scale > 0] / scale[scale > 0], initial=0.0)))
    least = max(answer.method for answer in cells.values())
    return {kind: own[0] for kind, own in zip(kinds, found, strict=True)}, worst, least


def _entries(
    entries: Entries,
    gram: Sequence[Sequence[float]] | None,
    places: Sequence[Place],
    numeric: Numeric,
    seed: int,
    progress: Progress | None,
) -> dict[Place, Bounded]:
    """Entries of a kernel; those of one run of particles share their samples."""
    given = None if gram is None else [[Bounded(float(v), 0.0) for v in row] for row in gram]
    evaluated = entries.at(given, numeric)
    found: dict[Place, Bounded] = {}
    open_: dict[Place, list[_Term]] = {}
    asked: dict[str, LNode | LRef] = {}
    for place in places:
        try:
            if not numeric.methods:
                raise Unknown("particles were asked for")
            found[place] = evaluated.entry(*place)
        except Unknown:
            open_[place] = _terms(evaluated, place, asked)
    if not open_:
        return found
    graph = _with_gram(entries.graph, entries.tangent.groups, gram)
    graph = restricted(with_targets(graph, asked), asked)
    compiled = compile_graph(graph)
    draws = run_particles(compiled, Budget(), seed, progress)
    field = evaluated.closure.field
    known = {}
    for name, column in compiled.scalars.items():
        own = estimate(draws, column)
        known[name] = Bounded(own.value, own.stderr, Method.PARTICLES)
    for place, terms in open_.items():
        products = [[*term.factors, *(known[name] for name in term.targets)] for term in terms]
        found[place] = field.total(products)
    return found


def _terms(evaluated: Evaluated, place: Place, asked: dict[str, LNode | LRef]) -> list[_Term]:
    """An entry as a sum over targets of a particle run, which are added to ``asked``."""
    kind, i, k, j, m = place
    nodes = evaluated.entries.nodes
    if kind == "nngp":
        left, right = (nodes[cell_name("f", at)] for at in ((i, k), (j, m)))
        if left is None or right is None:
            return []
        out = []
        for factors, pairs in evaluated.chance.terms(left, right):
            names = []
            for x, y in map(sorted, pairs):
                names.append(cell_name("E", (x, y)))
                asked[names[-1]] = product_mean(x, y)
            out.append(_Term(tuple(factors), tuple(names)))
        return out
    out = []
    for name, factors in evaluated.parts(i, k, j, m):
        ref = nodes[name]
        if ref is not None:
            asked[name] = ref
            out.append(_Term(tuple(factors), (name,)))
    return out


def _with_gram(
    graph: LimitGraph, names: Collection[str], gram: Sequence[Sequence[float]] | None
) -> LimitGraph:
    if gram is None:
        return graph
    cov = tuple(tuple(float(value) for value in row) for row in gram)
    groups = tuple(
        replace(group, cov=cov) if group.name in names else group for group in graph.groups
    )
    return replace(graph, groups=groups)
