"""How the coefficient of a function grows with the scale of its inputs, and product estimates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import UsageError
from tpcalc.functions import Expr, Fn
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded
from tpcalc.nonlinearity.estimators import Nonlinearity, quotient
from tpcalc.nonlinearity.measured import sampled_nlc
from tpcalc.results import Estimate, Method
from tpcalc.shown import Rows


def triangle_wave(x: Any, amplitude: float = 1.0) -> Array:
    """The sawtooth of slope 1 and -1 through 0, between -amplitude and amplitude."""
    a = float(checks.real(amplitude, "amplitude", above=0))
    return np.asarray(np.abs(np.mod(np.asarray(x, dtype=float) - a, 4 * a) - 2 * a) - a)


def triangle_network(
    widths: Sequence[int], *, seed: int, amplitude: float = 1.0
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """A random network with the sawtooth between its dense layers.

    Args:
        widths: Inputs, hidden widths, outputs; weights have variance 1 / fan-in.
        seed: Of the weights.
        amplitude: That of the sawtooth.

    Returns:
        The network on inputs in rows, and its Jacobian.

    Raises:
        UsageError: Fewer than two widths, or one below 1.

    Source: Schoenherr, The nonlinearity coefficient, figure 4.9.

    Example:
        >>> net, jacobian = triangle_network([2, 8, 8, 1], seed=0)
        >>> net(np.zeros((3, 2))).shape, jacobian(np.zeros((3, 2))).shape
        ((3, 1), (3, 1, 2))
    """
    sizes = [checks.whole(width, "a width", least=1) for width in checks.sequence(widths, "widths")]
    if len(sizes) < 2:
        raise UsageError("a network needs widths of inputs and outputs.")
    rng = np.random.default_rng(checks.seed(seed))
    weights = [rng.standard_normal((a, b)) / sqrt(a) for a, b in pairwise(sizes)]
    a = float(checks.real(amplitude, "amplitude"))

    def layers(x: Array) -> list[Array]:
        before = [x @ weights[0]]
        for weight in weights[1:]:
            before.append(triangle_wave(before[-1], a) @ weight)
        return before

    def jacobian(x: Array) -> Array:
        before = layers(x)
        found = np.broadcast_to(weights[0].T, (len(x), sizes[1], sizes[0]))
        for values, weight in zip(before, weights[1:], strict=False):
            slope = np.where(np.mod(values - a, 4 * a) < 2 * a, -1.0, 1.0)
            found = weight.T @ (slope[:, :, None] * found)
        return np.asarray(found)

    return lambda x: layers(x)[-1], jacobian


def scale_sweep(
    function: Callable[[Any], Any],
    law: Any,
    scales: Sequence[float],
    *,
    seed: int,
    samples: int = 2**14,
    jacobian: Callable[[Any], Any] | None = None,
) -> tuple[Nonlinearity, ...]:
    """The coefficient of x -> f(s x) for several scales s, with the same draws for each.

    Args:
        function, law, jacobian: As of ``sampled_nlc``.
        scales: The numbers s, not 0.
        seed, samples: Of the samples, and how many.

    Returns:
        A coefficient for each scale.

    Raises:
        UsageError, EvaluationError: As of ``sampled_nlc``, or a scale of 0.

    Source: Schoenherr, The nonlinearity coefficient, Proposition 5 and figure 4.9.

    Example:
        >>> from tpcalc.nonlinearity.laws import Gaussian
        >>> low, high = scale_sweep(np.sin, Gaussian(), [1, 8], seed=0)
        >>> round(high.nlc.value)
        8
    """
    numbers = checks.floats(scales, "scales")
    if any(number == 0 for number in numbers):
        raise UsageError("a scale of 0 makes the function constant.")

    def scaled(s: float) -> Nonlinearity:
        slopes = None if jacobian is None else (lambda x: s * np.asarray(jacobian(s * x)))
        return sampled_nlc(
            lambda x: function(s * x), law, seed=seed, samples=samples, jacobian=slopes
        )

    return Rows(scaled(number) for number in numbers)


def product_estimate(activations: Sequence[Any]) -> Estimate:
    """The product of n_tau(1, 0) over activations: the estimate for convolutional networks.

    It is the coefficient of a network whose layers all see independent inputs of variance 1, as
    normalization before each activation makes them.

    Args:
        activations: Functions of one number, expressions of x0.

    Returns:
        The product, with a bound on its error.

    Raises:
        UsageError: Something else.
        EvaluationError: An activation that is constant, or whose averages are not known.

    Source: Schoenherr, The nonlinearity coefficient, section 5.7.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> round(product_estimate([lookup("relu").fn] * 19).value, 2)
        38.1
    """
    one = Bounded(1.0)
    found: dict[Expr, Estimate] = {}
    factors = []
    for item in activations:
        expr = item.expr if hasattr(item, "expr") else item
        if not isinstance(expr, Expr) or Fn(expr, 2**31).uses[0] - {0}:
            raise UsageError(
                f"{item!r} is no function of one number.", hint="Give expressions of x0."
            )
        if expr not in found:
            kernels = Kernels(expr)
            found[expr] = quotient(kernels.slope(one), kernels.gap(one, one)).root().estimate()
        factors.append(found[expr])
    value = prod(part.value for part in factors)
    error = sum(part.stderr / part.value for part in factors) * value
    method = max((part.method for part in factors), default=Method.EXACT)
    return Estimate(value, error, method)
