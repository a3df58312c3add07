"""How soon a command answers in a fresh process, everything compiled: seconds of the processor.

Run with ``python -m tests.benchmarks tests/benchmarks/test_commands.py``.
"""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from tests.benchmarks.figures import figure

COMMANDS = {
    "`tpcalc --help`": ["-m", "tpcalc", "--help"],
    "`tpcalc check mlp --param mup`": ["-m", "tpcalc", "check", "mlp", "--param", "mup"],
    "`tpcalc limit mlp --param mup`": ["-m", "tpcalc", "limit", "mlp", "--param", "mup"],
}


def cpu_of(words: list[str]) -> float:
    """Seconds that a new interpreter and what it starts spend."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("case", COMMANDS)
def test_fresh_process(case: str) -> None:
    cpu_of(COMMANDS[case])  # compiles, and keeps bytecode
    seconds = min(cpu_of(COMMANDS[case]) for _ in range(5))
    print(f"\n{case}: {seconds:.2f} s")
    figure("first", case, seconds)
    assert seconds < 10
