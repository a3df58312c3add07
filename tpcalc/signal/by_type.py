"""Questions whose arguments decide how they are answered: by formulas, samples, tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from numbers import Real
from typing import Any, overload

import numpy as np

from tpcalc.arguments import public
from tpcalc.meanfield import nonlinearity as mean_field
from tpcalc.meanfield.activations import split as activations
from tpcalc.meanfield.operations import Input
from tpcalc.meanfield.reading import Layers
from tpcalc.nonlinearity import gaussian, interval, measured, noise, ranges
from tpcalc.nonlinearity import split as sampled
from tpcalc.nonlinearity.estimators import Nonlinearity
from tpcalc.nonlinearity.interval import IntervalNonlinearity
from tpcalc.nonlinearity.laws import Gaussian, Law
from tpcalc.nonlinearity.tensors import coefficient as tensors
from tpcalc.nonlinearity.tensors.coefficient import MeasuredNLC
from tpcalc.results import Estimate


@overload
def nlc(
    source: Layers,
    start: int | str = 0,
    end: int | str | None = None,
    inputs: Input | None = None,
) -> Estimate: ...
@overload
def nlc(source: Any, inputs: Law, **options: Any) -> Nonlinearity: ...
@overload
def nlc(source: Any, inputs: tuple[float, float], **options: Any) -> IntervalNonlinearity: ...
@overload
def nlc(source: Any, inputs: Any, **options: Any) -> MeasuredNLC | Nonlinearity: ...
def nlc(source: Any, *inputs: Any, **options: Any) -> Any:
    """The nonlinearity coefficient of a network, or of any function under a law of its inputs.

    Args:
        source: A network or its layers, formulas, a function of arrays, a function or a module of
            torch.
        inputs: Nothing, or the first and last layer (``start``, ``end``) and the ``inputs``, a
            ``tp.signal.Input``: the mean-field limit of a network. ``tp.signal.Gaussian`` without
            a seed: of formulas, exactly or by quadrature. ``(low, high)``: of a function on an
            interval. A law of inputs, or rows, and a ``seed``: from samples. A tensor of torch, or
            whatever there is beside a module: measured on these inputs.
        options: Of a network none; of formulas ``method``; on an interval ``slope``, ``kinks``; of
            samples ``seed``, ``samples``, ``jacobian``, ``jvp``; of tensors ``batch``, ``draws``,
            ``estimator``, ``passes``, ``seed``.

    Returns:
        The coefficient, for functions with what it was made of, each with its error.

    Raises:
        UsageError: Numbers that are no layers, no bottleneck, or options of another kind.
        EvaluationError: Averages that are infinite or not known, or outputs that are all the same.

    Source: Schoenherr, The nonlinearity coefficient, sections 4.2 and 5.3.4.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> round(nlc(lookup("mlp").make(1, "relu")).value, 6)
        1.211174
        >>> round(nlc(lambda x: x + x**2, Gaussian()).nlc.value, 6)
        1.290994
        >>> round(nlc(lambda x: x**2, (-1, 1)).nlc.value, 6)
        2.236068
    """
    return _way(
        source,
        inputs,
        options,
        network=mean_field.nlc,
        formulas=gaussian.gaussian_nlc,
        interval=_on_interval,
        samples=measured.sampled_nlc,
        tensors=tensors.measured_nlc,
    )


def split(source: Any, *inputs: Any, **options: Any) -> Any:
    """The least-squares split of a function as a constant, a linear and a nonlinear part.

    Args:
        source: An activation, formulas, a function of arrays, a function or a module of torch.
        inputs: Nothing or a number q: an activation under N(0, q). Otherwise as of
            ``tp.signal.nlc``.
        options: Of formulas ``method``; of samples ``seed``, ``samples``, ``jacobian``; of tensors
            ``batch``, ``seed``.

    Returns:
        The parts and their shares, each with its error.

    Raises:
        UsageError: Arguments that do not fit.
        EvaluationError: Averages that are not known, or a constant function.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.7.

    Example:
        >>> round(split("relu").linear_ratio.value, 6)
        0.5
        >>> round(split(lambda x: x + x**2, Gaussian()).linear.value, 6)
        0.25
    """
    return _way(
        source,
        inputs,
        options,
        network=activations.split,
        formulas=gaussian.gaussian_split,
        samples=sampled.sampled_split,
        tensors=tensors.linear_part,
    )


def linear_range(function: Any, inputs: Any, **options: Any) -> Any:
    """GLLAD: how far an input moves until the linear approximation is off by a factor.

    Args:
        function: A function of arrays, a function or a module of torch.
        inputs: A law or rows, with a ``seed``; or a tensor.
        options: Of arrays ``seed``, ``batch``, ``draws``, ``factor``, ``jacobian``, ``jvp``; of
            tensors ``batch``, ``samples``, ``factor``, ``smallest``, ``per_decade``, ``seed``; of
            both ``by="hessian"``: a local quadratic function takes the place of the function.

    Returns:
        1 / c of each draw, for the first c times a deviation of inputs at which it is off, and the
        median.

    Raises:
        UsageError, EvaluationError: As of ``tp.signal.nlc``.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.6.
    """
    return _way(
        function, (inputs,), options, samples=ranges.linear_range, tensors=tensors.local_linearity
    )


def noise_curve(function: Any, inputs: Any, labels: Any, weights: Any, **options: Any) -> Any:
    """NCE: the mean error where inputs are mixed with Gaussian noise of their covariance.

    Args:
        function: A function of arrays, a function or a module of torch.
        inputs: Rows, or a tensor.
        labels: A label for each.
        weights: The weights w of the noise in w u + (1 - w) x, between 0 and 1.
        options: Of arrays ``seed``, ``error``, ``repeats``; of tensors ``error``, ``batch``,
            ``seed``.

    Returns:
        The mean error at each weight, with its standard error.

    Raises:
        UsageError: Weights or labels that do not fit.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.8.
    """
    return _way(
        function,
        (inputs, labels, weights),
        options,
        samples=noise.noise_curve,
        tensors=tensors.noise_errors,
    )


def noise_limit(function: Any, inputs: Any, labels: Any, **options: Any) -> Any:
    """MES: 1 over the change of inputs that the error bears, the median over batches.

    Args:
        function: A function of arrays, a function or a module of torch.
        inputs: Rows, or a tensor.
        labels: A label for each.
        options: Of arrays ``seed``, ``error``, ``batch``, ``draws``, ``excess``; of tensors
            ``error``, ``tolerance``, ``batch``, ``samples``, ``smallest``, ``per_decade``,
            ``seed``.

    Returns:
        The median, with its error.

    Raises:
        UsageError: Labels that do not fit.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.8.
    """
    return _way(
        function, (inputs, labels), options, samples=noise.noise_limit, tensors=tensors.error_radius
    )


def _way(source: Any, inputs: Any, options: Any, **ways: Callable[..., Any]) -> Any:
    """The answer in the way that the types of a function and of its inputs say."""
    first = inputs[0] if inputs else options.get("inputs")
    if _of_torch(source) or _of_torch(first):
        way = "tensors"
    elif isinstance(first, Gaussian) and "seed" not in options:
        way = "formulas"
    elif isinstance(first, tuple) and [isinstance(end, Real) for end in first] == [True, True]:
        way = "interval"
    elif isinstance(first, Law | Sequence | np.ndarray) and not isinstance(first, str):
        way = "samples"
    else:
        way = "network"
    return _public(ways.get(way, ways["samples"]))(source, *inputs, **options)


_public = cache(public)


def _on_interval(function: Any, ends: tuple[float, float], **given: Any) -> IntervalNonlinearity:
    return interval.interval_nlc(function, *ends, **given)


def _of_torch(value: Any) -> bool:
    return any(kind.__module__.partition(".")[0] == "torch" for kind in type(value).__mro__)
