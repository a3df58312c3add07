"""What holds for every file of the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = sorted(
    path for room in ("tpcalc", "tests", "examples") for path in (ROOT / room).rglob("*.py")
)
TEXT = {
    ".cfg",
    ".css",
    ".html",
    ".ini",
    ".j2",
    ".js",
    ".json",
    ".md",
    ".py",
    ".sh",
    ".toml",
    ".yml",
}
SKIPPED = {"__pycache__", "_build", "build", "dist"}

# Spelled in pieces, so that this file does not contain what it looks for.
UNFINISHED = re.compile(
    r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "PLACE" + "HOLDER"]) + r")\b"
)
ABSOLUTE = re.compile(
    r"(?<![\w.])/(" + "|".join(["wo" + "rk", "tm" + "p", "ho" + "me", "ro" + "ot"]) + r")/"
)


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def repository() -> list[Path]:
    found = [ROOT / ".ci" / "run", ROOT / ".gitignore"]
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        if any(part in SKIPPED or part.startswith(".") for part in parts):
            continue
        if path.suffix in TEXT and path.is_file() and len(parts) > 1:
            found.append(path)
    return found + [ROOT / name for name in ("README.md", "pyproject.toml", "LICENSE")]


def test_the_walk_finds_the_repository() -> None:
    names = {shown(path) for path in repository()}
    assert {"tpcalc/errors.py", "README.md", ".ci/run", "docs/index.md"} <= names


def test_files_have_at_most_500_lines() -> None:
    lines = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in PYTHON}
    long = {path: count for path, count in lines.items() if count > 500}
    assert not long, "split them by what their parts do"


def test_no_room_for_odds_and_ends() -> None:
    named = [
        shown(path)
        for path in PYTHON
        if path.stem in {"utils", "util", "helpers", "misc", "common"}
    ]
    assert not named, "name each file after what it holds"


@pytest.mark.parametrize("pattern", [UNFINISHED, ABSOLUTE], ids=["unfinished", "absolute path"])
def test_nothing_unfinished_and_no_path_of_one_machine(pattern: re.Pattern[str]) -> None:
    found = [
        f"{shown(path)}:{number}: {line.strip()}"
        for path in repository()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, "\n".join(found)
