"""The command line starts quickly, describes itself, and shows progress on terminals only."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tpcalc.cli import flags
from tpcalc.cli.app import app
from tpcalc.cli.show import progress_bar
from tpcalc.study import Study

ROOT = Path(__file__).parents[2]
HEAVY = {"matplotlib", "numba", "numpy", "pydantic", "scipy", "sklearn", "sympy", "torch"}
HELP = """
import json, sys
from tpcalc.cli.app import app
try:
    app(["--help"])
except SystemExit as end:
    code = end.code
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""
Run = Callable[..., Any]


def test_help_loads_nothing_heavy() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", HELP], cwd=ROOT, capture_output=True, text=True, check=True
    )
    code, modules = json.loads(ran.stderr)
    assert "simulate" in ran.stdout
    assert code == 0
    assert not HEAVY & set(modules)


@pytest.mark.parametrize("command", [word for word in get_command(app).commands if word != "warm"])
def test_every_command_has_help(tpcalc: Run, command: str) -> None:
    ran = tpcalc(command, "--help")
    assert ran.code == 0
    assert "--json" in ran.out


def test_every_flag_sets_keys_of_a_study() -> None:
    lists = flags.NETWORK, flags.MODULE, flags.DATA, flags.LIMIT, flags.SIMULATE, flags.ASKED
    options = [option for own in (*lists, flags.RUN, flags.DEVICE, flags.SWEEP) for option in own]
    keys = [key for option in options for key in option.keys]
    known = {
        f"{section}.{key}"
        for section, field in Study.model_fields.items()
        for key in type(field.default).model_fields
    }
    assert len(set(keys)) == len(keys)
    # Inline numbers, the architecture and what it takes are no flags: they are long, or MODEL.
    assert known - set(keys) == {
        "model.architecture",
        "model.parameters",
        "module.make",
        "training.inputs",
        "training.targets",
    }
    assert set(keys) <= known


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with progress_bar("limit") as progress:
        assert progress is not None
        progress(0.5, "4 replicates")
    assert "limit" in terminal.getvalue()
    assert "4 replicates" in terminal.getvalue()


def test_no_progress_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = io.StringIO()
    monkeypatch.setattr(sys, "stderr", quiet)
    with progress_bar("limit") as progress:
        assert progress is None
    assert quiet.getvalue() == ""
