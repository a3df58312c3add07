"""Catalogue activations as functions of the DSL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpcalc.catalog.activation import ActivationFamily
from tpcalc.dsl.elementwise import Elementwise
from tpcalc.functions import Var

__all__ = ["as_function"]


def as_function(family: ActivationFamily) -> Any:
    """A family as users call it: ``tp.relu(h)``, or ``tp.leaky_relu(0.2)(h)`` with parameters.

    Args:
        family: An entry of the catalogue.

    Returns:
        A function of vectors, scalars, expressions and numbers; for a family with parameters a
        function of the parameters that returns one.
    """
    doc = f"{family.text}\n\nSource: {family.source}"
    if not family.parameters:
        return Elementwise(family.name, family()(Var(0)), doc)

    def with_parameters(*values: object) -> Callable[[Any], Any]:
        member = family(*values)
        return Elementwise(member.text, member(Var(0)), doc)

    with_parameters.__name__ = family.name
    with_parameters.__doc__ = doc
    return with_parameters
