"""A function at a number, with a bound of the rounding."""

from __future__ import annotations

from typing import Any

from tpcalc.functions import Call, Expr, Fn
from tpcalc.functions.expr import walk
from tpcalc.functions.tape import evaluate
from tpcalc.integrals.exact.ball import UNIT, Ball
from tpcalc.integrals.exact.delta import DELTA, no_density
from tpcalc.integrals.exact.piece import level
from tpcalc.integrals.exact.pieces import decompose


def at_point(factor: Expr, point: Any) -> Ball:
    """f(point) for a float or an array.

    The bound is that of a sum of its pieces in any order.
    """
    import numpy as np

    if any(isinstance(part, Call) and part.atom == DELTA for part in walk(factor)):
        raise no_density()
    at = np.float64(point) if type(point) in (int, float) else point
    value = evaluate(Fn(factor, 1), [at])
    size: Any = 0.0
    z = np.abs(at)
    for piece, polynomial in decompose(factor).items():
        exponent = level(piece.square) * at * at + level(piece.slope) * at
        height = np.exp(exponent) * (1 + np.abs(exponent))
        if piece.wave is not None:
            height = height * (1 + np.abs(level(piece.wave.frequency) * at))
        if piece.positive is not None:
            height = height * z ** float(piece.positive[1]) * (1 + float(piece.positive[1]))
        for degree, coefficient in polynomial.items():
            size = size + abs(level(coefficient)) * (1 + degree) * z**degree * height
    if not np.ndim(value):
        value, size = float(value), float(size)
    return Ball(value, 0.0, 64 * UNIT * size)
