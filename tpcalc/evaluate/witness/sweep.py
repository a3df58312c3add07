"""``Sweep``: a sample of the nodes of a limit graph under construction, in plain arrays.

Replicates are an axis, and come in twins: both of a pair draw the same random scalars and, at the
common samples, the same Gaussians, but each has averages of its own. What is not 0 agrees between
twins; what is 0 and was sampled does not.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine.starts import members_factor
from tpcalc.errors import LimitError, ScaleError
from tpcalc.evaluate.particles.emit import family
from tpcalc.evaluate.witness.dual import ROUNDING, Dual, Unvalued, constant, dual, exact, mixed
from tpcalc.functions import Expr, Fn, Par, Var
from tpcalc.functions.forms import tiles
from tpcalc.limit.building import is_hidden
from tpcalc.limit.context import Context
from tpcalc.limit.derive import check_fluctuations, cone
from tpcalc.limit.graph import Expect, Fluctuation, LRef, Noise, Number, OuterExpect, Product, Start
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Input, LinComb, Nonlin
from tpcalc.results.data import grouped


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is sampled."""

    own: int  # samples of each replicate that its averages are taken over
    common: int = 48  # samples that twins share
    pairs: int = 28  # pairs of replicates
    slopes: int = 4  # random directions that slopes are taken along; 0: slopes are not followed


# Primes, so that no share of the samples is 1/2 or another simple fraction by chance.
BUDGETS = (Budget(113), Budget(887, 128), Budget(4001, 512), Budget(7177, 1024))
LAWS = (
    Budget(113),
    Budget(443, 64),
    Budget(887, 128),
    Budget(3547, 256),
    Budget(14197, 512),
)
KEPT = 1000  # own samples of Gaussians that are kept, half a megabyte each
COLUMNS = 256  # of an outer function that are averaged over
FRESH = 10.0  # sizes of terms, beside what they make, that are carried through a matrix
SEEN = 1e-3  # of the terms: what scatters less may be their rounding
MOST = 2**27  # numbers that directions may hold: 1 GiB


def _gaussian(budget: Budget, seeds: tuple[int, int]) -> Dual:
    """A standard Gaussian of these seeds, whose arrays are not written to."""
    random = np.random.default_rng(seeds)
    shared = np.repeat(random.standard_normal((budget.pairs, budget.common)), 2, axis=0)
    value = np.concatenate([random.standard_normal((2 * budget.pairs, budget.own)), shared], axis=1)
    sizes = np.abs(shared)
    value.flags.writeable = sizes.flags.writeable = False
    if not budget.slopes:
        return Dual(value, sizes)
    slope = random.standard_normal((budget.slopes, 1, 1))
    slope.flags.writeable = False
    return Dual(value, sizes, slope, np.full((1, 1), float(np.max(np.abs(slope)))))


# Derivations of one program that go deeper each time, or take more steps, ask for the same ones.
_kept = lru_cache(maxsize=128)(_gaussian)


@dataclass
class _Side:
    """Orthonormal directions that something linear was applied to, and what they were sent to."""

    inputs: list[Dual] = field(default_factory=list)
    draws: list[Dual] = field(default_factory=list)
    bits: list[int] = field(default_factory=list)  # of the vector that brought the direction


class Sweep:
    """Samples of nodes, computed in order and dropped after their last use.

    Args:
        context: The graph under construction.
        budget: How much is sampled.
        seed: Of all draws.

    Attributes:
        news: Of each product how large the part of its vector is that its matrix meets first there.
    """

    def __init__(self, context: Context, budget: Budget, seed: int) -> None:
        self.context, self.budget, self.seed = context, budget, seed
        self.news: dict[LRef, Dual] = {}
        self._sides: dict[object, _Side] = {}
        self._starts: dict[str, list[Dual]] = {}
        self._ratio = {dim.name: float(dim.ratio) for dim in context.program.dims}
        families = context.program.families.values()
        self._matrices = {f.name: (f.width[0], f.width[1]) for f in families if len(f.width) == 2}

    def run(self, asked: Iterable[LRef]) -> dict[LRef, Dual | Unvalued]:
        """Samples of some nodes."""
        against = self._entangled(list(asked))
        wanted = {ref for ref, reason in against.items() if reason is None}
        last: dict[LRef, int] = {}
        for ref in reversed(cone(self.context, wanted)):
            for other in (ref, *references(self.context.nodes[ref])):
                last.setdefault(other, ref)
        drops = grouped((ref for ref in last if ref not in wanted), last.__getitem__)
        found: dict[LRef, Dual | Unvalued] = {}
        with np.errstate(all="ignore"):  # what is not finite is seen by the tests
            for ref in sorted(last):
                found[ref] = self._tried(ref, found)
                for other in drops.get(ref, ()):
                    del found[other]
        return {ref: reason or found[ref] for ref, reason in against.items()}

    def _entangled(self, asked: Sequence[LRef]) -> dict[LRef, Unvalued | None]:
        """Of each node why the fluctuations that it takes cannot be drawn, if so."""
        found: dict[LRef, Unvalued | None] = dict.fromkeys(asked)
        drawn = [ref for ref in found if self.context.random[ref]]
        try:
            check_fluctuations(self.context, cone(self.context, drawn))
        except LimitError:  # some of them; together they may be correlated where none is alone
            for ref in drawn:
                try:
                    check_fluctuations(self.context, cone(self.context, [ref]))
                except LimitError as error:
                    found[ref] = Unvalued(error.message)
        return found

    def _tried(self, ref: LRef, values: dict[LRef, Dual | Unvalued]) -> Dual | Unvalued:
        below = [values[other] for other in references(self.context.nodes[ref])]
        for one in below:
            if isinstance(one, Unvalued):
                return one
        try:
            return _VALUES(self.context.nodes[ref], self, values)
        except Unvalued as reason:
            return reason.with_traceback(None)

    # -- nodes -------------------------------------------------------------------------------

    def _draw(self, node: Input) -> Dual:
        draws = self._generator("scalar", node.name).standard_normal(self.budget.pairs)
        mean, std = float(node.family.means[0]), float(node.family.std)
        return constant(mean + std * np.repeat(draws, 2))

    def _function(
        self, fn: Fn, vectors: Sequence[LRef], scalars: Sequence[LRef], of: dict[LRef, Dual]
    ) -> Dual:
        arguments: dict[Expr, Dual] = {Var(i): of[v] for i, v in enumerate(vectors)}
        arguments.update({Par(i): of[s] for i, s in enumerate(scalars)})
        try:
            return dual(fn.expr, arguments, self.budget.own)
        except ScaleError as error:  # a power that is a symbol
            raise Unvalued(error.message, symbolic=True) from error

    def _combine(self, node: LinComb, of: dict[LRef, Dual]) -> Dual:
        parts = []
        for number, scalar, vector in zip(node.numbers, node.scalars, node.vectors, strict=True):
            factor = exact(float(number))
            if scalar is not None:
                given = of[scalar]
                factor = Dual(factor.value * given.value, np.abs(factor.value) * given.size)
            parts.append((factor, of[vector]))
        return mixed(parts, self.budget.own)

    def _wide(self, dual: Dual) -> Dual:
        """A vector that a constant function makes has all its samples."""
        shape = (2 * self.budget.pairs, self.budget.own + self.budget.common)
        if dual.value.shape == shape:
            return dual
        size = np.broadcast_to(dual.size, (shape[0], self.budget.common))
        return Dual(np.broadcast_to(dual.value, shape), size, dual.slope, dual.steep)

    def _average(self, dual: Dual) -> Dual:
        wide = self._wide(dual)
        value = np.mean(wide.value[:, : self.budget.own], axis=1)
        return self._scattered(constant(value, np.mean(wide.size, axis=1)))

    def _scattered(self, dual: Dual) -> Dual:
        """A number whose terms count for no more than twins show: worst cases would multiply.

        What is 0 and was sampled stays as small beside its terms as before; what may be rounding
        keeps them all.
        """
        value = dual.value
        if len(value) == 1:
            return dual
        apart = value[0::2] - value[1::2]
        seen = np.abs(value) + np.sqrt(0.5 * self.budget.own * np.mean(apart**2))
        known = seen > SEEN * dual.size
        return Dual(value, np.where(known, np.minimum(seen, dual.size), dual.size))

    def _outer(self, node: OuterExpect, of: dict[LRef, Dual]) -> Dual:
        """An average over a copy of the columns; slopes are those of the rows."""
        if is_hidden(node.fn):
            raise Unvalued("gates that smaller terms decide")
        own, count = self.budget.own, min(self.budget.own, COLUMNS)
        pairs, whole = 2 * self.budget.pairs, own + self.budget.common
        values, sizes = np.empty((pairs, whole)), np.empty((pairs, whole))
        for r in range(pairs):
            rows = [of[row].value[r] for row in node.rows]
            cols = [of[col].value[r, :count] for col in node.cols]
            scalars = [
                of[scalar].value[min(r, len(of[scalar].value) - 1), 0] for scalar in node.scalars
            ]
            x = of[node.vector].value[r, :count]
            values[r], sizes[r] = 0.0, 0.0
            for down, across, block in tiles(node.fn, rows, cols, count, scalars, node.forms):
                part = block * x[across]
                values[r, down] += np.sum(part, axis=-1) / count
                sizes[r, down] += np.sum(np.abs(part), axis=-1) / count
        return Dual(values, sizes[:, own:])

    # -- Gaussians ---------------------------------------------------------------------------

    def _generator(self, *key: object) -> np.random.Generator:
        """Draws that depend on what they are for, not on when they are asked."""
        return np.random.default_rng(self._seeds(key))

    def _seeds(self, key: tuple[object, ...]) -> tuple[int, int]:
        return self.seed, zlib.crc32(repr(key).encode())

    def _gaussian(self, *key: object) -> Dual:
        """A fresh standard Gaussian."""
        drawn = _kept if self.budget.own <= KEPT else _gaussian
        return drawn(self.budget, self._seeds(key))

    def _start(self, node: Start) -> Dual:
        members = self._starts.get(node.group)
        if members is None:
            members = self._starts[node.group] = self._members(node.group)
        return members[node.index]

    def _members(self, name: str) -> list[Dual]:
        group = self.context.program.group[name]
        count = group.size
        rows = members_factor(group.cov, range(count), name)
        if rows is None:
            rows = tuple(tuple(float(i == j) for j in range(count)) for i in range(count))
        draws = [self._gaussian("start", name, j) for j in range(len(rows[0]) if rows else 0)]
        found = []
        for mean, row in zip(group.means, rows, strict=True):
            parts = [(weight, draws[j]) for j, weight in enumerate(row) if weight]
            found.append(self._wide(_plus_mean(_mixed(parts), float(mean))))
        return found

    def _product(self, node: Product, x: Dual) -> Dual:
        """A hat that is correlated with those before it, and multiples of what made x."""
        here = self.context.known[node]
        if node.matrix in self.context.orthogonal:
            return self._haar(node, x, here)
        inward = self._ratio[self.context.dims[node.vector] or ""]
        side = self._side((node.matrix, node.transpose))
        back = self._side((node.matrix, not node.transpose))
        places, new = self._coordinates(side, x, node.vector, ("hat", *_key(node)))
        self.news[here] = _news(new, x)
        parts = [(weight * inward**0.5, side.draws[place]) for place, weight in places]
        seen = self.context.parity.depends[node.vector]
        outward = self._ratio[self.context.dims[here] or ""]
        for place, bit in enumerate(back.bits):
            if not seen & bit:
                continue
            rate = self._inner(x.value, back.draws[place].value)
            parts.append((rate * (inward / outward**0.5), back.inputs[place]))
        return self._wide(_settled(_mixed(parts), x))

    def _haar(self, node: Product, x: Dual, here: LRef) -> Dual:
        """An isometry of the small space into the large one, known by what it did: pairs of it.

        What is applied the other way shows a part of the range, and a direction that is not in it.
        """
        rows, cols = (float(ratio) for ratio in self.context.orthogonal[node.matrix])
        small, large = min(rows, cols), max(rows, cols)
        inward = rows < cols if node.transpose else cols < rows
        upward = inward or (rows == cols and not node.transpose)
        pairs, null = self._side(node.matrix), self._side((node.matrix, "null"))
        key = ("haar", node.matrix, len(pairs.inputs))
        if upward:  # from the small space
            weights, unit, norm = self._split(x, pairs.inputs)
            self.news[here] = _news(norm, x)
            if unit is not None:
                pairs.inputs.append(unit)
                pairs.draws.append(self._gaussian(*key))
                weights.append(norm)
            parts = [(w * small**0.5, p) for w, p in zip(weights, pairs.draws, strict=True)]
            return self._wide(_settled(_mixed(parts), x))
        weights, unit, norm = self._split(x, [*pairs.draws, *null.inputs])
        self.news[here] = _news(norm, x)
        weights = weights[: len(pairs.draws)]
        if unit is not None:
            share = (small / large) ** 0.5
            rest = (1.0 - share**2) ** 0.5
            other = self._gaussian(*key, "range")
            pairs.draws.append(_mixed([(share, unit), (rest, other)]) if rest else unit)
            if rest:
                null.inputs.append(_mixed([(rest, unit), (-share, other)]))
            pairs.inputs.append(self._gaussian(*key))
            weights.append(share * norm)
        root = large / small**0.5
        parts = [(w * root, q) for w, q in zip(weights, pairs.inputs, strict=True)]
        return self._wide(_settled(_mixed(parts), x))

    def _side(self, key: object) -> _Side:
        return self._sides.setdefault(key, _Side())

    def _coordinates(
        self, side: _Side, x: Dual, ref: LRef, key: tuple[object, ...]
    ) -> tuple[list[tuple[int, Array]], Array]:
        """A vector in the directions of a side, which it may extend, and how far it does."""
        weights, unit, norm = self._split(x, side.inputs)
        if unit is not None:
            side.inputs.append(unit)
            side.draws.append(self._gaussian(*key, len(side.draws)))
            side.bits.append(self._bit(ref, key))
            weights.append(norm)
        return list(enumerate(weights)), norm

    def _split(self, x: Dual, directions: Sequence[Dual]) -> tuple[list[Array], Dual | None, Array]:
        """Coordinates, the direction of what is left, and its coefficient; None: nothing is."""
        if (len(directions) + 1) * x.value.size > MOST:
            raise Unvalued("more products than a test follows")
        weights: list[Array] = []
        value, slope = x.value, x.slope
        for direction in directions:
            weight = self._inner(value, direction.value)
            value = value - weight * direction.value
            if direction.slope is not None:
                slope = (0.0 if slope is None else slope) - weight * direction.slope
            weights.append(weight)
        own = self.budget.own
        square = np.mean(value[:, :own] ** 2, axis=1, keepdims=True)
        kept = square > ROUNDING**2 * np.mean(x.size**2, axis=1, keepdims=True)
        if not np.any(kept):
            return weights, None, np.zeros_like(square)
        # Twins name a direction alike: a coefficient that is 0 then has either sign.
        first, second = value[0::2, own:], value[1::2, own:]
        turned = np.sign(np.sum(first * second, axis=1, keepdims=True))
        sign = np.ones_like(square)
        sign[1::2] = np.where(turned == 0, 1.0, turned)
        norm = sign * np.sqrt(square)
        left = Dual(value, x.size, slope, x.steep)
        unit = _mixed([(np.where(kept, 1.0 / norm, 0.0), left)])
        return weights, unit, np.where(kept, norm, 0.0)

    def _bit(self, ref: LRef, key: tuple[object, ...]) -> int:
        """The bit of the draw of the product that brings a direction; all bits if it has none."""
        if key[0] != "hat":
            return -1
        product = self.context.known.get(Product(str(key[1]), bool(key[2]), ref))
        own = 0 if product is None else self.context.parity.own.get(product, 0)
        return own or -1

    def _fluctuation(self, node: Fluctuation, vectors: Sequence[Dual]) -> Dual:
        """Linear in its vectors, with a draw for each pair of directions, which twins share."""
        program = self.context.program
        name, weights = family(node.root, program.groups, program.dims, self._matrices)
        parts: list[tuple[tuple[int, ...], Any]] = [((k,), w) for k, w in enumerate(weights) if w]
        size: Any = np.linalg.norm(weights)
        for place, (ref, x) in enumerate(zip(node.vectors, vectors, strict=True)):
            key = ("fluctuation", name, place)
            found = self._coordinates(self._side(key), x, ref, key)[0]
            parts = [((*at, d), w * weight) for at, w in parts for d, weight in found]
            size = size * np.sqrt(np.mean(x.size**2, axis=1))
        value: Any = np.zeros((2 * self.budget.pairs, 1))
        for at, weight in parts:
            random = self._generator("fluctuation", name, "draw", *at)
            draw = random.standard_normal(self.budget.pairs)
            value = value + weight * np.repeat(draw, 2)[:, None]
        # As large as its terms: what fluctuates around a sampled 0 must be seen to fall.
        return constant(value, size + np.abs(value[:, 0]))

    def _inner(self, a: Array, b: Array) -> Array:
        own = self.budget.own
        found: Array = np.einsum("rs,rs->r", a[:, :own], b[:, :own])[:, None] / own
        return found


_Values = dict[LRef, Dual]


def _apply(node: Nonlin, sweep: Sweep, of: _Values) -> Dual:
    found = sweep._function(node.fn, node.vectors, node.scalars, of)
    return sweep._wide(found) if node.vectors else sweep._scattered(found)


def _expect(node: Expect, sweep: Sweep, of: _Values) -> Dual:
    return sweep._average(sweep._function(node.fn, node.vectors, node.scalars, of))


def _fluctuation(node: Fluctuation, sweep: Sweep, of: _Values) -> Dual:
    return sweep._fluctuation(node, [of[x] for x in node.vectors])


def _unknown(node: Noise, sweep: Sweep, of: _Values) -> Dual:
    raise Unvalued("an average that is 0 in the limit and fluctuates")


_VALUES: Table[Dual] = Table(
    {
        Start: lambda node, sweep, of: sweep._start(node),
        Product: lambda node, sweep, of: sweep._product(node, of[node.vector]),
        Nonlin: _apply,
        LinComb: lambda node, sweep, of: sweep._combine(node, of),
        Expect: _expect,
        Number: lambda node, sweep, of: constant(float(node.value)),
        Input: lambda node, sweep, of: sweep._draw(node),
        Fluctuation: _fluctuation,
        OuterExpect: lambda node, sweep, of: sweep._outer(node, of),
        Noise: _unknown,
    }
)


def _news(norm: Array, x: Dual) -> Dual:
    return constant(norm, np.sqrt(np.mean(x.size**2, axis=1)))


def _key(node: Product) -> tuple[str, bool]:
    return node.matrix, node.transpose


def _mixed(parts: list[tuple[Any, Dual]]) -> Dual:
    """A sum of vectors with a weight for each replicate."""
    return mixed([(exact(weight), vector) for weight, vector in parts], 0)


def _settled(found: Dual, x: Dual) -> Dual:
    """What a matrix made of x: rounding counts anew, or worst cases would add up over layers.

    Its coefficients are as uncertain as the terms of x are large.
    """
    scale = np.sqrt(np.mean(x.size**2, axis=1, keepdims=True))
    steep = None if found.steep is None else found.steep + scale
    found = Dual(found.value, found.size + scale, found.slope, steep)
    if not found.value.size or found.value.shape[1] == 1:
        return found
    wide = np.mean(np.abs(found.value), axis=1, keepdims=True)
    size = np.minimum(found.size, FRESH * (wide + np.abs(found.value[:, -found.size.shape[1] :])))
    if found.slope is None or found.steep is None:
        return Dual(found.value, size)
    most = np.max(np.abs(found.slope), axis=0)
    return Dual(
        found.value,
        size,
        found.slope,
        np.minimum(found.steep, FRESH * (most + np.mean(most, axis=1, keepdims=True))),
    )


def _plus_mean(dual: Dual, mean: float) -> Dual:
    return Dual(dual.value + mean, dual.size + abs(mean), dual.slope, dual.steep)
