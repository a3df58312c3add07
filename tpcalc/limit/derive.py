"""``derive``: Program -> LimitGraph, by the Master Theorem with the powers of n taken out.

Every node of the program gets a ``Series`` in n whose coefficients are limit-graph nodes. Nothing
is dropped except by its explicit power, and what was dropped stays as a bound (``Rest``), so an
answer that depends on it is refused or derived again with more terms, never silently wrong.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from tpcalc.errors import LimitError, ScaleError
from tpcalc.exponents import without_number
from tpcalc.exponents.chamber import Chamber, Power
from tpcalc.limit.axes import CellsDiffer, NeedsCells
from tpcalc.limit.building import Building
from tpcalc.limit.classes import Classed, Uneven, refine
from tpcalc.limit.context import Context, Record, Trial, for_limits
from tpcalc.limit.graph import (
    LimitGraph,
    LNode,
    LRef,
    Rows,
    Start,
    Target,
    fluctuation_of,
    joined,
    noise_of,
    the_fluctuation,
    twice_of,
)
from tpcalc.limit.lost import not_covered, refused, zero_over_zero
from tpcalc.limit.parity import union
from tpcalc.limit.rules import LIMIT_RULES
from tpcalc.limit.scalars import moments
from tpcalc.limit.scales import symbols
from tpcalc.limit.series import NeedsMore, Ranking, Rest
from tpcalc.program.base import Table, references, renumbered
from tpcalc.program.nodes import Kind, Ref
from tpcalc.program.program import Program
from tpcalc.program.rules import interpret
from tpcalc.program.types import Axes
from tpcalc.results import Exponent, NotCovered

DEPTHS = tuple(Fraction(k, 2) for k in range(5))
ROUNDS = 12  # derivations in which atoms may still be found
TRIES = 4  # derivations with other roots of fluctuations
UNTOLD = "Leave out terms that cancel, or use tp.simulate."
SYMMETRIC, CORRELATED = "of expectation 0 by symmetry", "may be correlated"
TOGETHER = (
    f"two outputs rest on fluctuating averages that {CORRELATED}; their draws are independent: "
    "each is right on its own, and together they are not"
)


class Grows(ScaleError):
    """A scalar that explodes and has a limit after its power of n is taken out."""

    def __init__(self, name: str, power: Fraction) -> None:
        self.power = power
        super().__init__(
            f"the scalar {name} grows like n^({power}), unless its moment vanishes.",
            hint="Check the powers of n; tp.limit(..., rescale=True) takes them out.",
        )


@dataclass(frozen=True)
class Cover:
    """What the calculus says of the outputs of a program."""

    graph: LimitGraph  # the limit graph of the outputs that it covers
    uncovered: tuple[NotCovered, ...]  # the others, each with what stands against it
    notes: tuple[str, ...] = ()  # what a reader should know besides
    # outputs of which no mean is known to exist if they are random
    meanless: tuple[NotCovered, ...] = ()


def derive(
    program: Program,
    values: Mapping[str, Fraction] | None = None,
    rescaled: Container[str] = (),
    trial: Trial | None = None,
) -> LimitGraph:
    """The limit graph of a program whose outputs are all covered.

    Source: Hajjar, Chizat, Giraud, Theorem B.1 (Yang's Master Theorem), for the rules.
    """
    found = cover(program, values, rescaled, trial)
    for row in found.uncovered:
        raise row.error
    return found.graph


def cover(
    program: Program,
    values: Mapping[str, Fraction] | None = None,
    rescaled: Container[str] = (),
    trial: Trial | None = None,
) -> Cover:
    """The limit graph of what the calculus covers of a program, and what it does not cover.

    Each output is settled at the smallest depth that does, whatever the others need.

    Source: Hajjar, Chizat, Giraud, Theorem B.1 (Yang's Master Theorem), for the rules.
    """
    for name in sorted(symbols(program) - (values or {}).keys()):
        raise without_number(name, more=" (that of relu^p in the program); tp.orders takes symbols")
    found: dict[str, Target | NotCovered] = {}
    record = Record()
    open_ = list(program.outputs)
    graphs: list[LimitGraph] = []
    notes: list[str] = []
    meanless: list[NotCovered] = []
    for depth in DEPTHS:
        wanted, preferred = open_, None
        tried: set[str] = set()
        while len(tried) < TRIES:
            context, answers = _answers(
                program, wanted, values, rescaled, depth, record, trial, notes, meanless, preferred
            )
            found.update((name, one) for name, one in answers.items() if one is not None)
            targets = [(name, one) for name, one in answers.items() if isinstance(one, Target)]
            try:
                check_fluctuations(context, cone(context, (r for _, t in targets for r in t.refs)))
            except LimitError:
                targets, against = _apart(context, targets)
                found.update(against)
            graphs.append(_part(context, targets))
            # With other roots the averages that an output takes may have laws in common.
            wanted = [
                output
                for output in wanted
                if output[0] not in tried and _has_no_law(found.get(output[0]))
            ]
            if not wanted:
                break
            tried.add(wanted[0][0])
            target = answers[wanted[0][0]]
            needed = cone(context, target.refs) if isinstance(target, Target) else ()
            preferred = frozenset(context.forced[ref] for ref in needed if ref in context.forced)
        open_ = [output for output in open_ if output[0] not in found]
        if not open_:
            break
    graph = _drawn_apart(program, joined(graphs))
    notes += [TOGETHER] if graph.apart else []
    kept = dict(graph.targets)
    order = tuple((name, kept[name]) for name, _ in program.outputs if name in kept)
    rows = [found[name] for name, _ in program.outputs if name not in kept]
    uncovered = tuple(row for row in rows if isinstance(row, NotCovered))
    told = tuple(dict.fromkeys(notes))
    return Cover(replace(graph, targets=order), uncovered, told, tuple(meanless))


def _has_no_law(answer: Target | NotCovered | None) -> bool:
    """Whether an output is not covered for want of the law of averages."""
    return isinstance(answer, NotCovered) and any(
        words in answer.reason for words in (SYMMETRIC, CORRELATED)
    )


def _answers(
    program: Program,
    open_: Sequence[tuple[str, Ref]],
    values: Mapping[str, Fraction] | None,
    rescaled: Container[str],
    depth: Fraction,
    record: Record,
    trial: Trial | None,
    notes: list[str],
    meanless: list[NotCovered],
    preferred: frozenset[str] | None,
) -> tuple[Context, dict[str, Target | NotCovered | None]]:
    """What a depth says of outputs; where a test finds an atom, the program is derived again."""
    for _ in range(ROUNDS):
        context, series = _followed(program, values, depth, record, preferred)
        if several := [name for name, ref in open_ if _differs(context, series[ref])]:
            raise CellsDiffer(several)
        answers = {
            name: _settled(context, series, name, name in rescaled, depth == DEPTHS[-1])
            for name, _ in open_
        }
        given = [ref for name, ref in open_ if isinstance(answers[name], Target)]
        asked = [ref for _, ref in open_] if depth == DEPTHS[-1] else given  # an atom may tell more
        claims = for_limits(context.claims_below(asked))
        # What is shut is 0, also where its leading term would be large.
        below = context.claims_below(ref for _, ref in open_)
        claims |= {claim: None for claim in below if claim.kind == "side"}
        if trial is None or not trial(context, claims):
            break
    notes.extend(record.doubts(context.claims_below(given)))
    notes.extend(zero_over_zero(context, given))
    for name, ref in open_:
        if isinstance(answers[name], Target):
            below = for_limits(context.claims_below([ref]))
            fault = record.fault(below)
            if fault and depth != DEPTHS[-1] and any(context.is_hidden(c) for c in below):
                answers[name] = None  # with more terms the claim has a value
            elif fault:
                error = LimitError(f"{fault}.", hint=UNTOLD)
                answers[name] = refused(context, name, ref, error)
            elif reason := record.without_mean(below):
                meanless.append(refused(context, name, ref, LimitError(f"{reason}.", hint=UNTOLD)))
    return context, answers


def _differs(context: Context, value: Any) -> bool:
    """Whether powers of n differ from cell to cell: where leading terms are exactly 0."""
    if isinstance(value, Classed):
        return True
    zeros = None if value is None or not value.terms else context.zeros(value.terms[0][1])
    return zeros is not None and not zeros.all()


def _followed(
    program: Program,
    values: Mapping[str, Fraction] | None,
    depth: Fraction,
    record: Record,
    preferred: frozenset[str] | None,
) -> tuple[Context, list[Any]]:
    """The series of all nodes, with cells of stacks in as many classes as they need."""
    while True:
        context = Context(
            program,
            ranking=Ranking(Chamber(), depth),
            values=dict(values or {}),
            record=record,
            preferred=preferred,
        )
        try:
            return context, interpret(program, LIMIT_RULES, context)
        except Uneven as found:
            refine(record, found)


def _settled(
    context: Context, series: Sequence[Any], name: str, rescaled: bool, last: bool
) -> Target | NotCovered | None:
    """What an output becomes, or why it is not covered; None: a larger depth may tell.

    Every reason against an answer belongs here: what is returned as a target is given.
    """
    ref = context.program.ref(name)
    rescaled = rescaled or context.program.types[ref].kind is Kind.VECTOR
    try:
        return _target(context, series[ref], name, rescaled)
    except NeedsMore:
        return not_covered(context, series, name) if last else None
    except Grows as error:
        return replace(refused(context, name, ref, error), n_power=Exponent.number(error.power))
    except (LimitError, ScaleError) as error:
        return refused(context, name, ref, error)


def _vanishes(bound: Rest) -> bool:
    """Whether what is bounded tends to 0 as its powers of n are written."""
    power = bound.power
    return isinstance(power, Fraction) and (power < 0 or (power == 0 and bound.strict))


def _number(power: Power | None) -> Fraction:
    assert isinstance(power, Fraction)
    return power


def _target(context: Context, value: Any, name: str, rescaled: bool) -> Target:
    """What an output becomes; its node is None where the limit is 0."""
    if value is None:
        raise LimitError("a matrix cannot be an output.", where=name)
    try:
        lead = context.ranking.leading(value)
    except NeedsMore:
        bound = context.ranking.bound(value)
        if rescaled or bound is None or not _vanishes(bound):
            raise
        return Target(_number(bound.power), None)
    if lead is None:
        return Target(Fraction(0), None)
    power, node = _number(lead[0]), lead[1]
    if not rescaled:
        if power > 0:
            raise Grows(name, power)
        if power < 0:
            return Target(power, None)
    _check_noise(context, node)
    ref, vector = context.program.ref(name), context.dims[node] is not None
    return Target(power, node, moments(context, node, ref) if vector else None)


def graph_of(context: Context, targets: tuple[tuple[str, Target], ...]) -> LimitGraph:
    """The part of a graph under construction that some targets need."""
    check_fluctuations(context, cone(context, (r for _, t in targets for r in t.refs)))
    return _part(context, targets)


def cone(context: Context, refs: Iterable[LRef]) -> list[LRef]:
    """Nodes and all that they need, in order."""
    needed = [False] * len(context.nodes)
    for ref in refs:
        needed[ref] = True
    for ref in range(len(context.nodes) - 1, -1, -1):
        if needed[ref]:
            for other in references(context.nodes[ref]):
                needed[other] = True
    return [ref for ref, used in enumerate(needed) if used]


def _part(context: Context, targets: Sequence[tuple[str, Target]]) -> LimitGraph:
    """The part of a graph that some targets need."""
    new: dict[LRef, LRef] = {}
    nodes: list[LNode] = []
    dims: list[str | None] = []
    axes: list[Axes] = []
    for ref in cone(context, (r for _, t in targets for r in t.refs)):
        new[ref] = len(nodes)
        nodes.append(renumbered(context.nodes[ref], new.__getitem__))
        dims.append(context.dims[ref])
        axes.append(context.axes[ref])
    kept = tuple((name, target.renamed(new)) for name, target in targets)
    matrices = tuple(
        (family.name, family.width[0], family.width[1])
        for family in context.program.families.values()
        if len(family.width) == 2
    )
    return LimitGraph(
        tuple(nodes),
        kept,
        tuple(dims),
        context.program.dims,
        context.program.groups,
        matrices,
        frozenset(context.orthogonal),
        axes=tuple(axes) if context.program.has_blocks else (),
        matrix_axes=tuple(
            (family.name, family.axes)
            for family in context.program.families.values()
            if len(family.width) == 2 and family.axes
        ),
    )


def _check_noise(context: Context, node: LRef) -> None:
    """Refuse what takes an average whose law is unknown."""
    missing = context.missing[node]
    if not missing:
        return
    if missing == "hidden":
        raise NeedsMore
    if any(context.axes):
        raise NeedsCells("it depends on an average that fluctuates")
    raise LimitError(
        f"it takes {_noise(context, node)}, {SYMMETRIC}: the law of such a fluctuation is unknown.",
        hint="tp.simulate runs it at finite width.",
    )


def _apart(
    context: Context, targets: Sequence[tuple[str, Target]]
) -> tuple[list[tuple[str, Target]], dict[str, NotCovered]]:
    """The targets that take no fluctuations that may be correlated, each on its own."""
    kept, against = [], {}
    for name, target in targets:
        try:
            check_fluctuations(context, cone(context, target.refs))
            kept.append((name, target))
        except LimitError as error:
            against[name] = refused(context, name, context.program.ref(name), error)
    return kept, against


def _drawn_apart(program: Program, graph: LimitGraph) -> LimitGraph:
    """A graph with the pairs of fluctuations that may be correlated and are drawn independently."""
    drawn = [ref for ref, node in enumerate(graph.nodes) if fluctuation_of(node) is not None]
    if not drawn:
        return graph
    context = Building(program)
    for node, dim in zip(graph.nodes, graph.vector_dim, strict=True):
        context.add(node, dim)
    return replace(graph, apart=frozenset(_entangled(context, drawn)))


def _noise(context: Context, node: LRef) -> str:
    """The first fluctuating average that a node depends on, in words."""
    stack = [node]
    while stack:
        found = context.nodes[stack.pop()]
        if (noise := noise_of(found)) is not None:
            return f"the average of {noise.fn.text}"
        stack += [ref for ref in references(found) if context.missing[ref]]
    return "an average"


def check_fluctuations(context: Context, needed: Iterable[LRef]) -> None:
    """Fluctuations of different roots are drawn independently: refuse where they are not.

    Averages of u x and of v y (or of g^T W z) are uncorrelated unless x depends on v (on W) and y
    (g or z) on u.
    """
    for left, right in _entangled(context, needed):
        one, two = (_NAMES(the_fluctuation(context.nodes[ref]).root) for ref in (left, right))
        raise LimitError(
            f"two fluctuating averages {CORRELATED}: of {one} with what depends on {two}, and the "
            "reverse.",
            hint="Write both with one start vector: u.(W v) is v.(W^T u).",
        )


def _entangled(context: Building, needed: Iterable[LRef]) -> Iterator[tuple[LRef, LRef]]:
    """The pairs of fluctuations that are drawn independently and may be correlated."""
    kinds: dict[tuple[str, int, int], list[LRef]] = {}  # family, roots, what vectors depend on
    for ref in needed:
        node = fluctuation_of(context.nodes[ref])
        # Products of two hats are uncorrelated with whatever is linear in something centred.
        if node is not None and twice_of(node.root) is None:
            below = union(context.roots[vector] for vector in node.vectors)
            own = context.root(node.root) or below
            kinds.setdefault((context.family(node.root), own, below), []).append(ref)
    for (first, left), (second, right) in combinations(kinds.items(), 2):
        (a, own, below), (b, other, under) = first, second
        if a != b and (own & other or (own & under and other & below)):
            yield from product(left, right)


_NAMES: Table[str] = Table(
    {
        Rows: lambda root: "a function of start vectors",
        Start: lambda root: f"{root.group}[{root.index}]",
        str: lambda root: root,
    }
)
