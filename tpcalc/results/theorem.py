"""What a theorem says of a network, beside what is derived from the network's program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown
from tpcalc.sources import Source

Answer = Literal["holds", "not confirmed", "does not hold", "outside"]


@dataclass(frozen=True, slots=True)
class Hypothesis(Shown):
    """A condition of a theorem at one network.

    Args:
        text: The condition, in words.
        met: Whether it is met.
        found: What was found, in words: ``"L = 2"``.

    Example:
        >>> Hypothesis("at least 3 hidden layers", False, "L = 2").met
        False
    """

    text: str
    met: bool
    found: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a theorem, beside what the program of the network gives.

    Args:
        text: What it is about: ``"f_1 - f_0"``.
        stated: What the theorem says of it; empty where it says nothing.
        derived: What the calculus or the limit gives; empty where it was not asked.
        agrees: Whether the two say the same; None where one of them is missing or only a bound.

    Example:
        >>> Claim("f_t", "tends to 0", "n^(-1/2)", True).agrees
        True
    """

    text: str
    stated: str
    derived: str
    agrees: bool | None = None

    @property
    def open(self) -> bool:
        """Whether the program was asked, and neither confirms nor contradicts it."""
        return bool(self.stated and self.derived) and self.agrees is None


@dataclass(frozen=True, slots=True)
class Theorem(Shown):
    """The answer of a theorem to a question about one network.

    Args:
        name: Its name as a function, ``"trivial_naive_ip"``.
        title: What it says, in one line.
        source: Where it is proved.
        answer: ``"holds"``: its hypotheses are met, and what it states of the network is so;
            ``"not confirmed"``: they are met, but of something that it states the program gives no
            more than a bound, or nothing (printed as "hypotheses met, not confirmed by the
            program");
            ``"does not hold"``: they are met, and the network has not the property that it is about
            (printed as "does not hold here": the theorem itself stands), or the program contradicts
            what it states ("refuted by the program"); ``"outside"``: a hypothesis is not met, so
            it says nothing.
        hypotheses: Its conditions, each with what was found.
        claims: Its statements beside what is derived without it.
        notes: What a reader should know besides.

    Example:
        >>> where = Source("Hajjar, Chizat, Giraud", "Proposition 3.1")
        >>> few = Hypothesis("at least 3 hidden layers", False, "L = 2")
        >>> found = Theorem("trivial_naive_ip", "naive-ip is trivial", where, "outside", (few,), ())
        >>> found.missing
        (Hypothesis(text='at least 3 hidden layers', met=False, found='L = 2'),)
        >>> found.differs
        False
        >>> found.answered
        'outside its hypotheses'
    """

    name: str
    title: str
    source: Source
    answer: Answer
    hypotheses: tuple[Hypothesis, ...]
    claims: tuple[Claim, ...]
    notes: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[Hypothesis, ...]:
        """The hypotheses that are not met."""
        return tuple(hypothesis for hypothesis in self.hypotheses if not hypothesis.met)

    @property
    def differs(self) -> bool:
        """Whether something that is derived contradicts what is stated."""
        return any(claim.agrees is False for claim in self.claims)

    @property
    def open(self) -> tuple[Claim, ...]:
        """The statements that the program was asked about and leaves open."""
        return tuple(claim for claim in self.claims if claim.open)

    def __bool__(self) -> bool:
        return self.answer == "holds"

    @property
    def answered(self) -> str:
        """The answer as it is printed: which of its meanings ``"does not hold"`` has here."""
        if self.answer == "outside":
            return "outside its hypotheses"
        if self.answer == "not confirmed":
            return "hypotheses met, not confirmed by the program"
        if self.answer == "does not hold":
            return "refuted by the program" if self.differs else "does not hold here"
        return self.answer

    __repr__ = Shown.__str__


def confirmed(claims: Iterable[Claim]) -> Answer:
    """What a theorem answers whose hypotheses are met, and whose property the network has.

    Args:
        claims: What it states.

    Returns:
        ``"holds"``, or ``"not confirmed"`` where a claim is open.

    Example:
        >>> confirmed([Claim("f_1", "order one", "at most order one")])
        'not confirmed'
        >>> confirmed([Claim("f_1", "order one", "order one", True)])
        'holds'
    """
    return "not confirmed" if any(claim.open for claim in claims) else "holds"


@dataclass(frozen=True, slots=True)
class Theorems(Shown):
    """What several theorems say of one network.

    Args:
        rows: The theorems.
        provenance: What was derived beside them, from what and with what.
        notes: What a reader should know besides.

    Example:
        >>> Theorems((), Provenance("0", "ab")).rows
        ()
    """

    rows: tuple[Theorem, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bound(Shown):
    """A number between bounds.

    Args:
        of: What it is: ``"R^2"``, ``"E D^2"``.
        lower: A lower bound; None: none is stated.
        upper: An upper bound; None: none is stated.
        probability: With which probability at least both hold; 1 of expectations.
        conditions: What the theorem asks, each with whether it is met. The value is that of the
            formula in any case.
        source: Where it is stated.
        exact: Whether both are the number itself.
        notes: What a reader should know besides.

    Example:
        >>> found = Bound("D^2", None, 0.5, 0.9, (), Source("Marion et al.", "Proposition 2"))
        >>> found.admissible
        True
    """

    of: str
    lower: float | None
    upper: float | None
    probability: float
    conditions: tuple[Hypothesis, ...]
    source: Source
    exact: bool = False
    notes: tuple[str, ...] = ()

    @property
    def admissible(self) -> bool:
        """Whether all conditions are met: only then the theorem states the bound."""
        return all(condition.met for condition in self.conditions)

    @property
    def violated(self) -> tuple[Hypothesis, ...]:
        """The conditions that are not met."""
        return tuple(condition for condition in self.conditions if not condition.met)

    @property
    def stated(self) -> str:
        """The bound as a formula, with its probability."""
        if self.exact:
            return f"{self.of} = {self.lower:.6g}"
        low = "" if self.lower is None else f"{self.lower:.6g} < "
        high = "" if self.upper is None else f" < {self.upper:.6g}"
        chance = "" if self.probability == 1 else f" with probability >= {self.probability:g}"
        return f"{low}{self.of}{high}{chance}"
