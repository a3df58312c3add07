"""Answers as rich shows them, and texts that are kept beside the tests."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType

from tpcalc.views.faces import seen
from tpcalc.views.panels import Figure
from tpcalc.views.plots import draw, picture
from tpcalc.views.terminal import group

GOLDEN = Path(__file__).parents[2] / "golden" / "views"


def shown(record: Any, most: int | None = None) -> Group:
    return group(seen(record), most)


def printed(*renderables: RenderableType) -> str:
    """What a terminal of 120 columns shows, without blanks at the ends of lines."""
    console = Console(width=120, color_system=None, highlight=False)
    with console.capture() as capture:
        for one in renderables:
            console.print(one)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def same_as_golden(text: str, name: str) -> None:
    golden = GOLDEN / name
    if os.environ.get("TPCALC_UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8", newline="\n")
    assert text == golden.read_text(encoding="utf-8")


def drawn(figure: Figure, identifier: str) -> tuple[str, ...]:
    """The panels of a figure as elements of a page."""
    panels = enumerate(figure.panels)
    return tuple(draw(panel, f"{identifier}-{index}") for index, panel in panels)


def files(figure: Figure) -> tuple[tuple[str, str], ...]:
    """Each panel as a file of its own, with its words."""
    return tuple(
        (picture(replace(figure, panels=(panel,)), panel.words), panel.words)
        for panel in figure.panels
    )
