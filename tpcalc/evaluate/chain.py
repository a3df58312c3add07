"""The chain of evaluators: closed forms, then quadrature; what neither gives is for particles."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isfinite, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.errors import EvaluationError, LimitError
from tpcalc.evaluate.closure.chance import Chance
from tpcalc.evaluate.closure.closure import Closure
from tpcalc.evaluate.closure.joint import Joint
from tpcalc.integrals.average import METHODS
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.numeric import WORST, Numeric, Work
from tpcalc.integrals.symbolic import Symbolic
from tpcalc.limit.graph import LimitGraph, LRef, restricted
from tpcalc.results import Estimate, Method, Status

Law = tuple[Bounded, list[tuple[list[Bounded], list[tuple[LRef, LRef]]]]]  # see ``Chance.terms``
ROUNDING = 2.0**-50
ZERO = Estimate(0.0, 0.0, Method.EXACT, Status.EXACT)
WORK = 20_000  # integrals by closed form, or 500 in two dimensions: some seconds
CHOICES = ("auto", "exact", "quadrature", "particles")


def chosen(method: str) -> tuple[Method, ...]:
    """What may evaluate integrals besides particles.

    Example:
        >>> chosen("particles")
        ()
    """
    checks.one_of("method", method, CHOICES)
    if method == "auto":
        return METHODS
    return tuple(known for known in METHODS if known.value == method)


def together(graph: LimitGraph, names: Sequence[str]) -> LimitGraph:
    """The part of a graph that some targets need whose joint law is asked for."""
    part = restricted(graph, names)
    if part.apart:
        raise LimitError(
            f"{' and '.join(names)} rest on fluctuating averages that may be correlated, of "
            "which this version knows no joint law.",
            hint="Run the program at finite width with tp.simulate.",
        )
    return part


@dataclass
class Chain:
    """Estimates of the targets of a limit graph that need no samples."""

    graph: LimitGraph
    # what may evaluate integrals; none: nothing has an estimate
    methods: tuple[Method, ...] = METHODS
    seed: int = 0  # of the draws of scalars that stay random in a way that no formula follows
    # for each target that was asked for in vain, why
    reasons: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Of a long training run most integrals would end in particles all the same.
        work = Work(WORK) if self.methods == METHODS else None
        self._closure = Closure(self.graph, Numeric(self.methods, work=work))
        self._chance = Chance(self._closure)
        self._joint = Joint(self._chance, self.seed)
        self._targets = dict(self.graph.targets)
        self._formulas: Chance[Any] | None = None

    def estimates(self, name: str) -> tuple[Estimate | None, ...]:
        """The estimate of a scalar target, those of E Z and E Z^2 of a vector target."""
        target = self._targets[name]
        if target.node is None:
            return ()
        if target.moments is None:
            return (self._estimate(name, target.node),)
        return tuple(ZERO if ref is None else self._estimate(name, ref) for ref in target.moments)

    def _estimate(self, name: str, ref: LRef) -> Estimate | None:
        if not self.methods:
            return None
        try:
            with np.errstate(all="ignore"):  # what overflows is refused below
                if ref not in self._chance.random:
                    return as_estimate(self._closure.scalar(ref))
                return self._random(ref)
        except Unknown as reason:
            self.reasons[name] = str(reason)
            return None

    def _random(self, ref: LRef) -> Estimate:
        """The estimate of a scalar that stays random: by its law, else by draws of Gaussians."""
        try:
            spread = self._chance.spread(ref)
            return as_estimate(spread.mean, self._chance.covariance(ref, ref))
        except Unknown:
            if self.methods != METHODS:
                raise
        return self._joint.estimate(ref)

    def law(self, name: str) -> Law | None:
        """Mean of a scalar that stays random, and terms of its variance; None: no such law."""
        ref = self._targets[name].node
        if self.methods != METHODS or ref is None or ref not in self._chance.random:
            return None
        try:
            return self._chance.spread(ref).mean, self._chance.terms(ref, ref)
        except Unknown:
            return None

    def covariance(self, left: str, right: str) -> Estimate | None:
        """The covariance of two scalar targets; None where it takes a run of particles.

        Args:
            left: One target.
            right: The other.
        """
        refs = self._targets[left].node, self._targets[right].node
        if None in refs or not all(ref in self._chance.random for ref in refs):
            return ZERO
        a, b = self._ref(left), self._ref(right)
        with suppress(Unknown):
            return as_estimate(self._chance.covariance(a, b))
        try:
            return self._joint.covariance(a, b)
        except Unknown:
            return None

    def coefficient(self, product: str, earlier: str) -> Estimate | None:
        """The number in front of an earlier product in a product; None where samples give it."""
        try:
            return as_estimate(self._closure.coefficient(self._ref(product), self._ref(earlier)))
        except (Unknown, EvaluationError):
            return None

    def formula(self, name: str) -> Any:
        """A scalar target in closed form, as a sympy expression; None where none fits."""
        if self._formulas is None:
            self._formulas = Chance(Closure(self.graph, Symbolic()))
        ref = self._ref(name)
        if ref in self._chance.random:
            return None
        try:
            return self._formulas.closure.scalar(ref)
        except Unknown:
            return None

    def with_formula(self, name: str, found: Estimate) -> Estimate:
        """An exact estimate with its formula; one that is a rational number has no error."""
        if found.method is not Method.EXACT or found.random:
            return found
        closed = self.formula(name)
        if closed is None:
            return found
        # Constants were recognised from floats: what they make must be the number.
        value = float(closed.evalf(25))
        if not abs(value - found.value) <= found.stderr + ROUNDING * abs(found.value):
            return found
        if closed.is_Rational:
            found = replace(found, value=float(closed), stderr=0.0, status=Status.EXACT)
        return replace(found, formula=str(closed))

    def _ref(self, name: str) -> LRef:
        ref = self._targets[name].node
        assert ref is not None, name
        return ref


def as_estimate(answer: Bounded, variance: Bounded | None = None) -> Estimate:
    """A number as an estimate; of a random scalar its mean, and its variance."""
    value, error = float(answer.value), float(answer.error)
    if not isfinite(value) or not isfinite(error):
        raise Unknown("it leaves the floating-point range")
    if error > WORST * max(1.0, abs(value)):
        raise Unknown("its error is too large")
    method = answer.method
    std = off = None
    if variance is not None:
        std = sqrt(max(float(variance.value), 0.0))
        off = float(variance.error) / (2 * std) if std > 0 else sqrt(float(variance.error))
        method = max(method, variance.method)
    status = Status.EXACT if error == 0 and std is None else Status.CONVERGED
    return Estimate(value, error, method, status, std=std, std_error=off)


def refuse(name: str, why: str, method: str) -> EvaluationError:
    """The error where a method that was forced does not give an answer.

    Example:
        >>> refuse("f", "no closed form", "exact").message
        "method='exact' does not give f: no closed form."
    """
    return EvaluationError(
        f"method={method!r} does not give {name}: {why}.",
        hint="Use method='auto', which turns to quadrature and particles where closed forms end.",
    )
