"""A limit beside finite networks: differences in standard errors, and how fast they shrink."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, ProgramError
from tpcalc.finite.statistics import slope, summary
from tpcalc.results import (
    Comparison,
    ComparisonRow,
    Estimate,
    FiniteTable,
    LimitTable,
    NotCovered,
    Provenance,
    ScalarRow,
    SlopeRow,
    VectorRow,
)
from tpcalc.results.estimate import normal_score

if TYPE_CHECKING:
    from tpcalc.evaluate.answers import Limit

Values = Array

# One rounding of the number format of a finite run; results carry a few of them.
_ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24, "bfloat16": 2.0**-9, "bf16": 2.0**-9}
_ROUNDINGS = 16
# Above this share of the error's size the limit's own error bends the slope.
_LIMIT_SHARE = 0.3
# Names that a note lists before it counts the rest.
_SHOWN = 6


@dataclass(frozen=True)
class _Quantity:
    """One number of the limit, and what a finite value is divided by to be compared with it."""

    name: str
    statistic: str
    limit: Estimate
    power: Fraction

    def scaled(self, values: tuple[float, ...], width: int) -> Values:
        found: Values = np.asarray(values, dtype=np.float64)
        return found if self.power == 0 else found * float(width) ** float(-self.power)


def compare(limit: LimitTable | Limit, finite: FiniteTable) -> Comparison:
    """Compare the limit of a program with the same program at finite widths.

    For each result and width: the mean over seeds, and its distance from the limit in combined
    standard errors (a size, without sign; those of few seeds are reduced to those of a Gaussian, by
    the tail of Student's t). For each result: the log-log slope in n of the root mean
    square over seeds of finite - limit. A result that stays random in the limit is compared by its
    mean, and both standard deviations are reported. What the limit does not cover keeps its finite
    values, and the reason. Where a power of n was taken out of a limit,
    finite values are divided by it first (second moments by its square).

    Args:
        limit: What ``tp.limit`` gave, or its table.
        finite: What ``tp.simulate`` gave, with at least two seeds.

    Returns:
        A row for each result and width, and a slope for each result.

    Raises:
        UsageError: Something else is given.
        ProgramError: The two are about different programs.
        EvaluationError: Fewer than two seeds.

    Example:
        >>> from tpcalc.results import Estimate, FiniteRow, FiniteTable, LimitTable, Method
        >>> from tpcalc.results import Provenance, ScalarRow
        >>> of = Provenance("0", "a program")
        >>> table = LimitTable((ScalarRow("c", Estimate(1.0, 0.0, Method.EXACT)),), (), of)
        >>> rows = (FiniteRow("c", "value", 64, (0.5, 1.1)),)
        >>> row = compare(table, FiniteTable(rows, (64,), 2, "lazy", of)).rows[0]
        >>> print(f"{row.mean:.1f} ± {row.stderr:.1f}, z = {row.z:.2f}")
        0.8 ± 0.3, z = 0.49
    """
    limit = _table(limit)
    hint = "Give what tp.simulate returned."
    checks.of_type(finite, FiniteTable, "the second argument of compare", hint=hint)
    _same_program(limit.provenance, finite.provenance)
    if finite.seeds < 2:
        raise EvaluationError(
            f"{finite.seeds} seed cannot show how far finite networks scatter, so there is nothing "
            "to measure the difference by.",
            hint="Simulate with at least two seeds; ten or more are better.",
        )
    found = {(row.name, row.statistic, row.width): row.values for row in finite.rows}
    settings = dict(finite.provenance.settings)
    rounding = _ROUNDINGS * _ROUNDING.get(settings.get("dtype", "float64"), 2.0**-53)
    notes = [*finite.notes, *_unmatched(limit, finite)]
    if held := dict(limit.provenance.settings).get("given"):
        notes.append(
            f"the limit is that of networks with {held}; finite ones are all that there are"
        )
    quantities = _quantities(limit, notes)
    rows: list[ComparisonRow] = []
    slopes: list[SlopeRow] = []
    for quantity in quantities:
        by_width: dict[int, Values] = {}
        for width in sorted(set(finite.widths)):
            values = found.get((quantity.name, quantity.statistic, width))
            if values is None:
                continue
            scaled = quantity.scaled(values, width)
            by_width[width] = scaled
            row = _row(quantity, width, scaled, rounding, notes)
            if row is not None:
                rows.append(row)
        if by_width:
            slopes.append(_slope(quantity, by_width, rounding))
    lost = {row.name for row in limit.uncovered}
    return Comparison(
        tuple(rows),
        tuple(slopes),
        _provenance(limit, finite),
        tuple(dict.fromkeys(notes)),
        limit.uncovered,
        tuple(row for row in finite.rows if row.name in lost),
        limit.exploded,
    )


def _table(limit: LimitTable | Limit) -> LimitTable:
    table = getattr(limit, "table", limit)
    hint = "Give what tp.limit returned."
    return checks.of_type(table, LimitTable, "the first argument of compare", hint=hint)


def _same_program(limit: Provenance, finite: Provenance) -> None:
    if limit.program_digest != finite.program_digest:
        raise ProgramError(
            f"the limit is of the program {limit.program_digest[:12]}, the finite networks are of "
            f"{finite.program_digest[:12]}: two different programs.",
            hint="Compute both from the same program.",
        )


def _unmatched(limit: LimitTable, finite: FiniteTable) -> Iterator[str]:
    """Results that only one side has."""
    rows: list[ScalarRow | VectorRow | NotCovered]
    rows = [*limit.scalars, *limit.vectors, *limit.uncovered]
    known = dict.fromkeys(row.name for row in rows)
    simulated = dict.fromkeys(row.name for row in finite.rows)
    for names, others, text in (
        (known, simulated, "only the limit has"),
        (simulated, known, "only the finite networks have"),
    ):
        lacking = [name for name in names if name not in others]
        if lacking:
            yield f"{text} {_list(lacking)}: not compared."


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _quantities(limit: LimitTable, notes: list[str]) -> list[_Quantity]:
    found: list[_Quantity] = []
    scaled: dict[Fraction, list[str]] = {}
    rows: list[ScalarRow | VectorRow] = [*limit.scalars, *limit.vectors]
    for row in rows:
        power = row.n_power.constant
        if power is None:
            notes.append(f"{row.name} has size n^({row.n_power}), no number here: not compared.")
            continue
        if power != 0:
            scaled.setdefault(power, []).append(row.name)
        if isinstance(row, ScalarRow):
            found.append(_Quantity(row.name, "value", row.estimate, power))
        else:
            found.append(_Quantity(row.name, "mean", row.mean, power))
            found.append(_Quantity(row.name, "second_moment", row.second_moment, 2 * power))
    notes.extend(
        f"compared after division by n^({power}): {_list(names)}."
        for power, names in scaled.items()
    )
    return found


def _row(
    quantity: _Quantity, width: int, values: Values, rounding: float, notes: list[str]
) -> ComparisonRow | None:
    limit = quantity.limit
    broken = int(np.sum(~np.isfinite(values)))
    if broken or not math.isfinite(limit.value):
        what = f"{broken} of {len(values)} seeds have" if broken else "the limit has"
        notes.append(f"{quantity.name} at width {width}: {what} no finite value; not compared.")
        return None
    mean = summary(values.tolist(), random=True)
    return ComparisonRow(
        name=quantity.name,
        statistic=quantity.statistic,
        limit=limit.value,
        limit_stderr=limit.stderr,
        width=width,
        mean=mean.value,
        stderr=mean.stderr,
        seeds=len(values),
        z=_distance(limit, mean, rounding),
        limit_std=limit.std,
        finite_std=mean.std,
        method=limit.method,
        limit_std_error=limit.std_error,
    )


def _distance(limit: Estimate, mean: Estimate, rounding: float) -> float:
    """The difference in combined standard errors, to which the rounding of the run is added.

    Of few seeds they are reduced to those of a Gaussian.
    """
    gap = abs(limit.value - mean.value)
    noise = rounding * max(abs(limit.value), abs(mean.value))
    if limit.stderr == 0 and mean.stderr == 0:
        # Neither side has an error: they agree up to rounding, or no number of errors joins them.
        return 0.0 if gap <= noise else math.inf
    return normal_score(gap, limit.error, mean.error, (noise, math.inf))


def _slope(quantity: _Quantity, by_width: Mapping[int, Values], rounding: float) -> SlopeRow:
    limit = quantity.limit
    empty = SlopeRow(quantity.name, quantity.statistic, None, None, None)
    if limit.random:
        return replace(
            empty,
            note="random in the limit: finite - limit does not shrink; compare the two standard "
            "deviations",
        )
    errors = {width: values - limit.value for width, values in by_width.items()}
    floor = rounding * abs(limit.value)
    for width, error in errors.items():
        if np.max(np.abs(error), initial=0.0) <= floor:
            return replace(empty, note=f"equal to the limit up to rounding at width {width}")
    fit = slope(list(errors), [error.tolist() for error in errors.values()])
    if fit.value is None:
        return replace(empty, note=fit.reason)
    sizes = [math.sqrt(float(np.mean(error**2))) for error in errors.values()]
    note = ""
    if limit.stderr > _LIMIT_SHARE * min(sizes):
        note = (
            f"the limit's own standard error {limit.stderr:.1e} is no longer small beside the "
            "error of the widest networks: raise the samples of the limit"
        )
    return SlopeRow(quantity.name, quantity.statistic, fit.value, fit.low, fit.high, note)


def _provenance(limit: LimitTable, finite: FiniteTable) -> Provenance:
    sides = (("limit", limit.provenance), ("finite", finite.provenance))
    settings = [
        (f"{side} {name}", value) for side, source in sides for name, value in source.settings
    ]
    settings += [
        (f"{side} seed", str(source.seed)) for side, source in sides if source.seed is not None
    ]
    settings += [
        ("widths", ",".join(map(str, finite.widths))),
        ("seeds", str(finite.seeds)),
        ("backend", finite.backend),
    ]
    libraries = dict((*limit.provenance.libraries, *finite.provenance.libraries))
    return Provenance(
        version=finite.provenance.version,
        program_digest=finite.provenance.program_digest,
        seed=limit.provenance.seed,
        settings=tuple(settings),
        libraries=tuple(libraries.items()),
        seconds=limit.provenance.seconds + finite.provenance.seconds,
    )
