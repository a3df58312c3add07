"""The Hermite chaos of a function of Gaussian inputs: its variance by degree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import factorial, prod, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.integrals import rules
from tpcalc.integrals.bounded import EPS
from tpcalc.nonlinearity.formulas import exact, fraction, outputs_of, polynomial
from tpcalc.nonlinearity.function import Code
from tpcalc.nonlinearity.laws import Gaussian
from tpcalc.results import Estimate, Method, Status
from tpcalc.shown import Shown

MOST_NODES = 2**20
LOOSE = 1e-3  # an error of the coefficient above which there is none


@dataclass(frozen=True)
class Chaos(Shown):
    """How much of E |f|^2 has which Hermite degree."""

    # E |f_k|^2 for k = 0, 1, ...: exact fractions for polynomials
    energies: tuple[Fraction | float, ...]
    # what is left above the last degree; 0 for polynomials
    remainder: Fraction | float = Fraction(0)
    error: float = 0.0  # how far the energies and the remainder may be off, each

    @property
    def variance(self) -> Fraction | float:
        """Tr Cov_f."""
        return sum(self.energies[1:], start=self.remainder)

    @property
    def squared(self) -> Fraction | float:
        """The mean degree, weighted by energies; the remainder counts with the next degree."""
        weighted = sum((k * part for k, part in enumerate(self.energies)), start=Fraction(0))
        return (weighted + len(self.energies) * self.remainder) / self.variance

    @property
    def linear(self) -> Fraction | float:
        """LAR, the share of E |f|^2 that has degree 1."""
        return self.energies[1] / (self.variance + self.energies[0])

    @property
    def nlc(self) -> Estimate:
        """The nonlinearity coefficient.

        Raises:
            EvaluationError: Too much is left above the last degree.
        """
        value = sqrt(self.squared)
        if isinstance(self.variance, Fraction):
            return Estimate(
                value, EPS * value, Method.EXACT, Status.CONVERGED, formula=f"sqrt({self.squared})"
            )
        degrees = len(self.energies)
        slack = (self.error + abs(float(self.remainder))) * degrees**2 / float(self.variance)
        if slack > LOOSE:
            raise EvaluationError(
                f"{float(self.remainder / self.variance):.2g} of the variance has a degree above "
                f"{degrees - 1}, and energies are known within {self.error:.1g}: the coefficient "
                "does not follow.",
                hint="Raise degree= and nodes=, or use gaussian_nlc or sampled_nlc.",
            )
        return Estimate(value, slack / value, Method.QUADRATURE)


def polynomial_chaos(function: Any, law: Gaussian | None = None) -> Chaos:
    """The chaos of polynomials, by exact arithmetic.

    The average over the law turns f into g = exp(D/2) f, D the Laplacian of the covariance; the
    part of degree k of g around the mean has all that E |f_k|^2 is made of.

    Args:
        function: Polynomials as ``gaussian_nlc`` takes them.
        law: A Gaussian law; by default one standard number. Floats stand for themselves.

    Returns:
        The energy of each degree, as fractions.

    Raises:
        UsageError: A function that is no polynomial.
        EvaluationError: A constant function.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.7, for what follows from it;
        Nualart, The Malliavin calculus and related topics, exercise 1.2.4 (coefficients are means
        of derivatives).

    Example:
        >>> chaos = polynomial_chaos(lambda x, y: x + (y**2 - 1) / 2 + x * y, Gaussian(0, [1, 1]))
        >>> [str(part) for part in chaos.energies], str(chaos.squared)
        (['0', '1', '3/2'], '8/5')
    """
    law = Gaussian() if law is None else law
    mean, rows = law.entries()
    cov = [[fraction(Fraction(value)) for value in row] for row in rows]
    energies: dict[int, Fraction] = {}
    for part in outputs_of(function, law.dimension):
        found = polynomial(part, law.dimension)
        if found is None:
            raise UsageError(
                f"{part.text} is no polynomial.", hint="grid_chaos and gaussian_nlc take others."
            )
        smoothed = _heated(found, cov)
        numbers = smoothed.ring.gens
        at = (fraction(Fraction(value)) for value in mean)
        moved = smoothed.compose([(x, x + m) for x, m in zip(numbers, at, strict=True)])
        turned = moved.compose(
            [
                (x, sum((c * y for c, y in zip(row, numbers, strict=True)), moved.ring.zero))
                for x, row in zip(numbers, cov, strict=True)
            ]
        )
        # p(cov d) p of the part p of each degree, of which turns keep the degree.
        for powers, value in moved.terms():
            energy = exact(value * turned.get(powers, 0) * prod(map(factorial, powers)))
            energies[sum(powers)] = energies.get(sum(powers), Fraction(0)) + energy
    top = max((degree for degree, energy in energies.items() if energy), default=0)
    if top == 0:
        raise EvaluationError(
            "the polynomial is constant under this law; its coefficient is a ratio to Tr Cov_f."
        )
    return Chaos(tuple(energies.get(degree, Fraction(0)) for degree in range(top + 1)))


def grid_chaos(
    function: Callable[[Any], Any], law: Gaussian | None = None, *, degree: int = 24, nodes: int = 0
) -> Chaos:
    """The chaos of a smooth function of at most three inputs, by Gauss-Hermite quadrature.

    Args:
        function: ``function(x)``: inputs in rows to outputs in rows (or one number each).
        law: A Gaussian law of at most three numbers.
        degree: The last degree that is separated from the remainder.
        nodes: Nodes along each direction; by default twice the degree. The error is what half as
            many more change.

    Returns:
        The energy of each degree, what is left, and an error.

    Raises:
        UsageError: A law of more than three numbers, too few nodes, or outputs that are no rows.
        EvaluationError: Outputs that are not finite or do not vary.

    Source: Abramowitz, Stegun, Handbook of mathematical functions, 25.4.46 (Gauss-Hermite).

    Example:
        >>> chaos = grid_chaos(lambda x: np.sin(x))
        >>> bool(abs(chaos.nlc.value - np.tanh(1) ** -0.5) < 1e-12)
        True
    """
    law = Gaussian() if law is None else law
    degree = checks.whole(degree, "degree", least=1)
    nodes = checks.whole(nodes, "nodes", least=0) or 2 * degree
    if law.dimension > 3:
        raise UsageError(f"a grid takes at most 3 inputs; the law has {law.dimension}.")
    if nodes <= degree:
        raise UsageError(f"degree {degree} needs more than {nodes} nodes.")
    more = nodes + (nodes + 1) // 2
    if more**law.dimension > MOST_NODES:
        raise UsageError(
            f"{more} nodes along {law.dimension} directions are too many.", hint="Lower nodes=."
        )
    first, second = (_projected(function, law, degree, count) for count in (nodes, more))
    varying = float(second[1:].sum())
    if not varying > (16 * EPS) ** 2 * second[0]:
        raise EvaluationError("the function is constant under this law.")
    rounding = EPS * (64 * varying + sqrt(varying * second[0]))
    error = float(np.abs(second - first)[1:].max()) + rounding
    energies, remainder = second[:-1], float(second[-1])
    return Chaos(tuple(float(part) for part in energies), remainder, error)


def _heated(poly: Any, cov: Sequence[Sequence[Any]]) -> Any:
    """exp(D/2) f with D = sum cov_ab d_a d_b: the averages of f around each point."""
    out, term, order, numbers = poly, poly, 0, poly.ring.gens
    while term:
        order += 1
        parts = (
            c * term.diff(x).diff(y)
            for x, row in zip(numbers, cov, strict=True)
            for y, c in zip(numbers, row, strict=True)
            if c
        )
        term = sum(parts, poly.ring.zero).mul_ground(fraction(Fraction(1, 2 * order)))
        out = out + term
    return out


def _projected(function: Callable[[Any], Any], law: Gaussian, degree: int, nodes: int) -> Array:
    """Energies of degrees 0 to ``degree``, and what is left of the average of |f|^2."""
    places, weights = rules.normal(nodes)
    size = law.dimension
    grid = np.stack(np.meshgrid(*[places] * size, indexing="ij"), axis=-1).reshape(-1, size)
    table = np.prod(
        np.stack(np.meshgrid(*[weights] * size, indexing="ij"), axis=-1).reshape(-1, size), axis=1
    )
    factor = law.factor(np.random.default_rng(0))
    values = Code(function, size).values(law.centre + grid @ factor.T)
    basis = rules.hermite(places, degree) * weights
    shape = (nodes,) * size
    energies = np.zeros(degree + 2)
    degrees = sum(np.meshgrid(*[np.arange(degree + 1)] * size, indexing="ij"))
    for column in values.T:
        # The mean is taken out first, so that it does not drown the rest.
        mean = float(table @ column)
        found = (column - mean).reshape(shape)
        for _ in range(size):
            found = np.tensordot(found, basis, axes=(0, 1))
        own = np.bincount(np.ravel(degrees), np.ravel(found) ** 2)[: degree + 1]
        left = float(table @ (column - mean) ** 2) - float(own.sum())
        energies += [mean**2, *own[1:], left]
    return energies
