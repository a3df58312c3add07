"""Questions in this process and in two others: the same records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layered import Activation, Dense, Input, chain
from typer.testing import CliRunner

import tpcalc as tp
from tpcalc.cli.app import app
from tpcalc.errors import TaskFailed
from tpcalc.questions.kernel import tiles


def both(ask: Callable[[], Any]) -> Any:
    """An answer, which is the same in two processes."""
    here = ask()
    with tp.use(jobs=2):
        assert told(ask()) == told(here)
    return here


def told(answer: Any) -> dict[str, Any]:
    """All that a record holds but how long it took."""
    found = answer.to_dict()
    found["provenance"].pop("seconds")
    return dict(found)


@tp.program
def layers(t: tp.Tracer) -> None:
    matrix, x = t.matrix("W"), t.gaussian("x")
    for layer in range(3):
        x = matrix @ tp.tanh(x)
        t.output(f"h{layer}", x)


@tp.program
def steep(t: tp.Tracer) -> None:
    """Numbers that leave the floating-point range in some networks, the wide ones."""
    x = t.gaussian("x")
    t.output("x", x)
    t.output("steep", tp.exp(x * 80))
    t.output("steeper", tp.exp(x * 200))


@pytest.mark.parametrize(
    ("backend", "width", "seeds"),
    [
        ("lazy", 2**15, 64),
        pytest.param("dense", 1100, 14, marks=[pytest.mark.torch, pytest.mark.slow]),
    ],
)
def test_finite_networks(backend: str, width: int, seeds: int) -> None:
    """Networks so large that some seeds are a task."""
    found = both(lambda: tp.simulate(layers, [16, width], seeds, backend=backend))
    alone = tp.simulate(layers, [width], 1, seed=9, backend=backend)
    assert alone.rows[0].values[0] == found.rows[len(alone.rows)].values[9]


@pytest.mark.parametrize("storage", ["float64", "float32"])
def test_particles(storage: str) -> None:
    """One sample again and again: nearly dependent directions are found anew in float64."""
    data = tp.Samples([[1.0, 0.5, -0.5]] * 3, [[1.0]] * 3)
    program = tp.train(tp.MLP(2, "tanh"), "mup", data, steps=6, lr=0.01, watch=())
    texts: list[str] = []

    def ask() -> tp.Limit:
        def tell(fraction: float, text: str) -> None:
            texts.append(text)

        return tp.limit(program, method="particles", storage=storage, samples=2**14, progress=tell)

    found = both(lambda: ask().table)
    assert any("replicates from" in text for text in texts)
    assert dict(found.provenance.settings)["storage"] == "float64"


@pytest.mark.slow
def test_outputs_before_an_overflow() -> None:
    found = both(lambda: tp.simulate(steep, [16, 2**16], 64))
    assert [note.partition(":")[0] for note in found.notes] == ["at width 16", "at width 65536"]


@pytest.mark.slow
@pytest.mark.parametrize("others", [None, 50])
def test_tiles_of_kernels(others: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "SIDE", 20)
    monkeypatch.setattr(tiles, "LONG", 40)
    rows = np.random.default_rng(0).standard_normal((60, 3))
    beside = None if others is None else rows[:others] + 1
    both(lambda: tp.kernel(tp.MLP(1, "tanh"), rows, beside))


def modules(n: int) -> Any:
    import torch

    return torch.nn.Sequential(torch.nn.Linear(3, n), torch.nn.ReLU(), torch.nn.Linear(n, 1))


def adam(module: Any, n: int) -> Any:
    import torch

    return torch.optim.Adam(module.parameters(), lr=1 / n)


def checked(make: Callable[[int], Any]) -> Any:
    rows = np.ones((2, 3))
    asked = {"inputs": rows, "optimizer": adam, "steps": 1, "widths": (16, 32), "seeds": 2}
    return tp.coordinate_check(make, **asked)


@pytest.mark.torch
@pytest.mark.slow
def test_modules() -> None:
    both(lambda: checked(modules))


@pytest.mark.torch
@pytest.mark.slow
def test_first_steps_of_networks() -> None:
    both(lambda: tp.first_order(tp.MLP(2, "tanh"), "mup", measure=(16, 32)))


@pytest.mark.torch
@pytest.mark.slow
def test_layers_of_networks() -> None:
    """Numbers of some networks leave the range of float32 in the last layers."""
    square = Activation("square")
    graph = chain(Input(1, 0.25), [Dense(1), square, *[Dense(1 / 3), square] * 11])
    asked = tp.signal.Sampling((16, 32), seeds=3, inputs=40, dtype="float32")
    found = both(lambda: tp.signal.nonlinearity(graph, sampling=asked))
    assert found.ends and found.measured


@pytest.mark.slow
def test_networks_of_many_blocks() -> None:
    both(lambda: tp.simulate(tp.ResNet("L", "relu"), 200, 8, depth=100))


def test_functions_of_a_file_are_sent(tmp_path: Path) -> None:
    lines = (
        "import tpcalc as tp",
        "own = tp.function('own', lambda xp, z: xp.tanh(z))",
        "@tp.program",
        "def mine(t):",
        "    for k in range(4):",
        "        t.output(f'y{k}', own(t.gaussian(f'x{k}')))",
    )
    (tmp_path / "file.py").write_text("\n".join(lines))
    words = f"simulate {tmp_path}/file.py:mine --widths 16384 --seeds 64 --jobs"
    here, there = (CliRunner().invoke(app, [*words.split(), jobs]) for jobs in "12")
    assert (here.exit_code, there.exit_code) == (0, 0)
    assert here.output == there.output


def test_a_function_that_fails_is_named() -> None:
    def picky(xp: Any, z: Any) -> Any:
        if np.any((z > 3.91) & (z < 3.99)):
            raise ArithmeticError("not there")
        return xp.tanh(z)

    own = tp.function("picky", picky)

    @tp.program
    def refused(t: tp.Tracer) -> None:
        for index in range(4):
            t.output(f"y{index}", own(t.gaussian(f"x{index}")))

    with tp.use(jobs=2), pytest.raises(TaskFailed, match=r"replicates from 0 on .*not there"):
        tp.simulate(refused, [2**15], 64)


@pytest.mark.torch
@pytest.mark.slow
def test_a_module_that_fails_is_named() -> None:
    def failing(n: int) -> Any:
        if n == 32:
            raise ArithmeticError("not today")
        return modules(n)

    with tp.use(jobs=2), pytest.raises(TaskFailed, match=r"width 32, seed 0 .*not today"):
        checked(failing)
