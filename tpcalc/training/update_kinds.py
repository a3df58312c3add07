"""What the text of an optimizer adds to a weight, at every step: sums of gradients, or bounded.

Kinds are read off the formulas alone, so that a state whose kinds after a step are those before it
keeps them for ever. No number is looked at but 0: a division that fails at some step is refused
there, when the optimizer is read.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from itertools import chain

# A sum of gradients and of the start, a bounded function of gradients, a sum of squares, its root.
LINEAR, BOUNDED, SQUARE, ROOT = "linear", "bounded", "square", "root"
Kinds = frozenset[str]  # of the terms of a sum
NUMBER: Kinds = frozenset({"number"})
NOTHING: Kinds = frozenset()
ADDED = (
    NUMBER,
    frozenset({LINEAR}),
    frozenset({BOUNDED}),
    frozenset({LINEAR, BOUNDED}),
    frozenset({SQUARE}),
)


class _UnknownKindError(Exception):
    """A formula of no kind that is followed."""


def is_lasting(lines: Sequence[tuple[str, ast.expr]], numbers: Mapping[str, bool]) -> bool:
    """Whether w is always a sum of gradients, bounded functions of them, and its start.

    Example:
        >>> lines = [("m", ast.parse("b*m + g", mode="eval").body),
        ...          ("w", ast.parse("w - lr*sign(m)", mode="eval").body)]
        >>> is_lasting(lines, {"b": True, "lr": True})
        True
        >>> is_lasting([("w", ast.parse("w - lr*g**3", mode="eval").body)], {"lr": True})
        False
    """
    fixed = {name: NUMBER if there else NOTHING for name, there in numbers.items()}
    state: dict[str, Kinds] = dict.fromkeys((name for name, _ in lines), NOTHING)
    state["w"] = frozenset({LINEAR})
    seen: list[dict[str, Kinds]] = []
    while state not in seen:
        seen.append(state)
        names = {**fixed, **state, "g": frozenset({LINEAR})}
        try:
            for name, line in lines:
                names[name] = _kind(line, names)
        except _UnknownKindError:
            return False
        state = {name: names[name] for name in state}
    return all(each["w"] <= {LINEAR, BOUNDED} for each in seen)


def _kind(node: ast.expr, names: Mapping[str, Kinds]) -> Kinds:
    if isinstance(node, ast.Constant):
        return NUMBER if node.value else NOTHING
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.UnaryOp):
        return _kind(node.operand, names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _applied(node.func.id, _kind(node.args[0], names))
    if isinstance(node, ast.BinOp):
        left, right = _kind(node.left, names), _kind(node.right, names)
        if isinstance(node.op, ast.Add | ast.Sub):
            return _added(left, right)
        if isinstance(node.op, ast.Mult):
            return _multiplied(left, right)
        if isinstance(node.op, ast.Div):
            return _divided(left, right)
        if isinstance(node.op, ast.Pow):
            return _raised(left, right, node.right)
    raise _UnknownKindError


def _applied(function: str, inner: Kinds) -> Kinds:
    if inner <= NUMBER:
        return inner
    if function == "sign":
        return frozenset({BOUNDED})
    if function == "sqrt" and inner == {SQUARE}:
        return frozenset({ROOT})
    raise _UnknownKindError


def _added(left: Kinds, right: Kinds) -> Kinds:
    if not left or not right:
        return left or right
    if {left, right} == {frozenset({ROOT}), NUMBER}:  # eps
        return frozenset({ROOT})
    both = frozenset(chain(left, right))
    if both not in ADDED:
        raise _UnknownKindError
    return both


def _multiplied(left: Kinds, right: Kinds) -> Kinds:
    if not left or not right:
        return NOTHING
    if NUMBER in (left, right):
        return right if left == NUMBER else left
    if left == right == {LINEAR}:
        return frozenset({SQUARE})
    raise _UnknownKindError


def _divided(left: Kinds, right: Kinds) -> Kinds:
    if right == NUMBER:
        return left
    if right == {ROOT} and left <= {LINEAR}:
        # What is divided is 0 where the root is, or it is refused: Cauchy and Schwarz bound it.
        return frozenset({BOUNDED}) if left else NOTHING
    raise _UnknownKindError


def _raised(base: Kinds, exponent: Kinds, node: ast.expr) -> Kinds:
    if base <= NUMBER and exponent <= NUMBER:
        return base or (NUMBER if not exponent else NOTHING)
    if base == {LINEAR} and isinstance(node, ast.Constant) and node.value == 2:
        return frozenset({SQUARE})
    raise _UnknownKindError
