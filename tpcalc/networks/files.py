"""Programs from text and files, with the functions of the catalogue."""

from __future__ import annotations

from pathlib import Path

from tpcalc import checks
from tpcalc.activations.entries import atom
from tpcalc.activations.rows import row
from tpcalc.dsl import as_program
from tpcalc.program import codec
from tpcalc.program.parse import from_text
from tpcalc.program.program import Program


def parse(text: str) -> Program:
    """A program from its canonical text.

    Args:
        text: What ``str(program)`` prints.

    Returns:
        The program; its text is the same again.

    Raises:
        ProgramError: With the line and what is wrong in it.

    Example:
        >>> from tpcalc.program.nodes import Family, Input
        >>> from tpcalc.program.program import Builder
        >>> builder = Builder()
        >>> builder.output("v", builder.add(Input(Family.group("g", "n", (0,)))))
        >>> parse(str(builder.finish())) == builder.finish()
        True
    """
    return from_text(checks.text(text, "text", hint="Give what str(program) prints."), atom, row)


def save(program: Program, path: str | Path) -> None:
    """Write a program to a JSON file with a schema version.

    Args:
        program: A program, or a function decorated with ``tp.program``.
        path: The file; an existing one is replaced.

    Raises:
        TpcalcError: The file cannot be written.

    Example:
        >>> import tempfile
        >>> from tpcalc.program.nodes import Data
        >>> from tpcalc.program.program import Builder
        >>> builder = Builder()
        >>> builder.output("eta", builder.add(Data("eta", (2,))))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(builder.finish(), Path(folder) / "eta.json")
        ...     load(Path(folder) / "eta.json") == builder.finish()
        True
    """
    codec.save(as_program(program), checks.file(path))


def load(path: str | Path) -> Program:
    """Read a program from a JSON file.

    Args:
        path: The file.

    Returns:
        The program that was saved.

    Raises:
        ProgramError: The file does not hold a program of a known schema.

    Example:
        >>> load("no such file.json")
        Traceback (most recent call last):
        ...
        tpcalc.errors...
    """
    return codec.load(checks.file(path), atom, row)
