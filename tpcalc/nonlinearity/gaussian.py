"""The nonlinearity coefficient of formulas under a Gaussian law, exactly or by quadrature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import compress, product
from math import sqrt
from typing import Any

import numpy as np

from tpcalc.errors import EvaluationError, UsageError
from tpcalc.evaluate.chain import chosen
from tpcalc.evaluate.expect import chain_of
from tpcalc.functions import Expr, Var, const, derivative
from tpcalc.functions.expr import add, mul, substitute
from tpcalc.functions.form import varying
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.nonlinearity.estimators import Nonlinearity, gaussian_notes, quotient
from tpcalc.nonlinearity.formulas import expanded, outputs_of
from tpcalc.nonlinearity.laws import Gaussian
from tpcalc.program.nodes import Family
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
    spread = averages.variance([averages.centred(part) for part in outputs])
    found = _nonlinearity(averages.numerator(outputs), spread, law)
    varying = [row[index] != 0 for index, row in enumerate(averages.cov)]
    means = [mean for part in outputs for mean in compress(averages.slopes(part), varying)]
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
    table = [[bounded(value) for value in row] for row in averages.cov]
    means, matrix = [averages.of(part) for part in outputs], list(map(averages.slopes, outputs))
    linear, rests = [], []
    for part, row in zip(map(averages.centred, outputs), matrix, strict=True):
        _check_stein(part, row, table, averages)
        both = product(range(law.dimension), repeat=2)
        linear += [row[a] * table[a][b] * row[b] for a, b in both]
        steep = ((Var(index), slope) for index, slope in enumerate(row) if not slope.is_zero)
        rests.append(add((part, *(-slope.value * number for number, slope in steep))))
    square, between = _total(mean * mean for mean in means), _total(linear)
    left = averages.variance(rests)
    spread = between + left
    nlc = _nonlinearity(averages.numerator(outputs), spread, law).nlc
    rest = None
    if left.value > left.error:
        rest = _nonlinearity(averages.numerator(rests), left, law).nlc
    lar, car, nar = (quotient(part, spread + square).estimate() for part in (between, square, left))
    slopes = np.array([[slope.value for slope in row] for row in matrix])
    offset = np.array([mean.value for mean in means]) - slopes @ law.centre
    columns = tuple(map(tuple, slopes.T.tolist()))
    return Split(lar, car, nar, rest, nlc, columns, tuple(offset.tolist()))


class _Averages:
    """E of formulas of x0, ..., x_{d-1}, the deviations of a Gaussian law from its mean."""

    def __init__(self, law: Gaussian, method: str) -> None:
        self.mean, self.cov = law.entries()
        self.size, self.methods = law.dimension, chosen(method)
        self._known: dict[tuple[Expr, ...], Bounded] = {}
        if not self.methods:
            raise UsageError(
                "formulas take no particles here.",
                hint="numpy_form gives the function as code, which sampled_nlc takes.",
            )

    def shifted(self, expr: Expr) -> Expr:
        """A formula of the inputs as one of their deviations from the mean."""
        # Means that are large next to the deviations cancel here, and not in averages.
        moved: dict[Expr, Expr] = {Var(i): Var(i) + mean for i, mean in enumerate(self.mean)}
        return expanded(substitute(expr, moved), self.size)

    def of(self, *factors: Expr) -> Bounded:
        """E of a product of one or two formulas."""
        if any(factor == const(0) for factor in factors):
            return Bounded(0.0)
        if factors not in self._known:
            self._known[factors] = self._evaluated(expanded(mul(factors), self.size))
        return self._known[factors]

    def _evaluated(self, whole: Expr) -> Bounded:
        rows = tuple(tuple(row) for row in self.cov)
        group = Family.group("x", "n", (Fraction(0),) * self.size, rows)
        chain = chain_of(whole, group, self.methods)
        found = chain.estimates("E")[0]
        if found is None:
            raise EvaluationError(
                f"E {whole.text} has no closed form and no quadrature here: "
                f"{chain.reasons.get('E', 'it is not covered')}.",
                hint="numpy_form gives the function as code, which sampled_nlc takes.",
            )
        return bounded(found)

    def slopes(self, expr: Expr) -> list[Bounded]:
        """E of the derivatives by each number."""
        return [self.of(derivative(expr, Var(index))) for index in range(self.size)]

    def centred(self, expr: Expr) -> Expr:
        """A formula less its mean: the number added in it does not take part."""
        expr = varying(expr)
        mean = self.of(expr)
        return expr if mean.is_zero else expr - mean.value

    def variance(self, centred: Sequence[Expr]) -> Bounded:
        """Tr Cov of formulas whose means are 0 up to rounding, which is in the error."""
        terms = []
        for part in centred:
            square, mean = self.of(part, part), self.of(part)
            slip = (abs(mean.value) + mean.error) ** 2
            terms.append(Bounded(square.value, square.error + slip, square.method))
        return _total(terms)

    def numerator(self, outputs: Sequence[Expr]) -> Bounded:
        """E Tr J Cov_x J^T."""
        terms = []
        for part in outputs:
            row = [derivative(part, Var(index)) for index in range(self.size)]
            for a, left in enumerate(row):
                for b in range(a, self.size):
                    weight = bounded(self.cov[a][b]) * (1 if a == b else 2)
                    if not weight.is_zero and row[b] != const(0) and left != const(0):
                        terms.append(weight * self.of(left, row[b]))
        return _total(terms)


def _total(terms: Iterable[Bounded]) -> Bounded:
    return sum(terms, start=Bounded(0.0))


def _read(
    function: Any, law: Gaussian | None, method: str
) -> tuple[Gaussian, _Averages, tuple[Expr, ...]]:
    """The law, its averages, and the outputs about its mean."""
    law = Gaussian() if law is None else law
    outputs = outputs_of(function, law.dimension)
    averages = _Averages(law, method)
    return law, averages, tuple(averages.shifted(part) for part in outputs)


def _nonlinearity(slopes: Bounded, spread: Bounded, law: Gaussian) -> Nonlinearity:
    nlc = quotient(slopes, spread).root().estimate()
    notes = gaussian_notes(nlc, law.rank, law.dimension)
    return Nonlinearity(nlc, slopes.root().estimate(), spread.root().estimate(), tuple(notes))


def _check_stein(
    centred: Expr, row: Sequence[Bounded], table: Sequence[Sequence[Bounded]], averages: _Averages
) -> None:
    for index, entries in enumerate(table):
        direct = averages.of(Var(index) * centred)
        stein = _total(entry * slope for entry, slope in zip(entries, row, strict=True))
        slack = direct.error + stein.error + 1e-9 * (abs(direct.value) + abs(stein.value))
        slack += 1e-9 * (averages.of(centred, centred).value * entries[index].value) ** 0.5
        if not abs(direct.value - stein.value) <= slack:
            raise EvaluationError(
                f"the mean slope of {centred.text} by x{index} is not what its covariance with "
                f"x{index} says: {stein.value:.6g} and {direct.value:.6g}.",
                hint="A declared derivative may be wrong, or a jump is not declared.",
            )
