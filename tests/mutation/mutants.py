"""Small wrong changes of a source file, made from its syntax tree."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

__all__ = ["Mutant", "mutants"]

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitOr,
}
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
BUILT_IN = {"bool", "float", "int", "str"}  # types, beside those in capitals
LEFT_OUT = {"sorted", "set", "reversed"}  # what they give is still what they are given


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one place of one file.

    Args:
        path: The file, from the root of the repository.
        line: Where it is.
        function: In which function or class.
        before: What is there.
        after: What the mutant has there.
        text: The whole file with the change.
    """

    path: str
    line: int
    function: str
    before: str
    after: str
    text: str

    @property
    def key(self) -> str:
        """A name that stays the same as long as the file does."""
        return hashlib.sha256(f"{self.path}\0{self.text}".encode()).hexdigest()[:16]


def mutants(root: Path, path: str) -> list[Mutant]:
    """All mutants of a file, by line.

    Args:
        root: The root of the repository.
        path: The file, from there.
    """
    source = (root / path).read_text(encoding="utf-8")
    found: dict[str, Mutant] = {}
    for function, node, other in _changes(ast.parse(source), ""):
        before = ast.get_source_segment(source, node)
        after = ast.unparse(other)
        if before is None or not isinstance(node, ast.expr | ast.stmt):
            continue
        if isinstance(node, ast.expr):
            after = f"({after})"
        text = _replaced(source, node, after)
        try:
            compile(text, path, "exec")
        except SyntaxError:
            continue
        found.setdefault(text, Mutant(path, node.lineno, function, before, after, text))
    return sorted(found.values(), key=lambda mutant: mutant.line)


def _replaced(source: str, node: ast.expr | ast.stmt, after: str) -> str:
    assert node.end_lineno is not None and node.end_col_offset is not None
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    first = starts[node.lineno - 1] + node.col_offset
    last = starts[node.end_lineno - 1] + node.end_col_offset
    whole = source.encode()
    return (whole[:first] + after.encode() + whole[last:]).decode()


TOLD = ("annotation", "returns", "decorator_list", "bases")  # to the type checker, or at import


def _changes(
    node: ast.AST, function: str, given: str = ""
) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """(function, node, what stands in its place), everywhere that code decides something."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return  # messages, and what is said to the type checker
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
    if isinstance(node, ast.FunctionDef):
        given = ast.unparse(node.returns) if node.returns else ""
    others: Iterator[ast.AST] = iter(())
    if isinstance(node, ast.stmt):
        others = _statements(node, given)
    elif isinstance(node, ast.expr):
        others = _expressions(node)
    for other in others:
        yield function, node, other
    fields = (child for name, child in ast.iter_fields(node) if name not in TOLD)
    for part in chain(*(child if isinstance(child, list) else [child] for child in fields)):
        if isinstance(part, ast.AST):
            yield from _changes(part, function, given)


def _statements(node: ast.stmt, given: str) -> Iterator[ast.stmt]:
    if isinstance(node, ast.Return) and node.value is not None:
        values = (True, False) if given == "bool" else (None,) if "None" in given else ()
        for value in values:
            if not (isinstance(node.value, ast.Constant) and node.value.value is value):
                yield ast.Return(ast.Constant(value))
    called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    if called or isinstance(node, ast.AugAssign | ast.Continue | ast.Break):
        yield ast.Pass()


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for table in (COMPARED, TURNED):
            yield from (
                _with(node, ops=[table[kind]()]) for kind in table if kind is type(node.ops[0])
            )
    elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED and not _is_type(node):
        yield from (_with(node, op=COMPUTED[type(node.op)]()), node.left, node.right)
    elif isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        for place in range(len(node.values)):
            values = node.values[:place] + node.values[place + 1 :]
            yield _with(node, values=values) if len(values) > 1 else values[0]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield _with(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Call):
        yield from _called(node)
    else:
        yield from _collected(node)


def _called(node: ast.Call) -> Iterator[ast.expr]:
    """Another function called, or a part left out of a tuple that is given."""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in CALLED:
        yield _with(node, func=ast.Name(CALLED[name]))
    elif name in LEFT_OUT:
        yield _with(node, func=ast.Name("list"), keywords=[])
    for place, given in enumerate(node.args):
        if isinstance(given, ast.Tuple) and len(given.elts) > 1:
            for i in range(len(given.elts)):
                other = _with(given, elts=_without(given.elts, i))
                yield _with(node, args=[*node.args[:place], other, *node.args[place + 1 :]])


def _collected(node: ast.expr) -> Iterator[ast.expr]:
    """One part of what is put together of parts left out, or a condition of a comprehension."""
    if isinstance(node, ast.Tuple | ast.List):
        if any(isinstance(part, ast.Starred) for part in node.elts):
            yield from (_with(node, elts=_without(node.elts, i)) for i in range(len(node.elts)))
    elif isinstance(node, ast.Dict) and None in node.keys:
        for i in range(len(node.keys)):
            yield _with(node, keys=_without(node.keys, i), values=_without(node.values, i))
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for i, part in enumerate(node.generators):
            if part.ifs:
                loops = list(node.generators)
                loops[i] = ast.comprehension(part.target, part.iter, [], part.is_async)
                yield _with(node, generators=loops)


def _without(parts: list[Any], place: int) -> list[Any]:
    return parts[:place] + parts[place + 1 :]


def _is_type(node: ast.BinOp) -> bool:
    """Whether this is a union of types, as in ``int | None``."""
    parts = (node.left, node.right)
    named = any(
        isinstance(part, ast.Name) and (part.id[:1].isupper() or part.id in BUILT_IN)
        for part in parts
    )
    none = any(isinstance(part, ast.Constant) and part.value is None for part in parts)
    return isinstance(node.op, ast.BitOr) and (named or none)


def _constants(node: ast.Constant) -> Iterator[ast.expr]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1)
        yield ast.Constant(value - 1)
    elif isinstance(value, float):
        yield ast.Constant(value * 1000)
        yield ast.Constant(value / 1000)


def _with(node: ast.expr, **fields: object) -> ast.expr:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other
