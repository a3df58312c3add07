"""Activations at the doors of this room: functions that averages under a Gaussian exist of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from math import inf
from typing import Any, Concatenate, ParamSpec, TypeVar

from tpcalc.activations.given import Given, as_activation
from tpcalc.errors import StudyError
from tpcalc.functions import Expr, Fn
from tpcalc.functions.tape import evaluate

P = ParamSpec("P")
R = TypeVar("R")

Act = Any
"""An activation: a name, a formula, ``tp.tanh``, ``tp.function(...)``, a function of expressions,
an expression of ``Var(0)``."""


def whole(activation: Act, where: str | None = None) -> Given:
    """An activation that is defined on the whole line, with its name.

    Example:
        >>> whole("gelu").text, whole(lambda z: z**2).text
        ('gelu', 'x0**2')
    """
    found = as_activation(activation, where)
    if not isinstance(activation, Expr):
        evaluate(Fn(found.expr, 1), [0.5])  # a power that is a symbol has no values, and says so
    if found.domain != (-inf, inf):
        low, high = found.domain
        raise StudyError(
            f"{found.text} is defined between {low:g} and {high:g} only, so that it has no "
            "averages under a Gaussian.",
            where=where,
            hint="Take an activation that is defined on the whole line.",
        )
    return found


def tau_of(activation: Act) -> Expr:
    """An activation as an expression of ``Var(0)``."""
    return activation if isinstance(activation, Expr) else whole(activation).expr


@dataclass(frozen=True)
class OfActivation:
    """What is asked of one activation, however it is handed over."""

    tau: Act  # the activation: a name, tp.tanh, a formula or a function of expressions

    def __post_init__(self) -> None:
        object.__setattr__(self, "tau", tau_of(self.tau))


def of_activation(
    function: Callable[Concatenate[Expr, P], R],
) -> Callable[Concatenate[Act, P], R]:
    """A function of an expression as one of an activation, however it is handed over."""

    def asked(tau: Act, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return function(tau_of(tau), *args, **kwargs)

    update_wrapper(asked, function)
    return asked
