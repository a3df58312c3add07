"""The chain of evaluators: closed forms, then quadrature; what neither gives is for particles.

Scalars that stay random are often a few jointly Gaussian numbers whose covariance is known. Then
nothing but these is drawn, a million times if need be, and all else is known to its last digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isfinite, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.engine.starts import factor
from tpcalc.errors import EvaluationError, LimitError
from tpcalc.evaluate.closure.chance import Chance
from tpcalc.evaluate.closure.closure import Closure
from tpcalc.functions.tape import evaluate
from tpcalc.integrals.average import METHODS
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.numeric import WORST, Numeric, Work
from tpcalc.integrals.symbolic import Symbolic
from tpcalc.limit.graph import LimitGraph, LRef, function_of, is_drawn, restricted
from tpcalc.program.base import reached, references
from tpcalc.results import Estimate, Method, Status

LOG2, REPLICATES = 14, 16  # samples of a replicate
SHARP = 1e-9  # relative error of what is known beside which that of samples is all there is
FAMILY = 2  # first entropy word: no draws are shared with particles or networks
ENOUGH = 256  # samples as large as the largest one, below which few of them may dominate
MOST = 32  # Gaussians: the first dimensions of a sequence are its best


class Joint:
    """Samples of random scalars."""

    def __init__(self, chance: Chance[Bounded], seed: int) -> None:
        self._chance, self._seed = chance, seed

    def estimate(self, ref: LRef) -> Estimate:
        """The mean and the spread of a random scalar."""
        values = self.samples((ref,))[ref]
        mean, square = self._mean(values), self._covariance(values, values)
        std = sqrt(square.value)
        error = square.stderr / (2 * std) if std > 0 else sqrt(square.stderr)
        return replace(mean, std=std, std_error=error)

    def covariance(self, left: LRef, right: LRef) -> Estimate:
        """The covariance of two random scalars.

        Args:
            left: The node of one.
            right: That of the other.

        Raises:
            Unknown: One of them holds more than functions of Gaussian scalars.
        """
        found = self.samples((left, right))
        return self._covariance(found[left], found[right])

    def _covariance(self, left: Array, right: Array) -> Estimate:
        a, b = (own - own.mean(axis=1, keepdims=True) for own in (left, right))
        return self._mean(a * b)

    def _mean(self, values: Array) -> Estimate:
        """The mean of replicates, with an error of one sample of their range at least.

        Points are balanced, so that replicates may agree on what a sample more or less would move;
        where all samples are one number, an event may be too rare for any of them.
        """
        own, centred = values.mean(axis=1), np.square(values - values.mean())
        mean, moved = float(own.mean()), float(np.ptp(values))
        rare = ENOUGH * float(centred.max()) >= float(centred.sum())
        return Estimate(
            mean,
            max(
                float(own.std(ddof=1)) / sqrt(len(own)),
                (moved or max(abs(mean), 1.0)) / values.size,
            ),
            Method.PARTICLES,
            Status.RARE if rare else Status.CONVERGED,
            values.shape[1],
            len(own),
            self._seed,
        )

    def samples(self, refs: tuple[LRef, ...]) -> Mapping[LRef, Array]:
        """Joint samples of scalars, each of shape (replicates, samples)."""
        nodes, random = self._chance.closure.graph.nodes, self._chance.random

        def below(ref: LRef) -> Sequence[LRef]:
            if ref not in random or is_drawn(nodes[ref]):
                return ()
            if function_of(nodes[ref]) is None:
                raise Unknown("an average over coordinates that depends on a random scalar")
            return references(nodes[ref])

        cone = reached(refs, below)
        bases = [ref for ref in sorted(cone) if is_drawn(nodes[ref])]
        values: dict[LRef, Array] = dict(zip(bases, self._gaussians(tuple(bases)), strict=True))
        for ref in sorted(cone - set(bases)):
            node = function_of(nodes[ref])
            if node is None or ref not in random:
                values[ref] = np.full((1, 1), _sharp(self._chance.closure.scalar(ref)))
            else:
                values[ref] = evaluate(node.fn, [], [values[s] for s in node.scalars])
        found = {ref: np.broadcast_to(values[ref], (REPLICATES, 2**LOG2)) for ref in refs}
        if not all(np.isfinite(own).all() for own in found.values()):
            raise Unknown("it leaves the floating-point range")
        return found

    def _gaussians(self, bases: tuple[LRef, ...]) -> list[Array]:
        """Joint samples of the Gaussians that others are functions of."""
        if len(bases) > MOST:
            raise Unknown("more random scalars than are drawn on their own")
        chance = self._chance
        means = [_sharp(chance.spread(base).mean) for base in bases]
        stds = [sqrt(_sharp(chance.covariance(base, base))) for base in bases]
        cov = np.diag(np.square(stds))
        for i, left in enumerate(bases):
            for j, right in enumerate(bases[:i]):
                scale = stds[i] * stds[j]
                cov[i, j] = cov[j, i] = _sharp(chance.covariance(left, right), scale)
        rows = np.array(factor(cov, "random scalars"))
        normals = self._normals(rows.shape[1])
        return [mean + normals @ row for mean, row in zip(means, rows, strict=True)]

    def _normals(self, count: int) -> Array:
        """Scrambled Sobol points as normals: replicates, samples, dimensions."""
        from tpcalc.engine.draws import SobolDraws

        found = np.empty((REPLICATES, 2**LOG2, count))
        for replicate, rows in enumerate(found):
            draws = SobolDraws(count, LOG2, (self._seed, FAMILY, replicate))
            for place in range(count):
                row = np.empty((1, 2**LOG2))
                draws.fill(row)
                rows[:, place] = row[0]
        return found


def _sharp(answer: Bounded, scale: float = 1e-6) -> float:
    value, error = float(answer.value), float(answer.error)
    if not error <= SHARP * max(abs(value), scale):
        raise Unknown("its error is too large")
    return value


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
