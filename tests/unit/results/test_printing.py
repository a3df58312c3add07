"""What results look like when they are printed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tpcalc.exponents import Ex, as_ex
from tpcalc.results import (
    Claim,
    Estimate,
    Exponent,
    Hypothesis,
    Method,
    Provenance,
    Theorem,
    Theorems,
)
from tpcalc.results.card import Card, Contrast
from tpcalc.results.equivalence import Equivalence, EquivalenceRow
from tpcalc.results.orders import Solution, SolvedStep, Verdict
from tpcalc.results.tables import LimitTable, ScalarRow
from tpcalc.sources import Source

MADE = Provenance("0", "ab")
MET = Hypothesis("at least 3 hidden layers", True, "L = 3")
FEW = Hypothesis("at least 3 hidden layers", False, "L = 2")
CLAIM = Claim("f_t", "tends to 0", "n^(-1)", True)
PROVED = Theorem(
    "trivial_naive_ip",
    "naive-ip is trivial",
    Source("Hajjar, Chizat, Giraud", "Proposition 3.1"),
    "holds",
    (MET,),
    (CLAIM,),
)


def test_a_random_scalar_is_not_printed_as_its_mean() -> None:
    """f_0 of NTK: the mean is 0, the limit is Gaussian."""
    exact = Estimate(0.0, 0.0, Method.EXACT)
    assert str(exact) == "0 (exact)"
    assert str(replace(exact, std=0.46637)) == "random, mean 0 (exact), sd 0.4664"


def test_exponents_can_be_read_in_a_tuple() -> None:
    assert repr((as_ex(-1), Ex.symbol("p") - 1)) == "(-1, -1 + p)"


def test_a_theorem_says_what_it_says_and_whether_its_hypotheses_are_met() -> None:
    lines = str(PROVED).splitlines()
    assert lines[0] == "trivial_naive_ip: holds (Hajjar, Chizat, Giraud, Proposition 3.1)"
    assert lines[1:3] == ["  says: naive-ip is trivial", "  hypotheses: all 1 met"]
    assert lines[3] == "  f_t: stated: tends to 0, derived: n^(-1)"
    assert repr(PROVED) == str(PROVED)


def test_outside_its_hypotheses_nothing_is_stated() -> None:
    text = str(replace(PROVED, answer="outside", hypotheses=(FEW,)))
    assert "not met: at least 3 hidden layers: L = 2" in text
    assert "f_t: would state: tends to 0" in text and ": stated:" not in text


@pytest.mark.parametrize(
    ("agrees", "words"), [(True, "does not hold here"), (False, "refuted by the program")]
)
def test_a_missing_property_is_no_refutation(agrees: bool, words: str) -> None:
    claims = (replace(CLAIM, agrees=agrees),)
    assert replace(PROVED, answer="does not hold", claims=claims).answered == words


def test_several_theorems_are_set_apart() -> None:
    text = str(Theorems((PROVED, replace(PROVED, name="other")), MADE))
    assert "2 of 2 theorems apply" in text and "trivial_naive_ip" in text and "other" in text


def test_a_card_fits_a_screen() -> None:
    verdict = Verdict(
        "kernel", "exact", False, "ok", ("f moves",), (), (), (), "all t", 3, (), MADE
    )
    limits = LimitTable(
        (
            ScalarRow("f[0,0]", Estimate(0.0, 0.0, Method.EXACT, std=0.5)),
            ScalarRow("f[1,0]", Estimate(2.0, 0.0, Method.EXACT), n_power=Exponent.of("-1/2")),
        ),
        (),
        MADE,
    )
    card = Card(
        "ntk", (("Powers", "a = (0, 1/2)"),), verdict, None, limits, Theorems((PROVED,), MADE)
    )
    assert str(card).splitlines() == [
        "ntk: kernel (exact), all t",
        "  Powers: a = (0, 1/2)",
        "  - f moves",
        "  f[0,0] -> random, mean 0 (exact), sd 0.5",
        "  f[1,0] -> n^(-1/2) * (2 (exact))",
        "  trivial_naive_ip: holds (Proposition 3.1)",
    ]
    assert "ntk: kernel. ntk: kernel." in str(Contrast(card, card))


def test_rates_are_printed_step_by_step() -> None:
    steps = (SolvedStep(0, ("-2", "-2"), ("-2",)), SolvedStep(1, ("-1", "-1")))
    found = Solution(steps, ("p > 0",), (("p", "2"),), (), MADE, ("tested",))
    lines = [line.split() for line in str(found).splitlines()]
    assert ["0", "-2", "-2"] in lines and ["1", "-1", "-1"] in lines and ["0", "-2"] in lines
    assert "Holds where p > 0." in str(found) and "tested" in str(found)


def test_an_equivalence_is_shown_as_it_is_printed() -> None:
    row = EquivalenceRow("f[1,0]", (), None, None, "same graph")
    found = Equivalence((row,), (), 1, MADE)
    assert repr(found) == "f[1,0]: no network was run; limits: same graph"
