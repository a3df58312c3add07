"""PyTorch modules on the command line: ``file.py:make`` with what it reads and its optimizer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
Run = Callable[..., Any]
GPT = """\
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, n, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(n, 3 * n, bias=False)
        self.proj = nn.Linear(n, n, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        parts = self.qkv(x).split(C, dim=2)
        q, k, v = (y.view(B, T, self.heads, C // self.heads).transpose(1, 2) for y in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, n, heads):
        super().__init__()
        self.ln1, self.attn, self.ln2 = nn.LayerNorm(n), Attention(n, heads), nn.LayerNorm(n)
        self.up, self.down = nn.Linear(n, 4 * n), nn.Linear(4 * n, n)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, n_embd, n_head=4, n_layer=1, vocab=50):
        super().__init__()
        self.te, self.pe = nn.Embedding(vocab, n_embd), nn.Embedding(8, n_embd)
        self.b = nn.ModuleList([Block(n_embd, n_head) for _ in range(n_layer)])
        self.ln = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab, bias=False)

    def forward(self, tokens):
        x = self.te(tokens) + self.pe(torch.arange(tokens.shape[1]))
        for block in self.b:
            x = block(x)
        return self.head(self.ln(x))


class Small(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.inp, self.out = nn.Linear(8, n), nn.Linear(n, 3, bias=False)
        self.attn = Attention(n, 4)

    def forward(self, x):
        return self.out(self.attn(self.inp(x)))


def make(n):
    return GPT(n, n_layer=2)


def optimizer(model, n):
    return torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
"""
SCORES = 1 + GPT.splitlines().index(next(x for x in GPT.splitlines() if "is_causal" in x))
MLP = """\
import torch
from torch import nn

number = 3


def make(n):
    net = nn.Sequential(nn.Linear(8, n), nn.ReLU(), nn.Linear(n, n), nn.ReLU(), nn.Linear(n, 1))
    nn.init.normal_(net[4].weight, std=1 / n)
    return net


def mup(model, n):
    wide = [model[2].weight, model[4].weight]
    small = [one for one in model.parameters() if all(one is not other for other in wide)]
    groups = [{"params": small}, {"params": wide, "lr": 0.1 / n}]
    return torch.optim.Adam(groups, lr=1e-3, eps=0)


def scheduler(model, n):
    return torch.optim.lr_scheduler.LinearLR(mup(model, n))


def broken(n):
    return nn.Linear(8, size)


class Net(nn.Module):
    def __init__(self, d_model, depth, act="relu"):
        super().__init__()
        print("made")
        self.inp = nn.Linear(8, d_model)
        self.hidden = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(depth)])
        self.out = nn.Linear(d_model, 1, bias=False)
        self.act = getattr(torch, act)

    def forward(self, x, scale=None):
        x = self.act(self.inp(x if scale is None else scale * x))
        for one in self.hidden:
            x = self.act(one(x))
        return self.out(x)
"""
READS = ("--input", "x:2x8")


@pytest.fixture
def mlp(tmp_path: Path) -> Path:
    path = tmp_path / "mlp.py"
    path.write_text(MLP)
    return path


@pytest.fixture
def gpt(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(GPT)
    return path


def trained(path: Path, name: str = "make", optimizer: str = "mup") -> tuple[str, ...]:
    return f"{path}:{name}", "--optimizer", f"{path}:{optimizer}", *READS


# --------------------------------------------------------------------------------------- verdicts


@pytest.mark.parametrize(
    ("more", "word", "code"),
    [
        (("--no-verify",), "May be unstable at first order (bound)", 4),
        pytest.param((), "Unstable at first order (exact)", 1, marks=pytest.mark.slow),
    ],
)
def test_scores_that_grow_are_named_with_their_line(
    tpcalc: Run, gpt: Path, more: tuple[str, ...], word: str, code: int
) -> None:
    words = ("--optimizer", f"{gpt}:optimizer", "--input", "x:1x3x8")
    ran = tpcalc("check", f"{gpt}:Small", *words, "--first", *more)
    first, said, *_ = ran.out.splitlines()
    assert first.startswith("Small(n): 5 parameters; dimensions n/4, n; adamw(")
    assert first.endswith(f"of model.py:{len(GPT.splitlines())}")
    assert said.startswith(f"{word}: argument of softmax (model.py:{SCORES} (attn)) changes by")
    assert "Lines are those of model.py." in ran.out
    assert ran.code == code


@pytest.mark.slow
def test_a_small_gpt_with_one_rate_is_unstable(tpcalc: Run, gpt: Path) -> None:
    words = ("--optimizer", f"{gpt}:optimizer", "--input", "tokens:2x8:vocab=50")
    ran = tpcalc("check", f"{gpt}:make", *words)
    assert ran.out.startswith("GPT(n): 25 parameters; dimensions n/4, n, 4n; adamw(")
    assert ran.out.splitlines()[1].startswith("Unstable at first order")
    assert f"argument of softmax (model.py:{SCORES} (b.*.attn)) changes by" in ran.out
    assert ran.code == 1


def test_mup_learns(tpcalc: Run, mlp: Path) -> None:
    ran = tpcalc("check", *trained(mlp), "--first", "--json")
    found = ran.json["result"]
    assert (found["word"], found["status"], ran.code) == ("feature learning", "exact", 0)
    assert {row["line"] for row in found["rows"]} == {"mlp.py:8"}
    assert ran.json["model"]["input"] == {"x": "2x8"}


@pytest.mark.slow
def test_all_steps_say_the_same(tpcalc: Run, mlp: Path) -> None:
    ran = tpcalc("check", *trained(mlp))
    assert "Feature learning at first order (exact)" in ran.out
    assert ran.code == 0


def test_a_class_with_its_arguments(tpcalc: Run, mlp: Path) -> None:
    taken = ("--width", "d_model", "--set", "depth=1", "--set", "act=tanh")
    words = ("--optimizer", "adam(lr=0.1)", *READS, "--input", "scale:2x1")
    ran = tpcalc("check", f"{mlp}:Net", *taken, *words, "--first", "--no-verify", "--json")
    rows = {row["name"]: row["line"] for row in ran.json["result"]["rows"]}
    assert [*rows] == ["inp.weight", "inp.bias", "hidden.0.weight", "hidden.0.bias", "out.weight"]
    assert len(set(rows.values())) == 3
    assert "made" in ran.err  # what the file prints is no answer


def test_what_a_reader_should_know_is_told(tpcalc: Run, mlp: Path) -> None:
    ran = tpcalc("check", f"{mlp}:make", *READS, "--first", "--no-verify")
    assert "no optimizer was given: Adam with one learning rate for all parameters" in ran.out


# -------------------------------------------------------------------------------- other questions


def test_rates_are_solved_for(tpcalc: Run, mlp: Path) -> None:
    ran = tpcalc("solve", *trained(mlp), "--steps", 1, "--json")
    rates = {row["name"]: (row["rate"], row["given"]) for row in ran.json["result"]["largest"]}
    assert rates["2.weight"] == ("-1", "-1")
    assert rates["0.weight"] == ("0", "0")


def test_a_kernel_is_that_of_its_inputs(tpcalc: Run, mlp: Path) -> None:
    taken = ("--width", "d_model", "--set", "depth=0")
    ran = tpcalc("kernel", f"{mlp}:Net", *taken, *READS, "--kinds", "nngp", "--json")
    torch = pytest.importorskip("torch")
    x = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
    # Uniform weights and biases of variance 1 / 24, relu, and a readout of variance 1 / (3 n).
    length = (x.square().sum(1) + 1) / 24
    found = ran.json["result"]["nngp"]
    assert [found[k][k] for k in (0, 1)] == pytest.approx((length / 6).tolist(), rel=1e-5)


@pytest.mark.parametrize(
    ("question", "more"), [("limit", ()), ("simulate", ("--widths", 16, "--seeds", 2))]
)
def test_inputs_are_data(tpcalc: Run, mlp: Path, question: str, more: tuple[object, ...]) -> None:
    watch = ("--steps", 0, "--watch", "h")
    ran = tpcalc(question, *trained(mlp), *watch, *more, "--json")
    shape = ran.json["model"]["data"]
    assert (shape["samples"], shape["dimension"], ran.code) == (2, 8, 0)
    assert shape["origin"].startswith("the inputs it is read with")


@pytest.mark.slow
def test_a_report(tpcalc: Run, mlp: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    few = ("--steps", 1, "--widths", "16,32", "--seeds", 2)
    ran = tpcalc("report", *trained(mlp), *few, "--out", out)
    assert ran.code == 0 and "Sequential(n): 6 parameters" in out.read_text()


def test_a_study_file(tpcalc: Run, mlp: Path) -> None:
    study = mlp.with_name("study.toml")
    study.write_text(
        '[module]\nmake = "mlp.py:make"\ninput = {x = "2x8"}\n[training]\noptimizer = "mlp.py:mup"'
    )
    ran = tpcalc("check", study, "--first", "--no-verify")
    assert ran.out.startswith("Sequential(n): 6 parameters; dimensions n; adam(")


# --------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        ("mlp.py:make", "say what it reads, --input NAME:SHAPE", 3),
        ("mlp.py --input x:2x8", "several modules. Say which", 3),
        ("mlp.py:nothing --input x:2x8", "there is no module called 'nothing'", 2),
        ("mlp.py:number --input x:2x8", "number is a value of type int, no module", 3),
        ("mlp.py:broken --input x:2x8", "mlp.py:25: broken(64) raised NameError", 3),
        ("mlp.py:make --input x", "--input: 'x' is not of the form NAME:SHAPE", 2),
        ("mlp.py:make --input x:2y8", "--input: '2y8' is no shape. Write 4x8", 2),
        ("mlp.py:make --input x:2x8 --input x:2x8", "--input: x is given twice", 2),
        ("mlp.py:make --input x:2x9", "torch cannot run or export the module", 3),
        ("mlp.py:make --input x:2x8 --input y:2", "inputs= do not fit forward(input)", 3),
        ("mlp.py:make --input x:2x8 --set heads=4", "'heads'. --width says which argument", 2),
        ("mlp.py:Net --input x:2x8", "is not said. --width says which argument", 2),
        ("mlp.py:make --input x:2x8 --init w=1", "there is no parameter called 'w'", 2),
        ("mlp.py:make --input x:2x8 --output 3", "there is no output '3'", 3),
        ("mlp.py:make --input x:2x8 --clip 0", "--clip: it should be greater than 0", 2),
        ("mlp.py:make --input x:2x8 --depth 3", "--depth: mlp.py:make and its optimizer say", 2),
        ("mlp.py:make --input x:2x8 --optimizer admm", "no optimizer called 'admm'", 2),
        (
            "mlp.py:make --input x:2x8 --optimizer mlp.py:nothing",
            "no function called 'nothing'",
            2,
        ),
        ("mlp.py:make --input x:2x8 --optimizer mlp.py:number", "type int, no function", 3),
        (
            "mlp.py:make --input x:2x8 --optimizer mlp.py:scheduler",
            "the scheduler LinearLR stands where an optimizer is meant",
            3,
        ),
        (
            "mlp.py:make --input x:2x8 --optimizer mlp.py:mup --lr 2",
            "--lr: mlp.py:make and its optimizer say it themselves",
            2,
        ),
        ("mlp --input x:2x8", "--input: this belongs to modules of PyTorch", 2),
        ("mlp --optimizer mlp.py:mup", "--optimizer: functions of files train modules", 2),
        ("mlp --optimizer adam(lr=1)", "--optimizer: there is no hyperparameter of adam", 2),
    ],
)
def test_what_is_refused(
    tpcalc: Run, mlp: Path, monkeypatch: pytest.MonkeyPatch, words: str, message: str, code: int
) -> None:
    monkeypatch.chdir(mlp.parent)
    ran = tpcalc("check", *words.split(), "--first", "--no-verify")
    assert message in ran.err
    assert (ran.code, ran.out) == (code, "")


def test_without_torch_it_is_5(tpcalc: Run, mlp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it fails, as where it is absent
    ran = tpcalc("check", *trained(mlp))
    assert ran.code == 5 and "pip install" in ran.err


def test_the_help_says_that_the_file_is_executed(tpcalc: Run) -> None:
    assert "the file is executed" in " ".join(
        tpcalc("check", "--help").out.replace("│", "").split()
    )
