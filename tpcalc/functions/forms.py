"""Bilinear forms: sums of products of a row and a column, the arguments of an outer function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice, product
from typing import Any

import numpy as np

from tpcalc.functions.atoms import Call
from tpcalc.functions.expr import Add, Expr, Mul, Pow, Var, add, const, mul, walk
from tpcalc.functions.fn import Fn
from tpcalc.functions.tape import evaluate, lower, numpy_space, run

MOST = 64  # terms of an expanded function
HEIGHT, WIDTH = 64, 512  # of a tile: its temporaries stay in the cache


def tiles(
    fn: Fn,
    rows: Sequence[Any],
    cols: Sequence[Any],
    inner: int,
    scalars: Sequence[Any] = (),
    forms: Sequence[int] = (),
    module: Any = np,
    space: Any = None,
    side: tuple[int, int] = (HEIGHT, WIDTH),
) -> Iterator[tuple[slice, slice, Any]]:
    """An outer function of arrays, a tile at a time: the whole is never kept.

    Example:
        >>> import numpy as np
        >>> from tpcalc.functions import Var
        >>> ones, two = np.ones(3), np.array([1.0, 2.0])
        >>> [block.tolist() for _, _, block in tiles(Fn(Var(0) * Var(1), 2), [two], [ones], 3)]
        [[[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]]
    """
    tape, space = lower(fn), space or numpy_space()
    size, (height, width) = rows[0].shape[-1], side
    pairs = [[k for k, own in enumerate(forms) if own == form] for form in sorted(set(forms))]
    for first in range(0, inner, width):
        across = slice(first, min(first + width, inner))
        right = [module.stack([cols[k][..., across] for k in own], -2) for own in pairs]
        for start in range(0, size, height):
            down = slice(start, min(start + height, size))
            if forms:
                left = [module.stack([rows[k][..., down] for k in own], -1) for own in pairs]
                arguments = [module.matmul(a, b) for a, b in zip(left, right, strict=True)]
            else:
                arguments = [row[..., down, None] for row in rows]
                arguments += [col[..., None, across] for col in cols]
            yield down, across, run(tape, space, [*arguments, *scalars])


def averaged(
    fn: Fn,
    rows: Sequence[Any],
    cols: Sequence[Any],
    x: Any,
    scalars: Sequence[Any] = (),
    forms: Sequence[int] = (),
) -> Any:
    """The average over columns of an outer function times each of some vectors.

    Example:
        >>> import numpy as np
        >>> from tpcalc.functions import Var
        >>> ones, two = np.ones(3), np.array([1.0, 2.0])
        >>> averaged(Fn(Var(0) * Var(1), 2), [two], [ones], np.eye(3)[:1] * 3).tolist()
        [[1.0, 2.0]]
    """
    count, inner = x.shape
    x, found = x.T / inner, np.zeros((len(rows[0]), count))
    for down, across, block in tiles(fn, rows, cols, inner, scalars, forms):
        shape = len(found[down]), len(x[across])
        found[down] += np.matmul(np.broadcast_to(block, shape), x[across])
    return found.T


def factored(expr: Expr, rows: int) -> tuple[list[tuple[Expr, Expr]], Expr]:
    """A function of rows and columns as products of a function of each, and what is none.

    Example:
        >>> found, rest = factored((Var(0) + Var(1)) ** 2, 1)
        >>> [(left.text, right.text) for left, right in found], rest.text
        ([('x0**2', '1'), ('2*x0', 'x1'), ('1', 'x1**2')], '0')
    """
    every = list(islice(_terms(expr, rows), MOST + 1))
    found: dict[Expr, list[Expr]] = {}
    left: list[Expr] = []
    for factors in every:
        if len(every) > MOST or any(len(_sides(factor, rows)) > 1 for factor in factors):
            left.append(mul(factors))
        else:
            right = mul(factor for factor in factors if _sides(factor, rows) == {True})
            others = mul(factor for factor in factors if _sides(factor, rows) != {True})
            found.setdefault(right, []).append(others)
    pairs = [(add(own), right) for right, own in found.items()]
    return pairs, add(left) if found else expr


def _sides(expr: Expr, rows: int) -> set[bool]:
    """Whether it holds rows (False), columns (True)."""
    return {part.index >= rows for part in walk(expr) if isinstance(part, Var)}


def _terms(expr: Expr, rows: int) -> Iterator[tuple[Expr, ...]]:
    """The factors of the terms of a function that is multiplied out as far as it holds both."""
    if len(_sides(expr, rows)) < 2:
        yield (expr,)
    elif isinstance(expr, Add):
        for term in expr.terms:
            yield from _terms(term, rows)
    elif isinstance(expr, Mul):
        parts = (islice(_terms(factor, rows), MOST + 1) for factor in expr.factors)
        yield from (sum(chosen, ()) for chosen in product(*parts))
    elif isinstance(expr, Pow) and expr.exponent.denominator == 1 and 1 < expr.exponent <= MOST:
        below = islice(_terms(expr.base ** (expr.exponent - 1), rows), MOST + 1)
        yield from (one + other for one, other in product(_terms(expr.base, rows), below))
    elif isinstance(expr, Call) and isinstance(expr.arg, Mul) and _is_multiplicative(expr):
        yield from _terms(mul(map(expr.atom, expr.arg.factors)), rows)
    else:
        yield (expr,)


def _is_multiplicative(call: Call) -> bool:
    """Whether f(x y) = f(x) f(y): even or odd, homogeneous, and 1 at 1."""
    facts = call.atom.facts
    known = facts.parity != "none" and isinstance(facts.homogeneity, Fraction)
    return known and float(evaluate(Fn(call.atom(const(1)), 0), [])) == 1
