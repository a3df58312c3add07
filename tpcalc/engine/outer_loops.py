"""Averages of outer functions over columns, compiled: every pair is seen once, and none is kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tpcalc.engine.kernels_compile import loose
from tpcalc.functions import Call, Const, Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, Pow
from tpcalc.functions.form import RECIPROCAL, reciprocal
from tpcalc.functions.forms import averaged

WORTH = 2**22  # pairs from which a function is compiled, which takes a second


def outer_average(
    fn: Fn,
    rows: Sequence[Any],
    cols: Sequence[Any],
    x: Any,
    scalars: Sequence[Any],
    forms: Sequence[int],
) -> Any:
    """As ``averaged``; compiled where it has sums, products, powers and ``reciprocal``."""
    worth = len(rows[0]) * x.shape[1] >= WORTH
    loop = _compiled(fn, len(rows), len(x), tuple(forms)) if worth else None
    if loop is None:
        return averaged(fn, rows, cols, x, scalars, forms)
    found = np.empty((len(x), len(rows[0])))
    numbers = np.array([float(value) for value in scalars])
    loop(np.array(rows), np.array(cols), np.ascontiguousarray(x), numbers, found)
    return found


@lru_cache(maxsize=64)
def _compiled(fn: Fn, count: int, vectors: int, forms: tuple[int, ...]) -> Any:
    """The loop over rows and columns; None where an operation is left to arrays."""
    left, right = ([f"{one}[{k}, {at}]" for k in range(count)] for one, at in ("ri", "cj"))
    values = left + right
    if forms:
        values = [
            " + ".join(left[k] + " * " + right[k] for k, own in enumerate(forms) if own == form)
            for form in sorted(set(forms))
        ]
    lines = [f"v{k} = {value}" for k, value in enumerate(values)]
    try:
        value = _written(fn.expr, lines, {})
    except NotImplementedError:
        return None
    kept = range(vectors)
    text = [
        "def loop(r, c, x, numbers, found):",
        "    for i in range(r.shape[1]):",
        *(f"        t{k} = 0.0" for k in kept),
        "        for j in range(c.shape[1]):",
        *(f"            {line}" for line in lines),
        *(f"            t{k} += {value} * x[{k}, j]" for k in kept),
        *(f"        found[{k}, i] = t{k} / c.shape[1]" for k in kept),
    ]
    space: dict[str, Any] = {"sqrt": math.sqrt}
    exec("\n".join(text), space)
    return loose(space["loop"])


def _written(expr: Expr, lines: list[str], known: dict[Expr, str]) -> str:
    """The name of a value, with the lines that compute it."""
    if isinstance(expr, Var):
        return f"v{expr.index}"
    if isinstance(expr, Par):
        return f"numbers[{expr.index}]"
    if isinstance(expr, Const):
        return repr(float(expr.value))
    if expr not in known:
        text = _operation(expr, lines, known)
        known[expr] = f"w{len(known)}"
        lines.append(f"{known[expr]} = {text}")
    return known[expr]


def _operation(expr: Expr, lines: list[str], known: dict[Expr, str]) -> str:
    if isinstance(expr, Add | Mul):
        parts = expr.terms if isinstance(expr, Add) else expr.factors
        written = [f"({_written(part, lines, known)})" for part in parts]
        return (" + " if isinstance(expr, Add) else " * ").join(written)
    if isinstance(expr, Pow):
        return _power(_written(expr.base, lines, known), expr.exponent)
    assert isinstance(expr, Call)  # every expression class is listed here
    powers = [one for one in expr.atom.params if isinstance(one, Fraction)]
    if expr.atom.name != RECIPROCAL or expr.atom != reciprocal(powers[0]):
        raise NotImplementedError(expr.atom.name)
    z = _written(expr.arg, lines, known)
    return f"(1.0 if {z} > 0.0 else 0.0) / {_power(f'({z} if {z} > 0.0 else 1.0)', powers[0])}"


def _power(base: str, exponent: Fraction) -> str:
    return f"sqrt({base})" if exponent == Fraction(1, 2) else f"({base}) ** ({exponent})"
