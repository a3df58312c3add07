"""The sheet of one activation: all that it does to signals, in under a second."""

from __future__ import annotations

from math import isfinite
from time import perf_counter
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr, Fn
from tpcalc.functions.tape import values
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.given import Act, whole
from tpcalc.meanfield.activations.asymptotics import asymptotes
from tpcalc.meanfield.activations.calibrate import debiased, dilated, normalized
from tpcalc.meanfield.activations.covariance import CovarianceKernel
from tpcalc.meanfield.activations.fixed_points import Iteration
from tpcalc.meanfield.activations.length import LengthKernel, longest
from tpcalc.meanfield.activations.split import Split, slope_of
from tpcalc.meanfield.plain import growth
from tpcalc.results import (
    CovarianceRow,
    Estimate,
    LengthRow,
    Method,
    Sheet,
    SheetCurve,
    SplitTable,
    Status,
)
from tpcalc.results.tables import provenance

LENGTHS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
CORRELATIONS = (0.0, 0.25, 0.5, 0.75, 0.9)
_CURVE = np.geomspace(1e-2, 1e2, 81)
_CORRELATION_CURVE = np.append(np.arange(0, 20) / 20, (0.97, 0.98, 0.99, 0.995))
_BOTH = sorted({*CORRELATIONS, *_CORRELATION_CURVE.tolist()})
_INPUTS = np.linspace(-4.0, 4.0, 161)


def sheet(
    activation: Act,
    *,
    dilate: float = 1,
    shift: float = 0,
    debias: bool = False,
    normalize: bool = False,
    name: str = "",
) -> Sheet:
    """What an activation does to signals: split, length and covariance kernels, their iterates.

    Args:
        activation: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        dilate: d: the activation is taken at d s + h.
        shift: h.
        debias: Whether its mean under a standard Gaussian is subtracted.
        normalize: Whether it is divided by its length under a standard Gaussian, after that.
        name: What it is called; the name of the catalogue by default.

    Returns:
        Numbers, curves and tables.

    Raises:
        UnknownName: The catalogue has no such activation.
        StudyError: The activation is not defined on the whole line, or a number is none.
        EvaluationError: It jumps, or grows too fast for averages to exist, or is constant.

    Source: Schoenherr, The nonlinearity coefficient, sections 4.4.7, 5.4 and 5.6.

    Example:
        >>> found = sheet("relu")
        >>> round(found.split.nlc.value, 6), found.covariance.kind, found.maps[1].label
        (1.211174, 'edge', 'identity')
    """
    began = perf_counter()
    given = whole(activation, "sheet")
    base, called = given.expr, given.text
    slope_of(base)
    tau = dilated(base, dilate, shift)
    try:
        tau = debiased(tau) if debias else tau
        tau = normalized(tau) if normalize else tau
    except MemoryError as error:
        raise _beyond(name or called) from error
    if longest(tau) < 1:
        raise EvaluationError(
            "the activation bends more often than averages under a standard Gaussian resolve.",
            where=name or called,
            hint="Take a larger amplitude or a smaller dilation.",
        )
    length, covariance = LengthKernel(tau), CovarianceKernel(tau)
    try:
        parts = covariance.split
        found = covariance.found
        maps = tuple(Iteration(tau, normal).found for normal in (False, True))
        ends = asymptotes(tau)
        table = covariance.correlations(_BOTH), covariance.nlc(_BOTH)
    except EvaluationError as error:
        error.where = error.where or name or called
        raise
    except (MemoryError, ValueError) as error:  # widths that no grid resolves
        raise _beyond(name or called) from error
    settings = {"dilate": f"{dilate:g}", "shift": f"{shift:g}"}
    words = {"debias": debias, "normalize": normalize}
    settings |= {word: "yes" for word, asked in words.items() if asked}
    rows, curves = _rows(length), _curves(tau, length, table)
    return Sheet(
        name or _called(called, settings),
        tau.text,
        _split_table(parts),
        rows,
        _correlation_rows(*table),
        length.at_zero,
        length.slope_at_zero,
        maps,
        found,
        ends,
        curves,
        provenance(tau.text, None, settings, perf_counter() - began),
        (growth(tau, found),),
    )


def _beyond(name: str) -> EvaluationError:
    return EvaluationError(
        "its averages are out of reach of quadrature.",
        where=name,
        hint="Take a dilation and a shift of more usual size.",
    )


def _called(name: str, settings: dict[str, str]) -> str:
    changed = [
        f"{word} {value}" if value != "yes" else word
        for word, value in settings.items()
        if (word, value) not in (("dilate", "1"), ("shift", "0"))
    ]
    return f"{name}, {', '.join(changed)}" if changed else name


def _split_table(parts: Split) -> SplitTable:
    return SplitTable(
        mean=parts.mean.estimate(),
        coefficient=parts.coefficient.estimate(),
        second=parts.second.estimate(),
        slope=parts.slope.estimate(),
        nlc=parts.nlc.estimate(),
        rest_nlc=None if parts.linear else parts.rest_nlc.estimate(),
        linear=parts.linear_ratio.estimate(),
        constant=parts.constant_ratio.estimate(),
        nonlinear=Estimate(0.0, parts.nonlinear_ratio.error, Method.QUADRATURE, Status.CONVERGED)
        if parts.linear
        else parts.nonlinear_ratio.estimate(),
    )


def _rows(length: LengthKernel) -> tuple[LengthRow, ...]:
    at = np.array([x for x in LENGTHS if x <= longest(length.tau)])
    found = length.lengths(at), length.stability(at), length.nlc(at)
    known = np.logical_and.reduce([part.known for part in found])
    return tuple(
        LengthRow(float(at[k]), *(part.at(int(k)).estimate() for part in found))
        for k in np.flatnonzero(known)
    )


def _correlation_rows(values: Bounded, coefficients: Bounded) -> tuple[CovarianceRow, ...]:
    return tuple(
        CovarianceRow(c, values.at(k).estimate(), coefficients.at(k).estimate())
        for k, c in enumerate(_BOTH)
        if c in CORRELATIONS
    )


def _curves(
    tau: Expr, length: LengthKernel, table: tuple[Bounded, Bounded]
) -> tuple[SheetCurve, ...]:
    at = _CURVE[longest(tau) >= _CURVE]
    own = values(Fn(tau, 1), _INPUTS)
    finite = np.isfinite(own)
    return (
        SheetCurve("activation", _numbers(_INPUTS[finite]), _numbers(own[finite])),
        _curve("length", at, length.lengths(at)),
        _curve("covariance", np.array(_BOTH), table[0]),
        _curve("nlc of length", at, length.nlc(at)),
        _curve("nlc of covariance", np.array(_BOTH), table[1]),
    )


def _curve(kind: Any, at: Array, values: Bounded) -> SheetCurve:
    known = values.known
    error = float(values.error[known].max(initial=0.0))
    return SheetCurve(kind, _numbers(at[known]), _numbers(values.value[known]), error)


def _numbers(array: Array) -> tuple[float, ...]:
    return tuple(float(x) for x in array if isfinite(x))
