"""nlnorm: activations made for a nonlinearity coefficient, of their own or of their network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from time import perf_counter
from typing import Literal

import numpy as np

from tpcalc import checks
from tpcalc.errors import EvaluationError, StudyError, TpcalcError, UsageError
from tpcalc.functions import Expr, const
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.given import Act
from tpcalc.meanfield.activations.length import LengthKernel, longest
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.nonlinearity import coefficient, log_square
from tpcalc.meanfield.notation.architectures import Design, mlp
from tpcalc.meanfield.notation.notation import described
from tpcalc.meanfield.operations import Activation, Input, Product
from tpcalc.meanfield.reading import Layers, layers, numbered
from tpcalc.meanfield.recursion import STATE, propagate
from tpcalc.meanfield.stability import stability
from tpcalc.meanfield.state import State, exponential, logarithm
from tpcalc.practice.code import torch_code
from tpcalc.practice.methods import (
    METHODS,
    Curve,
    Family,
    Linearization,
    Parts,
    Way,
    around,
    crossings,
    ends,
    family,
    known,
    nearest,
)
from tpcalc.practice.rewrites import TAU, as_lines, rebuilt
from tpcalc.program.base import Table
from tpcalc.results import Estimate, LengthRow
from tpcalc.results.data import grouped
from tpcalc.results.normed import Normed, NormedRow
from tpcalc.results.tables import provenance

ONE = Bounded(1.0)
LENGTHS = (0.1, 0.5, 1.0, 2.0, 10.0)
LEAST = "Linear functions have 1, and no function has less (under a Gaussian)."
USUAL = 20  # activations, where there is no network
ALIKE = 1e-9  # of q: below it two inputs share nothing
Share = Literal["amount", "nlc"]
Fit = Literal["both", "scale", "shift"]


# ------------------------------------------------------------------------------- one activation


def _centred(own: Parts, scale: Bounded) -> tuple[Bounded, Bounded]:
    """The scale, and the shift that makes the mean 0."""
    if abs(own.mean.value) <= own.mean.error:  # not told from 0, which reads better
        return scale, Bounded(0.0, scale.value * own.mean.error, own.mean.method)
    return scale, -(scale * own.mean)


FITS: dict[str, Callable[[Parts], tuple[Bounded, Bounded]]] = {
    "both": lambda own: _centred(own, own.spread.root().inverse()),
    "scale": lambda own: ((own.spread + own.mean * own.mean).root().inverse(), Bounded(0.0)),
    "shift": lambda own: _centred(own, ONE),
}


@dataclass(frozen=True)
class Made:
    """F(s) = c tau(l, s) + b, made for s ~ N(0, q)."""

    family: Family
    amount: float
    q: Bounded
    parts: Parts
    scale: Bounded
    shift: Bounded

    @cached_property
    def expr(self) -> Expr:
        """F; c and b are floats."""
        return const(self.scale.value) * self.family.at(self.amount) + const(self.shift.value)

    def state(self, own: State) -> State:
        """The state of a layer of it, behind one of the second moment q."""
        c = self.scale * self.scale
        mean, spread = self.scale * self.parts.mean + self.shift, c * self.parts.spread
        gap = spread
        if own.gap.value != own.square.value:
            gap = c * Kernels(self.family.at(self.amount)).gap(self.q, own.gap)
        gradient = own.log_gradient + logarithm(c * self.parts.slope)
        return State(mean, spread + mean * mean, gap, gradient)

    def row(self, amount: Bounded, where: Sequence[int], name: str = "activation") -> NormedRow:
        """What an answer says of it."""
        expr, own = self.expr, self.family
        said = f"{own.name}, {own.way.name} with l = {self.amount:.6g}"
        code = ""
        with suppress(StudyError):
            code = torch_code(expr, name, said)
        return NormedRow(
            own.name,
            own.way.name,
            amount.estimate(),
            self.scale.estimate(),
            self.shift.estimate(),
            own.nlc(self.amount, self.q).estimate(),
            own.excess(self.amount, self.q).estimate(),
            LengthKernel(expr).stability([self.q.value**0.5]).at(0).estimate(),
            self.q.value,
            tuple(where),
            expr.text,
            code,
            expr,
        )

    @cached_property
    def lengths(self) -> tuple[LengthRow, ...]:
        """What it does to inputs of other lengths than the one that it is made for."""
        kernel, unit = LengthKernel(self.expr), self.q.value**0.5
        at = [x * unit for x in LENGTHS if x * unit <= longest(self.expr)]
        found = kernel.lengths(at), kernel.stability(at), kernel.nlc(at)
        there = found[0].known & found[1].known & found[2].known
        return tuple(
            LengthRow(x, *(part.at(k).estimate() for part in found))
            for k, x in enumerate(at)
            if there[k]
        )


@lru_cache(maxsize=4096)
def made(own: Family, amount: float, q: Bounded, fit: str = "both") -> Made:
    """The activation at an amount."""
    parts = own.parts(amount, q)
    return Made(own, amount, q, parts, *FITS[fit](parts))


def normed(
    activation: Act,
    amount: float | None = None,
    method: Way | None = None,
    fit: Fit = "both",
    q: float = 1.0,
) -> Normed:
    """The activation c tau(l, s) + b at an amount l.

    Args:
        activation: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        amount: l; by default that at which the activation stands as it is.
        method: How tau(l, s) is made; as of ``tp.signal.nlnorm``.
        fit: ``"both"``: mean 0 and second moment 1 for s ~ N(0, q); ``"scale"``: second moment 1
            alone (the base of the thesis, b = 0); ``"shift"``: mean 0 alone (c = 1).
        q: The variance of s.

    Returns:
        The activation, with its coefficient and what else ``tp.signal.nlnorm`` says.

    Raises:
        UsageError: Numbers that are none, or no such fit.
        EvaluationError: The activation has no derivative, or averages do not exist.

    Source: Schoenherr, The nonlinearity coefficient, section 7.1.

    Example:
        >>> found = normed("softplus", fit="scale")
        >>> round(found.scale.value, 6), found.shift.value, round(found.nlc.value, 6)
        (1.041867, 0.0, 1.039485)
    """
    began = perf_counter()
    checks.one_of("fit", fit, FITS)
    own = family(activation, method)
    start = Input(checks.real(q, "q", above=0))
    at = own.way.start if amount is None else float(checks.real(amount, "amount"))
    return _plan((own,), None, None, "amount", start).answer((Bounded(at),), None, began, fit)


def nlnorm(
    activation: Act | Sequence[Act],
    target: float,
    method: Way | None = None,
    *,
    network: Layers | None = None,
    only: Sequence[int | str] | None = None,
    share: Share = "amount",
    inputs: Input | None = None,
) -> Normed:
    """An activation c tau(l, s) + b of mean 0 and second moment 1 with a nonlinearity coefficient.

    In a network the layers of the activation are replaced, and l is such that the network has the
    coefficient, by its recursion: c and b of each layer are those for the second moment that
    reaches it, so that variances, biases and additions may be what they are. Where no layer has the
    activation, all are replaced but for gates, the factors of products.

    Args:
        activation: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
            Of a network also several.
        target: The coefficient n(1, 0) of the activation, or of the network; above 1.
        method: ``"interpolate"``: tau(s) + l s; ``"shift"``: tau(s + l); ``"dilate"``: tau(l s);
            ``"sharpen"``: tau(l s) / l; a formula (``"s*sigmoid(l*s)"``) or a function of (s, l);
            ``tp.signal.practice.Linearization``. By default what suits the activation.
        network: The network whose coefficient is meant; None: that of the activation is.
        only: The layers that are replaced, by number or name in ``tp.signal.layers(network)``.
        share: What different layers have in common: ``"amount"``, l, or ``"nlc"``, the coefficient
            of each.
        inputs: Second moments of inputs of the network; by default those that a text says, else 1
            and 0.

    Returns:
        It with constants, code of torch and what is to be known; an activation everywhere.

    Raises:
        UsageError: A target that is not above 1, or layers that are no activations.
        StudyError: A linear activation, or a network that the recursion does not follow.
        EvaluationError: The method does not reach the target: what it reaches, and which does, is
            told. Also activations without a derivative.

    Source: Schoenherr, The nonlinearity coefficient, chapter 7.

    Example:
        >>> found = nlnorm("relu", 1.05)
        >>> [round(x.value, 6) for x in (found.amount, found.scale, found.shift)]
        [0.709085, 0.802513, -0.320156]
    """
    began = perf_counter()
    wanted = float(checks.real(target, "the target", hint=LEAST, above=1))
    checks.one_of("share", share, ("amount", "nlc"))
    several = activation if isinstance(activation, list | tuple) else (activation,)
    own = tuple(family(each, method) for each in several)
    if network is None and len(own) > 1:
        raise UsageError(f"{len(own)} activations, and no network.", hint="Give network=.")
    plan = _plan(own, network, only, share, inputs)
    found = own[0].roots(wanted, ONE) if network is None else plan.roots(wanted)
    if not found:
        raise plan.beyond(wanted)
    return plan.answer(found, wanted, began)


# ------------------------------------------------------------------------------ within a network


@dataclass(frozen=True)
class _Plan:
    """A network, and the activations that are to stand in it."""

    graph: LayerGraph
    families: Mapping[int, Family]
    share: str
    alone: bool  # whether the network stands for its activation

    @property
    def first(self) -> Family:
        """The activation that is told where only one is."""
        return next(iter(self.families.values()))

    def run(self, at: float, fit: str = "both") -> tuple[list[State], dict[int, Made]]:
        """The states where l, or the coefficient of every activation, is a number."""
        states: list[State] = []
        found: dict[int, Made] = {}
        for index in range(len(self.graph.layers)):
            with self.graph.at(index) as layer:
                read = [states[p] for p in layer.parents]
                if index not in self.families:
                    states.append(STATE(layer.operation, *read))
                    continue
                # Layers that read the same but for rounding share what is computed.
                q = Bounded(float(f"{read[0].square.value:.13g}"))
                own = self.families[index]
                found[index] = made(own, self.amount(own, Bounded(at), q).value, q, fit)
                states.append(found[index].state(read[0]))
        return states, found

    def network(self, at: float, fit: str = "both") -> tuple[LayerGraph, dict[int, Made]]:
        """The layers with these activations."""
        _, found = self.run(at, fit)
        fresh = iter(found.values())
        return rebuilt(self.graph, lambda *_: (Activation(next(fresh).expr),), found), found

    def amount(self, own: Family, at: Bounded, q: Bounded) -> Bounded:
        """The l of a layer."""
        if self.share == "start":
            return Bounded(own.way.start)
        return at if self.share == "amount" else _root(own, at.value, q)

    def nlc(self, at: float, fit: str = "both") -> Bounded:
        """The coefficient of the network."""
        states, _ = self.run(at, fit)
        return exponential(log_square(states[0], states[-1]) * 0.5)

    @cached_property
    def curve(self) -> Curve:
        """The same where l, or the coefficient of every activation, is looked for."""
        kinds = set(self.families.values())
        points = sorted({point for own in kinds for point in own.grid(ONE)})
        if self.share == "nlc":
            top = min(ends(own.curve(ONE))[1] for own in kinds) - 1
            points = [1 + top * x for x in np.geomspace(1e-9, 1, 16).tolist()]
        found = known(self.nlc, points)
        if not found:  # what ends all of them is the news
            self.nlc(points[len(points) // 2])
        return found

    def roots(self, target: float) -> tuple[Bounded, ...]:
        """Where the network has a coefficient."""
        return nearest(crossings(self.nlc, target, self.curve), self.first.way.start)

    @property
    def base(self) -> Estimate | None:
        """The coefficient where activations are scaled, and no more."""
        with suppress(TpcalcError):
            return replace(self, share="start").nlc(0.0, "scale").estimate()
        return None

    def by(self, way: Linearization) -> _Plan:
        """The same by another method."""
        families = {index: replace(own, way=way) for index, own in self.families.items()}
        return replace(self, families=families)

    def beyond(self, target: float) -> EvaluationError:
        """That the method does not reach a target: what it reaches, and which does."""
        (least, most), others = ends(self.curve), []
        for way in METHODS.values():
            low, high = ends(self.by(way).curve)
            if way != self.first.way and low <= target <= high:
                others.append(f"method={way.name!r} ({low:.6g} to {high:.6g})")
        other = "or more layers" if target > most else "or fewer layers"
        return EvaluationError(
            f"no amount of {self.first.way.name!r} gives {self.first.name} the coefficient "
            f"{target:.9g}: it reaches {least:.6g} to {most:.6g}.",
            where="nlnorm",
            hint=f"Take {' or '.join(others) or f'another activation, {other}'}.",
        )

    def answer(
        self, found: Sequence[Bounded], target: float | None, began: float, fit: str = "both"
    ) -> Normed:
        """What is said where l, or the coefficient of every activation, is found."""
        best = found[0]
        new, activations = self.network(best.value, fit)
        first, states = activations[min(activations)], propagate(new)
        steady = stability(new, states)
        same = grouped(activations, lambda index: activations[index])
        name = "activation_{}" if len(same) > 1 else "activation"
        rows = tuple(
            one.row(
                self.amount(one.family, best, one.q),
                () if self.alone else at,
                name.format(at[0]),
            )
            for one, at in same.items()
        )
        asked = {} if target is None else {"target": f"{target:g}"}
        asked |= {"activation": first.family.name, "method": first.family.way.name}
        depth = _depth(new, activations)
        notes = [*_unstable(rows, depth, steady.along), *_shared(new, states, activations)]
        return Normed(
            target,
            coefficient(states[0], states[-1]),
            rows,
            tuple(each.value for each in found),
            around(self.curve, best.value),
            ends(self.curve),
            self.base,
            first.lengths,
            depth,
            steady.along,
            steady.label,
            (*notes, *_off_scale(first), *_without_code(rows)),
            provenance(described(new), None, asked, perf_counter() - began),
            None if self.alone else as_lines(new),
        )


def fitted(activations: Sequence[Act], target: float, graph: LayerGraph) -> LayerGraph:
    """The network with activations made for its coefficient, of which nothing is said."""
    plan = _plan(tuple(map(family, activations)), graph, None, "amount", None)
    found = plan.roots(target)
    if not found:
        raise plan.beyond(target)
    return plan.network(found[0].value)[0]


@lru_cache(maxsize=4096)
def _root(own: Family, target: float, q: Bounded) -> Bounded:
    """The amount nearest to the start that has a coefficient."""
    found = own.roots(target, q)
    if not found:
        raise EvaluationError(f"no {own.way.name} of {own.name} has the coefficient {target:g}.")
    return found[0]


def _plan(
    own: tuple[Family, ...],
    network: Layers | None,
    only: Sequence[int | str] | None,
    share: str,
    inputs: Input | None,
) -> _Plan:
    """The network, or one of a single activation, with the layers that are replaced."""
    graph = layers(mlp(1, Design(own[0].tau)) if network is None else network, inputs)
    every = {k: TAU(layer.operation) for k, layer in enumerate(graph.layers)}
    free = {k: tau for k, tau in every.items() if tau is not None}
    by_tau = {each.tau: each for each in own}
    if only is not None:
        asked = [numbered(graph, each) for each in only]
        strange = [index for index in asked if index not in free]
        if strange:
            shown = ", ".join(map(str, free)) or "none"
            said = f"layer {strange[0]} is no activation."
            raise UsageError(said, where="only", hint=f"Activations are: {shown}.")
        free = {index: free[index] for index in sorted(asked)}
    else:
        gates = {p for layer in graph.layers if _GATED(layer.operation) for p in layer.parents}
        free = {k: tau for k, tau in free.items() if k not in gates}
        named = {k: tau for k, tau in free.items() if tau in by_tau}
        free = named if named or len(own) > 1 else free
    if not free:
        raise UsageError(
            "the network has no activation that is to be replaced.",
            hint="Gates stay as they are; name layers with only=.",
        )
    families = {k: by_tau.get(tau, own[0]) for k, tau in free.items()}
    return _Plan(graph, families, share, network is None)


_GATED: Table[bool] = Table({Product: lambda operation: True}, lambda operation: False)


def _depth(graph: LayerGraph, activations: Mapping[int, Made]) -> int:
    """How many of the activations follow each other."""
    found: list[int] = []
    for index, layer in enumerate(graph.layers):
        before = max((found[p] for p in layer.parents), default=0)
        found.append(before + (index in activations))
    return found[-1]


# ------------------------------------------------------------------------------ what is to be known


def _unstable(rows: Sequence[NormedRow], depth: int, growth: float) -> list[str]:
    """That lengths are not stable."""
    number = max((row.stability for row in rows), key=lambda found: found.value)
    if number.value - number.stderr <= 1 + ALIKE or growth <= 1 + ALIKE:
        return []
    if depth == 1:
        depth, growth = USUAL, number.value**USUAL
    return [
        f"nlnorm does not make networks Gaussian stable: R = {number.value:.5g} is above 1, so "
        f"that relative deviations of lengths grow by {growth:.4g} over {depth} of these "
        "activations; put layer norm in front of them, or take another method."
    ]


def _shared(
    graph: LayerGraph, states: Sequence[State], activations: Mapping[int, Made]
) -> list[str]:
    """That layers read what two inputs share, which no constant takes out."""
    read = [states[p] for index in activations for p in graph.layers[index].parents]
    shares = [own.comean.value / own.square.value for own in read]
    large = [share for share in shares if abs(share) > ALIKE]
    if not large:
        return []
    return [
        f"{len(large)} of the activations read layers of which two inputs share up to "
        f"{100 * max(large):.3g} %: no constant takes that out, so that their coefficient is "
        "n(q, c), below n(q, 0)."
    ]


def _off_scale(own: Made) -> list[str]:
    """What becomes of the coefficient where weights grow."""
    here, far = own.family.nlc(own.amount, own.q).value, own.lengths[-1] if own.lengths else None
    if far is None or far.nlc.value - 1 <= 2 * (here - 1):
        return []
    return [
        f"It holds at this length of inputs alone: at {far.length / own.q.value**0.5:g} times the "
        f"length, where weights may grow to, n is {far.nlc.value:.4g} in place of {here:.4g}."
    ]


def _without_code(rows: Sequence[NormedRow]) -> list[str]:
    """Which activations cannot be written for torch."""
    names = sorted({row.name for row in rows if not row.code})
    return [f"{name} holds code of its own, of which no code of torch is made." for name in names]
