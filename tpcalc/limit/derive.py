"""``derive``: Program -> LimitGraph, by the Master Theorem with the powers of n taken out.

Every node of the program gets a ``Series`` in n whose coefficients are limit-graph nodes. Nothing
is dropped except by its explicit power, and what was dropped stays as a bound (``Rest``), so an
answer that depends on it is refused or derived again with more terms, never silently wrong.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from fractions import Fraction
from typing import Any

from tpcalc.errors import LimitError, ScaleError
from tpcalc.limit.algebra import Explosion
from tpcalc.limit.building import start_root
from tpcalc.limit.claims import Record
from tpcalc.limit.context import Context
from tpcalc.limit.graph import (
    Fluctuation,
    LimitGraph,
    LNode,
    LRef,
    Noise,
    Target,
    graph_refs,
    renamed,
)
from tpcalc.limit.rules import LIMIT_RULES
from tpcalc.limit.scales import symbols
from tpcalc.limit.series import NeedsMore, Ranking
from tpcalc.orders.chamber import Chamber
from tpcalc.program.nodes import InputMatrix
from tpcalc.program.program import Program
from tpcalc.program.rules import interpret

__all__ = ["derive", "graph_of"]

DEPTHS = tuple(Fraction(k, 2) for k in range(5))


def derive(
    program: Program,
    values: Mapping[str, Fraction] | None = None,
    rescaled: Container[str] = (),
    record: Record | None = None,
) -> LimitGraph:
    """The limit graph of a program.

    Args:
        program: The program; all its outputs are derived.
        values: Numbers for the symbols in exponents.
        rescaled: Names of scalar outputs whose limit is taken after their power of n is taken out;
            that of a vector always is.

    Returns:
        The graph, with for each output the power of n it carries and its node.

    Raises:
        ScaleError: A scalar grows with n, or a function that is not homogeneous is asked of a
            vector that explodes.
        LimitError: An output depends on a fluctuation whose law is not computed, or on terms
            beyond those that are expanded.

    Source: Hajjar, Chizat, Giraud, Theorem B.1 (Yang's Master Theorem), for the rules.
    """
    for name in sorted(symbols(program) - (values or {}).keys()):
        raise ScaleError(
            f"an exponent of the program holds the symbol {name!r}, which has no value here.",
            hint=f"Give one, as in values={{{name!r}: Fraction(1, 2)}} (the power of relu^p is "
            "written in the program); tp.orders takes symbols.",
        )
    exploded: list[Explosion] = []
    for depth in DEPTHS:
        context = Context(
            program,
            ranking=Ranking(Chamber(), depth),
            values=dict(values or {}),
            record=record or Record(),
        )
        try:
            found = interpret(program, LIMIT_RULES, context)
            targets = tuple(
                (name, _target(context, found[ref], name, name in rescaled))
                for name, ref in program.outputs
            )
        except NeedsMore:
            exploded = context.exploded
            continue
        return graph_of(context, targets)
    if exploded:
        first = exploded[0]
        raise ScaleError(
            f"{first.text}: its argument explodes like n^({first.power}).",
            where=first.where,
            hint="Check the powers of n (learning-rate exponents included); tp.orders shows the "
            "size of every vector.",
        )
    raise LimitError(
        "an output depends on terms that this version does not expand: smaller by more than "
        f"n^(-{DEPTHS[-1]}) than the leading ones, or the first order of a function where its "
        "argument may sit on a kink.",
        hint="Check the powers of n; run the program at finite width with tp.simulate.",
    )


def _target(context: Context, value: Any, name: str, rescaled: bool) -> Target:
    """What an output becomes; its node is None where the limit is 0.

    Raises:
        NeedsMore: It depends on terms that are not followed at this depth.
    """
    if value is None:
        raise LimitError("a matrix cannot be an output.", where=name)
    try:
        lead = context.ranking.leading(value)
    except NeedsMore:
        bound = context.ranking.bound(value)
        if rescaled or bound is None or not isinstance(bound.power, Fraction) or bound.power >= 0:
            raise
        return Target(bound.power, None)
    if lead is None:
        return Target(Fraction(0), None)
    power, node = lead
    assert isinstance(power, Fraction)
    if context.dims[node] is None and not rescaled:
        if power > 0:
            raise ScaleError(
                f"the scalar {name} grows like n^({power}) as its powers of n are written, unless "
                "its moment vanishes.",
                where=context.program.place(context.program.ref(name)),
                hint="Check the powers of n (learning-rate exponents included); tp.limit(..., "
                "rescale=True) gives the limit after n^(-power).",
            )
        if power < 0:
            return Target(power, None)
    return _computable(context, name, Target(power, node), rescaled)


def graph_of(context: Context, targets: tuple[tuple[str, Target], ...]) -> LimitGraph:
    """The part of a graph under construction that some targets need.

    Args:
        context: The graph.
        targets: Name and target.

    Raises:
        LimitError: It takes fluctuations that may be correlated.
    """
    needed = [False] * len(context.nodes)
    for _, target in targets:
        if target.node is not None:
            needed[target.node] = True
    for ref in range(len(context.nodes) - 1, -1, -1):
        if needed[ref]:
            for other in graph_refs(context.nodes[ref]):
                needed[other] = True
    new: dict[LRef, LRef] = {}
    nodes: list[LNode] = []
    dims: list[str | None] = []
    for ref, node in enumerate(context.nodes):
        if needed[ref]:
            new[ref] = len(nodes)
            nodes.append(renamed(node, new))
            dims.append(context.dims[ref])
    _check_fluctuations(context, new)
    kept = tuple(
        (name, Target(t.power, None if t.node is None else new[t.node])) for name, t in targets
    )
    matrices = tuple(
        (node.name, node.rows, node.cols)
        for node in context.program.nodes
        if isinstance(node, InputMatrix)
    )
    return LimitGraph(
        tuple(nodes),
        kept,
        tuple(dims),
        context.program.dims,
        context.program.groups,
        matrices,
        frozenset(context.orthogonal),
    )


def _computable(context: Context, name: str, target: Target, rescaled: bool) -> Target:
    """A target that takes no average whose law is unknown: what vanishes needs none.

    Raises:
        NeedsMore: It takes a value that is not followed at this depth.
        LimitError: It takes such an average.
    """
    missing = "" if target.node is None else context.missing[target.node]
    if not missing:
        return target
    if missing == "hidden":
        raise NeedsMore
    if target.power < 0 and not rescaled:
        return Target(target.power, None)
    raise LimitError(
        f"{name} depends on an average whose expectation is 0 by symmetry and which is raised to "
        f"order one by the powers of n: {_noise(context, target.node)}. It fluctuates, and the law "
        "of such a fluctuation is computed only for a start vector times something that does not "
        "depend on it.",
        where=context.program.place(context.program.ref(name)),
        hint="Check the powers of n; run the program at finite width with tp.simulate.",
    )


def _noise(context: Context, node: LRef | None) -> str:
    """The first fluctuating average that a node depends on, in words."""
    stack = [] if node is None else [node]
    while stack:
        found = context.nodes[stack.pop()]
        if isinstance(found, Noise):
            return f"the average of {found.fn.text}"
        stack += [ref for ref in graph_refs(found) if context.missing[ref]]
    return "an average"


def _check_fluctuations(context: Context, needed: Iterable[LRef]) -> None:
    """Fluctuations of different start vectors are drawn independently: refuse where they are not.

    Averages of u x and of v y are uncorrelated unless x depends on v and y on u.
    """
    first: dict[tuple[int, int], LRef] = {}  # (start vector, another that its partner depends on)
    for ref in needed:
        node = context.nodes[ref]
        if not isinstance(node, Fluctuation):
            continue
        own = context.bit(start_root(context.program, node.group, node.index))
        for root in context.start_bits():
            if root == own or not root & context.roots[node.vector]:
                continue
            other = first.get((root, own))
            if other is not None:
                earlier = context.nodes[other]
                assert isinstance(earlier, Fluctuation)
                raise LimitError(
                    "two fluctuating averages may be correlated: one of "
                    f"{earlier.group}[{earlier.index}] with a vector that depends on "
                    f"{node.group}[{node.index}], and one the other way round. This version draws "
                    "fluctuations of different start vectors independently.",
                    hint="Write both averages with one start vector (u.(W v) is v.(W^T u)), or run "
                    "the program at finite width with tp.simulate.",
                )
            first.setdefault((own, root), ref)
