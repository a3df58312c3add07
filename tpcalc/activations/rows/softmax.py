"""Softmax."""

from __future__ import annotations

from collections.abc import Sequence

from tpcalc.activations.entries.exp import EXP
from tpcalc.functions import Expr
from tpcalc.functions.expr import add, const
from tpcalc.functions.rows import RowFn
from tpcalc.sources import Source


def _cells(row: Sequence[Expr]) -> list[Expr]:
    # Differences, so that a large entry leaves a share of 1 and the others 0, not inf / inf.
    shares = (
        add((const(1), *(EXP(other - own) for other in row if other is not own))) for own in row
    )
    return [share**-1 for share in shares]


ENTRY = RowFn(
    "softmax",
    _cells,
    lambda own, adjoint, total: own * (adjoint - total),
    text="exp(x_i) over the sum of the exp(x_j) along the axis",
    source=Source("Bridle, Probabilistic interpretation of feedforward classification networks"),
)
