"""``Witness``: which coefficients are not 0, and which claims hold, that answers rest on.

Of blocks samples of the engine tell, in every cell: values of two numbers of samples are compared,
with the same random scalars and coordinates of their own. What is 0 and was sampled falls as there
are more of them, and has no sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import LimitError, TpcalcError
from tpcalc.evaluate.particles.compile import Compiled, compile_graph, directions
from tpcalc.evaluate.particles.estimate import Budget, Draws, estimate, run_particles
from tpcalc.evaluate.witness import Finding, Law, comes_near_zero, has_value, law, nonzero
from tpcalc.evaluate.witness.findings import error_of
from tpcalc.functions import Call, Expr, Fn, Par, const
from tpcalc.functions.expr import Pow, walk
from tpcalc.limit.context import Claim, Context, Verdict
from tpcalc.limit.derive import cone, graph_of
from tpcalc.limit.graph import LRef, Target, restricted
from tpcalc.program.nodes import Nonlin
from tpcalc.results.estimate import normal_score

CHEAP = 2**25  # samples times nodes that twins take beyond the first ones: less than compiling


@dataclass
class Witness:
    """What tests derivations, on samples that depend on a seed alone."""

    seed: int
    kept: dict[object, Finding] | None = None  # by coefficient, so that each is tested once

    def coefficients(self, context: Context, refs: Iterable[LRef]) -> dict[LRef, Finding]:
        """Which of some leading coefficients are not 0: of blocks by samples, of cells by twins."""
        if self.kept is not None:
            return {ref: self._once(context, ref, self.kept) for ref in refs}
        if context.program.has_blocks:
            return nonzero_on_samples(context, refs, self.seed)
        # Twins see rounding; the engine then draws more, nearer to the mean and at less cost.
        found = nonzero(context, refs, self.seed, CHEAP)
        open_ = [ref for ref, own in found.items() if own.nonzero is False]
        cheap = [ref for ref in open_ if not found[ref].tables]
        found |= nonzero_on_samples(context, cheap, self.seed)
        left = [ref for ref in open_ if ref not in cheap or found[ref].nonzero is None]
        return found | (nonzero(context, left, self.seed) if left else {})

    def _once(self, context: Context, ref: LRef, kept: dict[object, Finding]) -> Finding:
        """The same coefficients come back in other derivations."""
        try:
            key: object = graph_of(context, (("", Target(Fraction(0), ref)),))
        except LimitError as error:
            found = Finding(None, f"not evaluated: {error.message}")
            return kept.setdefault(found, found)
        if key not in kept:
            kept[key] = Witness(self.seed).coefficients(context, (ref,))[ref]
        return kept[key]

    def claims(self, context: Context, claims: Iterable[Claim]) -> bool:
        """Test what derivations rest on besides; whether they are derived anew."""
        return settle(context, claims, self.seed)


def settle(context: Context, claims: Iterable[Claim], seed: int) -> bool:
    """Test claims and put down what becomes of them."""
    if context.program.has_blocks:
        return _settle(context, claims, seed)
    record = context.record
    left = [claim for claim in dict.fromkeys(claims) if claim not in record.verdicts]
    for claim in (claim for claim in left if claim.is_moment):
        record.settle(claim, Verdict(*has_value(context, claim.node)))
    left = [claim for claim in left if not claim.is_moment]
    laws = [claim for claim in left if claim.kind in ("clear", "told")]
    again = False
    holds = {Law.CLEAR: True, Law.FORM: True, Law.BLANK: True, Law.ATOM: False}
    for claim, (answer, text) in zip(laws, law(context, laws, seed), strict=True):
        again = again or answer is (Law.ATOM if claim.kind == "clear" else Law.CLEAR)
        sure = answer not in (Law.FORM, Law.BLANK)
        record.settle(claim, Verdict(holds.get(answer), text, sure=sure))
    numbers = {claim: _distances(context, claim) for claim in left if claim not in laws}
    if numbers:
        asked = [node for nodes in numbers.values() for node in nodes]
        tests = nonzero(context, asked, seed)
        divisors = [c.node for c in numbers if c.power < 0 and context.random[c.node]]
        near = comes_near_zero(context, divisors, seed) if divisors else {}
        for claim, nodes in numbers.items():
            weak = [tests[node] for node in nodes if not tests[node].nonzero]
            text = "; ".join(finding.text for finding in weak)
            blank = all(finding.symbolic for finding in weak)
            mean = not near.get(claim.node)
            found = True if blank else None
            below = claim.points == (0.0,) and tests[claim.node].negative
            if claim.kind == "side":
                if any(finding.exactly for finding in weak):  # it is there, and the next term tells
                    found = False
                again = again or below or not found
            record.settle(claim, Verdict(found, text, mean, sure=not weak, negative=below))
    return again


def _distances(context: Context, claim: Claim) -> list[LRef]:
    """Scalars that must not be 0 for a claim to hold."""
    if claim.points == (0.0,):
        return [claim.node]
    return [
        context.add(Nonlin(Fn(Par(0) - const(point), 0, 1), (), (claim.node,)), None)
        for point in claim.points
    ]


BUDGET = Budget(samples=2**12, replicates=8)
AWAY = 5  # standard errors that a number is away from where it must not be
NEAR = 1e-12  # a coordinate that is closer to a point, as a part of the largest one, is there
FEW = 1e-4  # of the coordinates may be so by chance, where a law has values of all sizes


def _settle(context: Context, claims: Iterable[Claim], seed: int) -> bool:
    """Test claims on samples of all cells; what fails in one of them is refused."""
    record, again = context.record, False
    left = [claim for claim in dict.fromkeys(claims) if claim not in record.verdicts]
    for claim in left:
        if claim.is_moment:
            record.settle(claim, Verdict(None, "samples do not tell"))
        elif context.missing[claim.node]:
            record.settle(claim, Verdict(None, "smaller terms decide it"))
        elif context.dims[claim.node] is None and context.random[claim.node]:
            record.settle(claim, Verdict(None, "it is random"))  # its mean tells nothing
    left = [claim for claim in left if claim not in record.verdicts]
    if not left:
        return False
    nodes = enumerate(claim.node for claim in left)
    targets = tuple((str(place), Target(Fraction(0), node)) for place, node in nodes)
    try:
        graph = graph_of(context, targets)
        names = [name for name, _ in targets]
        vectors = [name for name, t in graph.targets if graph.vector_dim[t.node or 0] is not None]
        compiled = compile_graph(graph, moments=False, collect=vectors)
        draws = run_particles(compiled, BUDGET, seed)
    except TpcalcError as error:
        for claim in left:
            record.settle(claim, Verdict(None, f"it cannot be sampled: {error.message}"))
        return False
    place = 0
    for name, claim in zip(names, left, strict=True):
        if name in vectors:
            cells = compiled.cells[name]
            found = _coordinates(claim, draws, place, len(cells))
            place += len(cells)
        else:
            found = _numbers(claim, draws, [compiled.scalars[own] for own in compiled.cells[name]])
        again = again or (claim.kind == "told" and bool(found.holds))
        record.settle(claim, found)
    return again


def _coordinates(claim: Claim, draws: Draws, first: int, count: int) -> Verdict:
    """Whether no part of the coordinates of any cell is at a point."""
    near = np.zeros(count)
    for vectors in draws.vectors:
        own = np.array(vectors[first : first + count])
        scale = max(float(np.abs(own).max()), np.finfo(float).tiny)
        for point in claim.points:
            near += np.mean(np.abs(own - point) <= NEAR * scale, axis=1)
    share = float(near.max()) / len(draws.vectors)
    if share > FEW:
        return Verdict(None, f"on samples {share:.2g} of the coordinates of a cell are there")
    return Verdict(True, "")


def _numbers(claim: Claim, draws: Draws, columns: list[int]) -> Verdict:
    """Whether the numbers of all cells are away from the points."""
    found = [estimate(draws, column) for column in columns]
    for one in found:  # of so few replicates an error is uncertain itself, as ``z`` knows
        if any(one.z(point) <= AWAY for point in claim.points):
            return Verdict(None, f"a cell is {one}")
    below = {one.value < 0 for one in found}
    if claim.kind == "side" and len(below) > 1:
        return Verdict(None, "it is below the point in some cells and above it in others")
    return Verdict(True, "", negative=below == {True})


LEAST = 2**10  # samples of the first level, unless there are more than half as many directions
TIMES = 4  # as many samples on each level as on the one before
LEVELS = 4
MOST = 2**28  # what another level may cost, in coordinates of vectors
REPLICATES = 28
ALIKE, OF_ALL = 1 / 2, 3 / 4  # of a random number how near two values are, and how often
SURE = 5.0  # standard errors that a number is away from 0
STAYS = -2 / 5  # power of the samples: squares of a sampled 0 fall with -1, their roots with -1/2
LASTS = -2 / 5  # of a number: an average of a sampled 0 falls with -1/2 or faster, ...
ROOTED = -1 / 4  # ... but for a root of it
ERRORS = 3.0
ROUNDING = 1e-10  # of the largest vector that there is: what is smaller may be all rounding left
LOST = "an average that is 0 in the limit and fluctuates", "gates that smaller terms decide"
SCALE = Budget(samples=2**8, replicates=2)


@dataclass(frozen=True)
class _Level:
    """Numbers, or mean squares of vectors, at one number of samples: (cells, replicates) each."""

    samples: int
    values: Mapping[LRef, Array]


def nonzero_on_samples(context: Context, refs: Iterable[LRef], seed: int) -> dict[LRef, Finding]:
    """Whether nodes are different from 0 in all of their cells."""
    missing = {ref: context.missing[ref] for ref in refs}
    found = {
        ref: Finding(None, LOST[why == "hidden"], deeper=why == "hidden")
        for ref, why in missing.items()
        if why
    }
    return found | _nonzero(context, [ref for ref in missing if ref not in found], seed)


def _nonzero(context: Context, refs: Sequence[LRef], seed: int) -> dict[LRef, Finding]:
    targets = tuple((str(ref), Target(Fraction(0), ref)) for ref in refs)
    if not refs:
        return {}
    try:
        graph, left = graph_of(context, targets), sorted(refs)
        scale = _largest(context, refs, seed)
        found: dict[LRef, Finding] = {}
        levels: list[_Level] = []
        samples = max(LEAST, 1 << (2 * directions(graph) - 1).bit_length())
        while left and len(levels) < LEVELS:
            compiled = compile_graph(restricted(graph, {str(ref) for ref in left}))
            cost = samples * REPLICATES * len(compiled.script.instructions)
            if len(levels) > 1 and cost > MOST:
                left = left[: len(left) // 2]  # those of later steps are made of more
                continue
            levels.append(_sampled(context, left, compiled, samples, seed, len(levels)))
            if levels[1:]:
                found |= {ref: _finding(context, ref, levels, scale) for ref in left}
                left = sorted(ref for ref in left if _is_open(found[ref]))
            samples *= TIMES
        return found
    except TpcalcError as error:
        if len(refs) == 1:
            return {refs[0]: Finding(None, f"it cannot be sampled: {error.message}")}
        half = len(refs) // 2
        return _nonzero(context, refs[:half], seed) | _nonzero(context, refs[half:], seed)


def _is_open(finding: Finding) -> bool:
    return finding.nonzero is False and not finding.exactly


def _largest(context: Context, refs: Sequence[LRef], seed: int) -> float:
    """The root mean square of the largest vector that some nodes are made of."""
    vectors = [ref for ref in cone(context, refs) if context.dims[ref] is not None]
    graph = graph_of(context, tuple((str(ref), Target(Fraction(0), ref)) for ref in vectors))
    compiled = compile_graph(graph)
    draws = run_particles(compiled, SCALE, seed)
    squares = [column for _, column in compiled.moments.values() if column is not None]
    return float(np.sqrt(draws.values[:, squares].max(initial=0.0)))


def _sampled(
    context: Context, refs: Sequence[LRef], compiled: Compiled, samples: int, seed: int, level: int
) -> _Level:
    budget = Budget(samples=samples, replicates=REPLICATES)
    draws = run_particles(compiled, budget, seed, twin=(level,))
    found = dict[LRef, Array]()
    for ref in refs:
        cells, vector = compiled.cells[str(ref)], context.dims[ref] is not None
        places = [compiled.moments[c][1] if vector else compiled.scalars[c] for c in cells]
        found[ref] = draws.values[:, [place for place in places if place is not None]].T
    return _Level(samples, found)


def _finding(context: Context, ref: LRef, levels: Sequence[_Level], scale: float) -> Finding:
    """What some numbers of samples say of all cells of a node: of the cell that they say least."""
    *before, last = levels
    vector = context.dims[ref] is not None
    least = (ROUNDING * scale) ** 2 if vector else ROUNDING * max(scale, scale**2)
    lasts = _square_stays if vector else _random_stays if context.random[ref] else _number_stays
    power = STAYS if vector else ROOTED if _has_roots(context, ref) else LASTS
    cells = []
    for cell, many in enumerate(last.values[ref]):
        few = [(one.samples / last.samples, one.values[ref][cell]) for one in before]
        squared = context.random[ref] and not vector  # of a random number the mean tells nothing
        shown, what = many**2 if squared else many, "mean square " if vector or squared else ""
        text = f"particles: {what}{np.mean(shown):.3g} +- {error_of(shown):.1g}"
        below = bool(np.mean(many) < 0)
        if np.max(np.abs(many)) <= least:
            cells.append(Finding(False, "particles: 0 but for rounding", exactly=True))
        elif not _is_told(many, vector, context.random[ref], least):
            cells.append(Finding(False, text))
        elif any(lasts(many, own, part**-power) for part, own in few):
            cells.append(Finding(True, text, negative=below and not vector))
        else:
            cells.append(Finding(False, text + ", falling with the samples"))
    weak = [cell for cell in cells if not cell.nonzero]
    if weak and len(weak) < len(cells):
        return Finding(False, f"{weak[0].text}, in {len(weak)} of {len(cells)} cells")
    return weak[0] if weak else cells[0]


def _is_told(values: Array, vector: bool, random: bool, least: float) -> bool:
    """Whether values are no rounding, and those of one number are away from 0."""
    if vector or random:
        return bool(np.min(np.abs(values)) > least)
    return normal_score(abs(float(np.mean(values))), (error_of(values), len(values) - 1)) > SURE


def _has_roots(context: Context, ref: LRef) -> bool:
    """Whether a root, of which the slope is infinite at 0, is among what a node is made of."""
    return any(
        0 < part.exponent < 1 if isinstance(part, Pow) else _is_root(part)
        for node in cone(context, [ref])
        if (fn := getattr(context.nodes[node], "fn", None)) is not None
        for part in walk(fn.expr)
    )


def _is_root(part: Expr) -> bool:
    """Whether a named function has a degree between 0 and 1."""
    degree = part.atom.facts.homogeneity if isinstance(part, Call) else None
    return isinstance(degree, Fraction | int | float) and 0 < degree < 1


def _square_stays(many: Array, few: Array, rate: float) -> bool:
    """Whether a mean square falls less than by a rate, replicate by replicate."""
    if not np.all(few > 0):
        return False
    kept = np.log(many / few)
    gap = float(np.mean(kept) - np.log(rate))
    return gap > 0 and normal_score(gap, (error_of(kept), len(kept) - 1)) > SURE


def _number_stays(many: Array, few: Array, rate: float) -> bool:
    """Whether the average of a number falls less than by a rate."""
    gap = abs(float(np.mean(many))) - rate * abs(float(np.mean(few)))
    return gap > ERRORS * float(np.hypot(error_of(many), rate * error_of(few)))


def _random_stays(many: Array, few: Array, rate: float) -> bool:
    """Whether values of a random number are alike with other coordinates, and do not fall.

    One of six pairs of a sampled 0 is so: 21 of 28 once in 10^10 times.
    """
    falls = np.median(np.abs(many)) <= rate * np.median(np.abs(few))
    alike = np.abs(many - few) < ALIKE * np.abs(many)
    return bool(np.sum(alike) >= OF_ALL * len(alike) and not falls)
