"""``depth_check``: what becomes of training a network of L blocks as L grows, after the width."""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from tpcalc.questions.depth.facts import facts, notes
from tpcalc.questions.depth.found import Found, found_of
from tpcalc.questions.depth.generic import BACKWARD, FORWARD
from tpcalc.questions.depth.rates import has_paths
from tpcalc.results import DepthVerdict, Exponent
from tpcalc.results.provenance import provenance
from tpcalc.training.training import Training

if TYPE_CHECKING:
    from tpcalc.questions.depth.paths import Paths


def depth_check(training: Training, at: Mapping[str, Fraction]) -> DepthVerdict:
    """What becomes of training a network of L blocks of infinite width as L grows.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, section 7, with the calculus of sums over
        blocks of docs/theory/depth.md.
    """
    started = time.perf_counter()
    found: Paths | Found
    if has_paths(training.network):
        from tpcalc.questions.depth.paths import paths_of  # with what numbers are computed with

        found = paths_of(training.network, at)
        told, said = found.facts, found.notes
    else:
        found = found_of(training, at)
        told, said = facts(found), notes(found)
    digest = found.block.program.digest
    settings = {"steps": str(training.steps), "lr_depth": str(training.gammas)}
    return DepthVerdict(
        found.verdict or "undecided",
        found.status,
        found.stable_start,
        found.stable,
        found.moves,
        found.features,
        found.faithful,
        found.diversity,
        found.linearized,
        Exponent.number(found.alpha),
        found.rates,
        tuple(found.rows),
        tuple(found.sets),
        tuple(told),
        found.steps,
        found.region.lines,
        provenance(digest, None, settings, time.perf_counter() - started),
        tuple(said),
        found.start((FORWARD, 0)),
        found.start((BACKWARD, 0)),
        tuple(found.critical),
    )
