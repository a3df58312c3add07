"""What is drawn at random under one name, and the mark that makes it a parameter or noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt, sqrt
from typing import Any

from tpcalc.errors import ProgramError
from tpcalc.exponents import Ex
from tpcalc.functions.numbers import Number, is_finite
from tpcalc.program.along import along_of
from tpcalc.program.laws import LAWS
from tpcalc.program.types import Axes, Type, check_axes

NOISE = "noise"
# What a parameter is, and how many width axes it has.
ROLES = {
    "input": (1,),
    "hidden": (2,),
    "readout": (1,),
    "bias": (0, 1),
    "finite": (0,),
    NOISE: (0, 1),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A trained input: where it stands in its network; or one that is drawn anew for every copy."""

    label: str  # the name of what it belongs to; the weights of a linear map and its bias share one
    # "input" from a finite side to the width, "hidden" from width to width, "readout" from the
    # width to a finite side, "bias" added or multiplied, "finite" between finite sides; "noise":
    # not trained, drawn anew for every input and step
    role: str
    layer: int  # whose exponents it has in a table over layers, from 1
    rate: Number = Fraction(1)  # a factor of its learning rate
    # the standard deviation of its entries at the start where that is written as a factor in front
    # of it; 0: it starts at 0
    start: Number = Fraction(1)
    group: str = ""  # a name that it shares with others, for settings of their training
    # the power of n of these entries as the user writes it; None: the parameterization says it
    init: Ex | None = None
    speed: Ex = Ex()  # a power of n that multiplies its learning rate
    whole: str = ""  # the fused parameter that it is a part of; empty: it is none

    @property
    def at_zero(self) -> bool:
        """Whether it starts at 0."""
        return self.start == 0

    @property
    def trained(self) -> bool:
        """Whether it is a parameter."""
        return self.role != NOISE

    @property
    def keeping(self) -> Ex:
        """The power of 1 / n in front of it with which its map keeps sizes."""
        return Ex.number(Fraction(1, 2)) if self.role in ("hidden", "readout") else Ex()

    @property
    def bias(self) -> bool:
        """Whether it has the exponents of biases."""
        return self.role == "bias"


def check_mark(mark: Mark, widths: int, where: str) -> None:
    """Check that a mark is one."""
    if mark.role not in ROLES:
        raise ProgramError(f"a parameter is {', '.join(ROLES)}, not {mark.role!r}.", where=where)
    if widths not in ROLES[mark.role]:
        kinds = " or ".join(("a number", "a vector", "a matrix")[axes] for axes in ROLES[mark.role])
        raise ProgramError(f"a parameter that is {mark.role!r} is {kinds}.", where=where)
    if mark.group in ROLES:
        raise ProgramError(
            f"the group of {mark.label!r} is called {mark.group!r}, as a role is.",
            where=where,
            hint=f"Take a name other than {', '.join(ROLES)}.",
        )
    numbers = is_finite(mark.rate) and is_finite(mark.start) and mark.start >= 0
    if not mark.label or mark.layer < 1 or not numbers:
        raise ProgramError(
            "a parameter has a label, a layer from 1, a finite rate and a deviation from 0, not "
            f"{mark.label!r}, {mark.layer}, {mark.rate}, {mark.start}.",
            where=where,
        )


AVERAGE = "the average over the batch"


@dataclass(frozen=True, slots=True)
class Family:
    """A random array: iid over its width axes, Gaussian over its finite ones.

    Without a width axis it is a random number, with one a start vector, with two a random matrix;
    with finite axes a block of these, whose cells are counted in the order of the axes.
    """

    name: str  # its name; one name stands for one random object
    width: tuple[str, ...]  # its width axes
    axes: Axes = ()  # its finite axes
    law: str = "gaussian"  # "gaussian", or of a matrix another row of program/laws
    # one number for each cell; () is 0. Matrices have mean 0 and variance 1.
    mean: tuple[Number, ...] = ()
    # the covariance between cells (of one coordinate), rows as tuples. None: identity.
    cov: tuple[tuple[Number, ...], ...] | None = None
    # how far the smallest eigenvalue of the covariance that was given lies below 0, where rounding
    # of the data put it and cov is the nearest covariance. Not part of equality.
    moved: float = field(default=0.0, compare=False, repr=False)
    mark: Mark | None = None  # of a parameter of a network, where it stands there
    # in a block that is repeated along the depth a law of program/along: how what is drawn in one
    # repetition depends on the others. Empty: it is one for all of them.
    along: str = ""

    @staticmethod
    def group(
        name: str,
        dim: str,
        mean: tuple[Number, ...],
        cov: tuple[tuple[Number, ...], ...] | None = None,
        moved: float = 0.0,
    ) -> Family:
        """Start vectors with one mean each; several have one axis ``k``."""
        axes = (("k", len(mean)),) if len(mean) != 1 else ()
        return Family(name, (dim,), axes, mean=mean, cov=cov, moved=moved)

    @staticmethod
    def scalar(name: str, mean: Number = 0, std: Number = 1) -> Family:
        """A random number N(mean, std^2)."""
        if std < 0:
            raise ProgramError(f"the standard deviation of {name!r} is {std}, which is negative.")
        return Family(name, (), mean=(mean,), cov=((std * std,),))

    def __hash__(self) -> int:  # a covariance of many cells is hashed by each of its members
        return hash((self.name, self.width, self.axes))

    @property
    def dim(self) -> str:
        """The dimension class of start vectors, or of the rows of a matrix."""
        return self.width[0]

    @property
    def size(self) -> int:
        """The number of cells."""
        found = 1
        for _, size in self.axes:
            found *= size
        return found

    @property
    def type(self) -> Type:
        """The type of the whole block."""
        return Type(self.width, self.axes)

    @property
    def means(self) -> tuple[Number, ...]:
        """The mean of each cell."""
        return self.mean or (0,) * self.size

    @property
    def std(self) -> Number:
        """The standard deviation of a family of one cell; exact where it is rational."""
        ((variance,),) = self.cov or ((1,),)
        if isinstance(variance, int | Fraction):
            exact = Fraction(variance)
            root = Fraction(isqrt(exact.numerator), isqrt(exact.denominator))
            if root * root == exact:
                return root
        return sqrt(variance)

    @property
    def averages(self) -> bool:
        """Whether it stands for the average over a batch, of which a program has one input."""
        return self.name.startswith(AVERAGE)

    def part(self, index: int) -> Family:
        """One of several matrices or random numbers, as a family of its own."""
        name = self.cell_name(index if self.axes else None)
        if self.width:
            return Family(name, self.width, law=self.law, mark=self.mark, along=self.along)
        row = (0,) * self.size if self.cov is None else self.cov[index]
        if any(value != 0 for other, value in enumerate(row) if other != index):
            raise ProgramError(
                f"the random numbers {self.name!r} are correlated.",
                hint="Draw independent ones, and write the correlated ones as combinations of "
                "them.",
            )
        variance = 1 if self.cov is None else row[index]
        mean = (self.mean[index] if self.mean else 0,)
        return Family(name, (), mean=mean, cov=((variance,),), mark=self.mark)

    def cell_name(self, cell: int | None) -> str:
        """The name of a cell: ``x[1]``, or ``x`` of a family of one."""
        return self.name if cell is None else f"{self.name}[{cell}]"


def check_family(family: Family, dims: Sequence[str]) -> None:
    """Check that a family is a random array."""
    where = f"the input {family.name!r}"
    if not family.name:
        raise ProgramError("an input needs a name.", where=where)
    for dim in family.width:
        if dim not in dims:
            raise ProgramError(
                f"the dimension class {dim!r} is not declared.",
                where=where,
                hint=f"Declared: {', '.join(dims) or 'none'}.",
            )
    if len(family.width) > 2:
        raise ProgramError(
            f"the type {family.type} has {len(family.width)} width axes; a matrix has two.",
            where=where,
        )
    check_axes(family.axes, f"the type {family.type}", where)
    if family.law not in LAWS:
        raise ProgramError(
            f"there is no law {family.law!r} of matrices.",
            where=where,
            hint=f"Laws: {', '.join(LAWS)}.",
        )
    if family.along:
        _check_along(family, where)
    if family.law != "gaussian" and len(family.width) != 2:
        raise ProgramError(
            f"the law {family.law!r} is one of matrices, and other inputs are Gaussian: limits "
            "depend on the law of their coordinates.",
            where=where,
            hint="Write a function of a Gaussian vector.",
        )
    if len(family.width) == 2 and (family.mean or family.cov is not None):
        raise ProgramError("the entries of a matrix have mean 0 and variance 1.", where=where)
    _check_moments(family, where)
    if family.mark is not None:
        check_mark(family.mark, len(family.width), where)


def _check_along(family: Family, where: str) -> None:
    try:
        law = along_of(family.along)
    except ProgramError as error:
        raise ProgramError(error.message, where=where, hint=error.hint) from None
    if not law.fresh and (family.law != "gaussian" or any(family.mean) or not family.width):
        raise ProgramError(
            f"what is {law} along the depth is a Gaussian matrix, or vectors of mean 0.",
            where=where,
            hint="Other laws are of repetitions that are independent: along fresh.",
        )


def _check_moments(family: Family, where: str) -> None:
    size, mean, cov = family.size, family.mean, family.cov or ()
    if mean and len(mean) != size:
        raise ProgramError(f"{size} cells have {len(mean)} means.", where=where)
    if family.cov is not None and (len(cov) != size or any(len(row) != size for row in cov)):
        raise ProgramError(f"the covariance must be {size} x {size}.", where=where)
    if not all(is_finite(value) for row in (mean, *cov) for value in row):
        raise ProgramError("a mean or covariance is not a finite number.", where=where)
    for i, row in enumerate(cov):
        for j in range(i):
            if row[j] != cov[j][i]:
                raise ProgramError(f"the covariance is not symmetric at ({i}, {j}).", where=where)
    if cov:
        _check_semidefinite(cov, where)


def _check_semidefinite(cov: Sequence[Sequence[Any]], where: str) -> None:
    import numpy as np

    values = np.array(cov, dtype=float)
    lowest = float(np.linalg.eigvalsh(values)[0])
    # Covariances computed in floats from repeated inputs have eigenvalues of either sign near 0.
    if lowest < -1e-8 * float(np.abs(values).max()):
        raise ProgramError(
            f"the covariance has the negative eigenvalue {lowest:.3g}: no random vector has it.",
            where=where,
            hint="Check the entries; a covariance of rows x_i is x_i . x_j.",
        )
