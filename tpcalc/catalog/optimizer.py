"""What an optimizer of the catalogue is."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.sources import Source

__all__ = ["Optimizer"]


@dataclass(frozen=True)
class Optimizer:
    """An entry of the catalogue; the passes make the update that it names.

    Args:
        name: The name it is listed under.
        rule: The update of a weight w^l, as a formula.
        text: What it is, in one line.
        source: Where it is defined.
        aliases: Other names.
    """

    name: str
    rule: str
    text: str
    source: Source
    aliases: tuple[str, ...] = ()
