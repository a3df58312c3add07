"""What repeated blocks do to the stream and its adjoint at the start, beside recursions in numpy.

The recursions are those of mean squares at infinite width, with a Gauss rule of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np
import pytest
from scipy.special import erf

import tpcalc as tp
from tpcalc import L
from tpcalc.errors import ScaleError, UsageError

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(201)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
ACTS = {
    "relu": (lambda z: np.maximum(z, 0), lambda z: 1.0 * (z > 0)),
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "erf": (erf, lambda z: 2 / np.sqrt(np.pi) * np.exp(-(z**2))),
    "sin": (np.sin, np.cos),
}
rms = tp.layers.rms_norm


def average(fn: Callable, square: float = 1.0) -> float:
    return float(WEIGHTS @ fn(np.sqrt(square) * NODES))


def repeated(block: Callable, maps: int = 1):
    @tp.network
    def net(t, x):
        h = t.linear(t.n, "in", name="emb")(x)

        def step(layer, h):
            return block(h, *(t.linear(t.n, t.n, name=f"w{k}{layer}") for k in range(maps)))

        return t.linear(t.outputs, t.n, name="read")(t.repeat("L", h, step))

    return net


def rows(found) -> dict:
    return {row.name: row for row in found.rows}


def test_a_norm_behind_a_block_keeps_the_stream() -> None:
    net = repeated(lambda h, w: rms(h + w(tp.relu(h))))
    found = tp.check(net, "mup", steps=1)
    x, dx = rows(found)["x[0]"], rows(found)["dx[0]"]
    assert (x.size, x.status) == ("1", "proved")
    assert (dx.size, dx.status) == ("1", "derived")  # (1 + 1/2) / (1 + 1/2), by numbers
    assert found.stable_start is True
    # L gradients of order one, all of one sign in the output: with a constant rate L^1.
    assert found.verdict == "unstable" and found.status == "derived"
    assert tp.check(net, "mup", steps=1, lr_depth=2).verdict == "trivial"
    assert tp.check(net, "mup", steps=1, lr_depth=1).verdict == "undecided"
    start = tp.check(net, "mup", steps=0)
    assert (start.outputs, start.gradients) == ("stationary", "stationary")
    with pytest.raises(ScaleError, match="first updates of all blocks"):
        tp.solve(net, "mup")


def test_a_norm_behind_a_block_of_tanh_makes_gradients_explode() -> None:
    found = tp.check(repeated(lambda h, w: rms(h + w(tp.tanh(h)))), "mup", steps=1)
    act, slope = ACTS["tanh"]
    factor = (1 + average(lambda z: slope(z) ** 2)) / (1 + average(lambda z: act(z) ** 2))
    dx = rows(found)["dx[0]"]
    assert (dx.size, dx.form) == ("exp(L^(1))", "grows")
    assert f"{factor:.6g}" in found.facts[1] and found.verdict == "unstable"


def test_weights_of_skip_and_branch_whose_squares_are_one_keep_everything() -> None:
    found = tp.check(repeated(lambda h, w: 0.6 * h + 0.8 * w(h)), "mup", steps=1)
    assert {row.size for row in found.rows} == {"1"} and found.stable_start is True
    grown = tp.check(repeated(lambda h, w: 0.6 * h + 0.9 * w(h)), "mup", steps=1)
    assert {(row.form, str(row.L)) for row in grown.rows} == {("grows", "1")}
    assert f"{0.36 + 0.81:.6g}" in grown.facts[0]


@pytest.mark.parametrize("power", [-1, "-1/2"])
def test_a_skip_of_one_half_shrinks_to_nothing(power: object) -> None:
    found = tp.check(repeated(lambda h, w: h / 2 + L**power * w(tp.tanh(h))), "mup", steps=1)
    assert {(row.form, str(row.L)) for row in found.rows} == {("shrinks", "1")}
    assert "0.25" in found.facts[0] and found.verdict == "trivial"


def test_what_is_added_stays_where_a_skip_shrinks() -> None:
    found = tp.check(repeated(lambda h, w: h / 2 + L**-1 * w(tp.cos(h))), "mup", steps=0)
    x, dx = rows(found)["x[0]"], rows(found)["dx[0]"]
    assert (x.form, str(x.L)) == ("power", "-1") and (dx.form, str(dx.L)) == ("shrinks", "1")
    square, last = 1.0, {}
    for depth in (100, 1000):
        for _ in range(depth):
            square = square / 4 + depth**-2 * average(lambda z: np.cos(z) ** 2, square)
        last[depth] = square
    assert log(last[1000] / last[100]) / 2 / log(10) == pytest.approx(-1, abs=1e-3)


def test_tanh_without_a_skip_falls_like_a_power() -> None:
    found = tp.check(repeated(lambda h, w: w(tp.tanh(h))), "mup", steps=1)
    x, dx = rows(found)["x[0]"], rows(found)["dx[0]"]
    act, slope = ACTS["tanh"]
    squares, adjoint = {}, {}
    q, p = 1.0, 0.0
    for depth in range(1, 20001):
        p += log(average(lambda z, q=q: slope(z) ** 2, q))
        q = average(lambda z: act(z) ** 2, q)
        squares[depth], adjoint[depth] = log(q), p
    for row, logs in ((x, squares), (dx, adjoint)):
        measured = (logs[20000] - logs[2000]) / 2 / log(10)
        said = float(row.real.value.value if row.real else row.L.constant or 0)
        assert said == pytest.approx(measured, abs=2e-3)  # logarithms of the depth are left
    assert (str(x.L), x.status) == ("-1/2", "derived") and found.verdict == "undecided"


@pytest.mark.parametrize("gain", [0.9, 1.2])
def test_tanh_without_a_skip_off_the_edge_of_chaos(gain: float) -> None:
    found = tp.check(repeated(lambda h, w: gain * w(tp.tanh(h))), "mup", steps=0)
    x, dx = rows(found)["x[0]"], rows(found)["dx[0]"]
    if gain < 1:
        assert (x.form, dx.form) == ("shrinks", "shrinks") and found.verdict == "vanishing"
        return
    act, slope = ACTS["tanh"]
    q = 1.0
    for _ in range(2000):
        q = gain**2 * average(lambda z: act(z) ** 2, q)
    assert x.size == "1" and f"{q:.5g}"[:6] in found.facts[0]
    assert (
        dx.form == "grows"
        and f"{gain**2 * average(lambda z: slope(z) ** 2, q):.5g}"[:6] in (found.facts[1])
    )


@pytest.mark.parametrize("name", list(ACTS))
@pytest.mark.parametrize("power", [0, "-1/4"])
def test_adjoints_behind_norms_of_a_growing_stream(name: str, power: object) -> None:
    """E act'(z)^2 / (2 E act(z)^2), times what the stream grows by."""
    net = repeated(lambda h, w: h + L**power * w(getattr(tp, name)(rms(h))))
    found = tp.check(net, "mup", steps=1)
    act, slope = ACTS[name]
    ratio = average(lambda z: slope(z) ** 2) / average(lambda z: act(z) ** 2)
    if name == "relu":
        ratio = 1.0  # a rule with a point at the kink gives it half
    x, dx = rows(found)["x[0]"], rows(found)["dx[0]"]
    share = 0.5 if power == 0 else 0.25
    assert (str(x.L), x.status) == ({0: "1/2", "-1/4": "1/4"}[power], "proved")
    assert str(dx.L) == "" and dx.real is not None
    assert abs(dx.real.value.value - share * ratio) <= 1e-9 + dx.real.value.stderr
    assert found.verdict == "unstable" and "H/G" in dx.real.formula


def test_growth_without_a_norm_is_told_by_what_functions_are_far_out() -> None:
    def forms(act: object, power: object = 0) -> list:
        net = repeated(lambda h, w: h + L**power * w(act(h)))
        found = rows(tp.check(net, "mup", steps=0))
        return [(found[name].form, str(found[name].L)) for name in ("x[0]", "dx[0]")]

    assert forms(tp.relu) == forms(tp.gelu) == [("grows", "1"), ("grows", "1")]
    assert forms(tp.relu, "-1/4") == [("grows", "1/2"), ("grows", "1/2")]
    # q grows like l, and E tanh'^2 falls like q^(-1/2): the log of the adjoint is like L^(1/2).
    assert forms(tp.tanh) == [("power", "1/2"), ("grows", "1/2")]
    assert forms(tp.tanh, "-1/4") == [("power", "1/4"), ("grows", "1/4")]
    assert forms(tp.sin) == [("power", "1/2"), ("grows", "1")]


def test_what_blocks_add_and_take_off_meet_at_a_power() -> None:
    """q' = (E tanh^2 L^(-1/2) - 2 q L^(-3/4)): q = .197 L^(1/4), where the adjoint grows."""
    block = repeated(lambda h, w: h - L ** "-3/4" * h + L ** "-1/4" * w(tp.tanh(rms(h))))
    found = rows(tp.check(block, "mup", steps=0))
    act, slope = ACTS["tanh"]
    ratio = average(lambda z: slope(z) ** 2) / average(lambda z: act(z) ** 2)
    assert ratio > 1  # -2 + E tanh'^2 / q > 0 there
    assert found["x[0]"].size == "L^(1/8)" and found["dx[0]"].size == "exp(L^(1/4))"


@pytest.mark.slow
def test_means_of_streams_are_followed_or_named() -> None:
    """A layer norm divides by the variance of relu, a norm of mean squares does not."""
    norm = tp.layers.layer_norm
    factor = 0.5 / (0.5 - 1 / (2 * np.pi))
    found = tp.check(repeated(lambda h, w: L ** "-1/2" * tp.relu(w(norm(h)))), "mup", steps=0)
    assert f"{factor:.6g}" in found.facts[1] and found.gradients == "unstable"
    kept = tp.check(repeated(lambda h, w: L ** "-1/2" * tp.relu(w(rms(h)))), "mup", steps=0)
    assert kept.gradients == "" and rows(kept)["x[0]"].size == "L^(-1/2)"
    # m' = m + q^(1/2) / (2 pi)^(1/2), q' = 3/2 q + 2 m (q / (2 pi))^(1/2)
    m = q = 1.0
    for _ in range(200):
        m, q = m + (q / (2 * np.pi)) ** 0.5, 1.5 * q + 2 * m * (q / (2 * np.pi)) ** 0.5
        last, (m, q) = q, (m / q**0.5, 1.0)
    grown = tp.check(repeated(lambda h, w: h + tp.relu(w(h))), "mup", steps=0)
    assert f"{last:.5g}"[:6] in grown.facts[0] or rows(grown)["x[0]"].form == "grows"
    added = tp.check(repeated(lambda h, w: h + tp.relu(w(norm(h)))), "mup", steps=0)
    assert [row.name for row in added.rows] == ["x[0]"]  # the variance is of smaller order
    assert "not known" in added.facts[1]


def test_norms_of_a_small_stream_divide_by_its_size() -> None:
    block = repeated(lambda h, w: 4 / 5 * L ** "-1/2" * w(tp.tanh(rms(h))))
    found = tp.check(block, "mup", steps=0)
    act, slope = ACTS["tanh"]
    factor = average(lambda z: slope(z) ** 2) / average(lambda z: act(z) ** 2)
    assert f"{factor:.6g}" in found.facts[1] and rows(found)["dx[0]"].form == "grows"


def test_blocks_that_multiply_by_a_power_of_the_depth_have_a_logarithm() -> None:
    found = tp.check(repeated(lambda h, w: L ** "-1/2" * w(h)), "mup", steps=0)  # log q = -L log L
    assert {(row.form, str(row.L), row.status) for row in found.rows} == {
        ("shrinks", "1", "derived")
    }
    assert "by a power of L" in found.facts[0] and found.verdict == "vanishing"
    assert any("logarithm" in note for note in found.notes)


def test_what_numbers_do_not_tell_is_no_claim() -> None:
    """The first stream is L^(1/4), by its recursion; the first norm divides by another size."""
    mixed = tp.check(repeated(lambda h, w: h - L ** "-1/2" * h + tp.sin(w(h))), "mup", steps=0)
    assert mixed.rows == () and mixed.verdict == "undecided"
    small = tp.check(repeated(lambda h, w: 2 * L**-1 * w(rms(h))), "mup", steps=0)
    assert [(row.name, row.size) for row in small.rows] == [("x[0]", "L^(-1)")]
    assert "first blocks" in small.facts[1]


def test_a_start_that_decides_is_named() -> None:
    found = tp.check(repeated(lambda h, w: w(h * h)), "mup", steps=0)  # q' = 3 q^2
    assert found.verdict == "undecided" and "depends on the mean square" in found.facts[0]


def test_blocks_that_multiply_more_the_larger_the_stream() -> None:
    """q' = c q^2 along the depth is infinite at 1 / (c q) of it: nothing of it is proved."""
    found = tp.check(tp.ResNet("L", "relu^2", nonlin="post", center=True), "depth-mup", steps=1)
    assert found.verdict == "undecided" and found.stable_start is None
    assert "depends on the mean square that enters" in found.facts[0]
    assert {row.status for row in found.rows if row.name == "x[0]"} == {"derived"}
    normed = repeated(lambda h, w: h + L ** "-1/2" * w(tp.relu(rms(h)) ** 2))
    assert tp.check(normed, "mup", steps=0).verdict == "stationary"


def test_drifts_that_shrink_the_stream_are_no_growth() -> None:
    found = tp.check(
        repeated(lambda h, w: h - L ** "-1/2" * h + L ** "-1/4" * w(tp.tanh(h))), "mup", steps=0
    )
    assert rows(found)["x[0]"].size == "exp(-L^(1/2))"  # q' = (-2 + 1) L^(-1/2) q at most
    turned = tp.check(repeated(lambda h, w: -h + L ** "-1/2" * w(tp.tanh(h))), "mup", steps=0)
    assert rows(turned)["x[0]"].size == "1" and turned.verdict == "stationary"


def test_a_function_of_the_entries_of_the_stream_is_named() -> None:
    found = tp.check(repeated(lambda h, w: tp.tanh(h + w(h))), "mup", steps=1)
    assert found.verdict == "undecided" and found.rows == ()
    assert "applies a function to the entries of the stream" in found.facts[0]


def zero(front: object, steps: int, init: str = "0", **settings: object):
    @tp.network
    def net(t, x):
        h = t.linear(t.n, "in", init=1, name="emb")(x)

        def block(layer, h):
            return h + front * t.linear(t.n, t.n, init=init, name=f"b{layer}")(tp.tanh(h))

        h = t.repeat("L", h, block)
        return t.linear(t.outputs, t.n, init="n^(-1)", name="read")(h)

    return tp.check(net, "own", steps=steps, **settings)


def test_maps_that_start_at_zero_add_nothing_at_the_start() -> None:
    start = zero(1, 0)
    assert (start.verdict, start.status, start.rows) == ("identity", "proved", ())
    for front, verdict, size in (
        (1, "unstable", "L^(1)"),
        (L ** "-1/2", "feature-learning", "1"),
        (L**-1, "trivial", "L^(-1)"),
    ):
        found = zero(front, 1)
        assert found.verdict == verdict and rows(found)["x[1]"].size == size
        assert found.stable_start is True and zero(front, 2).verdict == verdict


def test_blocks_of_two_maps_the_last_of_which_starts_at_zero() -> None:
    @tp.network
    def net(t, x):
        h = t.linear(t.n, "in", init=1, name="emb")(x)

        def block(layer, h):
            a = t.linear(t.n, t.n, init="n^(-1/2)", name=f"a{layer}")
            b = t.linear(t.n, t.n, init="0", name=f"b{layer}")
            return h + b(tp.relu(L ** "-1/2" * a(h)))

        return t.linear(t.outputs, t.n, init="n^(-1)", name="read")(t.repeat("L", h, block))

    for steps in (1, 2):
        found = tp.check(net, "own", steps=steps)
        assert found.verdict == "feature-learning"
    first, second = found.rates
    assert (str(first.gradient), first.starts) == ("oo", False)  # a has no gradient before b moved
    assert (str(second.gradient), second.starts) == ("1/2", True)
    with pytest.raises(UsageError, match="first gradient of"):
        tp.check(net, "own", steps=1, lr_depth=0)


def vectors(block: Callable):
    @tp.network
    def net(t, x):
        h = t.linear(t.n, "in", name="emb")(x)
        h = t.repeat("L", h, lambda layer, h: block(t, layer, h))
        return t.linear(t.outputs, t.n, name="read")(h)

    return net


def test_gains_biases_and_scales_in_blocks() -> None:
    def mixed(t, layer, h):
        return t.linear(t.n, t.n, name=f"w{layer}")(tp.tanh(h))

    gain = vectors(
        lambda t, k, h: (
            h + L ** "-1/2" * t.linear(t.n, t.n, name=f"w{k}")(tp.tanh(t.gain(f"g{k}") * rms(h)))
        )
    )
    found = tp.check(gain, "mup", steps=2)
    assert found.verdict == "feature-learning"
    assert {(rate.label, str(rate.gradient)) for rate in found.rates} == {
        ("g{l}", "1/2"),
        ("w{l}", "1/2"),
    }
    bias = vectors(lambda t, k, h: h + t.vector(f"b{k}", start=0) + L ** "-1/2" * mixed(t, k, h))
    found = tp.check(bias, "mup", steps=1)  # a constant rate moves the stream by order 1 a block
    assert found.stable_start is True and found.verdict == "unstable"
    scale = vectors(lambda t, k, h: h + t.vector(f"s{k}", start=0) * mixed(t, k, h))
    found = tp.check(scale, "mup", steps=0)
    assert (found.verdict, found.facts) == ("identity", ())
    assert tp.check(scale, "mup", steps=1).verdict == "unstable"
    assert tp.check(scale, "mup", steps=1, lr_depth={"s{l}": 1}).verdict == "feature-learning"


def test_a_stream_that_grows_with_the_width_has_the_verdict_of_first_steps() -> None:
    found = zero(L**-1, 2, optimizer="adam")
    assert (found.verdict, found.status) == ("unstable", "first steps, exact")
    assert "no limit in the width" in found.notes[0]
    moved = {"hidden": {"power": "-1"}}
    assert zero(L**-1, 2, optimizer="adam", groups=moved).verdict == "feature-learning"


@pytest.mark.parametrize(
    ("alpha", "gamma", "verdict"),
    [
        ("1", "-1/4", "unstable"),
        ("3/2", "-1/2", "feature-learning"),
        ("2", "-1/2", "trivial"),
        ("3/4", "-1/2", "unstable"),
    ],
)
def test_S1_19_gelu_beyond_faithful_blocks(alpha: str, gamma: str, verdict: str) -> None:
    """Stable where alpha + gamma >= 1, learning at 1: as the activations that it is far out."""
    net = tp.ResNet("L", "gelu", alpha=alpha, nonlin="post", center=True)
    found = tp.check(net, "mup", lr_depth=gamma, steps=2)
    assert (found.verdict, found.status) == (verdict, "heuristic")
    assert any("far out" in note for note in found.notes)
    if verdict == "trivial":
        assert "add up to L^(-1/2)" in found.facts[0]


@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_relu_behind_norms_learns_at_any_depth(norm: str, optimizer: str) -> None:
    """Explicit networks: updates of the stream have slopes of -.07 to .19, 8 to 128 blocks."""
    net = tp.ResNet("L", "relu", nonlin="pre", norm=norm)
    found = tp.check(net, "depth-mup", steps=2, optimizer=optimizer)
    assert (found.verdict, found.status, found.diversity) == (
        "feature-learning",
        "heuristic",
        "1/2",
    )
    assert {row.status for row in found.rows if row.name in ("x[0]", "dx[0]")} == {"proved"}
