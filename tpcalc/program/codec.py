"""Programs as JSON: the canonical text with its schema version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tpcalc.doors import files
from tpcalc.doors.write import put
from tpcalc.errors import ProgramError
from tpcalc.functions.parse import AtomOf
from tpcalc.program.parse import RowOf, from_text, no_rows
from tpcalc.program.program import Program
from tpcalc.program.text import SCHEMA, to_text


def to_json(program: Program) -> dict[str, Any]:
    """A program for ``json.dumps``.

    Example:
        >>> from tpcalc.program.program import Builder
        >>> to_json(Builder().finish())
        {'schema': 2, 'text': ['tpcalc program 2', 'dim n 1']}
    """
    return {"schema": SCHEMA, "text": to_text(program).splitlines()}


def from_json(data: Any, atoms: AtomOf, rows: RowOf = no_rows) -> Program:
    """The program that ``to_json`` wrote; ``from_json(to_json(p), atoms) == p``."""
    if not isinstance(data, Mapping):
        raise ProgramError("the JSON of a program is an object.", where="$")
    if data.get("schema") != SCHEMA:
        raise ProgramError(
            f"the program has schema version {data.get('schema')!r}; this release reads version "
            f"{SCHEMA}.",
            where="$.schema",
            hint="tp.load reads what tp.save wrote; for another version take the release of tpcalc "
            "that wrote it.",
        )
    lines = data.get("text")
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise ProgramError("a list of lines is needed here.", where="$.text")
    return from_text("\n".join(lines), atoms, rows)


def save(program: Program, path: str | Path) -> None:
    """Write a program to a JSON file.

    Raises:
        StudyError: The file cannot be written.
    """
    text = json.dumps(to_json(program), indent=1) + "\n"
    put(Path(path), text, "program")


def load(path: str | Path, atoms: AtomOf, rows: RowOf = no_rows) -> Program:
    """Read a program from a JSON file.

    Raises:
        StudyError: The file cannot be read or is not JSON.
        ProgramError: Its content is not a program.
    """
    hint = "tp.load reads what tp.save wrote; the text of a program is read by tp.parse."
    data = files.from_json(files.text(Path(path), "program"), str(path), hint=hint)
    return from_json(data, atoms, rows)
