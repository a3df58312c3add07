"""``depth_solve``: the gammas of updates at which the blocks move the stream by order one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from tpcalc.errors import ScaleError
from tpcalc.exponents import Ex, as_ex
from tpcalc.questions.depth.check import depth_check
from tpcalc.questions.depth.facts import facts
from tpcalc.questions.depth.found import Found
from tpcalc.questions.depth.rates import generic_block
from tpcalc.questions.depth.stream import stream
from tpcalc.results import DepthVerdict
from tpcalc.training.training import Training

TRIALS = tuple(as_ex(Fraction(k, 4)) for k in range(0, 5))
SOLVED = "gamma is solved for: the largest updates at which the stream does not grow"


def depth_solve(training: Training, at: Mapping[str, Fraction]) -> DepthVerdict:
    """The verdict at the gamma that makes the sum of all updates of order one.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, Claim 7.2.
    """
    bare = replace(training.parameterization, deep=None)  # its gamma is what is asked for
    training = training.replace(network=training.network, parameterization=bare)
    one = training.replace(steps=1)
    for trial in TRIALS:
        gamma = _moving(one.replace(lr_depth=trial), trial, at)
        if gamma is not None:
            found = depth_check(training.replace(lr_depth=gamma), at)
            return replace(found, notes=(SOLVED, *found.notes))
    raise ScaleError(
        "no gamma is known at which the updates of the blocks move the stream.",
        where=training.network.name,
        hint="tp.check says what the blocks do at the start.",
    )


def _moving(training: Training, gamma: Ex, at: Mapping[str, Fraction]) -> Ex | None:
    """The gamma at which the largest push of a first update is of order one, from a trial."""
    generic, rates = generic_block(training, at)
    found = Found(stream(generic, at), rates)
    if found.stable_start is False or found.flow:  # training of such blocks is not followed
        raise ScaleError(f"{'; '.join(facts(found))}.", where=training.network.name)
    pushes = [power for _, power in found.moved("x")]
    if not pushes:
        return None
    return gamma - min(pushes, key=found.stream.chamber.at)
