"""The nonlinearity coefficient of formulas under a Gaussian law, exactly or by quadrature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr, Fn, Var, const, derivative
from tpcalc.functions.tape import evaluate
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.nonlinearity.averages import Averages, outputs_of, total, without_constant
from tpcalc.nonlinearity.coefficient import Nonlinearity, gaussian_notes, quotient, root_of
from tpcalc.nonlinearity.laws import Gaussian
from tpcalc.results import Estimate
from tpcalc.shown import Shown


def gaussian_nlc(
    function: Any, law: Gaussian | None = None, *, method: str = "auto"
) -> Nonlinearity:
    """The nonlinearity coefficient of a function given as formulas, for Gaussian inputs.

    Args:
        function: A Python function of d formulas, an expression of x0, x1, ..., or a sequence of
            expressions, one for each output.
        law: The law of the inputs; by default one standard Gaussian number.
        method: ``"auto"`` (closed forms, then quadrature), ``"exact"`` or ``"quadrature"``.

    Returns:
        The coefficient with its error, slope and spread.

    Raises:
        UsageError: Something that is no function of as many formulas.
        NotDifferentiable: A function that jumps.
        EvaluationError: Averages that are not known or infinite, or a constant function.

    Source: Schoenherr, The nonlinearity coefficient, section 4.2.

    Example:
        >>> law = Gaussian(0, [4, 1])
        >>> found = gaussian_nlc(lambda x, y: x + x * y, law)
        >>> round(found.nlc.value**2, 12), found.nlc.method.value
        (1.5, 'exact')
    """
    law, averages, outputs = _read(function, law, method)
    slopes = _slopes(outputs, averages)
    spread = _variance([_centred(part, averages) for part in outputs], averages)
    found = _nonlinearity(slopes, spread, law)
    means = [averages.of(derivative(part, Var(i))) for part in outputs for i in _varying(averages)]
    if all(abs(mean.value) <= mean.error for mean in means):
        note = "The function has no linear part: NLC >= sqrt(2) (Theorem 2)."
        found = replace(found, notes=(*found.notes, note))
    return found


@dataclass(frozen=True)
class Split(Shown):
    """A function as its best linear fit and the rest."""

    linear: Estimate  # LAR, the share of E |f|^2 that the linear part has
    constant: Estimate  # CAR, that of the constant part
    nonlinear: Estimate  # NAR, that of the rest; the three sum to 1
    rest: Estimate | None  # the nonlinearity coefficient of the rest; None where there is none
    whole: Estimate  # that of the function
    # the linear map A, a row for each coordinate of the input
    matrix: tuple[tuple[float, ...], ...]
    offset: tuple[float, ...]  # b, with x A + b the fit

    @property
    def recombined(self) -> float:
        """The coefficient by the shares and that of the rest; for Gaussian inputs it is NLC."""
        lar, nar = self.linear.value, self.nonlinear.value
        rest = 0.0 if self.rest is None else self.rest.value
        return sqrt((lar + nar * rest**2) / (lar + nar))


def gaussian_split(function: Any, law: Gaussian | None = None, *, method: str = "auto") -> Split:
    """The least-squares split of a function given as formulas, for Gaussian inputs.

    The linear part is the mean of the Jacobian (Stein), and is checked against the covariances of
    outputs and inputs.

    Args:
        function: As of ``gaussian_nlc``.
        law: The law of the inputs.
        method: As of ``gaussian_nlc``.

    Returns:
        The parts and their shares, each with its error.

    Raises:
        UsageError: Something that is no function of as many formulas.
        EvaluationError: Averages that are not known, or a constant function.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.7, Lemma 2 and Theorem 3.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> found = gaussian_split(lookup("relu").fn)
        >>> print(found.linear, found.rest.value > 2**0.5)
        0.5 (exact) True
    """
    law, averages, outputs = _read(function, law, method)
    size = law.dimension
    table = [[bounded(value) for value in row] for row in averages.cov]
    means, matrix, linear, rests = [], [], [], []
    for part in outputs:
        row = [averages.of(derivative(part, Var(index))) for index in range(size)]
        means.append(averages.of(part))
        matrix.append(row)
        linear.append(
            total(row[a] * table[a][b] * row[b] for a in range(size) for b in range(size))
        )
        rests.append(_without(_centred(part, averages), row, averages))
        _check_stein(_centred(part, averages), row, table, averages)
    square = total([mean * mean for mean in means])
    between = total(linear)
    left = _variance(rests, averages)
    spread = total([between, left])
    whole = total([spread, square])
    nlc = _nonlinearity(_slopes(outputs, averages), spread, law).nlc
    rest = None
    if left.value > left.error:
        rest = _nonlinearity(_slopes(rests, averages), left, law).nlc
    offsets = tuple(
        mean.value - sum(float(averages.mean[a]) * row[a].value for a in range(size))
        for mean, row in zip(means, matrix, strict=True)
    )
    lar, car, nar = (quotient(part, whole).estimate() for part in (between, square, left))
    columns = tuple(tuple(row[a].value for row in matrix) for a in range(size))
    return Split(lar, car, nar, rest, nlc, columns, offsets)


def numpy_form(
    function: Any, dimension: int = 1
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """A function given as formulas, and its Jacobian, as code on batches of inputs."""
    outputs = outputs_of(function, dimension)
    forms = [Fn(part, dimension) for part in outputs]
    slopes = [[form.by(index) for index in range(dimension)] for form in forms]

    def column(form: Fn, x: Array) -> Array:
        found = evaluate(form, [x[:, index] for index in range(dimension)])
        return np.broadcast_to(np.asarray(found, dtype=float), (len(x),))

    def values(x: Array) -> Array:
        return np.stack([column(form, x) for form in forms], axis=1)

    def jacobian(x: Array) -> Array:
        rows = [np.stack([column(slope, x) for slope in row], axis=1) for row in slopes]
        return np.stack(rows, axis=1)

    return values, jacobian


def _varying(averages: Averages) -> list[int]:
    return [index for index, row in enumerate(averages.cov) if row[index] != 0]


def _slopes(outputs: Sequence[Expr], averages: Averages) -> Bounded:
    """E Tr J Cov_x J^T."""
    terms = []
    for part in outputs:
        row = [derivative(part, Var(index)) for index in range(len(averages.cov))]
        for a, left in enumerate(row):
            for b in range(a, len(row)):
                weight = bounded(averages.cov[a][b]) * (1 if a == b else 2)
                if not weight.is_zero and row[b] != const(0) and left != const(0):
                    terms.append(weight * averages.of(left, row[b]))
    return total(terms)


def _read(
    function: Any, law: Gaussian | None, method: str
) -> tuple[Gaussian, Averages, tuple[Expr, ...]]:
    """The law, its averages, and the outputs about its mean."""
    law = Gaussian() if law is None else law
    outputs = outputs_of(function, law.dimension)
    averages = Averages(law, method)
    return law, averages, tuple(averages.shifted(part) for part in outputs)


def _centred(expr: Expr, averages: Averages) -> Expr:
    """A formula less its mean: the number added in it does not take part."""
    varying = without_constant(expr)
    mean = averages.of(varying)
    return varying if mean.is_zero else varying - mean.value


def _without(expr: Expr, row: Sequence[Bounded], averages: Averages) -> Expr:
    """A centred formula less its linear part."""
    for index, slope in enumerate(row):
        if not slope.is_zero:
            expr = expr - slope.value * Var(index)
    return expr


def _variance(centred: Sequence[Expr], averages: Averages) -> Bounded:
    """Tr Cov of formulas whose means are 0 up to rounding: what is left of them is in the error."""
    terms = []
    for part in centred:
        square, mean = averages.of(part, part), averages.of(part)
        slip = (abs(mean.value) + mean.error) ** 2
        terms.append(Bounded(square.value, square.error + slip, square.method))
    return total(terms)


def _nonlinearity(slopes: Bounded, spread: Bounded, law: Gaussian) -> Nonlinearity:
    nlc = root_of(quotient(slopes, spread))
    notes = gaussian_notes(nlc, law.rank, law.dimension)
    return Nonlinearity(nlc, root_of(slopes), root_of(spread), tuple(notes))


def _check_stein(
    centred: Expr, row: Sequence[Bounded], table: Sequence[Sequence[Bounded]], averages: Averages
) -> None:
    for index, entries in enumerate(table):
        direct = averages.of(Var(index) * centred)
        stein = total(entry * slope for entry, slope in zip(entries, row, strict=True))
        slack = direct.error + stein.error + 1e-9 * (abs(direct.value) + abs(stein.value))
        slack += 1e-9 * (averages.of(centred, centred).value * entries[index].value) ** 0.5
        if not abs(direct.value - stein.value) <= slack:
            raise EvaluationError(
                f"the mean slope of {centred.text} by x{index} is not what its covariance with "
                f"x{index} says: {stein.value:.6g} and {direct.value:.6g}.",
                hint="A declared derivative may be wrong, or a jump is not declared.",
            )
