"""Splits and calibration: identities, other variances, what is refused."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from tests.second_ways import hermite_nlc
from tpcalc.activations.entries import lookup
from tpcalc.errors import EvaluationError, StudyError, TpcalcError, UsageError
from tpcalc.functions import Expr, Var, const
from tpcalc.functions.form import degree, varying
from tpcalc.integrals.activation_moments import Kernels, average
from tpcalc.integrals.average import averages
from tpcalc.integrals.bounded import Bounded
from tpcalc.meanfield.activations.calibrate import calibrated, debiased, dilated, normalized
from tpcalc.meanfield.activations.length import longest
from tpcalc.meanfield.activations.split import split

X = Var(0)


def act(name: str) -> Expr:
    return lookup(name).fn.expr


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu", "sigmoid"])
def test_split_at_another_variance_is_that_of_the_dilated_activation(name: str) -> None:
    wide, dilated_ = split(act(name), 4.0), split(dilated(act(name), 2))
    assert wide.nlc.value == pytest.approx(dilated_.nlc.value, rel=1e-12)
    assert wide.rest_nlc.value == pytest.approx(dilated_.rest_nlc.value, rel=1e-10)
    assert wide.coefficient.value == pytest.approx(dilated_.coefficient.value / 2, rel=1e-12)
    assert wide.linear_ratio.value == pytest.approx(dilated_.linear_ratio.value, rel=1e-12)


def test_polynomials_by_hand() -> None:
    # 1 + 2 s + 3 s^2 = 4 + 2 s + 3 (s^2 - 1): chaos 1 has 4, chaos 2 has 18.
    found = split(1 + 2 * X + 3 * X**2)
    assert (found.mean.value, found.coefficient.value) == (4.0, 2.0)
    assert found.second.value == pytest.approx(38, rel=1e-14)
    assert found.nlc.value == pytest.approx(sqrt((4 + 2 * 18) / 22), rel=1e-14)
    assert found.rest_nlc.value == pytest.approx(sqrt(2), rel=1e-13)
    assert hermite_nlc(1 + 2 * X + 3 * X**2, 0.5).value == pytest.approx(
        sqrt(0.5 * 40 / (4 * 0.5 + 18 * 0.75)), rel=1e-12
    )


def test_a_line_has_no_nonlinear_part() -> None:
    found = split(3 * X - 1)
    assert found.linear
    assert (found.nlc.value, found.interpolated(2.0).value) == (1.0, 1.0)
    with pytest.raises(EvaluationError, match="no nonlinear part"):
        found.rest_nlc  # noqa: B018


def test_errors_of_the_variance_are_carried() -> None:
    exact, moved = split(act("tanh")), split(act("tanh"), Bounded(1.0, 1e-6))
    assert moved.second.error > 1e-7 > exact.second.error
    assert abs(split(act("tanh"), 1 + 1e-6).second.value - exact.second.value) < moved.second.error


@pytest.mark.parametrize("debias", [False, True])
def test_calibration_at_another_variance(debias: bool) -> None:
    found, q = calibrated(act("softplus"), 0.7, -0.3, debias, q=2), Bounded(2.0)
    assert Kernels(found).second(q).value == pytest.approx(1, abs=1e-12)
    mean = average(found, q).value
    assert (abs(mean) < 1e-12) == debias


def test_what_is_calibrated_already_stays() -> None:
    assert debiased(act("tanh")) == act("tanh")
    assert normalized(2 * X).text == "x0"
    assert debiased(X**2).text == "-1 + x0**2"


def test_homogeneity_is_read_off() -> None:
    assert degree(act("relu") + 2 * act("abs")) == 1
    assert degree(act("relu") * act("odd_square")) == 3
    assert degree(act("relu") + X**2) is None
    assert degree(act("relu").atom(X - 1)) is None  # type: ignore[attr-defined]
    assert varying(X**2 - 1) == X**2


def test_a_wave_is_not_followed_beyond_its_kinks() -> None:
    assert longest(act("tanh")) == np.inf
    assert longest(act("sawtooth:1/2")) == longest(act("sawtooth")) / 2


def test_averages_that_do_not_exist_leave_the_others() -> None:
    steep = lookup("exp").fn.expr
    found = averages((steep,), [[np.array([1.0, 1e9])]])
    assert found.known.tolist() == [True, False]
    assert found.at(0).value == pytest.approx(np.exp(0.5), rel=1e-14)
    with pytest.raises(EvaluationError, match="does not exist"):
        found.at(1)


@pytest.mark.parametrize(
    ("tau", "words"),
    [
        (const(3), "constant 3"),
        (lookup("tanh")(X + 12), "constant"),
        (lookup("step").fn.expr, "jumps"),
        (lookup("relu^1/2").fn.expr, "slope is unbounded"),
        (lookup("exp")(X**2), "infinite"),
        (lookup("exp")(30 * X), "range"),
    ],
)
def test_no_split(tau: Expr, words: str) -> None:
    with pytest.raises(TpcalcError, match=words):
        split(tau)


def test_bad_numbers() -> None:
    with pytest.raises(UsageError, match="variance"):
        split(X, 0.0)
    with pytest.raises(StudyError, match="dilation is 0"):
        dilated(X, 0)
    with pytest.raises(StudyError, match="no finite number"):
        dilated(X, 1, float("nan"))
    with pytest.raises(StudyError, match="variance of the Gaussian is -1"):
        calibrated(X, q=-1)
    with pytest.raises(UsageError, match="expression of Var"):
        calibrated(Var(1))
    with pytest.raises(StudyError, match="constant"):
        debiased(const(2) + 0 * X)
    with pytest.raises(StudyError, match="cannot be normalized"):
        normalized(0 * X)
