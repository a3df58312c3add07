"""Programs with one output, built of independent N(0, 1) vectors."""

from __future__ import annotations

from collections.abc import Callable

import tpcalc as tp


def made(build: Callable[..., object], names: str = "vwu") -> tp.Program:
    """The program of the output ``q``, a function of a tracer and of vectors of these names."""
    return tp.program(lambda t: t.output("q", build(t, *map(t.gaussian, names)))).build()
