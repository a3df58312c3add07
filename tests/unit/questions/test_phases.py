"""Phase diagrams: every point once, boundaries with symbols, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

import pytest

import tpcalc as tp
from tpcalc.errors import ScaleError, UnknownName, UsageError
from tpcalc.evaluate.witness import Finding
from tpcalc.exponents import parse_ex
from tpcalc.limit.context import Context
from tpcalc.limit.graph import LRef
from tpcalc.questions.phases import phases
from tpcalc.results import PhaseCell, PhaseDiagram

HALF = Fraction(1, 2)
WORD = "ac:0,1/2,a;c"
BOX = {"a": (HALF, Fraction(1)), "c": (Fraction(-1), Fraction(0))}


def holds(cell: PhaseCell, point: Mapping[str, Fraction]) -> bool:
    for line in cell.conditions:
        left, sign, _ = line.rsplit(" ", 2)
        value = parse_ex(left).at(point)
        if not (value > 0 if sign == ">" else value == 0):
            return False
    return True


def at(found: PhaseDiagram, **point: object) -> str:
    here = {name: Fraction(str(value)) for name, value in point.items()}
    (cell,) = [cell for cell in found.cells if holds(cell, here)]
    return cell.verdict


@pytest.fixture(scope="module")
def small() -> PhaseDiagram:
    return phases(tp.MLP(2, "tanh"), WORD, BOX, steps=1)


def test_every_point_lies_in_one_cell(small: PhaseDiagram) -> None:
    for i in range(9):
        for j in range(9):
            assert at(small, a=HALF + Fraction(i, 16), c=Fraction(j, 8) - 1)


def test_named_parameterizations_have_their_regimes(small: PhaseDiagram) -> None:
    assert at(small, a="1/2", c="0") == "kernel"  # NTK
    assert at(small, a="1", c="-1") == "feature-learning"  # muP
    assert at(small, a="1/2", c="-1") == "unstable"  # the standard one with rate n
    assert at(small, a="1", c="0") == "trivial"


def test_a_sample_lies_in_its_cell(small: PhaseDiagram) -> None:
    for cell in small.cells:
        assert holds(cell, {name: Fraction(value) for name, value in cell.sample})


def test_vertices_and_record(small: PhaseDiagram) -> None:
    assert small.symbols == ("a", "c")
    assert small.box == (("a", HALF, 1), ("c", -1, 0))
    assert small.complete
    assert small.runs <= len(small.cells)
    assert {len(cell.vertices) for cell in small.cells if cell.dimension == 0} == {1}
    assert {len(cell.vertices) for cell in small.cells if cell.dimension == 1} == {2}
    settings = dict(small.provenance.settings)
    assert (settings["steps"], settings["loss"], settings["batch"]) == ("1", "mse", "1")
    assert small.notes[0] == "verdicts on the steps t <= 1"


def test_facts_say_what_decides(small: PhaseDiagram) -> None:
    facts = {cell.verdict: cell.fact for cell in small.cells if cell.dimension == 0}
    assert facts["feature-learning"] == (
        "f[1,1]-f[0,1] is of size n^(1 - a), x[2,1,1]-x[2,0,1] is of size 1"
    )


def test_close_to_a_wall_no_region_gets_thin() -> None:
    """The gap of the update has symbols of its own, so a box at the wall needs few points."""
    near = {
        "a": (Fraction(97, 100), Fraction(99, 100)),
        "c": (Fraction(-98, 100), Fraction(-94, 100)),
    }
    found = phases(tp.MLP(3, "tanh"), "ac:0,1/2,1/2,a;c", near, verify=False)
    assert found.runs < 20
    assert {cell.verdict for cell in found.cells} == {"unstable", "kernel", "trivial"}
    assert at(found, a="49/50", c="-24/25") == "kernel"


def test_three_symbols() -> None:
    """Rates of their own for the output layer: feature learning needs the others at c = -1."""
    box = {
        "a": (Fraction(3, 4), Fraction(1)),
        "c": (Fraction(-1), Fraction(-3, 4)),
        "d": (Fraction(-1), Fraction(-3, 4)),
    }
    found = phases(tp.MLP(2, "tanh"), "ac:0,1/2,a;c,c,d", box, steps=1, verify=False)
    assert {cell.dimension for cell in found.cells} == {0, 1, 2, 3}
    assert {cell.vertices for cell in found.cells} == {()}
    assert at(found, a=1, c=-1, d=-1) == "feature-learning"
    assert at(found, a=1, c=-1, d="-7/8") == "feature-learning"
    assert at(found, a=1, c="-7/8", d=-1) == "kernel"
    assert at(found, a=1, c="-7/8", d="-7/8") == "trivial"
    assert at(found, a="7/8", c=-1, d=-1) == "unstable"


def test_one_symbol_and_numbers_for_the_others() -> None:
    found = phases(
        tp.MLP(2, "relu"), WORD, {"c": (-2.1, 0)}, steps=1, values={"a": 1}, verify=False
    )
    assert found.box == (("c", Fraction(-21, 10), 0),)
    assert at(found, c=-1) == "feature-learning"
    assert at(found, c="-1/2") == "trivial"
    assert at(found, c="-3/2") == "unstable"


def test_data_and_loss_are_used() -> None:
    """Orthogonal inputs without a bias: the first layer does not reach the query; f still moves."""
    data = tp.Samples(((1.0, 0.0), (0.0, 1.0)), ((1.0,), (-1.0,)))
    found = phases(
        tp.MLP(2, "relu"), WORD, {"c": (-2, 0)}, data, loss="linear", steps=1, values={"a": 1}
    )
    assert at(found, c=-1) == "feature-learning"
    assert dict(found.provenance.settings)["loss"] == "linear"


def test_without_a_test_it_says_so() -> None:
    found = phases(tp.MLP(1, "relu"), "ac:0,a;c", BOX, steps=1, verify=False)
    assert found.notes[1] == "leading coefficients are assumed to be different from 0"


@pytest.mark.parametrize("finding", [Finding(False, "particles: 0"), Finding(None, "no value")])
def test_a_coefficient_that_no_test_shows_is_no_lower_bound(
    monkeypatch: pytest.MonkeyPatch, finding: Finding
) -> None:
    def told(context: Context, refs: Iterable[LRef], *_: int) -> dict[LRef, Finding]:
        return dict.fromkeys(refs, finding)

    for test in ("nonzero", "nonzero_on_samples"):
        monkeypatch.setattr(f"tpcalc.evaluate.settle.{test}", told)
    found = phases(tp.MLP(2, "tanh"), WORD, BOX, steps=1)
    assert at(found, a=1, c=-1) == "undecided"
    assert at(found, a=1, c=0) == "trivial"  # follows from an upper bound
    if finding.nonzero is None:
        assert any(note.startswith("some coefficients could not be") for note in found.notes)
        return
    (cell,) = [cell for cell in found.cells if cell.vertices == ((1, -1),)]
    assert cell.fact.startswith("f[1,1]-f[0,1] is O(n^(1 - a)), and no more is known: ")
    assert "may be 0 (particles: 0)" in cell.fact


@pytest.mark.parametrize(
    ("word", "act", "box", "error", "message"),
    [
        (WORD, "relu", {"a": (0, 1)}, ScaleError, "'c', which has no interval"),
        (WORD, "relu", {**BOX, "e": (0, 1)}, UnknownName, "called 'e'"),
        (WORD, "relu", {**BOX, "c": (0, -1)}, ScaleError, "not an interval"),
        (WORD, "relu", [("a", 0, 1)], UsageError, "the box is"),
        ("mup", "relu", {}, ScaleError, "at least one symbol"),
        ("ac:0,1,1;c", "relu^p", {"c": (-3, 0), "p": (1, 2)}, ScaleError, "curved"),
    ],
)
def test_refusals(word: str, act: str, box: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        phases(tp.MLP(2, act), word, box, steps=1)  # type: ignore[arg-type]


def test_a_curved_boundary_says_what_to_fix() -> None:
    """A degree times a power: the hint names the degree."""
    with pytest.raises(ScaleError) as caught:
        phases(tp.MLP(2, "relu^p"), "ac:0,a,1;-2", {"a": (HALF, 1), "p": (1, 2)}, steps=1)
    assert "p" in str(caught.value.hint)


def test_settings_are_checked() -> None:
    net = tp.MLP(1, "relu")
    with pytest.raises(UsageError, match="steps"):
        phases(net, "ac:0,a;c", BOX, steps=0)
    with pytest.raises(UsageError, match="verify"):
        phases(net, "ac:0,a;c", BOX, verify=1)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="an interval and a number"):
        phases(net, "ac:0,a;c", BOX, values={"a": 1})
    with pytest.raises(ScaleError, match="not complete after 2 runs"):
        phases(net, "ac:0,a;c", BOX, most=2)
