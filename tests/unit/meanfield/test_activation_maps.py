"""Length and covariance kernels of single activations, their iterates and sheets."""

from __future__ import annotations

from math import inf, sqrt
from time import perf_counter

import numpy as np
import pytest

from tests.second_ways import stable_plain
from tpcalc.activations.entries import lookup
from tpcalc.errors import EvaluationError, ScaleError, StudyError, UnknownName, UsageError
from tpcalc.functions import Expr, Var
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded
from tpcalc.meanfield.activations.asymptotics import asymptotes
from tpcalc.meanfield.activations.calibrate import debiased, dilated
from tpcalc.meanfield.activations.covariance import CovarianceKernel
from tpcalc.meanfield.activations.fixed_points import Iteration
from tpcalc.meanfield.activations.length import LengthKernel, sides
from tpcalc.meanfield.plain import growth, plain
from tpcalc.meanfield.sheet import sheet
from tpcalc.results import Method, Sheet
from tpcalc.results.codec import from_json, to_json

X = Var(0)


def act(name: str) -> Expr:
    return lookup(name).fn.expr


@pytest.mark.parametrize("name", ["relu", "tanh", "step", "relu^1/2", "sawtooth"])
def test_stability_is_the_slope_of_log_length(name: str) -> None:
    kernel, h = LengthKernel(act(name)), 1e-4
    for at in (0.4, 1.0, 2.5):
        low, high = kernel.lengths([at * (1 - h), at * (1 + h)]).value
        wanted = np.log(high / low) / np.log((1 + h) / (1 - h))
        assert kernel.stability([at]).at(0).value == pytest.approx(wanted, abs=1e-6)


def test_both_formulas_of_the_stability_agree() -> None:
    kernel, q = LengthKernel(act("gelu")), np.array([0.3, 1.0, 4.0])
    second = kernel.squares(np.sqrt(q))
    by_weight = kernel._by_weight(q, second).value / second.value
    np.testing.assert_allclose(kernel.stability(np.sqrt(q)).value, by_weight, rtol=1e-11)


def test_short_inputs_keep_their_digits() -> None:
    # At 1e-6 the mean square of softplus is log(2)^2, and its variance 1e-13 of that.
    found = LengthKernel(act("softplus")).nlc([1e-6])
    assert found.at(0).value == pytest.approx(1, abs=1e-8)
    assert found.at(0).error < 1e-6


def test_one_sided_limits() -> None:
    assert sides(act("step")) == (0.0, 1.0)
    assert sides(debiased(act("softplus")) * 0 + X) == (0.0, 0.0)
    assert sides(X**-1)[1] == inf
    assert LengthKernel(act("step")).at_zero == pytest.approx(sqrt(0.5))
    assert LengthKernel(act("relu^1/2")).slope_at_zero is None


def test_a_tangency_away_from_1_and_two_crossings() -> None:
    # Of a s + b s^2: L^2 = a^2 l^2 + 3 b^2 l^4, so there is one crossing, at sqrt((1 - a^2)/3)/b.
    found = Iteration(0.6 * X + 0.5 * X**2, normalized=False).found
    assert found.label == "small to 0, large to infinity"
    crossing = found.points[1].length
    assert crossing.value == pytest.approx(sqrt(0.64 / 3) / 0.5, abs=crossing.stderr + 1e-15)
    # A gain at which the debiased ReLU touches the identity from above.
    raw = Iteration(debiased(act("relu")) * float(1 / np.sqrt(0.5 - 0.5 / np.pi)), False).found
    assert raw.label == "half-stable"
    assert raw.points[0].length.value == pytest.approx(1, abs=1e-5)


def test_an_unbounded_slope_at_0_pushes_away() -> None:
    found = Iteration(act("relu^1/2"), normalized=False).found
    assert (found.label, found.points[0].slope) == ("all to a positive limit", None)
    assert found.points[0].kind == "unstable"


def test_kernel_of_lengths_beyond_1() -> None:
    wide, narrow = CovarianceKernel(act("tanh"), 4.0), CovarianceKernel(dilated(act("tanh"), 2))
    c = np.array([-0.5, 0.0, 0.4, 0.9])
    for name in ("correlations", "slopes", "gaps", "nlc"):
        left, right = getattr(wide, name)(c).value, getattr(narrow, name)(c).value
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-13)
    assert wide.found.depth_scale == pytest.approx(narrow.found.depth_scale, rel=1e-9)


def test_slopes_are_those_of_the_kernel() -> None:
    kernel, h = CovarianceKernel(act("swish")), 1e-5
    low, high = kernel.correlations([0.3 - h, 0.3 + h]).value
    assert kernel.slopes([0.3]).at(0).value == pytest.approx((high - low) / (2 * h), abs=1e-8)


def test_gaps_far_below_rounding() -> None:
    kernel = CovarianceKernel(act("tanh"))
    gap = kernel.gap(Bounded(1e-18))
    assert gap.value == pytest.approx(kernel.end_slope.value * 1e-18, rel=1e-9)


def test_closed_limit_of_correlations() -> None:
    # Of s^2 + b the kernel is (2 c^2 + (1 + b)^2) / (2 + (1 + b)^2); b = -1/2 has the limit 1/8.
    found = CovarianceKernel(X**2 - 0.5).found
    assert found.kind == "chaotic"
    assert found.limit.value == pytest.approx(0.125, abs=1e-13)
    assert found.limit_slope.value == pytest.approx(4 * 0.125 / 2.25, abs=1e-12)
    assert abs(found.limit.value - 0.125) <= found.limit.stderr


def test_words_about_deep_networks() -> None:
    said = {name: growth(act(name), CovarianceKernel(act(name)).found) for name in ("abs", "exp")}
    assert said["abs"] == "n and LBIAS grow in proportion to the depth M."
    assert said["exp"] == "n and LBIAS grow in proportion to sqrt(M)."
    assert growth(2 * X, CovarianceKernel(2 * X).found) == "n stays 1."
    tau = act("sigmoid")
    assert "tends to a limit" in growth(tau, CovarianceKernel(tau).found)
    shifted = 2 + act("relu")
    assert growth(shifted, CovarianceKernel(shifted).found).startswith("LBIAS grows by")


def test_plain_networks_both_ways() -> None:
    tau = act("gelu")
    second = Kernels(tau).second(Bounded(1.0)).value
    rows = plain(tau * float(second**-0.5), 4, comean=0.25)
    for row, other in zip(rows, stable_plain(tau, 4, 0.25), strict=True):
        assert row.nlc.value == pytest.approx(other.nlc.value, rel=1e-9)
        assert row.bias == pytest.approx(other.bias, rel=1e-9)
        assert row.log_gradient.value == pytest.approx(other.log_gradient.value, abs=1e-9)
    with pytest.raises(StudyError, match="depth is 0"):
        plain(tau, 0)


def test_ends_on_another_scale() -> None:
    short, long = asymptotes(dilated(act("tanh"), 1e-3))
    assert long.reason == "steps from one limit to another"
    assert long.factor.value == pytest.approx(sqrt(4e-3 / (3 * sqrt(2 * np.pi))), rel=1e-9)
    assert short.factor.value == 1.0
    # Nothing is seen of relu(s - 20) by short inputs.
    (only,) = asymptotes(dilated(act("relu"), 1, -20))
    assert only.end == "infinity"
    # x + sin x: leading powers do not give the slope, so it is measured.
    bent = asymptotes(X + act("sin"))[1]
    assert not bent.derived
    assert bent.factor.value == pytest.approx(sqrt(1.5), abs=1e-3)


def test_correlations_out_of_range() -> None:
    kernel = CovarianceKernel(act("relu"))
    with pytest.raises(UsageError, match="not between -1 and 1"):
        kernel.correlations([1.5])
    with pytest.raises(UsageError, match="equal inputs"):
        kernel.nlc([1.0])


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("rleu", UnknownName, "rleu"),
        ("log", StudyError, "defined between 0 and inf"),
        ("step", EvaluationError, "no nonlinearity coefficient"),
        ("relu^p", ScaleError, "symbols"),
        ("sawtooth:1/100", EvaluationError, "bends more often"),
        ("poly:3", StudyError, "constant"),
    ],
)
def test_no_sheet(name: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        sheet(name)


def test_a_sheet_reads_back_and_names_what_was_changed() -> None:
    found = sheet("gelu", dilate=1.2, shift=0.2, debias=True, normalize=True)
    assert found.name == "gelu, dilate 1.2, shift 0.2, debias, normalize"
    assert from_json(to_json(found)) == found
    assert found.split.second.value == pytest.approx(1, abs=1e-12)
    assert abs(found.split.mean.value) < 1e-12
    assert [row.length for row in found.lengths] == [0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0]
    plainly = sheet(dilated(act("gelu"), 1.2, 0.2), name="own")
    assert plainly.name == "own"
    assert plainly.split.nlc.value == pytest.approx(found.split.nlc.value, rel=1e-11)
    assert isinstance(found, Sheet)


def test_no_number_of_a_sheet_is_without_error() -> None:
    found = sheet("tanh")
    numbers = [row.nlc for row in found.lengths] + [row.kernel for row in found.correlations]
    assert all(0 < number.stderr < 1e-11 for number in numbers)
    assert all(number.method is Method.QUADRATURE for number in numbers)
    assert all(curve.error < 1e-9 for curve in found.curves)


def test_sheets_are_quick() -> None:
    sheet("tanh")
    began = perf_counter()
    sheet("swish", debias=True)
    assert perf_counter() - began < 2  # a fifth of a second on a free core
