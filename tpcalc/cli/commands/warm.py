"""``tpcalc warm``: compile ahead of the first question."""

from __future__ import annotations


def warm() -> None:
    """Compile what questions need and keep it on disk, for all processes of this machine."""
    from tpcalc.cli.show import progress_bar, put
    from tpcalc.engine.warm import warm as compiled

    with progress_bar("compiling") as progress:
        place = compiled(progress)
    if place is None:
        put("There is no place on disk for compiled code: every process compiles anew.")
        return
    put(f"Compiled code is kept in {place}")
