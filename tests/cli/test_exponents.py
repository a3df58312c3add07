"""orders, check, solve and phases: what they ask, what they print, how they end.

The analyses themselves are replaced by hand-made answers; each call is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from golden.exponents import DIAGRAM, MEASURED, ORDERS, SOLUTION, VERDICT

import tpcalc as tp
from tpcalc.program.program import Program
from tpcalc.results import Samples
from tpcalc.views import phase_svg

Run = Callable[..., Any]
HALF = Fraction(1, 2)
SMALL = ("--depth", 1, "--steps", 1, "--samples", 2, "--watch", "h")
BOX = ("--param", "ac:0,1/2,a;c", "--box", "a=0:1", "--box", "c=-2:1")


@dataclass
class Asked:
    """The calls of the analyses, and what ``check`` answers."""

    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    verdict: Any = VERDICT

    def answering(self, name: str, answer: Callable[[], Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            self.calls.append((name, args, named))
            return answer()

        return call

    def only(self, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        ((args, named),) = [(args, named) for word, args, named in self.calls if word == name]
        return args, named


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    found = Asked()
    answers: dict[str, Callable[[], Any]] = {
        "orders": lambda: SimpleNamespace(table=ORDERS),
        "measure": lambda: MEASURED,
        "check": lambda: found.verdict,
        "solve": lambda: SOLUTION,
        "phases": lambda: DIAGRAM,
    }
    for name, answer in answers.items():
        answering = found.answering(name, answer)
        module = SimpleNamespace(**{name: answering, f"width_{name}": answering})
        monkeypatch.setitem(sys.modules, f"tpcalc.questions.{name}", module)
    return found


def test_orders_of_a_network(tpcalc: Run, asked: Asked) -> None:
    ran = tpcalc("orders", "mlp", *SMALL, "--at", "a=1/2,b=2", "--at", "p=0.1", "--seed", 3)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("relu network of 1 hidden layer, mup, 1 step of training\n")
    for text in ("<= n^-1", "n^(1/2 - 3*a)", "Holds where a > 1/2, p > 0.", "2 bounds remain"):
        assert text in ran.out
    (program,), named = asked.only("orders")
    assert isinstance(program, Program)
    point = {"a": HALF, "b": Fraction(2), "p": Fraction(1, 10)}
    assert named == {"at": point, "values": None, "budget": None, "verify": True, "seed": 3}


def test_orders_of_contributions_are_asked_for(tpcalc: Run, asked: Asked) -> None:
    tpcalc("orders", "mlp", *SMALL[:-2], "--bias", "first")
    (program,), _ = asked.only("orders")
    letters = {name.partition("[")[0] for name, _ in program.outputs}
    assert letters == {"f", "h", "x", "dh", "dx", "dW_x", "dB"}


def test_orders_of_a_program_in_a_file(tpcalc: Run, asked: Asked, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import tpcalc as tp\n@tp.program\ndef walk(t):\n"
        "    v = t.gaussian('v')\n    t.output('size', tp.mean(v * v))\n"
    )
    ran = tpcalc("orders", f"{path}:walk", "--no-verify", "--budget", "3/2")
    assert ran.code == 0
    (program,), named = asked.only("orders")
    assert [name for name, _ in program.outputs] == ["size"]
    budget = Fraction(3, 2)
    assert named == {"at": None, "values": None, "budget": budget, "verify": False, "seed": 0}


def test_orders_beside_slopes(tpcalc: Run, asked: Asked) -> None:
    ran = tpcalc("orders", "mlp", *SMALL, "--measure", "--widths", "64,128", "--seeds", 5, "--json")
    (found,), named = asked.only("measure")
    assert found.table is ORDERS
    assert named == {"widths": (64, 128), "seeds": 5, "progress": None}
    rows = ran.json["result"]["rows"]
    assert (rows[0]["slope"], rows[0]["low"], rows[0]["high"]) == (-0.52, -0.6, -0.44)
    assert rows[4]["slope"] is None and rows[4]["note"] == "identically 0"
    assert "-0.52" in tpcalc("orders", "mlp", *SMALL, "--measure").out
    assert asked.calls[-1][2]["widths"] is None  # the measurement chooses


def test_check_asks_with_what_was_given(tpcalc: Run, asked: Asked) -> None:
    ran = tpcalc("check", "mlp", "--depth", 2, "--act", "tanh", "--param", "ntk", "--lr", 0.5)
    assert ran.code == 1
    args, named = asked.only("check")
    assert args == (tp.Training(tp.MLP(2, "tanh"), "ntk", steps=3, lr=0.5),)
    assert named == {"at": None, "verify": True, "seed": 0, "deep": 2000}
    lines = ran.out.splitlines()
    assert lines[0] == "tanh network of 2 hidden layers, ntk"
    assert lines[1] == "Trivial: no output moves, for all t"
    assert lines[3] == f"- {VERDICT.facts[0]}"


def test_check_takes_data(tpcalc: Run, asked: Asked, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("x1,x2,y\n1,0,1\n0,1,-1\n")
    words = ("--data", data, "--loss", "linear", "--steps", 2, "--batch", 2, "--no-verify")
    words = (*words, "--deep", 0)
    tpcalc("check", "mlp", *words)
    args, named = asked.only("check")
    samples = Samples(((1.0, 0.0), (0.0, 1.0)), ((1.0,), (-1.0,)), str(data))
    assert args == (tp.Training(tp.MLP(3), "mup", samples, steps=2, loss="linear", batch=2),)
    assert named == {"at": None, "verify": False, "seed": 0, "deep": 0}


@pytest.mark.parametrize(
    ("words", "record"),
    [
        (("orders", "mlp", *SMALL), ORDERS),
        (("solve", "mlp"), SOLUTION),
        (("phases", "mlp", *BOX, "--steps", 1), DIAGRAM),
    ],
)
def test_json_is_the_record(tpcalc: Run, words: tuple[object, ...], record: Any) -> None:
    found = tpcalc(*words, "--json").json
    assert (found["command"], found["tpcalc"]) == (words[0], tp.__version__)
    assert found["provenance"]["program"] == record.provenance.program_digest
    written = {key: value for key, value in record.to_dict().items() if key != "provenance"}
    assert found["result"] == written


def test_check_as_json(tpcalc: Run) -> None:
    ran = tpcalc("check", "mlp", "--json")
    result = ran.json["result"]
    assert ran.code == 1
    assert (result["verdict"], result["status"]) == ("trivial", "exact")
    assert (result["stationary_start"], result["initial"]) == (True, "vanishes")
    assert result["facts"] == list(VERDICT.facts)
    assert (result["valid_for"], result["steps"]) == ("all t", 3)
    assert result["layers"][0] == {
        "layer": 1,
        "name": "",
        "moves": True,
        "weights": "moves",
        "biases": "frozen",
        "features": False,
        "kernel": None,
        "step": 1,
        "reason": "dW_x[1,1,0] is of size 1",
    }
    assert (
        result["updates"][1].items()
        >= {
            "name": "dW_x[2,1,0]",
            "layer": 2,
            "step": 1,
            "input": 0,
            "n": "-1/2",
            "status": "exact",
            "reason": "",
        }.items()
    )
    change = result["rows"][1]
    assert (change["name"], change["layer"], change["step"]) == ("x[2,1,0]-x[2,0,0]", 2, 1)
    assert "measured" not in result


def test_check_beside_slopes(tpcalc: Run, asked: Asked) -> None:
    ran = tpcalc("check", "mlp", "--depth", 1, "--steps", 1, "--measure", "--seeds", 2, "--json")
    assert ran.code == 1
    assert ran.json["result"]["measured"]["rows"][0]["slope"] == -0.52
    assert asked.only("measure")[1] == {"widths": None, "seeds": 2, "progress": None}
    assert [name for name, _, _ in asked.calls] == ["check", "orders", "measure"]
    assert "95 % interval" in tpcalc("check", "mlp", "--depth", 1, "--measure", "--all").out


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        ("trivial", 1),
        ("unstable", 1),
        ("kernel", 0),
        ("feature-learning", 0),
        ("undecided", 4),
    ],
)
def test_how_a_check_ends(tpcalc: Run, asked: Asked, verdict: str, code: int) -> None:
    asked.verdict = replace(VERDICT, verdict=verdict)
    for words in ((), ("--json",)):
        ran = tpcalc("check", "mlp", *words)
        assert (ran.code, ran.err) == (code, "")
        assert verdict in ran.out


def test_solve(tpcalc: Run, asked: Asked) -> None:
    words = ("--symbolic", "p,L", "--multipliers", "--at", "p=2", "--steps", 2)
    ran = tpcalc("solve", "mlp", "--act", "relu^2", "--param", "naive-ip", *words)
    assert ran.code == 0
    args, named = asked.only("solve")
    assert args == (tp.Training(tp.MLP(3, "relu^2"), "naive-ip", steps=2),)
    asked_with = {"symbolic": ("p", "L"), "multipliers": True, "at": {"p": Fraction(2)}}
    assert named == {**asked_with, "base": None, "width": None, "deep": 2000}
    tpcalc("solve", "mlp", "--base", 256, "--at-width", 4096)
    named = asked.calls[-1][2]
    assert (named["base"], named["width"]) == (256, 4096)
    for text in ("-5/2", "-(L + 1)/2", "Holds where p > 0."):
        assert text in ran.out


def test_phases(tpcalc: Run, asked: Asked, tmp_path: Path) -> None:
    out = tmp_path / "phases.svg"
    ran = tpcalc("phases", "mlp", *BOX, "--svg", out)
    assert (ran.code, ran.err) == (0, "")
    args, named = asked.only("phases")
    assert args == (tp.Training(tp.MLP(3), BOX[1], steps=2),)
    assert named == {"box": {"a": (0, 1), "c": (-2, 1)}, "values": None}
    assert "feature-learning" in ran.out and ran.out.splitlines()[-1] == str(out)
    assert out.read_text(encoding="utf-8") == phase_svg(DIAGRAM)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["orders", "mlp", "--at", "a"], "--at: 'a' is not of the form NAME=VALUE"),
        (["orders", "mlp", "--at", "a=x"], "--at: 'x' is not a number"),
        (["orders", "mlp", "--at", "a=1/0"], "--at: '1/0' is not a number"),
        (["orders", "mlp", "--at", "a=1", "--at", "a=2"], "--at: a is given twice"),
        (["orders", "mlp", "--budget", "-1"], "--budget is -1"),
        (["orders", "mlp", "--widths", "64"], "--widths: finite networks are run with --measure"),
        (["check", "mlp", "--seeds", "4"], "--seeds: finite networks are run with --measure"),
        (["solve", "net.json"], "'net.json' is a program"),
        (["check", "net.json"], "'net.json' is a program"),
        (["phases", "net.json", *BOX], "'net.json' is a program"),
        (["check", "mlp", "--query", "q.csv"], "No such option"),
        (["solve", "mlp", "--lr", "1"], "No such option"),
        (["solve", "mlp", "--symbolic", "p,q"], "--symbolic: 'p,q' names none of p, L"),
        (["solve", "mlp", "--symbolic", ""], "--symbolic"),
        (["phases", "mlp"], "--box: a phase diagram is over two symbols or more; 0 given"),
        (["phases", "mlp", "--box", "a=0:1"], "1 given"),
        (["phases", "mlp", "--box", "a=0:1,a=1:2"], "--box: a is given twice"),
        (["phases", "mlp", "--box", "a=1:0"], "a runs from 1 to 0, which is no interval"),
        (["phases", "mlp", "--box", "a=1"], "--box: 'a=1' is not of the form NAME=LOW:HIGH"),
        (["phases", "mlp", *BOX, "--svg", "a.png"], "--svg: a picture is written as .svg"),
        (
            ["phases", "mlp", *BOX, "--svg", "no/where/a.svg"],
            "--svg: the picture cannot be written: there is no folder",
        ),
        (
            ["phases", "mlp", *BOX, "--box", "b=0:1", "--svg", "a.svg"],
            "--svg: a picture shows two symbols; --box gives 3",
        ),
    ],
)
def test_wrong_usage_is_2_and_nothing_is_run(
    tpcalc: Run, asked: Asked, words: list[object], message: str
) -> None:
    ran = tpcalc(*words)
    assert (ran.code, ran.out) == (2, "")
    assert message in " ".join(ran.err.split())
    assert asked.calls == []
