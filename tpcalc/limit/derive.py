"""``derive``: Program -> LimitGraph, by the Master Theorem with the powers of n taken out.

Every node of the program gets a ``Series`` in n whose coefficients are limit-graph nodes. Nothing
is dropped except by its explicit power, and what was dropped is remembered (``Series.cut``), so an
answer that depends on it is refused or derived again with more terms, never silently wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tpcalc.errors import LimitError, ScaleError
from tpcalc.limit.context import Context, start_root
from tpcalc.limit.graph import (
    Apply,
    Combine,
    Expect,
    Fluctuation,
    LimitGraph,
    LNode,
    LRef,
    OuterExpect,
    Product,
    ScalarApply,
    Target,
    graph_refs,
)
from tpcalc.limit.rules import LIMIT_RULES
from tpcalc.limit.series import NeedsMore
from tpcalc.program.nodes import InputMatrix
from tpcalc.program.program import Program
from tpcalc.program.rules import interpret

__all__ = ["derive"]

DEPTHS = (Fraction(0), Fraction(1, 2))


def derive(program: Program, values: Mapping[str, Fraction] | None = None) -> LimitGraph:
    """The limit graph of a program.

    Args:
        program: The program; all its outputs are derived.
        values: Numbers for the symbols in exponents.

    Returns:
        The graph, with for each output the power of n it carries and its node.

    Raises:
        ScaleError: A vector that is not of order one enters a function that is not a polynomial,
            or a scalar grows with n.
        LimitError: A rule is missing (orthogonal matrices), or first-order terms are not enough.

    Source: Hajjar, Chizat, Giraud, Theorem B.1 (Yang's Master Theorem), for the rules.
    """
    for depth in DEPTHS:
        context = Context(program, depth, dict(values or {}))
        try:
            found = interpret(program, LIMIT_RULES, context)
            targets = tuple(
                (name, _target(context, found[ref], name)) for name, ref in program.outputs
            )
        except NeedsMore:
            continue
        return _finish(context, targets)
    raise LimitError(
        "an output depends on terms that this version does not expand: smaller by n^(-1) or more "
        "than the leading ones, or the first order of a function where its argument may sit on a "
        "kink.",
        hint="Check the powers of n; run the program at finite width with tp.simulate.",
    )


def _target(context: Context, value: Any, name: str) -> Target:
    if value is None:
        raise LimitError("a matrix cannot be an output.", where=name)
    lead = value.leading()
    if lead is None:
        return Target(Fraction(0), None)
    power, node = lead
    if context.dims[node] is None and power > 0:
        raise ScaleError(
            f"the scalar {name} grows like n^({power}) as its powers of n are written, unless "
            "its moment vanishes.",
            where=context.program.place(context.program.ref(name)),
            hint="Check the powers of n (learning-rate exponents included).",
        )
    return Target(power, node)


def _finish(context: Context, targets: tuple[tuple[str, Target], ...]) -> LimitGraph:
    """Keep what the outputs need."""
    needed = [False] * len(context.nodes)
    for _, target in targets:
        if target.node is not None and not _vanishes(context, target):
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
            nodes.append(_renamed(node, new))
            dims.append(context.dims[ref])
    _check_fluctuations(context, new)
    kept = tuple(
        (name, Target(t.power, None if _vanishes(context, t) else new[t.node or 0]))
        for name, t in targets
    )
    matrices = tuple(
        (node.name, node.rows, node.cols)
        for node in context.program.nodes
        if isinstance(node, InputMatrix)
    )
    return LimitGraph(
        tuple(nodes), kept, tuple(dims), context.program.dims, context.program.groups, matrices
    )


def _vanishes(context: Context, target: Target) -> bool:
    """Whether an output is 0 in the limit, identically or (a scalar) by its power of n."""
    return target.node is None or (context.dims[target.node] is None and target.power < 0)


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


def _renamed(node: LNode, new: Mapping[LRef, LRef]) -> LNode:
    if isinstance(node, Product | Fluctuation):
        return replace(node, vector=new[node.vector])
    if isinstance(node, Apply | Expect):
        return replace(
            node,
            vectors=tuple(new[ref] for ref in node.vectors),
            scalars=tuple(new[ref] for ref in node.scalars),
        )
    if isinstance(node, Combine):
        return replace(
            node,
            scalars=tuple(None if ref is None else new[ref] for ref in node.scalars),
            vectors=tuple(new[ref] for ref in node.vectors),
        )
    if isinstance(node, OuterExpect):
        return replace(
            node,
            rows=tuple(new[ref] for ref in node.rows),
            cols=tuple(new[ref] for ref in node.cols),
            scalars=tuple(new[ref] for ref in node.scalars),
            vector=new[node.vector],
        )
    if isinstance(node, ScalarApply):
        return replace(node, scalars=tuple(new[ref] for ref in node.scalars))
    return node
