"""Verdicts: one-sided logic, facts in words, what is recognised, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import pytest

from tpcalc.errors import ScaleError, UsageError
from tpcalc.evaluate.witness import Finding
from tpcalc.limit.context import Context
from tpcalc.limit.graph import LRef
from tpcalc.networks.architectures.mlp import MLP
from tpcalc.questions.check import check
from tpcalc.questions.verdict.judge import decide
from tpcalc.questions.verdict.probe import probe
from tpcalc.results import Samples, Verdict
from tpcalc.training.parameterizations import lookup
from tpcalc.training.training import Training

TANH = MLP(3, "tanh")


def test_a_stationary_start_says_why() -> None:
    found = check(MLP(6, "relu"), "naive-ip", steps=1)
    assert found.stationary_start and found.status == "exact"
    assert found.facts == (
        "the start is a stationary point: every first update vanishes; the largest, that of layer "
        "2, contributes n^(-2) to its preactivations",
        "layer 2: its preactivations vanish at the start, h_0 is n^(-1/2), down to n^(-5/2) in "
        "layer 6; without this the first updates would not vanish",
        "the output does not move: f_t - f_0 is n^(-4) at step 1",
    )
    assert [layer.moves for layer in found.layers] == [False] * 7


def test_small_rates_are_not_blamed_on_the_start() -> None:
    """Without vanishing layers, and with rates that are too small besides."""
    ok = check(MLP(2, "tanh"), "ac:0,1/2,1;0,0,0", steps=1)
    assert (ok.stationary_start, ok.initial) == (True, "ok")
    assert not any("without this" in fact for fact in ok.facts)
    both = check(MLP(3, "tanh"), "ac:0,1,1;0,0,0", steps=1)
    assert (both.stationary_start, both.initial) == (True, "vanishes")
    assert not any("without this" in fact for fact in both.facts)


def test_mup_start_does_not_vanish() -> None:
    """f_0 tends to 0; that alone is no vanishing start."""
    found = check(TANH, "mup", steps=1)
    assert (found.initial, found.stationary_start) == ("ok", False)
    assert found.facts == (
        "layer 3: its features move by order one at step 1",
        "the output moves: f_1 - f_0 is of order one",
    )
    assert {layer.kernel for layer in found.layers[:3]} == {True}


def test_kernel_regime_layer_by_layer() -> None:
    found = check(TANH, "ntk", steps=2)
    assert (found.verdict, found.valid_for) == ("kernel", "all t")
    assert [(layer.moves, layer.features) for layer in found.layers] == [
        (False, False),
        (False, False),
        (False, False),
        (True, True),
    ]
    assert [layer.kernel for layer in found.layers] == [False, False, False, None]


def test_features_that_move_in_a_trivial_run() -> None:
    """a_out > 1 and c = -a_out: features move, the output does not feel it."""
    found = check(MLP(2, "tanh"), "ac:0,1/2,5/4;-5/4,-5/4,-5/4", steps=2)
    assert (found.verdict, found.stationary_start) == ("trivial", False)
    assert found.layers[1].features
    assert "features move all the same in layers 1, 2" in found.facts


def test_unstable_at_the_start_and_in_training() -> None:
    start = check(TANH, "ac:0,1/4,1;0,0,0", steps=1)
    assert (start.verdict, start.initial) == ("unstable", "explodes")
    assert start.facts[0] == "layer 2: its preactivations grow like n^(1/4) at the start"
    later = check(TANH, "standard", steps=2)
    assert (later.verdict, later.initial) == ("unstable", "ok")
    assert later.facts[0] == "layer 2: its preactivations grow like n^(1/2) at step 1"
    output = check(TANH, "ac:0,1/2,1/4;1,1,1", steps=1)
    assert (output.verdict, output.initial) == ("unstable", "explodes")
    assert output.facts[0] == "the output grows like n^(1/4) at the start"


def test_without_tests_coefficients_are_assumed_and_the_answer_says_so() -> None:
    mup = check(MLP(2, "tanh"), "mup", steps=1, verify=False)
    assert (mup.verdict, mup.status) == ("feature-learning", "assumed")
    assumed = [note for note in mup.notes if "assumed to be different from 0" in note]
    assert [note.split(":")[0] for note in assumed] == ["f[1,1]-f[0,1]"]
    changes = {row.name: row.status for row in mup.outputs if "-" in row.name}
    assert changes == {"f[1,1]-f[0,1]": "upper", "x[2,1,1]-x[2,0,1]": "exact"}
    naive = check(TANH, "naive-ip", steps=1, verify=False)
    assert (naive.verdict, naive.status, naive.valid_for) == ("trivial", "exact", "all t")


@pytest.mark.parametrize("nonzero", [None, False])
def test_what_no_test_shows_is_no_lower_bound(
    monkeypatch: pytest.MonkeyPatch, nonzero: bool | None
) -> None:
    def silent(context: Context, refs: Iterable[LRef], *_: int) -> dict[LRef, Finding]:
        return {ref: Finding(nonzero, "no value") for ref in refs}

    for test in ("nonzero", "nonzero_on_samples"):
        monkeypatch.setattr(f"tpcalc.evaluate.settle.{test}", silent)
    found = check(MLP(2, "tanh"), "mup", steps=1)
    assert found.first_order is not None  # which is shown by its form
    first = ("feature-learning", "first steps, exact", "t<=1")
    assert (found.verdict, found.status, found.valid_for) == first
    (open_,) = (fact for fact in found.facts if fact.startswith("whether the output moves is open"))
    assert "f[1,1]-f[0,1] is at most" in open_ and "no value" in open_
    run = probe(Training(MLP(2, "tanh"), "mup", steps=1))
    assert [decide(run).verdict, decide(run, verify=False).verdict] == [
        "undecided",
        "feature-learning",
    ]
    assert check(TANH, "naive-ip", steps=1).verdict == "trivial"  # follows from upper bounds


def test_first_steps_of_long_programs_are_tested_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a verdict does not hang on is not tested in later steps, and their rows say so."""
    monkeypatch.setattr("tpcalc.questions.verdict.judge.SMALL", 0)
    found = check(MLP(2, "relu"), "mup", steps=2)
    rows = {row.name: row for row in (*found.updates, *found.outputs)}
    first = {name for name in rows if name.startswith(("f[1,", "x[2,1,")) or ",1,1]" in name}
    assert len(first) == 6 and {rows[name].status for name in first} == {"exact"}
    assert rows["dW_x[1,2,1]"].status == "upper" and "not tested" in rows["dW_x[1,2,1]"].reason


def test_numerical_status_names_its_evidence() -> None:
    found = check(MLP(2, "relu"), "mup", steps=1)
    assert found.status == "numerical"
    assert any(note.startswith("x[2,1,1]-x[2,0,1]: the leading coeff") for note in found.notes)


def test_the_name_is_not_looked_at() -> None:
    """A table under its own name and as free exponents gives one verdict."""
    named, free = check(TANH, "naive-ip", steps=1), check(TANH, "ac:0,1,1;-1,-2,-1", steps=1)
    assert (named.verdict, named.facts, named.layers) == (free.verdict, free.facts, free.layers)
    assert free.notes[0] == "at this depth it is the parameterization naive-ip"


def test_symbols_hold_on_a_region() -> None:
    at = {"a": Fraction(3, 4), "c": Fraction(-1)}
    found = check(TANH, "ac:0,a,1;c,c,c", at=at, steps=1)
    assert (found.verdict, found.initial, found.valid_for) == ("trivial", "vanishes", "t<=1")
    assert "-1/2 + a > 0" in found.region and "2*a + c > 0" in found.region
    assert not any(line.endswith("= 0") for line in found.region)
    assert "at the sample point the verdict holds for all t" in found.notes
    with pytest.raises(ScaleError, match="no value here"):
        check(TANH, "ac:0,a,1;c,c,c")


@pytest.mark.slow
@pytest.mark.parametrize(("last", "valid"), [(3, "all t"), (5, "all t"), (99, "t<=1")])
def test_rates_that_change_are_followed_up_to_their_last_change(last: int, valid: str) -> None:
    """Rates that fall with every step have no last step from which all repeat."""
    from tpcalc.exponents import as_ex
    from tpcalc.training.parameterization import with_rates

    falling = with_rates(lookup("naive-ip"), lambda layer, step: as_ex(min(step, last)))
    assert check(TANH, falling, steps=1).valid_for == valid


@pytest.mark.parametrize("loss", ["mse", "logistic", "xent", "linear"])
def test_losses(loss: str) -> None:
    found = check(MLP(2, "tanh"), "mup", loss=loss, steps=1)
    assert (found.verdict, found.valid_for) == ("feature-learning", "all t")


def test_biases_batches_and_outputs() -> None:
    found = check(MLP(2, "tanh", bias="all"), "ntk", batch=2, steps=1)
    assert (found.verdict, found.valid_for) == ("kernel", "all t")
    assert {"dB[1,1]", "dB[3,1]"} <= {entry.name for entry in found.updates}
    two = Samples(((1.0, 0.5), (0.3, 0.8)), ((1.0, 0.0), (0.0, 1.0)))
    several = check(MLP(2, "relu"), "naive-ip", two, steps=1)
    assert several.verdict == "feature-learning"
    assert {"f[1,1,0]-f[0,1,0]", "f[1,1,1]-f[0,1,1]"} <= {e.name for e in several.outputs}


@pytest.mark.slow
def test_a_lean_derivation_gives_the_same_verdict() -> None:
    for parameterization in ("mup", "ntk", "naive-ip", "ip-llr", "standard"):
        lean = decide(probe(Training(TANH, parameterization, steps=2)))
        assert lean.verdict == check(TANH, parameterization, steps=2).verdict


def test_a_check_takes_a_step() -> None:
    with pytest.raises(UsageError, match="steps"):
        check(TANH, "mup", steps=0)


def test_same_seed_same_answer() -> None:
    first, second = (check(MLP(2, "relu"), "mup", steps=1, seed=4) for _ in range(2))
    assert isinstance(first, Verdict)
    assert (first.facts, first.notes, first.outputs) == (second.facts, second.notes, second.outputs)


@pytest.mark.slow
@pytest.mark.parametrize("lr", [4, 64])
def test_a_verdict_does_not_hang_on_how_wild_samples_are(lr: int) -> None:
    """Samples of six layers at large rates are wild; the exponents are not."""
    found = check(MLP(6, "relu"), "mup", lr=lr, seed=0)
    assert found.verdict == "feature-learning"
    assert found.verdict == check(MLP(6, "relu"), "mup", seed=0).verdict


def test_programs_with_more_products_than_deep_are_not_split() -> None:
    run = MLP(3, "tanh")
    counted, known = check(run, "mup", deep=5), check(run, "mup", deep=60)
    assert "has more than 24 nodes" in counted.notes[0] and "more than" not in known.notes[0]
    assert (counted.verdict, counted.status) == (known.verdict, known.status)
    assert counted.first_order and known.first_order
    assert counted.first_order.rows == known.first_order.rows
