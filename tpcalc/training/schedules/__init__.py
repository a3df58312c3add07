"""Schedules by name: one complete file for each, found by its presence in this folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from tpcalc import checks
from tpcalc.doors.numbers import count, exact
from tpcalc.errors import UsageError
from tpcalc.functions.numbers import Number
from tpcalc.registry.registry import Registry, discover
from tpcalc.training.schedule import Factors as Factors
from tpcalc.training.schedule import RateSchedule as RateSchedule

REGISTRY: Registry[RateSchedule] = discover(__name__, "schedule", RateSchedule)
FORMS = "Write 'warmup:2,cosine', a list of factors, or a function of the step."


def lookup(name: str | RateSchedule) -> RateSchedule:
    """The schedule of a name.

    Example:
        >>> lookup("Cosine").name
        'cosine'
    """
    return name if isinstance(name, RateSchedule) else REGISTRY[name]


def factors(schedule: Factors | None, steps: int) -> tuple[Number, ...]:
    """The factor of the learning rate at each step of a run.

    A text names stretches, commas between them: ``"warmup:2,cosine"`` warms up for 2 steps, and
    the cosine has the rest of the run.

    Example:
        >>> [str(factor) for factor in factors("warmup:2,linear", 4)]
        ['0', '1/2', '1', '1/2']
    """
    if schedule is None:
        return (Fraction(1),) * steps
    if isinstance(schedule, str):
        return tuple(_written(_stretches(schedule), steps))
    given: Sequence[Any]
    if callable(schedule):
        given = [checks.answer(schedule, step, name="schedule") for step in range(steps)]
    else:
        given = checks.sequence(schedule, "schedule", hint=FORMS)
    if len(given) < steps:
        raise UsageError(
            f"a schedule shorter than the run: it has {len(given)} factors, and the run has "
            f"{count(steps, 'step')}.",
            hint="Give a factor for each step.",
        )
    steps_given = enumerate(given[:steps])
    return tuple(
        checks.real(one, f"the schedule at step {step}", least=0) for step, one in steps_given
    )


def checked(schedule: Factors) -> Factors:
    """A schedule whose words are those of the catalogue and whose factors are numbers."""
    if not callable(schedule):
        factors(schedule, 0 if isinstance(schedule, str) else len(schedule))
    return schedule


def _stretches(text: str) -> list[tuple[RateSchedule, int | None]]:
    found: list[tuple[RateSchedule, int | None]] = []
    for part in text.split(","):
        name, colon, length = part.partition(":")
        if found and found[-1][1] is None:
            raise UsageError(
                f"the schedule {text!r} does not say how long {found[-1][0].name} lasts.",
                hint=f"Write its steps: {found[-1][0].name}:2.",
            )
        steps = exact(length, what=f"the steps of {name.strip()}") if colon else None
        if steps is not None and (steps.denominator != 1 or steps < 1):
            raise UsageError(
                f"the schedule {text!r} has {name.strip()} last {length.strip()} steps.",
                hint="It is a whole number from 1.",
            )
        found.append((lookup(name), None if steps is None else int(steps)))
    return found


def _written(stretches: list[tuple[RateSchedule, int | None]], steps: int) -> Iterator[Number]:
    start = 0
    for place, (schedule, length) in enumerate(stretches):
        whole = steps - start if length is None else length
        last = place == len(stretches) - 1
        for step in range(start, steps if last else min(start + whole, steps)):
            yield schedule.curve(min(Fraction(step - start, whole), Fraction(1)))
        start = min(start + whole, steps)
