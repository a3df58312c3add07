"""What theorems say of a network, beside what is derived from its program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tpcalc.results import Bound, Hypothesis, Theorem, Theorems
from tpcalc.views.tables import Cell, Table
from tpcalc.views.view import Judgement, Part, View, view

_AGREES = {True: "yes", False: "no", None: "open"}
_OPEN = "Open: not derived here, or only a bound is."
_OUTSIDE = (
    "In parentheses: the hypotheses of the theorem are not met, so it does not state this of the "
    "network."
)


def theorem_lead(found: Theorems) -> str:
    """How many theorems apply, and whether the program contradicts one.

    Example:
        >>> from tpcalc.results import Provenance
        >>> theorem_lead(Theorems((), Provenance("0", "ab")))
        'No theorem that is known here is about this network.'
    """
    if not found.rows:
        return "No theorem that is known here is about this network."
    applied = [row for row in found.rows if row.answer != "outside"]
    text = f"{len(applied)} of {len(found.rows)} theorems apply to this network."
    open_rows = [row.name for row in found.rows if row.answer == "not confirmed"]
    if open_rows:
        text += f" Of {', '.join(open_rows)} the program does not confirm all that is stated."
    differing = [row.name for row in found.rows if row.differs]
    if differing:
        return f"{text} Its program contradicts what is stated in {', '.join(differing)}."
    return f"{text} Nothing that its program gives contradicts them."


def theorem_tables(found: Theorems) -> tuple[Table, ...]:
    """The theorems with their answers, and their statements beside what is derived."""
    return tuple(table for table in (answer_table(found), _claims(found.rows)) if table.rows)


def answer_table(found: Theorems) -> Table:
    """The theorems with their answers and what decided them."""
    head = ("`Theorem", "~Says", "Answer", "~Because", "Source")
    body = ((row.name, row.title, _answer(row), _why(row), row.source.item) for row in found.rows)
    return Table.of("Theorems and their hypotheses", head, body)


def _claims(rows: Sequence[Theorem]) -> Table:
    several = len(rows) > 1 and "`Theorem"
    head = (several, "About", "Stated", "Derived from the program", "Agrees")
    pairs = [(row, one) for row in rows for one in row.claims if one.stated or one.derived]
    body = (
        (
            row.name,
            claim.text,
            f"({claim.stated})" if row.missing and claim.stated else claim.stated,
            claim.derived,
            Cell(_AGREES[claim.agrees], tone="bad" if claim.agrees is False else ""),
        )
        for row, claim in pairs
    )
    notes = [_OPEN] if any(claim.agrees is None for _, claim in pairs) else []
    notes += [_OUTSIDE] if any(row.missing and claim.stated for row, claim in pairs) else []
    detail = not any(row.differs for row in rows)
    return Table.of("Statements beside what is derived", head, body, " ".join(notes), detail)


def _answer(row: Theorem) -> Cell:
    return Cell(row.answered, tone="bad" if row.differs else "")


def _why(row: Theorem) -> str:
    """The hypotheses that fail, or what is open; where there is neither, the notes."""
    if row.missing:
        return "; ".join(f"{each.text}: {each.found}" for each in row.missing)
    if row.answer == "not confirmed":
        return "; ".join(f"{each.text}: derived is {each.derived}" for each in row.open)
    return "; ".join(row.notes) or "all hypotheses are met"


@view.register
def _(found: Theorems) -> View:
    part = Part("theorems", "Theorems", theorem_lead(found), theorem_tables(found))
    return View.of(found, "Theorems", part)


@view.register
def _(found: Theorem) -> View:
    tables = (_hypotheses(found.hypotheses), _claims((found,)))
    part = Part("theorem", found.name, f"{found.title} ({found.source}).", tables)
    level = "bad" if found.differs else "good" if found.answer == "holds" else "warn"
    said = Judgement(level, f"{found.name}: {found.answered}", _missing(found.hypotheses))
    return View.of(found, "Theorem", part, said=said)


@view.register
def _(found: Bound) -> View:
    part = Part("bound", found.of, f"{found.source}.", (_hypotheses(found.conditions),))
    level = "good" if found.admissible else "warn"
    said = Judgement(level, found.stated, _missing(found.conditions))
    return View.of(found, "Bound", part, said=said)


def _missing(found: Iterable[Hypothesis]) -> tuple[str, ...]:
    return tuple(f"Not met: {one.text}: {one.found}." for one in found if not one.met)


def _hypotheses(found: Iterable[Hypothesis]) -> Table:
    rows = (
        (one.text, "yes" if one.met else "no", one.found)
        for one in sorted(found, key=lambda one: one.met)
    )
    return Table.of("Hypotheses", ("~Hypothesis", "Met", "~Found"), rows)
