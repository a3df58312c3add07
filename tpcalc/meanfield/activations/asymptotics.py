"""How the nonlinearity coefficient of an activation behaves for very short and very long inputs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import gamma, inf, log10, pi, sqrt
from typing import Any, Literal

import numpy as np

from tpcalc.functions import Expr, Fn, Var, const
from tpcalc.functions.fn import derivative, slope_or_none
from tpcalc.functions.form import degree, varying
from tpcalc.functions.tape import values
from tpcalc.integrals.bounded import EPS, Bounded
from tpcalc.integrals.given import of_activation
from tpcalc.integrals.quadrature.shape import shape
from tpcalc.meanfield.activations.length import LengthKernel, longest, sides, tails
from tpcalc.results import Asymptote, Estimate, Method
from tpcalc.shown import Rows

End = Literal["0", "infinity"]
Rule = tuple[float, Estimate, str]
SHORT, LONG = 1e-3, 1e3  # where a rule is held against the values, or measured
FAR = 1e14  # where an activation has become its leading power
AGREES = 0.1
OFF = 0.05
FLAT = 1e-6


@of_activation
def asymptotes(tau: Expr) -> tuple[Asymptote, ...]:
    """n(lambda^2, 0) for lambda to 0 and to infinity: factor * lambda^power.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.

    Returns:
        One for each end; none where the activation is constant as far as such inputs reach, or
        where the end is beyond them. They
        follow from the slopes at 0 and from the tails where these decide, else they are measured
        and say so.

    Raises:
        EvaluationError: There is no nonlinearity coefficient.

    Source: Schoenherr, The nonlinearity coefficient, section 5.4.4.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> short, long = asymptotes(lookup("tanh").fn.expr)
        >>> short.factor.value, long.power.value, round(long.factor.value, 6), long.reason
        (1.0, 0.5, 0.729331, 'steps from one limit to another')
    """
    kernel = LengthKernel(tau)
    known = degree(varying(tau))  # a constant changes no coefficient
    if known is not None:
        found = kernel.nlc([1.0]).at(0).estimate()
        why = f"homogeneous of degree {known}"
        zero = Bounded(0.0).estimate()
        return Rows((Asymptote("0", zero, found, why), Asymptote("infinity", zero, found, why)))
    long = min(LONG, longest(tau))
    ends = (
        _found("0", kernel, _short(tau), SHORT, 1e-3),
        _found("infinity", kernel, _long(tau), long, 1e3),
    )
    return Rows(part for part in ends if part is not None)


def _found(
    end: End, kernel: LengthKernel, rule: Rule | None, at: float, factor: float
) -> Asymptote | None:
    """A rule that the values bear out, else what they say by themselves."""
    if rule is not None:
        power, scale, why = rule
        exact = Bounded(power).estimate()
        # Where the activation varies on another scale than 1 the end is farther out.
        for length in (at, at * factor, at * factor**2):
            found = kernel.nlc([length])
            if not found.known[0]:
                break
            if abs(float(found.value[0]) / (scale.value * length**power) - 1) <= AGREES:
                return Asymptote(end, exact, scale, why)
        own = _measured(end, kernel, at)
        # Where the tails say another power the end is farther out than what is measured.
        return None if own is None or abs(own.power.value - power) > OFF else own
    return _measured(end, kernel, at)


def _measured(end: End, kernel: LengthKernel, at: float) -> Asymptote | None:
    """The power between two lengths; its change from the two before counts as its error."""
    step = 0.5 if end == "infinity" else 2.0
    lengths = at * np.array([1.0, step, step * step])
    found = kernel.nlc(lengths)
    while not found.known[0] and lengths[0] > 4.0:
        lengths = lengths / 4  # averages of what grows fast are out of range sooner
        found = kernel.nlc(lengths)
    if not found.known.all():
        return None
    first, second, third = (float(value) for value in found.value)
    size = log10(1 / step)
    slope, before = log10(first / second) / size, log10(second / third) / size
    noise = float(found.error[0] / first + found.error[1] / second) / abs(size)
    off = abs(slope - before) + noise + EPS
    scale = first * float(lengths[0]) ** -slope
    spread = scale * (off * abs(log10(float(lengths[0]))) * 2.4 + noise + EPS)
    return Asymptote(
        end,
        Estimate(slope, float(off), Method.QUADRATURE),
        Estimate(float(scale), float(spread), Method.QUADRATURE),
    )


def _short(tau: Expr) -> Rule | None:
    """By the one-sided slopes at 0, or where they are 0 the second derivatives."""
    low, high = sides(tau)
    if low != high or not np.isfinite(low):
        return None
    slope: Expr | None = tau
    for order, word in ((1, "slopes at 0"), (2, "second derivatives at 0")):
        slope = None if slope is None else slope_or_none(slope, Var(0))
        left, right = (inf, inf) if slope is None else sides(slope)
        if not (np.isfinite(left) and np.isfinite(right)):
            return None
        if left != 0 or right != 0:
            # Of s^order on the left, whose sign is that of the derivative for even orders.
            below = left if order == 2 else -left
            return 0.0, _power_nlc(float(order), below, right), word
    return None


def _long(tau: Expr) -> Rule | None:
    """By the tails: powers, or limits that are reached."""
    left, near_left, near_right, right = tails(tau, FAR, 10 * FAR)
    if not np.isfinite([left, near_left, near_right, right]).all():
        return None
    size, before = max(abs(left), abs(right)), max(abs(near_left), abs(near_right))
    power = log10(size / before) if size > 0 and before > 0 else 0.0
    if power > FLAT:
        exact = float(Fraction(power).limit_denominator(12))
        if abs(exact - power) > FLAT:
            return None
        scale = (10 * FAR) ** exact
        return 0.0, _power_nlc(exact, left / scale, right / scale), "leading powers"
    return _bounded(tau, (left, near_left), (right, near_right))


def _bounded(tau: Expr, left: tuple[float, float], right: tuple[float, float]) -> Rule | None:
    """Of a function that has limits on both sides, by integrals over the whole line."""
    size = max(*map(abs, left), *map(abs, right), 1e-300)
    if max(abs(left[0] - left[1]), abs(right[0] - right[1])) > 1e-9 * size:
        return None
    slope = derivative(tau, Var(0))
    steep = _integral(tau, slope**2)
    if steep is None or steep[0] <= 0:
        return None
    height = right[0] - left[0]
    if abs(height) > 1e-9 * size:
        value = 4 * steep[0] / (sqrt(2 * pi) * height**2)
        off = value * steep[1] / steep[0]
        return 0.5, _root(value, off), "steps from one limit to another"
    mass = _integral(tau, (tau - const(right[0])) ** 2)
    if mass is None or mass[0] <= 0:
        return None
    value = steep[0] / mass[0]
    return 1.0, _root(value, value * (steep[1] / steep[0] + mass[1] / mass[0])), "a bump"


def _power_nlc(power: float, left: float, right: float) -> Estimate:
    """The coefficient of left |s|^p for s < 0 and right s^p for s > 0."""
    if power == 1 and left == -right:
        return Bounded(1.0).estimate()
    size = max(abs(left), abs(right))
    left, right = (0.0 if abs(x) < 1e-12 * size else x / size for x in (left, right))
    squares = (left**2 + right**2) / 2
    slope = power**2 * squares * _moment(2 * power - 2)
    mean = (left + right) / 2 * _moment(power)
    spread = squares * _moment(2 * power) - mean**2
    return _root(slope / spread, 32 * EPS * slope / spread)


def _moment(power: float) -> float:
    """E |s|^p of a standard Gaussian."""
    return float(2 ** (power / 2) * gamma((power + 1) / 2) / sqrt(pi))


def _root(value: float, off: float) -> Estimate:
    return replace(Bounded(value, off).root(), method=Method.QUADRATURE).estimate()


def _integral(tau: Expr, integrand: Expr) -> tuple[float, float] | None:
    """Over the whole line, between the kinks; None where it is infinite or not found."""
    import warnings

    from scipy.integrate import quad

    fn, known = Fn(integrand, 1), shape(tau)

    def at(x: float) -> float:
        return float(values(fn, x))

    kinks = [] if known is None else [part.place for part in known.features if part.kink]
    ends: list[Any] = [-np.inf, *sorted({0.0, *kinks}), np.inf]
    total = off = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            for low, high in pairwise(ends):
                value, error = quad(at, low, high, epsabs=1e-13, epsrel=1e-11, limit=200)
                total, off = total + float(value), off + float(error)
        except Warning:
            return None
    return (total, off) if np.isfinite(total) and off <= 1e-8 * abs(total) else None
