"""``import tpcalc`` is light: what is heavy loads when it is first needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("matplotlib", "numba", "pydantic", "scipy.stats", "sklearn", "torch", "typer")
MEASURE = """
import json, sys, time
start = time.perf_counter()
import tpcalc
seconds = time.perf_counter() - start
print(json.dumps([seconds, sorted(sys.modules)]))
"""


def imported() -> tuple[float, list[str]]:
    """Seconds and modules of a fresh import; the interpreter's own start is not counted."""
    command = [sys.executable, "-c", MEASURE]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    seconds, modules = json.loads(ran.stdout)
    return seconds, modules


@pytest.fixture(scope="module")
def first() -> tuple[float, list[str]]:
    return imported()


def test_import_takes_less_than_700_ms(first: tuple[float, list[str]]) -> None:
    # Where the machine was busy with something else, the best of three counts.
    assert first[0] < 0.7 or min(imported()[0] for _ in range(2)) < 0.7


@pytest.mark.parametrize("name", HEAVY)
def test_import_does_not_load(name: str, first: tuple[float, list[str]]) -> None:
    assert name not in first[1]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("--help", ("numpy", "pydantic", "scipy")),
        ("check mlp --param mup", ("numba", "scipy.stats", "sklearn")),
        ("limit mlp --param mup", ("scipy.stats", "sklearn", "torch")),
        ("simulate mlp --param mup --widths 16", ("scipy.stats", "sklearn", "torch")),
    ],
)
def test_a_command_does_not_load(words: str, names: tuple[str, ...]) -> None:
    """What takes longer to import than the work of the command takes."""
    code = (
        f"import sys; sys.argv = ['tpcalc', *{words.split()}]\nfrom tpcalc.cli.app import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = ran.stderr.split()
    assert "tpcalc" in loaded
    assert not set(names) & set(loaded)
