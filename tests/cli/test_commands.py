"""Each command on a small network: what it prints, and what its JSON holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tpcalc as tp
from tpcalc.evaluate.limit import limit
from tpcalc.finite.simulate import simulate
from tpcalc.questions.compare import compare

NETWORK = ("mlp", "--depth", 2, "--act", "tanh", "--steps", 1, "--samples", 2, "--watch", "h")
REPORTED = ("mlp", "--depth", 2, "--act", "relu", "--steps", 1, "--samples", 2, "--watch", "h")
LIMIT = ("--particles", 256, "--replicates", 4)
FINITE = ("--widths", "16,32,64", "--seeds", 4)
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def program() -> Any:
    network = tp.MLP(2, "tanh")
    return tp.train(network, "mup", tp.digits(samples=2), steps=1, watch=["h"])


def parts(name: str) -> dict[str, Any]:
    """A result name as JSON spells it."""
    letter, _, rest = name.rstrip("]").partition("[")
    numbers = [int(word) for word in rest.split(",")]
    keys = ("step", "input") if letter == "f" else ("layer", "step", "input")
    return {"name": name, **dict(zip(keys, numbers, strict=True))}


@pytest.mark.torch
@pytest.mark.parametrize(
    "words", [("limit", *LIMIT, "--method", "particles"), ("simulate", *FINITE)]
)
def test_a_device_gives_the_same_numbers(words: tuple[Any, ...], tpcalc: Run) -> None:
    command, *rest = words
    plain, found = (
        tpcalc(command, *NETWORK, *rest, *flags, "--json").json
        for flags in ((), ("--device", "cpu"))
    )
    assert found["provenance"]["settings"]["device"] == "cpu"
    assert "device" not in plain["provenance"]["settings"]
    limits = command == "limit"
    for row, own in zip(*(_rows(one, limits) for one in (plain, found)), strict=True):
        assert own == pytest.approx(row, abs=1e-12)


def _rows(answer: Any, limits: bool) -> list[float]:
    if limits:
        return [row["estimate"]["value"] for row in answer["result"]["scalars"]]
    return [row["mean"] for row in answer["result"]["rows"]]


def test_a_device_is_no_flag_of_what_does_not_sample(tpcalc: Run) -> None:
    assert tpcalc("kernel", "mlp", "--device", "cpu").code == 2


def test_limit_gives_the_numbers_of_the_function(tpcalc: Run, program: Any) -> None:
    ran = tpcalc("limit", *NETWORK, *LIMIT, "--seed", 3, "--json")
    assert ran.code == 0
    table = limit(program, samples=256, replicates=4, seed=3).table
    found = ran.json
    assert found["tpcalc"] == tp.__version__
    assert found["command"] == "limit"
    assert [row.name for row in table.scalars] == ["f[0,0]", "f[1,0]"]
    assert len(table.vectors) == 4
    for row, shown in zip(table.scalars, found["result"]["scalars"], strict=True):
        own = row.estimate
        expected = {"value": own.value, "stderr": own.stderr, "method": own.method.value}
        assert shown["estimate"].items() >= expected.items()
        assert shown | parts(row.name) == shown
    for vector, shown in zip(table.vectors, found["result"]["vectors"], strict=True):
        for part in ("mean", "second_moment"):
            own = getattr(vector, part)
            assert (shown[part]["value"], shown[part]["stderr"]) == (own.value, own.stderr)
        assert shown | parts(vector.name) | {"n_power": "0"} == shown
    assert found["provenance"]["program"] == program.digest
    assert found["provenance"]["seed"] == 3


def test_limit_as_a_table(tpcalc: Run) -> None:
    ran = tpcalc("limit", *NETWORK, *LIMIT)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("tanh network of 2 hidden layers, mup, 1 step of training\n")
    for text in ("f[1,0]", "h[2,1,0]", "particles", "±"):
        assert text in ran.out


def test_simulate_gives_the_numbers_of_the_function(tpcalc: Run, program: Any) -> None:
    ran = tpcalc("simulate", *NETWORK, *FINITE, "--seed", 5, "--json")
    table = simulate(program, [16, 32, 64], 4, seed=5)
    result = ran.json["result"]
    assert (ran.code, result["widths"], result["seeds"]) == (0, [16, 32, 64], 4)
    assert len(result["rows"]) == len(table.rows)
    for row, shown in zip(table.rows, result["rows"], strict=True):
        mean = sum(row.values) / 4
        spread = (sum((value - mean) ** 2 for value in row.values) / 3) ** 0.5
        assert shown | parts(row.name) | {"width": row.width} == shown
        assert shown["values"] == list(row.values)
        assert shown["mean"] == pytest.approx(mean, rel=1e-12, abs=1e-15)
        assert shown["std"] == pytest.approx(spread, rel=1e-9)
        assert shown["stderr"] == pytest.approx(spread / 2, rel=1e-9)


@pytest.mark.torch
def test_simulate_dense(tpcalc: Run) -> None:
    words = ("--backend", "dense", "--dtype", "float32", "--widths", 16, "--seeds", 3)
    ran = tpcalc("simulate", *NETWORK, *words, "--json")
    assert ran.code == 0
    assert ran.json["result"]["backend"] == "dense"
    assert ran.json["provenance"]["settings"]["dtype"] == "float32"


def test_simulate_one_network_has_no_error(tpcalc: Run) -> None:
    rows = tpcalc("simulate", *NETWORK, "--widths", 16, "--seeds", 1, "--json").json["result"]
    assert all(row["stderr"] is None for row in rows["rows"])


def test_compare_gives_the_numbers_of_the_function(tpcalc: Run, program: Any) -> None:
    ran = tpcalc("compare", *NETWORK, *LIMIT, *FINITE, "--json")
    table = limit(program, samples=256, replicates=4).table
    found = compare(table, simulate(program, [16, 32, 64], 4))
    result = ran.json["result"]
    assert ran.code == 0
    assert len(result["rows"]) == len(found.rows) > 0
    for row, shown in zip(found.rows, result["rows"], strict=True):
        assert shown | parts(row.name) == shown
        for field in ("statistic", "limit", "limit_stderr", "width", "mean", "stderr", "z"):
            assert shown[field] == getattr(row, field), field
    assert len(result["slopes"]) == len(found.slopes) > 0
    for slope, shown in zip(found.slopes, result["slopes"], strict=True):
        assert shown | parts(slope.name) == shown
        assert (shown["slope"], shown["low"], shown["high"]) == (slope.slope, slope.low, slope.high)


@pytest.mark.parametrize("name", ["page.html", "page.md"])
def test_S0_39_report_is_written(tpcalc: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    ran = tpcalc("report", *REPORTED, *LIMIT, *FINITE, "--out", path)
    assert ran.code == 0
    title, verdict, agreement, place = ran.out.splitlines()
    assert verdict == "mup: feature-learning"
    assert title == "relu network of 2 hidden layers, mup, 1 step of training"
    assert agreement.startswith("width 64: ")
    assert place == str(path)
    text = path.read_text(encoding="utf-8")
    assert "Relu network of 2 hidden layers, mup, 1 step of training" in text
    assert "digits 0,1, 2 samples, seed 0" in text
    for section in ("Verdict", "Theorems", "Orders", "loss after each step"):
        assert section in text
    if name.endswith(".html"):  # the first picture
        loss, output = text.index("mean loss of the batch"), text.index("f, sample")
        assert loss < output < text.index("Verdict<")


def test_S0_39_report_of_two_parameterizations(tpcalc: Run, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    ran = tpcalc("report", *REPORTED, *LIMIT, *FINITE, "--versus", "naive-ip", "--out", path)
    assert ran.code == 0
    assert ran.out.splitlines()[1:3] == ["mup: feature-learning", "naive-ip: feature-learning"]
    text = path.read_text(encoding="utf-8")
    assert "mup beside naive-ip" in text
    assert "a = (0, 1/2, 1)" in text
    assert "a = (0, 1, 1)" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--versus", "mup"), "both parameterizations are mup"),
        (("--versus", "mupp"), "mupp"),
        (("--steps", 0, "--versus", "ntk"), "this model is not one"),
    ],
)
def test_bad_comparisons(tpcalc: Run, tmp_path: Path, words: tuple[Any, ...], said: str) -> None:
    ran = tpcalc("report", *REPORTED, *LIMIT, *FINITE, *words, "--out", tmp_path / "page.md")
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "page.md").exists()


def test_a_report_of_a_recurrent_network(tpcalc: Run, tmp_path: Path) -> None:
    """Its verdict is told for each of its matrices, which all tokens share."""
    path = tmp_path / "page.md"
    words = ("rnn", "--act", "relu", "--length", 2, "--steps", 1, "--samples", 1, "--watch", "h")
    ran = tpcalc("report", *words, *LIMIT, *FINITE, "--out", path)
    assert ran.code == 0
    page = path.read_text(encoding="utf-8")
    assert "token 2: its features move by order one" in page and "dW_x[W,1,1]" in page


def test_report_as_json(tpcalc: Run, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    found = tpcalc("report", *REPORTED, *LIMIT, *FINITE, "--out", path, "--json").json
    assert found["result"]["path"] == str(path)
    assert len(found["result"]["limit"]["scalars"]) == 2
    assert found["result"]["compare"]["slopes"]


def test_a_study_file_and_the_same_flags_agree(tpcalc: Run, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        '[model]\ndepth = 2\nact = "tanh"\n[training]\nsteps = 1\nsamples = 2\nwatch = ["h"]\n'
        "[limit]\nsamples = 256\nreplicates = 4\n"
    )
    by_file = tpcalc("limit", study, "--json").json
    by_flags = tpcalc("limit", *NETWORK, *LIMIT, "--json").json
    assert by_file["result"] == by_flags["result"]
    assert by_file["model"] == by_flags["model"]


def test_a_program_of_the_user(tpcalc: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import tpcalc as tp\nprint('noise')\n@tp.program\ndef walk(t):\n"
        "    v, W = t.gaussian('v'), t.matrix('W')\n"
        "    g = tp.n**-1 * (W @ (W.T @ v))\n    t.output('overlap', tp.mean(v * g))\n"
    )
    ran = tpcalc("limit", f"{path}:walk", "--json", *LIMIT)
    row = ran.json["result"]["scalars"][0]
    assert (ran.code, row["name"]) == (0, "overlap")
    found = row["estimate"]
    assert abs(found["value"] - 1) <= 5 * found["stderr"] + 1e-12
    out = tmp_path / "walk.html"
    ran = tpcalc("report", f"{path}:walk", *LIMIT, *FINITE, "--out", out)
    assert ran.code == 0
    page = out.read_text(encoding="utf-8")
    assert "The program walk of mine.py" in page and "Order of size" in page


SYMBOLS = """
import tpcalc as tp

@tp.program
def layer(t):
    x = t.gaussian("x")
    h = tp.n ** -tp.symbol("a") * (t.matrix("W") @ x)
    t.output("q", tp.mean(h * h))
    t.output("far", tp.mean(tp.exp(x * x)))
    t.output("g", tp.mean(tp.relu(x)))
"""


@pytest.mark.parametrize("command", ["limit", "simulate", "compare"])
def test_symbols_get_numbers_and_outputs_are_left_out(
    tpcalc: Run, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "layer.py"
    path.write_text(SYMBOLS)
    finite = () if command == "limit" else FINITE
    own = (command, f"{path}:layer", *finite, "--json")
    assert "no value here. Give it one, --values a=1/2" in tpcalc(*own).err
    for chosen, names in (("-far,-g", ["q"]), ("q,g", ["q", "g"]), ("*,-f*,-g", ["q"])):
        ran = tpcalc(*own, "--values", "a=1/2", "--only", chosen)
        found = ran.json["result"]
        rows = found.get("scalars") or found["rows"]
        assert (ran.code, list(dict.fromkeys(row["name"] for row in rows))) == (0, names)
    assert "no output called 'h'" in tpcalc(*own, "--values", "a=1", "--only", "-h").err
    assert "leaves none" in tpcalc(*own, "--values", "a=1", "--only", "-*").err


def test_a_data_file_with_queries_and_batches(tpcalc: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("x1,x2,y\n1,0,1\n0,1,-1\n1,1,1\n")
    (tmp_path / "query.csv").write_text("x1,x2\n0.5,0.5\n")
    words = ("--data", tmp_path / "data.csv", "--query", tmp_path / "query.csv", "--batch", 2)
    ran = tpcalc("limit", "mlp", "--depth", 1, "--steps", 1, *words, *LIMIT, "--json")
    rows = ran.json["result"]["scalars"]
    assert ran.code == 0
    assert [(row["step"], row["input"]) for row in rows] == [
        (t, i) for t in range(2) for i in range(3)
    ]


def test_several_outputs(tpcalc: Run) -> None:
    words = ("--classes", "0,1,2", "--loss", "xent", "--depth", 1, "--steps", 1, "--watch", "h")
    rows = tpcalc("limit", "mlp", *words, *LIMIT, "--json").json["result"]["scalars"]
    assert [(row["step"], row["input"], row["output"]) for row in rows] == [
        (t, 0, k) for t in range(2) for k in range(3)
    ]


def test_show_prints_the_program(tpcalc: Run, program: Any) -> None:
    ran = tpcalc("show", *NETWORK)
    assert ran.out == str(program).rstrip("\n") + "\n"
    found = tpcalc("show", *NETWORK, "--json").json
    assert found["result"]["text"] == str(program)
    assert found["result"]["outputs"] == [name for name, _ in program.outputs]
    assert found["provenance"] == {"program": program.digest}


def test_show_in_words(tpcalc: Run) -> None:
    ran = tpcalc("show", *NETWORK, "--words")
    assert "Loss: mse" in ran.out
    assert "h^2 = n^(-1/2) W^2 x^1." in ran.out


def test_show_dependencies(tpcalc: Run) -> None:
    words = ("mlp", "--depth", 2, "--act", "tanh", "--steps", 0, "--samples", 1, "--dependencies")
    lines = tpcalc("show", *words).out.splitlines()
    assert lines[2].split() == ["Z", "of", "Size", "Is", "a", "function", "of", "Moments"]
    (row,) = (line for line in lines if line.startswith(" h[2,0,0] "))
    assert "  hat W2 x[1,0,0]  " in row
    found = tpcalc("show", *words, "--json").json
    (h,) = (row for row in found["result"]["rows"] if row["name"] == "h[2,0,0]")
    assert h["on"] == ["hat W2 x[1,0,0]"] and h["n"] == "0" and h["degree"] == "1"
    kinds = {row["name"]: row["kind"] for row in found["result"]["gaussians"]}
    assert kinds["hat W2 x[1,0,0]"] == "hat" and kinds["h[1,0,0]"] == "start"
    assert found["provenance"]["settings"]["verify"] == "True"


def test_list(tpcalc: Run) -> None:
    ran = tpcalc("list")
    for text in ("activations", "gelu", "parameterizations", "ip-llr", "Hajjar", "xent", "sgd"):
        assert text in ran.out
    found = tpcalc("list", "losses", "--json").json["result"]
    assert list(found) == ["losses"]
    assert {"mse", "linear", "logistic", "xent"} <= {entry["name"] for entry in found["losses"]}


def test_doctor(tpcalc: Run) -> None:
    ran = tpcalc("doctor")
    assert "numpy" in ran.out and "GiB free" in ran.out
    found = tpcalc("doctor", "--json").json["result"]
    assert found["versions"]["tpcalc"] == tp.__version__
    assert found["devices"][0] == "cpu"
    assert found["threads"] >= 1 and found["free_memory"] > 0


def test_version(tpcalc: Run) -> None:
    assert tpcalc("--version").out == f"{tp.__version__}\n"
