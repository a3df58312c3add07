"""What a parameterization is at one width: the powers of n as numbers, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.catalog.parameterization import Exponents, Parameterization
from tpcalc.errors import ScaleError, StudyError
from tpcalc.orders import Ex

__all__ = ["Start", "Step", "start_scales", "step_scales"]


@dataclass(frozen=True, slots=True)
class Start:
    """The initial weights, W^l = scale * w^l; each a tuple over the layers 1..L+1.

    Args:
        weights: Scales n^(-a_l) of weights.
        biases: Those of biases.
        means: Means of the entries of w^l.
    """

    weights: tuple[float, ...]
    biases: tuple[float, ...]
    means: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step in terms of effective weights; each a tuple over the layers 1..L+1.

    With W = n^(-a) w, the step w <- w - eta n^(-c) grad_w changes W by
    -eta n^(-(2a + c)) grad_W.

    Args:
        weights: n^(-(2 a_l + c_l)).
        biases: The same of biases.
        kept: What the initial weights are multiplied by just before the step's update is added:
            1, but where a parameterization replaces them.
    """

    weights: tuple[float, ...]
    biases: tuple[float, ...]
    kept: tuple[float, ...]


def start_scales(parameterization: Parameterization, depth: int, width: int) -> Start:
    """The scales of the initial weights.

    Args:
        parameterization: The parameterization.
        depth: Number of hidden layers L.
        width: The width n.

    Raises:
        ScaleError: An exponent that holds a symbol, or a power beyond the range of a float.

    Source: Hajjar, Chizat, Giraud, Definition 2.1.

    Example:
        >>> from tpcalc.catalog.parameterizations import lookup
        >>> start_scales(lookup("mup"), 2, 16).weights
        (1.0, 0.25, 0.0625)
    """
    where = parameterization.text
    found = parameterization.layered().exponents(depth, 0)
    means = tuple(map(float, found.mean)) or (0.0,) * (depth + 1)
    kept = _kept(found, depth, width, where)
    weights = _powers(found.a, width, where)
    return Start(
        tuple(scale * factor for scale, factor in zip(weights, kept, strict=True)),
        _powers(found.bias_a, width, where),
        means,
    )


def step_scales(parameterization: Parameterization, depth: int, width: int, step: int) -> Step:
    """The scales of the update from step t to t + 1.

    Args:
        parameterization: The parameterization.
        depth: Number of hidden layers L.
        width: The width n.
        step: The step t.

    Raises:
        ScaleError: An exponent that holds a symbol, or a power beyond the range of a float.
        StudyError: Scales of weights that change from step to step, or initial weights that are
            replaced later than after step 0.

    Source: Hajjar, Chizat, Giraud, equation (2.2) with Remark 2.1.

    Example:
        >>> from tpcalc.catalog.parameterizations import lookup
        >>> step_scales(lookup("ip-llr"), 2, 16, 0).weights
        (64.0, 1.0, 0.25)
    """
    where = parameterization.text
    now, then = (parameterization.exponents(depth, t) for t in (step, step + 1))
    if (now.a, now.bias_a) != (then.a, then.bias_a):
        raise StudyError(
            f"the scales of its weights change after step {step}.",
            where=where,
            hint="Trained networks need the same a_l at every step; rates c_l may change.",
        )
    before, after = (_kept(found, depth, width, where) for found in (now, then))
    revived = any(new and not old for old, new in zip(before, after, strict=True))
    if revived or (step and before != after):
        raise StudyError(
            f"its initial weights are replaced after step {step}.",
            where=where,
            hint="Trained networks can replace them after step 0 alone.",
        )
    return Step(
        _powers(_rates(now.a, now.c), width, where),
        _powers(_rates(now.bias_a, now.bias_c), width, where),
        tuple(new / old if old else 1.0 for old, new in zip(before, after, strict=True)),
    )


def _rates(a: Sequence[Ex], c: Sequence[Ex]) -> list[Ex]:
    return [2 * power + rate for power, rate in zip(a, c, strict=True)]


def _kept(found: Exponents, depth: int, width: int, where: str) -> tuple[float, ...]:
    """What is left of the initial weights: n^(-power), or nothing."""
    if not found.kept:
        return (1.0,) * (depth + 1)
    return tuple(0.0 if power is None else _power(power, width, where) for power in found.kept)


def _powers(exponents: Sequence[Ex], width: int, where: str) -> tuple[float, ...]:
    return tuple(_power(exponent, width, where) for exponent in exponents)


def _power(exponent: Ex, width: int, where: str) -> float:
    """The number n^(-exponent)."""
    value = exponent.constant
    if value is None:
        raise ScaleError(
            f"the exponent {exponent} holds symbols; a trained network needs numbers.",
            where=where,
            hint="Give its parameters as numbers.",
        )
    # The whole part is exact where n is a power of 2, and the rest is at most one rounding more.
    whole = math.floor(value)
    try:
        found = float(float(width) ** -whole / float(width) ** float(value - Fraction(whole)))
    except OverflowError:
        found = math.inf
    if not 0 < found < math.inf:
        raise ScaleError(
            f"n^({-exponent}) at n = {width} is outside the range of floating point.",
            where=where,
            hint="Take a smaller width or depth.",
        )
    return found
