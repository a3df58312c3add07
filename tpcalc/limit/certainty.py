"""Certainty: which nodes of a limit graph are provably not 0.

The order of a quantity is that of its leading term if the term is not 0. Parity finds zeros and
never errs; what it leaves may still be 0 by accident. Here the other half: a node is certain where
the form of its function and independent directions exclude that. What is neither is for the
evaluators to settle.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tpcalc.functions import Call, Const, Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, Pow, walk
from tpcalc.functions.indicator import AT_ZERO
from tpcalc.limit.context import Context
from tpcalc.limit.graph import (
    Apply,
    Combine,
    Draw,
    Expect,
    Fluctuation,
    LRef,
    Number,
    Product,
    ScalarApply,
    Start,
)

__all__ = ["Certainty"]


@dataclass
class Certainty:
    """What is certainly not 0 in a graph under construction.

    Args:
        context: The graph.
    """

    context: Context
    _known: dict[LRef, bool] = field(default_factory=dict)

    def holds(self, ref: LRef) -> bool:
        """Whether a node is certainly not 0 (a vector: not 0 almost everywhere).

        Args:
            ref: A node.
        """
        stack = [ref]
        while stack:  # arguments first: graphs are deeper than the recursion limit
            top = stack[-1]
            if top in self._known:
                stack.pop()
                continue
            missing = [other for other in self._asks(top) if other not in self._known]
            if missing:
                stack += missing
                continue
            self._known[top] = self._decide(top)
            stack.pop()
        return self._known[ref]

    def _asks(self, ref: LRef) -> tuple[LRef, ...]:
        node = self.context.nodes[ref]
        if isinstance(node, Product | Fluctuation):
            return (node.vector,)
        if isinstance(node, Apply | Expect):
            return (*node.vectors, *node.scalars)
        if isinstance(node, Combine):
            return (*node.vectors, *(s for s in node.scalars if s is not None))
        return node.scalars if isinstance(node, ScalarApply) else ()

    def _decide(self, ref: LRef) -> bool:
        node = self.context.nodes[ref]
        known = self._known
        if isinstance(node, Start):
            cov = self.context.program.group[node.group].cov
            mean = self.context.program.group[node.group].mean[node.index]
            return mean != 0 or cov is None or cov[node.index][node.index] != 0
        if isinstance(node, Number):
            return node.value != 0
        if isinstance(node, Draw):
            return True
        if isinstance(node, Product | Fluctuation):
            return known[node.vector]
        if isinstance(node, Combine):
            return self._combined(node)
        if isinstance(node, ScalarApply):
            return _monomial(node.fn.expr) and all(known[s] for s in node.scalars)
        if isinstance(node, Apply):
            return self._applied(node.fn, node.vectors, node.scalars)
        if isinstance(node, Expect):
            return self._expected(node)
        return False

    def _combined(self, node: Combine) -> bool:
        """One certain term with a direction that the others do not hold."""
        parity = self.context.parity
        supports = [parity.lattice.support(parity.coset(vector)) for vector in node.vectors]
        for place, (scalar, vector) in enumerate(zip(node.scalars, node.vectors, strict=True)):
            if not self._known[vector] or (scalar is not None and not self._known[scalar]):
                continue
            if len(node.vectors) == 1:
                return True
            others = 0
            for index, support in enumerate(supports):
                others |= support if index != place else 0
            if isinstance(self.context.nodes[vector], Start | Product) and (
                supports[place] & ~others
            ):
                return True
        return False

    def _applied(self, fn: Fn, vectors: tuple[LRef, ...], scalars: tuple[LRef, ...]) -> bool:
        """A product of functions of certain variables, with at most one gate."""
        if not all(self._known[v] for v in vectors) or not all(self._known[s] for s in scalars):
            return False
        factors = _factors(fn.expr)
        gates = [factor for factor in factors if _gated(factor)]
        dense = all(self.context.smooth[v] for v in vectors)
        plain = all(_monomial(f) or _simple(f) for f in factors)
        return plain and (not gates or (len(gates) == 1 and dense))

    def _expected(self, node: Expect) -> bool:
        """The mean of what is never negative and not 0."""
        if not self._applied(node.fn, node.vectors, node.scalars) and not all(
            self._known[v] for v in node.vectors
        ):
            return False
        factors = [f for f in _factors(node.fn.expr) if not isinstance(f, Const | Par)]
        scalars = all(self._known[s] for s in node.scalars)
        if not scalars or len(factors) != 1:
            return False
        (factor,) = factors
        return isinstance(factor, Pow) and factor.exponent % 2 == 0 and isinstance(factor.base, Var)


def _factors(expr: Expr) -> tuple[Expr, ...]:
    return expr.factors if isinstance(expr, Mul) else (expr,)


def _monomial(expr: Expr) -> bool:
    """Whether an expression is a product of powers of its arguments, times a number."""
    return all(
        isinstance(factor, Const | Par | Var)
        or (isinstance(factor, Pow) and isinstance(factor.base, Par | Var))
        for factor in _factors(expr)
    )


def _simple(expr: Expr) -> bool:
    """Whether this is a named function of one argument (plus a part that lives where it is 0)."""
    if isinstance(expr, Add):
        visible = [term for term in expr.terms if not _hidden_part(term)]
        return len(visible) == 1 and _simple(visible[0])
    return isinstance(expr, Call) and isinstance(expr.arg, Var)


def _hidden_part(expr: Expr) -> bool:
    return any(isinstance(part, Call) and part.atom == AT_ZERO for part in walk(expr))


def _gated(expr: Expr) -> bool:
    """Whether a factor may be 0 on a part of the coordinates."""
    return any(isinstance(part, Call) and part.atom.facts.kinks for part in walk(expr))
