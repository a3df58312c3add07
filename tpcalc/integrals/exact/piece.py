"""A piece of a function of one Gaussian: what is integrated next to a polynomial.

Numbers stay constant expressions, so that one decomposition serves floats and formulas.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from tpcalc.functions import Expr, Fn, const
from tpcalc.functions.expr import mul
from tpcalc.functions.tape import evaluate

ZERO, ONE, TWO, HALF = const(0), const(1), const(2), const(Fraction(1, 2))


class Unsupported(Exception):
    """Nothing here integrates this; the caller turns to another way."""


@dataclass(frozen=True)
class Half:
    """A function of w = side * z + shift + sqrt(noise) * N, with N a fresh N(0, 1).

    Args:
        kind: ``"step"`` is 1 for w > 0 and 0 else; ``"sign"`` is 1 or -1 (its side is always 1).
        side: 1 or -1.
        shift: A constant.
        noise: The variance of the noise, a constant; 0 for a sharp edge.
    """

    kind: Literal["step", "sign"]
    side: int
    shift: Expr
    noise: Expr

    @property
    def sharp(self) -> bool:
        """Whether the edge is a point."""
        return self.noise == ZERO

    @property
    def edge(self) -> Expr:
        """The z at which w without its noise is 0."""
        return mul((const(-self.side), self.shift))


@dataclass(frozen=True)
class Wave:
    """cos or sin of ``frequency * z + phase``."""

    kind: Literal["cos", "sin"]
    frequency: Expr
    phase: Expr


@dataclass(frozen=True)
class Piece:
    """What stands next to a polynomial: all of it multiplied together.

    Args:
        square: a of exp(a z^2 + b z).
        slope: b of exp(a z^2 + b z).
        halves: Half-lines; at most one of them sharp.
        delta: The point of a Dirac delta.
        wave: A wave.
        positive: (side, p) of max(side * z, 0)^p, with p no integer.
        densities: Number of factors 1/sqrt(2 pi).
    """

    square: Expr = ZERO
    slope: Expr = ZERO
    halves: tuple[Half, ...] = ()
    delta: Expr | None = None
    wave: Wave | None = None
    positive: tuple[int, Fraction] | None = None
    densities: int = 0


Polynomial = dict[int, Expr]
Pieces = dict[Piece, Polynomial]
PLAIN = Piece()


@lru_cache(maxsize=4096)
def level(expr: Expr) -> float:
    """A constant expression as a float."""
    return float(evaluate(Fn(expr, 0), []))
