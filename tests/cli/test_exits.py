"""Exit codes, and that every error is words on the error stream."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

import pytest
from typer.testing import CliRunner

import tpcalc as tp
from tpcalc.cli.app import app

ROOT = Path(__file__).parents[2]
Run = Callable[..., Any]
SMALL = ("--depth", 1, "--steps", 1, "--watch", "h")


def assert_one_line(err: str) -> None:
    """Everything that an error says is one short line, and no more is said."""
    lines = err.splitlines()
    assert len(lines) <= 1 and all(line.startswith("TPC") and len(line) <= 200 for line in lines)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["limit"], "Missing argument"),
        (["limt", "mlp"], "No such command"),
        (["limit", "mlp", "--dept", 3], "No such option"),
        (["limit", "mlp", "--depth", "three"], "--depth"),
        (["limit", "mpl"], "Did you mean 'mlp'?"),
        (["limit", "net.txt"], "MODEL is a study file"),
        (["limit", "mlp", "--act", "tanhh"], "--act: there is no activation called 'tanhh'"),
        (["limit", "mlp", "--depth", 0, "--lr", -1], "1 more: --lr: it should be greater"),
        (["limit", "mlp", "--classes", "a,b"], "--classes is 'a'; it must be a whole number"),
        (["limit", "mlp", "--particles", 1000], "such as 512 or 1024"),
        (
            ["limit", "mlp", "--group", "hidden: lr=1", "--group", "hidden: lr=5"],
            "--group: hidden has lr=1 and lr=5",
        ),
        (["limit", "mlp", "--group", "hidden: lr=1 lr=5"], "--group: hidden has lr=1 and lr=5"),
        (["check", "mlp", "--group", ": lr=5"], "the pattern of a group is empty"),
        (["check", "mlp", "--group", "hidden: lr=-5"], "lr of the group 'hidden' is -5"),
        (["check", "mlp", "--optimizer", "adamw(decay=-1)"], "decay of adamw is -1"),
        (["check", "mlp", "--optimizer", "adam(b1=1)"], "b1 of adam is 1; it must be from 0"),
        (["check", "resnet", "--depth", "16,oo"], "one number of blocks, or L, is asked here"),
        (["recipe", "--lr", -1], "lr is -1; it must be above 0"),
        (["check", "mlp", "--at-width", 4096], "Add --first"),
        (["recipe", "--multiplier", 0], "multiplier is 0; it must be above 0"),
        *(
            ([*verb, "--device", "nosuch"], "there is no device called 'nosuch'")
            for verb in (
                ["transfer", "resnet", "--depth", "2,4", "--param", "depth-mup"],
                ["limit", "resnet", "--depth", "2,oo", "--param", "depth-mup"],
                ["nlc", "mlp"],
            )
        ),
        (
            ["limit", "mlp", "--watch", "q"],
            "--watch: it should be 'h', 'x', 'dh', 'dx', 'hhat', 'dhhat', 'dW_x' or 'dB'",
        ),
        (["simulate", "mlp", "--backend", "fast"], "--backend: it should be 'lazy' or 'dense'"),
        pytest.param(
            ["simulate", "mlp", "--backend", "dense", "--device", "tpu", *SMALL],
            "device",
            marks=pytest.mark.torch,
        ),
        (["compare", "mlp", "--seeds", 1], "--seeds: one network of each width"),
        (["report", "mlp", "--out", "page.pdf"], "--out: a report is written as .html or .md"),
        (
            ["report", "mlp", "--out", "no/where/page.html"],
            "--out: the report cannot be written: there is no folder",
        ),
        (["list", "networks"], "there is no kind of entry called 'networks'"),
        (["limit", "mlp", "--samples", 9999], "These classes have 360"),
    ],
)
def test_wrong_usage_is_2(tpcalc: Run, words: list[object], message: str) -> None:
    ran = tpcalc(*words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert_one_line(ran.err)


def test_a_study_with_problems_is_3_and_tells_them_all(
    tpcalc: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text('[model]\ndepht = 2\nact = "tanhh"\n[limit]\nseed = -1\n')
    ran = tpcalc("limit", "study.toml", "--json")
    assert ran.code == 3
    first = "study.toml: model.act: there is no activation called 'tanhh'. Did you mean "
    assert first in ran.err
    assert_one_line(ran.err)
    told = ran.json["error"]
    assert told["where"] == "study.toml: model.act"
    assert "2 more: model.depht: there is no such key. Did you mean depth?" in told["hint"]
    assert "2 more: " in ran.err and "limit.seed: it should be" in told["hint"]


def test_a_bad_line_of_data_is_named(tpcalc: Run, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("x1,y\n1,2\n3,nan\n")
    ran = tpcalc("limit", "mlp", "--data", data)
    assert ran.code == 3
    assert "data.csv, line 3: in column y 'nan' is not finite" in ran.err


def test_a_target_that_is_not_met_is_4_after_the_answer(tpcalc: Run) -> None:
    words = ("--rel-error", 1e-9, "--particles", 64, "--max-particles", 64, "--replicates", 2)
    ran = tpcalc("limit", "mlp", *SMALL, *words, "--json")
    assert ran.code == 4
    rows = ran.json["result"]["scalars"]
    assert {row["estimate"]["status"] for row in rows} >= {"tolerance_not_reached"}
    assert "the error target was not met for f[1,0]" in ran.err


def test_a_target_that_is_met_is_0(tpcalc: Run) -> None:
    ran = tpcalc("limit", "mlp", *SMALL, "--rel-error", 0.1, "--particles", 256)
    assert (ran.code, ran.err) == (0, "")


def test_no_memory_is_4_and_said_beforehand(tpcalc: Run) -> None:
    ran = tpcalc("limit", "mlp", *SMALL, "--particles", 2**40)
    assert ran.code == 4
    assert "iB" in ran.err and "available" in ran.err


def test_what_is_not_covered_is_a_row(tpcalc: Run) -> None:
    """The start of an unstable network has a limit; the answer is 0 unless nothing has one."""
    ran = tpcalc("limit", "mlp", "--act", "tanh", "--param", "standard", "--steps", 1, "--all")
    assert (ran.code, ran.err) == (0, "")
    assert "random in the limit" in ran.out and "Not covered" in ran.out
    assert "its argument explodes like n^(1/2)." in " ".join(ran.out.split())


def test_an_output_without_a_number_is_4_and_the_others_are_printed(
    tpcalc: Run, tmp_path: Path
) -> None:
    path = tmp_path / "means.py"
    lines = [
        "import tpcalc as tp",
        "@tp.program",
        "def means(t):",
        "    x = t.gaussian('x')",
        "    t.output('large', tp.mean(tp.exp(x * x)))",
        "    t.output('square', tp.mean(x * x))",
        "    t.output('pole', tp.mean(1 / x))",
    ]
    path.write_text("\n".join(lines))
    ran = tpcalc("limit", f"{path}:means", "--json")
    result = ran.json["result"]
    assert ran.code == 4 and "TPC606 no number of large, pole: " in ran.err
    assert_one_line(ran.err)
    assert [row["name"] for row in result["uncovered"]] == ["large", "pole"]
    (square,) = result["scalars"]
    assert (square["name"], square["estimate"]["value"]) == ("square", 1.0)
    assert tpcalc("limit", f"{path}:means").code == 4


def test_an_explosion_is_4(tpcalc: Run) -> None:
    """The numbers that there are stand in the table all the same."""
    ran = tpcalc("limit", "mlp", "--lr", 1e300, "--particles", 64, "--replicates", 2)
    assert ran.code == 4
    assert "floating-point range" in ran.err
    assert "0.544875   exact" in ran.out


def test_a_missing_backend_is_5(tpcalc: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it fails, as where it is absent
    ran = tpcalc("simulate", "mlp", *SMALL, "--widths", 16, "--backend", "dense")
    assert ran.code == 5
    assert "pip install" in ran.err


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "TPC701 interrupted"),
        (MemoryError(), 4, "TPC602 the memory of this machine is used up"),
        (
            OSError(28, "No space left"),
            3,
            "TPC100 the output: the system refused it: No space left",
        ),
        (BrokenPipeError(), 0, ""),
        (
            EOFError("cut"),
            70,
            "TPC702 EOFError: cut. This is a fault of tpcalc; TPCALC_TRACEBACK=1",
        ),
    ],
)
def test_what_ends_a_command(
    raised: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> NoReturn:
        raise raised

    # As if written in the package: what a user's code raises is told as the user's.
    own = refuse.__code__.replace(co_filename=str(Path(tp.__file__).with_name("made.py")))
    monkeypatch.setattr(
        "tpcalc.study.program_file.catalogue", FunctionType(own, {}, closure=refuse.__closure__)
    )
    ran = CliRunner().invoke(app, ["list", "--json"])
    assert (ran.exit_code, ran.stderr.startswith(message)) == (code, True)
    assert_one_line(ran.stderr)
    assert bool(ran.stdout) == bool(message)
    monkeypatch.setenv("TPCALC_TRACEBACK", "1")
    assert bool(message) == ("Traceback" in CliRunner().invoke(app, ["list"]).stderr)


def started(*words: object) -> subprocess.Popen[str]:
    """A command that hears interrupts, also where the tests were started in the background."""
    return subprocess.Popen(
        [sys.executable, "-m", "tpcalc", *map(str, words)],
        cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_signals_in_a_long_run(tmp_path: Path) -> None:
    # A program that says when it is built: the run follows at once.
    path = tmp_path / "long.py"
    path.write_text(
        "import tpcalc as tp\n@tp.program\ndef long(t):\n"
        "    W, x = t.matrix('W'), t.gaussian('x')\n"
        "    for _ in range(150):\n        x = tp.n**'-1/2' * (W @ tp.tanh(x))\n"
        "    t.output('size', tp.mean(x * x))\n    print('built', flush=True)\n"
    )
    words = ("limit", f"{path}:long", "--method", "particles")
    few = ("--particles", 2**8, "--replicates", 2)
    with started(*words, *few) as process:  # compiles kernels, where nothing has done so yet
        process.communicate(timeout=300)
    ends = {
        signal.SIGINT: ("TPC701 interrupted\n", (130, -signal.SIGINT)),
        signal.SIGTERM: ("TPC703 terminated\n", (143,)),
    }
    for sign, (word, codes) in ends.items():
        with started(*words, "--particles", 2**16, "--replicates", 192) as process:
            assert process.stderr is not None
            assert process.stderr.readline() == "built\n"
            time.sleep(2.5)  # the kernels are loaded: a signal within an import may be lost
            process.send_signal(sign)
            out, err = process.communicate(timeout=60)
        assert (out, err) == ("", word)
        # A signal that comes while C code runs Python (an import, say) ends Python by that signal
        # after all our words; a shell reports 130 for both.
        assert process.returncode in codes


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    path = tmp_path / "long.py"  # its text is longer than what a pipe holds
    path.write_text(
        "import tpcalc as tp\n@tp.program\ndef long(t):\n    x = t.gaussian('x')\n"
        "    for _ in range(5000):\n        x = tp.tanh(x)\n    t.output('x', x)\n"
    )
    with started("show", f"{path}:long") as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("tpcalc program")
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
