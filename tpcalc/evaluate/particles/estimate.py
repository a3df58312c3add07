"""Running a limit graph with particles: replicates, error bars, samples until they suffice.

What rare samples may dominate is told by degrees: how fast a Z grows with its Gaussians.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import hypot, inf, isfinite, log, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.engine.instructions import Outer
from tpcalc.errors import EvaluationError, OutOfMemory
from tpcalc.evaluate.particles.compile import Compiled
from tpcalc.functions import Call, Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, mul, substitute, variables, walk
from tpcalc.functions.form import quotient
from tpcalc.functions.tape import evaluate
from tpcalc.limit.degrees import Degree, degree_of, degree_sum, largest_degree, of_forms
from tpcalc.limit.graph import (
    Expect,
    Fluctuation,
    LimitGraph,
    OuterExpect,
    Product,
    Start,
    Starts,
    Total,
    product_of,
)
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import LinComb, Nonlin, Rename, Stack
from tpcalc.progress import Progress
from tpcalc.results import Estimate, Method, Status, spread_error
from tpcalc.results.data import grouped

# Each with its least, and the seconds that one takes: samples are estimated with the program.
_COUNTS = (
    ("samples", None, 0.0),
    ("replicates", 2, checks.PART),
    ("max_samples", 2, 0.0),
    ("threads", 1, 0.0),
    ("memory_limit", 0, 0.0),
)
PAIRS = 16  # of replicates that share their random scalars
FEWER = 8  # times fewer samples, with which most of what is random is told
SHARE = 0.2  # of the spread that sampling may be: by chance it is less once in 10^4 times
ROUNDING = 1e-12  # of a number: what scatters by less does not
FAMILY = 1  # first entropy word of particle runs, so that finite runs never share their draws


@dataclass(frozen=True)
class Budget:
    """How much work an estimate may take."""

    samples: int = 2**14  # samples of one replicate, a power of two
    replicates: int = 16  # independent scrambles; their spread is the error bar. At least 2.
    # wanted standard error relative to the value, for every scalar; None: no target
    rel_error: float | None = None
    max_samples: int = 2**20  # where doubling the samples stops
    threads: int | None = None  # how many share the work; None: one for each core
    storage: str = "float64"  # "float64" or "float32" storage of directions
    memory_limit: int | None = None  # bytes; None: what is available
    device: str | None = None  # where torch computes; None: the compiled engine of the CPU

    def __post_init__(self) -> None:
        for name, least, each in _COUNTS:
            given = getattr(self, name)
            if given is not None:
                found = checks.whole(given, name, least=least, each=each)
                object.__setattr__(self, name, found)
        if self.rel_error is not None:
            hint = "Give a part of 1, such as 0.01."
            part = checks.real(self.rel_error, "rel_error", above=0, hint=hint)
            object.__setattr__(self, "rel_error", float(part))
        for name in ("samples", "max_samples"):
            count = getattr(self, name)
            if count < 2 or count & (count - 1):
                nearest = 2 ** max(1, round(np.log2(max(count, 2))))
                raise EvaluationError(
                    f"{name} is {count}; a Sobol sequence is balanced at powers of two only.",
                    hint=f"Use {name}={nearest}.",
                )
        checks.one_of("storage", self.storage, ("float64", "float32"))

    @property
    def fixed(self) -> dict[str, Any]:
        """The arguments of ``limit`` for the same work once more, without a target."""
        names = ("samples", "replicates", "threads", "storage", "memory_limit", "device")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Draws:
    """Results of all replicates: shape (replicates, results), and sampled vectors.

    ``storage`` is the precision of directions that they were found with, ``bias`` what results may
    be off by beside their spread.
    """

    values: Array
    vectors: tuple[tuple[Array, ...], ...]
    samples: int
    seed: int
    status: Status
    storage: str = "float64"
    bias: Array | None = None


def run_particles(
    compiled: Compiled,
    budget: Budget,
    seed: int,
    progress: Progress | None = None,
    *,
    twin: Sequence[int] = (),
) -> Draws:
    """Run replicates; with an error target double the samples until it is met."""
    samples = budget.samples
    draws = _run(compiled, budget, samples, seed, progress, twin)
    _check_denominators(compiled, draws.values)
    _check_jumps(compiled, draws.values)
    while budget.rel_error is not None and not _met(compiled, draws.values, budget.rel_error):
        samples *= 2
        try:
            if samples > budget.max_samples:
                return replace(draws, status=Status.TOLERANCE_NOT_REACHED)
            draws = _run(compiled, budget, samples, seed, progress, twin)
        except OutOfMemory:  # the size before was the largest that fits
            return replace(draws, status=Status.TOLERANCE_NOT_REACHED)
    return draws


def _run(
    compiled: Compiled,
    budget: Budget,
    samples: int,
    seed: int,
    progress: Progress | None,
    twin: Sequence[int],
) -> Draws:
    from tpcalc.engine.run import Runner
    from tpcalc.engine.setting import Setting

    runner = Runner(
        compiled.script,
        Setting("limit", samples, budget.storage, device=budget.device),
        budget.threads,
        budget.memory_limit,
    )
    outcomes = runner.run([(seed, FAMILY, r, *twin) for r in range(budget.replicates)], progress)
    values = np.array([outcome.scalars for outcome in outcomes], dtype=np.float64)
    vectors = tuple(outcome.vectors for outcome in outcomes)
    values = values.reshape(len(outcomes), -1)
    return Draws(values, vectors, samples, seed, Status.CONVERGED, outcomes[0].storage)


def doubtful(compiled: Compiled, budget: Budget, seed: int, enough: int) -> frozenset[int]:
    """The random results whose spread may be the error of sampling.

    What does not depend on the random scalars scatters as much where these stay the same. A spread
    that few samples leave open is told with more: their error falls, and what is random stays.
    """
    left = compiled.random
    fewer, own = max(budget.samples // FEWER, 2), replace(budget, replicates=PAIRS)
    for samples in (fewer, max(budget.samples, enough)):
        if left:
            try:
                one, two = (
                    _run(compiled, own, samples, seed, None, twin).values for twin in ((), (1,))
                )
            except OutOfMemory:
                break  # fewer fit, and do not tell
            sampled = np.square(one - two).mean(0) / 2
            whole = (one.var(0, ddof=1) + two.var(0, ddof=1)) / 2
            least = np.where(whole > np.square(ROUNDING * one.mean(0)), SHARE * whole, 0.0)
            left = frozenset(column for column in left if sampled[column] > least[column])
    return left


def with_bias(draws: Draws, compiled: Compiled, budget: Budget) -> Draws:
    """The draws with the bias of functions of averages over sampled columns.

    It falls at least like 1 over their number, so that half of them move a result by as much.
    """
    steps = compiled.script.instructions
    halves = tuple(replace(s, part=2) if isinstance(s, Outer) and not s.forms else s for s in steps)
    if halves == steps:
        return draws
    halved = replace(compiled, script=replace(compiled.script, instructions=halves))
    found = _run(halved, budget, draws.samples, draws.seed, None, ()).values
    return replace(draws, bias=np.abs((found - draws.values).mean(axis=0)))


def recorded(budget: Budget, draws: Draws | None) -> dict[str, str]:
    """What the record of an answer says of its draws, if there were any."""
    found = {
        "samples": str(draws.samples if draws else 0),
        "replicates": str(budget.replicates if draws else 0),
        "storage": draws.storage if draws else budget.storage,
    }
    return found | ({"device": budget.device} if draws and budget.device else {})


def _check_jumps(compiled: Compiled, values: Array) -> None:
    for column in compiled.jumps:
        if np.ptp(values[:, column]) > 0:
            raise EvaluationError(
                "a scalar is at the jump of a function within its error: replicates fall on both "
                "sides.",
                hint="Use a smooth function of it, or more samples if it is near the jump only.",
            )


def _check_denominators(compiled: Compiled, values: Array) -> None:
    """Refuse to divide by a number that is 0 within its error."""
    for column in compiled.denominators:
        mean, stderr = _mean_and_error(values[:, column])
        if abs(mean) <= 5 * stderr or mean == 0:
            raise EvaluationError(
                f"the program divides by a scalar that is 0 within its error ({mean:.2g} ± "
                f"{stderr:.1e}).",
                hint="Use more samples; if it is 0 in the limit, write its power of n.",
            )


def _met(compiled: Compiled, values: Array, rel_error: float) -> bool:
    for column in compiled.scalars.values():
        mean, stderr = _mean_and_error(values[:, column])
        if column not in compiled.random and stderr > rel_error * abs(mean):
            return False
    return True


@np.errstate(over="ignore", invalid="ignore")  # an error that is not finite is told
def _mean_and_error(draws: Array) -> tuple[float, float]:
    return float(np.mean(draws)), float(np.std(draws, ddof=1)) / sqrt(len(draws))


def estimate(draws: Draws, column: int, *, random: bool = False, doubt: bool = False) -> Estimate:
    """The estimate of one result."""
    own = draws.values[:, column]
    mean, stderr = _mean_and_error(own)
    stderr *= sqrt(len(own)) if doubt else 1.0
    status = draws.status
    if np.ptp(own) == 0:  # no event in all samples is no proof that there is none
        stderr = max(abs(mean), 1.0) / (len(own) * (1 if random else draws.samples))
        status = Status.RARE if status is Status.CONVERGED else status
    if draws.bias is not None:
        stderr = hypot(stderr, float(draws.bias[column]))
    return Estimate(
        mean,
        stderr,
        Method.PARTICLES,
        status,
        draws.samples,
        len(own),
        draws.seed,
        float(np.std(own, ddof=1)) if random else None,
        tuple(own.tolist()),
        std_error=spread_error(own.tolist()) if random else None,
    )


def paired(left: Estimate, right: Estimate) -> Estimate:
    """The covariance of two random scalars of one run, replicate by replicate."""
    a, b = (np.array(one.draws) - one.value for one in (left, right))
    count = len(a)
    value, stderr = _mean_and_error(a * b * count / (count - 1))
    status = right.status if left.status is Status.CONVERGED else left.status
    return Estimate(value, stderr, Method.PARTICLES, status, left.samples, count, left.seed)


def collect(draws: Draws, index: int, count: int) -> Array:
    """The first ``count`` samples of a collected vector, over replicates in order."""
    parts: Sequence[Array] = [vectors[index] for vectors in draws.vectors]
    return np.concatenate(parts)[:count]


ENOUGH = 30  # samples beyond the place where the variance of an average comes from
FAR = (1e4, 1e8)  # where the growth of a function of one variable is read off
ZERO, ONE = Fraction(0), Fraction(1)


def rarely_sampled(graph: LimitGraph, samples: int) -> dict[str, str]:
    """The targets whose standard error may be too small, with the degree of what is averaged.

    The variance of an average of a polynomial of degree D in a Gaussian comes from values near
    sqrt(2 D). Where hardly a sample lies there, neither the average nor the spread of replicates
    has seen it. Degrees add up in products, though values of independent variables are less rare:
    what is marked may be in order.

    Example:
        >>> from tpcalc.limit.graph import Target
        >>> nodes = (Start("v", 0), Expect(Fn(Var(0) ** 12, 1), (0,)))
        >>> target = ("f", Target(Fraction(0), 1))
        >>> rarely_sampled(LimitGraph(nodes, (target,), ("n", None), (), (), ()), 2**18)
        {'f': '12'}
    """
    from scipy.special import ndtr

    found = {}
    for name, degree in sampled_degrees(graph).items():
        if degree is None or degree == inf:
            found[name] = "oo"
        elif degree > 0:
            beyond = 2 * float(ndtr(-sqrt(2 * float(degree))))
            if samples * beyond < ENOUGH:
                found[name] = str(degree)
    return found


def sampled_degrees(graph: LimitGraph) -> dict[str, Degree]:
    """For each target the largest degree of what is averaged on the way to it."""
    own: list[Degree] = []
    worst: list[Degree] = []
    read: dict[tuple[str, bool], list[Degree]] = {}
    for node in graph.nodes:
        own.append(_OWN(node, own, read))
        if (product := product_of(node)) is not None:
            read.setdefault((product.matrix, product.transpose), []).append(own[product.vector])
        averaged = _AVERAGED(node, own)
        worst.append(largest_degree([*(worst[ref] for ref in references(node)), *averaged]))
    found: dict[str, Degree] = {}
    for name, target in graph.targets:
        if target.node is None:
            found[name] = ZERO
            continue
        square = [own[target.node]] * 2 if graph.vector_dim[target.node] is not None else []
        found[name] = largest_degree([worst[target.node], degree_sum(square)])
    return found


_Owns = Sequence[Degree]
_Read = Mapping[tuple[str, bool], Sequence[Degree]]


def _expect(node: Expect, own: _Owns) -> _Owns:
    return [_seen(node.fn.expr, [own[v] for v in node.vectors], [ZERO] * len(node.scalars))]


def _outer_expect(node: OuterExpect, own: _Owns) -> _Owns:
    given = of_forms([ZERO] * len(node.rows), [own[c] for c in node.cols], node.forms)
    kernel = _seen(node.fn.expr, given, [ZERO] * len(node.scalars))
    return [degree_sum([kernel, own[node.vector]])]  # for each row


def _variance(node: Product | Fluctuation, own: _Owns) -> _Owns:
    """A Gaussian of variance E (Z^x)^2."""
    return [degree_sum([own[x], own[x]]) for x in references(node)]


# The degrees of what is averaged for a node.
_AVERAGED: Table[_Owns] = Table(
    {Expect: _expect, OuterExpect: _outer_expect, Product: _variance, Fluctuation: _variance},
    lambda node, own: (),
)


def _product_degree(node: Product, own: _Owns, read: _Read) -> Degree:
    """A Gaussian, and multiples of what the other side read before."""
    return largest_degree([ONE, *read.get((node.matrix, not node.transpose), ())])


def _apply(node: Nonlin, own: _Owns, read: _Read) -> Degree:
    return _seen(node.fn.expr, [own[v] for v in node.vectors], [ZERO] * len(node.scalars))


def _outer(node: OuterExpect, own: _Owns, read: _Read) -> Degree:
    given = of_forms([own[r] for r in node.rows], [ZERO] * len(node.cols), node.forms)
    return _seen(node.fn.expr, given, [ZERO] * len(node.scalars))


# The degree of a variable; scalars count as numbers, also those that stay random.
_OWN: Table[Degree] = Table(
    {
        **dict.fromkeys((Start, Starts), lambda node, own, read: ONE),
        Product: _product_degree,
        LinComb: lambda node, own, read: largest_degree(own[v] for v in node.vectors),
        Total: lambda node, own, read: largest_degree(own[v] for v in node.vectors),
        Rename: lambda node, own, read: own[node.of],
        Stack: lambda node, own, read: largest_degree(own[v] for v in node.of),
        Nonlin: _apply,
        OuterExpect: _outer,
    },
    lambda node, own, read: ZERO,
)


def _seen(expr: Expr, vectors: Sequence[Degree], scalars: Sequence[Degree]) -> Degree:
    """The degree of a function, of one variable by its growth: x phi(x) is bounded."""
    if isinstance(expr, Add):
        return largest_degree(_seen(term, vectors, scalars) for term in expr.terms)
    if isinstance(expr, Call) and expr.atom.facts.order == 0:  # near 0 it is large on few samples
        return _seen(expr.arg, vectors, scalars)
    inside = variables(expr)
    if len(inside) == 1:
        (index,) = inside
        own, rate = vectors[index], _growth(expr, index)
        if own is not None and rate is not None:
            return own * rate
    if isinstance(expr, Mul) and len(inside) > 1 and quotient(expr) is None:
        parts = grouped(expr.factors, variables)
        if len(parts) > 1:
            return degree_sum(_seen(mul(own), vectors, scalars) for own in parts.values())
    return degree_of(expr, vectors, scalars)


def _growth(expr: Expr, index: int) -> Fraction | None:
    """The power with which a function of one variable grows; None where numbers do not tell."""
    if any(isinstance(part, Par) for part in walk(expr)):
        return None
    fn = Fn(substitute(expr, {Var(index): Var(0)}), 1)
    rates = [0.0]
    for sign in (1.0, -1.0):
        with np.errstate(all="ignore"):
            near, far = (abs(float(evaluate(fn, [np.float64(sign * x)]))) for x in FAR)
        if not (isfinite(near) and isfinite(far)):
            return None
        if far > 0 and near > 0:
            rates.append(log(far / near) / log(FAR[1] / FAR[0]))
    return Fraction(max(rates)).limit_denominator(16)
