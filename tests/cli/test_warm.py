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
