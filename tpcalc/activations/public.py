"""Catalogue activations as functions of the DSL."""

from __future__ import annotations

from typing import Any

from tpcalc.activations.activation import ActivationFamily
from tpcalc.activations.entries import atom
from tpcalc.dsl.elementwise import Elementwise
from tpcalc.dsl.function import function as own_function
from tpcalc.dsl.operands import Operand, misuse
from tpcalc.functions import Expr, Var


def function(
    name: str, evaluate: Any = None, derivative: Any = None, **declared: Any
) -> Elementwise:
    """An activation of your own; sympy expressions may use the functions of the catalogue.

    Args:
        name: Its name in the program, a Python identifier.
        evaluate: The function: of one argument, written with operators and tpcalc functions (then
            its derivative is found) or with numpy's; or ``evaluate(xp, z)`` with an array
            namespace; or a sympy expression of one symbol.
        derivative: Its derivative, in any of these ways; without one a function that is not a
            formula runs forward only.
        declared: ``parity``, ``homogeneity``, ``kinks``, ``growth``, ``check`` as in
            ``tpcalc.dsl.function``.

    Returns:
        Something to call on vectors, scalars, numbers and arrays.

    Raises:
        TraceError: The name is not usable, the function does not act coordinate by coordinate, or
            its derivative does not fit.

    Example:
        >>> import sympy
        >>> z = sympy.Symbol("z", real=True)
        >>> wave = function("wave", z * sympy.tanh(z))
        >>> round(wave(1.0), 6)
        0.761594
    """
    if evaluate is None:
        raise misuse("an activation is a name and a function.", "Write tp.function('f', f).")
    declared.setdefault("atom_of", lambda word, *params: atom(word, params))
    return own_function(name, evaluate, derivative, **declared)


def as_function(family: ActivationFamily) -> Any:
    """A family as users call it: ``tp.relu(h)``, or ``tp.leaky_relu(0.2)(h)`` with parameters."""
    doc = f"{family.text}\n\nSource: {family.source}"
    if not family.parameters:
        return Elementwise(family.name, family()(Var(0)), doc)

    optional = all(parameter.default is not None for parameter in family.parameters)

    def with_parameters(*values: Any) -> Any:
        operands = [value for value in values if isinstance(value, Expr | Operand)]
        if optional and len(operands) == len(values) == 1:  # tp.elu(h): all defaults
            return Elementwise(family.name, family()(Var(0)), doc)(values[0])
        if operands:
            raise misuse(
                f"{family.name} is called with its parameters first, then with its argument.",
                f"Write tp.{family.name}(2)(h).",
            )
        member = family(*values)
        return Elementwise(member.text, member(Var(0)), doc)

    with_parameters.__name__ = family.name
    with_parameters.__doc__ = doc
    return with_parameters
