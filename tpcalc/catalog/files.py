"""Programs from text and files, with the functions of the catalogue."""

from __future__ import annotations

from pathlib import Path

from tpcalc.catalog.activations import atom
from tpcalc.program import codec
from tpcalc.program.parse import from_text
from tpcalc.program.program import Program

__all__ = ["load", "parse", "save"]


def parse(text: str) -> Program:
    """A program from its canonical text.

    Args:
        text: What ``str(program)`` prints.

    Raises:
        ProgramError: With the line and what is wrong in it.
    """
    return from_text(text, atom)


def save(program: Program, path: str | Path) -> None:
    """Write a program to a JSON file with a schema version."""
    codec.save(program, path)


def load(path: str | Path) -> Program:
    """Read a program from a JSON file.

    Raises:
        ProgramError: The file does not hold a program of a known schema.
    """
    return codec.load(path, atom)
