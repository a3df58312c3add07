"""First updates of networks whose matrices are correlated along the depth, by exponents."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

import tpcalc as tp
from tpcalc.finite.paths import draw_paths

Array = NDArray[np.float64]
ONE: dict[str, object] = {"nonlin": "post"}
TWO: dict[str, object] = {"nonlin": "between", "layers": 2}
# Of all of them updates push the stream by L^(1 - alpha - gamma).
CASES = [
    ("fgn(3/4)", ONE, "3/4", "1/4", "feature-learning"),
    ("fgn(3/4)", ONE, "3/4", "1/2", "trivial"),
    ("fgn(3/4)", ONE, "1", "0", "feature-learning"),
    ("fgn(3/4)", ONE, "1", "1/4", "trivial"),
    ("rbf(1/10)", ONE, "1", "0", "feature-learning"),
    ("rbf(1/10)", ONE, "1", "1/4", "trivial"),
    ("fgn(1/4)", ONE, "1/2", "3/4", "trivial"),
    ("fgn(3/4)", TWO, "3/4", "1/2", "trivial"),
]
NETWORK = {"width": 48, "networks": 8}


def verdict(law: str, shape: dict[str, object], alpha: str, gamma: str, act: str = "tanh"):
    net = tp.ResNet("L", act, alpha=alpha, along=law, **shape)
    return tp.check(net, "mup", lr_depth=gamma, steps=2)


def pushed(depth: int, law: str, layers: int, alpha: float, gamma: float, act: str) -> Array:
    """Logarithms of how far a first update moves the outputs of networks, blocks alone trained."""
    n, a, rows = NETWORK["width"], depth**-alpha, []
    for seed in range(NETWORK["networks"]):
        rng = np.random.default_rng([seed, depth])
        w = [
            draw_paths(law, depth, n * n, rng).T.reshape(depth, n, n) / n**0.5
            for _ in range(layers)
        ]
        start, readout = rng.standard_normal(n), rng.standard_normal(n)

        def forward(w: list[Array] = w, x: Array = start) -> tuple[Array, list[Array], list[Array]]:
            entered, read = [], []
            for k in range(depth):
                entered.append(x)
                read.append(w[0][k] @ x)
                value = np.tanh(read[k]) if act == "tanh" else read[k]
                x = x + a * (value if layers == 1 else w[1][k] @ value)
            return x, entered, read

        before, entered, read = forward()
        dx, lr = readout, depth ** (alpha - gamma)  # gradients of blocks are of size L^(-alpha)
        for k in reversed(range(depth)):
            value = np.tanh(read[k]) if act == "tanh" else read[k]
            slope = 1 - value**2 if act == "tanh" else np.ones(n)
            back = a * (dx if layers == 1 else w[1][k].T @ dx) * slope
            if layers == 2:
                w[1][k] += lr * a * np.outer(dx, value) / n
            dx, old = dx + w[0][k].T @ back, entered[k]
            w[0][k] += lr * np.outer(back, old) / n
        rows.append(np.log(np.mean((forward()[0] - before) ** 2)) / 2)
    return np.array(rows)


@pytest.mark.parametrize(("law", "shape", "alpha", "gamma", "expected"), CASES)
def test_verdicts(
    law: str, shape: dict[str, object], alpha: str, gamma: str, expected: str
) -> None:
    found = verdict(law, shape, alpha, gamma)
    assert (found.verdict, found.status, found.steps) == (expected, "derived", 2)
    drifts = [row for row in found.rows if row.name == "x[1]" and row.part.startswith("drift")]
    (push,) = {row.L.constant for row in drifts}
    assert push == 1 - Fraction(alpha) - Fraction(gamma)
    assert {row.status for row in drifts} == {"bound" if law == "fgn(1/4)" else "derived"}


@pytest.mark.slow
@pytest.mark.parametrize(("law", "shape", "alpha", "gamma", "expected"), CASES)
def test_networks_move_by_these_powers(
    law: str, shape: dict[str, object], alpha: str, gamma: str, expected: str
) -> None:
    power = 1 - float(Fraction(alpha)) - float(Fraction(gamma))
    asked = (law, 1 if shape is ONE else 2, float(Fraction(alpha)), float(Fraction(gamma)), "tanh")
    few, many = pushed(64, *asked), pushed(512, *asked)
    slope = (many.mean() - few.mean()) / np.log(8)
    error = np.hypot(few.std(ddof=1), many.std(ddof=1)) / len(few) ** 0.5 / np.log(8)
    assert abs(slope - power) < 5 * error
    assert error < 0.06


def test_without_powers_of_updates_the_start_is_asked() -> None:
    net = tp.ResNet("L", "tanh", alpha="3/4", along="fgn(3/4)", **ONE)
    found = tp.check(net, "mup", steps=2)
    assert (found.verdict, found.steps) == ("stationary", 0)
    assert any("lr_depth" in note for note in found.notes)


@pytest.mark.parametrize("law", ["fgn(9/10)", "rbf(1/5)"])
def test_the_gamma_at_which_features_move(law: str) -> None:
    alpha = "9/10" if law.startswith("fgn") else "1"
    found = tp.solve(tp.ResNet("L", "tanh", alpha=alpha, along=law, **ONE), "mup")
    assert found.verdict == "feature-learning"
    assert {rate.update.constant for rate in found.rates} == {1 - Fraction(alpha)}


def test_an_explosion_of_the_start_is_one_of_training() -> None:
    found = verdict("fgn(3/4)", ONE, "1/2", "1/2")
    assert (found.verdict, found.status) == ("unstable", "proved")
    assert found.facts[0].startswith("x[0], the stream, grows")


def test_what_may_cancel_is_a_bound() -> None:
    found = verdict("fgn(1/4)", ONE, "3/8", "7/8", "identity")
    assert (found.verdict, found.stable_start, found.stable) == ("undecided", True, None)
    assert "may grow" in found.facts[0] and "at most" in found.facts[0]
    assert any("cancel" in note for note in found.notes)
    few, many = (pushed(depth, "fgn(1/4)", 1, 0.375, 0.875, "identity") for depth in (16, 128))
    assert many.mean() < few.mean()  # it is no growth: returns of neighbours cancel
