"""The weights of a square layer in a Tensor Program: products of start matrices, by family."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from statistics import NormalDist

from tpcalc.activations.entries import lookup
from tpcalc.errors import StudyError
from tpcalc.exponents import as_ex
from tpcalc.functions import Fn, Var
from tpcalc.functions.expr import substitute
from tpcalc.meanfield.operations import Number
from tpcalc.program.nodes import Dim, Family, Input, LinComb, MatMul, Nonlin, Ref, Scale, members
from tpcalc.program.program import Builder

HALF = as_ex(Fraction(1, 2))
KEEP = Fn(Var(0) * Var(1), 2)


@dataclass(frozen=True, slots=True)
class _Factor:
    """A start matrix of entries of mean square 1, over the root of n."""

    matrix: Ref
    transpose: bool

    def times(self, builder: Builder, vector: Ref, number: float = 1.0) -> Ref:
        product = builder.add(
            Scale(builder.add(MatMul(self.matrix, vector, self.transpose)), -HALF)
        )
        return builder.add(LinComb((number,), (None,), (product,)))


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights as factors, the first one nearest to the vector.

    Args:
        builder: The program so far.
        factors: Start matrices with their scales.
        mask: A vector of zeros and ones that the vector is multiplied by first.
        scale: A number, the standard deviation of the weights.
    """

    builder: Builder
    factors: tuple[_Factor, ...]
    mask: Ref | None
    scale: float

    @classmethod
    def of(
        cls,
        builder: Builder,
        name: str,
        variance: Number,
        family: str,
        rank: Number | None = None,
    ) -> Weights:
        """The weights of one layer, as new start matrices.

        Args:
            builder: The program so far.
            name: The name of the layer.
            variance: sigma^2.
            family: ``"gaussian"``, ``"orthogonal"``, ``"gaussian-gaussian"`` or ``"padded"``.
            rank: The rank over the width; None: full.

        Example:
            >>> builder = Builder()
            >>> found = Weights.of(builder, "W1", 2.0, "gaussian", 0.5)
            >>> len(found.factors)
            2
        """
        dim, scale = "n", sqrt(variance)

        def factor(part: str, shape: tuple[str, str], law: str, *, over: bool = False) -> _Factor:
            return _Factor(builder.add(Input(Family(f"{name}{part}", shape, law=law))), over)

        haar = "gaussian" if family in ("gaussian", "gaussian-gaussian") else "orthogonal"
        if rank is None:
            return cls(builder, (factor("", (dim, dim), haar),), None, scale)
        inner = dimension(builder, rank)
        if family == "padded":
            mask = None if rank == 1 else _mask(builder, f"{name}mask", dim, rank)
            return cls(builder, (factor("", (dim, dim), "orthogonal"),), mask, scale)
        law = "gaussian" if family == "gaussian-gaussian" else "orthogonal"
        left = factor("C", (dim, inner), law)
        if family == "orthogonal":
            right = factor("V", (dim, inner), law, over=True)
        else:
            right = factor("A", (inner, dim), "gaussian")
        return cls(builder, (right, left), None, scale)

    def times(self, vector: Ref) -> Ref:
        """W x."""
        if self.mask is not None:
            vector = self.builder.add(Nonlin(KEEP, (self.mask, vector)))
        for place, factor in enumerate(self.factors):
            vector = factor.times(self.builder, vector, self.scale if place == 0 else 1.0)
        return vector


def dimension(builder: Builder, ratio: Number) -> str:
    """The name of the dimension that is ``ratio`` n, declared where it is new.

    Example:
        >>> dimension(Builder(), Fraction(1, 4))
        'd1_4'
    """
    if ratio == 1:
        return "n"
    share = Fraction(ratio).limit_denominator(10**9)
    name = f"d{share.numerator}_{share.denominator}"  # one name for 0.25 and 1/4
    if not share or abs(share - Fraction(ratio)) > Fraction(ratio) / 10**6:
        raise StudyError(
            f"a dimension of {float(ratio):g} n has no name of its own in a program.",
            hint="Give a Fraction of small numbers.",
        )
    builder.dim(Dim(name, share))
    return name


def gaussian_vectors(
    builder: Builder, name: str, dim: str, cov: tuple[tuple[float, ...], ...]
) -> list[Ref]:
    """Start vectors with Gaussian coordinates.

    Example:
        >>> len(gaussian_vectors(Builder(), "x", "n", ((1.0, 0.5), (0.5, 1.0))))
        2
    """
    return [builder.add(cell) for cell in members(Family.group(name, dim, (0.0,) * len(cov), cov))]


def _mask(builder: Builder, name: str, dim: str, share: Number) -> Ref:
    """Ones on a share of the coordinates: where a Gaussian vector lies below its quantile."""
    (drawn,) = gaussian_vectors(builder, name, dim, ((1.0,),))
    below = NormalDist().inv_cdf(float(share)) - Var(0)
    step = substitute(lookup("step").fn.expr, {Var(0): below})
    return builder.add(Nonlin(Fn(step, 1), (drawn,)))
