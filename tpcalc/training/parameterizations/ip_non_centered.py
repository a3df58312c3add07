"""The integrable parameterization with initial weights that are not centred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from tpcalc.errors import StudyError
from tpcalc.registry.values import exact
from tpcalc.sources import INTEGRABLE
from tpcalc.training.parameterization import Argument, Exponents, ParameterizationFamily, Rule
from tpcalc.training.parameterizations.naive_ip import exponents as naive_ip

ROW = "one mean for the layers 2..L+1, two for (hidden, last), or L"


def _means(value: object) -> tuple[Fraction, ...]:
    parts: Sequence[object] = (value,)
    if isinstance(value, str):
        parts = value.split(",")
    elif isinstance(value, Sequence):
        parts = value
    found = tuple(exact(part, what="an entry of u") for part in parts)
    if not found or 0 in found:
        raise StudyError(
            "a mean of the initial weights is 0." if found else "the table u is empty.",
            where="ip-non-centered",
            hint=f"Give {ROW}, none of them 0; with centred weights it is naive-ip.",
        )
    return found


def _row(means: tuple[Fraction, ...], depth: int) -> tuple[Fraction, ...]:
    """The means spread over the layers 1..L+1; the first layer is centred."""
    if len(means) == 1:
        means = means * depth
    elif len(means) == 2:
        means = (means[0],) * (depth - 1) + means[1:]
    if len(means) != depth:
        raise StudyError(
            f"the table u has {len(means)} means; a network of depth {depth} has {depth} layers "
            "after the first.",
            where="ip-non-centered",
            hint=f"Give {ROW}.",
        )
    return (Fraction(0), *means)


def make(u: object = 1) -> Rule:
    """The table of Naive-IP with means u_l of the initial entries of w^l, l >= 2.

    Source: Hajjar, Chizat, Giraud, section 5.1.
    """
    means = _means(u)

    def exponents(depth: int, step: int) -> Exponents:
        return replace(naive_ip(depth, step), mean=_row(means, depth))

    return exponents


ENTRY = ParameterizationFamily(
    "ip-non-centered",
    make=make,
    text="naive-ip with initial weights of mean u_l: hidden layers become constant in the limit",
    source=INTEGRABLE.at("section 5.1"),
    parameters=(Argument("u", f"means of the initial weights: {ROW}; 1 by default"),),
)
