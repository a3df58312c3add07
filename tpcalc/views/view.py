"""``View``: what an answer says, apart from where it is shown; ``view`` makes it of a record.

Terminal, page, Markdown and notebook know the parts of a view and no record. What an answer says is
registered by its type, ``@view.register``, in the module that makes its tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import singledispatch
from types import MappingProxyType
from typing import Any

from tpcalc.results import Formula, Provenance
from tpcalc.views.panels import Figure
from tpcalc.views.tables import Table


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer in a few words."""

    level: str  # good, limit (as the kernel regime is drawn), warn, bad or info
    headline: str  # the answer
    reasons: tuple[str, ...] = ()  # the facts it rests on


@dataclass(frozen=True, slots=True)
class Part:
    """Evidence that belongs together."""

    key: str  # what links call it
    title: str  # its heading on a page
    lead: str = ""  # what stands above its tables
    tables: tuple[Table, ...] = ()
    figure: Figure | None = None  # its picture


@dataclass(frozen=True, slots=True)
class View:
    """What an answer says."""

    title: str  # what it is
    said: Judgement | None = None  # the answer in a few words, where there are such
    summary: str = ""  # the answer in a sentence or two
    parts: tuple[Part, ...] = ()  # the evidence
    notes: tuple[str, ...] = ()  # what a reader should know besides
    provenance: Provenance | None = None  # what it was computed from and with
    text: str = ""  # an answer that is a text, shown letter by letter

    # of a report besides: what was trained, the program in words and in formulas
    model: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()
    formulas: tuple[tuple[str, Formula], ...] = ()

    def __post_init__(self) -> None:
        """Leave out tables without rows, and parts that have nothing of what they are for."""
        shown = []
        for part in self.parts:
            tables = tuple(table for table in part.tables if table.rows)
            if tables or part.figure or (part.lead and not part.tables):
                shown.append(replace(part, tables=tables))
        object.__setattr__(self, "parts", tuple(shown))

    @classmethod
    def of(
        cls,
        found: Any,
        title: str,
        *parts: Part,
        said: Judgement | None = None,
        summary: str = "",
        figures: Mapping[str, Figure | None] = MappingProxyType({}),
    ) -> View:
        """The view of a record, with its notes and its provenance, figures by the key of parts."""
        drawn = (replace(part, figure=part.figure or figures.get(part.key)) for part in parts)
        notes, made = tuple(getattr(found, "notes", ())), getattr(found, "provenance", None)
        return cls(title, said, summary, tuple(drawn), notes, made)

    @property
    def opening(self) -> Part | None:
        """The part whose figure opens a page: outputs of a training run, else the first."""
        drawn = [part for part in self.parts if part.figure is not None]
        return next((part for part in drawn if part.key == "outputs"), next(iter(drawn), None))

    @property
    def tables(self) -> Iterator[Table]:
        """The tables of all parts."""
        return (table for part in self.parts for table in part.tables)

    @property
    def figures(self) -> dict[str, Figure]:
        """The pictures by the key of their part."""
        return {part.key: part.figure for part in self.parts if part.figure is not None}

    def beside(self, other: View) -> View:
        """This view with what another says below it."""
        notes = tuple(dict.fromkeys((*self.notes, *other.notes)))
        return replace(self, parts=(*self.parts, *other.below().parts), notes=notes)

    def below(self) -> View:
        """The view as it stands below the headline of another: its own opens its first part."""
        reasons = (self.said.headline, *self.said.reasons) if self.said else ()
        opening = (*(f"{reason.rstrip('.')}." for reason in reasons), self.summary)
        first, *rest = self.parts or (Part(self.title.lower(), self.title),)
        lead = " ".join(filter(None, (*opening, first.lead)))
        return replace(self, said=None, summary="", parts=(replace(first, lead=lead), *rest))


@singledispatch
def view(record: Any) -> View:
    """What an answer says."""
    raise TypeError(f"{type(record).__name__} is not an answer")
