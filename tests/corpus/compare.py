"""Where an answer differs from the record: numbers by their errors, all else exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tests.corpus.record import Record
from tpcalc.results import Estimate, Method, Status

__all__ = ["differences"]

CLOSE = 1e-13  # of what is computed without sampling, relative, and absolute below 1
ROUNDED = 1e-12  # where the error bounds of both are no smaller: libraries differ in last digits
SAMPLED = 5.0  # combined standard errors
WIDER = 4.0  # an error bound may be so many times another


def differences(kept: Record, new: Record) -> list[str]:
    """What of a record is otherwise now, a line each.

    Args:
        kept: The record.
        new: What is answered now.
    """
    return list(_compared(kept, new, ()))


def _compared(kept: Any, new: Any, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(kept, dict) and isinstance(new, dict):
        for key in sorted(kept.keys() ^ new.keys()):
            yield f"{_place((*path, key))}: {'new' if key in new else 'missing'}"
        shared = sorted(kept.keys() & new.keys())
        if "method" in kept and "value" in kept and "method" in new and "value" in new:
            yield from _estimates(kept, new, path)
            told = {"status"} if _drawn(kept) and _drawn(new) else set()
            shared = [k for k in shared if not isinstance(kept[k], float) and k not in told]
        for key in shared:
            yield from _compared(kept[key], new[key], (*path, key))
    elif isinstance(kept, float) and isinstance(new, float):
        bound = path[-1].endswith("error")
        if not (_alike(kept, new) if bound else _near(kept, new)):
            yield f"{_place(path)}: {kept!r} is {new!r} now"
    elif kept != new:
        yield f"{_place(path)}: {kept!r} is {new!r} now"


def _estimates(kept: Record, new: Record, path: tuple[str, ...]) -> Iterator[str]:
    """A number with its error, and its standard deviation where it is random."""
    pairs = [("value", "error")]
    if kept.get("std") is not None and new.get("std") is not None:
        pairs.append(("std", "std error"))
    sampled = Method.PARTICLES.value in (kept["method"], new["method"])
    for name, error in pairs:
        left, right = (_estimate(one, name, error) for one in (kept, new))
        if sampled:
            apart = left.z(right)
            if not apart <= SAMPLED:
                yield (
                    f"{_place((*path, name))}: {left.value!r} is {right.value!r} now, "
                    f"{apart:.1f} standard errors apart"
                )
        elif not (_near(left.value, right.value) or _rounded(left, right)):
            yield f"{_place((*path, name))}: {left.value!r} is {right.value!r} now"
        elif not _alike(left.stderr, right.stderr):
            yield f"{_place((*path, error))}: {left.stderr!r} is {right.stderr!r} now"


def _estimate(one: Record, name: str, error: str) -> Estimate:
    return Estimate(
        one[name], one.get(error) or 0.0, Method(one["method"]), replicates=one.get("replicates", 0)
    )


def _drawn(one: Record) -> bool:
    """Whether a status is one that depends on which samples were drawn."""
    return one["method"] == Method.PARTICLES.value and one["status"] in (
        Status.CONVERGED.name,
        Status.RARE.name,
    )


def _rounded(left: Estimate, right: Estimate) -> bool:
    apart, size = abs(left.value - right.value), max(1.0, abs(left.value))
    return apart <= min(left.stderr, right.stderr, ROUNDED * size)


def _near(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=CLOSE, abs_tol=CLOSE)


def _alike(left: float, right: float) -> bool:
    """Whether two bounds are of one size, or below all that is compared."""
    low, high = sorted((left, right))
    return high <= CLOSE or high <= WIDER * low


def _place(path: tuple[str, ...]) -> str:
    return " / ".join(path)
