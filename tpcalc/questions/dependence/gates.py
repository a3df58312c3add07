"""Gates: on which part of the coordinates a Z is not 0, and which arguments a function feels there.

A ReLU network decides the sign of what is exactly 0 by its next term (``at_zero``). Often a factor
shuts these coordinates already, and then the next term is felt nowhere: relu(g) * at_zero(h) is 0
where h = 0 exactly where g <= 0.

Openings: start vectors in sums of blocks, which with given numbers in front make one Gaussian. Cell
by cell such a sum is a node of its own; of blocks it stands inside of others, which are opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from tpcalc.arrays import Array
from tpcalc.evaluate.witness import Finding
from tpcalc.functions import Call, Const, Expr, Fn, Par, Var
from tpcalc.functions.atoms import Atom
from tpcalc.functions.expr import Add, Mul, Pow, const, mul, substitute, walk
from tpcalc.functions.indicator import AT_ZERO
from tpcalc.functions.tape import evaluate
from tpcalc.limit.axes import along, united
from tpcalc.limit.certainty import Certainty
from tpcalc.limit.context import Context
from tpcalc.limit.graph import LRef, Start, Starts, Total, data_of, function_of, start_of
from tpcalc.limit.law import Density
from tpcalc.program.base import Table, lincomb_of
from tpcalc.program.nodes import LinComb, Nonlin, Rename, Stack

Gate = tuple[LRef, bool]  # Z > 0 (True) or Z < 0
LARGEST = 200  # operations in a function with others put in
SIGNS = {True: const(1), False: const(-1)}


@dataclass(frozen=True, slots=True)
class Support:
    """Where a Z is not 0, almost surely."""

    gates: frozenset[Gate] = frozenset()  # conditions that all hold wherever Z is not 0
    full: bool = False  # whether Z is not 0 wherever they hold


EVERYWHERE = Support(full=True)


@dataclass
class Gates:
    """The supports of the vectors of a limit graph.

    Scalars that are computed are taken not to cancel terms by accident, as everywhere.
    """

    context: Context  # the graph
    # what numbers say of scalars whose form does not decide
    tests: Mapping[LRef, Finding] = field(default_factory=dict)
    _of: dict[LRef, Support] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._certainty = Certainty(self.context)

    def nonzero(self, scalar: LRef | None) -> bool:
        """Whether a coefficient is not 0, by its form or by numbers."""
        if scalar is None or self._certainty.holds(scalar):
            return True
        finding = self.tests.get(scalar)
        return finding is not None and bool(finding.nonzero)

    def opened(self, node: Nonlin) -> Nonlin:
        """A function with those of its arguments put in that ask where something is exactly 0."""
        inner = {i: function_of(self.context.nodes[ref]) for i, ref in enumerate(node.vectors)}
        asks = {i: n for i, n in inner.items() if n is not None and picks(n.fn.expr)}
        if not asks:
            return node
        vectors, scalars = list(node.vectors), list(node.scalars)
        given: dict[Expr, Expr] = {}
        for place, argument in asks.items():
            part = self.opened(argument)
            own: dict[Expr, Expr] = {Var(i): Var(len(vectors) + i) for i in range(part.fn.vectors)}
            own |= {Par(i): Par(len(scalars) + i) for i in range(part.fn.scalars)}
            given[Var(place)] = substitute(part.fn.expr, own)
            vectors += part.vectors
            scalars += part.scalars
        expr = substitute(node.fn.expr, given)
        if sum(1 for _ in walk(expr)) > LARGEST:
            return node
        fn, kept, used = Fn(expr, len(vectors), len(scalars)).compact()
        return Nonlin(fn, tuple(vectors[i] for i in kept), tuple(scalars[i] for i in used))

    def felt(self, node: Nonlin) -> tuple[Expr, ...]:
        """The summands of a function that are not 0 almost surely."""
        return tuple(term for term in _summands(node.fn.expr) if not self._is_shut(term, node))

    def add(self, ref: LRef) -> None:
        """Find the support of a vector."""
        self._of[ref] = (
            EVERYWHERE
            if self.context.laws.density(ref) is not Density.NONE
            else _SUPPORTS(self.context.nodes[ref], self)
        )

    def _function(self, node: Nonlin) -> Support:
        node = self.opened(node)
        parts = [self._expr(term, node) for term in self.felt(node)]
        if len(parts) == 1:
            return parts[0]
        return Support(_common(parts)) if parts else Support()

    def _sum(self, node: LinComb) -> Support:
        """A sum is not 0 where a term with a coefficient of its own is not 0."""
        parts = [self._of[vector] for vector in node.vectors]
        gates = _common(parts)
        for part, scalar in zip(parts, node.scalars, strict=True):
            own = len(parts) == 1 or (scalar is not None and node.scalars.count(scalar) == 1)
            if own and part.full and part.gates == gates and self.nonzero(scalar):
                return Support(gates, full=True)
        return Support(gates)

    def _is_shut(self, term: Expr, node: Nonlin) -> bool:
        """Whether a product holds at_zero(a) and other factors that are 0 wherever a is."""
        factors = term.factors if isinstance(term, Mul) else (term,)
        marked = [factor for factor in factors if _marks(factor)]
        if not marked:
            return False
        others = [self._expr(factor, node) for factor in factors if not _marks(factor)]
        open_: frozenset[Gate] = frozenset().union(*(part.gates for part in others))
        for factor in marked:
            assert isinstance(factor, Call)
            of = self._expr(factor.arg, node)
            if of.full and of.gates <= open_:
                return True
        return False

    def _expr(self, expr: Expr, node: Nonlin) -> Support:
        if isinstance(expr, Const):
            return EVERYWHERE
        if isinstance(expr, Par):
            return Support(full=self.nonzero(node.scalars[expr.index]))
        if isinstance(expr, Var):
            return self._of[node.vectors[expr.index]]
        if isinstance(expr, Mul):
            parts = [self._expr(factor, node) for factor in expr.factors]
            every = all(part.full for part in parts)
            return Support(frozenset().union(*(part.gates for part in parts)), every)
        if isinstance(expr, Add):
            return Support(_common([self._expr(term, node) for term in expr.terms]))
        if isinstance(expr, Pow):
            return self._expr(expr.base, node) if expr.exponent > 0 else Support()
        assert isinstance(expr, Call)
        return self._call(expr, node)

    def _call(self, expr: Call, node: Nonlin) -> Support:
        """A homogeneous function lives on one side of 0 or on both; of others nothing is known."""
        open_ = _sides(expr.atom)
        inner = self._expr(expr.arg, node)
        if not open_:
            return Support()
        if len(open_) == 2:
            return inner
        if not isinstance(expr.arg, Var):
            return Support(inner.gates)
        gate = (node.vectors[expr.arg.index], open_[0])
        return Support(inner.gates | {gate}, full=True)


_SUPPORTS: Table[Support] = Table(
    {
        Nonlin: lambda node, gates: gates._function(node),
        LinComb: lambda node, gates: gates._sum(node),
    },
    lambda node, gates: Support(),
)


def _sides(atom: Atom) -> list[bool]:
    """The sides of 0 on which a homogeneous function with f(0) = 0 is not 0; of others none."""
    facts = atom.facts
    if not isinstance(facts.homogeneity, Fraction) or facts.value_at_zero != 0:
        return []
    return [side for side, at in SIGNS.items() if float(evaluate(Fn(atom(at), 0), [])) != 0]


def picks(expr: Expr) -> bool:
    """Whether an expression picks coordinates where something is exactly 0."""
    return any(_marks(part) for part in walk(expr))


def _common(parts: list[Support]) -> frozenset[Gate]:
    if not parts:
        return frozenset()
    return frozenset.intersection(*(part.gates for part in parts))


def _marks(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.atom == AT_ZERO


def _summands(expr: Expr) -> Iterator[Expr]:
    """The summands of an expression; sums that hold ``at_zero`` are multiplied out."""
    if isinstance(expr, Add):
        for term in expr.terms:
            yield from _summands(term)
        return
    if isinstance(expr, Mul):
        for place, factor in enumerate(expr.factors):
            if isinstance(factor, Add) and picks(factor):
                others = (*expr.factors[:place], *expr.factors[place + 1 :])
                for term in factor.terms:
                    yield from _summands(mul((*others, term)))
                return
    yield expr


DIGITS = 12  # in which numbers of one Gaussian agree, whatever sum they were found in
MOST_CELLS = 2**24  # cells times start vectors


@dataclass(frozen=True)
class Opened:
    """The start vectors in a sum."""

    numbers: Array  # those in front of all start vectors of the program, for each cell
    members: tuple[tuple[str, int], ...]  # the start vectors

    def weights(self, cell: tuple[int, ...]) -> tuple[tuple[tuple[str, int], Fraction], ...]:
        """The start vectors of a cell with their numbers, as far as these are not 0."""
        row = self.numbers[cell]
        return tuple(
            (self.members[k], Fraction(float(f"{row[k]:.{DIGITS}g}"))) for k in np.flatnonzero(row)
        )


@dataclass
class Openings:
    """The sums of a graph of blocks that are opened."""

    context: Context  # the graph
    _of: dict[LRef, Opened | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        groups = self.context.program.group.values()
        self.members = tuple((g.name, index) for g in groups for index in range(g.size))
        self.place = {member: place for place, member in enumerate(self.members)}

    def of(self, ref: LRef) -> Opened | None:
        """The start vectors in a node; None where it is no sum with given numbers of them."""
        if ref not in self._of:
            self._of[ref] = _OPENED(self.context.nodes[ref], ref, self)
        return self._of[ref]

    def is_known(self, scalar: LRef | None) -> bool:
        """Whether the number in front of a term is given."""
        return scalar is None or data_of(self.context.nodes[scalar]) is not None

    def starts(self, node: Start | Starts, ref: LRef, members: list[tuple[str, int]]) -> Opened:
        """Start vectors; one that is fixed is no Gaussian."""
        cov = self.context.program.group[node.group].cov
        found = np.zeros((len(members), len(self.members)))
        for row, (name, index) in enumerate(members):
            found[row, self.place[name, index]] = cov is None or cov[index][index] != 0
        shape = [size for _, size in self.context.axes[ref]]
        return Opened(found.reshape(*shape, len(self.members)), self.members)

    def total(self, node: Total | LinComb, ref: LRef) -> Opened | None:
        """A sum, of which some terms hold start vectors with given numbers."""
        axes = self.context.axes
        shape, found = [size for _, size in axes[ref]], False
        column = ("", len(self.members))
        total = np.zeros((*shape, column[1]))
        for number, scalar, vector, names in node.terms:
            opened = self.of(vector) if self.is_known(scalar) else None
            refs = [one for one in (scalar, vector) if one is not None]
            every = (*united(axes[one] for one in refs), column)
            if opened is None or np.prod([float(size) for _, size in every]) > MOST_CELLS:
                continue
            part = float(number) * along(opened.numbers, (*axes[vector], column), every)
            if scalar is not None:
                data = data_of(self.context.nodes[scalar])
                assert data is not None
                own = np.array([float(value) for value in data.values])
                own = own.reshape([size for _, size in data.axes])
                part = part * along(own, axes[scalar], every)
            # A sum over an axis that a term lacks counts its cells, which its number holds.
            part = part.sum(
                axis=tuple(place for place, (name, _) in enumerate(every) if name in names)
            )
            kept = tuple(pair for pair in every if pair[0] not in names)
            total = total + along(part, kept, (*axes[ref], column))
            found = True
        return Opened(total, self.members) if found else None

    def stacked(self, node: Stack, ref: LRef) -> Opened | None:
        """Start vectors one after the other."""
        axes, column = self.context.axes[ref], ("", len(self.members))
        below = (*(pair for pair in axes if pair[0] != node.axis), column)
        items = list[Array]()
        for one in node.of:
            opened = self.of(one)
            if opened is None:
                return None
            own = along(opened.numbers, (*self.context.axes[one], column), below)
            items.append(np.broadcast_to(own, [size for _, size in below]))
        place = [name for name, _ in axes].index(node.axis)
        return Opened(np.stack(items, place), self.members)


_OPENED: Table[Opened | None] = Table(
    {
        Start: lambda node, ref, by: by.starts(node, ref, [(node.group, node.index)]),
        Starts: lambda node, ref, by: by.starts(
            node, ref, [one for one in by.members if one[0] == node.group]
        ),
        LinComb: lambda node, ref, by: by.total(node, ref),
        Total: lambda node, ref, by: by.total(node, ref),
        Rename: lambda node, ref, by: by.of(node.of),
        Stack: lambda node, ref, by: by.stacked(node, ref),
    },
    lambda node, ref, by: None,
)


def image_of(context: Context, ref: LRef) -> tuple[LRef, ...]:
    """The start vectors that a node is a given linear combination of; none for any other node."""
    node = lincomb_of(context.nodes[ref])
    if node is None or any(scalar is not None for scalar in node.scalars):
        return ()
    if len(node.vectors) < 2:  # a multiple of one start vector is that start vector
        return ()
    starts = all(start_of(context.nodes[vector]) is not None for vector in node.vectors)
    return node.vectors if starts else ()
