"""Means and covariances of jointly Gaussian start vectors, checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tpcalc.dsl.operands import Number, misuse, noun, number
from tpcalc.program.family import Family
from tpcalc.program.types import Axes

Rows = tuple[tuple[Number, ...], ...]


def mean_of(given: Any, names: Sequence[str]) -> tuple[Number, ...]:
    """One mean for each vector; None means 0."""
    if given is None:
        return (Fraction(0),) * len(names)
    entries = _entries(given, f"the mean of {names[0]!r}, ...")
    if len(entries) != len(names):
        raise misuse(f"there are {len(names)} vectors and {len(entries)} means.")
    return tuple(
        number(entry, f"the mean of {name!r}") for entry, name in zip(entries, names, strict=True)
    )


def covariance_of(given: Any, names: Sequence[str]) -> tuple[Rows | None, float]:
    """The covariance between the vectors (of one coordinate); None stands for the identity.

    A singular one is fine (two equal vectors, a vector of zeros). Entries that differ from their
    mirror image by rounding are averaged, and eigenvalues that rounding made negative are 0.

    Example:
        >>> covariance_of([[1, 1], [1, 1]], ["a", "b"])[0]
        ((Fraction(1, 1), Fraction(1, 1)), (Fraction(1, 1), Fraction(1, 1)))
    """
    if given is None:
        return None, 0.0
    size = len(names)
    given_rows = [_entries(row, "a row of the covariance") for row in _entries(given, "cov")]
    if len(given_rows) != size or any(len(row) != size for row in given_rows):
        lengths = sorted({len(row) for row in given_rows})
        raise misuse(
            f"the covariance of {size} vectors must be {size} x {size}, not {len(given_rows)} rows "
            f"of length {', '.join(map(str, lengths)) or '0'}."
        )
    rows = [
        [
            number(entry, f"the covariance of {a!r} and {b!r}")
            for b, entry in zip(names, row, strict=True)
        ]
        for a, row in zip(names, given_rows, strict=True)
    ]
    epsilon = _epsilon(given, rows)
    _symmetrise(rows, names, max(1e-9, 64 * epsilon))
    rows, moved = _semidefinite(rows, epsilon)
    if all(rows[i][j] == (i == j) for i in range(size) for j in range(size)):
        return None, 0.0
    return tuple(tuple(row) for row in rows), moved


def _entries(given: Any, what: str) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise misuse(f"{what} must be a list of numbers, not {noun(given)}.")
    return given.tolist() if hasattr(given, "tolist") else list(given)


def _epsilon(given: Any, rows: list[list[Number]]) -> float:
    """The rounding of the entries: that of their type, or single where all are single numbers."""
    import numpy as np

    size = getattr(getattr(given, "dtype", None), "itemsize", 8)
    array = np.array(rows, dtype=float)
    with np.errstate(over="ignore"):
        single = (array.astype(np.float32) == array).all()
    return {1: 2.0**-3, 2: 2.0**-7}.get(size, 2.0**-23 if single or size < 8 else 2.0**-52)


def _symmetrise(rows: list[list[Number]], names: Sequence[str], slack: float) -> None:
    scale = max((abs(float(entry)) for row in rows for entry in row), default=0.0)
    for i in range(len(rows)):
        for j in range(i):
            above, below = rows[j][i], rows[i][j]
            if above == below:
                continue
            if abs(float(above - below)) > slack * scale:
                raise misuse(
                    f"the covariance is not symmetric: {names[j]!r} with {names[i]!r} is "
                    f"{float(above):g} and the other way round {float(below):g}."
                )
            rows[i][j] = rows[j][i] = (above + below) / 2


def _semidefinite(rows: list[list[Number]], epsilon: float) -> tuple[list[list[Number]], float]:
    """The covariance without negative eigenvalues, if rounding alone can have made them."""
    import numpy as np

    array = np.array(rows, dtype=float)
    spectrum, basis = np.linalg.eigh(array)
    lowest, largest = float(spectrum[0]), float(np.abs(spectrum).max())
    slack = max(1e-9 * largest, epsilon * len(rows) * float(np.trace(array)))
    if lowest < -slack:
        raise misuse(
            "the covariance is not positive semidefinite: its smallest eigenvalue is "
            f"{lowest:.3g}, and rounding of its entries explains {-slack:.2g} at most.",
            "No Gaussian vector has it.",
        )
    if lowest >= -1e-12 * largest:
        return rows, 0.0  # as it was given, so that exact entries stay exact
    kept = (basis * np.maximum(spectrum, 0)) @ basis.T
    nearest: list[list[Number]] = ((kept + kept.T) / 2).tolist()
    return nearest, -lowest


def independent(name: str, dim: str, mean: Number, var: Number, axes: Axes) -> Family:
    """A block of independent start vectors with one mean and one variance."""
    block = Family(name, (dim,), axes)
    zero = Fraction(0)
    rows = (tuple(var if i == j else zero for j in range(block.size)) for i in range(block.size))
    return replace(block, mean=(mean,) * block.size, cov=None if var == 1 else tuple(rows))
