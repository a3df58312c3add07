"""Networks that are written once and read twice: by tpcalc, and by torch with explicit weights.

A forward pass is a function of a ``Reading`` and an input. ``Traced`` records it as a network of
tpcalc; ``tests.fuzz.explicit`` computes it. Neither knows of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import tpcalc as tp

__all__ = ["RATE", "Forward", "Power", "Reading", "Weights", "network"]

Forward = Callable[["Reading", Any], Any]
RATE = 0.3  # of all runs; powers of n and numbers of parameters come on top


@dataclass(frozen=True)
class Power:
    """A number times powers of the width n and of the depth L."""

    number: Fraction = Fraction(1)
    n: Fraction = Fraction(0)
    L: Fraction = Fraction(0)

    def at(self, width: int, depth: int = 1) -> float:
        """Its value."""
        return float(self.number) * float(width) ** float(self.n) * float(depth) ** float(self.L)

    @property
    def text(self) -> str:
        """A number times a power of n, as ``init`` and ``rates`` take it."""
        return f"{self.number} n^({self.n})" if self.number else "0"


@dataclass(frozen=True)
class Weights:
    """The weights of a map or of a bias: how they start, and the factor of their learning rate."""

    init: Power
    rate: Power = Power()


class Reading(Protocol):
    """What a forward pass is written with."""

    def linear(
        self, name: str, kind: str, x: Any, weights: Weights, bias: Weights | None = None
    ) -> Any:
        """A map: ``kind`` is ``"input"``, ``"hidden"`` or ``"readout"``."""

    def act(self, name: str, x: Any) -> Any:
        """An activation, entry by entry; ``"identity"`` is none."""

    def norm(self, kind: str, x: Any) -> Any:
        """``"rms"``, ``"layer"``, or ``"none"``."""

    def times(self, power: Power, x: Any) -> Any:
        """A number and powers of n and L times a vector."""

    def repeat(self, x: Any, block: Callable[[Any], Any]) -> Any:
        """A block L times, with weights of their own."""

    def watch(self, label: str, x: Any) -> None:
        """Report a vector."""


@dataclass
class Traced:
    """The reading of tpcalc.

    Args:
        t: The tracer of a network.
        named: A parameterization that has all powers itself; None: they are written out.
    """

    t: Any
    named: bool = False

    def linear(
        self, name: str, kind: str, x: Any, weights: Weights, bias: Weights | None = None
    ) -> Any:
        t, zero = self.t, Fraction(0)
        out, into = {"input": (t.n, "in"), "hidden": (t.n, t.n), "readout": (t.outputs, t.n)}[kind]
        if self.named:
            starts = [zero if w is not None and not w.init.number else 1 for w in (weights, bias)]
            return t.linear(out, into, bias is not None, name=name, starts=starts)(x)
        rates = weights.rate.text, (bias or weights).rate.text
        shift: Any = False if bias is None else bias.init.text
        return t.linear(out, into, shift, name=name, init=weights.init.text, rates=rates)(x)

    def act(self, name: str, x: Any) -> Any:
        return x if name == "identity" else getattr(tp, name)(x)

    def norm(self, kind: str, x: Any) -> Any:
        return x if kind == "none" else getattr(tp.layers, f"{kind}_norm")(x)

    def times(self, power: Power, x: Any) -> Any:
        for base, exponent in ((tp.n, power.n), (tp.L, power.L)):
            x = base**exponent * x if exponent else x
        return x if power.number == 1 else power.number * x

    def repeat(self, x: Any, block: Callable[[Any], Any]) -> Any:
        return self.t.repeat("L", x, lambda _, x: block(x))

    def watch(self, label: str, x: Any) -> None:
        self.t.watch("x", label, x)


def network(forward: Forward, named: bool = False) -> Any:
    """The network of a forward pass, as tpcalc takes it."""

    def written(t: Any, x: Any) -> Any:
        return forward(Traced(t, named), x)

    return tp.network(written)
