"""A limit graph where some random scalars have given values.

The Gaussians G of a graph, given that an affine function f of them is v, have the law of
``G + K (v - f(G))`` with K = Cov(G, f) / Var f: the graph is written with these in place of G, so
that every evaluator takes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from tpcalc import checks
from tpcalc.errors import UnknownName, UsageError
from tpcalc.evaluate.closure.chance import Chance
from tpcalc.functions import Expr, Fn, Par
from tpcalc.functions.expr import add, const, mul, substitute
from tpcalc.integrals.demand import Unknown
from tpcalc.limit.graph import LimitGraph, LNode, LRef, Number, product_mean
from tpcalc.limit.views import is_drawn, number_of
from tpcalc.program.base import input_of, references, renumbered
from tpcalc.program.nodes import Data, Kind, Nonlin
from tpcalc.program.program import Program, prune

HINT = (
    "Give random inputs of the program, and outputs that are sums of Gaussian scalars in the limit."
)


def conditioned(graph: LimitGraph, name: str, value: float) -> LimitGraph:
    """A graph in which a scalar target has a given value.

    Source: Hajjar, Chizat, Giraud, Lemma C.3 (Gaussian outputs at the start).
    """
    target = dict(graph.targets)[name]
    written = _Written(graph)
    if target.node is None or target.node not in written.chance.random:
        raise UsageError(f"{name} is no random scalar in the limit.", where="given", hint=HINT)
    try:
        moved = written.moved(target.node, value)
    except Unknown as reason:
        raise UsageError(
            f"{name} cannot be given: the limit does not know it as a Gaussian scalar ({reason}).",
            where="given",
            hint=HINT,
        ) from None
    return written.rewritten(moved)


def fixed(
    program: Program, source: Program, given: Mapping[str, float]
) -> tuple[Program, dict[str, float]]:
    """The program with given values of random inputs, and the values of outputs that are given."""
    numbers = {name: float(checks.real(value, f"given[{name!r}]")) for name, value in given.items()}
    inputs = {name for name, one in source.families.items() if not one.width and one.std != 0}
    outputs = dict(source.outputs)
    for name in sorted(numbers.keys() - inputs - outputs.keys()):
        scalars = {out for out, ref in outputs.items() if source.types[ref].kind is Kind.SCALAR}
        raise UnknownName("random input or scalar output", name, sorted(inputs | scalars))
    asked = {name: value for name, value in numbers.items() if name not in inputs}
    if not numbers:
        return program, asked
    nodes = tuple(
        Data(one.name, (numbers[one.name],))
        if (one := input_of(node)) is not None and not one.family.width and one.name in numbers
        else node
        for node in source.nodes
    )
    wanted = dict(program.outputs) | asked
    kept = tuple(output for output in source.outputs if output[0] in wanted)
    return prune(replace(source, nodes=nodes, outputs=kept)), asked


class _Written:
    """A field whose numbers are nodes of a graph that grows: formulas become nodes.

    Args:
        graph: The graph to begin with.
    """

    def __init__(self, graph: LimitGraph) -> None:
        self.graph, self.field = graph, self
        self.nodes: list[LNode] = list(graph.nodes)
        self.dims = list(graph.vector_dim)
        self.chance: Chance[LRef] = Chance(self)
        self._known = {node: ref for ref, node in enumerate(self.nodes)}
        bases = [is_drawn(node) for node in graph.nodes]
        self._moves: list[bool] = []  # whether a node hangs on one of them
        for base, node in zip(bases, graph.nodes, strict=True):
            self._moves.append(base or any(self._moves[ref] for ref in references(node)))

    def put(self, node: LNode, dim: str | None = None) -> LRef:
        """The number of a node, which is added if it is new."""
        if node not in self._known:
            self._known[node] = len(self.nodes)
            self.nodes.append(node)
            self.dims.append(dim)
        return self._known[node]

    def moved(self, ref: LRef, value: float) -> dict[LRef, LRef]:
        """What stands for each Gaussian and for a scalar whose value is given."""
        spread = self.chance.spread(ref)
        found = {ref: self.put(Number(value))}
        if len(spread.parts) == 1:  # nothing of it stays random
            ((base, factor),) = spread.parts.items()
            expr = Par(0) ** -1 * (const(value) - Par(1))
            found[base] = self.put(Nonlin(Fn(expr, 0, 2), (), (factor, spread.mean)))
        variance = self.chance.covariance(ref, ref)
        for base, node in enumerate(self.graph.nodes):
            if is_drawn(node) and base not in found:
                shared = self.chance.covariance(base, ref)
                expr = Par(0) + Par(1) * Par(2) ** -1 * (const(value) - Par(3))
                found[base] = self.put(Nonlin(Fn(expr, 0, 4), (), (base, shared, variance, ref)))
        return found

    def rewritten(self, moved: Mapping[LRef, LRef]) -> LimitGraph:
        """The graph with other scalars in place of its Gaussians."""
        new = dict(enumerate(range(len(self.graph.nodes))))
        new |= moved
        for ref, node in enumerate(self.graph.nodes):
            if self._moves[ref] and ref not in moved:
                new[ref] = self.put(renumbered(node, new.__getitem__), self.graph.vector_dim[ref])
        targets = tuple((name, target.renamed(new)) for name, target in self.graph.targets)
        return replace(
            self.graph, nodes=tuple(self.nodes), vector_dim=tuple(self.dims), targets=targets
        )

    # -- the values of everything that does not stay random -----------------------------------

    def scalar(self, ref: LRef) -> LRef:
        return ref

    def inner(self, left: LRef, right: LRef) -> LRef:
        if self._moves[left] or self._moves[right]:
            raise Unknown("its spread is itself random")
        return self.put(product_mean(left, right))

    # -- arithmetic -----------------------------------------------------------------------------

    def number(self, value: Fraction | float) -> LRef:
        return self.put(Number(value))

    def total(self, terms: Sequence[Sequence[LRef]]) -> LRef:
        refs = list(dict.fromkeys(ref for term in terms for ref in term))
        expr = add(mul(Par(refs.index(ref)) for ref in term) for term in terms)
        return self._function(expr, refs)

    def function(self, expr: Expr, scalars: Mapping[int, LRef]) -> LRef:
        refs = list(dict.fromkeys(scalars.values()))
        given: dict[Expr, Expr] = {Par(i): Par(refs.index(ref)) for i, ref in scalars.items()}
        return self._function(substitute(expr, given), refs)

    def _function(self, expr: Expr, refs: Sequence[LRef]) -> LRef:
        given: dict[Expr, Expr] = {
            Par(i): const(node.value)
            for i, ref in enumerate(refs)
            if (node := number_of(self.nodes[ref])) is not None
        }
        fn, _, keep = Fn(substitute(expr, given), 0, len(refs)).compact()
        used = tuple(refs[i] for i in keep)
        return used[0] if fn.expr == Par(0) else self.put(Nonlin(fn, (), used))
