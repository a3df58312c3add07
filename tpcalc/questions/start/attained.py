"""Whether bounds on sizes at the start are attained: by form, by samples, by explicit widths.

What is asked is a number that is not negative, a sum of squares. Where its leading coefficient is
not 0, by its form or by the samples of the engine, its size is exact. Else networks of finite width
say: a slope that excludes the next half below attains the bound, one that excludes the bound is a
size of its own, and what is neither stays open.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, isfinite, lcm, log, sqrt

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import TpcalcError
from tpcalc.evaluate.settle import Witness
from tpcalc.finite.simulate import simulate
from tpcalc.limit.scales import symbols
from tpcalc.passes.as_blocks import MANY, cells_of, rows_written
from tpcalc.passes.split import split
from tpcalc.passes.starts import started_at_zero
from tpcalc.program.nodes import Ref
from tpcalc.program.program import Builder, Program, prune
from tpcalc.questions.start.bounds import Power
from tpcalc.questions.start.program import FirstSteps
from tpcalc.questions.verdict.ledger import Ledger
from tpcalc.results import Exponent, MeasuredSize

QUARTER = Fraction(1, 4)
SURE = 2.0  # standard errors of a slope
ROUNDING = 1e-13  # of the largest of its kind: what is smaller is 0


def fitted(sizes: Mapping[int, Sequence[float] | Array]) -> tuple[float, float]:
    """The slope of the geometric mean from the narrowest to the widest, with its standard error.

    Example:
        >>> "{:.2f} {:.2f}".format(*fitted({4: [1.0, 2.0], 64: [1.0, 1.0]}))
        '-0.12 0.12'
    """
    ends = min(sizes), max(sizes)
    logs = [np.log(np.maximum(sizes[n], 1e-150)) for n in ends]
    reach = log(ends[1] / ends[0])
    error = np.sqrt(sum(np.var(own, ddof=1) / len(own) for own in logs))
    return float(np.mean(logs[1]) - np.mean(logs[0])) / reach, float(error) / reach


def as_float(power: Exponent) -> float:
    """A power as a number: -inf of what is 0, inf where none is known."""
    known = inf if power.constant is None else float(power.constant)
    return -inf if power.is_zero else known


def fits(slope: float, doubt: float, low: float, high: float) -> str:
    """Whether a slope lies between two powers, a quarter wider: agrees, differs or open.

    Example:
        >>> [fits(slope, 0.1, -0.5, 0) for slope in (-0.6, -0.7, -0.9, 0.3)]
        ['agrees', 'open', 'differs', 'open']
    """
    apart = float(QUARTER)
    if high == inf:
        return "open"
    if slope + doubt < high + apart and slope - doubt > low - apart:
        return "agrees"
    return "differs" if slope - doubt > high + apart or slope + doubt < low - apart else "open"


def measured_size(
    sizes: Mapping[int, Sequence[float]], top: float, low: float, high: float, sure: float = SURE
) -> MeasuredSize:
    """Sizes over seeds, by width, beside the powers that they are predicted to lie between."""
    widths, nothing = tuple(sizes), (0.0,) * len(sizes)
    if max(map(max, sizes.values())) <= ROUNDING * top:
        word = "agrees" if low == -inf else "differs"
        return MeasuredSize(widths, nothing, nothing, None, None, word)
    with np.errstate(all="ignore"):
        logs = [np.log(own) for own in sizes.values()]
        means = tuple(float(np.exp(np.mean(own))) for own in logs)
        errors = tuple(float(np.std(own, ddof=1) / sqrt(len(own))) for own in logs)
    if not all(map(isfinite, (*means, *errors))):
        return MeasuredSize(widths, nothing, nothing, None, None, "open")
    slope, error = fitted(sizes)
    return MeasuredSize(widths, means, errors, slope, error, fits(slope, sure * error, low, high))


EXACT, MEASURED, BOUND, OPEN = "exact", "measured", "bound", "open"
SAMPLED = 4000  # cells of programs whose coefficients are sampled: networks are quicker for others
RUN = 400_000  # cells of a program of which networks are run
TOO_LARGE = "the program has too many cells for networks; shorter or smaller inputs have fewer"
LARGE = "the program has many cells, and was not sampled"
WIDTHS = (64, 1024)
SEEDS = (8, 32)
DRAWN = 2  # networks that tell whether an output feels a parameter at all
NOTHING = 1e-26  # of the largest square: what is smaller is 0 with rounding


@dataclass(frozen=True, slots=True)
class Size:
    """The size of something."""

    power: Power  # its exponent; None: it is 0
    # "exact", "measured", "bound", or "open" (a bound that was neither attained nor excluded)
    status: str
    why: str = ""  # what decided it

    @property
    def is_zero(self) -> bool:
        """Whether there is nothing."""
        return self.power is None

    @property
    def is_known(self) -> bool:
        """Whether it is no mere bound."""
        return self.status in (EXACT, MEASURED)

    @property
    def rank(self) -> tuple[Fraction | float, bool]:
        """Of several the largest, of equal ones one that is known."""
        return (-inf if self.power is None else self.power, self.is_known)


@dataclass(frozen=True, slots=True)
class Asked:
    """A sum of squares."""

    square: Ref  # its node
    power: Fraction  # a bound on the exponent of one term's root
    terms: int = 0  # the exponent of the number of terms


def attained(
    builder: Builder,
    asked: Mapping[str, Asked],
    zeros: frozenset[str],
    values: Mapping[str, Fraction],
    seed: int,
    widths: Sequence[int],
    tests: Witness,
) -> dict[str, Size]:
    """The sizes of what is asked, with what is known of them."""
    program = _program(builder, asked, zeros)
    values = {name: values[name] for name in symbols(program)}
    found = {name: Size(own.power, BOUND, LARGE) for name, own in asked.items()}
    if cells_of(program) <= SAMPLED:
        found = _by_samples(program, asked, values, tests)
    left = [name for name, size in found.items() if size.status == BOUND]
    if cells_of(program) > RUN:
        return found | {name: Size(asked[name].power, BOUND, TOO_LARGE) for name in left}
    # What is 0 but for rounding shows beside one that is not.
    beside = [name for name, size in found.items() if size.is_known and not size.is_zero][:1]
    if left and widths:
        own = {name: asked[name] for name in left}
        found |= _by_widths(program, own, beside, values, seed, widths)
    return found


def _program(builder: Builder, asked: Mapping[str, Asked], zeros: frozenset[str]) -> Program:
    whole = builder.finish()
    outputs = tuple((name, own.square) for name, own in asked.items())
    program = started_at_zero(prune(Program(whole.dims, whole.nodes, outputs, whole.where)), zeros)
    return split(program) if cells_of(program) <= MANY else rows_written(program)


def _by_samples(
    program: Program, asked: Mapping[str, Asked], values: Mapping[str, Fraction], tests: Witness
) -> dict[str, Size]:
    ledger = Ledger(program, {}, tests, values=values, depths=(Fraction(0),))
    try:
        ledger.settle(asked)
    except TpcalcError as error:
        return {name: Size(own.power, BOUND, error.message) for name, own in asked.items()}
    found = {}
    for name, own in asked.items():
        order = ledger.orders[name]
        power = None if order.n is None else order.n.constant
        if order.zero:
            found[name] = Size(None, EXACT, order.reason)
        elif order.status == EXACT and power is not None:
            found[name] = Size((power - own.terms) / 2, EXACT, order.reason)
        else:
            found[name] = Size(own.power, BOUND, order.reason)
    return found


def _by_widths(
    program: Program,
    asked: Mapping[str, Asked],
    beside: Sequence[str],
    values: Mapping[str, Fraction],
    seed: int,
    widths: Sequence[int],
) -> dict[str, Size]:
    left, found = dict(asked), dict[str, Size]()
    widths = whole(program, widths)
    for seeds in SEEDS:
        table = simulate(program, widths, seeds, seed=seed, values=values, outputs=[*left, *beside])
        squares: dict[str, dict[int, tuple[float, ...]]] = {}
        for row in table.rows:
            squares.setdefault(row.name, {})[row.width] = row.values
        top = max((max(v) for own in squares.values() for v in own.values()), default=0.0)
        found |= {name: _judged(own, squares.get(name, {}), top) for name, own in left.items()}
        left = {name: own for name, own in left.items() if found[name].status == OPEN}
        if not left:
            break
    return found


def unfelt(
    steps: FirstSteps, refs: Collection[Ref], values: Mapping[str, Fraction], seed: int
) -> bool:
    """Whether outputs feel none of some parameters, wherever all of them stand."""
    program = steps.redrawn(refs)
    values = {name: values[name] for name in symbols(program)}
    with suppress(TpcalcError):  # numbers that leave their range tell nothing
        table = simulate(program, whole(program, WIDTHS[:1]), DRAWN, seed=seed, values=values)
        found = {row.name: row.values for row in table.rows}
        return len(found) == 2 and max(found["df"]) <= NOTHING * min(found["f"])
    return False


def whole(program: Program, widths: Sequence[int]) -> list[int]:
    """The next widths at which all dimension classes have whole sizes."""
    step = lcm(*(dim.ratio.denominator for dim in program.dims))
    return sorted({ceil(width / step) * step for width in widths})


def _judged(asked: Asked, squares: Mapping[int, tuple[float, ...]], top: float) -> Size:
    if len(squares) < 2:
        return Size(asked.power, OPEN, "networks leave the range of their numbers")
    widths = sorted(squares)
    if max(max(values) for values in squares.values()) <= NOTHING * top:
        return Size(None, MEASURED, "0 but for rounding in networks of finite width")
    slope, error = fitted({n: np.sqrt(squares[n]) for n in widths})
    slope -= asked.terms / 2
    off = slope - float(asked.power)
    said = f"slope off the bound by {off:.2f} ± {error:.2f}, widths {widths[0]} to {widths[-1]}"
    edge = float(asked.power - QUARTER)
    low, high, nearest = slope - SURE * error, slope + SURE * error, Fraction(round(2 * slope), 2)
    if edge < low < edge + 2 * QUARTER:
        return Size(asked.power, MEASURED, said)
    if high < edge and SURE * error < QUARTER:
        return Size(nearest, MEASURED, said)
    if low > edge and nearest > asked.power and SURE * error < QUARTER:
        return Size(nearest, MEASURED, f"{said}, more than the bound: a divisor is smaller")
    return Size(asked.power, OPEN, said)
