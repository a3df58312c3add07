"""``Advice``: a network judged by the guidelines for designs, and what would change that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import inf, log
from typing import Literal

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.results.estimate import Estimate
from tpcalc.results.nonlinearity import MeasuredEnd, MeasuredValue, Route
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown

Grade = Literal["pass", "warn", "fail", "report", "open"]
GRADES: tuple[Grade, ...] = ("fail", "open", "warn", "pass", "report")  # the worst first
FAILURES = {"Gaussian unstable": "green", "biased": "red", "noise": "blue", "": "grey"}
"""Why networks cannot generalize, with the colours of figure 6.19."""
SLACK = 1e-9  # of a limit, for numbers that are equal to it but for rounding
Limits = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Thresholds(Shown):
    """Where guidelines pass, and where they fail: pairs (passes up to, warns up to).

    Args:
        nlc: Of the nonlinearity coefficient.
        linear: Below it, a coefficient warns: the network is all but linear.
        growth: Of the product of stability numbers along a path; one of 1 warns.
        scale: Of the root mean square of a layer, or of its inverse.
        sensitivity: Of the factor by which the coefficient changes where weight variances double.
        bias: Of LBIAS of any layer.
        noise: Of relative noise times the coefficient.
        inequality: Of sqrt(m_2) / m_1 of the squared singular values of the Jacobian.
        bend: Of the coefficient of an activation less 1: passes down to, warns down to.

    Raises:
        UsageError: Limits out of order, or no numbers.

    Source: Schoenherr, The nonlinearity coefficient, chapter 6 for those of the coefficient, LBIAS
        and noise; the others are conventions.

    Example:
        >>> Thresholds().grade("bias", 3), Thresholds(bias=(4, 20)).grade("bias", 3)
        ('warn', 'pass')
    """

    nlc: Limits = (5.0, 100.0)
    linear: float = 1.02
    growth: Limits = (1.0, 10.0)
    scale: Limits = (2.0, 10.0)
    sensitivity: Limits = (1.5, 5.0)
    bias: Limits = (2.0, 10.0)
    noise: Limits = (0.01, 1.0)
    inequality: Limits = (2.0, 5.0)
    bend: Limits = (1e-2, 1e-4)

    def __post_init__(self) -> None:
        linear = float(checks.real(self.linear, "the threshold linear", least=1))
        object.__setattr__(self, "linear", linear)
        for name, usual in _USUAL.items():
            pair = checks.sequence(getattr(self, name), f"the thresholds of {name}")
            limits = tuple(float(checks.real(x, f"a threshold of {name}")) for x in pair)
            object.__setattr__(self, name, limits)
            if len(limits) != 2 or min(limits) < 0 or self._worse(name, *limits):
                raise UsageError(
                    f"the thresholds of {name} are {', '.join(f'{x:g}' for x in limits)}.",
                    where="thresholds",
                    hint="Give two: passes up to the first, warns up to the second: "
                    f"{usual} by default.",
                )
        if self.linear > self.nlc[0]:
            raise UsageError(
                f"a coefficient passes from {self.linear:g} up to {self.nlc[0]:g}.",
                where="thresholds",
                hint="linear is at most the first threshold of nlc.",
            )

    def excess(self, name: str, value: float) -> float:
        """How far a number is from what passes, as a logarithm; 0 where it passes.

        Args:
            name: The name of a pair.
            value: The number.
        """
        if name == "nlc" and value < self.linear:
            return _over(self.linear - 1, value - 1)
        return _over(self.size(name, value), self.size(name, getattr(self, name)[0]))

    def grade(self, name: str, value: float) -> Grade:
        """What a number is worth by the thresholds of that name.

        Args:
            name: The name of a pair.
            value: The number.
        """
        if self.excess(name, value) <= SLACK:
            return "pass"
        return "fail" if self._worse(name, value, getattr(self, name)[1]) else "warn"

    def size(self, name: str, value: float) -> float:
        """A number such that larger ones are worse.

        Args:
            name: The name of a pair.
            value: The number.
        """
        return _SIZES.get(name, float)(value)

    def _worse(self, name: str, value: float, limit: float) -> bool:
        return self.size(name, value) > self.size(name, limit)


_USUAL = {own.name: own.default for own in fields(Thresholds) if own.name != "linear"}
_SIZES: dict[str, Callable[[float], float]] = {
    "bend": lambda x: 1 / x if x > 0 else inf,
    "scale": lambda x: max(x, 1 / x) if x > 0 else inf,
}


def _over(value: float, limit: float) -> float:
    """The logarithm of a quotient, where it is above 0."""
    if value <= limit:
        return 0.0
    return log(value / limit) if limit > 0 and value < inf else inf


@dataclass(frozen=True, slots=True)
class LayerValue:
    """What a guideline looks at, of one layer.

    Args:
        layer: Its number.
        operation: What it does.
        value: The number in the limit of infinite width.
        measured: That of networks of a width; None where none was measured.
    """

    layer: int
    operation: str
    value: Estimate
    measured: MeasuredValue | None = None


@dataclass(frozen=True, slots=True)
class Guideline(Shown):
    """A guideline, and how a network follows it.

    Args:
        key: Its number: ``"G1"`` to ``"G9"``.
        title: What it asks for.
        metric: What it looks at.
        grade: ``"pass"``, ``"warn"``, ``"fail"``; ``"report"``: numbers alone; ``"open"``: there is
            no number, the notes say why.
        value: The number that is judged.
        layer: The layer where it is worst.
        limits: It passes up to the first, and warns up to the second; empty: none.
        layers: Every layer that it looks at.
        measured: The same number of networks of the largest width that was measured.
        measured_grade: What that is worth; ``"open"`` where it was not measured.
        notes: Numbers and facts besides.
    """

    key: str
    title: str
    metric: str
    grade: Grade
    value: Estimate | None = None
    layer: int | None = None
    limits: tuple[float, ...] = ()
    layers: tuple[LayerValue, ...] = ()
    measured: MeasuredValue | None = None
    measured_grade: Grade = "open"
    notes: tuple[str, ...] = ()

    @property
    def worst(self) -> Grade:
        """The worse grade, of the limit and of networks where they were measured."""
        grades = (self.grade, self.measured_grade) if self.measured else (self.grade,)
        return min(grades, key=GRADES.index)


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change does to the number of a guideline.

    Args:
        key: The guideline.
        metric: What it looks at.
        before: The number now.
        after: The number then.
        grade_before: What it is worth now.
        grade_after: What it is worth then.
    """

    key: str
    metric: str
    before: Estimate
    after: Estimate
    grade_before: Grade
    grade_after: Grade


@dataclass(frozen=True, slots=True)
class Change(Shown):
    """Something to do otherwise, with the numbers that result.

    Args:
        what: In words.
        code: How it is written.
        helps: Guidelines that are followed better.
        harms: Guidelines that are followed worse.
    """

    what: str
    code: str
    helps: tuple[Effect, ...]
    harms: tuple[Effect, ...]


@dataclass(frozen=True)
class Advice(Shown):
    """A network judged by all guidelines, the worst first, and what would help.

    Args:
        model: The network in words.
        text: Its layers, one a line.
        route: ``"recursion"``, or ``"program"`` where the recursion does not follow it; guidelines
            that need it are open then.
        guidelines: The guidelines, the worst first.
        changes: What would help, the best first.
        failure: ``"Gaussian unstable"``, ``"biased"``, ``"noise"``: why training cannot generalize
            whatever the rate, ``""``: none of these.
        thresholds: What was judged by.
        widths: The widths that were measured.
        seeds: How many networks of each.
        ends: Widths whose networks leave the range of their number format.
        notes: What a reader should know besides.
        provenance: What it was computed from and with.

    Source: Schoenherr, The nonlinearity coefficient, chapter 6.
    """

    model: str
    text: str
    route: Route
    guidelines: tuple[Guideline, ...]
    changes: tuple[Change, ...]
    failure: str
    thresholds: Thresholds
    widths: tuple[int, ...]
    seeds: int
    ends: tuple[MeasuredEnd, ...]
    notes: tuple[str, ...]
    provenance: Provenance

    @property
    def grade(self) -> Grade:
        """The worst grade of a guideline, in theory or measured."""
        grades = {own for each in self.guidelines for own in (each.grade, each.measured_grade)}
        return min(grades & {"fail", "warn", "pass"}, key=GRADES.index, default="open")

    def __getitem__(self, key: str) -> Guideline:
        """A guideline.

        Args:
            key: Its number: ``"G1"`` to ``"G9"``.
        """
        return {each.key: each for each in self.guidelines}[key]
