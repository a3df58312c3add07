"""Closed duals: E phi(h) phi(h') and E phi'(h) phi'(h') of a strip of pairs, a row for each phi.

``own`` gives of one input, from its variance q, up to three numbers that its pairs read, and
E phi^2, E phi'^2, E phi''^2. With c = 2 for erf, u = c K / sqrt P, P = (1 + c q) (1 + c q') and
D^2 = P - c^2 K^2::

    erf              (2 / pi) asin u                 (4 / pi) / D
    GELU             K A + (K^2 + q q' D^2) / (2 pi P D), A = 1/4 + asin(u) / (2 pi), c = 1
    sin(z + b)       ((1 - cos 2b) C + (1 + cos 2b) S) / 2, and with the two signs changed
    exp              exp(K + (q + q') / 2), twice
    exp(-z^2)        1 / D                           4 K / D^3
    a cubic          c0 c0' + c1 c1' K + 2 p2^2 K^2 + 6 p3^2 K^3, and its derivative by K

where C, S are cosh K, sinh K times exp(-(q + q') / 2), and c0 = p0 + p2 q, c1 = p1 + 3 p3 q for a
cubic of coefficients p. The functions are compiled into the loops of ``chains_layers`` and
``planes_bends``, which have to be compiled anew after a change here.

Source: Williams, Computing with infinite networks (1997), section 3.1, for erf.
"""

from __future__ import annotations

import math
from typing import Any

from tpcalc.arrays import Array
from tpcalc.engine.chains_tiles import angle
from tpcalc.engine.kernels_compile import bits, inlined, inner, number, polynomial
from tpcalc.engine.kernels_functions import LOG2_HIGH, LOG2_LOW, ROUND

PI = math.pi
CLOSED = ("erf", "gelu", "sin", "exp", "gaussian", "cubic")
ERF, GELU, SIN, EXP, GAUSSIAN, CUBIC = range(len(CLOSED))
SERIES = 0.3  # covariances below which sinh is its series
LEAST = -708.0  # of logarithms of floats
ALIKE = 1e-16  # of cos 2b

_exponential = polynomial(*(1.0 / math.factorial(k) for k in range(12, 1, -1)))
_sinh = polynomial(*(1.0 / math.factorial(2 * k + 1) for k in range(5, -1, -1)))  # over x, of x^2


@inlined
def _exp(x: float) -> Any:
    """The exponential, relative error 3e-16."""
    size = max(x, LEAST)
    near = size / math.log(2.0) + ROUND
    whole = near - ROUND
    power = number((bits(near) + 1023) << 52)
    r = (size - whole * LOG2_HIGH) - whole * LOG2_LOW
    return power * (_exponential(r) * r * r + r + 1.0)


@inlined
def _asin(u: float, root: float) -> Any:
    """Asin u, where root = sqrt(1 - u^2) is known."""
    far = u * u > 0.5
    size = root if far else abs(u)
    part = 0.5 * size * angle(size * size)
    found = 0.5 * PI - part if far else part
    return found if u >= 0.0 else -found


@inlined
def _root(u: float) -> Any:
    return math.sqrt(max((1.0 - u) * (1.0 + u), 0.0))


@inlined
def _erf(k: float, a0: float, b0: float) -> Any:
    both = a0 * b0
    u = 2.0 * k * both
    root = _root(u)
    return 2.0 / PI * _asin(u, root), 4.0 / PI * both / root


@inlined
def _gelu(k: float, a0: float, a1: float, a2: float, b0: float, b1: float, b2: float) -> Any:
    both = a2 * b2  # 1 / sqrt P
    u, product = k * both, a0 * b0
    root = _root(u)
    over = both / root  # 1 / D
    part = 0.25 + 0.5 / PI * _asin(u, root)
    value = k * part + 0.5 / PI * (u * u * over + product * root * both)
    slope = part + 0.5 / PI * k * over * (over * over + (1.0 - product) * a1 * b1 + 1.0)
    return value, slope


@inlined
def _sin(k: float, a0: float, a1: float, b0: float, b1: float, turn: float) -> Any:
    up, down = _exp(k - a0 - b0), _exp(-k - a0 - b0)
    even = 0.5 * (up + down)
    odd = a1 * b1 * k * _sinh(k * k) if abs(k) < SERIES else 0.5 * (up - down)
    less, more = 0.5 * (1.0 - turn), 0.5 * (1.0 + turn)
    return less * even + more * odd, more * even + less * odd


@inlined
def _gaussian(k: float, a0: float, b0: float) -> Any:
    both = a0 * b0
    value = both / _root(2.0 * k * both)
    return value, 4.0 * k * value * value * value


@inlined
def _cubic(k: float, a0: float, a1: float, b0: float, b1: float, two: float, three: float) -> Any:
    first = a1 * b1
    return a0 * b0 + k * (first + k * (two + k * three)), first + k * (2.0 * two + 3.0 * k * three)


@inner
def _waves(
    turn: float, k: Array, v: Array, g: Array, a0: float, a1: float, b0: Array, b1: Array
) -> None:
    """Of sines; of sin z + cos z both parts are there alike, and one exponential is all."""
    if abs(turn) < ALIKE:
        for t in range(k.size):
            v[t] = 0.5 * _exp(k[t] - a0 - b0[t])
            g[t] = v[t]
    else:
        for t in range(k.size):
            v[t], g[t] = _sin(k[t], a0, a1, b0[t], b1[t], turn)


@inner
def _algebraic(
    row: int, shape: Array, k: Array, v: Array, g: Array, a0: float, a1: float, b0: Array, b1: Array
) -> None:
    """Of a Gaussian, or a cubic."""
    if row == GAUSSIAN:
        for t in range(k.size):
            v[t], g[t] = _gaussian(k[t], a0, b0[t])
    else:
        two, three = 2.0 * shape[2] * shape[2], 6.0 * shape[3] * shape[3]
        for t in range(k.size):
            v[t], g[t] = _cubic(k[t], a0, a1, b0[t], b1[t], two, three)


@inner
def closed(
    row: int,
    shape: Array,
    k: Array,
    v: Array,
    g: Array,
    own: tuple[float, float, float],
    b0: Array,
    b1: Array,
    b2: Array,
) -> None:
    """Values and slopes of a strip; ``shape``: cos 2b of the sine, coefficients of a cubic."""
    a0, a1, a2 = own
    if row == ERF:
        for t in range(k.size):
            v[t], g[t] = _erf(k[t], a0, b0[t])
    elif row == GELU:
        for t in range(k.size):
            v[t], g[t] = _gelu(k[t], a0, a1, a2, b0[t], b1[t], b2[t])
    elif row == SIN:
        _waves(shape[0], k, v, g, a0, a1, b0, b1)
    elif row == EXP:
        for t in range(k.size):
            v[t] = _exp(k[t] + a0 + b0[t])
            g[t] = v[t]
    else:
        _algebraic(row, shape, k, v, g, a0, a1, b0, b1)


@inner
def moments(row: int, shape: Array, q: float) -> tuple[float, float, float, float, float, float]:
    """Of one input: the numbers that its pairs read, and the second moments of phi, phi', phi''."""
    if row == ERF:
        d, f = 1.0 + 2.0 * q, math.sqrt(1.0 + 4.0 * q)
        value = 2.0 / PI * _asin(2.0 * q / d, f / d)
        return 1.0 / math.sqrt(d), 0.0, 0.0, value, 4.0 / PI / f, 32.0 / PI * q / (f * f * f)
    if row == GELU:
        d, p = math.sqrt(1.0 + 2.0 * q), 1.0 / (1.0 + q)
        part = 0.25 + 0.5 / PI * _asin(q * p, d * p)
        value = q * part + 0.5 / PI * (q * p) * (q * p) * (1.0 / d + d)
        slope = part + 0.5 / PI * q / d * (1.0 / (d * d) + (1.0 - q) * p + 1.0)
        t = q / (d * d)
        return q, p, math.sqrt(p), value, slope, 0.5 / PI * (4.0 - 4.0 * t + 3.0 * t * t) / d
    if row == SIN:
        odd, even = -0.5 * math.expm1(-2.0 * q), 0.5 + 0.5 * math.exp(-2.0 * q)
        less, more = 0.5 * (1.0 - shape[0]), 0.5 * (1.0 + shape[0])
        value, slope = less * even + more * odd, more * even + less * odd
        return 0.5 * q, math.exp(-0.5 * q), 0.0, value, slope, value
    if row == EXP:
        value = math.exp(2.0 * q)
        return 0.5 * q, 0.0, 0.0, value, value, value
    if row == CUBIC:
        c0, c1 = shape[0] + shape[2] * q, shape[1] + 3.0 * shape[3] * q
        two, three = 2.0 * shape[2] * shape[2], 6.0 * shape[3] * shape[3]
        value, slope = _cubic(q, c0, c1, c0, c1, two, three)
        return c0, c1, 0.0, value, slope, 2.0 * two + 6.0 * three * q
    d = 1.0 + 4.0 * q
    value = 1.0 / math.sqrt(d)
    bend = (4.0 * d * d - 16.0 * q * d + 48.0 * q * q) * value / (d * d)
    return 1.0 / math.sqrt(1.0 + 2.0 * q), 0.0, 0.0, value, 4.0 * q * value / d, bend
