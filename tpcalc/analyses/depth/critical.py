"""``critical_powers``: the powers of 1/L between explosion and identity, read from the program."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from tpcalc.analyses.depth.check import depth_check
from tpcalc.catalog.architectures.resnet import ResNet
from tpcalc.catalog.training import Training
from tpcalc.errors import EvaluationError
from tpcalc.results import DepthVerdict

__all__ = ["Critical", "critical_powers", "verdict_at"]

SIDE = "n^(-1/2)"


class Critical(NamedTuple):
    """The power at which something is of order one: below it explodes, above it vanishes.

    Args:
        outputs: Of what all blocks add to the stream.
        gradients: Of what they add to its adjoint, the width first.
        side: Of what they add to the adjoint at a fixed width, a term of size n^(-1/2); None where
            there is none.
    """

    outputs: Fraction
    gradients: Fraction
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

    Args:
        network: A network of L blocks.

    Raises:
        EvaluationError: None of the powers that its sums ask for does so.

    Example:
        >>> net = ResNet("L", "relu", nonlin="between", layers=2, hurst="4/5")
        >>> list(map(str, critical_powers(net)))
        ['4/5', '3/5', '4/5']
    """
    first = verdict_at(network, Fraction(1))
    shown = [row for row in first.rows if row.name in ("x[0]", "dx[0]")]
    side = [1 + Fraction(row.L) for row in shown if SIDE in row.part]
    # Sums over pairs of blocks decide where single sums are below L^(1/4).
    tried = {1 + Fraction(row.L) for row in shown if SIDE not in row.part}
    found: dict[str, Fraction] = {}
    for power in sorted(tried | {Fraction(1, 4), Fraction(1, 2), Fraction(1)}):
        own = verdict_at(network, power)
        for name, verdict in (("outputs", own.outputs), ("gradients", own.gradients)):
            if verdict == "stationary":
                found.setdefault(name, power)
        if len(found) == 2:
            return Critical(found["outputs"], found["gradients"], max(side, default=None))
    raise EvaluationError(f"no critical power of {network.words} is found.")
