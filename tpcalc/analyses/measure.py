"""``measure``: derived orders beside log-log slopes of networks of finite width."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.analyses.orders import Orders
from tpcalc.errors import Exploded, ScaleError, UsageError
from tpcalc.finite.simulate import simulate
from tpcalc.finite.statistics import Slope, slope
from tpcalc.finite.widths import check_widths
from tpcalc.limit.scales import symbols
from tpcalc.program.program import Program, prune
from tpcalc.results import FiniteRow, OrderRow, OrderTable, checks
from tpcalc.results.provenance import provenance

if TYPE_CHECKING:
    from tpcalc.engine.run import Progress

__all__ = ["measure"]

WIDTHS = tuple(2**k for k in range(8, 15))
SEEDS = 16
# The local slope is that of the widest networks: three widths or more, over this factor.
LAST = 4
# A difference of two numbers is rounded to this share of them.
ROUNDING = 1e-13
# Two numbers that are printed with two digits differ if they are apart by more.
SHOWN = 0.01
# Sizes over seeds of what fluctuates around 0 scatter by 0.76 of their mean (a Gaussian).
SCATTERED = 0.5

Values = NDArray[np.float64]
Sizes = Mapping[int, Values]


def measure(
    found: Orders,
    *,
    widths: Sequence[int] | None = None,
    seeds: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> OrderTable:
    """Simulate the same program at finite widths and put measured slopes beside its orders.

    The size of a vector is the root mean square of its coordinates, that of a scalar its absolute
    value, both in root mean square over seeds. Matrices are revealed lazily: exact in law, and wide
    networks are cheap.

    Args:
        found: What ``orders`` returned, without symbols left.
        widths: At least three, over a factor of four or more; 256 to 16384 by default.
        seeds: Networks at each width, at least two; 16 by default.
        seed: Of the first network.
        threads: Networks at once.
        memory_limit: Bytes to stay within.
        progress: Called with a fraction and a text.

    Returns:
        The table of orders with slopes, their 95 % intervals, and notes: where a slope lies beside
        an exact order, or above an upper bound, and where it still drifts.

    Raises:
        ScaleError: A symbol without a number.
        UsageError: An argument out of range, a width twice.

    Source: Hajjar, Chizat, Giraud, Lemmas F.2 to F.4, by measurement.

    Example:
        >>> import tpcalc as tp
        >>> from tpcalc.analyses.orders import orders
        >>> @tp.program
        ... def layer(t):
        ...     h = tp.n**-1 * (t.matrix("W") @ tp.relu(t.gaussian("g")))
        ...     t.output("h", h)
        >>> (row,) = measure(orders(layer), widths=[256, 512, 1024], seeds=8).rows
        >>> row.n, abs(row.slope + 0.5) < 0.05
        ('-1/2', True)
    """
    started = time.perf_counter()
    if not isinstance(found, Orders):
        raise UsageError(
            f"the first argument of measure is a {type(found).__name__}.",
            hint="Give what tp.orders returned.",
        )
    asked = sorted(check_widths(WIDTHS if widths is None else widths))
    count = SEEDS if seeds is None else checks.whole(seeds, "seeds", least=2)
    seed = checks.whole(seed, "seed", least=0)
    values = _numbers(found)
    sizes: dict[str, dict[int, Values]] = {row.name: {} for row in found.table.rows}
    options: dict[str, Any] = {
        "seed": seed,
        "values": values,
        "threads": threads,
        "memory_limit": memory_limit,
        "progress": progress,
    }
    notes: tuple[str, ...] = ()
    for program in (_shown(found), _calm(found)):
        missing = [n for n in asked if any(n not in size for size in sizes.values())]
        if not missing:
            break
        try:
            table = simulate(program, missing, count, **options)
        except Exploded as error:
            notes = notes or (error.message,)
            continue
        notes = notes or table.notes
        for row in table.rows:
            size = _size(row)
            if size is not None and np.all(np.isfinite(size)):
                sizes[row.name].setdefault(row.width, size)
    settings = {
        **dict(found.table.provenance.settings),
        "widths": ",".join(map(str, asked)),
        "seeds": str(count),
        "backend": "lazy",
    }
    seconds = found.table.provenance.seconds + time.perf_counter() - started
    return replace(
        found.table,
        rows=tuple(_Measured(row, sizes, len(asked)).row for row in found.table.rows),
        provenance=provenance(found.program.digest, seed, settings, seconds),
        notes=(*found.table.notes, *notes),
    )


def _numbers(found: Orders) -> dict[str, Fraction]:
    """The numbers that stand for symbols; a finite width needs one for each."""
    known = {
        name: value
        for run in found.runs[:1]
        for name, value in run.context.values.items()
        if isinstance(value, Fraction)
    }
    for name in sorted(symbols(found.program) - known.keys()):
        raise ScaleError(
            f"the exponents hold the symbol {name!r}; a finite width needs a number for it.",
            hint=f"Derive the orders with one: orders(program, values={{{name!r}: 1}}), or write "
            "it in place of the symbol.",
        )
    return known


def _shown(found: Orders) -> Program:
    """The program with the outputs of the table: nothing after an explosion is run."""
    names = {row.name for row in found.table.rows}
    kept = tuple(output for output in found.program.outputs if output[0] in names)
    return prune(replace(found.program, outputs=kept))


def _calm(found: Orders) -> Program:
    """The program without the outputs that grow: where those overflow, the others are measured."""
    program = _shown(found)
    at = {name: order.n.at(found.point) for name, order in found.items() if order.n is not None}
    kept = tuple((name, ref) for name, ref in program.outputs if at.get(name, 1) <= 0)
    return prune(replace(program, outputs=kept)) if kept else program


def _size(row: FiniteRow) -> Values | None:
    """The size of an output in each network: of a vector the root of its second moment."""
    values = np.asarray(row.values, dtype=np.float64)
    if row.statistic == "value":
        return np.abs(values)
    return np.sqrt(values) if row.statistic == "second_moment" else None


@dataclass(frozen=True)
class _Measured:
    """A derived order and the sizes that were measured, of it and of all other outputs."""

    derived: OrderRow
    sizes: Mapping[str, Sizes]
    widths: int

    @property
    def row(self) -> OrderRow:
        """The order with its slope and what to know of it."""
        mine = self.sizes[self.derived.name]
        missing = self._missing(mine)
        if missing:
            return replace(self.derived, note=missing)
        fit = _fit(mine, self._power)
        notes = [fit.reason, self._beyond(mine)]
        if fit.value is not None:
            notes = [self._verdict(fit, mine), self._drift(fit, mine), self._beyond(mine)]
        note = "; ".join(filter(None, notes))
        return replace(self.derived, slope=fit.value, low=fit.low, high=fit.high, note=note)

    @property
    def _power(self) -> float:
        """The derived exponent as a number; 0 where there is none."""
        return 0.0 if self.derived.n in ("oo", "-oo") else float(Fraction(self.derived.n))

    def _missing(self, mine: Sizes) -> str:
        if not mine:
            return "no network has finite numbers"
        if all(np.all(size == 0) for size in mine.values()):
            return "0 in all networks"
        now, _, then = self.derived.name.partition("-")
        if then in self.sizes and now in self.sizes:
            for width, size in mine.items():
                whole = max(_rms(self.sizes[name][width]) for name in (now, then))
                if _rms(size) < ROUNDING * whole:
                    return f"below the rounding of what it is a difference of, at width {width}"
        return ""

    def _beyond(self, mine: Sizes) -> str:
        if len(mine) == self.widths:
            return ""
        return f"of the {len(mine)} widths up to {max(mine)}: beyond, not all numbers are finite"

    def _verdict(self, fit: Slope, mine: Sizes) -> str:
        """Where the interval and the derived order disagree, and typical sizes with it.

        A mean square of few seeds hangs on the largest of them; where tails are heavy, logarithms
        tell what its interval cannot know.
        """
        if self.derived.n in ("oo", "-oo"):
            return "" if self.derived.n == "oo" else "derived to be identically 0, measured not 0"
        intervals = [fit, _typical(mine)]
        low = min(found.low for found in intervals if found.low is not None)
        high = max(found.high for found in intervals if found.high is not None)
        exact = self.derived.status == "exact"
        kind = "exponent" if exact else "bound"
        if low > self._power + SHOWN:
            return f"measured slope above the derived {kind}"
        if exact and high < self._power - SHOWN:
            return f"measured slope below the derived {kind}"
        assert fit.low is not None and fit.high is not None
        if fit.low > self._power + SHOWN or (exact and fit.high < self._power - SHOWN):
            return f"the interval excludes {self.derived.n}; {self._scattered(mine)}"
        return ""

    def _scattered(self, mine: Sizes) -> str:
        """Why an interval may miss: what tends to 0 by a higher power is still the larger part."""
        size = mine[min(mine)]
        if float(np.std(size)) > SCATTERED * float(np.mean(size)):
            return "the limit is small beside the fluctuations at these widths; take larger n"
        return "take larger n, or more seeds"

    def _drift(self, fit: Slope, mine: Sizes) -> str:
        """The slope of the widest networks where it is not that of all."""
        widths = sorted(mine)
        last = [width for width in widths if width * LAST >= widths[-1]]
        last = widths[-max(len(last), 3) :]
        if len(last) == len(widths):
            return ""
        local = _fit({width: mine[width] for width in last}, self._power)
        if local.value is None or local.low is None or local.high is None or fit.value is None:
            return ""
        half, whole = (local.high - local.low) / 2, ((fit.high or 0.0) - (fit.low or 0.0)) / 2
        if abs(local.value - fit.value) < max(math.hypot(half, whole), SHOWN):
            return ""
        return f"it drifts: {local.value:.2f} +- {half:.2f} over the widths {last[0]} to {last[-1]}"


def _fit(sizes: Sizes, power: float) -> Slope:
    """The slope; what a known power explains is taken out first, as squares would overflow."""
    widths = sorted(sizes)
    with np.errstate(divide="ignore"):
        scaled = [np.exp(np.log(sizes[n]) - power * math.log(n)).tolist() for n in widths]
    fit = slope(widths, scaled)
    if fit.value is None or fit.low is None or fit.high is None:
        return fit
    return Slope(fit.value + power, fit.low + power, fit.high + power)


def _typical(sizes: Sizes) -> Slope:
    """The slope of the mean logarithm over seeds, with its 95 % interval."""
    from scipy.stats import linregress, t

    x = np.concatenate([np.full(len(size), math.log(width)) for width, size in sizes.items()])
    with np.errstate(divide="ignore"):
        y = np.log(np.concatenate(list(sizes.values())))
    if not np.all(np.isfinite(y)):
        return Slope(reason="a size is 0")
    line = linregress(x, y)
    half = float(t.ppf(0.975, len(x) - 2)) * float(line.stderr)
    return Slope(float(line.slope), float(line.slope) - half, float(line.slope) + half)


def _rms(size: Values) -> float:
    return math.sqrt(float(np.mean(size**2)))
