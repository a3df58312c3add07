"""``tpcalc warm``: afterwards questions compile nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHORT = ("--widths", "64,128", "--depth", "1", "--seeds", "2", "--particles", "256")
QUESTIONS = [
    ("limit", "mlp", "--param", "mup"),
    ("limit", "mlp", "--param", "mup", "--batch", "2", "--storage", "float32"),
    ("simulate", "mlp", "--param", "mup", "--widths", "64,1024"),
    ("compare", "resnet", "--param", "mup", "--optimizer", "adam", *SHORT),
    ("kernel", "mlp", "--act", "relu"),
    ("kernel", "mlp", "--act", "erf"),
]


DIGITS = """
import numpy as np, tpcalc as tp
inputs = np.random.default_rng(0).standard_normal((9, 4))
for act in ("erf", "relu"):
    found = tp.kernel(tp.MLP(3, act), inputs)
    print([found.matrix(kind).tobytes().hex() for kind in found.kinds])
"""


@pytest.mark.slow
def test_compiled_code_has_the_digits_of_kept_code(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    words = sys.executable, "-c", DIGITS
    fresh, kept = (
        subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert list(tmp_path.rglob("*.nbc")) and len(fresh) > 1000
    assert fresh == kept


@pytest.mark.slow
def test_nothing_is_left_to_compile(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def run(*words: str) -> tuple[str, set[Path]]:
        command = (sys.executable, "-m", "tpcalc", *words)
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return ran.stdout, set(tmp_path.rglob("*.nbc"))

    said, compiled = run("warm")
    assert said.startswith(f"Compiled code is kept in {tmp_path}")
    assert len(compiled) > 30
    for words in QUESTIONS:
        assert run(*words)[1] == compiled, words
