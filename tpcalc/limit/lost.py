"""Why an output is not covered: the node of the program where what it rests on is lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tpcalc.errors import LimitError, ScaleError, TpcalcError
from tpcalc.exponents.chamber import Power
from tpcalc.functions import Call
from tpcalc.functions.expr import walk
from tpcalc.limit.context import Context
from tpcalc.limit.expand import DividedByZero
from tpcalc.limit.series import Series
from tpcalc.program.base import applied_of, cone, references
from tpcalc.program.nodes import Kind, Node, Ref
from tpcalc.program.text import form_of
from tpcalc.results import NotCovered

NOTHING, BOUND = Fraction(-2), Fraction(-1)  # how far terms are known, below where they are


def not_covered(context: Context, values: Sequence[Any], name: str) -> NotCovered:
    """What stands against an output of which no leading term is known."""
    own = context.program.ref(name)
    ref = where_lost(context, values, own)
    error = context.uncovered.get(ref) or _reason(context, values, ref)
    found = refused(context, name, ref, error)
    bound = context.ranking.bound(values[own])
    if bound is None or bound.power is None:
        return found
    return replace(found, bound=f"{'o' if bound.strict else 'O'}(n^({bound.power}))")


def refused(context: Context, name: str, ref: Ref, error: TpcalcError) -> NotCovered:
    """An output that is not covered for what an error says of a node."""
    program = context.program
    node = program.nodes[ref]
    text = form_of(type(node)).write(node)
    vector = program.types[program.ref(name)].kind is Kind.VECTOR
    hint = error.hint or ""
    return NotCovered(name, program.place(ref), text, error.message, hint, error.code, vector)


def zero_over_zero(context: Context, refs: Iterable[Ref]) -> list[str]:
    """What a reader should know of outputs that rest on a 0 which is divided by 0."""
    program = context.program
    needed = cone(program.nodes, refs)
    for ref, error in context.uncovered.items():
        if needed[ref] and isinstance(error, DividedByZero):
            return [
                f"0 divided by 0 ({program.place(ref)}) counts as 0, as with a small number added "
                "to what is divided by; networks without one have no number there"
            ]
    return []


def where_lost(context: Context, values: Sequence[Any], ref: Ref) -> Ref:
    """The node where terms are lost that a node rests on, by the argument that knows least."""
    here = NOTHING  # of the output itself no leading term is known
    while ref not in context.uncovered:
        known = [
            (_known(context, values[other]), other)
            for other in references(context.program.nodes[ref])
            if isinstance(values[other], Series)
        ]
        most = here if here > BOUND else context.ranking.reach
        lossy = [(gap, other) for gap, other in known if gap is not None and gap <= most]
        if not lossy or (min(lossy)[0] > BOUND and _exploding(context, values, ref)):
            break  # all arguments are known better than what is made of them
        here, ref = min(lossy)
    return ref


def _known(context: Context, series: Series[Any]) -> Fraction | None:
    """How far below the leading term a series is known; None: all of it."""
    bounds = [b for b in (series.rest, series.soft, series.drift) if b is not None]
    if any(bound.power is None for bound in bounds):
        return NOTHING
    if not series.terms:
        return BOUND if bounds else None
    lead, node = series.terms[0]
    if context.missing[node] == "hidden":
        return BOUND
    at = context.ranking.chamber.at
    gaps = [at(lead) - at(bound.power) for bound in bounds if bound.power is not None]
    return min(gaps, default=None)


def _exploding(context: Context, values: Sequence[Any], ref: Ref) -> list[Power]:
    """The powers with which the arguments of a function explode that has no leading term."""
    node, at = context.program.nodes[ref], context.ranking.chamber.at
    if applied_of(node) is None or values[ref].terms:
        return []
    series = [values[other] for other in references(node)]
    return [one.terms[0][0] for one in series if one.terms and at(one.terms[0][0]) > 0]


def _reason(context: Context, values: Sequence[Any], ref: Ref) -> TpcalcError:
    node, own = context.program.nodes[ref], values[ref]
    large = _exploding(context, values, ref)
    if large:
        return ScaleError(
            f"its argument explodes like n^({max(large, key=context.ranking.chamber.at)}).",
            hint="Check the powers of n (learning-rate exponents included); tp.orders shows the "
            "size of every vector.",
        )
    known = _known(context, own)
    if known is not None and known <= context.ranking.reach and _has_kinks(node):
        what = "the first order of a function where its argument may sit on a kink."
    else:
        what = f"smaller by more than n^(-{context.ranking.depth}) than the leading ones."
    return LimitError(
        f"it depends on terms that are not expanded: {what}",
        hint="Run it with tp.simulate.",
    )


def _has_kinks(node: Node) -> bool:
    applied = applied_of(node)
    return applied is not None and any(
        isinstance(part, Call) and part.atom.facts.kinks for part in walk(applied.fn.expr)
    )
