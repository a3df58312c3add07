"""``far_out``: a block with what its functions are far out, where preactivations grow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tpcalc.activations.entries.relu import RELU
from tpcalc.functions import Call, Expr, Fn, Var
from tpcalc.functions.expr import const, substitute, walk
from tpcalc.functions.tape import evaluate
from tpcalc.passes.block import Block
from tpcalc.program.base import Table
from tpcalc.program.nodes import Moment, Node, Nonlin

PLACES = np.array([-1e8, -1e4, 1e4, 1e8])
CLOSE = 1e-3  # of slopes between these places


def far_out(block: Block) -> Block | None:
    """The block with homogeneous functions in place of those that differ little from them."""
    nodes = tuple(_FAR(node) for node in block.program.nodes)
    calls = [call for node in nodes for call in _CALLS(node)]
    if nodes == block.program.nodes or any(call.atom.facts.homogeneity is None for call in calls):
        return None
    return replace(block, program=replace(block.program, nodes=nodes))


def _of(fn: Fn) -> Fn:
    found: dict[Expr, Expr] = {call: _line(call) for call in _calls(fn)}
    return Fn(substitute(fn.expr, found), fn.vectors, fn.scalars)


def _calls(fn: Fn) -> Iterator[Call]:
    """The functions of one variable in it."""
    return (part for part in walk(fn.expr) if isinstance(part, Call))


def _line(call: Call) -> Expr:
    """A function of one variable far out: its slopes on both sides times z; itself if none."""
    if call.atom.facts.homogeneity is not None:
        return call
    with np.errstate(all="ignore"):
        values = np.asarray(evaluate(Fn(call.atom(Var(0)), 1), [PLACES]), dtype=float)
        slopes = (values / PLACES).reshape(2, 2)
    below, above = (float(side[end]) for side, end in zip(slopes, (0, 1), strict=True))
    ends = np.array([[below], [above]])
    if not np.all(np.abs(slopes - ends) <= CLOSE) or max(abs(below), abs(above)) <= CLOSE:
        return call
    below, above = (round(slope, 6) for slope in (below, above))
    return const(above) * RELU(call.arg) - const(below) * RELU(-call.arg)


_FAR: Table[Node] = Table(
    {
        Nonlin: lambda node: replace(node, fn=_of(node.fn)),
        Moment: lambda node: replace(node, fn=_of(node.fn)),
    },
    lambda node: node,
)
_CALLS: Table[Iterator[Call]] = Table(
    dict.fromkeys((Nonlin, Moment), lambda node: _calls(node.fn)), lambda node: iter(())
)
