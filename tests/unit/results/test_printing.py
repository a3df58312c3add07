"""What results look like when they are printed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tpcalc.errors import UsageError
from tpcalc.exponents import Ex, as_ex
from tpcalc.results import (
    UNKNOWN,
    Bound,
    Card,
    Claim,
    Contrast,
    CorrectionRow,
    CorrectionTable,
    CorrectionTerm,
    DependencyRow,
    DependencyTable,
    Equivalence,
    EquivalenceRow,
    Estimate,
    Exponent,
    GaussianRow,
    Hypothesis,
    LimitTable,
    LossRow,
    Method,
    NotCovered,
    Optimum,
    Provenance,
    Recipe,
    RecipeRow,
    ScalarRow,
    SlopeRow,
    Solution,
    SolvedStep,
    Theorem,
    Theorems,
    Transfer,
    Verdict,
)
from tpcalc.shown import Rows
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


def lines_of(found: object) -> list[str]:
    """What is printed, blanks between columns as one."""
    return [" ".join(line.split()) for line in str(found).splitlines()]


def test_a_theorem_says_what_it_says_and_whether_its_hypotheses_are_met() -> None:
    lines = lines_of(PROVED)
    assert lines[:2] == [
        "trivial_naive_ip: holds",
        "naive-ip is trivial (Hajjar, Chizat, Giraud, Proposition 3.1).",
    ]
    assert "at least 3 hidden layers yes L = 3" in lines
    assert lines[lines.index("About Stated Derived from the program Agrees") + 2] == (
        "f_t tends to 0 n^(-1) yes"
    )
    assert repr(PROVED) == str(PROVED)


def test_outside_its_hypotheses_nothing_is_stated() -> None:
    lines = lines_of(replace(PROVED, answer="outside", hypotheses=(MET, FEW)))
    assert lines[:2] == [
        "trivial_naive_ip: outside its hypotheses",
        "- Not met: at least 3 hidden layers: L = 2.",
    ]
    hypotheses = lines.index("Hypothesis Met Found") + 2
    assert lines[hypotheses : hypotheses + 2] == [
        "at least 3 hidden layers no L = 2",
        "at least 3 hidden layers yes L = 3",
    ]
    assert "f_t (tends to 0) n^(-1) yes" in lines and "f_t tends to 0 n^(-1) yes" not in lines
    assert any(line.startswith("In parentheses: the hypotheses") for line in lines)


def test_a_bound_says_whether_its_conditions_are_met() -> None:
    where = Source("Marion et al.", "Proposition 2")
    found = Bound("D^2", None, 0.5, 0.9, (MET, FEW), where)
    assert lines_of(found)[:3] == [
        "D^2 < 0.5 with probability >= 0.9",
        "- Not met: at least 3 hidden layers: L = 2.",
        "Marion et al., Proposition 2.",
    ]
    exact = Bound("E D^2", 0.25, 0.25, 1.0, (MET,), where, exact=True)
    assert lines_of(exact)[:2] == ["E D^2 = 0.25", "Marion et al., Proposition 2."]
    assert lines_of(replace(exact, exact=False))[0] == "0.25 < E D^2 < 0.25"
    both = " ".join(lines_of(Rows((exact, found))))
    assert both.startswith("E D^2 = 0.25 ")
    assert "D^2 < 0.5 with probability >= 0.9. Not met: at least 3 hidden layers: L = 2." in both


def test_several_theorems_are_one_table() -> None:
    rows = (PROVED, replace(PROVED, name="other", answer="outside", hypotheses=(FEW,)))
    assert str(Rows(rows)) == str(Theorems(rows, MADE))
    assert "1 of 2 theorems apply to this network." in str(Rows(rows))


def test_a_card_fits_a_screen() -> None:
    verdict = Verdict("kernel", "exact", ("f moves",), 3, MADE, valid_for="all t", initial="ok")
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
    text = str(card)
    assert len(text.splitlines()) <= 60
    lines = lines_of(card)
    assert lines[0] == "ntk: kernel regime: outputs move, features do not, for all t"
    for line in (
        "Powers a = (0, 1/2)",
        "Verdict kernel (exact)",
        "Valid for all t",
        "What decides f moves",
        "f[0,0] random in the limit, sd = 0.5, mean 0",
        "f[1,0] n^(-1/2) × 2",
        "trivial_naive_ip holds (Proposition 3.1)",
    ):
        assert line in lines
    lost = NotCovered("f[2,0]", "%7", "nonlin", "it has no mean.")
    lines = lines_of(replace(card, limit=replace(limits, uncovered=(lost,))))
    assert lines[lines.index("Limits") + 4] == f"f[2,0] {lost.text}"
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
    assert repr(found) == str(found)
    assert lines_of(found)[0] == "Networks: no network was run; limits: same graph"
    assert "f[1,0] no network was run same graph" in lines_of(found)


def test_an_equivalence_has_its_differences_and_its_limits() -> None:
    fit = SlopeRow("f[1,0]", "gap", -0.512, -0.6, -0.4)
    limits = Estimate(0.5, 0.0, Method.EXACT), Estimate(0.25, 0.01, Method.PARTICLES)
    apart = EquivalenceRow("f[1,0]", (0.02, 0.01), False, fit, "different", *limits, 25.0)
    same = EquivalenceRow("f[0,0]", (1e-16, 2e-16), True, None, "both 0")
    text = str(Equivalence((apart, same), (64, 256), 3, MADE, ("a note",)))
    assert text.startswith("Networks: different; limits: different, both 0")
    for word in ("0.02", "-0.51", "0.5", "0.250 ± 0.010", "25.0", "2e-16", "a note"):
        assert word in text
    assert "Networks of width 64, 256, 3 of each." in text


def test_dependencies_are_tables() -> None:
    plain = Exponent.number(0)
    lost = DependencyRow("y", UNKNOWN, "upper", True, (), note="no set is known")
    known = DependencyRow("x", plain, "exact", True, ("g", "b"), ("b",), "1")
    gaussians = (GaussianRow("g", "start", "g"), GaussianRow("b", "start", "c + 2*d"))
    lines = lines_of(DependencyTable((known, lost), gaussians, MADE, ("a note",)))
    first = lines.index("Z of Size Is a function of Moments") + 2
    assert lines[first : first + 2] == [
        "y no bound known no set is known not proved finite",
        "x 1 g, b (?) finite (degree 1)",
    ]
    assert "b c + 2*d" in lines and "g g" not in lines and "a note" in lines
    terms = (
        CorrectionTerm("z", True),
        CorrectionTerm("x", False),
        CorrectionTerm("y", False, Estimate(0.5, 0.001, Method.PARTICLES, std=0.25), True),
    )
    row = CorrectionRow("W x", "W", False, "x", 0, terms)
    said = "? * x + (0.5 ± 1.0e-03, random, sd 0.25, may be 0) * y"
    assert f"W x {said}" in lines_of(CorrectionTable((row,), MADE))
    assert str(row) == f"W x: {said}"


def test_what_is_random_is_no_number() -> None:
    known = Estimate(0.125, 0.001, Method.PARTICLES)
    assert (float(known), round(known, 2), f"{known:.2f}") == (0.125, 0.12, "0.12")
    assert float(ScalarRow("f", known)) == 0.125
    for ask in (float, round, "{:.2f}".format):
        with pytest.raises(UsageError, match=r"random in the limit: it is no number.*\.std"):
            ask(replace(known, std=0.5))
    assert f"{replace(known, std=0.5)}".startswith("random, mean 0.125")


def test_a_recipe_is_a_table() -> None:
    rows = (RecipeRow("number in front of a block", "-1/2", 2.0, 0.25),)
    lines = lines_of(Recipe("depth-mup", "1/2", "1/2", 512, 8, "adam", rows, ("a note",)))
    assert lines[0] == "depth-mup (alpha = 1/2, gamma = 1/2), adam"
    assert "Number L = 8 L = 512 Factor" in lines and "a note" in lines
    assert "number in front of a block 2 0.25 (L/8)^(-1/2)" in lines


def test_best_rates_and_what_has_no_loss_are_printed() -> None:
    loss = Estimate(0.5, 0.0, Method.EXACT)
    kept = LossRow("depth-mup", "8", "oo", 1.0, 0.25, loss)
    lost = LossRow("depth-mup", "8", "oo", 1.0, 4.0, None, "it diverges")
    best = Optimum("depth-mup", "8", "oo", 1.0, 0.25, 0.125, None, loss, -0.25, "grid")
    text = str(Transfer((kept, lost), (best,), "mean loss", MADE))
    assert text.startswith("With depth-mup the best rate goes like L^(-0.25) at the end.")
    lines = lines_of(Transfer((kept, lost), (best,), "mean loss", MADE))
    assert "depth-mup 8 oo 1 0.25 0.125 .. ? 0.5 -0.25 grid" in lines
    assert "depth-mup 8 oo 4 it diverges" in lines
