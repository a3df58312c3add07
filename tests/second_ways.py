"""Nonlinearity coefficients of activations, in other ways than the package takes."""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy.integrate import quad

from tpcalc.functions import Expr
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.integrals.quadrature.hermite import expand
from tpcalc.integrals.quadrature.shape import shape
from tpcalc.meanfield.activations.covariance import CovarianceKernel
from tpcalc.meanfield.activations.split import ratio
from tpcalc.meanfield.plain import PlainRow
from tpcalc.meanfield.spectra.laws import WeightLaw
from tpcalc.meanfield.state import logarithm
from tpcalc.results import Method

__all__ = ["density_moments", "hermite_nlc", "stable_plain"]


def density_moments(law: WeightLaw, order: int) -> list[float]:
    """m_1, m_2, ... of a law from its density and its points of mass."""
    found, support = [], law.support
    for k in range(1, order + 1):
        total = sum(mass * place**k for place, mass in law.atoms)
        if support is not None:
            middle, half = (support[0] + support[1]) / 2, (support[1] - support[0]) / 2

            def weighted(
                angle: float, k: int = k, middle: float = middle, half: float = half
            ) -> float:
                place = middle + half * np.cos(angle)  # by it the roots at the edges are smooth
                return float(law.density(place) * place**k * half * np.sin(angle))

            total += quad(weighted, 0.0, np.pi, epsabs=1e-12, epsrel=1e-11, limit=200)[0]
        found.append(float(total))
    return found


def stable_plain(tau: Expr, depth: int, correlation: float = 0.0) -> tuple[PlainRow, ...]:
    """Depths 1 to M where every layer of preactivations has second moment 1, by the kernel.

    The nonlinearity coefficient is then a product of those of the activation, at the correlations
    that the kernel leads to. q is that of the activation, g that of the whole network.
    """
    kernel = CovarianceKernel(tau)
    gap, product, rows = 1 - bounded(correlation), Bounded(1.0), []
    end, log_end = kernel.end_slope, logarithm(kernel.end_slope)
    for index in range(1, depth + 1):
        after = kernel.gap(gap)
        product = product * ratio(end * gap, after)
        nlc, bias = product.root().estimate(), after.value**-0.5
        rows.append(PlainRow(index, nlc, bias, kernel.split.second, log_end * index))
        gap = after
    return tuple(rows)


def hermite_nlc(tau: Expr, c: float = 0.0, degree: int = 256) -> Bounded:
    """n(1, c) from Hermite coefficients a_k: (1 - c) sum k a_k^2 over sum a_k^2 (1 - c^k).

    The sum of the numerator is E tau'^2; what the coefficients up to the degree leave of E tau^2 is
    the error of the denominator. It is slow where tau has kinks.
    """
    taken = shape(tau)
    assert taken is not None
    series = expand(taken, np.zeros(1), np.ones(1), degree)
    squares = series.table[:, 0] ** 2
    kernels = Kernels(tau)
    second = kernels.second(Bounded(1.0))
    orders = np.arange(len(squares))
    known = float((squares * (1.0 - c**orders))[1:].sum())
    left = max(second.value - float(squares.sum()), 0.0)
    doubt = float(series.doubt[0]) * (2 * sqrt(second.value) + float(series.doubt[0]))
    under = Bounded(known + left / 2, left / 2 + doubt + second.error, Method.QUADRATURE)
    return ratio((1.0 - c) * kernels.slope(Bounded(1.0)), under).root()
