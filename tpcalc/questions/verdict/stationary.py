"""Bounds for all steps of a training run at once: a fixed point of the exponents in t.

A program of T steps is followed with ``Bounds``: of every vector the parts (exponent, coset). The
sign flips are coarse and finite in number, one for each Gaussian group and one for each side of a
random matrix (all Gaussian parts of that side flip together, which leaves the law of the limit as
it is), so the values of a later step can equal those of an earlier one. Nodes of the first forward
pass at the query stay exact: a later node is "that node plus a change", so what did not move
cancels.

**What is proved.** Call the roles of a step h, x, f at every input and dh, dx at the batch. Suppose
that at steps T - 1 and T >= 2 all roles have equal values, that no vector with a new coset met a
matrix in step T, and that the learning-rate exponents no longer change from step T - 1 on. Then all
later steps have the values of step T. For unrolled training the nodes of step t + 1 are those of
step t with other data and with one more summand, that of update t, in each sum over the history.
Every operation is a function of the bounds of its arguments alone, a sum is a function of the *set*
of bounds of its summands (the canonical form is idempotent), and data enter only by numbers that
are not 0. Take the nodes of step T + 1 in order: update T is made of roles of step T, hence its
summand has the bound of that of update T - 1, which the sum of step T already holds. So each sum
has the same set of bounds, and each node the same value, as at step T. Induction over t.

**Other optimizers.** A parameter after t steps is what decay leaves of its start, plus functions of
its gradients. The text of the optimizer shows, for all t at once (``training/update_kinds``), that
these are sums of gradients and bounded functions of them. A sum of gradients has one more summand
at step t + 1 and other numbers, of which one that is 0 makes bounds smaller: it suffices that all
gradients stand in the sums of the steps that are followed. An average of a bounded function times x
is O(x) whatever the gradients are, and 0 if all of them or x are; its bound is a function of the
set of bounds of its rows, columns and x, as that of a sum is, and no symmetry of it is claimed. So
the induction goes on. What decay leaves is a sum of powers n^(k p), k <= t, p <= 0: the same set of
parts but for smaller ones with the same coset, which the canonical form drops.

**What is used.** Bounds are those of the exponent calculus: a product with a matrix keeps the order
of each part, corrections have the order of the part they come from, an average of mean 0 by parity
is smaller by n^(1/2). Data may have no zeros that later samples do not have: the run that is
followed has generic data, which can only make bounds larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from tpcalc.errors import LimitError, TpcalcError
from tpcalc.exponents.coset import ALL, EVEN, Coset
from tpcalc.functions import Expr, Var
from tpcalc.names import Name
from tpcalc.program.base import Table, lincomb_of, matmul_of, reached, references, renumbered
from tpcalc.program.nodes import (
    Data,
    Input,
    LinComb,
    MatMul,
    Moment,
    Node,
    Nonlin,
    OuterNonlin,
    Ref,
    Scale,
    slots_of,
)
from tpcalc.program.program import Builder
from tpcalc.program.rules import Rules, interpret
from tpcalc.questions.verdict.graded import Bound, Bounds, Split, Unbounded
from tpcalc.questions.verdict.probe import Probe

ZERO, HALF = Fraction(0), Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Later:
    """Upper bounds that hold at every step t >= 1, as growth exponents; None: identically 0."""

    step: int  # the step T from which the table repeats
    largest: Fraction | None  # of every h and f
    output: Fraction | None  # of f_t - f_0 at the query
    features: Fraction | None  # of x^L_t - x^L_0 at the query


@dataclass(frozen=True, slots=True)
class Value:
    """A node: one of the nodes of the first pass at the query (or none) plus a change."""

    base: Ref | None
    change: Bound


@dataclass
class State:
    """What the rules share."""

    place: Callable[[Ref], str]
    values: Mapping[str, Fraction]
    bounds: Bounds = field(default_factory=Bounds)
    fixed: dict[Node, Ref] = field(default_factory=dict)  # the first pass at the query
    sums: dict[frozenset[tuple[Ref, object]], Ref] = field(default_factory=dict)
    sizes: dict[Ref, Bound] = field(default_factory=dict)
    flips: dict[object, int] = field(default_factory=dict)
    met: dict[tuple[Ref, bool], dict[Coset, Ref]] = field(default_factory=dict)
    _totals: dict[tuple[Ref, int], tuple[Bound, Bound]] = field(default_factory=dict)

    def flip(self, what: object) -> Coset:
        """The coset of one of the coarse sign flips."""
        return self.bounds.lattice.single(self.flips.setdefault(what, len(self.flips)))

    def total(self, value: Value) -> Bound:
        """The bound on a node as a whole."""
        if value.base is None:
            return value.change
        key = value.base, id(value.change)  # asked again and again; the bound is kept with it
        if key not in self._totals:
            found = self.bounds.sum(self.sizes[value.base], value.change)
            self._totals[key] = value.change, found
        return self._totals[key][1]

    def split(self, value: Value) -> Split:
        """A node as a value and a change."""
        if value.base is None:
            return value.change, ()
        return self.sizes[value.base], value.change

    def made(self, node: Node, ref: Ref, bases: Iterable[Ref | None], split: Split) -> Value:
        """The value of a node from bounds on it at the bases of its arguments and on its change."""
        moved: dict[Ref, Any] = dict(zip(references(node), bases, strict=True))
        # The node of the first pass that does the same to the bases of the arguments.
        lost = None in moved.values()
        base = None if lost else self.fixed.get(renumbered(node, moved.__getitem__))
        return self.placed(node, ref, base, split)

    def placed(self, node: Node, ref: Ref, base: Ref | None, split: Split) -> Value:
        """The value of a node that has a base, or none."""
        value, change = split
        if self.fixed.get(node) == ref:
            self.sizes[ref] = self.bounds.sum(value, change)
            return Value(ref, ())
        return Value(None, self.bounds.sum(value, change)) if base is None else Value(base, change)


def later(
    probe: Probe, values: Mapping[str, Fraction], rates: tuple[object, object]
) -> Later | None:
    """Bounds for all steps, if the table of the last two steps of a run is the same.

    Source: Hajjar, Chizat, Giraud, Appendix L (the same induction, for tanh by hand).

    Example:
        >>> from tpcalc.questions.verdict.probe import probe
        >>> from tpcalc.training.training import Training
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> run = probe(Training(MLP(2, "relu"), "ntk", steps=3), watch=("h", "x", "dh", "dx"))
        >>> bound = later(run, {}, (0, 0))
        >>> bound.largest, bound.output, bound.features
        (Fraction(0, 1), Fraction(0, 1), Fraction(-1, 2))
    """
    if probe.steps < 2 or rates[0] != rates[1]:
        return None
    state = State(probe.program.place, values)
    _mark(probe, state)
    try:
        table = interpret(probe.program, RULES, state)
    except Unbounded:
        return None
    now, before = (_roles(probe, step, table) for step in (probe.steps, probe.steps - 1))
    first_new = min(probe.program.ref(name) for name in probe.roles(probe.steps).values())
    grown = any(ref >= first_new for met in state.met.values() for ref in met.values())
    if now != before or grown:
        return None
    return _summary(probe, state, table)


def _mark(probe: Probe, state: State) -> None:
    """Find the nodes of the first pass at the query."""
    program = probe.program
    names = [*probe.f(0), *(name for own in probe.at("x", 0).values() for name in own)]
    made = reached(map(program.ref, names), lambda ref: references(program.nodes[ref]))
    for ref in sorted(made):
        state.fixed[program.nodes[ref]] = ref
        node = lincomb_of(program.nodes[ref])
        if node is not None and not any(s is not None for s in node.scalars):
            state.sums[frozenset(zip(node.vectors, node.numbers, strict=True))] = ref


def _roles(probe: Probe, step: int, table: list[Value]) -> dict[Name, Value]:
    """The values of the roles of a step."""
    program = probe.program
    return {role: table[program.ref(name)] for role, name in probe.roles(step).items()}


def _summary(probe: Probe, state: State, table: list[Value]) -> Later:
    program, size = probe.program, state.bounds.size

    def largest(bounds: Iterable[Bound]) -> Fraction | None:
        return max((p for bound in bounds if (p := size(bound)) is not None), default=None)

    def change(now: str, then: str) -> Bound:
        value = table[program.ref(now)]
        if value.base == program.ref(then):
            return value.change
        return state.bounds.sum(state.total(value), state.sizes[program.ref(then)])

    steps = range(1, probe.steps + 1)
    watched = [ref for name, ref in program.outputs if Name.of(name).word in ("h", "f")]
    last = probe.features[-1]
    return Later(
        probe.steps,
        largest(state.total(table[ref]) for ref in watched),
        largest(
            change(now, then)
            for step in steps
            for now, then in zip(probe.f(step), probe.f(0), strict=True)
        ),
        largest(
            change(now, then)
            for step in steps
            for now, then in zip(probe.at("x", step)[last], probe.at("x", 0)[last], strict=True)
        ),
    )


def _data(node: Data, ref: Ref, values: list[Value], state: State) -> Value:
    bound: Bound = ((ZERO, EVEN),) if node.values[0] != 0 else ()
    return state.made(node, ref, (), (bound, ()))


def _input(node: Input, ref: Ref, values: list[Value], state: State) -> Value:
    family = node.family
    if not family.width:
        bound: Bound = ((ZERO, EVEN),) if family.means[0] != 0 or family.std != 0 else ()
        return state.made(node, ref, (), (bound, ()))
    if len(family.width) == 1:
        coset = state.flip(("group", family.name))
        if any(mean != 0 for mean in family.mean):
            coset = state.bounds.lattice.hull(coset, EVEN)
        return state.made(node, ref, (), (((ZERO, coset),), ()))
    if family.law == "orthogonal":
        raise LimitError(
            f"the matrix {node.name!r} is orthogonal: that nothing moves any more is shown for "
            "independent entries only.",
            where=state.place(ref),
            hint="tp.orders takes orthogonal matrices, step by step.",
        )
    return Value(ref, ())  # it stands for itself


def _matmul(node: MatMul, ref: Ref, values: list[Value], state: State) -> Value:
    x = values[node.vector]
    seen = state.met.setdefault((node.matrix, node.transpose), {})
    for _, coset in state.total(x):
        seen.setdefault(coset, ref)
    value, change = state.split(x)
    moved = image(node, value, state), image(node, change, state)
    return state.made(node, ref, (node.matrix, x.base), moved)


def image(node: MatMul, bound: Bound, state: State) -> Bound:
    """Each part becomes a Gaussian part, and a correction along what met the other side."""
    lattice = state.bounds.lattice
    hat = state.flip((node.matrix, node.transpose))
    other = state.flip((node.matrix, not node.transpose))
    met = state.met.get((node.matrix, not node.transpose), {})
    parts = []
    for power, coset in bound:
        parts.append((power + HALF, hat))
        if lattice.has_zero(lattice.product(coset, other)):
            parts += [(power + HALF, along) for along in met]
    return state.bounds.reduced(parts)


def _lincomb(node: LinComb, ref: Ref, values: list[Value], state: State) -> Value:
    parts: list[Bound] = []
    bases: dict[Ref, Any] = {}
    changes: list[Bound] = []
    for number, scalar, vector in zip(node.numbers, node.scalars, node.vectors, strict=True):
        if number == 0:
            continue
        x = values[vector]
        if scalar is not None:
            factor = state.bounds.size(state.total(values[scalar]))
            if factor is not None:
                parts.append(state.bounds.shift(state.total(x), factor))
            continue
        if x.base is not None:
            bases[x.base] = bases.get(x.base, 0) + number
        changes.append(x.change)
    bases = {base: number for base, number in bases.items() if number != 0}
    rest = state.bounds.sum(*changes, *parts)
    own = state.bounds.sum(*(state.sizes[base] for base in bases))
    alone = list(bases.values()) == [1]
    base = next(iter(bases)) if alone else state.sums.get(frozenset(bases.items()))
    return state.placed(node, ref, base, (own, rest))


def _scale(node: Scale, ref: Ref, values: list[Value], state: State) -> Value:
    if node.depth_power.terms:
        raise Unbounded
    power = node.n_power.at(state.values)
    x = values[node.of]
    value, change = state.split(x)
    shift = state.bounds.shift
    return state.made(node, ref, (x.base,), (shift(value, power), shift(change, power)))


def _applied(node: Nonlin | Moment, ref: Ref, values: list[Value], state: State) -> Value:
    arguments = {slot: state.split(values[own]) for slot, own in slots_of(node)}
    split = state.bounds.function(node.fn.expr, arguments)
    bases = [values[r].base for r in (*node.vectors, *node.scalars)]
    return state.made(node, ref, bases, _SEEN(node, state, split))


_SEEN: Table[Split] = Table(
    {Moment: lambda node, state, split: tuple(map(state.bounds.average, split))},
    lambda node, state, split: split,
)


def _outer(node: OuterNonlin, ref: Ref, values: list[Value], state: State) -> Value:
    """An average over columns is at most what is averaged; no symmetry of it is followed."""
    if not node.forms:
        raise Unbounded
    bounds, size = state.bounds, state.bounds.size
    forms: dict[Expr, Split] = {Var(form): ((), ()) for form in node.forms}
    for row, col, form in zip(node.rows, node.cols, node.forms, strict=True):
        product = bounds.product(state.total(values[row]), state.total(values[col]))
        if product:
            known, _ = forms[Var(form)]
            forms[Var(form)] = bounds.sum(known, ((product[0][0], ALL),)), ()
    x = size(state.total(values[node.vector]))
    psi = size(bounds.function(node.fn.expr, forms)[0])
    return Value(None, () if x is None or psi is None else ((x + psi, ALL),))


RULES: Rules[Value, State] = Rules(
    "bounds for all steps",
    {
        Data: _data,
        Input: _input,
        MatMul: _matmul,
        Nonlin: _applied,
        LinComb: _lincomb,
        Scale: _scale,
        Moment: _applied,
        OuterNonlin: _outer,
    },
)


@dataclass
class NodeBounds:
    """Bounds on the nodes of a program, each when it is asked for; these rest on no claim.

    Example:
        >>> import tpcalc as tp
        >>> @tp.program
        ... def layer(t):
        ...     t.output("h", tp.n**-1 * (t.matrix("W") @ tp.relu(t.gaussian("g"))))
        >>> found = NodeBounds(Builder.copy(layer.build()), {})
        >>> found.of(layer.build().ref("h"))[0][0]
        Fraction(-1, 2)
    """

    builder: Builder  # the program
    values: Mapping[str, Fraction]  # numbers for symbols of its exponents
    # nodes that have no bound, arguments that explode, say, and what is made of them; each with the
    # first
    lost: dict[Ref, Ref] = field(default_factory=dict)
    _known: dict[Ref, Value] = field(default_factory=dict, init=False)
    _sides: dict[tuple[Ref, bool], Ref] = field(default_factory=dict, init=False)
    # what a rule raises for these
    ends: ClassVar[tuple[type[Exception], ...]] = (Unbounded, TpcalcError)

    def __post_init__(self) -> None:
        self._state = State("%{}".format, self.values)

    def of(self, ref: Ref) -> Bound | None:
        """The bound of a node; None where it has none."""

        def parts(one: Ref) -> tuple[Ref, ...]:
            return () if one in self._known else references(self.builder.node(one))

        for below in sorted(reached([ref], parts)):  # in the order of the program
            if below not in self._known:
                self._known[below] = self._reached(below, self.builder.node(below))
        return None if ref in self.lost else self._state.total(self._known[ref])

    def _reached(self, ref: Ref, node: Node) -> Value:
        product = matmul_of(node)
        cause = next((self.lost[below] for below in references(node) if below in self.lost), None)
        if cause is None and product is not None:  # a matrix that a lost vector met
            cause = self._sides.get((product.matrix, not product.transpose))
        if cause is None:
            try:
                return self._value(ref, node)
            except self.ends:
                cause = ref
        self.lost[ref] = cause
        if product is not None:
            self._sides[product.matrix, product.transpose] = cause
        return Value(None, ())

    def _value(self, ref: Ref, node: Node) -> Value:
        rule: Any = RULES.rule(type(node), f"%{ref}")
        found: Value = rule(node, ref, self._known, self._state)
        return found
