"""Kernels between the scalar outputs of a program; entries one by one, by particles if need be."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from operator import itemgetter

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UnknownName, UsageError
from tpcalc.evaluate.chain import chosen
from tpcalc.evaluate.closure.chance import random_nodes
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.evaluate.particles.estimate import Budget, estimate, run_particles
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.numeric import Numeric
from tpcalc.limit.graph import LimitGraph, LNode, LRef, product_mean, restricted, with_targets
from tpcalc.names import cell_name
from tpcalc.passes.tangent import tangent_of_program
from tpcalc.program.base import input_of
from tpcalc.program.nodes import Kind, Ref
from tpcalc.program.program import Program
from tpcalc.progress import Progress
from tpcalc.questions.kernel.entries import Entries, Evaluated, Found
from tpcalc.questions.kernel.errors import dependence
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


Trained = Sequence[str] | Mapping[str, Fraction | float]


def program_kernel(
    program: Program,
    kinds: Sequence[str],
    trained: Trained | None,
    method: str,
    seed: int,
    progress: Progress | None,
) -> Found:
    """The kernels between the scalar outputs of a program."""
    names = [name for name, ref in program.outputs if program.types[ref].kind is Kind.SCALAR]
    if not names:
        raise UsageError(
            "the program has no scalar outputs; a kernel is between scalars f_i.",
            hint="Name them with t.output.",
        )
    rates = _rates(program, trained) if "ntk" in kinds else {}
    entries = Entries(tangent_of_program(program, names, list(rates), kinds, rates))
    still = _deterministic(entries, names, kinds)
    numeric = Numeric(chosen(method))
    try:
        found, worst, least = sampled(entries, None, kinds, numeric, seed, progress)
    except Unknown as reason:
        raise EvaluationError(
            f"the kernel of this program has no value here: {reason}.",
            hint="Outputs must be sums of averages with Gaussian weights, such as "
            "tp.n**0.5 * t.inner(v, x), for an NNGP.",
        ) from None
    matrices = {kind: matrix[:, 0, :, 0] for kind, matrix in found.items()}
    if method in ("exact", "quadrature") and least is Method.PARTICLES:
        raise EvaluationError(
            f"method={method!r} does not give this kernel: some entries need particles.",
            hint="Use method='auto'.",
        )
    independent, notes = _independence(entries, matrices.get("ntk"), numeric)
    notes = (*program.notes, *still, *notes)
    return Found(matrices, least, worst, None, independent, notes, {"outputs": ", ".join(names)})


def _deterministic(entries: Entries, names: Sequence[str], kinds: Sequence[str]) -> tuple[str, ...]:
    """A note on outputs whose rows are 0 because they are averages: their limit is a number."""
    targets, random = dict(entries.graph.targets), random_nodes(entries.graph)

    def still(i: int) -> bool:
        output, step = (
            targets.get(cell_name(*one)) for one in (("f", (i, 0)), ("ntk", (i, 0, i, 0)))
        )
        moves = step is not None and step.power >= 0
        return not moves and (output is None or output.node not in random)

    found = [name for i, name in enumerate(names) if still(i)]
    if not found:
        return ()
    vanishing = {"nngp": "no variance at the start", "ntk": "no move in a step of training"}
    why = (
        f"{', '.join(found[:6])}{', ...' if len(found) > 6 else ''}: in the limit there is "
        f"{' and '.join(vanishing[kind] for kind in kinds)}, as of an average, whose limit is a "
        "number"
    )
    if len(found) == len(names):
        raise UsageError(
            f"no output of the program has a kernel. {why}.",
            hint="Outputs of a network are sums with weights of their own, such as tp.n**0.5 * "
            "t.inner(v, x); limits of averages are what tp.limit gives.",
        )
    return (f"rows of 0 are of {why}",)


def _rates(program: Program, trained: Trained | None) -> dict[Ref, Fraction | float]:
    """The trained inputs of a program, each with its rate; those that no output needs count 0."""
    own = program.inputs
    if trained is None:
        random = (ref for ref in own.values() if input_of(program.nodes[ref]) is not None)
        return dict.fromkeys(random, Fraction(1))
    if not isinstance(trained, Mapping):
        trained = dict.fromkeys(checks.names(trained, "trained"), Fraction(1))
    found: dict[Ref, Fraction | float] = {}
    for name, rate in trained.items():
        if name in own:
            found[own[name]] = checks.real(rate, f"the rate of {name}")
        elif name not in program.unused:
            known = (*own, *program.unused)
            raise UnknownName("matrix, start vector or random scalar", name, known)
    return found


def _independence(
    entries: Entries, matrix: Array | None, numeric: Numeric
) -> tuple[bool | None, tuple[str, ...]]:
    """Whether corrections make a difference; None where that cannot be told."""
    if matrix is None:
        return None, ()
    if not numeric.methods:
        numeric = Numeric()
    whole, naive = entries.at(None, numeric), entries.at(None, numeric, corrections=False)
    pairs = [(i, j) for i in range(len(matrix)) for j in range(i, len(matrix))]
    try:
        _, note = max((dependence(whole, naive, *pair) for pair in pairs), key=itemgetter(0))
    except Unknown:
        return None, ("gradient independence could not be checked: entries need particles",)
    return not note, (note,) if note else ()
