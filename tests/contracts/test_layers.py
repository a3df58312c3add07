"""The rooms of the package: who may import whom, and who may import what."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# Where the name that is imported differs from the name that is installed.
INSTALLED_AS = {"sklearn": "scikit-learn"}


def test_no_import_crosses_the_layers() -> None:
    program = "from importlinter.cli import lint_imports_command as run; run()"
    found = subprocess.run(
        [sys.executable, "-c", program, "--no-cache", "--no-logo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert "0 broken" in found.stdout


def test_every_room_is_named_in_the_layers() -> None:
    contract = next(
        entry for entry in CONFIG["tool"]["importlinter"]["contracts"] if entry["id"] == "layers"
    )
    named = {room.strip() for layer in contract["layers"] for room in layer.split("|")}
    rooms = {path.parent.name for path in (ROOT / "tpcalc").glob("*/__init__.py")}
    assert rooms <= named


def test_every_library_imported_is_a_declared_dependency() -> None:
    project = CONFIG["project"]
    declared = {
        re.split(r"[<>=\[; ]", entry)[0].lower()
        for entry in [*project["dependencies"], *project["optional-dependencies"]["torch"]]
    }
    used = {
        INSTALLED_AS.get(name, name): path
        for path in sorted((ROOT / "tpcalc").rglob("*.py"))
        for name in _imported(path)
        if name not in sys.stdlib_module_names and name != "tpcalc"
    }
    undeclared = {name: str(path) for name, path in used.items() if name not in declared}
    assert not undeclared
    assert declared <= set(used), f"declared but never imported: {declared - set(used)}"


def _imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names
