"""One-sided verdicts: what bounds decide and what needs a leading coefficient."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import pytest

import tpcalc as tp
from tpcalc.evaluate.settle import Witness
from tpcalc.evaluate.witness import Finding
from tpcalc.exponents import Ex
from tpcalc.exponents.chamber import Chamber
from tpcalc.limit.context import Context
from tpcalc.limit.graph import LRef
from tpcalc.questions.verdict.judge import judge
from tpcalc.questions.verdict.ledger import Answer, Ledger
from tpcalc.questions.verdict.probe import Probe, probe
from tpcalc.questions.verdict.sizes import Order, Question, grows, stays

ONE, UP, DOWN = Ex(), Ex.number(0.5), Ex.number(-0.5)
SIGN = Chamber().sign


@pytest.mark.parametrize(
    ("order", "up", "moved"),
    [
        (Order(UP, "exact", ""), True, True),
        (Order(ONE, "exact", ""), False, True),
        (Order(DOWN, "exact", ""), False, False),
        (Order(UP, "upper", ""), None, None),
        (Order(ONE, "upper", ""), False, None),
        (Order(ONE, "upper", "", strict=True), False, False),
        (Order(DOWN, "upper", ""), False, False),
        (Order(None, "exact", ""), False, False),
        (Order(None, "upper", ""), None, None),
    ],
)
def test_one_size(order: Order, up: bool | None, moved: bool | None) -> None:
    assert grows(order, SIGN) is up
    assert stays(order, SIGN) is moved


@tp.program
def three(t: tp.Tracer) -> None:
    """A form that shows it is not 0; one that takes a test; one that cancels."""
    v, w = t.gaussian("v"), t.gaussian("w")
    t.output("plain", v)
    t.output("square", t.moment(lambda x, y: (x - y) ** 3 * x, v, w))
    t.output("gone", tp.tanh(v + tp.n**-1 * w) - tp.tanh(v))


@dataclass
class Told(Witness):
    """What is told of coefficients, and which were asked."""

    nonzero: bool | None = None
    asked: list[tuple[LRef, ...]] = field(default_factory=list)

    def coefficients(self, context: Context, refs: Iterable[LRef]) -> dict[LRef, Finding]:
        self.asked.append(tuple(refs))
        return {ref: Finding(self.nonzero, "told") for ref in self.asked[-1]}


@pytest.mark.parametrize("nonzero", [True, False, None])
def test_a_coefficient_counts_after_its_test(nonzero: bool | None) -> None:
    told = Told(0, nonzero=nonzero)
    ledger = Ledger(three.build(), tests=told)
    assert ledger.ask(["plain"], stays).holds
    assert not told.asked  # its form shows it
    answer = ledger.ask(["square"], stays)
    assert answer.holds is (nonzero or None)
    assert not answer.assumed
    assert len(told.asked) == 1 and len(told.asked[0]) == 1
    assert "told" in answer.order.reason


def test_without_tests_a_yes_is_an_assumption() -> None:
    ledger = Ledger(three.build())
    answer = ledger.ask(["square"], stays)
    assert answer.holds and answer.assumed
    assert ledger.orders["square"].status == "upper"
    assert not ledger.ask(["plain"], stays).assumed


def test_a_no_takes_a_bound_and_more_terms_where_something_cancels() -> None:
    ledger = Ledger(three.build())
    assert ledger.ask(["plain", "square", "gone"], grows).holds is False
    assert len(ledger.runs) == 1
    assert ledger.ask(["gone"], stays).holds is False
    ledger.settle(["gone"])
    assert str(ledger.orders["gone"].n) == "-1"


def test_only_what_is_needed_is_compared() -> None:
    """What comes after a yes is not looked at, so it bounds no region."""

    @tp.program
    def two(t: tp.Tracer) -> None:
        t.output("f", tp.n ** tp.symbol("a") * t.gaussian("v"))
        t.output("g", tp.n ** tp.symbol("b") * t.gaussian("w"))

    ledger = Ledger(two.build(), {"a": Fraction(1), "b": Fraction(1)})
    assert ledger.ask(["f", "g"], grows).holds
    assert ledger.region.lines == ("a > 0",)


@pytest.fixture(scope="module")
def run() -> Probe:
    return probe(tp.Training(tp.MLP(1, "tanh"), "mup", steps=2))


@pytest.mark.parametrize(
    ("levels", "changes", "features", "verdict", "step"),
    [
        ("nny", "", "", "unstable", 2),
        ("y", "", "", "unstable", 0),
        ("non", "", "", "undecided", 1),
        ("noy", "", "", "unstable", 2),
        ("nnn", "oo", "", "undecided", 1),
        ("nnn", "nn", "", "trivial", 2),
        ("nnn", "oy", "nn", "kernel", 2),
        ("nnn", "y", "ny", "feature-learning", 2),
        ("nnn", "y", "oy", "feature-learning", 2),
        ("nnn", "y", "no", "undecided", 2),
    ],
)
def test_verdicts(
    run: Probe, levels: str, changes: str, features: str, verdict: str, step: int
) -> None:
    """Step by step: a yes ends a question; what is open does not hide a later yes."""
    told = {
        (names(step), question): {"y": True, "n": False, "o": None}[letter]
        for names, question, letters, first in (
            (run.levels, grows, levels, 0),
            (run.changes, stays, changes, 1),
            (run.last_moved, stays, features, 1),
        )
        for step, letter in enumerate(letters, first)
    }

    def ask(names: tuple[str, ...], question: Question, step: int) -> Answer:
        return Answer(told.pop((names, question)), names[0], Order(ONE, "exact", ""), step)

    found = judge(run, ask)
    assert (found.verdict, found.deciding[0].step) == (verdict, step)
    assert not told  # all that is there to ask was asked, and nothing else
