"""Answers about exponents: orders of size, verdicts on training, learning rates, phase diagrams.

The field ``n`` holds a growth exponent e: size ~ n^e; exponents that are asked for or solved are
texts, as formulas print them (``"1/2 - 3*a"``). Names are read by ``Name``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tpcalc.results.estimate import Estimate
from tpcalc.results.exponent import PLAIN, Exponent
from tpcalc.results.first_order import StableEdit, StableRate
from tpcalc.results.tables import Explosion, Provenance
from tpcalc.shown import Shown


@dataclass(frozen=True, slots=True)
class RealPower:
    """A power of L that is a real number of the functions in a block, no fraction.

    Args:
        formula: What it is: G and H are by which part of themselves a block changes the mean
            squares of the stream and of its adjoint, both times one power of that of the stream.
        value: The number.
        status: As of a row: ``"proved"`` or ``"derived"``.

    Example:
        >>> from tpcalc.results import Estimate, Method
        >>> made = Estimate(0.589, 1e-12, Method.QUADRATURE)
        >>> RealPower("(1/2) H/G = (1/2) 0.464 / 0.394", made, "proved").value.value
        0.589
    """

    formula: str
    value: Estimate
    status: str


@dataclass(frozen=True, slots=True)
class OrderRow:
    """The order of size of one quantity: a power of each base.

    Args:
        name: Which quantity. Of L blocks ``x[1]`` is the stream in the forward pass of step 1,
            ``dx[1]`` its adjoint, ``h[l,1]`` a preactivation.
        n: The growth exponent of a coordinate's size in the width.
        status: ``"exact"``, or ``"upper"`` where n is an upper bound. Of a power of L ``"proved"``,
            ``"heuristic"``, ``"derived"`` (without proof), or ``"bound"``: L is an upper bound.
        reason: What decided it.
        slope: The log-log slope measured at finite widths, where it was.
        low: Lower end of its 95 % interval.
        high: Upper end of it.
        note: Why there is no slope, or what to know of it.
        agrees: Whether the slope agrees with n at 95 %, all slopes of the table counted; None
            where there is none.
        L: Of L blocks the growth exponent in the depth, after the width; none where it is no
            fraction. None: of a network whose depth is a number.
        part: Of L blocks which part of it: ``"noise"``, a random walk over the blocks; a drift,
            what all blocks add alike, with what it depends on; "" for all of it.
        form: Of what L is the exponent: ``"power"``, of the size; ``"grows"`` or ``"shrinks"``, of
            the logarithm of a size that grows or shrinks exponentially.
        real: The growth exponent in the depth where it is no fraction.

    Example:
        >>> str(OrderRow("h[2,0,0]", Exponent.of("-1/2"), "exact").n)
        '-1/2'
        >>> print(OrderRow("x[0]", status="proved", L=Exponent.number(0), part="noise"))
        x[0] (noise) -> n^(0) L^(0) (proved)
        >>> OrderRow("x[0]", status="proved", L=Exponent.of("1/2"), form="grows").size
        'exp(L^(1/2))'
    """

    name: str
    n: Exponent = PLAIN
    status: str = "exact"
    reason: str = ""
    slope: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""
    agrees: bool | None = None
    L: Exponent | None = None
    part: str = ""
    form: str = "power"
    real: RealPower | None = None

    @property
    def size(self) -> str:
        """The size as a function of L, or of n where the depth is a number; factors left out."""
        if self.real is not None:
            return f"L^({self.real.value.value:.6g})"
        if self.form != "power":
            return f"exp({'-' * (self.form == 'shrinks')}L^({self.L}))"
        return self.n.size("n") if self.L is None else self.L.size("L")

    def __str__(self) -> str:
        part = f" ({self.part})" if self.part else ""
        most = "<= " if self.status in ("upper", "bound") else ""
        sizes = self.size
        if self.L is not None:
            sizes = f"n^({self.n}) {'L^(0)' if sizes == '1' else sizes}"
        return f"{self.name}{part} -> {most}{sizes} ({self.status})"


@dataclass(frozen=True, slots=True)
class OrderTable(Shown):
    """Orders of the outputs of a program.

    Args:
        rows: In the order of the outputs, up to the step of the first explosion. Of L blocks the
            parts of the stream pass by pass; then ``h[...,t]`` preactivations of a block,
            ``dW_x[...,t]`` what the updates of a matrix add, next to its product.
        region: Conditions on the symbols, all of which hold where the formulas do.
        point: The values of the symbols at which comparisons were decided.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
        exploded: The first explosion of a training run; later steps have no rows.

    Example:
        >>> row = OrderRow("f[0,0]", Exponent.of("1/2 - a"), "exact")
        >>> table = OrderTable((row,), ("a > 1/2",), (("a", "1"),), Provenance("0", "ab"))
        >>> table.region
        ('a > 1/2',)
    """

    rows: tuple[OrderRow, ...]
    region: tuple[str, ...]
    point: tuple[tuple[str, str], ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()
    exploded: Explosion | None = None

    def __getitem__(self, name: str) -> OrderRow:
        """The order of a quantity; of one of several parts the largest.

        Args:
            name: Its name.

        Raises:
            KeyError: It is not there.
        """
        return {row.name: row for row in reversed(self.rows)}[name]


@dataclass(frozen=True, slots=True)
class SolvedStep:
    """Learning-rate exponents of one step, eta n^(-c_l).

    Args:
        step: The step t that updates the weights of time t.
        c: Of the weights of layers 1..L+1 that are trained; ``"any"``: the update is 0 at any rate.
        bias_c: Of their biases; empty if there are none.

    Example:
        >>> SolvedStep(0, ("-2", "-5/2", "-5/2", "-2")).c[1]
        '-5/2'
    """

    step: int
    c: tuple[str, ...]
    bias_c: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SolvedParameter:
    """Exponents of a parameter W as it is stored, multiplied by nothing: what W = n^(-a) w is.

    Args:
        name: The label of its map.
        role: ``"input"``, ``"hidden"``, ``"readout"``, ``"bias"``, ``"finite"``.
        b: Of its standard deviation at the start, n^(-b); ``"oo"``: it starts at 0.
        c: Of its learning rates eta n^(-c), step by step.

    Example:
        >>> SolvedParameter("2", "hidden", "1/2", ("1", "1")).words
        'hidden 2: b = 1/2, c = 1'
    """

    name: str
    role: str
    b: str
    c: tuple[str, ...]

    @property
    def rate(self) -> str:
        """The exponents c in print: one where they are the same at all steps."""
        return ", ".join(self.c if len(set(self.c)) > 1 else self.c[:1])

    @property
    def words(self) -> str:
        """All of it in a line."""
        return f"{self.role} {self.name}: b = {self.b}, c = {self.rate}"


@dataclass(frozen=True, slots=True)
class Solution(Shown):
    """The learning-rate exponents at which every update contributes Theta(1).

    Args:
        steps: One entry for each step.
        region: Conditions on the symbols under which the formulas hold.
        point: The values of the symbols at which comparisons were decided.
        closed: Names with formulas in the depth L, where it is symbolic, or of multipliers.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
        names: What the powers of a step belong to, where these are no layers 1..L+1.
        bias_names: The same of biases.
        stored: The same exponents for parameters as they are stored.
        largest: The largest rates, the same at all steps, at which no first step grows.
        edits: Where first steps grow as it is, what to edit instead, the fewest lines first.

    Example:
        >>> steps = (SolvedStep(0, ("-1", "-1")),)
        >>> Solution(steps, (), (), (("c_1", "-(L + 1)/2"),), Provenance("0", "ab")).closed
        (('c_1', '-(L + 1)/2'),)
    """

    steps: tuple[SolvedStep, ...]
    region: tuple[str, ...]
    point: tuple[tuple[str, str], ...]
    closed: tuple[tuple[str, str], ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    bias_names: tuple[str, ...] = ()
    stored: tuple[SolvedParameter, ...] = ()
    largest: tuple[StableRate, ...] = ()
    edits: tuple[StableEdit, ...] = ()


@dataclass(frozen=True, slots=True)
class PhaseCell:
    """A piece of a phase diagram on which the verdict does not change.

    Args:
        dimension: 2 a polygon, 1 a wall, 0 a point (of two symbols; up to k of k symbols).
        verdict: As in ``Verdict``.
        conditions: Equations and inequalities that describe it.
        vertices: Its corners, in order around it, as rational coordinates; of two symbols.
        sample: A point in its interior, by name.
        fact: The first fact that decides its verdict.

    Example:
        >>> at = ((Fraction(1, 2), Fraction(0)),)
        >>> PhaseCell(0, "kernel", ("a = 1/2",), at, (("a", "1/2"),), "").dimension
        0
    """

    dimension: int
    verdict: str
    conditions: tuple[str, ...]
    vertices: tuple[tuple[Fraction, Fraction], ...]
    sample: tuple[tuple[str, str], ...]
    fact: str


@dataclass(frozen=True, slots=True)
class PhaseDiagram(Shown):
    """Every verdict over a box of symbols.

    Args:
        symbols: Their names; the first two are the axes of a picture.
        box: Name, lowest and highest value of each.
        cells: Polygons, walls and points.
        complete: Whether the cells cover the whole box.
        runs: How many points were decided.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.

    Example:
        >>> box = (("a", Fraction(0), Fraction(1)), ("c", Fraction(-1), Fraction(1)))
        >>> PhaseDiagram(("a", "c"), box, (), True, 0, Provenance("0", "ab")).complete
        True
    """

    symbols: tuple[str, ...]
    box: tuple[tuple[str, Fraction, Fraction], ...]
    cells: tuple[PhaseCell, ...]
    complete: bool
    runs: int
    provenance: Provenance
    notes: tuple[str, ...] = ()
