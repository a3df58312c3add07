"""``settle``: the claims that an answer rests on are tested, exactly or on samples of all cells."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import partial

import numpy as np

from tpcalc.errors import TpcalcError
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.evaluate.particles.estimate import Budget, Draws, estimate, run_particles
from tpcalc.evaluate.witness import Law, comes_near_zero, has_value, law, nonzero
from tpcalc.functions import Fn, Par, const
from tpcalc.limit.context import Claim, Context, Trial, Verdict
from tpcalc.limit.derive import graph_of
from tpcalc.limit.graph import LRef, Target
from tpcalc.program.nodes import Nonlin


def tested(seed: int) -> Trial:
    """What tests the claims of a derivation of limits."""
    return partial(settle, seed=seed)


def settle(context: Context, claims: Iterable[Claim], seed: int) -> bool:
    """Test claims and put down what becomes of them."""
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


def tested_on_samples(seed: int) -> Trial:
    """What tests the claims of a derivation on blocks."""
    return partial(_settle, seed=seed)


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
