"""The activations of study B of the thesis: each linearization method at twelve amounts."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, expm1, log1p

from tpcalc import checks
from tpcalc.integrals.bounded import Bounded
from tpcalc.practice.methods import STUDIED, family
from tpcalc.practice.nlnorm import ONE, made
from tpcalc.results.normed import StudyRow
from tpcalc.shown import Rows


def study_b(depth: int = 19, methods: Sequence[str] = tuple(STUDIED)) -> tuple[StudyRow, ...]:
    """The triplets (l, c, b) of study B: of each method the base, and eleven of mean 0.

    Args:
        depth: The number of activations of the networks whose coefficient is estimated.
        methods: The linearization methods; by default all twelve.

    Returns:
        A row for each activation, 144 in all, with n(1, 0) and its power, which estimates the
        coefficient of networks with them, convolutional ones too.

    Raises:
        UsageError: A depth below 1.
        UnknownName: No such method.

    Source: Schoenherr, The nonlinearity coefficient, tables 3.1 and A.2, section 5.7.

    Example:
        >>> [(row.fit, round(row.product.value, 3)) for row in study_b(methods=["SELU"])[:3]]
        [('scale', 1.928), ('both', 1.928), ('both', 1.71)]
    """
    depth = checks.whole(depth, "depth", least=1)
    for name in methods:
        checks.one_of("linearization method", name, STUDIED)
    return Rows(
        _row(name, *STUDIED[name][:2], amount, fit, depth)
        for name in methods
        for fit, amount in (("scale", None), *(("both", amount) for amount in STUDIED[name][2]))
    )


def _row(
    name: str, activation: str, way: str, amount: float | None, fit: str, depth: int
) -> StudyRow:
    own = family(activation, way)
    at = own.way.start if amount is None else amount
    found = made(own, at, ONE, fit).row(Bounded(at), ())
    whole = exp(depth * log1p(found.excess.value))
    off = whole * expm1(depth * found.excess.stderr / found.nlc.value)
    return StudyRow(
        name,
        at,
        fit,
        found.scale,
        found.shift,
        found.nlc,
        found.excess,
        Bounded(whole, off, found.excess.method).estimate(),
        found.stability,
    )
