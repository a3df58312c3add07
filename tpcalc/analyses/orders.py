"""``orders``: how large every output of a program is, as exact powers of the width."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.dsl import as_program
from tpcalc.errors import UsageError
from tpcalc.evaluate.settle import settled
from tpcalc.evaluate.witness import Finding, nonzero
from tpcalc.limit.claims import Claim, Record
from tpcalc.limit.scales import Scale, Scales, scales, symbols
from tpcalc.orders import Ex, as_ex
from tpcalc.orders.chamber import Region
from tpcalc.program.program import Program
from tpcalc.results import OrderRow, OrderTable, checks
from tpcalc.results.provenance import provenance

__all__ = ["Order", "Orders", "orders"]

HALF = Fraction(1, 2)
BUDGET = Fraction(2)
FLUCTUATES = "it rests on an average that fluctuates around an expectation of 0, by symmetry"


@dataclass(frozen=True, slots=True)
class Order:
    """The size of a quantity: of that order if exact, at most of it if upper.

    Args:
        n: The growth exponent; None where the quantity is identically 0, or nothing is known.
        status: ``"exact"`` or ``"upper"``.
        reason: What decided it.
        strict: Whether an upper bound is not reached: o(...) in place of O(...).

    Example:
        >>> Order(as_ex(Fraction(-1, 2)), "exact", "")
        n**(-1/2)
        >>> Order(as_ex(Fraction(-1, 2)), "upper", "")
        O(n**(-1/2))
    """

    n: Ex | None
    status: str
    reason: str
    strict: bool = False

    @property
    def zero(self) -> bool:
        """Whether the quantity is identically 0."""
        return self.n is None and self.status == "exact"

    @property
    def text(self) -> str:
        """The exponent in print."""
        if self.n is not None:
            return str(self.n)
        return "-oo" if self.zero else "oo"

    def __repr__(self) -> str:
        if self.zero:
            return "0"
        size = f"n**({self.text})"
        return size if self.status == "exact" else f"{'o' if self.strict else 'O'}({size})"


@dataclass(frozen=True)
class Orders(Mapping[str, Order]):
    """The sizes of all outputs of a program.

    Args:
        program: The program.
        found: By name of the output.
        region: Conditions on the symbols under which all of it holds.
        point: The sample point of the symbols.
        table: The same as a record, for reports.
        runs: The derivations behind it, by increasing depth.

    Source: Hajjar, Chizat, Giraud, Lemmas F.2 to F.4.
    """

    program: Program
    found: Mapping[str, Order]
    region: Region
    point: Mapping[str, Fraction]
    table: OrderTable
    runs: tuple[Scales, ...] = field(default=(), repr=False, compare=False)

    def __getitem__(self, name: str) -> Order:
        self.program.ref(name)  # an unknown name lists the nearest
        return self.found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


def orders(
    program: object,
    *,
    values: Mapping[str, object] | None = None,
    at: Mapping[str, object] | None = None,
    budget: object = None,
    verify: bool = True,
    seed: int = 0,
) -> Orders:
    """The size of every output of a program, as n -> infinity.

    Args:
        program: A program, or a function decorated with ``tp.program``.
        values: Numbers for symbols of its exponents.
        at: A sample point for the symbols that stay: answers are formulas, with the region where
            they hold.
        budget: The largest power of 1/n below the leading one that is followed where something
            cancels; 2 by default.
        verify: Whether leading coefficients that are not provably different from 0 are tested with
            the particle engine; without it they are upper bounds.
        seed: Of that test.

    Returns:
        A mapping from names to orders, with ``region`` and ``table``. What the calculus does not
        cover has no bound, and a reason that names the node.

    Raises:
        ScaleError: A symbol without a value, or a program of which no output has a bound, because
            of a function without a known order.
        UsageError: Arguments that make no sense.

    Source: Hajjar, Chizat, Giraud, Lemmas F.2 to F.4 and Theorem B.1.

    Example:
        >>> import tpcalc as tp
        >>> @tp.program
        ... def layer(t):
        ...     h = tp.n**-1 * (t.matrix("W") @ tp.relu(t.gaussian("g")))
        ...     t.output("h", h)
        >>> orders(layer)["h"]
        n**(-1/2)
    """
    started = time.perf_counter()
    source = as_program(program)
    if not isinstance(verify, bool):
        raise UsageError(f"verify is {verify!r}.", hint="It is True or False.")
    seed = checks.whole(seed, "seed", least=0)
    known = symbols(source)
    given = checks.powers(values, known) if values is not None else {}
    point = checks.powers(at, known) if at is not None else {}
    limit = BUDGET if budget is None else Fraction(str(checks.real(budget, "budget")))
    if limit < 0:
        raise UsageError(f"budget is {budget}.", hint="It is a power of 1/n, such as 1.")
    found: dict[str, Order] = {}
    open_names = [name for name, _ in source.outputs]
    runs: list[Scales] = []
    depth = Fraction(0)
    record = Record()
    while open_names and depth <= limit:
        names, below = open_names, depth

        def derived() -> Scales:
            return scales(source, values=given, at=point, depth=below, record=record)  # noqa: B023

        def claims(run: Scales) -> Mapping[Claim, None]:
            return run.claims(names)  # noqa: B023

        run = settled(derived, claims, lambda run: run.context, seed) if verify else derived()
        runs.append(run)
        open_names = _settle(run, open_names, found, verify, seed)
        depth += HALF
    region = Region(
        tuple(dict.fromkeys(g for run in runs for g in run.region.positive)),
        tuple(dict.fromkeys(g for run in runs for g in run.region.zero)),
    )
    lost = {name: runs[-1].scale(name).uncovered for name in found}
    if lost and all(lost.values()):
        raise next(row.error for row in lost.values() if row is not None)
    ordered = {name: found[name] for name, _ in source.outputs}
    settings = {"verify": str(verify), "budget": str(limit), "depth": str(depth - HALF)}
    table = OrderTable(
        tuple(OrderRow(name, o.text, o.status, o.reason) for name, o in ordered.items()),
        region.lines,
        tuple((name, str(value)) for name, value in sorted(point.items())),
        provenance(source.digest, seed, settings, time.perf_counter() - started),
        _notes(runs),
    )
    return Orders(source, ordered, region, point, table, tuple(runs))


def _settle(
    run: Scales, names: list[str], found: dict[str, Order], verify: bool, seed: int
) -> list[str]:
    """Put down what this depth decides; returns the names that a larger depth may improve."""
    sizes = {name: run.scale(name) for name in names}
    doubtful = [
        size.node
        for size in sizes.values()
        if size.node is not None and not size.certain and not size.noise
    ]
    tests = nonzero(run.context, doubtful, seed) if verify and doubtful else {}
    left = []
    for name, size in sizes.items():
        order, done = _order(size, None if size.node is None else tests.get(size.node))
        fault = run.context.record.fault(run.claims([name]))
        if size.uncovered is not None:
            order = Order(None, "upper", size.uncovered.text)
        elif fault:
            order = Order(None, "upper", f"no bound is known: {fault}")
        found[name] = order
        if not done:
            left.append(name)
    return left


def _order(size: Scale, test: Finding | None) -> tuple[Order, bool]:
    """The order of one size, and whether a larger depth can add nothing."""
    power = None if size.power is None else as_ex(size.power)
    if size.bound:
        if power is None:
            return Order(None, "upper", "no bound is known after an explosion"), False
        how = "o" if size.strict else "O"
        return Order(
            power, "upper", f"what is left after cancellation is {how}(n^({power}))"
        ), False
    if power is None:
        return Order(None, "exact", "identically 0"), True
    if size.certain:
        return Order(power, "exact", "the leading coefficient is not 0 by its form"), True
    if size.noise:
        return Order(power, "upper", FLUCTUATES), True
    if test is None:
        reason = "the leading coefficient is assumed to be different from 0; it was not tested"
        return Order(power, "upper", reason), True
    if test.nonzero:
        return Order(power, "exact", f"the leading coefficient is not 0 ({test.text})"), True
    if test.nonzero is None:
        reason = f"the leading coefficient was not tested: {test.text}"
        return Order(power, "upper", reason), not test.deeper
    reason = f"the leading coefficient may be 0 ({test.text})"
    return Order(power, "upper", reason), True


def _notes(runs: list[Scales]) -> tuple[str, ...]:
    notes = []
    for run in runs[-1:]:
        for explosion in run.context.exploded[:3]:
            notes.append(
                f"{explosion.where}: the argument of {explosion.text} explodes like "
                f"n^({explosion.power}); after it only bounds are known"
            )
    return tuple(dict.fromkeys(notes))
