"""The README keeps its word: its lines are lines, and its program prints what it shows."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def block(mark: str, language: str) -> str:
    """The fenced block right after the comment ``<!-- mark -->``."""
    found = re.findall(rf"^<!-- {mark} -->\n```{language}\n(.*?)\n```$", README, re.S | re.M)
    assert len(found) == 1, f"README.md: one {language} block must follow <!-- {mark} -->"
    return found[0]


@pytest.mark.parametrize(
    ("mark", "command"), [("main-job", "tpcalc report "), ("tests", "python -m pytest")]
)
def test_command_is_one_line_that_installs_and_runs(mark: str, command: str) -> None:
    line = block(mark, "sh")
    assert "\n" not in line
    install, run = line.split(" && ")
    assert run.startswith(command)
    words = shlex.split(install)
    assert words[:4] == ["python", "-m", "pip", "install"]
    extras = re.fullmatch(r"\.\[(.*)\]", words[-1])
    assert extras, "the line must install this project"
    assert set(extras[1].split(",")) <= set(PROJECT["optional-dependencies"])
    subprocess.run(["bash", "-n", "-c", line], check=True)


@pytest.mark.parametrize("mark", ["example", "network"])
def test_program_prints_what_the_readme_shows(mark: str) -> None:
    source = block(mark, "python")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "README.md", "exec"), {"__name__": "readme"})
    assert printed.getvalue().split() == block(f"{mark}-output", "text").split()


def test_a_newcomer_can_read_it_at_once() -> None:
    assert len(README.splitlines()) <= 110


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
