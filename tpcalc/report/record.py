"""``ReportInput``: everything that a report is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tpcalc.errors import StudyError
from tpcalc.results import Comparison, FiniteTable, Formula, LimitTable, Provenance

__all__ = ["ReportInput"]


@dataclass(frozen=True)
class ReportInput:
    """What one report shows; everything but one of the three tables may be left out.

    Args:
        title: The heading of the page.
        model: What was trained, as pairs of words (architecture, depth, learning rate, ...).
        program_words: The program in words, one step of the computation an entry.
        program_text: The canonical text of the program.
        formulas: Named formulas, shown in this order.
        limit: The limits.
        finite: The same program at finite widths.
        comparison: Limit against finite widths.
        provenance: Of the report as a whole, where it differs from that of its tables.
        input_names: What input 0, 1, ... are ("sample of the step", "query 1"); may be shorter.

    Raises:
        StudyError: None of limit, finite and comparison is given, or one of them is not the
            table that its name asks for.

    Example:
        >>> from tpcalc.results import Estimate, Method, ScalarRow
        >>> row = ScalarRow("f[0,0]", Estimate(0.25, 0.0, Method.EXACT))
        >>> ReportInput("Start", limit=LimitTable((row,), (), Provenance("0", "ab"))).title
        'Start'
    """

    title: str
    model: Mapping[str, str] = field(default_factory=dict)
    program_words: tuple[str, ...] = ()
    program_text: str = ""
    formulas: tuple[tuple[str, Formula], ...] = ()
    limit: LimitTable | None = None
    finite: FiniteTable | None = None
    comparison: Comparison | None = None
    provenance: Provenance | None = None
    input_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        wanted = (("limit", LimitTable), ("finite", FiniteTable), ("comparison", Comparison))
        given = [(name, kind, getattr(self, name)) for name, kind in wanted]
        if all(value is None for _, _, value in given):
            raise StudyError(
                "there is nothing to report: neither limit nor finite nor comparison is given.",
                where="ReportInput",
                hint="Give at least one of the three tables.",
            )
        for name, kind, value in given:
            if value is not None and not isinstance(value, kind):
                raise StudyError(
                    f"{name} is a {type(value).__name__}, not a {kind.__name__}.",
                    where="ReportInput",
                    hint=f"Pass the {kind.__name__} itself (a Limit carries it as .table)."
                    if name == "limit"
                    else f"Pass the {kind.__name__} itself.",
                )
