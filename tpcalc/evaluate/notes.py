"""What a reader of a limit should know besides its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from tpcalc.evaluate.particles.blocks import directions
from tpcalc.evaluate.particles.emit import COLUMNS
from tpcalc.evaluate.particles.estimate import Draws
from tpcalc.functions import Call
from tpcalc.functions.least import least
from tpcalc.functions.reciprocal import loose
from tpcalc.limit.graph import LimitGraph
from tpcalc.limit.views import average_of, function_of, outer_of
from tpcalc.results import ScalarRow, Status


def _growing(graph: LimitGraph) -> list[str]:
    """Functions of vectors that no limit theorem covers."""
    fast = {
        part.atom.name
        for node in graph.nodes
        if (own := function_of(node) or average_of(node)) is not None and own.vectors
        for part in loose(own.fn.expr)
        if isinstance(part, Call) and part.atom.facts.growth is None and not _is_slow(part)
    }
    if not fast:
        return []
    return [
        f"{', '.join(sorted(fast))} grows faster than every polynomial: the limit theorem does not "
        "cover it"
    ]


def _is_slow(call: Call) -> bool:
    """Whether this is the logarithm of what stays above 0: smaller than its argument."""
    return call.atom.name == "log" and least(call.arg) > 0


def _rare(rare: Mapping[str, str]) -> list[str]:
    """Averages that samples may not have seen the most of."""
    degrees = {name: Fraction(degree) for name, degree in rare.items() if degree != "oo"}
    if not degrees:
        return []
    shown = ", ".join(list(degrees)[:6]) + (", ..." if len(degrees) > 6 else "")
    most = max(degrees.values())
    return [
        f"averages of functions that grow like polynomials of degrees up to {most}: rare samples "
        f"may dominate, and standard errors may be too small: {shown}"
    ]


def limit_notes(
    graph: LimitGraph,
    scalars: Sequence[ScalarRow],
    draws: Draws | None,
    rare: Mapping[str, str],
) -> tuple[str, ...]:
    """What a reader of a limit should know besides its numbers."""
    notes = []
    vanishing = [row.name for row in scalars if row.note]
    if vanishing:
        shown = ", ".join(vanishing[:6]) + (", ..." if len(vanishing) > 6 else "")
        notes.append(f"the limit is exactly 0, by the powers of n as written: {shown}")
    growing = [
        name for name, target in graph.targets if target.power > 0 and target.node is not None
    ]
    if growing:
        notes.append(
            "grows as its powers of n are written, or less if a moment vanishes: "
            + ", ".join(growing[:6])
        )
    if any(row.estimate.random for row in scalars):
        notes.append(
            "random in the limit (value: its mean; sd: its own spread): "
            + ", ".join([row.name for row in scalars if row.estimate.random][:6])
        )
    notes.extend(_growing(graph))
    outer = any((own := outer_of(node)) is not None and own.forms for node in graph.nodes)
    if outer and draws is not None:
        notes.append(
            f"updates entry by entry are averaged over the first {COLUMNS} samples of the columns, "
            "or an eighth of more"
        )
    if draws is not None and graph.has_blocks:
        share = directions(graph) / draws.samples
        notes.append(
            f"{draws.samples} samples for {directions(graph)} vectors that a matrix is applied to: "
            f"averages are off by a part of the order of {0.01 * share:.1g}, beside standard errors"
        )
    if draws is not None and draws.status is Status.TOLERANCE_NOT_REACHED:
        notes.append("the error target was not reached; raise max_samples")
    return (*notes, *_rare(rare))
