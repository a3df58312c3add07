"""``measure``: derived orders beside log-log slopes of networks of finite width."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import Exploded, ScaleError
from tpcalc.finite.simulate import simulate
from tpcalc.finite.statistics import Slope, slope
from tpcalc.finite.widths import check_widths, rounded_up
from tpcalc.limit.scales import symbols
from tpcalc.names import ends
from tpcalc.program.program import Program, restricted
from tpcalc.progress import Progress
from tpcalc.questions.orders import Orders
from tpcalc.results import FiniteRow, OrderRow, OrderTable
from tpcalc.results.tables import provenance

# Where what falls faster is this part of the leading term, a slope is off by less than 0.06.
PART = 3
# Standard errors by which a term is known not to be 0, and a fit is known to fail.
SURE = 3.0

WIDTHS = tuple(2**k for k in range(8, 15))
SEEDS = 32
# The local slope is that of the widest networks: three widths or more, over this factor.
LAST = 4
# A difference of two numbers is rounded to this share of them.
ROUNDING = 1e-13
# Two numbers that are printed with two digits differ if they are apart by more.
SHOWN = 0.01
# Of an interval, and of all judgements of a table together.
LEVEL = 0.95

Values = Array
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
        seeds: Networks at each width, at least two; 32 by default.
        seed: Of the first network.
        threads: Networks at once.
        memory_limit: Bytes to stay within.
        progress: Called with a fraction and a text.

    Returns:
        The table of orders with slopes, their 95 % intervals, and notes: where a slope lies beside
        an exact order, or above an upper bound (``agrees`` is False then, at 95 % for all rows
        together), from which width on it would not, and where it still drifts.

    Raises:
        ScaleError: A symbol without a number.
        UsageError: An argument out of range, a width twice.

    Source: Hajjar, Chizat, Giraud, Lemmas F.2 to F.4, by measurement.

    Example:
        >>> import tpcalc as tp
        >>> from tpcalc.questions.orders import orders
        >>> @tp.program
        ... def layer(t):
        ...     h = tp.n**-1 * (t.matrix("W") @ tp.relu(t.gaussian("g")))
        ...     t.output("h", h)
        >>> (row,) = measure(orders(layer), widths=[256, 512, 1024], seeds=8).rows
        >>> str(row.n), abs(row.slope + 0.5) < 0.05
        ('-1/2', True)
    """
    started = time.perf_counter()
    hint = "Give what tp.orders returned."
    checks.of_type(found, Orders, "the first argument of measure", hint=hint)
    asked = sorted(check_widths(WIDTHS if widths is None else widths))
    count = SEEDS if seeds is None else checks.whole(seeds, "seeds", least=2)
    seed = checks.seed(seed)
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
    level = 1 - (1 - LEVEL) / max(len(found.table.rows), 1)  # Bonferroni
    rows = tuple(_Measured(row, sizes, len(asked), level).row for row in found.table.rows)
    settings = {
        **dict(found.table.provenance.settings),
        "widths": ",".join(map(str, asked)),
        "seeds": str(count),
        "backend": "lazy",
    }
    seconds = found.table.provenance.seconds + time.perf_counter() - started
    return replace(
        found.table,
        rows=rows,
        provenance=provenance(found.program.digest, seed, settings, seconds),
        notes=(*found.table.notes, *_counted(rows, level), *notes),
    )


def _counted(rows: Sequence[OrderRow], level: float) -> list[str]:
    """How a table of many slopes is read."""
    judged = [row for row in rows if row.agrees is not None]
    if len(judged) < 2:
        return []
    beside = [row.name for row in judged if not row.agrees]
    names = f": {', '.join(beside[:6])}{', ...' if len(beside) > 6 else ''}" if beside else ""
    return [
        f"{len(judged) - len(beside)} of {len(judged)} slopes agree with their orders{names}; by "
        f"chance one interval of 95 % in twenty misses, so that of {100 * level:.4g} % (95 % for "
        "all rows) decides"
    ]


def _numbers(orders: Orders) -> dict[str, Fraction]:
    """The numbers that stand for symbols; a finite width needs one for each."""
    known = {
        name: value
        for run in orders.runs[:1]
        for name, value in run.context.values.items()
        if isinstance(value, Fraction)
    }
    for name in sorted(symbols(orders.program) - known.keys()):
        raise ScaleError(
            f"the exponents hold the symbol {name!r}; a finite width needs a number for it.",
            hint=f"Derive the orders with one: orders(program, values={{{name!r}: 1}}), or write "
            "it in place of the symbol.",
        )
    return known


def _shown(orders: Orders) -> Program:
    """The program with the outputs of the table: nothing after an explosion is run."""
    return restricted(orders.program, (row.name for row in orders.table.rows))


def _calm(orders: Orders) -> Program:
    """The program without the outputs that grow: where those overflow, the others are measured."""
    program = _shown(orders)
    at = {name: order.n.at(orders.point) for name, order in orders.items() if order.n is not None}
    kept = [name for name, _ in program.outputs if at.get(name, 1) <= 0]
    return restricted(program, kept) if kept else program


def _size(row: FiniteRow) -> Values | None:
    """The size of an output in each network: of a vector the root of its second moment.

    That of a scalar keeps its sign.
    """
    values = np.asarray(row.values, dtype=np.float64)
    if row.statistic == "value":
        return values
    return np.sqrt(values) if row.statistic == "second_moment" else None


@dataclass(frozen=True)
class _Measured:
    """A derived order and the sizes that were measured, of it and of all other outputs."""

    derived: OrderRow
    sizes: Mapping[str, Sizes]
    widths: int
    level: float

    @property
    def row(self) -> OrderRow:
        """The order with its slope and what to know of it."""
        mine = self.sizes[self.derived.name]
        missing = self._missing(mine)
        if missing:
            return replace(self.derived, note=missing)
        fit = _fit(mine, self._power)
        if fit.value is None:
            note = "; ".join(filter(None, [fit.reason, self._beyond(mine)]))
            return replace(self.derived, note=note)
        agrees, words = self._judged(fit, mine)
        note = "; ".join(filter(None, [words, self._drift(fit, mine), self._beyond(mine)]))
        row = replace(self.derived, slope=fit.value, low=fit.low, high=fit.high)
        return replace(row, note=note, agrees=agrees)

    @property
    def _power(self) -> float:
        """The derived exponent as a number; 0 where there is none."""
        exact = self.derived.n.exact
        return 0.0 if exact is None else float(exact.at({}))

    def _missing(self, mine: Sizes) -> str:
        if not mine:
            return "no network has finite numbers"
        if all(np.all(size == 0) for size in mine.values()):
            return "0 in all networks"
        now, then = ends(self.derived.name)
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

    def _judged(self, fit: Slope, mine: Sizes) -> tuple[bool, str]:
        """Whether slope and derived order agree, and words where they do not.

        A mean square of few seeds hangs on the largest of them; where tails are heavy, logarithms
        tell what its interval cannot know.
        """
        if self.derived.n.exact is None:
            zero = self.derived.n.is_zero
            return not zero, "derived to be identically 0, measured not 0" if zero else ""
        beside = self._beside(fit)
        if not beside:
            return True, ""
        why = dominance(mine, self._power)
        if not self._beside(_fit(mine, self._power, self.level)):
            one = f"its own interval excludes {self.derived.n}, that for all rows does not"
            return True, "; ".join(filter(None, [one, why]))
        typical = _typical(mine, self.level)
        if typical.low is None or self._beside(typical) == beside:
            kind = "exponent" if self.derived.status == "exact" else "bound"
            words = [f"measured slope {beside} the derived {kind}", why]
        else:
            words = [
                f"the interval excludes {self.derived.n}",
                why or "take larger n or more seeds",
            ]
        return False, "; ".join(filter(None, words))

    def _beside(self, fit: Slope) -> str:
        """Where an interval lies that excludes the derived order; a bound has none below it."""
        if fit.low is None or fit.high is None:
            return ""
        if fit.low > self._power + SHOWN:
            return "above"
        below = self.derived.status == "exact" and fit.high < self._power - SHOWN
        return "below" if below else ""

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


def _fit(sizes: Sizes, power: float, level: float = LEVEL) -> Slope:
    """The slope; what a known power explains is taken out first, as squares would overflow."""
    widths = sorted(sizes)
    with np.errstate(divide="ignore"):
        scaled = [np.exp(np.log(np.abs(sizes[n])) - power * math.log(n)).tolist() for n in widths]
    fit = slope(widths, scaled, level=level)
    if fit.value is None or fit.low is None or fit.high is None:
        return fit
    return Slope(fit.value + power, fit.low + power, fit.high + power)


def _typical(sizes: Sizes, level: float) -> Slope:
    """The slope of the mean logarithm over seeds, with its interval."""
    from scipy.stats import linregress, t

    x = np.concatenate([np.full(len(size), math.log(width)) for width, size in sizes.items()])
    with np.errstate(divide="ignore"):
        y = np.log(np.abs(np.concatenate(list(sizes.values()))))
    if not np.all(np.isfinite(y)):
        return Slope(reason="a size is 0")
    line = linregress(x, y)
    half = float(t.ppf((1 + level) / 2, len(x) - 2)) * float(line.stderr)
    return Slope(float(line.slope), float(line.slope) - half, float(line.slope) + half)


def _rms(size: Values) -> float:
    return math.sqrt(float(np.mean(size**2)))


def dominance(values: Mapping[int, Array], power: float) -> str:
    """How large a leading term is beside what falls faster, and the width it takes; "" if untold.

    With the power of n taken out, values are a leading term and one that is smaller by n^(-1/2):
    where signs differ the latter is scatter over seeds, else mean squares are A + B / n.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> found = {n: 0.1 + rng.normal(size=200) / n**0.5 for n in (16, 32, 64, 128)}
        >>> print(dominance(found, 0))
        at width 16 the leading term is 0.097, and 0.25 beside it falls faster by n^(-1/2): it \
takes roughly n >= 970 until that is a third of it
    """
    widths = np.array(sorted(values))
    first = float(widths[0])
    unit = float(np.max(np.abs(values[int(first)])))
    if len(widths) < 3 or not unit:
        return ""
    with np.errstate(all="ignore"):
        given = [np.asarray(values[n]) / unit * (n / first) ** -power for n in widths]
        signs = {sign for part in given for sign in np.sign(part)}
        found = (_scattered if len(signs) > 1 else _added)(widths / first, given)
    if found is None:
        return ""
    leading, beside = (unit * math.sqrt(part) for part in found)
    needed = rounded_up(first * PART**2 * found[1] / found[0])
    return (
        f"at width {first:.0f} the leading term is {leading:.2g}, and {beside:.2g} beside it falls "
        f"faster by n^(-1/2): it takes roughly n >= {needed} until that is a third of it"
    )


def _scattered(widths: Array, values: list[Array]) -> tuple[float, float] | None:
    """Squares of the mean and of the scatter at the first width."""
    weights = np.concatenate([np.full(len(v), n) for n, v in zip(widths, values, strict=True)])
    every = np.concatenate(values)
    mean = float(np.sum(weights * every) / np.sum(weights))
    squares = weights * (every - mean) ** 2
    variance = float(np.sum(squares)) / (len(every) - 1)
    kurtosis = float(np.var(squares)) / variance**2
    ends = np.cumsum([len(v) for v in values])[:-1]
    for part in np.split(squares, ends):
        if not abs(np.mean(part) / variance - 1) <= SURE * math.sqrt(kurtosis / len(part)):
            return None
    known = abs(mean) > SURE * math.sqrt(variance / float(np.sum(weights)))
    return (mean**2, variance) if known else None


def _added(widths: Array, values: list[Array]) -> tuple[float, float] | None:
    """The terms A and B of mean squares A + B / n, n in units of the first width."""
    means = np.array([np.mean(v**2) for v in values])
    spreads = np.array([np.var(v**2, ddof=1) for v in values]) / means**2
    counts = np.array([len(v) for v in values])
    relative = np.sum(spreads * (counts - 1)) / np.sum(counts - 1)  # as slopes pool it
    errors = means * np.sqrt(relative / counts)
    if not (np.all(np.isfinite(errors)) and np.all(errors > 0)):
        return None
    columns = np.column_stack([np.ones(len(widths)), 1 / widths]) / errors[:, None]
    inverse = np.linalg.inv(columns.T @ columns)
    found = inverse @ columns.T @ (means / errors)
    freedom = len(widths) - 2
    off = float(np.sum((columns @ found - means / errors) ** 2)) - freedom
    known = found > SURE * np.sqrt(np.diagonal(inverse))
    if off > SURE * math.sqrt(2 * freedom) or not np.all(known):
        return None
    return float(found[0]), float(found[1])
