"""Networks of L blocks on the command line: which depths are asked, and what a page says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpcalc.cli.option import Flags
    from tpcalc.results import PhaseDiagram
    from tpcalc.study.model import Network

__all__ = ["OO", "deep", "page"]

OO = "oo"
SHOWN = ("4", "8", "16", OO)
PLACES = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
BOX = {"alpha": (Fraction(1, 4), Fraction(3, 2)), "gamma": (Fraction(-1, 2), Fraction(1))}


def deep(model: str, flags: Flags) -> tuple[Network, tuple[str, ...]] | None:
    """A network of L blocks, and the depths that are asked of it; None of another model.

    ``--depth 16,64,oo`` asks for numbers of blocks and for the limit; ``L`` leaves it open.
    """
    from tpcalc.study import open_network
    from tpcalc.study.models import is_program

    texts = [str(flag.value) for flag in flags if flag.key == "model.depth"]
    words = tuple(word.strip() for word in texts[-1].split(",")) if texts else ()
    if texts and (
        texts[-1].isdigit() or not all(word.isdigit() or word in ("L", OO) for word in words)
    ):
        return None  # a number, or what is refused where it is read
    if not texts and ("." not in model or is_program(model)):
        return None
    symbol = [replace(flag, value="L") if flag.key == "model.depth" else flag for flag in flags]
    network = open_network(model, symbol)
    if not network.training.network.smallest.repeats:
        return None
    return network, () if words in ((), ("L",)) else words


def page(network: Network, depths: Sequence[str]) -> dict[str, Any]:
    """What a report of a network of L blocks holds, by field."""
    from tpcalc.analyses.check import check
    from tpcalc.analyses.depth.formulas import recursion
    from tpcalc.catalog.written import network_program
    from tpcalc.cli.runs import depths_of

    run = network.training
    return {
        "model": {"Network": run.network.words, "Parameterization": run.parameterization.text},
        "program_text": str(network_program(run.network, run.parameterization, 1, 1)),
        "formulas": recursion(run),
        "depth": check(run),
        "depths": depths_of(network, depths or SHOWN, PLACES),
        "phases": _diagram(network),
    }


def _diagram(network: Network) -> PhaseDiagram | None:
    """Where the powers of L stand among all others; none where a network fixes its own."""
    from tpcalc.analyses.phases import phases
    from tpcalc.catalog.architectures.resnet import ResNet
    from tpcalc.dsl import symbol

    run, steps = network.training, 2
    if not isinstance(run.network, ResNet):
        return None
    opened = replace(run.network, alpha=symbol("alpha"))
    powers = {} if run.parameterization.deep is None else {"parameterization": "mup"}
    free = run.replace(network=opened, lr_depth=symbol("gamma"), steps=steps, **powers)
    return phases(free, box=BOX)
