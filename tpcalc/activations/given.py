"""``as_activation``: an activation from whatever a user hands over for one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

from tpcalc import checks
from tpcalc.activations.activation import Activation
from tpcalc.activations.entries import REGISTRY, atom, lookup
from tpcalc.dsl.elementwise import expression
from tpcalc.errors import StudyError, placed
from tpcalc.functions import Call, Expr, Fn, Var
from tpcalc.functions.expr import walk
from tpcalc.functions.parse import parse_fn

_NAME = re.compile(r"[A-Za-z_]\w*(?![\w(\[])")
_FORMULA = re.compile(r"[()*+]|\w\s*/|-\s*\w|\w\s*-")
_PARAMETERS = re.compile(r"\s*\w+\s*([:^\[].*)")


@dataclass(frozen=True, slots=True)
class Given:
    """A function of one variable with its name."""

    expr: Expr  # the function, of Var(0)
    text: str  # what it is called

    @property
    def name(self) -> str:
        """The same, for whoever asks any function for its name."""
        return self.text

    @property
    def domain(self) -> tuple[float, float]:
        """The open interval on which it is defined, where the catalogue says it."""
        own = self.expr
        if not isinstance(own, Call) or own.arg != Var(0) or own.atom.name not in REGISTRY:
            return -inf, inf
        listed = REGISTRY[own.atom.name]
        return listed.domain if listed(*own.atom.params).function == own.atom else (-inf, inf)


def as_activation(source: Any, where: str | None = None) -> Given:
    """An activation from whatever a user hands over for one.

    Example:
        >>> [as_activation(own).expr.text for own in ("tanh", "z*tanh(z)", lambda z: z**2 + 1)]
        ['tanh(x0)', 'x0*tanh(x0)', '1 + x0**2']
    """
    if isinstance(source, str):
        return _named(source)
    if isinstance(source, Activation):
        return Given(source.fn.expr, source.text)
    own = source if isinstance(source, Expr) else getattr(source, "expr", None)
    if isinstance(own, Expr):
        if any(isinstance(part, Var) and part.index != 0 for part in walk(own)):
            raise StudyError(
                f"{own.text} has several arguments.",
                where=where,
                hint="An activation is a function of Var(0).",
            )
        return Given(own, _called(source, own))
    if not callable(source):
        raise StudyError(
            f"the activation is {checks.shown(source)}.",
            where=where,
            hint="Name it ('relu', 'z*tanh(z)') or give a function of expressions (tp.tanh).",
        )
    expr = expression(source, "an activation")
    return Given(expr, _called(source, expr))


def _called(source: Any, expr: Expr) -> str:
    """The name that something has, else the formula."""
    name = getattr(source, "name", None) or getattr(source, "__name__", None)
    plain = isinstance(name, str) and name not in ("<lambda>", "")
    return str(name) if plain else expr.text


def _named(text: str) -> Given:
    if _FORMULA.search(text) is None or _PARAMETERS.fullmatch(text) is not None:
        found = lookup(text)
        return Given(found.fn.expr, found.text)
    names = set(_NAME.findall(text))
    if len(names) > 1:
        raise StudyError(
            f"the formula {text!r} has the variables {', '.join(sorted(names))}.",
            hint="An activation is a function of one: z/(1 + z**2).",
        )
    with placed(f"the formula {text!r}"):
        fn: Fn = parse_fn(_NAME.sub("x0", text), 1, 0, atom)
    return Given(fn.expr, text.strip())


Act = str | Activation | Expr | Callable[[Any], Any]
"""What stands for an activation."""
