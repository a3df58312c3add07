"""Matrices with a text beside them in one ``.npz`` file, without pickles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpcalc.doors.arrays import arrays
from tpcalc.doors.write import writing
from tpcalc.errors import StudyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TEXT = "kernel"  # the entry that holds everything but the matrices


def write_matrices(place: Path, text: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file, which appears whole or not at all."""
    import numpy as np

    if place.suffix.lower() != ".npz":
        raise StudyError(
            f"a kernel is written as .npz, not as {place.suffix or 'a bare name'!r}.",
            where=str(place),
            hint=f"Call it {place.stem or 'kernel'}.npz.",
        )
    write_whole(place, {_TEXT: np.array(text), **arrays}, "kernel")


def write_whole(place: Path, entries: Mapping[str, Any], what: str) -> None:
    """Write arrays by name to a ``.npz`` file, which appears whole or not at all."""
    import numpy as np

    with writing(place, what) as file:
        np.savez(file, **dict(entries))


def read_matrices(place: Path, names: Iterable[str]) -> tuple[str, dict[str, NDArray[Any]]]:
    """Read what ``write_matrices`` wrote."""
    found = arrays(place, "kernel")
    text = found.get(_TEXT)
    if text is None or text.dtype.kind != "U" or text.ndim:
        raise misfit(place, "it has no description")
    entries = {name: found[name] for name in names if name in found}
    for name, array in entries.items():
        if array.dtype not in ("float64", "float32"):
            raise misfit(place, f"the {name.upper()} is of {array.dtype}, not of float64")
    return str(text[()]), entries


def misfit(place: Path, reason: str) -> StudyError:
    """The error for a file that holds something else."""
    return StudyError(
        f"this is no kernel: {reason}.",
        where=str(place),
        hint="Give a file that Kernel.save wrote.",
    )
