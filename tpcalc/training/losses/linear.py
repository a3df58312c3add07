"""The linear loss -f: its derivative is -1 whatever the outputs and targets are."""

from __future__ import annotations

from collections.abc import Sequence

from tpcalc.functions import Expr, const
from tpcalc.functions.expr import add
from tpcalc.sources import INTEGRABLE
from tpcalc.training.loss import Loss


def value(outputs: Sequence[Expr], targets: Sequence[Expr]) -> Expr:
    """Minus the sum of the outputs; targets play no part."""
    return add(-f for f in outputs)


def chi(outputs: Sequence[Expr], targets: Sequence[Expr]) -> tuple[Expr, ...]:
    """The derivative -1 for each output."""
    return tuple(const(-1) for _ in outputs)


ENTRY = Loss(
    "linear",
    value,
    chi,
    text="-f, summed over outputs; targets play no part",
    source=INTEGRABLE.at("Assumption 1"),
)
