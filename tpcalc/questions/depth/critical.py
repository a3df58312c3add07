"""``critical_powers``: the powers of 1/L between explosion and identity, read from the program."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from tpcalc.errors import EvaluationError, UsageError
from tpcalc.networks.architectures.resnet import ResNet
from tpcalc.questions.depth.check import depth_check
from tpcalc.questions.depth.rates import has_paths
from tpcalc.results import DepthVerdict
from tpcalc.training.training import Training


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


def verdict_at(network: ResNet, alpha: Fraction) -> DepthVerdict:
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
