"""What a loss is: its value and its derivative by the outputs, as expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tpcalc.functions import Expr
from tpcalc.results import Samples
from tpcalc.sources import Source


def _any_targets(samples: Samples) -> None:
    """Targets of every kind are fine."""


@dataclass(frozen=True)
class Loss:
    """An entry of the catalogue: a loss of one sample.

    Args:
        name: The name it is listed under.
        value: ``value(outputs, targets)``: the loss.
        chi: ``chi(outputs, targets)``: its derivative by each output.
        text: What it is, in one line.
        source: Where it is defined.
        check: ``check(samples)`` raises ``StudyError`` where the targets do not fit.
        aliases: Other names.

    Example:
        >>> from tpcalc.training.losses import lookup
        >>> from tpcalc.functions import Par
        >>> [part.text for part in lookup("mse").chi([Par(0)], [Par(1)])]
        ['s0 + -1*s1']
    """

    name: str
    value: Callable[[Sequence[Expr], Sequence[Expr]], Expr] = field(repr=False)
    chi: Callable[[Sequence[Expr], Sequence[Expr]], tuple[Expr, ...]] = field(repr=False)
    text: str
    source: Source
    check: Callable[[Samples], None] = field(default=_any_targets, repr=False)
    aliases: tuple[str, ...] = ()
