"""The integrable parameterizations of Hajjar, Chizat and Giraud: mean-field scales, and hybrids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from tpcalc import checks
from tpcalc.doors.numbers import exact
from tpcalc.errors import StudyError
from tpcalc.exponents import Ex, as_ex
from tpcalc.sources import INTEGRABLE
from tpcalc.training.parameterization import (
    Argument,
    Exponents,
    ParameterizationFamily,
    Rule,
    exponent,
    layers,
    reinitialised,
    shared,
)
from tpcalc.training.parameterizations.custom import ROW, table
from tpcalc.training.parameterizations.widths import mup


def naive_ip(depth: int, step: int) -> Exponents:
    """The table of Naive-IP: a = (0, 1, ..., 1), c = (-1, -2, ..., -2, -1).

    Source: Hajjar, Chizat, Giraud, section 2.2.
    """
    return shared(layers(depth, 0, 1, 1), layers(depth, -1, -2, -1))


NAIVE_IP = ParameterizationFamily(
    "naive-ip",
    make=lambda: naive_ip,
    text="a = (0, 1, ..., 1), c = (-1, -2, ..., -2, -1): from 3 hidden layers on it learns nothing",
    source=INTEGRABLE.at("section 2.2"),
)


def make_ip(c: object) -> Rule:
    """The table a = (0, 1, ..., 1) of integrable parameterizations with the rates c.

    Source: Hajjar, Chizat, Giraud, section 2.2.
    """
    rates = table(c, "c")

    def exponents(depth: int, step: int) -> Exponents:
        return shared(layers(depth, 0, 1, 1), rates(depth, step))

    return exponents


IP = ParameterizationFamily(
    "ip",
    make=make_ip,
    text="a = (0, 1, ..., 1), the mean-field scales, with learning rates n^(-c_l) of one's own",
    source=INTEGRABLE.at("section 2.2"),
    parameters=(
        Argument("c", f"powers of the learning rates: {ROW}; rows by step", required=True),
    ),
)


def gamma(depth: int, p: Ex) -> tuple[Ex, ...]:
    """The exponents gamma_1(p), ..., gamma_{L+1}(p) of the first step.

    Source: Hajjar, Chizat, Giraud, Definition 3.2.

    Example:
        >>> [str(c) for c in gamma(3, as_ex(1))]
        ['-2', '-5/2', '-5/2', '-2']
    """
    total, term = as_ex(0), as_ex(1)
    for _ in range(depth):
        total, term = total + term, term * p
    half = Fraction(1, 2)
    outer = -half * (total + 1)
    return layers(depth, outer, outer - half, outer)


def homogeneity(p: object, what: str = "p") -> Ex:
    """The degree of homogeneity of an activation."""
    found = exponent(p, what=what)
    if found.constant is not None:
        checks.real(found.constant, what, above=0, hint="Take p = 1 for relu and p = 2 for relu^2.")
    return found


def make_llr(p: object = 1) -> Rule:
    """The table of IP-LLR: gamma_l(p) at step 0, the rates of Naive-IP afterwards.

    Source: Hajjar, Chizat, Giraud, section 4.
    """
    degree = homogeneity(p, "p of ip-llr")

    def exponents(depth: int, step: int) -> Exponents:
        later = naive_ip(depth, step)
        return later if step else shared(later.a, gamma(depth, degree))

    return exponents


IP_LLR = ParameterizationFamily(
    "ip-llr",
    make=make_llr,
    text="naive-ip with the first learning rates large enough, gamma_l(p), to leave its start",
    source=INTEGRABLE.at("Definition 3.2, section 4"),
    biases="first",
    parameters=(Argument("p", "degree of homogeneity of the activation; 1 by default"),),
)


MEANS = "one mean for the layers 2..L+1, two for (hidden, last), or L"


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
            hint=f"Give {MEANS}, none of them 0; with centred weights it is naive-ip.",
        )
    return found


def _means_of_layers(means: tuple[Fraction, ...], depth: int) -> tuple[Fraction, ...]:
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
            hint=f"Give {MEANS}.",
        )
    return (Fraction(0), *means)


def make_non_centered(u: object = 1) -> Rule:
    """The table of Naive-IP with means u_l of the initial entries of w^l, l >= 2.

    Source: Hajjar, Chizat, Giraud, section 5.1.
    """
    means = _means(u)

    def exponents(depth: int, step: int) -> Exponents:
        return replace(naive_ip(depth, step), mean=_means_of_layers(means, depth))

    return exponents


IP_NON_CENTERED = ParameterizationFamily(
    "ip-non-centered",
    make=make_non_centered,
    text="naive-ip with initial weights of mean u_l: hidden layers become constant in the limit",
    source=INTEGRABLE.at("section 5.1"),
    parameters=(Argument("u", f"means of the initial weights: {MEANS}; 1 by default"),),
)


def _first_rates(depth: int) -> tuple[tuple[Ex, ...], tuple[Ex, ...]]:
    """Learning rates of weights and biases at step 0.

    Weights: c_1 = -(L+1)/2, c_l = -(L-l+4)/2 between, c_{L+1} = -1. Biases: -(L-l+2)/2, and 0 for
    the output's, which is a number.

    Source: Hajjar, Chizat, Giraud, equations (5.4) and (5.5).
    """
    half = Fraction(1, 2)
    between = [as_ex(-half * (depth - layer + 4)) for layer in range(2, depth + 1)]
    weights = (as_ex(-half * (depth + 1)), *between, as_ex(-1))
    biases = [as_ex(-half * (depth - layer + 2)) for layer in range(1, depth + 1)]
    return weights, (*biases, as_ex(0))


def ip_bias(depth: int, step: int) -> Exponents:
    """The table of IP-bias: the weights of IP, biases B = b with rates n^(-bias_c) of their own.

    Source: Hajjar, Chizat, Giraud, section 5.2, equations (5.4) and (5.5).
    """
    later = naive_ip(depth, step)
    rates, bias_rates = later.c, layers(depth, -1, -1, 0)
    if step == 0:
        rates, bias_rates = _first_rates(depth)
    return Exponents(later.a, rates, layers(depth, 0, 0, 0), bias_rates)


IP_BIAS = ParameterizationFamily(
    "ip-bias",
    make=lambda: ip_bias,
    text="the weights of ip with biases of order one: what it learns hardly depends on the data",
    source=INTEGRABLE.at("section 5.2"),
)


def hp(depth: int, step: int) -> Exponents:
    """muP, where W^l(0) is divided by n^(1/2) after step 0: W^l(1) = w^l(0) / n + its update.

    Source: Hajjar, Chizat, Giraud, section 4.1.
    """
    found = mup(depth, step)
    return reinitialised(found, as_ex(Fraction(1, 2))) if step else found


HP = ParameterizationFamily(
    "hp",
    make=lambda: hp,
    text="mup with the hidden initial weights of ip after one step: the networks of ip-llr",
    source=INTEGRABLE.at("section 4.1, Proposition 4.1"),
    biases="first",
)


def hpz(depth: int, step: int) -> Exponents:
    """muP, where W^l(0) is dropped after step 0: W^l(1) is the first update alone.

    Source: Hajjar, Chizat, Giraud, section 4.2.
    """
    found = mup(depth, step)
    return reinitialised(found, None) if step else found


HPZ = ParameterizationFamily(
    "hpz",
    make=lambda: hpz,
    text="mup without its hidden initial weights after one step: the limit of ip-llr",
    source=INTEGRABLE.at("section 4.2, Theorem 4.2"),
    biases="first",
)

ENTRIES = (NAIVE_IP, IP, IP_LLR, IP_NON_CENTERED, IP_BIAS, HP, HPZ)
