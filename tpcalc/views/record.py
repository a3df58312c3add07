"""``ReportInput``: everything that a report is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import get_args, get_type_hints

from tpcalc import checks
from tpcalc.errors import StudyError
from tpcalc.results import (
    Comparison,
    Contrast,
    DepthExperiment,
    DepthTable,
    DepthVerdict,
    Experiment,
    FiniteTable,
    Formula,
    Kernel,
    LimitTable,
    Nonlinearity,
    OrderTable,
    PhaseDiagram,
    Provenance,
    Sheets,
    Signal,
    Solution,
    Theorems,
    Verdict,
)


@dataclass(frozen=True)
class ReportInput:
    """What one report shows; everything but one of the answers may be left out.

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
        orders: Orders of size.
        check: A verdict on training.
        depth: A verdict on training of L blocks.
        depths: Numbers of a run of L blocks.
        solution: Learning-rate exponents.
        phases: A phase diagram.
        kernel: NNGP and NTK.
        experiment: Trained networks.
        blocks: Networks of many blocks along their depth.
        theorems: What theorems say of the network.
        versus: Its parameterization beside another one.
        nonlinearity: Its nonlinearity coefficient.
        sheet: Activations side by side.
        signal: Signals in a deep network at the start.

    Raises:
        StudyError: No answer is given, or one of them is not the record that its name asks for.

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
    provenance: Provenance | None = None
    input_names: tuple[str, ...] = ()
    check: Verdict | None = None
    depth: DepthVerdict | None = None
    depths: DepthTable | None = None
    theorems: Theorems | None = None
    versus: Contrast | None = None
    orders: OrderTable | None = None
    solution: Solution | None = None
    phases: PhaseDiagram | None = None
    kernel: Kernel | None = None
    experiment: Experiment | None = None
    blocks: DepthExperiment | None = None
    sheet: Sheets | None = None
    signal: Signal | None = None
    nonlinearity: Nonlinearity | None = None
    limit: LimitTable | None = None
    finite: FiniteTable | None = None
    comparison: Comparison | None = None

    def __post_init__(self) -> None:
        given = [(name, kind, getattr(self, name)) for name, kind in KINDS.items()]
        if all(value is None for _, _, value in given):
            raise StudyError(
                f"there is nothing to report: none of {', '.join(KINDS)} is given.",
                where="ReportInput",
                hint="Give at least one of them.",
            )
        for name, kind, value in given:
            if value is not None:
                more = " (a Limit carries it as .table)" if name == "limit" else ""
                checks.of_type(value, kind, name, hint=f"Pass the {kind.__name__} itself{more}.")


KINDS: dict[str, type] = {
    name: get_args(kind)[0]
    for name, kind in get_type_hints(ReportInput).items()
    if NoneType in get_args(kind) and name != "provenance"
}
"""The answers that a report can hold, by field, in its order."""

FIELDS = {kind: field for field, kind in KINDS.items()}
