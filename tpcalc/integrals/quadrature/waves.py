"""Averages of periodic broken lines under Gaussians so wide that every phase is as likely.

For u and v of variance q, omega = 2 pi / P and the Fourier coefficients c_k of f,

    E f(u) f(v) = sum_kl c_k c_l^* exp(-omega^2 (k^2 q + l^2 q - 2 k l Cov(u, v)) / 2),

where for large q only |k| = |l| is left; what is left out is exp(-omega^2 q / 4) of the rest.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals.quadrature.adaptive import EPS
from tpcalc.integrals.quadrature.broken import FLAT, BrokenLine
from tpcalc.integrals.quadrature.carried import Carried, Moments

SHARE = 1e-9  # of a period: kinks nearer than that are one
MANY = 4096  # harmonics
ROUNDING = 32 * EPS


class Wave(NamedTuple):
    """One period of a broken line."""

    frequency: float  # omega
    kinks: Array  # the kinks of one period
    jumps: Array  # by how much the slope changes there
    values: Array  # the function there
    slopes: Array  # the slope after each

    @property
    def lengths(self) -> Array:
        """From each kink to the next."""
        return np.diff(self.kinks, append=self.kinks[0] + 2.0 * pi / self.frequency)

    @property
    def shares(self) -> Array:
        """The same as shares of the period."""
        return self.lengths * self.frequency / (2.0 * pi)

    @property
    def mean(self) -> float:
        """The average over the period."""
        return float(self.shares @ (self.values + np.roll(self.values, -1))) / 2.0

    @property
    def variance(self) -> float:
        """That of the square of the distance from the mean."""
        low, high = self.values - self.mean, np.roll(self.values, -1) - self.mean
        return float(self.shares @ (low * low + low * high + high * high)) / 3.0

    @property
    def energy(self) -> float:
        """That of the square of the slope."""
        return float(self.shares @ self.slopes**2)

    def coefficients(self, count: int) -> Array:
        """c_1, c_2, ..."""
        k = np.arange(1, count + 1)
        turned = np.exp(-1j * self.frequency * np.outer(k, self.kinks)) @ self.jumps
        return np.asarray(-turned / (2.0 * pi * self.frequency * k * k))


def wave(line: BrokenLine, period: float | None) -> Wave | None:
    """One period of a broken line; None where it has none, or is not known over one."""
    if not period or line.reach < period:
        return None
    first = int(np.searchsorted(line.kinks, -0.5 * period))
    end = line.kinks[first] + period * (1.0 - SHARE)
    some = slice(first, int(np.searchsorted(line.kinks, end)))
    slopes = line.slopes[1:][some]
    jumps = np.diff(line.slopes)[some]
    return Wave(2.0 * pi / period, line.kinks[some], jumps, line.values[some], slopes)


def wave_moments(wave: Wave, q: float) -> Moments | None:
    """The moments of one layer."""
    if wave.frequency**2 * q < 2.0 * FLAT:
        return None
    mean, variance, energy = wave.mean, wave.variance, wave.energy
    size = float(np.abs(wave.values).max())
    square = variance + mean * mean
    return Moments(
        Carried(mean, ROUNDING * size, 0.0),
        Carried(square, ROUNDING * size * size, 0.0),
        Carried(energy, ROUNDING * energy, 0.0),
    )


def wave_gap(wave: Wave, q: float, delta: float) -> Carried | None:
    """E f(u)^2 - E f(u) f(v) for variances q and the covariance q - delta."""
    if wave.frequency**2 * q < 4.0 * FLAT:
        return None
    if delta > q:
        return _opposite(wave, 2.0 * q - delta)
    if delta <= float(wave.lengths.min()) ** 2 / (4.0 * FLAT):
        return _near(wave, delta)
    k, c = _harmonics(wave, delta)
    power = 2.0 * np.abs(c) ** 2
    left = power * np.exp(-(k * k) * delta)
    value = wave.variance - float(left.sum())
    return Carried(value, ROUNDING * wave.variance, 0.0, float((k * k) @ left))


def _near(wave: Wave, delta: float) -> Carried:
    """Where u - v meets one kink at most: E d^2 (f'^2 - J^2 |d| / 6 P) / 2."""
    corners = float((wave.jumps**2).sum()) * wave.frequency / (12.0 * pi)
    lost = corners * sqrt(2.0 / pi) * sqrt(2.0 * delta)
    value = delta * (wave.energy - 2.0 * lost)
    error = ROUNDING * delta * (wave.energy + 2.0 * lost)
    return Carried(value, error, 0.0, wave.energy - 3.0 * lost)


def _opposite(wave: Wave, rest: float) -> Carried:
    """Where u and v are more opposite than alike: by the variance of u + v, 2 ``rest``."""
    k, c = _harmonics(wave, rest)
    left = 2.0 * (c * c).real * np.exp(-(k * k) * rest)
    unseen = max(wave.variance - 2.0 * float((np.abs(c) ** 2).sum()), 0.0)
    error = ROUNDING * wave.variance + unseen * float(np.exp(-(k[-1] ** 2) * rest))
    turn = float((k * k) @ left)
    return Carried(wave.variance - float(left.sum()), error, 2.0 * turn, -turn)


def _harmonics(wave: Wave, damping: float) -> tuple[Array, Array]:
    """Frequencies and coefficients up to where they are damped away."""
    wanted = sqrt(FLAT / damping) / wave.frequency
    count = int(min(wanted, MANY)) + 1
    return np.arange(1, count + 1) * np.float64(wave.frequency), wave.coefficients(count)
