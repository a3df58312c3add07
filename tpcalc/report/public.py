"""``tp.report``: results to a page or a Markdown file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tpcalc.errors import StudyError
from tpcalc.report.page import write
from tpcalc.report.record import KINDS, ReportInput
from tpcalc.results import checks

__all__ = ["report"]

_FIELDS = {kind: field for field, kind in KINDS.items()}
_ANSWERS = (
    "tp.limit, tp.simulate, tp.compare, tp.orders, tp.check, tp.solve, tp.phases or tp.kernel"
)


def report(results: Any, path: str | Path, *, title: str = "Infinite-width limit") -> Path:
    """Write a report.

    Args:
        results: A limit, a simulation, a comparison, orders, a verdict, learning-rate exponents,
            a phase diagram or a kernel (one of them, or several in a list).
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
    for result in results if isinstance(results, list | tuple) else [results]:
        table = getattr(result, "table", result)
        kind = _FIELDS.get(type(table))
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
