"""Records joined by name: each quantity with its limit and its values at finite widths."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from tpcalc.names import Name
from tpcalc.results import (
    PLAIN,
    Comparison,
    ComparisonRow,
    Exponent,
    FiniteRow,
    FiniteTable,
    LimitTable,
    Method,
)
from tpcalc.results.data import grouped
from tpcalc.views.numbers import Measure

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Point:
    """A quantity at one width, averaged over seeds."""

    width: int  # the width n
    mean: Measure  # mean over seeds with its standard error, in units of the limit's power of n
    sd: float  # standard deviation over seeds (NaN with one seed)
    # root mean square over seeds of the distance to the limit; None without a limit, or where the
    # limit is random
    rms: float | None
    seeds: int  # number of seeds


@dataclass(frozen=True, slots=True)
class Trace:
    """One statistic of one named result."""

    name: str  # the name of the result
    key: Name  # the name taken apart
    statistic: str  # value, mean or second_moment
    limit: Measure | None  # its limit, if known
    # the power of n taken out of this statistic (of a second moment: twice that of its vector)
    n_power: Exponent
    points: tuple[Point, ...]  # its values at finite widths, by rising width

    def at(self, width: int) -> Point | None:
        """The point of one width."""
        return next((point for point in self.points if point.width == width), None)


def gather(
    limit: LimitTable | None, finite: FiniteTable | None, comparison: Comparison | None
) -> tuple[Trace, ...]:
    """Join the tables of a report by name and statistic, in the order of the limits.

    Finite values are divided by the power of n that the limit has taken out. A comparison alone
    gives limits and points as well; where the tables themselves are there, they are used.
    """
    limits = _limits(limit)
    compared = grouped(comparison.rows if comparison else (), lambda row: (row.name, row.statistic))
    simulated = grouped(finite.rows if finite else (), lambda row: (row.name, row.statistic))
    traces = []
    for name, statistic in dict.fromkeys([*limits, *simulated, *compared]):
        rows = compared.get((name, statistic), [])
        centre, power = limits.get((name, statistic), (None, PLAIN))
        if centre is None and rows:
            centre = Measure(rows[0].limit, rows[0].limit_stderr, sd=rows[0].limit_std)
        if (name, statistic) in simulated:
            points = _simulated(simulated[name, statistic], centre, power)
        else:
            points = [_compared(row, centre) for row in rows]
        points.sort(key=lambda point: point.width)
        traces.append(Trace(name, Name.tabled(name), statistic, centre, power, tuple(points)))
    return tuple(traces)


def spread_out(items: Iterable[Item], most: int) -> tuple[Item, ...]:
    """At most so many of the items, evenly spread, first and last among them."""
    found = tuple(items)
    if len(found) <= most:
        return found
    if most == 1:
        return found[-1:]
    return tuple(found[round(k * (len(found) - 1) / (most - 1))] for k in range(most))


def _limits(table: LimitTable | None) -> dict[tuple[str, str], tuple[Measure | None, Exponent]]:
    found: dict[tuple[str, str], tuple[Measure | None, Exponent]] = {}
    if table is None:
        return found
    for row in table.scalars:
        measure = Measure.of(row.estimate)
        # An exact 0 is the limit itself, not the number in front of its power of n.
        vanishes = measure.value == 0 and measure.method == Method.EXACT.value
        found[row.name, "value"] = (measure, PLAIN if vanishes else row.n_power)
    for vector in table.vectors:
        found[vector.name, "mean"] = (Measure.of(vector.mean), vector.n_power)
        found[vector.name, "second_moment"] = (
            Measure.of(vector.second_moment),
            vector.n_power.squared,
        )
    return found


def _simulated(rows: list[FiniteRow], centre: Measure | None, power: Exponent) -> list[Point]:
    if power.constant is None:
        return []  # a power with symbols in it has no value at one width
    exponent = float(power.constant)
    return [
        _point(row.width, [value / row.width**exponent for value in row.values], centre)
        for row in rows
        if row.values
    ]


def _point(width: int, values: list[float], centre: Measure | None) -> Point:
    seeds = len(values)
    mean = math.nan
    if all(map(math.isfinite, values)):
        mean = math.fsum(value / seeds for value in values)  # a sum of them may be too large
    if seeds == 1 or math.isnan(mean):
        sd = math.nan
    else:
        sd = math.hypot(*(value - mean for value in values)) / math.sqrt(seeds - 1)
    rms = None
    if centre is not None and centre.sd is None and math.isfinite(mean):
        rms = math.hypot(*(value - centre.value for value in values)) / math.sqrt(seeds)
    return Point(width, Measure(mean, sd / math.sqrt(seeds), "finite"), sd, rms, seeds)


def _compared(row: ComparisonRow, centre: Measure | None) -> Point:
    sd = row.finite_std if row.finite_std is not None else row.stderr * math.sqrt(row.seeds)
    rms = None
    if centre is not None and centre.sd is None and math.isfinite(row.mean) and sd == sd:
        share = max(row.seeds - 1, 0) / max(row.seeds, 1)
        rms = math.sqrt((row.mean - row.limit) ** 2 + share * sd**2)
    return Point(row.width, Measure(row.mean, row.stderr, "finite"), sd, rms, row.seeds)
