"""What forms say of the law of a vector: whether it has a density, and how sure that is.

A sum has a bounded density where one term has a Gaussian direction that no other term holds. A
product brings such a direction unless its vector is a sum of those that were multiplied before:
where forms exclude that, the density is proved, elsewhere it is a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction

from tpcalc.functions import Call, Const, Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, add, const, mul, substitute, walk
from tpcalc.limit.building import Building
from tpcalc.limit.graph import LRef, Product, Start, Starts, Total, function_of, start_of, the_start
from tpcalc.limit.parity import union
from tpcalc.limit.ranks import Weights, is_full, rank, root
from tpcalc.program.base import Table, lincomb_of, references
from tpcalc.program.nodes import LinComb, Nonlin

MOST = 64  # terms of a sum that are looked at one by one


class Density(IntEnum):
    """How sure it is that a law has a density."""

    NONE = 0
    CLAIMED = 1
    BOUNDED = 2  # claimed as well, and then bounded
    PLAIN = 3  # the same, by a direction with a given number in front
    PROVED = 4


@dataclass
class Laws:
    """Densities of the vectors of a graph under construction."""

    context: Building  # the graph
    certain: Callable[[LRef], bool]  # whether a node is certainly not 0
    _known: dict[LRef, Density] = field(default_factory=dict)
    _free: list[int] = field(default_factory=list)  # directions, each vector affine in its own
    _plain: list[int] = field(default_factory=list)  # those with a given number in front
    _smooth: list[int] = field(default_factory=list)  # directions felt by more than jumps
    _images: list[frozenset[LRef]] = field(default_factory=list)  # sums of start vectors below
    _of_starts: dict[LRef, bool] = field(default_factory=dict)
    _levels: dict[LRef, LRef | None] = field(default_factory=dict)
    _coordinates: dict[LRef, Weights] = field(default_factory=dict)
    _ranks: dict[tuple[LRef, ...], int] = field(default_factory=dict)

    def level(self, ref: LRef) -> LRef | None:
        """The number that a vector is on all of its coordinates by its form; None: it varies."""
        if ref not in self._levels:
            self._levels[ref] = _LEVELS(self.context.nodes[ref], self)
        return self._levels[ref]

    def _level_of_sum(self, node: LinComb) -> LRef | None:
        if not self._are_levels(node.vectors):
            return None
        terms = [
            const(number) * Var(i) * (const(1) if scalar is None else Par(i))
            for i, (number, scalar) in enumerate(zip(node.numbers, node.scalars, strict=True))
        ]
        given = tuple(0 if scalar is None else scalar for scalar in node.scalars)
        return self.level_of(Fn(add(terms), len(terms), len(terms)), node.vectors, given)

    def _are_levels(self, vectors: Sequence[LRef]) -> bool:
        return all([self.level(vector) is not None for vector in vectors])

    def level_of(self, fn: Fn, vectors: Sequence[LRef], scalars: Sequence[LRef]) -> LRef | None:
        """The number that a function is on all coordinates; None: it varies."""
        if not self._are_levels([vectors[i] for i in sorted(fn.uses[0])]):
            return None
        fn, used, kept = fn.compact()
        levels = [self.level(vectors[i]) for i in used]
        numbers = [*(scalars[i] for i in kept), *(level for level in levels if level is not None)]
        places: dict[Expr, Expr] = {Var(i): Par(len(kept) + i) for i in range(len(used))}
        expr = substitute(fn.expr, places)
        return self.context.scalar(Fn(expr, 0, len(numbers)), numbers)

    def density(self, ref: LRef) -> Density:
        """What forms say of the density of a vector."""
        found = self._known.get(ref)
        if found is None:
            found = self._known[ref] = _DENSITIES(self.context.nodes[ref], self, ref)
        return found

    def _density_of_start(self, ref: LRef) -> Density:
        varies = self.context.parity.own[ref] or self.image_varies(ref)
        return Density.PROVED if varies else Density.NONE

    def _density_of_product(self, node: Product, ref: LRef) -> Density:
        if not self.context.parity.own[ref]:
            return Density.NONE
        return Density.PROVED if self._is_fresh(ref, node) else Density.PLAIN

    def _density_of_sum(self, node: LinComb, ref: LRef) -> Density:
        if self._is_sum_of_starts(ref):
            return Density.PROVED if self.image_varies(ref) else Density.NONE
        if self._proved(node):
            return Density.PROVED
        if len(node.vectors) == 1 and not node.over and self._is_number(node.scalars[0]):
            return self.density(node.vectors[0])
        if self._free_of(ref):
            return Density.PLAIN if self._plain[ref] else Density.BOUNDED
        terms = self._terms(ref)
        found = max(self._by_terms(terms), self._beside_jumps([vector for vector, _ in terms]))
        if found is Density.NONE:  # numbers that are computed are not expected to cancel the others
            found = min(Density.CLAIMED, self._by_terms([term for term in terms if term[1]]))
        return found

    def _is_fresh(self, ref: LRef, node: Product) -> bool:
        """Whether nothing that the matrix was applied to before can hold a part of the vector."""
        return ref in self.context.parity.alone and self.certain(node.vector)

    def _is_number(self, scalar: LRef | None) -> bool:
        """Whether what stands before a vector is a number that is certainly not 0."""
        return scalar is None or (not self.context.random[scalar] and self.certain(scalar))

    def _proved(self, node: LinComb) -> bool:
        """Whether one term with a number that is not 0 is a fresh direction that no other holds."""
        depends = self.context.parity.depends
        for place, (scalar, vector) in enumerate(zip(node.scalars, node.vectors, strict=True)):
            if not self._is_number(scalar) or not _IS_DIRECTION(self.context.nodes[vector]):
                continue
            if self.density(vector) is not Density.PROVED:
                continue
            others = [depends[v] for i, v in enumerate(node.vectors) if i != place]
            if self.context.parity.own[vector] & ~union(others):
                return True
        return False

    def _fill(self, ref: LRef) -> None:
        """Follow free directions and start vectors up to a node, in order."""
        for here in range(len(self._free), ref + 1):
            node = self.context.nodes[here]
            if self.context.dims[here] is None:  # most nodes of a long run are scalars
                self._free.append(0)
                self._plain.append(0)
                self._smooth.append(0)
                self._images.append(frozenset())
                continue
            vectors = [v for v in references(node) if self.context.dims[v] is not None]
            self._free.append(self._freedom(here, self._free))
            self._plain.append(self._freedom(here, self._plain, given=True))
            self._smooth.append(self._smoothly(here))
            if self.is_image(here):
                self._images.append(frozenset({here}))
            else:
                self._images.append(frozenset().union(*(self._images[v] for v in vectors)))

    def _freedom(self, ref: LRef, free: Sequence[int], *, given: bool = False) -> int:
        """Directions in which a vector is affine, with nothing else in it that feels them."""
        return _FREEDOMS(self.context.nodes[ref], self, ref, free, given)

    def _freedom_of_sum(self, node: LinComb, free: Sequence[int], given: bool) -> int:
        depends = self.context.parity.depends
        once = twice = found = 0
        for vector in node.vectors:
            twice |= once & depends[vector]
            once |= depends[vector]
        for scalar, vector in zip(node.scalars, node.vectors, strict=True):
            if scalar is None or not given:
                found |= free[vector] & ~twice
        return found

    def _free_of(self, ref: LRef) -> int:
        self._fill(ref)
        return self._free[ref]

    def sources(self, ref: LRef) -> tuple[LRef, ...]:
        """The products that brought the directions of a vector with a given number."""
        self._fill(ref)
        found, stack, seen = [], [ref], {ref}
        while stack:
            summands = _SUMMANDS(self.context.nodes[top := stack.pop()])
            if summands is None:
                if self.context.parity.own[top] & self._plain[ref]:
                    found.append(top)
            else:
                fresh = set(summands) - seen
                seen |= fresh
                stack.extend(sorted(fresh))
        return tuple(found)

    def _terms(self, ref: LRef) -> list[tuple[LRef, bool]]:
        """The terms of a sum of sums, each with whether a given number is in front of it."""
        out: list[tuple[LRef, bool]] = []
        stack = [(ref, True)]
        while stack and len(out) + len(stack) <= MOST:
            top, given = stack.pop()
            total = lincomb_of(self.context.nodes[top])
            if total is not None and not self._is_sum_of_starts(top):
                parts = zip(total.vectors, total.scalars, strict=True)
                stack += [(v, given and scalar is None) for v, scalar in parts][::-1]
            else:
                out.append((top, given))
        return [*out, *stack]

    def _by_terms(self, terms: Sequence[tuple[LRef, bool]]) -> Density:
        """Whether one term has a Gaussian direction that the others have not.

        A term ``gate * D`` with such a direction in D may be left out: where the gate is open the
        sum has a density, bounded if the gate takes few values, and elsewhere the rest decides.
        """
        left, found = list(terms), Density.PLAIN
        depends = self.context.parity.depends
        while left:
            dropped = None
            vectors = [vector for vector, _ in left]
            felt = of_others([depends[vector] for vector in vectors])
            for place, (vector, given) in enumerate(left):
                others = vectors[:place] + vectors[place + 1 :]
                if self._is_free(vector, felt[place], others):
                    return found if given else min(found, Density.BOUNDED)
                if dropped is None:
                    flat = self._gated(vector, felt[place], others)
                    if flat is not None:
                        kept = Density.PLAIN if given else Density.BOUNDED
                        dropped, found = place, min(found, kept if flat else Density.CLAIMED)
            if dropped is None:
                return Density.NONE
            left.pop(dropped)
        return Density.NONE

    def _beside_jumps(self, terms: Sequence[LRef]) -> Density:
        """Whether one term is affine in a direction that the others feel by jumps alone.

        Given all other directions the others take few values, and each adds a bounded density.
        """
        felt = [self.smooth_of(vector) for vector in terms]
        for place, (vector, others) in enumerate(zip(terms, of_others(felt), strict=True)):
            if self._free_of(vector) & ~others:
                return Density.BOUNDED
            if self._is_sum_of_starts(vector):
                images = [v for i, v in enumerate(terms) if i != place and felt[i]]
                if self.is_new_image(vector, images):
                    return Density.BOUNDED
        return Density.NONE

    def smooth_of(self, ref: LRef) -> int:
        """The directions that a vector feels by more than jumps."""
        self._fill(ref)
        return self._smooth[ref]

    def _smoothly(self, ref: LRef) -> int:
        depends = self.context.parity.depends.get(ref, 0)
        vectors = _SMOOTH_VECTORS(self.context.nodes[ref])
        if vectors is None:
            return depends
        return depends & union([self._smooth[vector] for vector in vectors])

    def _is_free(self, vector: LRef, felt: int, others: Sequence[LRef]) -> bool:
        """Whether a Gaussian direction of a vector is in none of the others, which feel some."""
        if self._free_of(vector) & ~felt:
            return True
        return self.is_image(vector) and self.is_new_image(vector, others)

    def _gated(self, vector: LRef, felt: int, others: Sequence[LRef]) -> bool | None:
        """Whether a vector is a function with few values times a Z with a direction of its own.

        None: it is no function times such a Z.
        """
        node = function_of(self.context.nodes[vector])
        if node is None or not isinstance(node.fn.expr, Mul):
            return None
        for place, factor in enumerate(node.fn.expr.factors):
            if isinstance(factor, Var):
                own = [v for i, v in enumerate(node.vectors) if i != factor.index]
                held = felt | union([self.context.parity.depends[v] for v in own])
                if self._is_free(node.vectors[factor.index], held, [*others, *own]):
                    rest = (f for i, f in enumerate(node.fn.expr.factors) if i != place)
                    return all(is_flat(part) for part in rest)
        return None

    # -- start vectors -----------------------------------------------------------------------

    def _is_sum_of_starts(self, ref: LRef) -> bool:
        """Whether this is a sum of start vectors with given numbers."""
        return self.is_image(ref) and lincomb_of(self.context.nodes[ref]) is not None

    def is_image(self, ref: LRef) -> bool:
        """Whether a vector is a start vector or a sum of some with given numbers."""
        found = self._of_starts.get(ref)
        if found is None:
            found = self._of_starts[ref] = _OF_STARTS(self.context.nodes[ref], self.context)
        return found

    def image_varies(self, image: LRef) -> bool:
        """Whether an image is not the same on all coordinates."""
        return bool(self._rank([image]))

    def is_new_image(self, image: LRef, others: Sequence[LRef]) -> bool:
        """Whether a sum of start vectors is no sum of those that the others depend on."""
        if any(self.context.parity.depends[other] == -1 for other in others):
            return False
        self._fill(max(others, default=0))
        used = sorted(frozenset().union(*(self._images[other] for other in others)))
        return self._rank([*used, image]) > self._rank(used)

    def _rank(self, images: Sequence[LRef]) -> int:
        """How many of some sums of start vectors are independent."""
        key = tuple(images)
        if key not in self._ranks:
            self._ranks[key] = rank([self._weights(ref) for ref in images])
        return self._ranks[key]

    def _weights(self, ref: LRef) -> Weights:
        """A sum of start vectors in independent coordinates."""
        if ref in self._coordinates:
            return self._coordinates[ref]
        out = self._coordinates[ref] = {}
        for start, number in _STARTS(self.context.nodes[ref], self.context):
            cov = self.context.program.group[start.group].cov
            row = [(start.index, 1.0)] if cov is None else enumerate(root(cov)[start.index])
            for index, weight in row:
                place = (start.group, index)
                out[place] = out.get(place, 0.0) + number * float(weight)
        return out


def _smooth_arguments(node: Nonlin) -> tuple[LRef, ...]:
    felt = {v for part in _smooth_parts(node.fn.expr) for v in walk(part)}
    return tuple(v for place, v in enumerate(node.vectors) if Var(place) in felt)


_LEVELS: Table[LRef | None] = Table(
    {
        Nonlin: lambda node, laws: laws.level_of(node.fn, node.vectors, node.scalars),
        LinComb: lambda node, laws: laws._level_of_sum(node),
    },
    lambda node, laws: None,
)


def _density_of_block(varies: object) -> Density:
    return Density.PROVED if varies else Density.NONE


_DENSITIES: Table[Density] = Table(
    {
        Start: lambda node, laws, ref: laws._density_of_start(ref),
        Product: lambda node, laws, ref: laws._density_of_product(node, ref),
        LinComb: lambda node, laws, ref: laws._density_of_sum(node, ref),
        Starts: lambda node, laws, ref: _density_of_block(laws.context.parity.own[ref]),
        Total: lambda node, laws, ref: _density_of_block(is_full(laws.context, node)),
    },
    lambda node, laws, ref: Density.NONE,
)
_DIRECTIONS = Start, Product  # each may have a Gaussian direction of its own
_IS_DIRECTION: Table[bool] = Table(
    dict.fromkeys(_DIRECTIONS, lambda node: True), lambda node: False
)
_FREEDOMS: Table[int] = Table(
    {
        **dict.fromkeys(
            _DIRECTIONS, lambda node, laws, ref, free, given: laws.context.parity.own[ref]
        ),
        LinComb: lambda node, laws, ref, free, given: laws._freedom_of_sum(node, free, given),
    },
    lambda node, laws, ref, free, given: 0,
)
# Of a sum its vectors; None: it is a product.
_SUMMANDS: Table[tuple[LRef, ...] | None] = Table(
    {Product: lambda node: None, LinComb: lambda node: node.vectors}, lambda node: ()
)


def _sums_starts(node: LinComb, context: Building) -> bool:
    return all(scalar is None for scalar in node.scalars) and all(
        start_of(context.nodes[vector]) is not None for vector in node.vectors
    )


_OF_STARTS: Table[bool] = Table(
    {Start: lambda node, context: True, LinComb: _sums_starts},
    lambda node, context: False,
)


def _summed_starts(node: LinComb, context: Building) -> list[tuple[Start, float]]:
    pairs = zip(node.vectors, node.numbers, strict=True)
    return [(the_start(context.nodes[vector]), float(number)) for vector, number in pairs]


_STARTS: Table[list[tuple[Start, float]]] = Table(
    {Start: lambda node, context: [(node, 1.0)], LinComb: _summed_starts}
)
# The vectors that a node feels by more than jumps; None: it is no function of vectors.
_SMOOTH_VECTORS: Table[tuple[LRef, ...] | None] = Table(
    {LinComb: lambda node: node.vectors, Nonlin: _smooth_arguments}, lambda node: None
)


def _smooth_parts(expr: Expr) -> list[Expr]:
    """The largest parts of an expression that hold no jump, and those that hold none below one."""
    if isinstance(expr, Call) and expr.atom.derivative is None and expr.atom.facts.homogeneity == 0:
        return []  # it takes three values at most
    below = expr.parts
    return [expr] if not below else [part for child in below for part in _smooth_parts(child)]


def of_others(bits: Sequence[int]) -> list[int]:
    """For each of some sets all of the others."""
    once = twice = 0
    for one in bits:
        twice |= once & one
        once |= one
    return [twice | once & ~one for one in bits]


def is_flat(expr: Expr) -> bool:
    """Whether a factor takes few values: a number, or a jump."""
    if isinstance(expr, Add | Mul):
        return all(is_flat(part) for part in expr.parts)
    if isinstance(expr, Call):
        return expr.atom.derivative is None
    return isinstance(expr, Const | Par)


def linear_part(
    context: Building, expr: Expr, vectors: Sequence[LRef], scalars: Sequence[LRef]
) -> LRef | None:
    """The node of a function of vectors, but for a constant, if it is affine in them.

    Args:
        context: The graph under construction.
        expr: The function, over ``Var`` and ``Par``.
        vectors: The nodes of its vector arguments.
        scalars: Those of its scalar arguments.

    Returns:
        A vector, or None where the function is not affine.
    """
    parts: list[tuple[Fraction | float, LRef | None, LRef]] = []
    for term in expr.terms if isinstance(expr, Add) else (expr,):
        factors = term.factors if isinstance(term, Mul) else (term,)
        own = [vectors[f.index] for f in factors if isinstance(f, Var)]
        rest = [f for f in factors if not isinstance(f, Var)]
        if len(own) > 1 or any(isinstance(part, Var) for f in rest for part in walk(f)):
            return None
        if not own:
            continue
        numbers = [f.value for f in rest if isinstance(f, Const)]
        others = [f for f in rest if not isinstance(f, Const)]
        scalar = None
        if others:
            fn, _, kept = Fn(mul(others), 0, len(scalars)).compact()
            scalar = context.scalar(fn, [scalars[i] for i in kept])
        parts.append((numbers[0] if numbers else Fraction(1), scalar, own[0]))
    if len(parts) == 1 and parts[0][:2] == (1, None):
        return parts[0][2]
    if not parts:
        return None
    dim = context.dims[parts[0][2]]
    return context.add(
        LinComb(
            tuple(number for number, _, _ in parts),
            tuple(scalar for _, scalar, _ in parts),
            tuple(vector for _, _, vector in parts),
        ),
        dim,
    )
