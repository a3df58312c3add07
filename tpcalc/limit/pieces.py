"""Functions of series: the terms of an expanded function as pieces over limit-graph nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tpcalc.functions import Expr, Fn, Par, Var
from tpcalc.functions.expr import const, substitute
from tpcalc.limit.building import is_hidden
from tpcalc.limit.chains import has_inverse
from tpcalc.limit.context import Context, Piece, Template
from tpcalc.limit.expand import expand
from tpcalc.limit.graph import LRef
from tpcalc.limit.law import Density, linear_part
from tpcalc.limit.series import BELOW, FAR, Asked, Series, Setting
from tpcalc.program.base import lincomb_of
from tpcalc.program.nodes import Nonlin, Ref

Value = Series[LRef]


def expanded(
    context: Context,
    fn: Fn,
    vectors: Sequence[Value],
    scalars: Sequence[Value],
    ref: Ref,
    gated: Callable[[int], bool] = lambda index: False,
) -> tuple[list[Piece], Series[Expr]]:
    """Substitute series into a function; one template serves all arguments of the same shape."""
    all_vectors = tuple(node for value in vectors for _, node in value.terms)
    all_scalars = tuple(node for value in scalars for _, node in value.terms)
    # Equal nodes are one argument, so that what they share cancels before anything is concluded.
    same = tuple(map(all_vectors.index, all_vectors)), tuple(map(all_scalars.index, all_scalars))
    positive = tuple(map(context.is_positive, all_vectors))
    key = (fn, tuple(context.shape(value) for value in (*vectors, *scalars)), positive, same)

    def answered(asked: Asked) -> int:
        if asked.kind == "gated":  # of an argument, not of a term
            return int(isinstance(asked.expr, Var) and gated(asked.expr.index))
        if asked.kind == "positive":
            places: dict[Expr, Expr] = {Var(i): Var(node) for i, node in enumerate(all_vectors)}
            places |= {Par(i): Par(node) for i, node in enumerate(all_scalars)}
            return int(has_inverse(context, substitute(asked.expr, places)))
        return _answer(context, asked, all_vectors, all_scalars, ref)

    known = context.templates.setdefault(key, [])
    for found in known:
        if all(answered(asked) == answer for asked, answer in found.asked):
            break
    else:
        before = len(context.exploded)
        found = _template(context, fn, vectors, scalars, ref, same, answered)
        hidden = any(is_hidden(part.fn) for part in found.parts)  # each of those is its own
        if not hidden and len(context.exploded) == before:
            known.append(found)
    pieces = [
        Piece(
            part.power,
            part.fn,
            tuple(all_vectors[i] for i in part.vectors),
            tuple(all_scalars[i] for i in part.scalars),
        )
        for part in found.parts
    ]
    levelled = [_levelled(context, piece) for piece in pieces]
    joined = [collected(piece) for piece in levelled]
    bounds = found.bounds
    if any(one is not other for one, other in zip(joined, levelled, strict=True)):
        # What is left may be smaller than what cancelled, so that what that drifted by counts.
        rest = context.ranking.larger(bounds.rest, bounds.drift)
        bounds = replace(bounds, rest=rest, drift=None)
    return [piece for piece in joined if piece is not None], bounds


def _levelled(context: Context, piece: Piece) -> Piece:
    """A term in which vectors that are one number on all coordinates are that number."""
    level_of = context.laws.level
    levels = [level_of(vector) for vector in piece.vectors]
    if levels.count(None) == len(levels):
        return piece
    scalars = list(piece.scalars)
    numbers: dict[Expr, Expr] = {}
    for place, level in enumerate(levels):
        if level is not None:
            numbers[Var(place)] = Par(len(scalars))
            scalars.append(level)
    fn, keep_v, keep_s = Fn(substitute(piece.fn.expr, numbers), len(levels), len(scalars)).compact()
    return Piece(
        piece.power,
        fn,
        tuple(piece.vectors[i] for i in keep_v),
        tuple(scalars[i] for i in keep_s),
    )


def collected(piece: Piece) -> Piece | None:
    """One argument for each node, so that equal terms cancel; None where all do."""
    vectors, scalars = tuple(dict.fromkeys(piece.vectors)), tuple(dict.fromkeys(piece.scalars))
    if len(vectors) == len(piece.vectors) and len(scalars) == len(piece.scalars):
        return piece
    same: dict[Expr, Expr] = {Var(i): Var(vectors.index(v)) for i, v in enumerate(piece.vectors)}
    same.update({Par(i): Par(scalars.index(s)) for i, s in enumerate(piece.scalars)})
    expr = substitute(piece.fn.expr, same)
    if expr == const(0):
        return None
    fn, keep_v, keep_s = Fn(expr, len(vectors), len(scalars)).compact()
    kept = tuple(vectors[i] for i in keep_v), tuple(scalars[i] for i in keep_s)
    return Piece(piece.power, fn, *kept)


def _template(
    context: Context,
    fn: Fn,
    vectors: Sequence[Value],
    scalars: Sequence[Value],
    ref: Ref,
    same: tuple[tuple[int, ...], tuple[int, ...]],
    answered: Callable[[Asked], int],
) -> Template:
    """The expansion of a function, over numbered terms of its arguments' series."""
    arguments: dict[Expr, Series[Expr]] = {}
    for kind, values, numbers in ((Var, vectors, same[0]), (Par, scalars, same[1])):
        fresh = iter(numbers)
        for index, value in enumerate(values):
            terms = tuple((power, kind(next(fresh))) for power, _ in value.terms)
            arguments[kind(index)] = Series(terms, value.rest, value.soft, value.drift)
    nodes = [node for value in vectors for _, node in value.terms]
    asked: dict[Asked, int] = {}

    def ask(question: Asked) -> int:
        asked[question] = answered(question)
        return asked[question]

    setting = Setting(
        context.ranking,
        ask,
        frozenset(Var(i) for i, node in enumerate(nodes) if context.is_positive(node)),
        context.program.place(ref),
        context.exploded,
        context.fresh,
    )
    found = expand(fn.expr, arguments, setting)
    parts = []
    for power, expr in found.terms:
        compact, keep_v, keep_s = Fn(expr, len(same[0]), len(same[1])).compact()
        parts.append(Piece(power, compact, keep_v, keep_s))
    return Template(tuple(parts), replace(found, terms=()), tuple(asked.items()))


def _answer(
    context: Context, asked: Asked, vectors: Sequence[LRef], scalars: Sequence[LRef], ref: Ref
) -> int:
    """What is known of the arguments of a function; what the answer rests on is a claim."""
    fn, keep_v, keep_s = Fn(asked.expr, len(vectors), len(scalars)).compact()
    used_v = tuple(vectors[i] for i in keep_v)
    used_s = tuple(scalars[i] for i in keep_s)
    if asked.kind in ("nonzero", "away"):
        node = context.scalar(fn, used_s)
        doubtful = asked.power < 0 and context.random[node]
        if doubtful and has_inverse(context, Par(node)):
            return 1
        if asked.kind == "away" or doubtful or not context.certainty.holds(node):
            context.claim(asked.kind, node, ref, fn.text, asked.points, asked.power)
        return 1
    if asked.kind == "told":
        node = _vector(context, fn, used_v, used_s)
        context.claim("told", node, ref, fn.text, asked.points)
        return 1
    return _on_points(context, asked, fn, (used_v, used_s), ref)


def _on_points(
    context: Context,
    asked: Asked,
    fn: Fn,
    arguments: tuple[tuple[LRef, ...], tuple[LRef, ...]],
    ref: Ref,
) -> int:
    """What is known of the mass of a vector at points."""
    used_v, used_s = arguments
    rounded = asked.kind == "rounded"
    level = context.laws.level_of(fn, used_v, used_s)
    if level is not None and not context.random[level]:
        return _at_level(context, asked, level, _vector(context, fn, used_v, used_s), ref)
    linear = linear_part(context, fn.expr, used_v, used_s)
    density = Density.NONE if linear is None else context.laws.density(linear)
    if density is Density.PROVED:
        return 0 if rounded else 2
    summed = linear is not None and lincomb_of(context.nodes[linear]) is not None
    node = _vector(context, fn, used_v, used_s)
    steep = context.certainty.steep
    if not density and steep.proves(node):
        return int(not rounded)
    if context.is_found_clear(node, asked.points):
        context.claim("told", node, ref, fn.text, asked.points)
        return int(not rounded)
    if context.is_atom(node, asked.points):
        return int(rounded)
    sources = () if density else steep.sources(node)
    if not density and not sources:
        return int(rounded and summed)
    plain = density in (Density.NONE, Density.PLAIN)
    if linear is not None and density is Density.PLAIN:
        sources = context.laws.sources(linear)
    context.claim("clear", node, ref, fn.text, asked.points, plain=plain, sources=sources)
    if rounded:
        return 0
    return 2 if density > Density.CLAIMED else 1


def _at_level(context: Context, asked: Asked, level: LRef, node: LRef, ref: Ref) -> int:
    """What is known of a vector that is one number on all coordinates."""
    rounded = asked.kind == "rounded"
    if context.is_atom(level, asked.points):
        return int(rounded and lincomb_of(context.nodes[node]) is not None)
    if asked.gentle and (context.key(level), asked.points) in context.record.near:
        return 0
    context.claim("side", level, ref, asked.expr.text, asked.points)
    if context.is_negative(level):
        return BELOW
    return 0 if rounded else FAR


def _vector(context: Context, fn: Fn, vectors: tuple[LRef, ...], scalars: tuple[LRef, ...]) -> LRef:
    if fn.expr == Var(0):
        return vectors[0]
    return context.add(Nonlin(fn, vectors, scalars), context.dims[vectors[0]])
