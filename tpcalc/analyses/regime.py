"""``regime``: the verdict on a training run, from the orders of its outputs and their changes.

Logic is one-sided. That something vanishes or does not explode follows from an upper bound; that it
moves, or explodes, takes an order that is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Protocol

from tpcalc.analyses.orders import Order, Orders
from tpcalc.analyses.probe import Probe
from tpcalc.evaluate.witness import nonzero
from tpcalc.limit.scales import Scales, scales
from tpcalc.orders import Ex, as_ex
from tpcalc.orders.chamber import Chamber, Region
from tpcalc.program.program import Program, prune

__all__ = ["Judge", "Regime", "decide", "known", "power", "regime"]

DEPTHS = tuple(Fraction(k, 2) for k in range(5))


class Sizes(Protocol):
    """Where the sizes of outputs come from."""

    chamber: Chamber

    @property
    def region(self) -> Region:
        """Where the sizes hold."""
        ...

    def order(self, name: str) -> Order:
        """What is known of an output without a test."""
        ...

    def strict(self, name: str) -> bool:
        """Whether a bound is o(n^p)."""
        ...

    def exact(self, name: str) -> bool:
        """Whether the order is exact, by a test if need be."""
        ...


@dataclass
class _Known:
    """Sizes of orders that are there."""

    found: Orders
    chamber: Chamber

    @property
    def region(self) -> Region:
        mine, theirs = self.chamber.region, self.found.region
        return Region(
            tuple(dict.fromkeys((*theirs.positive, *mine.positive))),
            tuple(dict.fromkeys((*theirs.zero, *mine.zero))),
        )

    def order(self, name: str) -> Order:
        return self.found[name]

    def strict(self, name: str) -> bool:
        order = self.found[name]
        if order.status == "exact":
            return False
        scales_found = (run.scale(name) for run in self.found.runs)
        return any(
            s.strict and s.power is not None and as_ex(s.power) == order.n for s in scales_found
        )

    def exact(self, name: str) -> bool:
        return self.found[name].status == "exact"


@dataclass
class _Derived:
    """Sizes of one derivation; coefficients are tested only where the verdict asks."""

    run: Scales
    verify: bool
    seed: int
    tested: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chamber = self.run.context.ranking.chamber

    @property
    def region(self) -> Region:
        return self.run.region

    def order(self, name: str) -> Order:
        found = self.run.scale(name)
        if found.power is None:
            return Order(None, "upper" if found.bound else "exact", "")
        reason = self.tested.get(name, "")
        status = "exact" if found.certain or reason else "upper"
        return Order(as_ex(found.power), status, reason)

    def strict(self, name: str) -> bool:
        return self.run.scale(name).strict

    def exact(self, name: str) -> bool:
        found = self.run.scale(name)
        if found.certain or name in self.tested:
            return True
        if not self.verify or found.node is None or found.noise:
            return False
        test = nonzero(self.run.context, [found.node], self.seed)[found.node]
        if test.nonzero:
            self.tested[name] = f"the leading coefficient is not 0 ({test.text})"
        return bool(test.nonzero)


@dataclass(frozen=True)
class Regime:
    """A verdict with what decides it.

    Args:
        verdict: ``"unstable"``, ``"trivial"``, ``"kernel"``, ``"feature-learning"`` or
            ``"undecided"``.
        initial: ``"ok"``, ``"vanishes"`` or ``"explodes"``: the network at the start.
        facts: What decides, in words.
        region: Conditions on the symbols under which it holds.
        used: The outputs whose exact orders it rests on, and what these rest on.
    """

    verdict: str
    initial: str
    facts: tuple[str, ...]
    region: Region
    used: Mapping[str, str]


@dataclass
class Judge:
    """Comparisons of sizes with 1, recorded where they hold symbols.

    Args:
        sizes: The sizes of the outputs.
    """

    sizes: Sizes
    used: dict[str, None] = field(default_factory=dict)

    @property
    def region(self) -> Region:
        """Where the sizes and the comparisons hold."""
        return self.sizes.region

    def order(self, name: str) -> Order:
        """What is known of an output.

        Args:
            name: The output.
        """
        return self.sizes.order(name)

    def sign(self, name: str) -> int:
        """The sign of the exponent of a bound on an output; 1 where none is known.

        Args:
            name: The output.
        """
        order = self.order(name)
        if order.n is None:
            return -1 if order.zero else 1
        constant = order.n.constant
        sign = self.sizes.chamber.sign(order.n if constant is None else constant)
        return -1 if sign == 0 and self.sizes.strict(name) else sign

    def vanishes(self, name: str) -> bool:
        """Whether an output certainly tends to 0.

        Args:
            name: The output.
        """
        return self.sign(name) < 0

    def is_exactly(self, name: str, sign: int) -> bool:
        """Whether an output is certainly of order one (sign 0), or certainly explodes (sign 1).

        Args:
            name: The output.
            sign: That of its exponent.
        """
        order = self.order(name)
        yes = order.n is not None and self.sign(name) == sign and self.sizes.exact(name)
        if yes:
            self.used[name] = None
        return yes

    def largest(self, names: Iterable[str]) -> str | None:
        """The name with the largest bound at the sample point; None if all are identically 0.

        Args:
            names: Outputs.
        """
        best: str | None = None
        value = Fraction(0)
        for name in names:
            order = self.order(name)
            if order.zero:
                continue
            if order.n is None:
                return name
            here = order.n.at(self.sizes.chamber.point)
            if best is None or here > value:
                best, value = name, here
        return best

    def largest_words(self, names: Iterable[str]) -> str:
        """The largest size in words.

        Args:
            names: Outputs.
        """
        every = list(names)
        largest = self.largest(every)
        if largest is None:
            return "identically 0"
        found = {order.n for order in map(self.order, every) if order.n is not None}
        fixed = len(found) == 1 or all(n.constant is not None for n in found)
        return self.words(largest) + ("" if fixed else " (the largest at the sample point)")

    def words(self, name: str) -> str:
        """The size of an output in words.

        Args:
            name: The output.
        """
        order = self.order(name)
        if order.n is None:
            return "identically 0" if order.zero else "of a size that is not known"
        how = "" if order.status == "exact" else "at most "
        if self.sizes.strict(name):
            how = "smaller than "
        return f"{how}{power(order.n)}"


def known(found: Orders) -> Judge:
    """Comparisons of orders that are there.

    Args:
        found: The orders.
    """
    return Judge(_Known(found, Chamber(found.point)))


def power(exponent: Ex) -> str:
    """A power of n in print.

    Args:
        exponent: A growth exponent.

    Example:
        >>> power(Ex.number(-0.5)), power(Ex.number(0))
        ('n^(-1/2)', 'order one')
    """
    return "order one" if exponent == Ex() else f"n^({exponent})"


def regime(judge: Judge, run: Probe) -> Regime:
    """The verdict on a run.

    Args:
        judge: Of its outputs h, f and the changes of f and of the last features are read.
        run: The names of these outputs.

    Source: Yang and Hu, Feature learning in infinite-width neural networks, section 3; Hajjar,
        Chizat, Giraud, Definitions B.1 and B.2.

    Example:
        >>> from tpcalc.analyses.orders import orders
        >>> from tpcalc.analyses.probe import probe
        >>> from tpcalc.catalog.architectures.mlp import MLP
        >>> run = probe(MLP(2, "relu"), "naive-ip", steps=1)
        >>> regime(known(orders(run.program)), run).initial
        'vanishes'
    """
    initial, facts = _initial(judge, run)
    verdict = "unstable" if initial == "explodes" else None
    if verdict is None:
        verdict, facts = _training(judge, run)
    reasons = {name: judge.order(name).reason for name in judge.used}
    return Regime(verdict, initial, facts, judge.region, reasons)


def decide(
    run: Probe,
    *,
    at: Mapping[str, Fraction] | None = None,
    verify: bool = True,
    seed: int = 0,
) -> Regime:
    """The verdict on a run and nothing else: no more terms, comparisons and tests than it takes.

    Args:
        run: A run that watches h and x.
        at: The sample point for the symbols of its exponents.
        verify: Whether leading coefficients are tested where the verdict rests on them.
        seed: Of these tests.

    Raises:
        ScaleError: A symbol without a value.

    Source: As ``regime``.

    Example:
        >>> from tpcalc.analyses.probe import probe
        >>> from tpcalc.catalog.architectures.mlp import MLP
        >>> decide(probe(MLP(3, "relu"), "ntk", steps=1)).verdict
        'kernel'
    """
    lean = _lean(run)
    for depth in DEPTHS:
        derived = scales(lean.program, at=at, depth=depth)
        found = regime(Judge(_Derived(derived, verify, seed)), lean)
        if found.verdict != "undecided":
            break
    return found


def _lean(run: Probe) -> Probe:
    """The same run with the outputs that a verdict is read from."""
    names = {name for step in range(run.steps + 1) for _, name in _levels(run, step)}
    for step in range(1, run.steps + 1):
        names |= {*run.changes(step), run.features(run.depth, step)}
    program = run.program
    outputs = tuple((name, ref) for name, ref in program.outputs if name in names)
    kept = Program(program.dims, program.groups, program.nodes, outputs, program.where)
    return replace(run, program=prune(kept))


def _levels(run: Probe, step: int) -> list[tuple[str, str]]:
    """The preactivations and outputs of a step at the query: what they are, and their names."""
    named = [
        (f"layer {layer}: its preactivations", f"h[{layer},{step},{run.query}]")
        for layer in range(1, run.depth + 1)
    ]
    return [*named, *(("the output", name) for name in run.f(step))]


def _initial(judge: Judge, run: Probe) -> tuple[str, tuple[str, ...]]:
    """The network at the start, and what explodes in it."""
    vanishing = False
    for what, name in _levels(run, 0):
        if judge.is_exactly(name, 1):
            fact = f"{what} grow like {judge.words(name)} at the start"
            return "explodes", (fact.replace("output grow", "output grows"),)
        if what != "the output" and judge.vanishes(name):
            vanishing = True
    return ("vanishes" if vanishing else "ok"), ()


def _training(judge: Judge, run: Probe) -> tuple[str, tuple[str, ...]]:
    steps = range(1, run.steps + 1)
    doubt: str | None = None
    for step in range(run.steps + 1):
        for what, name in _levels(run, step):
            if judge.sign(name) <= 0:
                continue
            if judge.is_exactly(name, 1):
                grow = "grows" if what == "the output" else "grow"
                return "unstable", (f"{what} {grow} like {judge.words(name)} at step {step}",)
            at = f" at step {step}" if step else " at the start"
            doubt = doubt or f"{what}: whether this explodes{at} is open ({judge.words(name)})"
    if doubt is not None:
        return "undecided", (doubt,)
    changes = [name for step in steps for name in run.changes(step)]
    if all(judge.vanishes(name) for name in changes):
        bound = judge.largest_words(changes)
        return "trivial", (f"the output does not move: f_t - f_0 is {bound} {_until(run.steps)}",)
    moved = _first(judge, [(step, run.changes(step)) for step in steps])
    if moved is None:
        name = next(name for name in changes if not judge.vanishes(name))
        return "undecided", (f"whether the output moves is open: {_doubt(judge, name)}",)
    output = f"the output moves: f_{moved[0]} - f_0 is of order one"
    features = [(step, (run.features(run.depth, step),)) for step in steps]
    learned = _first(judge, features)
    if learned is not None:
        layer = f"layer {run.depth}: its features move by order one at step {learned[0]}"
        return "feature-learning", (layer, output)
    names = [name for _, (name,) in features]
    if all(judge.vanishes(name) for name in names):
        bound = judge.largest_words(names)
        fact = f"layer {run.depth}: its features do not move, x_t - x_0 is {bound}"
        return "kernel", (f"{fact} {_until(run.steps)}", output)
    name = next(name for name in names if not judge.vanishes(name))
    return "undecided", (f"whether the last features move is open: {_doubt(judge, name)}", output)


def _first(judge: Judge, steps: Iterable[tuple[int, Iterable[str]]]) -> tuple[int, str] | None:
    """The first step at which one of the names is of order one."""
    for step, names in steps:
        for name in names:
            if judge.is_exactly(name, 0):
                return step, name
    return None


def _doubt(judge: Judge, name: str) -> str:
    order = judge.order(name)
    return f"{name} is {judge.words(name)}" + (f"; {order.reason}" if order.reason else "")


def _until(steps: int) -> str:
    return "at step 1" if steps == 1 else f"at steps 1 to {steps}"
