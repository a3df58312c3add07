"""Cases 45 to 49 of recipes: blocks of two maps and two norms, and Adam, in the depth."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import tpcalc as tp
from tpcalc import L

HALF = Fraction(1, 2)
WORDS = {  # alpha, gamma, the word, the size of the change of the stream, whether blocks are linear
    "45": (0, 0, "unstable", None, None),
    "46": (HALF, 0, "unstable", "L^(1/2)", None),
    "47": (HALF, HALF, "feature-learning", "1", True),
    "48": (1, 0, "feature-learning", "1", False),
    "49": (1, HALF, "trivial", "L^(-1/2)", None),
}


def blocks(alpha: Fraction | int) -> type[tp.Network]:
    class Net(tp.Network):
        def __init__(self, t: Any) -> None:
            still: dict[str, Any] = {"rates": (0, 1)}
            self.t, self.enter = t, t.linear(t.n, "in", init=1, **still)
            self.read = t.linear(t.outputs, t.n, init="n^(-1)", **still)

        def forward(self, x: Any) -> Any:
            def block(layer: Any, h: Any) -> Any:
                own: dict[str, Any] = {"init": "n^(-1/2)", "rates": ("n^(-1)", 1)}
                up = self.t.linear(self.t.n, self.t.n, name=f"up{layer}", **own)
                down = self.t.linear(self.t.n, self.t.n, name=f"down{layer}", **own)
                return h + L**-alpha * down(tp.gelu(tp.layer_norm(up(tp.layer_norm(h)))))

            return self.read(self.t.repeat("L", self.enter(x), block))

    return Net


@pytest.mark.parametrize("case", WORDS)
def test_blocks_do_what_was_derived(case: str) -> None:
    alpha, gamma, word, size, linear = WORDS[case]
    found = tp.check(blocks(alpha), "own", optimizer="adam", lr_depth=gamma)
    assert found.verdict == word
    if size is not None:
        rows = {row.name: row.size for row in found.rows}
        assert rows["x[1]"] == size, rows
    if linear is not None:
        assert found.linearized == linear
