"""The numbers of a limit graph: by closed forms and quadrature where they end, else by particles.

Where the numbers of one output cannot be had, the others are computed all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tpcalc.errors import EvaluationError, LimitError, MissingBackend, OutOfMemory, TpcalcError
from tpcalc.evaluate.chain import ZERO, Chain, Law, as_estimate, chosen, refuse
from tpcalc.evaluate.particles.compile import Compiled, compile_graph
from tpcalc.evaluate.particles.estimate import (
    Budget,
    Draws,
    doubtful,
    estimate,
    rarely_sampled,
    run_particles,
    sampled_degrees,
    with_bias,
)
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.numeric import Numeric
from tpcalc.limit.graph import (
    Expect,
    LimitGraph,
    LRef,
    Product,
    product_mean,
    restricted,
    with_targets,
)
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Kind, Nonlin
from tpcalc.program.program import Program
from tpcalc.progress import Progress
from tpcalc.results import Estimate, NotCovered, Status

FIXED, RANDOM = 16, 64  # replicates where no limit is random, and where one is
BLOCKS = 8, 16  # the same of blocks, each of which takes long
ENOUGH = 2**14, 2**12  # samples that tell what is hardly random: of cells, of blocks


@dataclass(frozen=True)
class Failure:
    """Why an output has no number."""

    term: str  # what could not be evaluated
    error: TpcalcError  # what it ended with


@dataclass
class Numbers:
    """What was found."""

    budget: Budget  # what was sampled with
    # for each target (of blocks: for each cell) the estimate of a scalar, those of E Z and E Z^2 of
    # a vector
    found: dict[str, tuple[Estimate, ...]] = field(default_factory=dict)
    failed: dict[str, Failure] = field(default_factory=dict)  # the targets without numbers
    draws: Draws | None = None  # all replicates; None where nothing was sampled
    # names of what rare samples may dominate, with degrees
    rare: Mapping[str, str] = field(default_factory=dict)

    def lost(self, program: Program) -> Iterator[NotCovered]:
        """What could not be evaluated."""
        for name, failure in self.failed.items():
            ref, error = program.ref(name), failure.error
            place = error.where or program.place(ref)
            vector = program.types[ref].kind is Kind.VECTOR
            yield NotCovered(
                name, place, failure.term, error.message, error.hint or "", error.code, vector
            )


def numbers(
    graph: LimitGraph,
    method: str,
    budget: Budget,
    seed: int,
    progress: Progress | None = None,
    *,
    replicates: int | None = None,
) -> Numbers:
    """Estimate every target of a limit graph."""
    out = Numbers(budget)
    chain = None if graph.has_blocks else Chain(graph, chosen(method), seed)
    known = _closed(graph, chain, method, out.failed)
    names = [name for name, own in known.items() if None in own]
    laws = {name: law for name in names if chain is not None and (law := chain.law(name))}
    pairs = {pair for _, terms in laws.values() for _, needed in terms for pair in needed}
    asked = {_key(*pair): product_mean(*pair) for pair in sorted(pairs)}
    graph = with_targets(graph, asked)
    names = [*(name for name in names if name not in laws), *asked]
    known |= dict.fromkeys(asked, (None,))
    if method == "auto":
        out.failed |= _without_mean(restricted(graph, set(names)))
        names = [name for name in names if name not in out.failed]
    while names:
        part = restricted(graph, set(names))
        try:
            compiled, doubts = _compiled(part, budget, seed)
            usual = BLOCKS if part.has_blocks else (FIXED, RANDOM)
            count = replicates or usual[bool(compiled.random)]
            out.budget = replace(budget, replicates=count)
            out.draws = run_particles(compiled, out.budget, seed, progress)
            out.draws = with_bias(out.draws, compiled, out.budget)
        except (MissingBackend, OutOfMemory):
            raise
        except (LimitError, EvaluationError) as found:
            culprit, error = _culprit(part, replace(out.budget, rel_error=None), seed, found)
            lost = _above(part, culprit)
            failure = Failure(_TERMS(part.nodes[culprit]), error)
            out.failed |= {name: failure for name in names if name in lost}
            names = [name for name in names if name not in lost]
            continue
        sampled = _sampled(compiled, out.draws, doubts)
        out.rare = rarely_sampled(part, out.draws.samples * out.budget.replicates)
        for name in names:
            before = known.pop(name)
            for cell in compiled.cells[name]:
                fresh = _marked(sampled[cell], name in out.rare)
                known[cell] = tuple(
                    new if old is None else old for old, new in zip(before, fresh, strict=True)
                )
        break
    _follow(laws, {key: known.pop(key) for key in asked}, known, out)
    for name, own in known.items():
        if name not in out.failed:
            out.found[name] = tuple(one for one in own if one is not None)
    return out


def _compiled(part: LimitGraph, budget: Budget, seed: int) -> tuple[Compiled, frozenset[int]]:
    """A graph as a script, and what it takes for random that draws do not show to be."""
    compiled = compile_graph(part)
    doubts = frozenset[int]()
    if compiled.random:
        doubts = doubtful(compiled, budget, seed, ENOUGH[part.has_blocks])
    return replace(compiled, random=compiled.random - doubts), doubts


def _key(left: LRef, right: LRef) -> str:
    return f"E[{min(left, right)},{max(left, right)}]"


def _follow(
    laws: Mapping[str, Law],
    sampled: Mapping[str, tuple[Estimate | None, ...]],
    known: dict[str, tuple[Estimate | None, ...]],
    out: Numbers,
) -> None:
    """Random scalars by their laws, with second moments that samples gave."""
    found = {key: one for key, own in sampled.items() for one in own if one is not None}
    given = {key: Bounded(one.value, one.stderr, one.method) for key, one in found.items()}
    lost = {key: out.failed.pop(key) for key in sampled if key in out.failed}
    for name, (mean, terms) in laws.items():
        keys = [_key(*pair) for _, needed in terms for pair in needed]
        if why := [lost[key] for key in keys if key in lost]:
            out.failed[name] = why[0]
            continue
        variance = [[*own, *(given[_key(*pair)] for pair in needed)] for own, needed in terms]
        one = found[keys[0]]
        own = replace(
            as_estimate(mean, Numeric().total(variance)),
            samples=one.samples,
            replicates=one.replicates,
            seed=one.seed,
        )
        known[name] = _marked((own,), any(key in out.rare for key in keys))
    out.rare = {name: degree for name, degree in out.rare.items() if name not in sampled}


def _closed(
    graph: LimitGraph, chain: Chain | None, method: str, failed: dict[str, Failure]
) -> dict[str, tuple[Estimate | None, ...]]:
    """What is known of targets without samples; of blocks only which are 0."""
    if chain is None:
        if method not in ("auto", "particles"):
            raise EvaluationError(
                f"{method!r} evaluates single numbers; this program has too many cells for it.",
                hint="Take method='auto': particles evaluate blocks.",
            )
        return {name: _unknown(graph, target.node) for name, target in graph.targets}
    known = dict[str, tuple[Estimate | None, ...]]()
    for name, _ in graph.targets:
        try:
            known[name] = chain.estimates(name)
            if method not in ("auto", "particles") and name in chain.reasons:
                raise refuse(name, chain.reasons[name], method)
        except EvaluationError as error:
            failed[name] = Failure("", error)
    return {name: own for name, own in known.items() if name not in failed}


def _unknown(graph: LimitGraph, node: LRef | None) -> tuple[Estimate | None, ...]:
    if node is None:
        return (ZERO,)
    return (None,) if graph.vector_dim[node] is None else (None, None)


def _sampled(
    compiled: Compiled, draws: Draws, doubts: frozenset[int]
) -> dict[str, tuple[Estimate, ...]]:
    """The targets that were sampled: the estimate of a scalar, both moments of a vector."""

    def at(column: int | None) -> Estimate:
        if column is None:
            return ZERO
        random = column in compiled.random
        return estimate(draws, column, random=random, doubt=column in doubts)

    found = {name: (at(column),) for name, column in compiled.scalars.items()}
    return found | {name: tuple(map(at, pair)) for name, pair in compiled.moments.items()}


def _marked(estimates: tuple[Estimate, ...], rare: bool) -> tuple[Estimate, ...]:
    return tuple(
        replace(one, status=Status.RARE) if rare and one.status is Status.CONVERGED else one
        for one in estimates
    )


def _without_mean(graph: LimitGraph) -> dict[str, Failure]:
    """The targets that samples would give a number though they may have none."""
    error = EvaluationError(
        "it takes an average that may be infinite, of what grows faster than every polynomial, in "
        "no closed form.",
        hint="method='particles' gives the average of samples, finite or not.",
    )
    degrees = sampled_degrees(graph)
    return {name: Failure("", error) for name, degree in degrees.items() if degree is None}


def _culprit(
    graph: LimitGraph, budget: Budget, seed: int, error: TpcalcError
) -> tuple[LRef, TpcalcError]:
    """The first node with which a run fails, by halves, and the error that it fails with."""
    low, high = 0, len(graph.nodes) - 1
    while low < high:
        middle = (low + high) // 2
        first = replace(
            graph,
            nodes=graph.nodes[: middle + 1],
            vector_dim=graph.vector_dim[: middle + 1],
            axes=graph.axes[: middle + 1],
            targets=(),
        )
        try:
            run_particles(compile_graph(first), budget, seed)
            low = middle + 1
        except (LimitError, EvaluationError) as found:
            high, error = middle, found
    return low, error


def _above(graph: LimitGraph, culprit: LRef) -> frozenset[str]:
    """The targets that need a node."""
    needs = {culprit}
    for ref, node in enumerate(graph.nodes):
        if not needs.isdisjoint(references(node)):
            needs.add(ref)
    return frozenset(name for name, target in graph.targets if not needs.isdisjoint(target.refs))


_TERMS: Table[str] = Table(
    {
        Nonlin: lambda node: node.fn.text,
        Expect: lambda node: f"the average of {node.fn.text}",
        Product: lambda node: f"a product with {node.matrix}{'.T' if node.transpose else ''}",
    },
    lambda node: "",
)
