"""What of a program is asked for, where scalars may be given, and what the calculus says of it.

The Gaussians G of a graph, given that an affine function f of them is v, have the law of
``G + K (v - f(G))`` with K = Cov(G, f) / Var f: the graph is written with these in place of G, so
that every evaluator takes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from tpcalc.errors import LimitError, ScaleError, UnknownName, UsageError
from tpcalc.evaluate.closure.chance import Chance, random_nodes
from tpcalc.evaluate.settle import Witness
from tpcalc.functions import Expr, Fn, Par
from tpcalc.functions.expr import add, const, mul, substitute
from tpcalc.integrals.demand import Unknown
from tpcalc.limit.axes import CellsDiffer, NeedsCells
from tpcalc.limit.context import Trial
from tpcalc.limit.derive import Cover
from tpcalc.limit.derive import cover as derived
from tpcalc.limit.graph import (
    LimitGraph,
    LNode,
    LRef,
    Number,
    Target,
    is_drawn,
    number_of,
    product_mean,
    restricted,
)
from tpcalc.names import cell_name
from tpcalc.passes.as_blocks import cells_of, is_read_as_blocks, rows_written, with_cells
from tpcalc.passes.split import split
from tpcalc.program.base import input_of, references, renumbered
from tpcalc.program.nodes import Data, Kind, Nonlin
from tpcalc.program.program import Program, cells, matching, prune, selected
from tpcalc.program.types import ReadAs
from tpcalc.results import Explosion, NotCovered, ScalarRow, VectorRow

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
    inputs = {name for name, one in source.families.items() if not one.width and one.std != 0}
    outputs = dict(source.outputs)
    for name in sorted(given.keys() - inputs - outputs.keys()):
        scalars = {out for out, ref in outputs.items() if source.types[ref].kind is Kind.SCALAR}
        raise UnknownName("random input or scalar output", name, sorted(inputs | scalars))
    asked = {name: value for name, value in given.items() if name not in inputs}
    if not given:
        return program, asked
    nodes = tuple(
        Data(one.name, (given[one.name],))
        if (one := input_of(node)) is not None and not one.family.width and one.name in given
        else node
        for node in source.nodes
    )
    wanted = dict(program.outputs) | asked
    kept = tuple(output for output in source.outputs if output[0] in wanted)
    return prune(replace(source, nodes=nodes, outputs=kept)), asked


class _Written:
    """A field whose numbers are nodes of a graph that grows: formulas become nodes."""

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


GROWING = "growing"


def rescaled_growth(
    program: Program, values: Mapping[str, Fraction] | None, cover: Cover, trial: Trial
) -> Cover:
    """The same with the scalars that grow after their power of n is taken out."""
    powers = {row.name: row.n_power for row in cover.uncovered if row.n_power.exact is not None}
    if not powers:
        return cover
    found = derived(program, values, powers, trial)
    rows = (
        replace(row, bound=row.bound or f"O({powers[row.name].size('n')})")
        if row.name in powers
        else row
        for row in found.uncovered
    )
    return replace(found, uncovered=tuple(rows))


def explosion(
    names: Sequence[str], rows: Sequence[ScalarRow | VectorRow], uncovered: Sequence[NotCovered]
) -> Explosion | None:
    """What a training run reads that first grows; h is read by a function that is not covered."""
    powers = {row.name: row.n_power.constant for row in (*rows, *uncovered)}
    sizes = [(name, power) for name in names if (power := powers.get(name)) is not None]
    lost = any(isinstance(row.error, ScaleError) and row.n_power.exact is None for row in uncovered)
    return Explosion.first(sizes, ("f", "x", "h") if lost else ("f", "x"))


MOST = 100_000  # cells that a program is split into where its blocks are not covered
_refused: dict[tuple[str, str], dict[str, NotCovered]] = {}  # what no depth covers, by question


@dataclass(frozen=True)
class Asked:
    """What is asked of a program."""

    outputs: Sequence[str] | None  # names and patterns; None: all
    given: Mapping[str, float]  # values of random scalars, by name
    values: Mapping[str, Fraction] | None  # numbers for symbols
    # which scalars are given after their power of n is taken out
    rescale: bool | str | Sequence[str]
    seed: int  # of tests
    reading: ReadAs = "auto"  # as blocks or cell by cell

    @property
    def most(self) -> int:
        """The cells that the program is split into at most where its blocks are not covered."""
        return 0 if self.reading == "blocks" else MOST


@dataclass(frozen=True)
class Found:
    """What the calculus says of it."""

    program: Program  # the program with the outputs that are asked for
    given: Mapping[str, float]  # values of outputs
    cover: Cover  # its derivation
    values: Mapping[str, Fraction] | None  # numbers for its symbols
    lost: tuple[NotCovered, ...]  # outputs that are random and have no mean


def covered(source: Program, asked: Asked) -> Found:
    """Derive what is asked of a program.

    A program of few cells is read cell by cell, which knows more forms; one of many as blocks.
    """
    cells = cells_of(source)
    if is_read_as_blocks(source, asked.reading) and not asked.given:
        try:
            found = _found(source, asked)
        except NeedsCells as reason:
            return _found(_split(source, cells, asked.most, str(reason)), asked)
        if cells > asked.most or not any(
            isinstance(one.error, LimitError) for one in found.cover.uncovered
        ):
            return found
    return _found(_split(source, cells, asked.most, "values are given"), asked)


def _found(source: Program, asked: Asked) -> Found:
    program, given = fixed(selected(source, asked.outputs), source, asked.given)
    program = rows_written(program)
    values = asked.values
    if values is not None:
        values = {name: value for name, value in values.items() if name in program.symbols}
    names = [name for name, _ in program.outputs]
    key = source.digest, repr(replace(asked, outputs=None))
    if key not in _refused:  # of one program at a time
        _refused.clear()
        _refused[key] = {}
    known = _refused[key]
    if known.keys() >= {*names}:  # nor at any depth when the others are not asked
        nothing = LimitGraph((), (), (), program.dims, program.groups, ())
        rows = tuple(known[name] for name in names)
        return Found(program, given, Cover(nothing, rows), values, ())
    growing = asked.rescale == GROWING
    rescaled = [] if isinstance(asked.rescale, str) else matching(names, asked.rescale)
    trial = Witness(asked.seed).claims
    try:
        cover = derived(program, values, rescaled, trial)
    except CellsDiffer as found:
        program = selected(with_cells(program, found.names), asked.outputs)
        rescaled = matching([name for name, _ in program.outputs], rescaled) if rescaled else []
        cover = derived(program, values, rescaled, trial)
    if growing:
        cover = rescaled_growth(program, values, cover, trial)
    known.update((row.name, row) for row in cover.uncovered)
    graph, lost = _with_means(cover)
    return Found(program, given, replace(cover, graph=graph), values, lost)


def _split(source: Program, cells: int, most: int, reason: str) -> Program:
    """The program with a node for each cell."""
    if source.has_blocks and cells > most:
        raise LimitError(
            f"the program has about {cells} cells, and the limit of its blocks is not derived: "
            f"{reason}.",
            hint="Take fewer samples in a step, or fewer steps."
            if most
            else "Leave out reading='blocks'.",
        )
    return split(source)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a single result stands."""

    name: str  # what it is called
    output: str  # the output of the program that it is a cell of
    cell: tuple[int, ...]  # which one; () where the output is no block
    target: Target  # the target of the output
    # the cell of the target: a coefficient need not have all axes of what it is of
    held: tuple[int, ...]

    @property
    def numbers(self) -> str:
        """The name of the cell of the target."""
        return cell_name(self.output, self.held)


def places(
    program: Program, graph: LimitGraph, outputs: Sequence[str] | None = None
) -> Iterator[Place]:
    """Where each cell of each output stands."""
    for name, target in graph.targets:
        axes = program.types[program.ref(name)].axes
        held = graph.axes[target.node] if graph.axes and target.node is not None else ()
        asked = set(cells(program, name, outputs))
        for cell in product(*(range(size) for _, size in axes)):
            own = cell_name(name, cell)
            if own not in asked:
                continue
            where = dict(zip(dict(axes), cell, strict=True))
            yield Place(own, name, cell, target, tuple(where[axis] for axis, _ in held))


def _with_means(cover: Cover) -> tuple[LimitGraph, tuple[NotCovered, ...]]:
    """The graph without the random outputs that have no mean, and these."""
    drawn = random_nodes(cover.graph) if cover.meanless else frozenset()
    targets = dict(cover.graph.targets)
    lost = tuple(
        row
        for row in cover.meanless
        if row.name in targets and any(ref in drawn for ref in _numbers(targets[row.name]))
    )
    gone = {row.name for row in lost}
    return restricted(cover.graph, targets.keys() - gone) if gone else cover.graph, lost


def _numbers(target: Target) -> tuple[LRef, ...]:
    """The scalars that are given of a target: both moments of a vector."""
    if target.moments is None:
        return target.refs
    return tuple(ref for ref in target.moments if ref is not None)
