"""A program read for what its limit depends on: one derivation, with everything found from it.

A Z that is bounded by a polynomial of Gaussians of finite variance has moments of every order; the
degree is followed through the graph by the growth that activations declare.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from tpcalc.errors import LimitError
from tpcalc.evaluate.settle import Witness
from tpcalc.evaluate.witness import Finding
from tpcalc.functions import Expr, Fn, Par
from tpcalc.functions.expr import walk
from tpcalc.limit.certainty import Certainty
from tpcalc.limit.context import Context
from tpcalc.limit.degrees import Degree, degree_of, degree_sum, largest_degree, of_forms
from tpcalc.limit.graph import (
    Expect,
    Fluctuation,
    LRef,
    Noise,
    Number,
    OuterExpect,
    Product,
    Start,
    Starts,
    Total,
    function_of,
    the_product,
)
from tpcalc.limit.scales import Scales
from tpcalc.program.base import Table, input_of, references
from tpcalc.program.nodes import Data, Input, LinComb, Nonlin, Ref, Rename, Stack
from tpcalc.questions.dependence.coefficients import Coefficient, coefficients
from tpcalc.questions.dependence.gates import Gates, picks
from tpcalc.questions.dependence.names import Names
from tpcalc.questions.dependence.sets import Bits, Sets
from tpcalc.questions.orders import Orders

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass
class Growth:
    """Degrees of polynomial bounds of all nodes of a limit graph."""

    sets: Sets  # what each node depends on
    # for each node its degree: of a scalar that does not stay random 0
    of: list[Degree] = field(default_factory=list)

    def __post_init__(self) -> None:
        for ref in range(len(self.sets.of)):
            self.of.append(_DEGREES(self.sets.context.nodes[ref], ref, self))

    def _sum(self, node: LinComb | Total) -> Degree:
        scalars = [ZERO if s is None else self.of[s] for s in node.scalars]
        pairs = zip(scalars, (self.of[v] for v in node.vectors), strict=True)
        return largest_degree(degree_sum(pair) for pair in pairs)

    def _outer(self, node: OuterExpect) -> Degree:
        rows, cols = ([self.of[v] for v in side] for side in (node.rows, node.cols))
        scalars = [self.of[s] for s in node.scalars]
        at = self.sets.context.ranking.chamber.at
        kernel = degree_of(node.fn.expr, of_forms(rows, cols, node.forms), scalars, at)
        return degree_sum((kernel, self.of[node.vector]))

    def _average(self, node: Expect, ref: LRef) -> Degree:
        found = self._function(node.fn, node.vectors, node.scalars)
        return ZERO if found is not None and not self.sets.whole(ref) else found

    def _hat(self, *vectors: int) -> Degree:
        """A Gaussian whose variance is a product of E[(Z^x)^2], given scalars that stay random."""
        random = [self.sets.random(self.sets.whole(vector)) for vector in vectors]
        inner = [self.of[vector] for vector in vectors]
        if any(degree is None for degree in inner):
            return None
        return degree_sum([ONE, *(d for d, felt in zip(inner, random, strict=True) if felt)])

    def _product(self, node: Product, ref: LRef) -> Degree:
        hat, terms = self._hat(node.vector), self.sets.dots[ref].open
        if not terms:
            return hat
        if self.sets.random(self.sets.whole(node.vector)):
            return None  # the coefficients are functions of random scalars, and not followed
        earlier = [the_product(self.sets.context.nodes[term]) for term in terms]
        return largest_degree([hat, *(self.of[q.vector] for q in earlier)])

    def _function(self, fn: Fn, vectors: Sequence[LRef], scalars: Sequence[LRef]) -> Degree:
        own, given = [self.of[v] for v in vectors], [self.of[s] for s in scalars]
        return degree_of(fn.expr, own, given, self.sets.context.ranking.chamber.at)


_DEGREES: Table[Degree] = Table(
    {
        Start: lambda node, ref, growth: ONE,
        Input: lambda node, ref, growth: ONE,
        Number: lambda node, ref, growth: ZERO,
        Noise: lambda node, ref, growth: None,  # no Gaussian, and its law is not computed
        Product: lambda node, ref, growth: growth._product(node, ref),
        Fluctuation: lambda node, ref, growth: growth._hat(*node.vectors),
        Starts: lambda node, ref, growth: ONE,
        Data: lambda node, ref, growth: ZERO,
        LinComb: lambda node, ref, growth: growth._sum(node),
        Total: lambda node, ref, growth: growth._sum(node),
        Rename: lambda node, ref, growth: growth.of[node.of],
        Stack: lambda node, ref, growth: largest_degree(growth.of[one] for one in node.of),
        OuterExpect: lambda node, ref, growth: growth._outer(node),
        Nonlin: lambda node, ref, growth: growth._function(node.fn, node.vectors, node.scalars),
        Expect: lambda node, ref, growth: growth._average(node, ref),
    }
)


Dots = dict[tuple[int, int], Coefficient]  # hats, each with an earlier one


@dataclass
class Reading:
    """The dependency sets behind the orders of a program."""

    orders: Orders  # the orders of its outputs
    verify: bool  # whether coefficients that may be 0 are estimated
    seed: int  # of these estimates

    def __post_init__(self) -> None:
        for ref, node in enumerate(map(input_of, self.orders.program.nodes)):
            if node is not None and node.family.law == "orthogonal":
                raise LimitError(
                    f"the matrix {node.name!r} is orthogonal: the vectors that its products depend "
                    "on are found for Gaussian matrices only.",
                    where=self.orders.program.place(ref),
                    hint="tp.orders, tp.limit and tp.simulate take orthogonal matrices.",
                )

    @cached_property
    def run(self) -> Scales:
        """The shallowest derivation with a leading term for every output, else the deepest."""
        runs = [run.reach(self.orders) for run in self.orders.runs]
        return next((run for run in runs if _is_complete(run, self.orders)), runs[-1])

    @property
    def context(self) -> Context:
        """The limit graph."""
        return self.run.context

    @cached_property
    def leads(self) -> Mapping[str, LRef | None]:
        """The node of the leading term of each output."""
        return {name: self.run.scale(name).node for name in self.orders}

    @cached_property
    def cone(self) -> list[LRef]:
        """The nodes that the leading terms need."""
        needed = {ref for ref in self.leads.values() if ref is not None}
        for ref in range(max(needed, default=-1), -1, -1):
            if ref in needed:
                needed.update(references(self.context.nodes[ref]))
        return sorted(needed)

    @cached_property
    def tests(self) -> Mapping[LRef, Finding]:
        """What numbers say of the coefficients whose form does not exclude 0."""
        certainty = Certainty(self.context)
        asked = {scalar for ref in self.cone for scalar in _COEFFICIENTS(self.context.nodes[ref])}
        open_ = sorted(scalar for scalar in asked if not certainty.holds(scalar))
        if self.verify:
            return self._tested(open_)
        untested = Finding(None, "it was not tested")
        return dict.fromkeys(open_, untested)

    def _tested(self, refs: Iterable[LRef]) -> Mapping[LRef, Finding]:
        return Witness(self.seed).coefficients(self.context, refs)

    @cached_property
    def sets(self) -> Sets:
        """Everything that a node may depend on."""
        return Sets(self.context, Gates(self.context, self.tests))

    @cached_property
    def growth(self) -> Growth:
        """Polynomial bounds."""
        return Growth(self.sets)

    @cached_property
    def names(self) -> Names:
        """Names of nodes."""
        return Names(self.sets, self.leads)

    def vector(self, ref: Ref) -> str:
        """The name of a vector of the program."""
        for name, other in self.orders.program.outputs:
            if other == ref:
                return name
        terms = self.run.values[ref].terms
        return self.names.vector(terms[0][1]) if terms else f"%{ref}"

    @cached_property
    def dots(self) -> Dots:
        """The coefficients of the corrections that the leading terms need."""
        return self.estimated(ref for ref in self.cone if ref in self.sets.dots)

    def estimated(self, products: Iterable[LRef]) -> Dots:
        """The coefficients of the corrections of some products."""
        return coefficients(self.sets, products, self.seed) if self.verify else {}

    @cached_property
    def sure(self) -> list[Bits]:
        """The sets without what enters through a coefficient that may be 0."""
        missing = self.context.missing  # of an average around 0 the law is unknown, not the size
        weak = [s for s, test in self.tests.items() if not test.nonzero and missing[s] != "noise"]
        faint = [
            (hat, q)
            for ref in self.sets.dots
            for hat in self.sets.hats(ref).values()
            for q in self.sets.below(hat)[0]
            if (hat, q) not in self.dots or not self.dots[hat, q].nonzero
        ]
        return self.sets.without(weak, faint, self._faint_terms())

    def _faint_terms(self) -> list[tuple[LRef, Expr]]:
        """Summands that live where something is exactly 0, and that numbers do not tell from 0."""
        context, made = self.context, dict[tuple[LRef, Expr], LRef]()
        for ref in self.cone:
            node = function_of(context.nodes[ref])
            if node is not None and node.vectors and not context.missing[ref]:
                node = self.sets.gates.opened(node)
                for term in filter(picks, self.sets.gates.felt(node)):
                    fn, vectors, scalars = Fn(term, node.fn.vectors, node.fn.scalars).compact()
                    part = Nonlin(
                        fn,
                        tuple(node.vectors[i] for i in vectors),
                        tuple(node.scalars[i] for i in scalars),
                    )
                    made[ref, term] = context.add(part, context.dims[ref])
        found = self._tested(made.values()) if self.verify else {}
        return [key for key, part in made.items() if part not in found or not found[part].nonzero]


def _of_function(node: Nonlin) -> list[LRef]:
    parts = walk(node.fn.expr) if node.vectors else ()
    return [node.scalars[part.index] for part in parts if isinstance(part, Par)]


# The scalars that multiply vectors in a node.
_COEFFICIENTS: Table[list[LRef]] = Table(
    {
        LinComb: lambda node: [scalar for scalar in node.scalars if scalar is not None],
        Nonlin: _of_function,
    },
    lambda node: [],
)


def _is_complete(run: Scales, names: Iterable[str]) -> bool:
    """Whether every output has a leading term that is followed, or is identically 0."""
    for name in names:
        size = run.scale(name)
        if size.bound or (size.node is not None and run.context.missing[size.node] == "hidden"):
            return False
    return True
