"""Numbers in front of the terms of corrections: as limits have them, else estimated with particles.

The coefficients of What x are r E[dZ^x / d hat_j], hat_j the Gaussian part of What^T y_j. By
Stein's lemma they solve a linear system whose entries are second moments: E[hat_i Z^x] and the
covariance of the hats. Each replicate solves its own, so that the spread is the error bar.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod, sqrt

import numpy as np
from threadpoolctl import ThreadpoolController

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, LimitError, OutOfMemory, ScaleError
from tpcalc.evaluate.chain import Chain
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.evaluate.particles.estimate import Budget, run_particles
from tpcalc.limit.derive import graph_of
from tpcalc.limit.graph import LRef, Product, Target, product_mean, the_product
from tpcalc.passes.sums import fresh
from tpcalc.program.base import reached
from tpcalc.program.nodes import Rename
from tpcalc.questions.dependence.sets import Home, Sets
from tpcalc.results import Estimate, Method, spread_error

Pair = tuple[int, int]
Values = Array
BUDGET = Budget(samples=2**13, replicates=16)
ROUGH = 64  # times fewer samples, in the second run
MOST = 2**25  # samples times nodes
STRONG, FALLS, STEADY = 8.0, 3.0, 0.35  # as for the leading coefficients of orders
SINGULAR = 1e-9
LARGEST = 300  # hats of blocks whose corrections are estimated together


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient of a correction."""

    estimate: Estimate  # its value
    nonzero: bool  # whether numbers tell it from 0


def coefficients(sets: Sets, products: Iterable[LRef], seed: int = 0) -> dict[Pair, Coefficient]:
    """The coefficients of the corrections of some products that may be different from 0.

    Source: Hajjar, Chizat, Giraud, section B.2 (ZDot).
    """
    wanted = _with_earlier(sets, products)
    if not wanted or is_large(sets, wanted):
        return {}
    hats = [hat for ref in wanted for hat in sets.hats(ref).values()]
    pairs = [(hat, q) for hat in hats for q in sets.below(hat)[0]]
    known = _evaluated(sets, pairs)
    if len(known) == len(pairs):
        return known
    system = _System(sets, wanted)
    samples = BUDGET.samples
    count = sum(prod(size for _, size in axes) for axes in sets.context.axes)
    while samples * count > MOST and samples > 2 * ROUGH:
        samples //= 2
    fine, rough = (
        system.solved(replace(BUDGET, samples=count), seed) for count in (samples, samples // ROUGH)
    )
    return {
        pair: _judged(values, rough[pair], system.is_random(pair[0]), samples, seed)
        for pair, values in fine.items()
        if pair in rough
    } | known


def _evaluated(sets: Sets, pairs: Sequence[Pair]) -> dict[Pair, Coefficient]:
    """The coefficients that take no samples: as limits have them."""
    refs = {sets.homes[hat][0] for pair in pairs for hat in pair}
    targets = tuple((str(ref), Target(Fraction(0), ref)) for ref in sorted(refs))
    try:
        graph = graph_of(sets.context, targets)
    except LimitError:
        return {}
    if graph.has_blocks:
        return {}
    chain, found = Chain(graph), dict[Pair, Coefficient]()
    for hat, q in pairs:
        own = chain.coefficient(*(str(sets.homes[one][0]) for one in (hat, q)))
        if own is not None:
            found[hat, q] = Coefficient(own, abs(own.value) > 2 * own.stderr)
    return found


def is_large(sets: Sets, products: Iterable[LRef]) -> bool:
    """Whether blocks of products have too many cells for the systems of their corrections."""
    if not sets.context.program.has_blocks:
        return False
    return sum(len(sets.hats(ref)) for ref in _with_earlier(sets, products)) > LARGEST


def _with_earlier(sets: Sets, products: Iterable[LRef]) -> list[LRef]:
    """The products that have a correction, with those that theirs rest on, in order."""

    def corrected(refs: Iterable[LRef]) -> Iterator[LRef]:
        return (ref for ref in refs if sets.dots[ref].open)

    return sorted(reached(corrected(products), lambda ref: corrected(sets.dots[ref].open)))


@dataclass
class _System:
    """The linear systems of all cells of some products.

    Second moments of blocks are those of all pairs of their cells.
    """

    sets: Sets
    products: list[LRef]
    _pairs: dict[Pair, LRef] = field(default_factory=dict)  # of nodes, to that of their moment

    def __post_init__(self) -> None:
        for ref in self.products:
            x, earlier = self._vector(ref), self.sets.dots[ref].open
            for q in earlier:
                self._moment(q, x)
                for other in earlier:
                    self._moment(self._vector(q), self._vector(other))
                for below in self.sets.dots[q].open:
                    self._moment(self._vector(below), x)

    def _node(self, ref: LRef) -> Product:
        return the_product(self.sets.context.nodes[ref])

    def _vector(self, ref: LRef) -> LRef:
        return self._node(ref).vector

    def is_random(self, hat: int) -> bool:
        """Whether a product depends on scalars that stay random."""
        vector, cell = self.sets.argument(hat)
        return bool(self.sets.random(self.sets.at(vector, cell)))

    def _moment(self, a: LRef, b: LRef) -> None:
        pair, context = ((a, b) if a <= b else (b, a)), self.sets.context
        if pair not in self._pairs and not any(context.missing[r] for r in pair):
            left, right = pair
            if context.axes[left]:  # every cell of one with every cell of the other
                taken = {*dict(context.axes[left]), *dict(context.axes[right])}
                names = []
                for name, _ in context.axes[left]:
                    names.append((name, fresh(f"{name}'", taken)))
                    taken.add(names[-1][1])
                left = context.add(Rename(left, tuple(names)), context.dims[left])
            self._pairs[pair] = context.add(product_mean(left, right), None)

    def solved(self, budget: Budget, seed: int) -> dict[Pair, Values]:
        """For each hat and each earlier one the coefficient of every replicate."""
        targets = [(str(ref), Target(Fraction(0), ref)) for ref in set(self._pairs.values())]
        if not targets:
            return {}
        try:
            compiled = compile_graph(graph_of(self.sets.context, tuple(targets)))
            with np.errstate(all="ignore"):  # what overflows is left out below
                draws = run_particles(compiled, budget, seed)
        except (LimitError, EvaluationError, ScaleError, OutOfMemory):
            return {}
        moments = dict[Pair, Values]()
        for pair, ref in self._pairs.items():
            axes, sizes = self.sets.context.axes, [size for _, size in self.sets.context.axes[ref]]
            places = [compiled.scalars[cell] for cell in compiled.cells[str(ref)]]
            values = draws.values[:, places].T.reshape(*sizes, -1)
            right = [name for name, _ in axes[pair[1]]]
            names = [name for name, _ in axes[ref]]
            left = [place for place, name in enumerate(names) if name not in right]
            order = [*left, *(names.index(name) for name in right), len(names)]
            moments[pair] = values.transpose(order)
        out: dict[Pair, Values] = {}
        with ThreadpoolController().limit(limits=1, user_api="blas"):  # the systems are small
            for hat in (hat for ref in self.products for hat in self.sets.hats(ref).values()):
                earlier = self.sets.below(hat)[0]
                found = self._one(hat, earlier, moments, out) if earlier else None
                if found is not None and np.all(np.isfinite(found)):
                    out |= {(hat, q): found[:, place] for place, q in enumerate(earlier)}
        return out

    def _one(
        self,
        hat: int,
        earlier: tuple[int, ...],
        moments: Mapping[Pair, Values],
        known: Mapping[Pair, Values],
    ) -> Values | None:
        """Solve Gamma c = E[hat Z^x] for one product; None where something in it is not known."""
        sets = self.sets

        def moment(one: Home, two: Home) -> Values:
            (a, left), (b, right) = sorted((one, two), key=lambda home: home[0])
            found: Values = moments[a, b][(*left, *right)]
            return found

        x, args = sets.argument(hat), {q: sets.argument(q) for q in earlier}
        try:
            gamma = [[moment(args[q], args[p]) for p in earlier] for q in earlier]
            right = []
            for q in earlier:
                total = moment(sets.homes[q], x)
                for below in sets.below(q)[0]:
                    total = total - known[q, below] * moment(sets.argument(below), x)
                right.append(total)
        except KeyError:
            return None
        own, back = self._ratios(sets.homes[hat][0])
        matrix = np.moveaxis(np.array(gamma), 2, 0) * back
        if not np.all(np.isfinite(matrix)) or not np.all(np.isfinite(right)):
            return None
        inverse = np.linalg.pinv(matrix, rcond=SINGULAR, hermitian=True)
        found: Values = own * np.einsum("rij,jr->ri", inverse, np.array(right))
        return found

    def _ratios(self, ref: LRef) -> tuple[float, float]:
        """The dimension that a product sums over, and that of the other side, in units of n."""
        node, program = self._node(ref), self.sets.context.program
        width = program.families[node.matrix].width
        rows, cols = (float(program.dim[name].ratio) for name in width)
        return (rows, cols) if node.transpose else (cols, rows)


def _judged(values: Values, rough: Values, random: bool, samples: int, seed: int) -> Coefficient:
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
    stderr = spread / sqrt(len(values))
    found = Estimate(
        mean,
        stderr,
        Method.PARTICLES,
        samples=samples,
        replicates=len(values),
        seed=seed,
        std=spread if random else None,
        draws=tuple(values.tolist()),
        std_error=spread_error(values.tolist()) if random else None,
    )
    square, before = float(np.mean(values**2)), float(np.mean(rough**2))
    if random:  # a number that is drawn again: it is told from 0 by a size that lasts
        return Coefficient(found, square > STEADY * before)
    away = abs(mean - float(np.mean(rough)))
    far = away > FALLS * sqrt(stderr**2 + float(np.var(rough, ddof=1)) / len(rough))
    falls = square <= STEADY * before and far
    return Coefficient(found, abs(mean) > STRONG * stderr and not falls)
