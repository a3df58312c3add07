"""Other names of a parameterization: tables that are written differently and train one network.

Moving a power of n from the multiplier of a layer to the initial scale of its weights, and the
learning rate with it, changes nothing; tables are compared as multipliers alone.
"""

from __future__ import annotations

from tpcalc.exponents import Ex
from tpcalc.training.parameterizations import REGISTRY, Exponents, Parameterization

STEPS = 8  # tables of the catalogue change after step 0 only; written ones have a row for each step


def known_as(parameterization: Parameterization, depth: int, biases: bool = False) -> list[str]:
    """Other names of the catalogue under which a network of this depth is the same.

    Example:
        >>> from tpcalc.training.parameterizations import lookup
        >>> known_as(lookup("abc:-1/2,0,1/2;1/2,1/2,1/2;0,0,0"), 3)
        ['mup']
    """

    def tables(found: Parameterization) -> list[tuple[object, ...]]:
        rows = [found.exponents(depth, step) for step in range(STEPS)]
        return [
            (row.a, row.c, _mean(row), _kept(row), (row.bias_a, row.bias_c) if biases else None)
            for row in rows
        ]

    if parameterization.own is not None or parameterization.deep is not None:
        return []
    own = tables(parameterization)
    names = []
    for name, family in REGISTRY.items():
        # In the width those of the depth are muP; their powers of L are no rescaling of it.
        if (
            family.own is not None
            or family.deep is not None
            or any(argument.required for argument in family.parameters)
        ):
            continue
        other, degree = family(), parameterization.degree
        if degree == 0 and other.entrywise is None:
            continue
        if name != parameterization.name and tables(other.under(degree)) == own:
            names.append(name)
    return names


def _mean(row: Exponents) -> tuple[object, ...]:
    return tuple(row.mean) if any(mean != 0 for mean in row.mean) else ()


def _kept(row: Exponents) -> tuple[Ex | None, ...]:
    return row.kept or (Ex(),) * len(row.a)
