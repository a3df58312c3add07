"""``settle``: the claims that an answer rests on are tested before it is given."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from tpcalc.evaluate.witness import Law, comes_near_zero, has_value, law, nonzero
from tpcalc.functions import Fn, Par, const
from tpcalc.limit.claims import Claim, Trial, Verdict
from tpcalc.limit.context import Context
from tpcalc.limit.graph import LRef
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
