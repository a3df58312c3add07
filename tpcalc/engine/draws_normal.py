"""Sobol points to normal draws, in one compiled pass.

The quantile function is the rational approximation AS 241 (with the logarithm below its relative
error is 1e-15). The branch of the centre is computed for every sample, then samples in the tails
are packed and get theirs, so that loops have no jumps and the compiler can work on many samples at
once; the logarithm is a polynomial for the same reason.
The third branch of the algorithm (p below e^-25) is never reached: points are at least 2^-31.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array, Index
from tpcalc.engine.kernels_compile import bits, exact, inlined, number
from tpcalc.engine.kernels_polynomials import polynomial

STEP = 2.0**-31
LN2 = math.log(2.0)
SQRT2 = math.sqrt(2.0)
_artanh = polynomial(*(1.0 / k for k in range(19, 0, -2)))  # of s^2, at most 0.0295: artanh(s) / s
_top = polynomial(
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
    4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
    1.3314166789178437745e2, 3.3871328727963666080e0,
)  # fmt: skip
_under = polynomial(
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
    2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
    4.2313330701600911252e1, 1.0,
)  # fmt: skip
_above = polynomial(
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
    1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
    4.63033784615654529590e0, 1.42343711074968357734e0,
)  # fmt: skip
_below = polynomial(
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
    1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
    2.05319162663775882187e0, 1.0,
)  # fmt: skip


@inlined
def _log(p: float) -> Any:
    """Logarithm of a normal positive number, from the series of artanh; error about 1e-15."""
    digits = bits(p)
    power = (digits >> 52) - 1023
    mantissa = number((digits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000)
    large = mantissa > SQRT2
    mantissa = mantissa * 0.5 if large else mantissa
    exponent = np.float64(np.int32(power)) + (1.0 if large else 0.0)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    return exponent * LN2 + 2.0 * s * _artanh(s * s)


@inlined
def _smaller_tail(odd: float) -> Any:
    """The distance of the point odd * 2^-31 from the nearer end of (0, 1), exact."""
    return (odd if odd < 2.0**30 else 2.0**31 - odd) * STEP


@inlined
def _central(odd: float) -> Any:
    """The normal quantile at odd * 2^-31, odd in 1, 3, ..., 2^31 - 1, not in the tails."""
    q = 0.5 - _smaller_tail(odd)
    r = 0.180625 - q * q
    return (-1.0 if odd < 2.0**30 else 1.0) * (q * _top(r)) / _under(r)


@inlined
def _outer(odd: float) -> Any:
    """The normal quantile there, in the tails."""
    s = math.sqrt(-_log(_smaller_tail(odd))) - 1.6
    return (-1.0 if odd < 2.0**30 else 1.0) * _above(s) / _below(s)


@exact
def normal_quantiles(odds: Array, places: Index, out: Array) -> None:
    """Normal quantiles at odd * 2^-31; ``places`` is room for as many, ``odds`` is overwritten.

    Source: Wichura, Algorithm AS 241 (1988), PPND16.
    """
    for t in range(odds.size):
        out[t] = _central(odds[t])
    count = 0
    for t in range(odds.size):
        odd = odds[t]
        odds[count], places[count] = odd, t
        count += 0.5 - _smaller_tail(odd) > 0.425
    for m in range(count):
        odds[m] = _outer(odds[m])
    for m in range(count):
        out[places[m]] = odds[m]


@exact
def sobol_normals(
    directions: NDArray[np.uint32], shift: int, size: int, scale: float, row: NDArray[Any],
    first: int,
) -> None:  # fmt: skip
    """Write normals of one Sobol dimension, which has ``size``, into blocks of a row, as float32.

    The row begins with block ``first`` of the dimension.

    Point number i is the shift, xor the direction numbers of the binary digits of i: the digits
    within a block are done once, those of the block's number once for each block.
    """
    block = min(row.shape[1], size)
    inner = np.empty(block, np.int32)
    inner[0] = np.int32(shift)
    part = np.empty(block)  # a row of a store has strides that the compiler does not know
    odds, places = np.empty(block), np.empty(block, np.int64)
    digit, filled = 0, 1
    while filled < block:
        number = np.int32(directions[digit])
        for t in range(filled):
            inner[filled + t] = inner[t] ^ number
        filled *= 2
        digit += 1
    for k in range(min(row.shape[0], size // block)):
        outer = np.int32(0)
        rest, place = first + k, digit
        while rest:
            if rest & 1:
                outer ^= np.int32(directions[place])
            rest >>= 1
            place += 1
        for t in range(block):
            odds[t] = np.float64(np.int32(inner[t] ^ outer)) * 2.0 + 1.0
        normal_quantiles(odds, places, part)
        for t in range(block):
            row[k, t] = np.float32(part[t] * scale)
