"""``orders``: how large every output of a program is, as powers of the width, of L blocks of L."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypedDict

from tpcalc import checks
from tpcalc.dsl import filled
from tpcalc.evaluate.settle import Witness
from tpcalc.exponents.chamber import Region
from tpcalc.limit.scales import Scales, symbols
from tpcalc.names import Name
from tpcalc.passes.as_blocks import SOME, is_read_as_blocks, rows_written, with_cells
from tpcalc.passes.split import split
from tpcalc.program.program import Program, selected
from tpcalc.program.types import ReadAs
from tpcalc.questions.depth.check import notes
from tpcalc.questions.depth.found import Found, found_of
from tpcalc.questions.depth.generic import FORWARD
from tpcalc.questions.verdict.ledger import DEPTHS, Ledger
from tpcalc.questions.verdict.sizes import Order as Order
from tpcalc.results import ZERO, Explosion, Exponent, OrderRow, OrderTable
from tpcalc.results.tables import provenance
from tpcalc.shown import Shown
from tpcalc.training.training import Training

SHOWN = {"h": "h", "W": "dW_x"}  # what outputs of a generic block are called in tables


def depth_orders(training: Training, at: Mapping[str, Fraction]) -> OrderTable:
    """The sizes of the stream, of preactivations and of updates of a run of L blocks."""
    started = time.perf_counter()
    found = found_of(training, at)
    rows = (*found.rows, *_inside(found))
    seconds = time.perf_counter() - started
    made = provenance(found.block.program.digest, None, {"steps": str(training.steps)}, seconds)
    return OrderTable(rows, found.region.lines, (), made, tuple(notes(found)))


def _inside(found: Found) -> Iterator[OrderRow]:
    """Preactivations of a block, and what updates add to them."""
    for name, _ in found.stream.found.program.outputs:
        own = Name.of(name)
        if (
            own.step is None
            or own.what not in SHOWN
            or (FORWARD, own.step) not in found.stream.sums
        ):
            continue
        lead, bound = found.stream.lead(name)
        start, _ = (
            found.stream.lead(str(replace(own, what="P"))) if own.what == "W" else (None, False)
        )
        size = ZERO if lead is None else Exponent(lead if start is None else lead - start)
        status = "bound" if bound else found.status_at(own.step)
        yield OrderRow(str(replace(own, what=SHOWN[own.what])), status=status, L=size)


HALF = Fraction(1, 2)


class Sizing(TypedDict, total=False):
    """The arguments of ``tp.orders`` after the program, for questions that rest on sizes."""

    values: Mapping[str, object] | None
    at: Mapping[str, object] | None
    budget: object
    verify: bool
    seed: int
    reading: ReadAs


@dataclass(frozen=True)
class Orders(Shown, Mapping[str, Order]):
    """The sizes of all outputs of a program.

    Args:
        program: The program.
        found: By name of the output.
        region: Conditions on the symbols under which all of it holds.
        point: The sample point of the symbols.
        table: The same as a record, for reports; of a training run up to its first explosion.
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
    reading: ReadAs = "auto",
) -> Orders | OrderTable:
    """The size of every output of a program, as n -> infinity.

    Args:
        program: A program, or a function decorated with ``tp.program``; or a training run of a
            network of L blocks: powers of L, after those of the width.
        values: Numbers for symbols of its exponents.
        at: A sample point for the symbols that stay: answers are formulas, with the region where
            they hold.
        budget: The largest power of 1/n below the leading one that is followed where something
            cancels; 2 by default.
        verify: Whether leading coefficients that are not provably different from 0 are tested with
            the particle engine; without it they are upper bounds.
        seed: Of that test.
        reading: ``"blocks"`` that stay what they are until only their cells tell a size, or
            ``"cells"``; ``"auto"``: blocks where cells are many.

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
        >>> print(orders(layer))
        Exact exponents
        The order of size of 1 quantity, all exact.
        ...
    """
    if isinstance(program, Training) and program.network.smallest.repeats:
        return depth_orders(program, checks.powers(at))
    return width_orders(
        program, values=values, at=at, budget=budget, verify=verify, seed=seed, reading=reading
    )


def width_orders(
    program: object,
    *,
    values: Mapping[str, object] | None = None,
    at: Mapping[str, object] | None = None,
    budget: object = None,
    verify: bool = True,
    seed: int = 0,
    reading: ReadAs = "auto",
) -> Orders:
    """The same of a program without a repeated block."""
    started = time.perf_counter()
    source = selected(filled(program, reading), None)
    # Both have an output for each cell; nodes that stay blocks are fewer, and tested together.
    large = is_read_as_blocks(source, reading, SOME)
    source = with_cells(rows_written(source)) if large else split(source)
    checks.flag(verify, "verify")
    seed = checks.seed(seed)
    known = symbols(source)
    given = checks.powers(values, known)
    point = checks.powers(at, known)
    limit, hint = DEPTHS[-1], "It is a power of 1/n, such as 1."
    if budget is not None:
        limit = Fraction(str(checks.real(budget, "budget", least=0, most=1000, hint=hint)))
    depths = tuple(k * HALF for k in range(int(limit / HALF) + 1))
    ledger = Ledger(source, point, Witness(seed) if verify else None, values=given, depths=depths)
    ledger.settle(name for name, _ in source.outputs)
    region = ledger.region
    lost = [ledger.runs[-1].scale(name).uncovered for name, _ in source.outputs]
    if lost and all(lost):
        raise next(row.error for row in lost if row is not None)
    ordered = ledger.orders
    exploded = _explosion(ordered, ledger)
    last = exploded.step if exploded else None
    settings = {
        "verify": str(verify),
        "budget": str(limit),
        "depth": str(ledger.depth),
    }
    table = OrderTable(
        tuple(
            OrderRow(name, o.exponent, o.status, o.reason)
            for name, o in ordered.items()
            if last is None or (Name.tabled(name).step or 0) <= last
        ),
        region.lines,
        tuple((name, str(value)) for name, value in sorted(point.items())),
        provenance(source.digest, seed, settings, time.perf_counter() - started),
        (*ledger.explosions, *ledger.doubts),
        exploded,
    )
    return Orders(source, ordered, region, point, table, ledger.runs)


def _explosion(ordered: Mapping[str, Order], ledger: Ledger) -> Explosion | None:
    """What a training run reads that first grows, at the first step where something does.

    That h grows is harmless where it is normalised before a function reads it.
    """
    exact = [(name, o.n.constant) for name, o in ordered.items() if o.status == "exact" and o.n]
    sizes = [(name, power) for name, power in exact if power is not None]
    return Explosion.first(sizes, ("f", "x", "h") if ledger.explosions else ("f", "x"))
