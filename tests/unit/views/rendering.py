"""Answers as rich shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rich.console import Group

from tpcalc.views.faces import seen
from tpcalc.views.panels import Figure
from tpcalc.views.plots import draw, picture
from tpcalc.views.terminal import group


def shown(record: Any, most: int | None = None) -> Group:
    return group(seen(record), most)


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
