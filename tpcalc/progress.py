"""Who is told how far a long run is: the fraction that is done, and what is being done."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float, str], None]


def part(progress: Progress | None, start: float, end: float, whole: float = 1.0) -> Progress:
    """What tells how far a part of some work is; it tells nobody where nobody asks."""

    def tell(fraction: float, text: str) -> None:
        if progress is not None:
            progress((start + fraction * (end - start)) / whole, text)

    return tell
