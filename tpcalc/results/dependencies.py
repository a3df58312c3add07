"""What the limit of each quantity is a function of, and what the initial weights still add to it.

Names of Gaussians: ``hat W2 x[1,0,0]`` is the
Gaussian part of the product of a matrix with a vector, ``W4`` a start vector, ``h[1,0,0]`` a
Gaussian sum of start vectors, ``G(W4, x[3,0,0])`` a scalar that stays random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tpcalc.results.estimate import Estimate
from tpcalc.results.exponent import UNKNOWN, Exponent
from tpcalc.results.tables import Provenance, SlopeRow
from tpcalc.shown import Shown


@dataclass(frozen=True, slots=True)
class GaussianRow:
    """A Gaussian that limits are functions of.

    Args:
        name: As the rows of the table name it.
        kind: ``"start"`` (start vectors and their sums), ``"hat"`` (Gaussian part of a product),
            ``"scalar"`` (a scalar that stays random) or ``"average"`` (an average around an
            expectation of 0, whose law is not computed).
        law: What it is made of.

    Example:
        >>> GaussianRow("hat W2 x[1,0,0]", "hat", "Gaussian part of W2 x[1,0,0]").kind
        'hat'
    """

    name: str
    kind: Literal["start", "hat", "scalar", "average"]
    law: str


@dataclass(frozen=True, slots=True)
class DependencyRow:
    """The Gaussians that one limit is a function of.

    Args:
        name: Which quantity; its limit Z is that of the quantity over n**n.
        n: Its growth exponent.
        status: ``"exact"``: Z is not 0, so that all of its absolute moments are positive;
            ``"upper"``: it may be 0.
        vector: Whether it is a vector; a scalar that does not stay random depends on nothing.
        on: Names of Gaussians: Z is a function of these alone.
        doubtful: Those among them that enter through a coefficient which may be 0 only.
        degree: Z is bounded by a polynomial of this degree in them, so that all of its moments are
            finite; None where no such bound is known.
        note: Why there is no set, or what to know of it.

    Example:
        >>> plain = Exponent.number(0)
        >>> row = DependencyRow("x[1,0,0]", plain, "exact", True, ("h[1,0,0]",), (), "1")
        >>> row.finite, row.positive
        (True, True)
    """

    name: str
    n: Exponent
    status: str
    vector: bool
    on: tuple[str, ...]
    doubtful: tuple[str, ...] = ()
    degree: str | None = None
    note: str = ""

    @property
    def finite(self) -> bool:
        """Whether all moments of Z are provably finite."""
        return self.degree is not None

    @property
    def positive(self) -> bool:
        """Whether E|Z|^r > 0 is known, for every r."""
        return self.status == "exact" and not self.n.is_zero

    @property
    def known(self) -> bool:
        """Whether ``on`` is complete; where it is not, ``note`` says why."""
        return self.n != UNKNOWN and (bool(self.on) or not self.note)


@dataclass(frozen=True, slots=True)
class DependencyTable(Shown):
    """Dependency sets of the outputs of a program.

    Args:
        rows: In the order of the outputs.
        gaussians: What they are functions of.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.

    Example:
        >>> plain = Exponent.number(0)
        >>> row = DependencyRow("x[1,0,0]", plain, "exact", True, ("h[1,0,0]",), (), "1")
        >>> DependencyTable((row,), (), Provenance("0", "ab")).rows[0].on
        ('h[1,0,0]',)
    """

    rows: tuple[DependencyRow, ...]
    gaussians: tuple[GaussianRow, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()

    __repr__ = Shown.__str__


@dataclass(frozen=True, slots=True)
class Independence(Shown):
    """Whether two limits are independent, and what decides.

    Args:
        first: One name.
        second: The other.
        proved: Whether they are provably independent.
        shared: Pairs of Gaussians, of the first and of the second, that may be correlated.
        note: Why nothing can be said, where a set is not known.

    Example:
        >>> print(Independence("h[2,1,0]", "dx[2,0,0]", False, (("W4", "W4"),)))
        h[2,1,0] and dx[2,0,0]: not provably independent
        - both depend on W4
        >>> bool(Independence("h[2,1,0]", "h[3,1,0]", True))
        True
    """

    first: str
    second: str
    proved: bool
    shared: tuple[tuple[str, str], ...] = ()
    note: str = ""

    def __bool__(self) -> bool:
        return self.proved


@dataclass(frozen=True, slots=True)
class CorrectionTerm:
    """One term c Z^y of the correction of a product with a random matrix.

    Args:
        vector: The name of y.
        zero: Whether c is 0 by symmetry.
        coefficient: An estimate of c, the power of n of y taken out; None where it is 0 or was not
            estimated.
        doubtful: Whether c may be 0.

    Example:
        >>> print(CorrectionTerm("dh[2,0,0]", True))
        0 * dh[2,0,0]
    """

    vector: str
    zero: bool
    coefficient: Estimate | None = None
    doubtful: bool = False

    def __str__(self) -> str:
        if self.zero:
            return f"0 * {self.vector}"
        if self.coefficient is None:
            return f"? * {self.vector}"
        found = self.coefficient
        spread = f", random, sd {found.std:.3g}" if found.std is not None else ""
        mark = ", may be 0" if self.doubtful else ""
        return f"({found.value:.4g} ± {found.stderr:.1e}{spread}{mark}) * {self.vector}"


@dataclass(frozen=True, slots=True)
class CorrectionRow:
    """The correction of one product: what its vector knows of the matrix already.

    Args:
        name: ``"W2 x[1,1,0]"``.
        matrix: The matrix.
        transpose: Whether its transpose multiplies.
        vector: The name of the vector.
        step: The training step, where the name of the vector tells it.
        terms: One for each earlier product with the other side that the vector depends on.
        note: Why nothing is known.

    Example:
        >>> row = CorrectionRow("W2 x[1,0,0]", "W2", False, "x[1,0,0]", 0, ())
        >>> row.vanishes, str(row)
        (True, 'W2 x[1,0,0]: none')
    """

    name: str
    matrix: str
    transpose: bool
    vector: str
    step: int | None
    terms: tuple[CorrectionTerm, ...]
    note: str = ""

    @property
    def vanishes(self) -> bool:
        """Whether the correction is provably 0."""
        return not self.note and all(term.zero for term in self.terms)

    @property
    def text(self) -> str:
        """The correction as a formula, or why nothing is known of it."""
        shown = [str(term) for term in self.terms if not term.zero]  # 0 by symmetry is none
        return self.note or " + ".join(shown) or "none"

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


@dataclass(frozen=True, slots=True)
class CorrectionTable(Shown):
    """The corrections of all products of a program with random matrices.

    Args:
        rows: In the order of computation.
        provenance: What it was computed from and with.

    Example:
        >>> row = CorrectionRow("W2 x[1,0,0]", "W2", False, "x[1,0,0]", 0, ())
        >>> print(*CorrectionTable((row,), Provenance("0", "ab")).rows)
        W2 x[1,0,0]: none
    """

    rows: tuple[CorrectionRow, ...]
    provenance: Provenance

    __repr__ = Shown.__str__


@dataclass(frozen=True, slots=True)
class InitialWeightRow:
    """What an initial matrix still adds to a vector.

    Args:
        name: The product: ``"W2 x[1,1,0]"``.
        part_of: The vector that it is a term of: ``"h[2,1,0]"``.
        matrix: The matrix.
        transpose: Whether its transpose multiplies.
        layer: Of ``part_of``, where its name tells it.
        step: The training step, likewise.
        n: The growth exponent of the term over that of the vector; None where it is not known.
        status: ``"exact"``, or ``"upper"`` where n is an upper bound.
        vanishes: Whether the term vanishes beside the vector; None where it is not decided.
        degree: The normalised product is bounded by a polynomial of this degree in Gaussians of
            finite variance, so that its second moment is finite; None where that is not known.
        reason: What decided the sizes.

    Example:
        >>> row = InitialWeightRow(
        ...     "W2 x[1,1,0]", "h[2,1,0]", "W2", False, 2, 1, Exponent.of("-1/2"), "exact", True,
        ...     "1", "",
        ... )
        >>> row.certified
        True
    """

    name: str
    part_of: str
    matrix: str
    transpose: bool
    layer: int | None
    step: int | None
    n: Exponent | None
    status: str
    vanishes: bool | None
    degree: str | None
    reason: str

    @property
    def certified(self) -> bool:
        """Whether it vanishes, by a power of n times what has a finite second moment."""
        return self.vanishes is True and self.degree is not None


@dataclass(frozen=True, slots=True)
class InitialWeightTable(Shown):
    """What the initial matrices add to each vector of a program.

    Args:
        rows: In the order of the outputs.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.

    Example:
        >>> row = InitialWeightRow(
        ...     "W2 x[1,1,0]", "h[2,1,0]", "W2", False, 2, 1, Exponent.of("-1/2"), "exact", True,
        ...     "1", "",
        ... )
        >>> InitialWeightTable((row,), Provenance("0", "ab")).rows[0].vanishes
        True
    """

    rows: tuple[InitialWeightRow, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()

    __repr__ = Shown.__str__


LimitRelation = Literal[
    "same graph", "both 0", "another power", "equal within errors", "different", "not compared"
]


@dataclass(frozen=True, slots=True)
class EquivalenceRow:
    """One output of two programs.

    Args:
        name: The output.
        gaps: For each width the largest difference over the networks, relative to the size of the
            output (root mean square over networks): both programs have the same initial weights.
        equal: Whether all of them are at rounding level; None where no network was run.
        slope: The log-log slope in n of the relative difference, where there is one.
        relation: What is known of the two limits; ``"both 0"`` says nothing of their
            rates, ``"another power"`` that a vector has another size, n^e, in the two.
        left: The limit of the first program, where it was computed; of a vector E Z^2, or E Z where
            that is further apart.
        right: That of the second.
        z: Their distance in combined standard errors, as of ``Estimate.z``.

    Example:
        >>> EquivalenceRow("f[1,0]", (1e-15,), True, None, "same graph").relation
        'same graph'
    """

    name: str
    gaps: tuple[float, ...]
    equal: bool | None
    slope: SlopeRow | None
    relation: LimitRelation
    left: Estimate | None = None
    right: Estimate | None = None
    z: float | None = None


@dataclass(frozen=True, slots=True)
class Equivalence(Shown):
    """Whether two programs are the same.

    Args:
        rows: The outputs that both have.
        widths: The widths of the networks.
        seeds: How many networks of each.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.

    Example:
        >>> row = EquivalenceRow("f[1,0]", (1e-2, 5e-3), False, None, "same graph")
        >>> found = Equivalence((row,), (64, 256), 1, Provenance("0", "ab"))
        >>> found.at_finite_width, found.in_the_limit
        (False, 'same graph')
    """

    rows: tuple[EquivalenceRow, ...]
    widths: tuple[int, ...]
    seeds: int
    provenance: Provenance
    notes: tuple[str, ...] = ()

    @property
    def at_finite_width(self) -> bool | None:
        """Whether all outputs of networks of one draw are equal up to rounding; None: not run."""
        if any(row.equal is None for row in self.rows):
            return None
        return all(row.equal for row in self.rows)

    @property
    def in_the_limit(self) -> LimitRelation:
        """The weakest that is known of the limits of the outputs."""
        order: tuple[LimitRelation, ...] = (
            "different",
            "another power",
            "not compared",
            "equal within errors",
        )
        found = {row.relation for row in self.rows}
        return next((relation for relation in order if relation in found), "same graph")

    def __getitem__(self, name: str) -> EquivalenceRow:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    __repr__ = Shown.__str__
