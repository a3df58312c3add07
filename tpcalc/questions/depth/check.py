"""``depth_check``: what becomes of training L blocks as L grows, and why; ``critical_powers``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from tpcalc.errors import EvaluationError, UsageError
from tpcalc.exponents import Ex
from tpcalc.names import stepped
from tpcalc.networks.architectures.resnet import ResNet
from tpcalc.questions.depth.found import STARTS, WORDS, Found, found_of
from tpcalc.questions.depth.generic import BACKWARD, FORWARD, NAMES, Pass
from tpcalc.questions.depth.likeness import likeness
from tpcalc.questions.depth.rates import has_paths
from tpcalc.results import Exponent, Verdict
from tpcalc.results.tables import provenance
from tpcalc.training.training import Training

if TYPE_CHECKING:
    from tpcalc.questions.depth.paths import Paths


def depth_check(training: Training, at: Mapping[str, Fraction]) -> Verdict:
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
    own: dict[str, Any] = {name: getattr(found, name) for name in PLAIN}
    own |= {name: tuple(getattr(found, name)) for name in LISTED}
    if isinstance(found, Found):
        cosines = likeness(found)
        own["rates"] = tuple(replace(one, alike=cosines.get(one.label)) for one in found.rates)
    return Verdict(
        verdict=found.verdict or "undecided",
        **own,
        at="depth" if found.steps else "start",
        alpha=Exponent.number(found.alpha),
        facts=tuple(told),
        region=found.region.lines,
        provenance=provenance(digest, None, settings, time.perf_counter() - started),
        notes=tuple(said),
        start=tuple(map(found.start, STARTS)),
    )


# What a verdict has as it is read off the blocks.
PLAIN = ("status", "stable_start", "stable", "moves", "features", "faithful", "diversity",
         "linearized", "rates", "steps")  # fmt: skip
LISTED = ("rows", "sets", "critical")
LATER = "sums over blocks after the first update: that nothing cancels is not proved"
SHARED = "blocks have the same matrices: only the start is followed"
CORRELATED = (
    "matrices are correlated along the depth: only the start is followed where no lr_depth says "
    "how updates depend on L"
)
RETURNS = (
    "after the first update a matrix meets transposes of those that it is correlated with: where "
    "the start does not explode, what comes back is at most of the size of what is followed "
    "(derived, not proved)"
)
CANCELS = (
    "what matrices give back may cancel along the depth, as sums of them do: after the first "
    "update sizes are bounds"
)
ITERATED = (
    "what adds up to less than independent blocks, derived, not proved: sums over pairs of blocks "
    "may decide, and were derived to second order"
)
LOGS = "at this point a logarithm of L stands beside a power"
ASIDE = (
    "{name}: at a fixed width sums of size n^(-1/2) are like n^(-1/2) {aside}, and what is left in "
    "the limit of the width is {left}: the two limits do not commute; width first holds as long as "
    "L is small beside n^({most}) (derived)"
)
FIRST = {
    1: "the first updates of all blocks add up to a power of L in the output (derived)",
    0: "the first updates of all blocks add up to order 1 in the output; training is followed "
    "where a block is its stream (a skip of 1) and little besides",
    -1: "the first updates of all blocks add up to nothing in the output (derived)",
}
FASTER = (
    "blocks multiply a larger stream by more: whether it stays of order 1 depends on the mean "
    "square that enters"
)
KINKS = "what kinks of activations do on a vanishing share of the coordinates is left out"
WHAT = {FORWARD: "the stream", BACKWARD: "its adjoint"}
BOUNDS = "only bounds are known where a function that is not homogeneous takes what grows"


def facts(found: Found) -> Iterator[str]:
    """What decides, the first fact first."""
    if found.flow:
        yield from (_told(found, own) for own in STARTS)
        if found.stable_start and found.steps:
            yield FIRST[found.first]
        return
    if found.start_alone:
        for own in STARTS:
            noise = found.stream.sums[own].noise
            if noise is not None:
                sums = f"the random parts of all blocks add up to {_size(-noise)}"
                yield f"{WORDS[own[0]]}: {found.start(own)}, {sums}"
    if found.start(STARTS[0]) == "" and found.accelerating:
        yield FASTER
    if found.exploded is not None:
        yield from _growth(found, found.exploded)
        return
    yield from _updates(found)
    noise = found.stream.sums[found.stream.forward[-1]].noise
    if noise is not None and found.stable:
        how = "blocks far apart differ" if found.sign(noise) == 0 else "features are redundant"
        yield f"the random parts of all blocks add up to {_size(-noise)}: {how}"


def _updates(found: Found) -> Iterator[str]:
    """What the updates of blocks do to the stream, and to what stands in a block."""
    moved = sorted(found.moved("x"), key=lambda one: found.stream.chamber.at(one[1]))
    if moved:
        (_, step), power = moved[0]
        size = _size(-power)
        yield f"the updates of all blocks add up to {size} in the stream at step {step}"
    elif not found.open and found.steps:
        yield "the updates of the blocks do not add up to anything in the stream"
    for name, power in found.grown[:1]:
        yield f"{name}, a preactivation in a block, is of size {_size(power)}: unfaithful"


def _told(found: Found, own: Pass) -> str:
    """What becomes of the stream at the start, or of its adjoint."""
    regime = found.flow[own]
    what = f"{stepped(NAMES[own[0]], 0)}, {WHAT[own[0]]},"
    words = f": {regime.words}" if regime.words else ""
    if regime.form in ("grows", "shrinks"):
        size = f"log of its mean square is like {_size(regime.power)}"
        return f"{what} {regime.form} exponentially: {size}{words}"
    if regime.real is not None:
        verb = "grows" if regime.real.value.value > 0 else "falls"
        number = f"{regime.real.value.value:.6g}"
        return f"{what} {verb} like L^({number}), with {number} = {regime.real.formula}"
    if regime.form == "power":
        verb = {1: "grows", 0: "is"}.get(found.sign(regime.power), "falls")
        return f"{what} {verb} like {_size(regime.power)}{words}"
    return f"{what} {'stays of order 1' if regime.form else 'is not followed'}{words}"


def _growth(found: Found, own: Pass) -> Iterator[str]:
    total = found.stream.sums[own]
    part, power = min(total.all, key=lambda one: found.stream.chamber.at(one[1]))
    name = f"{stepped(NAMES[own[0]], own[1])}, {WHAT[own[0]]},"
    if found.may_cancel(own[1]):
        yield f"{name} may grow: {part}, at most like {_size(-power)}"
    else:
        yield f"{name} grows: {part}, like {_size(-power)}"


def notes(found: Found) -> Iterator[str]:
    """What a reader should know besides."""
    yield "the width goes to infinity first, then L"
    yield from found.said
    yield "input map and readout move as in a network of any depth; they are left out here"
    if found.status == "heuristic":
        yield LATER
    if found.block.shared:
        yield SHARED
    if found.block.correlated:
        yield CORRELATED if found.start_alone else RETURNS
        if found.may_cancel(found.steps):
            yield CANCELS
    if found.anticorrelated:
        yield ITERATED
    yield from _aside(found)
    logs = [part.logs for part in found.stream.sums.values()]
    if any(logs + [part.logs for part in found.flow.values()]):
        yield LOGS
    if any(total.kinked for total in found.stream.sums.values()):
        yield KINKS
    unknown = found.verdict == "undecided" and found.exploded is None and not found.accelerating
    if found.open or unknown:
        yield BOUNDS


def _aside(found: Found) -> Iterator[str]:
    """What is larger than the limit of the width once there are many blocks, and when."""
    for own, total in found.stream.sums.items():
        if total.aside is None:
            continue
        at = found.stream.chamber.at
        left = min((power for _, power in total.all), key=at, default=None)
        gap = None if left is None else (left - total.aside).constant
        if gap is not None and gap <= 0:
            continue
        yield ASIDE.format(
            name=stepped(NAMES[own[0]], own[1]),
            aside=_size(-total.aside),
            left="0" if left is None else _size(-left),
            most=f"1/(2 ({left} - ({total.aside})))" if gap is None else Fraction(1) / (2 * gap),
        )


def _size(power: Ex) -> str:
    return "order 1" if power == Ex() else f"L^({power})"


class Critical(NamedTuple):
    """The power at which something is of order one: below it explodes, above it vanishes."""

    outputs: Fraction  # of what all blocks add to the stream
    gradients: Fraction  # of what they add to its adjoint, the width first
    # of what they add to the adjoint at a fixed width, a term of size n^(-1/2); None where there is
    # none
    side: Fraction | None

    def regime(self, of: str, alpha: Fraction) -> str:
        """``"unstable"``, ``"stationary"`` or ``"identity"``."""
        critical = getattr(self, of)
        if critical is None or alpha > critical:
            return "identity"
        return "stationary" if alpha == critical else "unstable"


def verdict_at(network: ResNet, alpha: Fraction) -> Verdict:
    """What becomes of the start of a network with this power of 1/L in front of its blocks."""
    return depth_check(Training(replace(network, alpha=alpha), "mup", steps=0), {})


def critical_powers(network: ResNet) -> Critical:
    """The powers of 1/L at which outputs and gradients stay of order one.

    Example:
        >>> net = ResNet("L", "relu", nonlin="between", layers=2, hurst="4/5")
        >>> list(map(str, critical_powers(net)))
        ['4/5', '3/5', '4/5']
    """
    if has_paths(network):
        raise UsageError(
            f"matrices are {network.along} along the depth: their regimes are not told apart by "
            "one power.",
            hint="tp.check says what becomes of the start at a power.",
        )
    rows = verdict_at(network, Fraction(1)).critical
    found = {(row.of, row.width): row.alpha.constant for row in rows}
    outputs, gradients = (found.get((of, "oo")) for of in ("outputs", "gradients"))
    if outputs is None or gradients is None:
        raise EvaluationError(f"no critical power of {network.words} is found.")
    return Critical(outputs, gradients, found.get(("gradients", "n")))
