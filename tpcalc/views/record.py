"""``ReportInput``: everything that a report is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import get_args, get_type_hints

from tpcalc import checks
from tpcalc.errors import StudyError
from tpcalc.results import (
    Advice,
    Comparison,
    Contrast,
    DepthExperiment,
    DepthTable,
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
    Study,
    Theorems,
    Verdict,
)


@dataclass(frozen=True)
class ReportInput:
    """What one report shows; everything but one of the answers may be left out.

    Example:
        >>> from tpcalc.results import Estimate, Method, ScalarRow
        >>> row = ScalarRow("f[0,0]", Estimate(0.25, 0.0, Method.EXACT))
        >>> ReportInput("Start", limit=LimitTable((row,), (), Provenance("0", "ab"))).title
        'Start'
    """

    title: str  # the heading of the page
    # what was trained, as pairs of words (architecture, depth, learning rate, ...)
    model: Mapping[str, str] = field(default_factory=dict)
    # the program in words, one step of the computation an entry
    program_words: tuple[str, ...] = ()
    program_text: str = ""  # the canonical text of the program
    formulas: tuple[tuple[str, Formula], ...] = ()  # named formulas, shown in this order
    # of the report as a whole, where it differs from that of its tables
    provenance: Provenance | None = None
    # what input 0, 1, ... are ("sample of the step", "query 1"); may be shorter.
    input_names: tuple[str, ...] = ()
    check: Verdict | None = None  # a verdict on training, as the width grows or L blocks
    depths: DepthTable | None = None  # numbers of a run of L blocks
    theorems: Theorems | None = None  # what theorems say of the network
    versus: Contrast | None = None  # its parameterization beside another one
    orders: OrderTable | None = None  # orders of size
    solution: Solution | None = None  # learning-rate exponents
    phases: PhaseDiagram | None = None  # a phase diagram
    kernel: Kernel | None = None  # NNGP and NTK
    experiment: Experiment | None = None  # trained networks
    blocks: DepthExperiment | None = None  # networks of many blocks along their depth
    study: Study | None = None  # random networks that were trained
    sheet: Sheets | None = None  # activations side by side
    signal: Signal | None = None  # signals in a deep network at the start
    nonlinearity: Nonlinearity | None = None  # its nonlinearity coefficient
    advice: Advice | None = None  # guidelines for its design
    limit: LimitTable | None = None
    finite: FiniteTable | None = None  # the same program at finite widths
    comparison: Comparison | None = None  # limit against finite widths

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
