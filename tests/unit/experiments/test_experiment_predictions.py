"""What is predicted of networks before they are trained."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tpcalc.experiments.trained import Growth, predicted, rate_growth
from tpcalc.results import Setting

HALF = Fraction(1, 2)


@pytest.mark.parametrize("act", ["tanh", "gelu"])
def test_calibrated_rates_of_linearizable_activations_grow(act: str) -> None:
    found = rate_growth(Setting(act, "ip-llr", 3, 64))
    assert found.exponents == (0, 0, HALF, HALF)
    assert found.exact == (True, True, True, False)  # layer 3: an average whose law is known
    assert found.layers == (3, 4)


def test_those_of_relu_do_not() -> None:
    found = rate_growth(Setting("relu", "ip-llr", 3, 64))
    assert found == Growth((Fraction(0),) * 4, (True,) * 4)
    assert found.words == ("constant",) * 4


@pytest.mark.parametrize(
    ("act", "name", "bias", "words"),
    [
        ("relu", "ip-llr:2", "first", ("n^(-2)",) * 4),
        ("sigmoid", "ip-llr", "first", ("constant", "constant", "n^(-1/2)", "n^(-1)")),
        ("cos", "ip-llr", "first", ("n^1", "n^1", "constant", "n^(-1)")),
        ("relu", "naive-ip", "all", ("n^1", "n^(1/2)", "n^(1/2)", "n^1")),
        ("tanh", "ip-llr", "all", ("constant", "constant", "n^(1/2)", "constant")),
    ],
)
def test_rates_that_shrink_and_those_of_biases(
    act: str, name: str, bias: str, words: tuple[str, ...]
) -> None:
    """As measured at the widths 64 to 1024: 6 networks each, 64 digits in a batch."""
    assert rate_growth(Setting(act, name, 3, 64, bias=bias)).words == words


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
    assert "of layer 3 grow like n^(1/2)" in calibrated.sentence
    assert "of layer 4 grow at least like n^(1/2)" in calibrated.sentence
    assert "What the layers 3 to 4 learn in the first step" in calibrated.sentence
    assert "comes from fluctuations" in calibrated.sentence


@pytest.mark.slow
def test_rates_that_only_make_up_for_exponents() -> None:
    found = predicted(Setting("relu", "naive-ip", 3, 64, bias="all", calibrated=True))
    assert found.sentence.endswith("the layers 1 to 4 grow like n^1, n^(1/2), n^(1/2), n^1.")
    found = predicted(Setting("sigmoid", "ip-llr", 3, 64, calibrated=True))
    assert "of the layers 3 to 4 shrink like n^(-1/2), n^(-1)." in found.sentence


def test_a_layer_that_learns_by_fluctuations_in_a_network_that_does_not() -> None:
    found = predicted(Setting("tanh", "ip-llr", 2, 64, calibrated=True))
    assert found.sentence.startswith("feature-learning at all t: ")
    assert "of layer 3 grow like n^(1/2). What layer 3 learns in the first step" in found.sentence
    assert found.sentence.endswith("comes from fluctuations that calibration amplifies.")


def test_outputs_that_are_random_at_the_start_make_no_fluctuations_of_updates() -> None:
    found = predicted(Setting("tanh", "ntk", 2, 64, calibrated=True))
    assert found.sentence.endswith("of the layers 1 to 2 grow like n^(1/2).")


def test_ip_llr_with_relu_learns() -> None:
    found = predicted(Setting("relu", "ip-llr", 3, 64, calibrated=True))
    assert found.sentence.startswith("feature-learning at all t: ")
    assert found.sentence.endswith("The calibrated rates tend to constants.")
    assert not found.vanishes


def test_mup_has_no_sentence_about_rates() -> None:
    found = predicted(Setting("relu", "mup", 3, 64))
    assert "rates" not in found.sentence
    assert not found.vanishes
