"""Half the squared error."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tpcalc.functions import Expr
from tpcalc.functions.expr import add
from tpcalc.sources import INTEGRABLE
from tpcalc.training.loss import Loss


def value(outputs: Sequence[Expr], targets: Sequence[Expr]) -> Expr:
    """Half the sum over outputs of (f - y)^2."""
    return add(Fraction(1, 2) * (f - y) ** 2 for f, y in zip(outputs, targets, strict=True))


def chi(outputs: Sequence[Expr], targets: Sequence[Expr]) -> tuple[Expr, ...]:
    """The derivative f - y for each output."""
    return tuple(f - y for f, y in zip(outputs, targets, strict=True))


ENTRY = Loss(
    "mse",
    value,
    chi,
    text="1/2 sum over outputs of (f - y)^2",
    source=INTEGRABLE.at("Assumption 1"),
    aliases=("squared-error",),
)
