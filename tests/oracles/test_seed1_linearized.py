"""Blocks of two layers beside the same blocks linear in their updates: case A29 of spec 1.

One program trains both networks from the same initial matrices with gradient descent at
alpha = gamma = 1/2: relu, mean subtraction, five steps on xi = y = 1, all sizes 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from agree import agree

import tpcalc as tp
from tpcalc.errors import StudyError

STEPS = 5
DATA = tp.Samples(((1.0,),), ((1.0,),))
STILL = {"input": {"lr": 0}, "readout": {"lr": 0}}
PUBLISHED = {4: 0.311, 16: 0.169, 64: 0.082}
Pairs = list[tuple[tp.Tracer, tp.Tracer]]


def hat(matrix: tp.Tracer, x: tp.Tracer) -> tp.Tracer:
    return tp.n**-0.5 * (matrix @ x)


def combined(t: tp.Tracer, rate: float, pairs: Pairs, x: tp.Tracer) -> tp.Tracer | int:
    """The total update of a matrix, -rate sum d e^T / n, times x."""
    return sum((-rate * t.inner(e, x) * d for d, e in pairs), 0)


def turned(pairs: Pairs) -> Pairs:
    return [(e, d) for d, e in pairs]


class Network:
    """A network of L blocks in training; ``linear``: its blocks are linear in their updates.

    Linear blocks are phi(h) + phi'(h) [dW2 phi(g)] + phi'(h) [W2 (phi'(g) dW1 x)] with g = W1 x and
    h = W2 phi(g) of the initial matrices (section 9.2 of Tensor Programs VI).
    """

    def __init__(self, t: tp.Tracer, matrices: Sequence[tuple], linear: bool) -> None:
        self.t, self.matrices, self.linear = t, matrices, linear
        self.size = len(matrices) ** -0.5
        self.low: list[Pairs] = [[] for _ in matrices]
        self.top: list[Pairs] = [[] for _ in matrices]

    def forward(self, x: tp.Tracer) -> tp.Tracer:
        self.seen = []
        for (first, second), low, top in zip(self.matrices, self.low, self.top, strict=True):
            start, moved = hat(first, x), combined(self.t, self.size, low, x)
            g = start if self.linear else start + moved
            p = tp.relu(g)
            h, above = hat(second, p), combined(self.t, self.size, top, p)
            if not self.linear:
                h = h + above
            branch = tp.relu(h)
            if self.linear and low:
                branch = branch + tp.step(h) * (above + hat(second, tp.step(g) * moved))
            self.seen.append((x, g, p, h))
            x = x + self.size * (branch - self.t.mean(branch))
        return x

    def update(self, dx: tp.Tracer) -> None:
        """A step with the gradient at the last layer: that of this network."""
        for place in reversed(range(len(self.matrices))):
            (first, second), (x, g, p, h) = self.matrices[place], self.seen[place]
            low, top = self.low[place], self.top[place]
            dh = tp.step(h) * (dx - self.t.mean(dx))
            start, moved = hat(second.T, dh), combined(self.t, self.size, turned(top), dh)
            whole = tp.step(g) * (start + moved)
            dg = tp.step(g) * start if self.linear else whole
            back = hat(first.T, whole) + combined(self.t, self.size, turned(low), dg)
            low.append((dg, x))
            top.append((dh, p))
            dx = dx + self.size * back


def both(blocks: int, steps: int = STEPS) -> Callable[[tp.Tracer], None]:
    @tp.program
    def compared(t: tp.Tracer) -> None:
        u, v = t.gaussian("U"), t.gaussian("nV")
        matrices = [(t.matrix(f"W{k}.1"), t.matrix(f"W{k}.2")) for k in range(1, blocks + 1)]
        networks = [Network(t, matrices, linear) for linear in (False, True)]
        for _ in range(steps):
            for network in networks:
                x = network.forward(u)
                network.update((t.inner(x, v) - 1) * v)
        full, linear = (network.forward(u) for network in networks)
        t.output("size", t.inner(full, full))
        t.output("gap", t.inner(full - linear, full - linear))

    return compared


def ratios(blocks: int, seeds: int) -> np.ndarray:
    """|x - x'| / |x| of the last features at width 600, for each seed."""
    found = tp.simulate(both(blocks), [600], seeds, seed=1)
    values = {row.name: np.array(row.values) for row in found.rows}
    return np.sqrt(values["gap"] / values["size"])


def assert_falls(depths: Sequence[int], seeds: int) -> None:
    """The published figures within the spread of a seed, and a slope of -1/2 in the depth."""
    found = {blocks: ratios(blocks, seeds) for blocks in depths}
    for blocks, values in found.items():
        assert abs(values.mean() - PUBLISHED[blocks]) < 2 * values.std(ddof=1) + 5e-4, blocks
    one, two = found[depths[0]], found[depths[-1]]
    gap = math.log(depths[-1] / depths[0])
    slope = math.log(two.mean() / one.mean()) / gap
    error = math.hypot(*(r.std(ddof=1) / r.mean() / seeds**0.5 for r in (one, two))) / gap
    assert error < 0.06
    assert abs(slope + 0.5) < 3 * error


def test_S1_31_A29_at_infinite_width() -> None:
    """One step of two blocks: the limit of the program against its networks."""
    program = both(2, steps=1)
    limit = tp.limit(program, seed=2, samples=2**13)
    found = tp.simulate(program, [1024], 64, seed=3)
    for row in found.rows:
        error = float(np.std(row.values, ddof=1)) / len(row.values) ** 0.5
        bias = 20 / 1024 * abs(limit[row.name].value)
        gap = abs(float(np.mean(row.values)) - limit[row.name].value)
        assert gap < 5 * math.hypot(error, limit[row.name].stderr) + bias
    first = tp.limit(both(2, steps=0))
    agree(first["gap"], 0.0)
    agree(first["size"], (1 + (0.5 - 0.5 / math.pi) / 4) ** 2)


def test_S1_31_A29() -> None:
    assert_falls((4, 16), 8)


@pytest.mark.slow
def test_S1_31_A29_at_64_blocks() -> None:
    assert_falls((4, 16, 64), 8)


def run(act: str, linear: bool, steps: int = 1) -> tp.Training:
    net = tp.ResNet("L", act, nonlin="post", center=True, layers=2)
    made = tp.depth.linearized(net) if linear else net
    return tp.Training(made, "depth-mup", DATA, steps=steps, groups=STILL)


def test_S1_31_A29_the_public_call_is_the_program_that_is_written_out() -> None:
    """The mean square of the last features after a step, of two blocks of relu."""

    @tp.program
    def linear(t: tp.Tracer) -> None:
        u, v = t.gaussian("U"), t.gaussian("nV")
        network = Network(t, [(t.matrix(f"W{k}.1"), t.matrix(f"W{k}.2")) for k in (1, 2)], True)
        x = network.forward(u)
        network.update((t.inner(x, v) - 1) * v)
        t.output("size", t.inner(*[network.forward(u)] * 2))

    want = tp.limit(linear, samples=2**12, seed=1)["size"]
    found = tp.limit(tp.at_depth(run("relu", True), 2), samples=2**12, seed=2)[
        "x[2,1,0]"
    ].second_moment
    assert abs(want.value - found.value) < 5 * math.hypot(want.stderr, found.stderr)
    whole = tp.limit(both(2, steps=1), outputs=["size"], samples=2**12, seed=3)["size"]
    assert abs(whole.value - found.value) > 5 * math.hypot(whole.stderr, found.stderr)


@pytest.mark.parametrize("act", ["relu", "gelu"])
def test_S1_31_networks_agree_with_the_limit(act: str) -> None:
    names = ["f[1,0]", "f[2,0]"]
    small = tp.at_depth(run(act, True, steps=2), 2)
    limit = tp.limit(small, outputs=names, samples=2**11, seed=2)
    networks = tp.simulate(small, [512, 1024], 48, outputs=names, seed=3)
    for name in names:
        near, far = (np.array(r.values) for r in networks.rows if r.name == name)
        value = 2 * far.mean() - near.mean()  # without the part of order 1 / n
        error = math.hypot(2 * far.std(ddof=1), near.std(ddof=1)) / len(far) ** 0.5
        assert abs(value - limit[name].value) < 5 * math.hypot(error, limit[name].stderr)


def test_S1_31_what_is_not_linearized() -> None:
    for shape in ({"shared": True}, {"bias_variance": 1}, {"along": "fgn(3/4)"}):
        with pytest.raises(StudyError, match="Leave out"):
            tp.depth.linearized(tp.ResNet("L", "relu", **shape))
    # Where one update is all there is, a linear block is itself; of two their product is left out.
    for layers, same in ((1, True), (2, False)):
        nets = [tp.ResNet("L", "identity", nonlin="post", layers=layers)] * 2
        nets[1] = tp.depth.linearized(nets[1])
        runs = (tp.Training(net, "depth-mup", DATA, steps=2, groups=STILL) for net in nets)
        one, two = (tp.limit(tp.at_depth(own, 2), outputs=["f[2,0]"])["f[2,0]"] for own in runs)
        assert (abs(one.value - two.value) < 1e-9) is same
