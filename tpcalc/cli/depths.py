"""Networks of L blocks on the command line: which depths are asked, and what a page says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tpcalc.errors import UsageError

if TYPE_CHECKING:
    from tpcalc.cli.option import Flags
    from tpcalc.results import PhaseDiagram
    from tpcalc.study.model import Network

OO = "oo"
SHOWN = ("4", "8", "16", OO)
PLACES = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
REGULARITY = {
    "H": (Fraction(1, 20), Fraction(97, 100)),
    "alpha": (Fraction(1, 5), Fraction(13, 10)),
}
BOX = {"alpha": (Fraction(1, 4), Fraction(3, 2)), "gamma": (Fraction(-1, 2), Fraction(1))}


def deep(model: str, flags: Flags) -> tuple[Network, tuple[str, ...]] | None:
    """A network of L blocks, and the depths that are asked of it; None of another model.

    ``--depth 16,64,oo`` asks for numbers of blocks and for the limit; ``L`` leaves it open. Where
    matrices vary along the depth, one number is a number of blocks, too.
    """
    from tpcalc.study import open_network
    from tpcalc.study.models import is_program

    texts = [str(flag.value) for flag in flags if flag.key == "model.depth"]
    words = tuple(word.strip() for word in texts[-1].split(",")) if texts else ()
    along = any(flag.key in ("model.hurst", "model.along") for flag in flags)
    if texts and (
        (texts[-1].isdigit() and not along)
        or not all(word.isdigit() or word in ("L", OO) for word in words)
    ):
        return None  # a number, or what is refused where it is read
    if not texts and ("." not in model or is_program(model, flags)):
        return None
    symbol = [replace(flag, value="L") if flag.key == "model.depth" else flag for flag in flags]
    network = open_network(model, symbol)
    if not network.training.network.smallest.repeats:
        return None
    strange = sorted({flag.name for flag in flags if flag.name in ("--values", "--only")})
    if strange:
        raise UsageError(f"{', '.join(strange)}: it is of programs of a depth that is a number.")
    return network, tuple(word for word in words if word != "L")


def page(network: Network, depths: Sequence[str]) -> dict[str, Any]:
    """What a report of a network of L blocks holds, by field."""
    from tpcalc.cli.runs import depths_of, theorems_of, with_drawn
    from tpcalc.questions.check import check
    from tpcalc.questions.depth.shape import recursion
    from tpcalc.questions.studies import start_alone
    from tpcalc.training.written import network_program

    run = network.training
    alone = start_alone(network)
    verdict, numbers = check(run), depths_of(network, depths or (() if alone else SHOWN), PLACES)
    own: dict[str, Any] = {}
    if alone:
        numbers = with_drawn(network, numbers, PLACES)
        own = {"theorems": theorems_of(network, verdict)}
    return own | {
        "model": {"Network": run.network.words, "Parameterization": run.parameterization.text},
        "program_text": str(network_program(run.network, run.parameterization, 1, 1)),
        "check": verdict,
        "depths": numbers,
        "formulas": recursion(run),
        "phases": _diagram(network),
    }


def _diagram(network: Network) -> PhaseDiagram | None:
    """Where the powers of L stand among all others; none where a network fixes its own."""
    from tpcalc.dsl import symbol
    from tpcalc.networks.architectures.resnet import ResNet
    from tpcalc.program.along import FRESH, along_of
    from tpcalc.questions.phases import phases
    from tpcalc.questions.studies import start_alone

    run, steps = network.training, 2
    if not isinstance(run.network, ResNet):
        return None
    if start_alone(network):
        law = along_of(run.network.along).row.name
        if law not in ("fgn", FRESH) or run.network.shared or run.parameterization.deep is not None:
            return None
        opened = replace(
            run.network, alpha=symbol("alpha"), hurst=symbol("H"), along=FRESH, law="gaussian"
        )
        return phases(run.replace(network=opened, steps=0), box=REGULARITY)
    opened = replace(run.network, alpha=symbol("alpha"))
    powers = {} if run.parameterization.deep is None else {"parameterization": "mup"}
    free = run.replace(network=opened, lr_depth=symbol("gamma"), steps=steps, **powers)
    return phases(free, box=BOX)
