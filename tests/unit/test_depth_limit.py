"""What ``tp.limit(..., depths=...)`` refuses, and what it says where there is no limit."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from depth_run import STILL, Reference, deep_run

import tpcalc as tp
from tpcalc.activations.entries import lookup
from tpcalc.errors import EvaluationError, StudyError, TpcalcError, UnknownName, UsageError
from tpcalc.questions.depth.sampled import ARRAYS
from tpcalc.questions.depth.shape import recursion
from tpcalc.recursions import Trunk, finite, limit, mean_field
from tpcalc.recursions.averages import Averages, Pairs
from tpcalc.recursions.kets import Kets
from tpcalc.results import Method

ONES = (1.0, 1.0), (1.0, 1.0)
ROWS = ((1.3,), (0.7,)), ((0.9,), (0.0,))


def names_of(updates: int, batch: int = 1) -> set[str]:
    """What a run of one output is asked for."""
    counts = {"f": updates + 1, "x": updates + 1, "dx": updates}
    return {f"{w}[{t},{b}]" for w, n in counts.items() for t in range(n) for b in range(batch)}


@pytest.mark.parametrize("depth", [0, -1, 1.5, "many", True])
def test_depths_that_are_none(depth: object) -> None:
    with pytest.raises(TpcalcError, match="depth"):
        tp.limit(deep_run(*ONES), depths=(depth,))
    with pytest.raises(UsageError, match="at least one block"):
        finite(Trunk(*ONES), 0)


@pytest.mark.parametrize("place", [-0.1, 1.5, math.nan, "half"])
def test_places_that_are_none(place: object) -> None:
    with pytest.raises(TpcalcError, match="place"):
        tp.limit(deep_run(*ONES), depths=["oo"], places=(place,))


def test_powers_of_the_depth_without_a_depth() -> None:
    data = tp.Samples(((1.0,),), ((1.0,),))
    with pytest.raises(UsageError, match="depth of this network is a number"):
        tp.Training(tp.ResNet(4), "mup", data, lr_depth="1/2")
    with pytest.raises(UsageError, match="is a number"):
        tp.limit(tp.Training(tp.ResNet(4), "mup", data), depths=["oo"])
    with pytest.raises(StudyError, match="number of blocks is 4"):
        tp.ResNet(4, alpha=tp.symbol("alpha"))
    with pytest.raises(UsageError, match="symbol L"):
        tp.limit(tp.Training(tp.ResNet("L"), "mup", data).program)


@pytest.mark.parametrize(
    ("alpha", "gamma", "rate"),
    [
        (0.4, 0.6, "L^(1/5)"),  # the log of the mean square at the start
        (0.5, 0.3, "L^(1/5)"),  # one update
        (0.5, 0.0, "L^(1/2)"),
        (0.25, 0.5, "L^(1/2)"),
    ],
)
@pytest.mark.parametrize("act", ["identity", "relu"])
def test_divergence_is_told_with_its_rate(act: str, alpha: float, gamma: float, rate: str) -> None:
    found = tp.limit(deep_run(*ONES, alpha, gamma, act), depths=["oo"], places=(0, 1))
    assert not found.arrays and all(rate in gap.reason for gap in found.lacking)
    if alpha < 0.5:
        assert not found.rows
        return
    assert found.names == ("f[0,0]", "x[0,0]", "dx[0,0]")  # the start has a limit all the same
    start = tp.limit(deep_run(*ONES, alpha, gamma, act, steps=0), depths=["oo"])
    assert start.at("x[0,0]", "oo").z(found.at("x[0,0]", "oo")) < 1


def test_rates_of_divergence_are_those_of_the_recursion() -> None:
    depths = (64, 256, 1024)
    found = tp.limit(deep_run(*ONES, 0.4, 0.6, steps=0), depths=depths)
    logs = [math.log(found.at("x[0,0]", depth).value) for depth in depths]
    for one, two in pairwise(logs):
        assert math.log(two / one) / math.log(4) == pytest.approx(0.2, abs=0.03)
    found = tp.limit(deep_run(*ONES, 0.5, 0.3), depths=depths)
    moved = [found.at("f[1,0]", depth).value for depth in depths]
    for one, two in pairwise(moved):
        assert math.log(two / one) / math.log(4) == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize(
    ("act", "center", "told", "adjoint", "status"),
    [
        ("gelu", True, "log of its mean square is like L^(1/5)", "1/5", "derived"),
        ("gelu", False, "log of its mean square is like L^(3/5)", "1/5", "derived"),
        ("tanh", True, "grows like L^(1/10)", "1/10", "derived"),  # E tanh'^2 falls like q^(-1/2)
        ("relu", True, "log of its mean square is like L^(1/5)", "1/5", "proved"),
    ],
)
def test_growth_at_the_start_says_what_becomes_of_the_mean_square(
    act: str, center: bool, told: str, adjoint: str, status: str
) -> None:
    net = tp.ResNet("L", act, nonlin="post", alpha="2/5", center=center)
    found = tp.check(net, "mup", lr_depth="3/5", steps=1)
    first, second = found.facts
    assert "x[0], the stream, grows" in first and first.endswith(told)
    assert second.endswith(f"grows exponentially: log of its mean square is like L^({adjoint})")
    assert found.rows[0].status == status


def test_formulas_of_the_recursion_are_those_of_the_numbers() -> None:
    """C' = V(C) of relu, V(C) = (1/2 - 1/(2 pi)) C; of the identity (1 + 1/L)^L."""
    (_, stream), (_, adjoint), (_, limit_), *_ = recursion(deep_run(*ONES, act="relu"))
    assert (stream.text, adjoint.text) == (
        "C(l) = C(l - 1) + V(C(l - 1))/L",
        "D(l - 1) = (1 + V1(C(l - 1))/L)*D(l)",
    )
    assert limit_.text == "Derivative(C(p), p) = V(C(p))" and "<mi>V</mi>" in limit_.mathml
    found = tp.limit(deep_run(*ONES, act="relu", steps=0), depths=["oo"]).at("x[0,0]", "oo")
    assert abs(found.value - math.exp(0.5 - 0.5 / math.pi)) <= found.stderr + 1e-12
    found = tp.limit(deep_run(*ONES, alpha="3/4", a=2.0, steps=0), depths=(16,)).at("x[0,0]", 16)
    (_, stream), _ = recursion(deep_run(*ONES, alpha="3/4", a=2.0))
    assert stream.text == "C(l) = C(l - 1) + 4*V(C(l - 1))/L**(3/2)"
    assert found.value == pytest.approx((1 + 4 / 16**1.5) ** 16, rel=1e-12)
    assert not recursion(deep_run(*ONES, act="relu", center=False))


def test_formulas_over_the_steps_are_those_of_the_numbers() -> None:
    """dA/dp by differences of what the limit gives, for the identity and for sin."""
    a, eta, t, r, p, q = 1.2, 0.5, 2, 0, 0.6, 0.8
    for act in ("identity", "sin"):
        *_, (_, stream), (_, adjoint) = recursion(deep_run(*ONES, act=act, a=a, eta=eta))
        linear = act == "identity"
        moved = "B(s, r, p, q)" + "*V1(t, s, p)" * (not linear)
        bracket = "(-36*eta*C(t, s, p)/25 + 6*A1(t, s, p, p)/5)"
        want = f"Derivative(A(t, r, p, q), p) = Sum({bracket}*{moved}, (s, 0, t - 1))"
        assert stream.text == want and adjoint.text.startswith(
            "Derivative(B(t, r, p, q), p) = -Sum"
        )
        assert "<mi>A</mi>" in stream.mathml
        phi = lookup(act).fn.expr
        found = limit(Trunk((1.0, 0.8, 0.5), (1.0,) * 3, phi, multiplier=a, rates=eta))

        def gamma(
            place: float, edge: float, ket: int, found: Kets = found
        ) -> np.ndarray[Any, np.dtype[np.float64]]:
            return found.coefficients(place, edge)[ket][1].value

        kernel, inner, back = found.features(p).value, gamma(p, p, 0), gamma(p, q, 1)
        diagonal = np.diagonal(kernel)
        pairs = Pairs(np.full(t, diagonal[t]), diagonal[:t], kernel[t, :t])
        slopes = np.ones(t) if linear else Averages(phi).slopes(pairs).value
        right = slopes * back[:t, r] @ (a * inner[t, :t] - eta * a**2 * kernel[t, :t])
        left = (gamma(p + 1e-4, q, 0) - gamma(p - 1e-4, q, 0))[t, r] / 2e-4
        assert left == pytest.approx(right, rel=1e-6) and abs(right) > 1e-3


def test_samples_that_stay_proportional_at_a_kink_are_refused_with_the_reason() -> None:
    """Inputs of opposite sign move no preactivation of each other where depth adds no noise."""
    found = tp.limit(deep_run((1.0, -1.0, 1.0), (0.5,) * 3, "3/4", "1/4", "relu"), depths=["oo"])
    assert [gap.name for gap in found.lacking] == ["dx[1,0]", "f[2,0]", "x[2,0]"]
    line = found.lacking[0].reason
    assert "stay proportional" in line and "no two are proportional" in line
    first = tp.limit(deep_run((1.0, -1.0), (0.5,) * 2, "3/4", "1/4", "relu"), depths=["oo"])
    assert found.at("f[1,0]", "oo") == first.at("f[1,0]", "oo")
    still = deep_run((1.0, 1.0, 1.0), (0.5,) * 3, act="relu", eta=0.0)
    assert "stay proportional" in tp.limit(still, depths=["oo"]).lacking[0].reason
    data = tp.Samples(((1.3, 0.2), (0.7, 0.5), (0.4, -1.0)), ((0.5,),) * 3)
    net = tp.ResNet("L", "relu", nonlin="post", center=True)
    run = tp.Training(net, "mup", data, steps=2, lr_depth="1/2", groups=STILL)
    assert tp.limit(run, depths=["oo"]).at("f[2,0]", "oo").stderr < 1e-9


def test_coefficients_are_not_told_where_streams_start_as_one() -> None:
    found = tp.limit(deep_run((1.0,) * 3, (2.0,) * 3, act="relu"), depths=["oo"], places=(0, 0.5))
    errors = found.along("coefficients", "oo").errors
    followed = errors[:, :, :, :, :2]
    assert np.isinf(followed[1, :, 0, 0]).all()
    followed[1, :, 0, 0] = 0.0
    assert followed.max() < 1e-5


@pytest.mark.parametrize("depth", [8, "oo"])
def test_what_is_in_an_adjoint_that_is_not_followed_is_no_number(depth: int | str) -> None:
    """Of two updates no backward pass comes after the last."""
    found = tp.limit(deep_run((1.3, 0.7, 0.4), (0.9, 0.0, 0.5)), depths=(depth,), places=(0.5,))
    for name, steps in (("coefficients", -2), ("inputs", -2), ("outputs", -2)):
        array = found.along(name, depth)
        for part in (array.values, array.errors):
            x, dx = np.moveaxis(part, steps, 1)
            assert not np.isnan(x).any() and not np.isnan(dx[:2]).any()
            assert np.isnan(dx[2:]).all()


def test_what_leaves_the_range_of_floats_is_said() -> None:
    found = tp.limit(deep_run((1e3,) * 8, (1.0,) * 8, 0.5, 0.0, eta=1e4), depths=(64,))
    assert all(math.isfinite(row.estimate.value) for row in found.rows)
    assert {row.name for row in found.rows} >= {"f[0,0]", "x[0,0]", "dx[0,0]"}
    assert all("range of floats" in gap.reason for gap in found.lacking)
    gone = {gap.name for gap in found.lacking}
    assert gone | set(found.names) == names_of(7) and "f[7,0]" in gone
    with pytest.raises(EvaluationError, match="range of floats"):
        finite(Trunk([1e3] * 8, [1.0] * 8, gamma=0, rates=1e4), 64)


def test_limits_that_are_not_of_this_kind() -> None:
    sin = deep_run(*ONES, "5/4", "-1/4", "sin")
    assert tp.limit(sin, depths=["oo"]).lacking[0].reason
    with pytest.raises(EvaluationError, match="mean-field limit"):
        mean_field(Trunk(*ONES, alpha=0.5, gamma=0.5))
    with pytest.raises(EvaluationError, match="alpha"):
        limit(Trunk(*ONES, alpha=0.3, gamma=0.7))
    with pytest.raises(UsageError, match="one target for each input"):
        Trunk([1.0, 2.0], [1.0])


def test_nothing_moves_above_the_line() -> None:
    found = tp.limit(deep_run(*ONES, 0.5, 0.75, "gelu"), depths=["oo"], places=(1,))
    assert found.at("f[1,0]", "oo").value == 0.0
    before, after = (found.at(f"x[{step},0]", "oo") for step in (0, 1))
    assert abs(after.value - before.value) <= before.stderr + after.stderr < 1e-12


def test_outputs_at_the_start_are_0() -> None:
    for act in ("identity", "gelu"):
        found = tp.limit(deep_run(*ONES, 0.5, 0.5, act), depths=["oo"])
        assert found.at("f[0,0]", "oo").method is Method.EXACT
        assert found.at("f[0,0]", "oo").stderr == 0.0


def test_arrays_by_name() -> None:
    found = tp.limit(deep_run(*ONES), depths=(4,), places=(0, 0.3, 1))
    array = found.along("features", 4)
    assert array.places == (0.0, 0.25, 1.0) and array.axes == ("p", "i", "j")
    assert array.values.shape == array.errors.shape == (3, 2, 2)
    assert found.along("gradients", 4).values.shape == (3, 1, 1)  # no adjoint after the last step
    with pytest.raises(UnknownName, match="features"):
        found.along("feature", 4)
    with pytest.raises(UnknownName):
        found.along("features", 8)


def test_recursions_of_independent_blocks_are_not_those_of_correlated_ones() -> None:
    run = tp.Training(
        tp.ResNet("L", hurst="3/4", act="identity"), "mup", tp.Samples(*ROWS), steps=1
    )
    found = tp.limit(run, depths=(2,))
    assert "fgn(3/4) along the depth" in found.notes[0]
    assert "program of 2 blocks" in found.rows[0].route
    start = tp.limit(run.network, depths=(2,)).at("R^2", 2).value
    (x,) = ROWS[0][0]
    assert found.at("x[0,0]", 2).value == pytest.approx(x**2 * start, rel=1e-12)


@pytest.mark.parametrize(
    ("act", "optimizer", "shape", "batch"),
    [
        ("gelu", "signsgd", {}, 1),
        ("softplus", "signsgd", {}, 1),
        ("tanh", "momentum", {}, 2),
        ("relu", "sgd", {"nonlin": "pre", "center": False, "layers": 2}, 1),
        ("relu", "sgd", {"nonlin": "between", "center": False, "layers": 2}, 1),
        ("identity", "sgd", {}, 2),
    ],
)
def test_all_that_is_asked_has_a_number_or_a_reason(
    act: str, optimizer: str, shape: dict[str, Any], batch: int
) -> None:
    run = deep_run(*ONES, act=act, optimizer=optimizer, batch=batch, **shape)
    found = tp.limit(run, depths=(2, "oo"), places=(0, 1), samples=2**9, replicates=2)
    for depth in ("2", "oo"):
        known = {row.name for row in found.rows if row.depth == depth}
        known |= {array.name for array in found.arrays if array.depth == depth}
        gone = {gap.name for gap in found.lacking if gap.depth == depth}
        assert known | gone == names_of(1, batch) | set(ARRAYS) or gone == {""}
        assert not known & gone and all(gap.reason for gap in found.lacking)
    for name in ("x[1,0]", "features", "coefficients"):
        ask = found.at if name[1] == "[" else found.along
        for gap in found.lacking:
            if gap.name == name:
                with pytest.raises(EvaluationError, match=f"{gap.name} at L".replace("[", r"\[")):
                    ask(name, gap.depth)
    assert str(found).count("\n") >= len(found.rows) + len(found.lacking) - 1


def test_each_number_has_its_own_error() -> None:
    """The last output is of size 1e9, and errors of those before it do not feel that."""
    inputs, targets = (1.3, 0.7, -2.5), (0.9, 0.0, 0.7)
    found = tp.limit(deep_run(inputs, targets, eta=3.0), depths=(16,))
    want = Reference(16, inputs, targets, eta=3.0)
    assert abs(want.f[2]) > 1e9
    errors = []
    for step in range(3):
        value = found.at(f"f[{step},0]", 16)
        assert abs(value.value - want.f[step]) <= value.stderr + 1e-13 * abs(want.f[step])
        errors.append(value.stderr)
    assert errors[1] < 1e-9 and errors == sorted(errors)


def test_what_blocks_add_alike_is_in_the_limit() -> None:
    """relu at alpha = 1 without mean subtraction; at gamma = 1/2 the maps at the ends move alone.

    x_t = u_t + m_t with m_t(p) = |u_t| sinh(p / sqrt(2 pi)), and f_1 by what V has learned.
    """
    data = tp.Samples(((1.0,), (0.5,)), ((0.9,), (0.2,)))
    run = tp.Training(tp.ResNet("L", "relu", nonlin="post"), "depth:1;1/2", data, steps=1)
    found = tp.limit(run, depths=["oo"])
    rise = 1 / math.sqrt(2 * math.pi)
    one, two = math.sinh(rise), math.sqrt(0.25 * (1 + 0.9**2)) * math.sinh(rise)
    want = {
        "x[0,0]": 1 + one**2,
        "x[1,0]": 0.25 * (1 + 0.9**2) + two**2,
        "f[1,0]": 0.5 * 0.9 + 0.9 * (0.5 + one * two),
    }
    for name, value in want.items():
        limit_ = found.at(name, "oo")
        assert abs(limit_.value - value) < max(limit_.stderr, 1e-9) < 1e-7
    assert "alpha = 1" in found.rows[0].route


def test_a_mean_field_limit_says_how_long_it_takes() -> None:
    told: list[tuple[float, str]] = []
    sin = lookup("sin").fn.expr
    trunk = Trunk([[[1.0, 0.0]], [[0.5, 0.0]]], [[[2.0]], [[1.0]]], sin, 1, 0, rates=0.5)
    found = mean_field(trunk, 3, lambda done, text: told.append((done, text)))
    assert "about" in told[0][1] and told[0][0] == 0
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    # What is beyond the span of the inputs moves nothing.
    one = mean_field(Trunk([1.0, 0.5], [2.0, 1.0], sin, 1, 0, rates=0.5), 3)
    assert found.outputs[1] == pytest.approx(one.outputs[1], abs=1e-12)


def test_what_stands_before_the_average_is_taken_off_counts() -> None:
    @tp.network
    def net(t: Any, x: Any) -> Any:
        def block(level: Any, h: Any) -> Any:
            y = tp.L ** -Fraction(1, 2) * (2 * tp.erf(t.linear(t.n, t.n, name="w")(h)))
            return h + (y - tp.mean(y))

        h = t.repeat("L", t.linear(t.n, "in", name="emb")(x), block)
        return t.linear(t.outputs, t.n, name="read")(h)

    data = tp.Samples(*ROWS)
    still = {"emb": {"lr": 0}, "read": {"lr": 0}}
    own = tp.Training(net, "mup", data, steps=1, lr_depth="1/2", groups=still)
    same = tp.ResNet("L", "erf", alpha="1/2", nonlin="post", center=True, multiplier=2)
    other = tp.Training(same, "mup", data, steps=1, lr_depth="1/2", groups=STILL)
    found, wanted = (tp.limit(run, depths=["oo"]).at("f[1,0]", "oo") for run in (own, other))
    assert found.z(wanted) == 0 and found.value > 1
