"""Compiled code on disk: it is run as it was written, or compiled anew."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import numba
import pytest

import tpcalc.engine
from tpcalc.engine import kernels_compile

ENGINE = Path(tpcalc.engine.__file__).parent
COMPILED = {"exact", "inlined", "inner", "loose"}

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "other bytes": lambda data: bytes(255 - byte for byte in data),
    "a changed byte": lambda data: bytes([*data[:-600], 255 - data[-600], *data[-599:]]),
}


def half(x: float) -> float:
    return 0.5 * x


@pytest.mark.parametrize("kind", ["nbc", "nbi"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_on_disk_is_compiled_anew(
    kind: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def hits() -> int:
        compiled = kernels_compile.exact(half)
        assert compiled(3.0) == 1.5
        return sum(compiled.stats.cache_hits.values())

    assert (hits(), hits()) == (0, 1)
    (file,) = tmp_path.rglob(f"*.{kind}")
    file.write_bytes(DAMAGE[damage](file.read_bytes()))
    assert (hits(), hits()) == (0, 1)


def _decorated(function: ast.AST, names: set[str]) -> bool:
    given = getattr(function, "decorator_list", [])
    return bool(names & {getattr(one, "id", "") for one in given})


def test_what_compiled_functions_alone_call_is_called_by_no_other() -> None:
    """A call of one that has no code for the interpreter would end the process."""
    trees = {file: ast.parse(file.read_text("utf-8")) for file in ENGINE.rglob("*.py")}
    inner = {
        one.name: file
        for file, tree in trees.items()
        for one in tree.body
        if isinstance(one, ast.FunctionDef) and _decorated(one, {"inner"})
    }
    assert len(inner) > 50
    for file, tree in trees.items():
        compiled = [one for one in ast.walk(tree) if _decorated(one, COMPILED)]
        known = {id(part) for one in compiled for part in ast.walk(one)}
        read = {
            part.id
            for part in ast.walk(tree)
            if isinstance(part, ast.Name) and id(part) not in known
        }
        imported = {
            name.name
            for part in ast.walk(tree)
            if isinstance(part, ast.ImportFrom)
            for name in part.names
        }
        own = {name for name, place in inner.items() if place == file or name in imported}
        assert not read & own, file
