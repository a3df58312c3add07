"""``View``: what an answer says, apart from where it is shown; ``view`` makes it of a record.

Terminal, page, Markdown and notebook know the parts of a view and no record. What an answer says is
registered by its type, ``@view.register``, in the module that makes its tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

from tpcalc.results import Provenance
from tpcalc.views.panels import Figure
from tpcalc.views.tables import Table


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer in a few words.

    Args:
        level: ``good``, ``limit`` (as the kernel regime is drawn), ``warn``, ``bad`` or ``info``.
        headline: The answer.
        reasons: The facts it rests on.
    """

    level: str
    headline: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """Evidence that belongs together.

    Args:
        key: What links call it.
        title: Its heading on a page.
        lead: What stands above its tables.
        tables: Its tables.
        figure: Its picture.
    """

    key: str
    title: str
    lead: str = ""
    tables: tuple[Table, ...] = ()
    figure: Figure | None = None


@dataclass(frozen=True, slots=True)
class View:
    """What an answer says.

    Args:
        title: What it is.
        said: The answer in a few words, where there are such.
        summary: The answer in a sentence or two.
        parts: The evidence.
        notes: What a reader should know besides.
        provenance: What it was computed from and with.
        text: An answer that is a text, shown letter by letter.
    """

    title: str
    said: Judgement | None = None
    summary: str = ""
    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = None
    text: str = ""

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
