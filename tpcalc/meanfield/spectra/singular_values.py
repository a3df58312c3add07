"""Squared singular values of input-output Jacobians, with the errors of the averages in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr, Fn, Var
from tpcalc.functions.fn import derivative
from tpcalc.functions.tape import values
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import EPS, Bounded, bounded
from tpcalc.meanfield.maps.layer_map import LayerMap
from tpcalc.meanfield.maps.roots import rate
from tpcalc.meanfield.operations import checked_family
from tpcalc.meanfield.spectra.spectrum import FAMILIES, padded, weight_spectrum
from tpcalc.meanfield.state import exponential
from tpcalc.shown import Shown

PADDED = "padded orthogonal"
REACH, GRID = 8.5, 2001


@dataclass(frozen=True, slots=True)
class SingularValues(Shown):
    """The squared singular values of a Jacobian of some layers, at infinite width.

    Args:
        log_mean: The logarithm of their mean, chi^L.
        relative_variance: Their variance over the squared mean.
        nonzero: The share of them that is not 0.
    """

    log_mean: Bounded
    relative_variance: Bounded
    nonzero: float

    @property
    def mean(self) -> Bounded:
        """Their mean.

        Raises:
            EvaluationError: It leaves the floating-point range; ``log_mean`` does not.
        """
        centre = self.log_mean.value
        if abs(centre) > 700:
            raise EvaluationError(
                f"the mean squared singular value is e^{centre:.6g}, beyond the range of a float.",
                hint="Take log_mean.",
            )
        return exponential(self.log_mean)

    @property
    def variance(self) -> Bounded:
        """Their variance."""
        return self.relative_variance * self.mean * self.mean


def singular_values(layer: LayerMap, family: str, depth: int) -> SingularValues:
    """Squared singular values of J = D W D W ... at the fixed point of the lengths.

    Args:
        layer: The layers.
        family: The law of the weights, of ``FAMILIES``; or ``"padded orthogonal"``: orthonormal
            columns, the others 0, whose W^T W is diagonal and not free from D.
        depth: Their number L.

    Returns:
        The logarithm of the mean, the relative variance, and the share that is not 0.

    Raises:
        StudyError: Another family.
        EvaluationError: Lengths have no fixed point.

    Source: On the initialisation of wide low-rank feedforward neural networks, equation 11, divided
        by the squared mean, so that it holds off the edge of chaos as well.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> from tpcalc.meanfield.maps.edge import edge_of_chaos
        >>> erf = lookup("erf").fn.expr
        >>> layer = LayerMap(erf, *edge_of_chaos(erf, 0.5, rank=0.25), rank=0.25)
        >>> found = singular_values(layer, "gaussian", 4)
        >>> round(found.relative_variance.value, 4), round(found.mean.value, 12), found.nonzero
        (17.3666, 1.0, 0.25)
    """
    checks.of_type(layer, LayerMap, "layer")
    count = checks.whole(depth, "depth", least=1)
    slopes = slope_variance(layer.tau, layer.fixed_point)
    rank, active = float(layer.rank), active_share(layer.tau, layer.fixed_point.value)
    nonzero = min(rank, active)
    log_mean = -rate(layer.chi) * count
    if family == PADDED:
        whole = padded(slopes, bounded(float(layer.rank)), count)
        # The columns that are kept meet the slopes that are not 0 by chance.
        return SingularValues(log_mean, whole, nonzero if count == 1 else rank * active)
    if family not in FAMILIES:
        checked_family(family, (*FAMILIES, PADDED))
    own = bounded(weight_spectrum(family, float(layer.rank), 1).relative_variance)
    own = own + Bounded(0.0, EPS * abs(own.value))
    return SingularValues(log_mean, (slopes + own) * count, nonzero)


def slope_variance(tau: Expr, q: Bounded | float) -> Bounded:
    """Variance over squared mean of tau'(s)^2, for a centred Gaussian s of variance q.

    Source: mu_2 / mu_1^2 - 1 in On the initialisation of wide low-rank feedforward neural networks,
        section 3.1.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> slope_variance(lookup("relu").fn.expr, 1.0).value
        1.0
    """
    at, squared = bounded(q), Kernels(derivative(tau, Var(0)) ** 2)
    first, second = squared.mean(at), squared.second(at)
    return second / (first * first) - 1.0


def active_share(tau: Expr, q: float) -> float:
    """The chance that tau'(s) is not 0, for a centred Gaussian s of variance q.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> active_share(lookup("relu").fn.expr, 1.0), active_share(lookup("tanh").fn.expr, 1.0)
        (0.5, 1.0)
    """
    from scipy.special import ndtr

    spread = float(q) ** 0.5
    slope = Fn(derivative(tau, Var(0)), 1)
    # Beyond 12 slopes of smooth functions may be 0 by rounding alone.
    reach = min(REACH, 12.0 / spread)
    z = np.linspace(-reach, reach, GRID)
    flat = values(slope, z * spread) == 0
    if not flat.any():
        return 1.0
    change = np.flatnonzero(flat[1:] != flat[:-1])
    ends = [_end(slope, spread, z[k], z[k + 1], bool(flat[k])) for k in change]
    places = [-np.inf if flat[0] else None, *ends, np.inf if flat[-1] else None]
    bounds = [place for place in places if place is not None]
    lost = sum(float(ndtr(b) - ndtr(a)) for a, b in zip(bounds[::2], bounds[1::2], strict=True))
    return 1.0 - lost


def _end(slope: Fn, spread: float, low: float, high: float, flat: bool) -> Any:
    """Where the slope begins or ends to be 0."""
    for _ in range(60):
        middle = (low + high) / 2
        if bool(values(slope, middle * spread) == 0) == flat:
            low = middle
        else:
            high = middle
    return round(high, 14)
