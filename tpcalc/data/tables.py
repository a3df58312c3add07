"""CSV files: one sample a line, under a header ``x1,...,xd,y`` (or ``y1,...,yK``)."""

from __future__ import annotations

import csv as _csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from tpcalc import checks
from tpcalc.doors import files
from tpcalc.errors import StudyError
from tpcalc.results import Samples

_HEADER_HINT = "The first line must read x1,...,xd,y (or y1,...,yK for several outputs)."
_QUERY_HINT = "The first line must read x1,...,xd; targets may follow and are not used."


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows of a file, every one of the header's length, with the number of columns of x."""

    rows: tuple[tuple[float, ...], ...]
    dimension: int


def csv(path: str | Path) -> Samples:
    r"""Samples from a CSV file.

    Args:
        path: A UTF-8 file with the header ``x1,...,xd,y`` or ``x1,...,xd,y1,...,yK``, then one
            sample a line. Empty lines are skipped.

    Returns:
        The samples, with the path as origin.

    Raises:
        StudyError: The file cannot be read, the header is another one, or a line has a wrong
            number of columns or an entry that is not a finite number; the message has the path,
            the line and the column.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "data.csv"
        ...     _ = file.write_text("x1,x2,y\n0.5,1,-1\n")
        ...     csv(file).inputs
        ((0.5, 1.0),)
    """
    table = _read(checks.file(path), targets_needed=True)
    return Samples(
        inputs=tuple(row[: table.dimension] for row in table.rows),
        targets=tuple(row[table.dimension :] for row in table.rows),
        origin=str(path),
    )


def queries(path: str | Path, dimension: int | None = None) -> tuple[tuple[float, ...], ...]:
    """Inputs at which outputs are asked for, from a CSV file."""
    table = _read(checks.file(path), targets_needed=False)
    if dimension is not None and table.dimension != dimension:
        raise StudyError(
            f"the queries have {table.dimension} input columns, the training data has {dimension}.",
            where=f"{path}, line 1",
            hint="A query is an input of the same network.",
        )
    return tuple(row[: table.dimension] for row in table.rows)


def _read(path: Path, *, targets_needed: bool) -> _Table:
    # Universal newlines are the csv module's own work; StringIO must not do it twice.
    reader = _csv.reader(io.StringIO(files.text(path, "CSV file"), newline=""), strict=True)
    header: list[str] | None = None
    dimension = 0
    rows: list[tuple[float, ...]] = []
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            place = f"{path}, line {reader.line_num}"
            if header is None:
                header = [cell.strip() for cell in cells]
                dimension = _dimension(header, place, targets_needed)
            else:
                rows.append(_numbers(cells, header, place))
    except _csv.Error as error:
        raise StudyError(
            f"this is not CSV: {error}.", where=f"{path}, line {reader.line_num}"
        ) from error
    hint = _HEADER_HINT if targets_needed else _QUERY_HINT
    if header is None:
        raise StudyError("the file is empty.", where=str(path), hint=hint)
    if not rows:
        raise StudyError("there is a header and no sample.", where=str(path))
    return _Table(tuple(rows), dimension)


def _dimension(header: list[str], place: str, targets_needed: bool) -> int:
    """How many input columns a header has; anything but the two agreed forms is refused."""
    hint = _HEADER_HINT if targets_needed else _QUERY_HINT
    if len(header) == 1 and re.search(r"[;\t|]", header[0]):
        raise StudyError(
            "columns are not separated by commas.", where=place, hint="Save the file with commas."
        )
    if all(_is_number(cell) for cell in header):
        raise StudyError("the header is missing: this line has numbers.", where=place, hint=hint)
    dimension = 0
    while dimension < len(header) and header[dimension] == f"x{dimension + 1}":
        dimension += 1
    rest = header[dimension:]
    if dimension and not rest and targets_needed:
        raise StudyError("the header has inputs and no target.", where=place, hint=hint)
    agreed = ["y"] if rest[:1] == ["y"] else [f"y{k + 1}" for k in range(len(rest))]
    wrong = 0 if not dimension else dimension + _first_difference(rest, agreed)
    if wrong < len(header):
        raise StudyError(
            f"column {wrong + 1} of the header is called {header[wrong]!r}, "
            "which is not the name expected there.",
            where=place,
            hint=hint,
        )
    return dimension


def _first_difference(names: list[str], agreed: list[str]) -> int:
    same = 0
    while same < min(len(names), len(agreed)) and names[same] == agreed[same]:
        same += 1
    return same


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii()


def _numbers(cells: list[str], header: list[str], place: str) -> tuple[float, ...]:
    if len(cells) != len(header):
        raise StudyError(
            f"this line has {len(cells)} columns, the header has {len(header)}.", where=place
        )
    numbers = []
    for name, cell in zip(header, cells, strict=True):
        text = cell.strip()
        # float() reads 1_000 too; in a data file that is a slip.
        if not _is_number(text) or "_" in text:
            shown = f"{text!r} is not a number" if text else "the entry is empty"
            raise StudyError(f"in column {name} {shown}.", where=place)
        value = float(text)
        if not isfinite(value):
            raise StudyError(
                f"in column {name} {text!r} is not finite.",
                where=place,
                hint="Drop or repair that line.",
            )
        numbers.append(value)
    return tuple(numbers)


def inline(inputs: Iterable[Any], targets: Iterable[Any]) -> Samples:
    """Inputs and targets given as lists or arrays.

    Example:
        >>> inline([[1, 0], [0, 1]], [1, -1]).targets
        ((1.0,), (-1.0,))
    """
    return Samples(inputs, targets)  # type: ignore[arg-type]
