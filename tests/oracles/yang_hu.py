"""The classification of abc-parametrizations in closed form, for tests only.

Yang and Hu, Feature learning in infinite-width neural networks, Theorems 3.2, 3.3, 3.4 and 3.6:
weights n^(-a_l) w with entries N(0, n^(-2 b_l)), learning rate n^(-c), one c for all layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

HALF, ONE = Fraction(1, 2), Fraction(1)
QUARTERS = tuple(Fraction(k, 4) for k in range(5))


@dataclass(frozen=True)
class ABC:
    """A parametrization; the tuples run over the layers 1..L+1."""

    a: tuple[Fraction, ...]
    b: tuple[Fraction, ...]
    c: Fraction

    @property
    def depth(self) -> int:
        return len(self.a) - 1

    @property
    def word(self) -> str:
        rows = (self.a, self.b, (self.c,) * len(self.a))
        return "abc:" + ";".join(",".join(str(entry) for entry in row) for row in rows)

    @property
    def r(self) -> Fraction:
        """How fast the features move: by n^(-r)."""
        hidden = min(2 * a + (k == 0) for k, a in enumerate(self.a[:-1]))
        return min(self.a[-1] + self.b[-1], 2 * self.a[-1] + self.c) + self.c - 1 + hidden

    @property
    def stable_at_start(self) -> bool:
        first, *hidden, last = (a + b for a, b in zip(self.a, self.b, strict=True))
        return first == 0 and all(s == HALF for s in hidden) and last >= HALF

    @property
    def stable(self) -> bool:
        last = self.a[-1] + self.b[-1]
        moving = self.r >= 0 and 2 * self.a[-1] + self.c >= 1 and last + self.r >= 1
        return self.stable_at_start and moving

    @property
    def verdict(self) -> str:
        if not self.stable:
            return "unstable"
        last = self.a[-1] + self.b[-1]
        if last + self.r != 1 and 2 * self.a[-1] + self.c != 1:
            return "trivial"
        return "feature-learning" if self.r == 0 else "kernel"


def drawn(rng: Any, depth: int) -> ABC:
    """A random parametrization, most of them on a wall between two classes.

    Written by what no gauge moves, the scales a_l + b_l and alpha_l = 2 a_l + c; then r is
    min(scale of the output, alpha of the output) - 1 + min over l of (alpha_l + [l = 1]).
    """

    def pick(*values: Fraction | int) -> Fraction:
        return Fraction(values[int(rng.integers(len(values)))])

    scales = [Fraction(0), *[HALF] * (depth - 1), pick(HALF, HALF, HALF * 3 / 2, ONE, ONE, ONE)]
    if rng.random() < 0.08:
        scales[int(rng.integers(depth))] -= QUARTERS[1]
    out = pick(ONE, ONE, ONE, *(1 + q for q in QUARTERS), ONE - QUARTERS[1])
    r = pick(0, 0, 1 - scales[-1], 1 - scales[-1], *QUARTERS, -QUARTERS[1])
    least = r + 1 - min(scales[-1], out)
    alphas = [least + pick(*QUARTERS, 0, 0) - (k == 0) for k in range(depth)]
    chosen = int(rng.integers(depth))
    alphas[chosen] = least - (chosen == 0)
    c = pick(*QUARTERS, *(-q for q in QUARTERS))
    a = tuple((alpha - c) / 2 for alpha in (*alphas, out))
    return ABC(a, tuple(s - x for s, x in zip(scales, a, strict=True)), c)
