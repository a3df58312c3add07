"""The rooms of the package: who may import whom, and who may import what."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tpcalc"
DECISION = ROOT / "docs" / "decisions" / "0001-rooms-and-layers.md"
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# Where the name that is imported is not the name that is asked of pip.
EXTRAS = ("torch", "dataframe", "parquet", "dask")
INSTALLED_BY = {
    "llvmlite": "numba",
    "markupsafe": "jinja2",
    "pydantic_core": "pydantic",
    "sklearn": "scikit-learn",
}


def test_no_import_crosses_the_layers() -> None:
    program = "from importlinter.cli import lint_imports_command as run; run()"
    found = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert "0 broken" in found.stdout


def test_every_room_is_named_in_the_layers() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms <= {room for floor in _floors() for room in floor}


def test_the_decision_on_rooms_says_what_stands_in_the_tree() -> None:
    table = "\n".join(
        f"| {floor} | `{room}` | {_first_line(room)} |"
        for floor, rooms in enumerate(reversed(_floors()), start=1)
        for room in rooms
    )
    assert table in DECISION.read_text(encoding="utf-8"), f"the table is\n{table}"


def test_no_room_imports_the_public_face() -> None:
    # tpcalc/__init__.py reaches every room, so a room that imports it reaches them all.
    found = [
        path.relative_to(ROOT).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        if "cli" not in path.parts and "tpcalc" in _imported(path)
    ]
    assert not found


def test_every_library_imported_is_a_declared_dependency() -> None:
    project = CONFIG["project"]
    declared = {
        re.split(r"[<>=\[; ]", entry)[0].lower()
        for entry in [
            *project["dependencies"],
            *(
                project["optional-dependencies"][extra][0]
                for extra in ("torch", "dataframe", "parquet", "dask")
            ),
        ]
    }
    used = {
        INSTALLED_BY.get(name, name): path
        for path in sorted(PACKAGE.rglob("*.py"))
        for module in _imported(path)
        if (name := module.split(".")[0]) not in sys.stdlib_module_names and name != "tpcalc"
    }
    undeclared = {name: str(path) for name, path in used.items() if name not in declared}
    assert not undeclared
    assert declared <= set(used), f"declared but never imported: {declared - set(used)}"


def _floors() -> list[list[str]]:
    """The rooms of each floor, the highest floor first."""
    contracts = CONFIG["tool"]["importlinter"]["contracts"]
    layers = next(entry["layers"] for entry in contracts if entry["id"] == "layers")
    return [[room.strip() for room in layer.split("|")] for layer in layers]


def _home(room: str) -> Path:
    """The file that says what a room is."""
    folder = PACKAGE / room / "__init__.py"
    return folder if folder.exists() else PACKAGE / f"{room}.py"


def _first_line(room: str) -> str:
    """The sentence that a room begins with, as Markdown."""
    said = ast.get_docstring(ast.parse(_home(room).read_text(encoding="utf-8"))) or ""
    return said.splitlines()[0].replace("``", "`").replace("|", "\\|")


@cache
def _imported(path: Path) -> set[str]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if node.module == "tpcalc":  # ``from tpcalc import results`` names a room
                rooms = {alias.name for alias in node.names if _home(alias.name).exists()}
                modules.update(f"tpcalc.{room}" for room in rooms)
                if len(rooms) == len(node.names):
                    continue
            modules.add(node.module)
        elif isinstance(node, ast.Call) and (name := _found(node)):
            modules.add(name)  # its files are read
    return modules


def _found(call: ast.Call) -> str:
    """The name of a module that ``find_spec`` or ``needed`` is asked for."""
    name = getattr(call.func, "id", "")
    asks = name in ("find_spec", "needed") and isinstance(call.args[0], ast.Constant)
    return ast.literal_eval(call.args[0]) if asks else ""
