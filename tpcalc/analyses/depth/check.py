"""``depth_check``: what becomes of training a network of L blocks as L grows, after the width."""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction

from tpcalc.analyses.depth.facts import facts, notes
from tpcalc.analyses.depth.found import found_of
from tpcalc.analyses.depth.generic import BACKWARD, FORWARD
from tpcalc.analyses.depth.rates import generic_block, has_paths
from tpcalc.catalog.training import Training
from tpcalc.results import DepthVerdict
from tpcalc.results.provenance import provenance

__all__ = ["depth_check"]


def depth_check(training: Training, at: Mapping[str, Fraction]) -> DepthVerdict:
    """What becomes of training a network of L blocks of infinite width as L grows.

    Args:
        training: The run.
        at: The sample point of symbols.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, section 7, with the calculus of sums over
        blocks of docs/theory/depth.md.
    """
    started = time.perf_counter()
    if has_paths(training.network):
        from tpcalc.analyses.depth.paths import path_check  # with what numbers are computed with

        return path_check(training.network, at)
    generic, rates = generic_block(training, at)
    found = found_of(generic, rates, at)
    digest = generic.block.program.digest
    settings = {"steps": str(training.steps), "lr_depth": str(training.gammas)}
    return DepthVerdict(
        found.verdict,
        found.status,
        found.stable_start,
        found.stable,
        found.moves,
        found.features,
        found.faithful,
        found.diversity,
        found.linearized,
        str(found.alpha),
        rates,
        tuple(found.rows),
        tuple(found.sets),
        tuple(facts(found)),
        0 if found.start_alone else training.steps,
        found.stream.region.lines,
        provenance(digest, None, settings, time.perf_counter() - started),
        tuple(notes(found)),
        found.start((FORWARD, 0)),
        found.start((BACKWARD, 0)),
        tuple(found.critical),
    )
