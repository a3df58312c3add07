"""What is predicted of networks before they are trained."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tpcalc.results import Setting
from tpcalc.theorems.experiment import Growth, predicted, rate_growth

HALF = Fraction(1, 2)


@pytest.mark.parametrize("act", ["tanh", "gelu"])
def test_calibrated_rates_of_linearizable_activations_grow(act: str) -> None:
    found = rate_growth(Setting(act, "ip-llr", 3, 64))
    assert found.exponents == (0, 0, HALF, HALF)
    assert found.exact[:2] == (True, True) and not any(found.exact[2:])
    assert found.layers == (3, 4)


def test_those_of_relu_do_not() -> None:
    found = rate_growth(Setting("relu", "ip-llr", 3, 64))
    assert found == Growth((Fraction(0),) * 4, (True,) * 4)
    assert found.words == ("constant",) * 4


def test_a_bound_of_no_growth_says_nothing() -> None:
    assert Growth((Fraction(0), Fraction(1)), (False, False)).words == ("open", ">= n^1")


def test_naive_ip_answers_0() -> None:
    found = predicted(Setting("tanh", "naive-ip", 3, 64))
    assert found.sentence.startswith("trivial at all t: ")
    assert found.vanishes and found.growth is None


def test_ip_llr_with_tanh_learns_by_fluctuations_alone() -> None:
    found = predicted(Setting("tanh", "ip-llr", 6, 64))
    assert found.sentence.startswith("trivial at all t: ")
    assert found.vanishes
    calibrated = predicted(Setting("tanh", "ip-llr", 3, 64, calibrated=True))
    assert "grow at least like n^(1/2)" in calibrated.sentence


def test_ip_llr_with_relu_learns() -> None:
    found = predicted(Setting("relu", "ip-llr", 3, 64, calibrated=True))
    assert found.sentence.startswith("feature-learning at all t: ")
    assert found.sentence.endswith("The calibrated rates tend to constants.")
    assert not found.vanishes


def test_mup_has_no_sentence_about_rates() -> None:
    found = predicted(Setting("relu", "mup", 3, 64))
    assert "rates" not in found.sentence
    assert not found.vanishes
