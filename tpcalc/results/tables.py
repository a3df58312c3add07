"""Tables of answers: plain records that reports, JSON and comparisons read; their provenance.

What results of a trained network are called, ``Name`` reads.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.errors import EvaluationError, LimitError, ScaleError, TpcalcError
from tpcalc.names import Name
from tpcalc.results.estimate import Estimate, Method
from tpcalc.results.exponent import NONE, PLAIN, Exponent
from tpcalc.shown import Shown
from tpcalc.sources import library_versions, own_version

_ERRORS: dict[str, type[TpcalcError]] = {
    kind.code: kind
    for base in (ScaleError, LimitError, EvaluationError)
    for kind in (*base.__subclasses__(), base)
}


@dataclass(frozen=True, slots=True)
class Formula(Shown):
    """A printed formula in four notations.

    Args:
        text: In letters alone.
        latex: Empty where it was not written, as the two below.
        mathml: For pages.
        html: For lines of text.
    """

    text: str
    latex: str = ""
    mathml: str = ""
    html: str = ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a result was computed from and with.

    Args:
        version: Of this package.
        program_digest: Of the program; empty where there is none.
        seed: Of all draws; None: nothing was drawn.
        settings: What was asked for besides, as words.
        libraries: Their versions.
        seconds: How long it took.
    """

    version: str
    program_digest: str
    seed: int | None = None
    settings: tuple[tuple[str, str], ...] = ()
    libraries: tuple[tuple[str, str], ...] = ()
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class ScalarRow:
    """The limit of one scalar.

    Args:
        name: What the output is called.
        estimate: The limit.
        n_power: The power of n taken out, 0 if none.
        formula: The limit as a formula, where it has one.
        note: How a limit that is exactly 0 by the powers of n is approached.
    """

    name: str
    estimate: Estimate
    n_power: Exponent = PLAIN
    formula: Formula | None = None
    note: str = ""

    def __float__(self) -> float:
        return float(self.estimate)


@dataclass(frozen=True, slots=True)
class VectorRow:
    """The limit variable Z of one vector, by its first two moments.

    Args:
        name: What the output is called.
        mean: E Z.
        second_moment: E Z^2.
        n_power: The power of n taken out, 0 if none.
        formula: Z as a formula, where it is short.
    """

    name: str
    mean: Estimate
    second_moment: Estimate
    n_power: Exponent = PLAIN
    formula: Formula | None = None


@dataclass(frozen=True, slots=True)
class Explosion:
    """The first step of a training run at which something grows with the width.

    Args:
        step: The step; 0 is the start.
        fact: What grows, and how.

    Example:
        >>> Explosion(1, "f[1,0] grows like n^(1/2)").text
        'After step 1 nothing is followed: something explodes there (f[1,0] grows like n^(1/2)).'
    """

    step: int
    fact: str

    @staticmethod
    def first(sizes: Iterable[tuple[str, Fraction]], read: Container[str]) -> Explosion | None:
        """The first quantity that grows, by step.

        Args:
            sizes: Names of quantities and their powers of n.
            read: Which kinds count; what is normalised before it is read may grow.
        """
        grown = [
            (own.step, f"{name} grows like n^({power})")
            for name, power in sizes
            if power > 0 and (own := Name.tabled(name)).word in read and own.step is not None
        ]
        return Explosion(*min(grown, key=lambda one: one[0])) if grown else None

    @property
    def text(self) -> str:
        """What becomes of later steps."""
        return f"After {self.when} nothing is followed: something explodes there ({self.fact})."

    @property
    def when(self) -> str:
        """Its step in words."""
        return f"step {self.step}" if self.step else "the start"

    def precedes(self, name: str) -> bool:
        """Whether a quantity belongs to a later step."""
        return (Name.tabled(name).step or 0) > self.step


@dataclass(frozen=True, slots=True)
class NotCovered:
    """An output without a limit in this calculus.

    Args:
        name: The output.
        node: Where the calculus ends: a node of the program, with the user's line.
        term: What stands there.
        reason: Why it is not covered.
        hint: What to do about it.
        code: Of the error that says so.
        vector: Whether the output is a vector.
        bound: All that is known of its size.
        n_power: The power of n with which it grows, where there is a limit after it is taken out.

    Example:
        >>> NotCovered("y", "%2 (y)", "nonlin {x0**(-1)} (%1)", "it has no mean.").text
        'not covered: %2 (y), nonlin {x0**(-1)} (%1): it has no mean.'
    """

    name: str
    node: str
    term: str
    reason: str
    hint: str = ""
    code: str = LimitError.code
    vector: bool = False
    bound: str = ""
    n_power: Exponent = NONE

    @property
    def text(self) -> str:
        """What stands in place of a number."""
        places = [part for part in (self.node, self.term) if part]
        parts = ("not covered", ", ".join(places), self._whole)
        return ": ".join(part for part in parts if part)

    @property
    def _whole(self) -> str:
        known = f" It is {self.bound}." if self.bound else ""
        return self.reason + known

    @property
    def error(self) -> TpcalcError:
        """The error that asking for this output alone is answered with."""
        within = f" ({self.term})" if self.term and not self.node else ""
        message = f"{self.name} is not covered{within}: {self._whole}"
        return _ERRORS[self.code](message, where=self.node or None, hint=self.hint or None)


@dataclass(frozen=True, slots=True)
class LimitTable(Shown):
    """All limits asked for, in the order of the program's outputs; then what has none.

    Args:
        scalars: Of scalars.
        vectors: Of vectors.
        provenance: What they were computed from and with.
        notes: What a reader should know besides.
        uncovered: Outputs without a limit.
        exploded: The first explosion of a training run.

    Example:
        >>> LimitTable((), (), Provenance("0", "ab")).exploded is None
        True
    """

    scalars: tuple[ScalarRow, ...]
    vectors: tuple[VectorRow, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()
    uncovered: tuple[NotCovered, ...] = ()
    exploded: Explosion | None = None


@dataclass(frozen=True, slots=True)
class FiniteRow:
    """One result at one width over all seeds.

    Args:
        name: What the output is called.
        statistic: ``"value"`` of a scalar; ``"mean"`` and ``"second_moment"`` are averages over
            the coordinates of a vector.
        width: n.
        values: One for each seed.
    """

    name: str
    statistic: str
    width: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FiniteTable(Shown):
    """A program run at finite widths with independent seeds.

    Args:
        rows: One for each result, statistic and width.
        widths: The values of n.
        seeds: Networks at each width.
        backend: What ran them: ``"lazy"`` or ``"dense"``.
        provenance: What it was computed from and with.
        notes: What a reader should know besides the numbers.

    Example:
        >>> row = FiniteRow("f", "value", 256, (0.1, 0.3))
        >>> FiniteTable((row,), (256,), 2, "lazy", Provenance("0", "a program")).rows[0].values
        (0.1, 0.3)
    """

    rows: tuple[FiniteRow, ...]
    widths: tuple[int, ...]
    seeds: int
    backend: str
    provenance: Provenance
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """Limit against one width.

    Args:
        name: What the output is called.
        statistic: As of ``FiniteRow``.
        limit: The limit; of a random one its mean.
        limit_stderr: Its standard error.
        width: n.
        mean: Over seeds.
        stderr: Its standard error.
        seeds: How many.
        z: The difference in combined standard errors, reduced to those of a Gaussian with the same
            tail where they are from few seeds (Student's t).
        limit_std: The standard deviation of a limit that stays random.
        finite_std: That over seeds.
        method: How the limit was found.
        limit_std_error: The error of ``limit_std``.
    """

    name: str
    statistic: str
    limit: float
    limit_stderr: float
    width: int
    mean: float
    stderr: float
    seeds: int
    z: float
    limit_std: float | None = None
    finite_std: float | None = None
    method: Method | None = None
    limit_std_error: float | None = None


@dataclass(frozen=True, slots=True)
class SlopeRow:
    """The log-log slope in n of the error |finite - limit| (root mean square over seeds).

    Args:
        name: What the output is called.
        statistic: As of ``FiniteRow``.
        slope: None where it cannot be fitted.
        low: The lower end of a 95 % interval.
        high: The upper end.
        note: Why there is no slope.
    """

    name: str
    statistic: str
    slope: float | None
    low: float | None
    high: float | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Comparison(Shown):
    """A limit beside finite networks.

    Args:
        rows: A row for each result and width.
        slopes: A row for each result.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
        uncovered: The outputs without a limit.
        alone: What finite networks say of them.
        exploded: The first explosion of a training run.
    """

    rows: tuple[ComparisonRow, ...]
    slopes: tuple[SlopeRow, ...]
    provenance: Provenance
    notes: tuple[str, ...] = field(default=())
    uncovered: tuple[NotCovered, ...] = ()
    alone: tuple[FiniteRow, ...] = ()
    exploded: Explosion | None = None


def provenance(
    digest: str, seed: int | None, settings: Mapping[str, str], seconds: float
) -> Provenance:
    """The provenance of a result computed now."""
    return Provenance(
        own_version(), digest, seed, tuple(settings.items()), library_versions(), seconds
    )
