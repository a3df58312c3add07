"""Activations by name: one complete file for each, found by its presence in this folder.

At 0 a function that jumps takes the value from the left: ``step(0) = 0``, so the derivative of ReLU
at 0 is 0, as torch has it; ``sign(0) = 0``.
"""

from __future__ import annotations

import re
from fractions import Fraction

from tpcalc.activations.activation import Activation, ActivationFamily
from tpcalc.errors import StudyError, TraceError, UnknownName
from tpcalc.functions import Atom
from tpcalc.functions.form import RECIPROCAL, reciprocal
from tpcalc.functions.numbers import Number
from tpcalc.registry.registry import Registry, discover

REGISTRY: Registry[ActivationFamily] = discover(
    __name__, "activation", ActivationFamily, folder="activations"
)

_BRACKETS = re.compile(r"([^\[\]]+)\[([^\[\]]*)\]")


def lookup(text: str | Activation) -> Activation:
    """The activation that a text names.

    Example:
        >>> lookup("leaky_relu:0.2").text, lookup("relu^1").text
        ('leaky_relu[1/5]', 'relu')
    """
    if isinstance(text, Activation):
        return text
    if not isinstance(text, str):
        raise StudyError(
            f"an activation is named by a text, not by {text!r}.", hint="Write 'relu' or 'tanh'."
        )
    brackets = _BRACKETS.fullmatch(text.strip())
    if brackets is not None:
        name, given = brackets[1], brackets[2]
    elif "^" in text:
        name, _, given = text.partition("^")
        if name not in REGISTRY:
            raise UnknownName("activation", name.strip(), REGISTRY.names)
        if f"{name.strip()}_pow" not in REGISTRY:
            raise StudyError(
                f"{text.strip()!r}: the catalogue has no powers of {name.strip()}.",
                hint="It has relu^p, and polynomials as in poly:0,0,1.",
            )
        name = f"{name.strip()}_pow"
    else:
        name, _, given = text.partition(":")
    values = given.split(",") if given.strip() else []
    if not given.strip() and text.strip().endswith((":", "^")):
        raise StudyError(f"{text.strip()!r} ends before its parameter.")
    return REGISTRY[name](*values)


def atom(name: str, params: tuple[Number, ...] = ()) -> Atom:
    """The named function of one variable, as the text of a program spells it.

    Example:
        >>> atom("relu_pow", (2,)).text
        'relu_pow[2]'
    """
    if name == RECIPROCAL:  # what optimizers divide by, and no activation
        return reciprocal(*(Fraction(value) for value in params))
    found = REGISTRY[name](*params).function
    if not isinstance(found, Atom):
        raise TraceError(
            f"{found.text} is written out in a program, with + * and **.",
            hint="Write x0**2 for the square of x0.",
        )
    return found
