"""``depth_orders``: how large everything in training L blocks is, as powers of n and of L."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from fractions import Fraction

from tpcalc.questions.depth.facts import notes
from tpcalc.questions.depth.found import Found, found_of
from tpcalc.questions.depth.generic import FORWARD
from tpcalc.results import DepthOrders, DepthRow
from tpcalc.results.provenance import provenance
from tpcalc.training.training import Training


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
        step = name.rpartition(",")[2].rstrip("]")
        if name[0] not in "hW" or (FORWARD, int(step)) not in found.stream.sums:
            continue
        lead, bound = found.stream.lead(name)
        start, _ = found.stream.lead(f"P{name[1:]}") if name[0] == "W" else (None, False)
        size = "-oo" if lead is None else str(lead if start is None else lead - start)
        status = "bound" if bound else found.status_at(int(step))
        yield DepthRow(name if name[0] == "h" else f"d{name[:1]}_x{name[1:]}", "", size, status)
