"""The examples run, with small sizes, and print what their docstrings promise."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALL = {
    "01_write_a_program": ({"samples": 2**10, "widths": (64, 256, 1024)}, "width 1024"),
    "02_feature_learning_on_digits": ({"steps": 2, "samples": 2**8}, "t = 2"),
    "03_the_kernel_regime_is_random": ({"samples": 2**10, "replicates": 8}, "0.42"),
    "07_many_digits": (
        {"steps": 2, "held_out": 4, "samples": 2**9, "replicates": 2, "widths": (64,)},
        "of 4 digits after 32",
    ),
    "06_signal": ({"depth": 10}, "tanh, weights 2.5: chaotic"),
    "05_kernel_regression": ({"train": 100, "test": 50}, "ntk: "),
    "04_will_it_learn": (
        {"depth": 3, "widths": (64, 256, 1024), "seeds": 8},
        "ip-llr: feature-learning",
    ),
    "08_modules_on_digits": (
        {"samples": 2**9, "widths": (64,), "seeds": 4},
        "modules of width 64: -0.",
    ),
}
MARKS = {"08_modules_on_digits": (pytest.mark.torch, pytest.mark.slow)}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SMALL)


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in SMALL])
def test_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    settings, expected = SMALL[name]
    load(name).main(**settings)
    assert expected in capsys.readouterr().out
