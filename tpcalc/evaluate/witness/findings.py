"""What samples say of a node: is it different from 0, has its law mass at a kink?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array
from tpcalc.errors import TpcalcError
from tpcalc.evaluate.closure.closure import Closure
from tpcalc.evaluate.witness.dual import ROUNDING, Dual, Unvalued
from tpcalc.evaluate.witness.sweep import BUDGETS, COLUMNS, LAWS, Budget, Sweep
from tpcalc.functions import Var
from tpcalc.functions.expr import Pow
from tpcalc.functions.indicator import EXACTLY
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.numeric import Numeric, Work
from tpcalc.limit.context import Claim, Context
from tpcalc.limit.derive import graph_of
from tpcalc.limit.graph import LRef, Target, average_of, outer_of
from tpcalc.program.base import references

WORK = 5000  # closed forms that a number may take


def evaluated(context: Context, ref: LRef) -> Bounded:
    """A scalar by closed forms or quadrature."""
    graph = graph_of(context, (("", Target(Fraction(0), ref)),))
    ((_, target),) = graph.targets
    assert target.node is not None
    with np.errstate(all="ignore"):
        answer = Closure(graph, Numeric(work=Work(WORK))).scalar(target.node)
    if not np.isfinite(answer.value) or not np.isfinite(answer.error):
        raise Unknown("it leaves the floating-point range")
    return answer


def has_value(context: Context, ref: LRef) -> tuple[bool | None, str]:
    """Whether closed forms or quadrature give a scalar, and what speaks against it."""
    try:
        evaluated(context, ref)
    except Unknown as reason:
        return None, str(reason)
    except TpcalcError as error:
        return None, error.message.rstrip(".")
    return True, ""


SAMPLED = 5.0  # standard deviations of an average
MISJUDGED = 1e-3  # of the coordinates: near a kink by chance
FEWEST = 8  # pairs that must tell something
ALIKE = 0.5  # of two values of one quantity
APART = 0.02  # of the samples may differ between twins: those where a slope changes its sign
OUTSIDE = 3  # of 28 pairs, those with the largest share of samples apart, do not count
ELSEWHERE = 0.25  # of the coordinates where one twin is at a point: more, and it is not told
ERRORS = 2.0  # of a share that is extrapolated
LARGE = 0.1  # of its terms: below, a bias could be all there is
STAYS = 1 / 3  # power of the samples: a square that falls less stays; that of a bias takes 2
SURE = 6.0  # standard errors of an average over 56 replicates that is not 0
LASTS = 3.0  # standard errors of what is left of one beside a power 1/4 of the samples
NEAR = 0.2  # of the largest of 16 draws: a Gaussian of mean 0 comes nearer
MOST = 2**29  # samples times nodes: what a test of a long program may cost


@dataclass(frozen=True, slots=True)
class Finding:
    """What samples say of a node.

    Args:
        nonzero: True: not 0. False: perhaps 0. None: it has no value.
        text: The evidence.
        deeper: Whether a derivation with more terms may give it a value.
        symbolic: Whether it holds a symbol, so that there is nothing to sample.
        exactly: Whether it is 0 in all samples, but for rounding.
        negative: Of one number, whether it is below 0.
        tables: Whether functions of two arguments are in it, which engines square samples for.
    """

    nonzero: bool | None
    text: str
    deeper: bool = False
    symbolic: bool = False
    exactly: bool = False
    negative: bool = False
    tables: bool = False


class Law(Enum):
    """What is known of the mass of a law at given points."""

    CLEAR = "no mass there"
    FORM = "no mass there by its form, though samples do not tell"
    ATOM = "it is exactly there on a part of the coordinates"
    DIM = "samples are too few to tell"
    BLANK = "it holds a symbol: there is nothing to sample"
    OPEN = "cannot be told from samples"


def nonzero(
    context: Context, refs: Iterable[LRef], seed: int = 0, most: int = MOST
) -> dict[LRef, Finding]:
    """Whether nodes are different from 0: scalars by their value, vectors by their mean square.

    Twins multiply two values whose averages are independent, so that what is 0 and was sampled has
    no sign; more samples are drawn until all is settled.

    Source: Hajjar, Chizat, Giraud, Lemma C.1 (positive finite moments), by numbers.
    """
    found: dict[LRef, Finding] = {}
    left = {ref: _root(context, ref) for ref in dict.fromkeys(refs)}
    levels: dict[LRef, Level] = {}
    cost = dict(zip(left, _costs(context, list(left.values())), strict=True))
    for budget in BUDGETS:
        tried = {ref: root for ref, root in left.items() if _affordable(budget, cost[ref], most)}
        if not tried:
            break
        samples = Sweep(context, replace(budget, slopes=0), seed).run(tried.values())
        for ref, root in tried.items():
            one = samples[root]
            if isinstance(one, Unvalued):
                deeper = context.missing[ref] == "hidden"
                found[ref] = Finding(None, str(one), deeper, one.symbolic)
                del left[ref]
                continue
            with np.errstate(all="ignore"):  # what overflows is no finding
                fixed = context.dims[root] is None and not context.random[root]
                finding, level = _settled(one, budget, context.dims[root], fixed)
            if finding.nonzero and not level.strong and not level.lasts(levels.get(ref)):
                falls = ", falling with the samples" if ref in levels else ""
                text = finding.text + falls
                finding = replace(finding, nonzero=False, negative=False, text=text)
            if budget.own <= BUDGETS[1].own:  # what many more samples are compared with
                levels[ref] = level
            found[ref] = replace(finding, tables=cost[ref][1] > 0)
            if finding.nonzero is not False:
                del left[ref]
    for ref, root in left.items():  # small beside its terms, if it is not 0: a number may tell
        if context.dims[root] is None and not context.random[root]:
            found[ref] = _computed(context, root) or found[ref]
    return found


def _computed(context: Context, ref: LRef) -> Finding | None:
    """A scalar that closed forms or quadrature tell from 0."""
    try:
        answer = evaluated(context, ref)
    except (Unknown, TpcalcError):
        return None
    value, error = float(answer.value), float(answer.error)
    if not abs(value) > 2 * error:
        return None
    text = f"{answer.method.value}: {value:.3g}, error at most {error:.1g}"
    return Finding(True, text, negative=value < 0)


def law(context: Context, claims: Sequence[Claim], seed: int = 0) -> list[tuple[Law, str]]:
    """Whether laws have mass at given points: where a vector does not vary, and is at a point.

    A function of Gaussians has no mass at a point where its gradient is not 0 (Bouleau and Hirsch).

    Source: Bouleau and Hirsch, Dirichlet Forms and Analysis on Wiener Space, section I.7.
    """
    found: dict[int, tuple[Law, str]] = {}
    first: dict[int, tuple[Sweep, Apart]] = {}
    left = list(range(len(claims)))
    cost = _costs(context, [claim.node for claim in claims])
    for budget in LAWS:
        tried = [place for place in left if _affordable(budget, cost[place])]
        if not tried:
            break
        sweep = Sweep(context, budget, seed)
        samples = sweep.run(claims[place].node for place in tried)
        for place in tried:
            claim, one = claims[place], samples[claims[place].node]
            if isinstance(one, Unvalued):
                found[place] = Law.BLANK if one.symbolic else Law.OPEN, str(one)
                left.remove(place)
                continue
            begun = first.get(place)
            with np.errstate(all="ignore"):
                known, text, here = _mass(one, claim, budget, begun and begun[1])
                sweeps = [begun[0], sweep] if begun else [sweep]
                if known is Law.DIM and claim.plain and _brought(claim, sweeps):
                    known = Law.FORM
            first.setdefault(place, (sweep, here))
            found[place] = known, text
            if known is not Law.DIM:
                left.remove(place)
    return [found[place] for place in range(len(claims))]


def _brought(claim: Claim, sweeps: Sequence[Sweep]) -> bool:
    """Whether something new brought a direction that forms show; sweeps: the first and the last."""
    return not claim.sources or any(
        _is_new([(one.budget.own, one.news[ref]) for one in sweeps if ref in one.news])
        for ref in claim.sources
    )


def _is_new(parts: Sequence[tuple[int, Dual]]) -> bool:
    """Whether what is left of a vector beside those that were multiplied before is not 0.

    Of a sum of them rounding is left; of one but for a sampled 0 a part that is small beside its
    terms, and falls with the samples.
    """
    if not parts:
        return False
    (least, before), (most, square) = (
        (own, float(np.median(one.value**2))) for own, one in (parts[0], parts[-1])
    )
    terms = float(np.median(parts[-1][1].size ** 2))
    if not np.isfinite(terms) or square <= ROUNDING**2 * terms:
        return False
    stays = most >= BUDGETS[1].own and square >= (least / most) ** STAYS * before
    return stays or square > LARGE**2 * terms


def comes_near_zero(context: Context, refs: Sequence[LRef], seed: int = 0) -> dict[LRef, bool]:
    """Whether random scalars have values near 0 beside their usual size."""
    found = {}
    for ref, one in Sweep(context, replace(BUDGETS[0], slopes=0), seed).run(refs).items():
        values = np.zeros(1) if isinstance(one, Unvalued) else np.abs(one.value)
        found[ref] = not bool(np.min(values) > NEAR * np.max(values))
    return found


def _costs(context: Context, refs: Sequence[LRef]) -> list[tuple[int, int]]:
    """For each node those that it is made of, and how many of them are tables of two arguments."""
    below: list[int] = []  # a bit for each node
    tables = 0
    for ref in range(max(refs, default=-1) + 1):
        node, bits = context.nodes[ref], 1 << ref
        if outer_of(node) is not None:
            tables |= bits
        for other in references(node):
            bits |= below[other]
        below.append(bits)
    return [(below[ref].bit_count(), (below[ref] & tables).bit_count()) for ref in refs]


def _affordable(budget: Budget, cost: tuple[int, int], most: int = MOST) -> bool:
    """Whether a budget is tried on what some nodes make, whatever else is asked."""
    nodes, tables = cost
    samples = 2 * budget.pairs * (budget.own + budget.common)
    spent = samples * (nodes + tables * min(budget.own, COLUMNS))
    return budget in (BUDGETS[0], LAWS[0]) or spent <= (most if budget in BUDGETS[2:] else MOST)


def _root(context: Context, ref: LRef) -> LRef:
    """What a mean square is the mean square of: the one is 0 where the other is."""
    node = average_of(context.nodes[ref])
    if node is not None and not node.scalars and node.fn.vectors == 1:
        expr = node.fn.expr
        if isinstance(expr, Pow) and expr.base == Var(0) and expr.exponent in (2, 4):
            return node.vectors[0]
    return ref


@dataclass(frozen=True, slots=True)
class Level:
    """How large something is."""

    own: int  # samples that averages are taken over
    square: float = 0.0  # of a vector or a random number
    signs: bool = False  # whether pairs agree in sign
    strong: bool = False  # whether it is no small part of its terms
    average: float | None = None  # of a number that is not random
    error: float = 0.0  # of the average

    def lasts(self, before: Level | None) -> bool:
        """Whether it is no bias, which falls with the samples.

        A root of what is 0 and was sampled falls most slowly, with their power 1/4.
        """
        if before is None:
            return False
        if self.signs and self.square >= (before.own / self.own) ** STAYS * before.square:
            return True
        if self.average is None or before.average is None:
            return False
        rate = float((before.own / self.own) ** 0.25)
        error = float(np.hypot(self.error, rate * before.error))
        return abs(self.average) - rate * abs(before.average) > LASTS * error


def _settled(one: Dual, budget: Budget, dim: str | None, fixed: bool) -> tuple[Finding, Level]:
    """The finding of one budget, and the level it rests on."""
    value = one.value if dim is None else one.value[:, budget.own :]
    value = np.broadcast_to(value, (2 * budget.pairs, value.shape[1]))
    size = np.broadcast_to(one.size, value.shape)
    if not np.all(np.isfinite(value)):
        return Finding(None, "its estimate overflows"), Level(budget.own)
    lost = (np.abs(value) <= ROUNDING * size) & (value != 0)
    value = np.where(lost, 0.0, value)
    first, second = value[0::2], value[1::2]
    cross = np.mean(first * second, axis=1)
    squares = 0.5 * np.mean(first**2 + second**2, axis=1)
    if not np.any(squares):
        return Finding(False, "particles: 0 but for rounding", exactly=True), Level(budget.own)
    # All of 28 pairs but one agree in sign: of what is 0 once in 10^7 times, which is beyond five
    # standard deviations. A random number may be exactly 0 in some pairs, and then in both.
    blurred = np.any(lost[0::2] | lost[1::2], axis=1)
    told = (squares > 0) & ~((cross == 0) & blurred)
    signs = int(np.sum(cross[told] <= 0)) <= 1 and int(np.sum(told)) >= FEWEST
    square = float(np.median(cross[told])) if np.any(told) else 0.0
    strong = square > (LARGE * float(np.sqrt(np.median(np.mean(size**2, axis=1))))) ** 2
    mean, error = float(np.mean(cross)), error_of(cross)
    text = f"particles: mean square {mean:.3g} +- {max(error, abs(mean) * 1e-16):.1g}"
    if signs and mean < SURE * error:
        text += f", above 0 in {int(np.sum(cross > 0))} of {budget.pairs} draws"
    known = Finding(signs, text)
    if dim is not None or not fixed:
        return known, Level(budget.own, square, signs, strong)
    average, error = float(np.mean(value)), error_of(value)
    sure = not np.any(lost) and abs(average) > SURE * error
    if sure or not signs:  # else the average is not what tells
        known = Finding(sure, f"particles: {average:.3g} +- {error:.1g}")
    known = replace(known, negative=bool(known.nonzero) and average < 0)
    return known, Level(budget.own, square, signs, strong, average, error)


@dataclass(frozen=True, slots=True)
class Apart:
    """Of each pair the share of the samples on which twins differ on where the slope is 0."""

    own: int  # samples that averages are taken over
    # of the pairs, but for those in which it is largest: with heavy tails a few of them are far
    # out, and everything in them is small beside its terms
    shares: Array

    @classmethod
    def of(cls, own: int, unlike: NDArray[np.bool_]) -> Apart:
        """The shares of samples that differ, pairs by samples."""
        return cls(own, np.sort(np.mean(unlike, axis=1))[: len(unlike) - OUTSIDE])

    @property
    def share(self) -> float:
        """Of all samples."""
        return float(np.mean(self.shares))

    def lasting(self, before: Apart | None) -> float:
        """The share, or what may be left of it with any number of samples.

        A slope that is 0 on a part differs there whatever their number; one that is small by chance
        differs the less often the better its coefficients are known, as a root of the samples.
        """
        if before is None:
            return self.share
        rate = float((before.own / self.own) ** 0.5)
        error = float(np.hypot(error_of(self.shares), rate * error_of(before.shares)))
        most = self.share - rate * before.share + ERRORS * error
        return min(self.share, most / (1 - rate))


def error_of(values: Array) -> float:
    """The standard error of a mean."""
    return float(np.std(values, ddof=1) / len(values) ** 0.5)


def _mass(one: Dual, claim: Claim, budget: Budget, before: Apart | None) -> tuple[Law, str, Apart]:
    """What is known, the evidence, and where twins differ.

    That it is at a point on a part tells that a law is not clear. To tell where it is there takes
    more: no other part may be there but for what was sampled.
    """
    value = one.value[:, budget.own :]
    size = np.broadcast_to(one.size, value.shape)
    still, unlike = _flatness(one, value.shape, budget.own)
    distances = [value - point for point in claim.points]
    noise = SAMPLED / budget.own**0.5 * size
    close = np.any([np.abs(distance) <= noise for distance in distances], axis=0)
    unlike &= close[0::2] & close[1::2]
    apart = Apart.of(budget.own, unlike)
    near = np.min(np.abs(distances), axis=0)
    if np.mean((near <= EXACTLY) != (near <= ROUNDING * size)) > MISJUDGED:
        return Law.OPEN, "it is too small to be told from rounding", apart
    if not np.all(np.isfinite(value)):
        return Law.OPEN, "its samples overflow", apart
    within = [ROUNDING * (size + abs(point)) for point in claim.points]
    there = still & np.any([np.abs(d) <= w for d, w in zip(distances, within, strict=True)], axis=0)
    atom = f"particles: exactly there on {_share(there)} of the coordinates"
    if np.any(there) and not _agree(there):
        return Law.DIM, f"{atom}, on others in other samples", apart
    if np.any(there) and claim.kind == "clear":
        return Law.ATOM, atom, apart
    # Where it does not vary, its value may be sampled: twins tell it from the point.
    fixed = still[0::2] & still[1::2]
    share = float(np.mean(still))
    for distance in distances:
        sampled = fixed & ~there[0::2] & (_likeness(distance[0::2], distance[1::2]) < ALIKE)
        if np.mean(sampled) > APART * max(share, APART):
            return Law.DIM, "a part of it may be a number that is there", apart
    if apart.lasting(before) > APART:
        text = f"particles: its slope may be 0 on {apart.share:.2g} of the coordinates"
        return Law.DIM, text, apart
    if np.any(there):
        return Law.ATOM, atom, apart
    return Law.CLEAR, "particles: it varies wherever it may be there", apart


def _agree(there: NDArray[np.bool_]) -> bool:
    """Whether twins are at a point on the same coordinates, but for a few.

    A sampled number may be on the wrong side of a kink, with all that it decides.
    """
    either, both = there[0::2] | there[1::2], there[0::2] & there[1::2]
    told = np.any(either, axis=1)
    alike = np.sum(both, axis=1) >= (1 - ELSEWHERE) * np.sum(either, axis=1)
    return int(np.sum(told & ~alike)) <= min(OUTSIDE, int(np.sum(told & alike)))


def _flatness(
    one: Dual, shape: tuple[int, ...], own: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where the slope is 0 but for rounding, and where twins differ on it."""
    if one.slope is None or one.steep is None:
        return np.ones(shape, dtype=bool), np.zeros((shape[0] // 2, shape[1]), dtype=bool)
    slope = np.broadcast_to(one.slope, (one.slope.shape[0], *shape))
    steep = np.broadcast_to(one.steep, shape)
    still: NDArray[np.bool_] = np.all(np.abs(slope) <= ROUNDING * steep, axis=0)
    first, second = slope[:, 0::2], slope[:, 1::2]
    # A slope that is 0 and was sampled is small beside its terms, and twins have opposite signs.
    norms = np.sqrt(np.mean(slope**2, axis=0))
    small = norms < SAMPLED / own**0.5 * steep
    unlike = (_likeness(first, second, axis=0) < 0) & small[0::2] & small[1::2]
    return still, unlike & ~(still[0::2] & still[1::2])


def _likeness(a: Array, b: Array, axis: int | None = None) -> Array:
    """2 a b / (a^2 + b^2): 1 where twins agree, of either sign where they are sampled zeros."""
    top: Any = 2 * a * b
    below: Any = a**2 + b**2
    if axis is not None:
        top, below = np.sum(top, axis=axis), np.sum(below, axis=axis)
    found: Array = np.divide(top, below, out=np.zeros_like(top), where=below > 0)
    return found


def _share(there: NDArray[np.bool_]) -> str:
    return f"{100 * float(np.mean(there)):.2g} %"
