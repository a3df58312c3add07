"""``tp.report``: results to a page or a Markdown file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tpcalc import checks
from tpcalc.errors import StudyError
from tpcalc.results import Card, Contrast
from tpcalc.views.page import write
from tpcalc.views.record import FIELDS, ReportInput

_ANSWERS = (
    "tp.limit, tp.simulate, tp.compare, tp.orders, tp.check, tp.solve, tp.phases, tp.kernel or "
    "tp.card"
)


def report(results: Any, path: str | Path, *, title: str = "Infinite-width limit") -> Path:
    """Write a report.

    Args:
        results: A limit, a simulation, a comparison, orders, a verdict, learning-rate exponents,
            a phase diagram, a kernel, or two cards (``tp.Contrast``): one of them, or several in
            a list. A card stands for its verdict, orders, theorems and limits.
        path: A file ending in ``.html`` (one self-contained page) or ``.md``.
        title: The heading.

    Returns:
        The path.

    Raises:
        StudyError: Something that is not a result, the same kind twice, or a path that cannot be
            written.

    Example:
        >>> from tpcalc.results import Estimate, LimitTable, Method, Provenance, ScalarRow
        >>> row = ScalarRow("f[0,0]", Estimate(0.25, 0.0, Method.EXACT))
        >>> table = LimitTable((row,), (), Provenance("0.1.0", "ab12"))
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     report(table, Path(folder) / "start.md").name
        'start.md'
    """
    checks.file(path)
    parts: dict[str, Any] = {}
    given = results if isinstance(results, list | tuple) else [results]
    for result in [part for one in given for part in _parts(one)]:
        table = getattr(result, "table", result)
        kind = FIELDS.get(type(table))
        if kind is None:
            raise StudyError(
                f"{type(result).__name__} is not a result.",
                where="report",
                hint=f"Give what {_ANSWERS} returns.",
            )
        if kind in parts:
            raise StudyError(f"two results of the same kind ({kind}).", where="report")
        parts[kind] = table
    write(ReportInput(title, **parts), path)
    return Path(path)


def _parts(result: Any) -> list[Any]:
    """The answers that a result is made of; two cards bring those of the first."""
    if isinstance(result, Contrast):
        return [*_parts(result.left), result]
    if isinstance(result, Card):
        parts = (result.check, result.orders, result.theorems, result.limit)
        return [part for part in parts if part is not None]
    return [result]
