"""The limit rule of outer functions: an average over a copy of the columns, for every row.

z_a = (1/d) sum_b psi(G(a, b)) x_b with bilinear forms G. The forms are expanded in the width as the
arguments of any function; what is left is an average over the columns alone. Where symmetry makes
that average 0, z is a fluctuation of n^(-1/2), of which a bound is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod
from typing import Any

from tpcalc.errors import LimitError, ScaleError
from tpcalc.exponents.chamber import Power, plus
from tpcalc.functions import Expr, Fn, Var
from tpcalc.functions.expr import walk
from tpcalc.functions.fn import FIRST
from tpcalc.limit.chains import outer_degree
from tpcalc.limit.classes import Classed, classes
from tpcalc.limit.context import Context
from tpcalc.limit.degrees import degree_of
from tpcalc.limit.expand import expand
from tpcalc.limit.gates import vanishes_exactly
from tpcalc.limit.graph import LRef, OuterExpect
from tpcalc.limit.pieces import Value
from tpcalc.limit.series import Asked, Remainder, Rest, Series, Setting
from tpcalc.program.nodes import LinComb, OuterNonlin, Ref, Rename

ZERO, HALF = Fraction(0), Fraction(1, 2)
Pairs = tuple[tuple[LRef, LRef], ...]


def outer(node: OuterNonlin, ref: Ref, values: Sequence[Any], context: Context) -> Value:
    """The value of an outer function."""
    x: Value = values[node.vector]
    if x.is_zero:
        return x
    if not node.forms:
        return _plain(node, ref, values, context)
    forms = [_form(form, node, values, context) for form in range(node.fn.vectors)]
    slots: list[Pairs] = []
    arguments: dict[Expr, Series[Expr]] = {}
    for index, form in enumerate(forms):
        terms: list[tuple[Power, Expr]] = []
        for power, pairs in form.terms:
            terms.append((power, Var(len(slots))))
            slots.append(pairs)
        arguments[Var(index)] = Series(tuple(terms), form.rest, form.soft, form.drift)

    def ask(asked: Asked) -> int:
        if asked.kind == "gated":  # of a form, not of a term
            return int(
                isinstance(asked.expr, Var) and _gated(asked.expr.index, node, values, context)
            )
        return _answer(asked, slots, node, context, ref)

    place = context.program.place(ref)
    setting = Setting(context.ranking, ask, frozenset(), place, context.exploded, context.fresh)
    try:
        found = expand(node.fn.expr, arguments, setting)
    except ScaleError:
        ones = [Fraction(1)] * node.fn.vectors
        if degree_of(node.fn.expr, ones, []) != ZERO:
            raise
        found = Series((), Rest(ZERO))  # psi is bounded
    return _averaged(found, slots, x, node, ref, context)


def _pairs(form: int, node: OuterNonlin) -> list[tuple[Ref, Ref]]:
    """The rows and columns of a form."""
    triples = zip(node.rows, node.cols, node.forms, strict=True)
    return [(row, col) for row, col, own in triples if own == form]


def _form(form: int, node: OuterNonlin, values: Sequence[Any], context: Context) -> Series[Pairs]:
    """The series of a form: for every power the pairs whose products are summed."""
    terms: dict[Power, Pairs] = {}
    left = Remainder()
    for row, col, names, sizes in _summed(form, node, values, context):
        for p, one in row.terms:
            for q, other in col.terms:
                held = {*dict(context.axes[one]), *dict(context.axes[other])}
                times = prod(size for name, size in sizes.items() if name not in held)
                pair = _times(times, one, names, context), _times(1, other, names, context)
                power = plus(p, q)
                terms[power] = (*terms.get(power, ()), pair)
        left.product(row, col)
    return context.ranking.keep(terms, left, _joined)


def _summed(
    form: int, node: OuterNonlin, values: Any, context: Context
) -> Iterator[tuple[Value, Value, dict[str, str], dict[str, int]]]:
    """Rows and columns, class by class, with names of their own for the axes of a class."""
    for row, col in _pairs(form, node):
        sizes = {name: k for r in (row, col) for name, k in context.program.types[r].axes}
        for own, numbers, counts in classes((row, col), values, node.over, context):
            names = {name: f"class{number}_{name}" for name, number in numbers.items()}
            held = {n: counts.get(n, k) for n, k in sizes.items() if n in node.over}
            yield own[row], own[col], names, held


def _times(times: int, item: LRef, names: dict[str, str], context: Context) -> LRef:
    """A vector that stands in a sum more than once, with names of its own for axes."""
    dim = context.dims[item]
    if times > 1:
        item = context.add(LinComb((Fraction(times),), (None,), (item,)), dim)
    new = tuple((old, names[old]) for old, _ in context.axes[item] if old in names)
    return context.add(Rename(item, new), dim) if new else item


def _gated(form: int, node: OuterNonlin, values: Sequence[Any], context: Context) -> bool:
    """Whether a form is exactly 0 where its terms are: both sides of all its products are."""
    pairs = _pairs(form, node)
    if any(isinstance(values[side], Classed) for pair in pairs for side in pair):
        return False
    there = [(r, c) for r, c in pairs if values[r].terms and values[c].terms]
    sizes = {plus(values[row].lead, values[col].lead) for row, col in there}
    many = len(pairs) > 1 or bool(node.over)
    if many and (len(sizes) > 1 or not context.ranking.depth):
        return False
    sides = dict.fromkeys(side for pair in pairs for side in pair)
    return all(vanishes_exactly(side, values, context) for side in sides)


def _joined(items: list[Pairs]) -> tuple[Pairs, bool]:
    return tuple(pair for item in items for pair in item), False


def _answer(
    asked: Asked, slots: Sequence[Pairs], node: OuterNonlin, context: Context, ref: Ref
) -> int:
    """What is known of forms: a product is 0 where its row is, and where its column is."""
    used = [part.index for part in walk(asked.expr) if isinstance(part, Var)]
    if asked.kind == "clear" and isinstance(asked.expr, Var) and not node.over:
        return int(_is_clear(slots[asked.expr.index], asked.points, context))
    if asked.kind == "told":
        sides = (side for slot in used for pair in slots[slot] for side in pair)
        for side in dict.fromkeys(sides):
            if not context.certainty.steep.proves(side):
                context.claim("told", side, ref, asked.expr.text, asked.points)
        return 1
    return 0


def _is_clear(pairs: Pairs, points: tuple[float, ...], context: Context) -> bool:
    """Whether a form is almost nowhere 0: one of its terms is, whatever the others are.

    Not more: near 0 the density of a product is larger than any number.
    """
    if len(pairs) == 1:
        return all(context.is_clear(side, points) for side in pairs[0])
    for this, other in ((0, 1), (1, 0)):
        sides = [pair[this] for pair in pairs]
        for place, pair in enumerate(pairs):
            others = [*sides[:place], *sides[place + 1 :]]
            apart = context.certainty.steep.is_apart(sides[place], others)
            if apart and context.is_clear(pair[other], points):
                return True
    return False


def _averaged(
    series: Series[Expr],
    slots: Sequence[Pairs],
    x: Value,
    node: OuterNonlin,
    ref: Ref,
    context: Context,
) -> Value:
    """The terms of psi times those of x, averaged over the columns."""
    terms: dict[Power, LRef] = {}
    # Averages over columns of what moves few entries are as small as its mean square says.
    soft = None if series.soft is None else Rest(series.soft.power, series.soft.strict)
    left = Remainder()
    left.add(x.bounded_by(series.rest), None, x.bounded_by(series.drift))
    left.add(x.bounded_by(soft))
    left.add(series.bounded_by(x.rest), None, series.bounded_by(x.drift))
    left.add(series.bounded_by(x.soft))
    for p, psi in series.terms:
        fn, kept, _ = Fn(psi, len(slots)).compact()
        pairs = [(pair, form) for form, slot in enumerate(kept) for pair in slots[slot]]
        held = {name for pair, _ in pairs for side in pair for name, _ in context.axes[side]}
        for q, vector in x.terms:
            power = plus(p, q)
            if not pairs and not context.parity.zero_mean(FIRST, (vector,)):
                raise ScaleError(
                    f"{node.fn.text} is a number where its arguments vanish, and the average of "
                    "that number times the vector is not followed.",
                    where=context.program.place(ref),
                    hint="Write the number apart, as an average of its own.",
                )
            if not pairs:
                left.add(Rest(plus(power, -HALF)))
                continue
            made = OuterExpect(
                fn,
                tuple(row for (row, _), _ in pairs),
                tuple(col for (_, col), _ in pairs),
                (),
                vector,
                tuple(form for _, form in pairs),
                tuple(sorted(held - {name for name, _ in context.program.types[ref].axes})),
            )
            if _is_zero(made, context, ref):
                left.add(Rest(plus(power, -HALF)))
                continue
            item = context.add(made, context.dim(ref))
            if power in terms:
                both = LinComb((Fraction(1),) * 2, (None,) * 2, (terms[power], item))
                item = context.add(both, context.dim(ref))
            terms[power] = item
    return context.ranking.keep(terms, left, _first)


def _is_zero(made: OuterExpect, context: Context, ref: Ref) -> bool:
    """Whether an average over columns is 0 by symmetry."""
    zero = context.parity.outer(made) is None
    if zero and outer_degree(context, made) is None:
        raise LimitError(
            f"an average of {made.fn.text} over columns is 0 by symmetry only if it exists, which "
            "is not known.",
            where=context.program.place(ref),
            hint="Of functions that grow faster than every polynomial moments may be infinite.",
        )
    return zero


def _plain(node: OuterNonlin, ref: Ref, values: Sequence[Any], context: Context) -> Value:
    """A function of rows and columns of order one: leading terms alone are followed."""
    x: Value = values[node.vector]
    refs = (*node.rows, *node.cols)
    plain = [values[r] for r in refs] + [values[r] for r in node.scalars]
    if any(not value.terms or value.lead != 0 for value in plain) or not x.terms:
        raise ScaleError(
            f"an outer function {node.fn.text} of what is not of order one as written.",
            where=context.program.place(ref),
            hint="Write the powers of n so that its arguments are of order one.",
        )
    dropped = [Rest(power) for power, _ in x.terms[1:2]]  # only leading terms are followed
    dropped += [Rest(plus(x.terms[0][0], power)) for v in plain for power, _ in v.terms[1:2]]
    left = Remainder()
    left.add(x.rest, x.soft, x.drift)
    for v in plain:
        left.add(*map(x.bounded_by, (v.rest, v.soft, v.drift)))
    left.rests += dropped
    rows, cols = len(node.rows), len(node.cols)
    items = [value.terms[0][1] for value in plain]
    made = OuterExpect(
        node.fn,
        tuple(items[:rows]),
        tuple(items[rows : rows + cols]),
        tuple(items[rows + cols :]),
        x.terms[0][1],
    )
    power, _ = x.terms[0]
    if _is_zero(made, context, ref):  # as of forms it fluctuates around 0
        left.add(Rest(plus(power, -HALF)))
        return context.ranking.keep(dict[Power, LRef](), left, _first)
    item = context.add(made, context.dim(ref))
    return context.ranking.keep({power: item}, left, _first)


def _first(items: list[LRef]) -> tuple[LRef, bool]:
    return items[0], False
