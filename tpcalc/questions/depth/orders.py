"""``depth_orders``: how large everything in training L blocks is, as powers of n and of L."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from tpcalc.names import Name
from tpcalc.questions.depth.check import notes
from tpcalc.questions.depth.found import Found, found_of
from tpcalc.questions.depth.generic import FORWARD
from tpcalc.results import ZERO, DepthOrders, DepthRow, Exponent
from tpcalc.results.tables import provenance
from tpcalc.training.training import Training

SHOWN = {"h": "h", "W": "dW_x"}  # what outputs of a generic block are called in tables


def depth_orders(training: Training, at: Mapping[str, Fraction]) -> DepthOrders:
    """The sizes of the stream, of preactivations and of updates of a run of L blocks."""
    started = time.perf_counter()
    found = found_of(training, at)
    rows = (*found.rows, *_inside(found))
    seconds = time.perf_counter() - started
    made = provenance(found.block.program.digest, None, {"steps": str(training.steps)}, seconds)
    return DepthOrders(rows, found.region.lines, made, tuple(notes(found)))


def _inside(found: Found) -> Iterator[DepthRow]:
    """Preactivations of a block, and what updates add to them."""
    for name, _ in found.stream.found.program.outputs:
        own = Name.of(name)
        if (
            own.step is None
            or own.what not in SHOWN
            or (FORWARD, own.step) not in found.stream.sums
        ):
            continue
        lead, bound = found.stream.lead(name)
        start, _ = (
            found.stream.lead(str(replace(own, what="P"))) if own.what == "W" else (None, False)
        )
        size = ZERO if lead is None else Exponent(lead if start is None else lead - start)
        status = "bound" if bound else found.status_at(own.step)
        yield DepthRow(str(replace(own, what=SHOWN[own.what])), "", size, status)
