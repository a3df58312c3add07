"""Which coefficients of blocks are different from 0, in every cell: samples of the engine tell.

Values of two numbers of samples are compared, with the same random scalars and coordinates of their
own: what is 0 and was sampled falls as there are more of them, and has no sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import TpcalcError
from tpcalc.evaluate.particles.blocks import directions
from tpcalc.evaluate.particles.compile import Compiled, compile_graph
from tpcalc.evaluate.particles.estimate import Budget, run_particles
from tpcalc.evaluate.witness import Finding
from tpcalc.functions import Call, Expr
from tpcalc.functions.expr import Pow, walk
from tpcalc.limit.context import Context
from tpcalc.limit.derive import cone, graph_of
from tpcalc.limit.graph import LRef, Target, restricted
from tpcalc.results.estimate import normal_score

FEW = 2**10  # samples of the first level, unless there are more than half as many directions
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
        samples = max(FEW, 1 << (2 * directions(graph) - 1).bit_length())
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
        text = f"particles: {what}{np.mean(shown):.3g} +- {_error(shown):.1g}"
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
    return normal_score(abs(float(np.mean(values))), (_error(values), len(values) - 1)) > SURE


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
    return gap > 0 and normal_score(gap, (_error(kept), len(kept) - 1)) > SURE


def _number_stays(many: Array, few: Array, rate: float) -> bool:
    """Whether the average of a number falls less than by a rate."""
    gap = abs(float(np.mean(many))) - rate * abs(float(np.mean(few)))
    return gap > ERRORS * float(np.hypot(_error(many), rate * _error(few)))


def _random_stays(many: Array, few: Array, rate: float) -> bool:
    """Whether values of a random number are alike with other coordinates, and do not fall.

    One of six pairs of a sampled 0 is so: 21 of 28 once in 10^10 times.
    """
    falls = np.median(np.abs(many)) <= rate * np.median(np.abs(few))
    alike = np.abs(many - few) < ALIKE * np.abs(many)
    return bool(np.sum(alike) >= OF_ALL * len(alike) and not falls)


def _error(values: Array) -> float:
    return float(np.std(values, ddof=1) / len(values) ** 0.5)
