"""``Kept``: rows that were computed, in a file, so that a run goes on where it was stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tpcalc.errors import StudyError
from tpcalc.results.codec import from_json, to_json
from tpcalc.training.training import Training


def digest_of(run: Training, *more: object) -> str:
    """Of all that numbers of a run depend on, and of what else they do."""
    network = (run.network.smallest.digest, run.network.words, run.parameterization.text)
    routine = (run.optimizer.label, run.data, run.steps, run.batch, run.loss.name)
    said = (*network, *routine, run.lr, run.groups, run.factors, run.gammas, *more)
    return hashlib.sha256("\n".join(map(str, said)).encode()).hexdigest()[:16]


class Kept:
    """Rows by key, in memory and in a file.

    Args:
        work: The folder of the file; None: nothing is kept.
        kind: What the rows are.
        label: What they belong to; a file of something else is refused.

    Raises:
        StudyError: The file cannot be read or written, or is of something else.
    """

    def __init__(self, work: str | Path | None, kind: str, label: str) -> None:
        self._path = None if work is None else Path(work) / f"{kind}-{label}.json"
        self._label = label
        self._found: dict[str, list[dict[str, Any]]] = {}
        if self._path is None or not self._path.exists():
            return
        try:
            read = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StudyError(
                f"{self._path} cannot be read: {error}.", where=str(self._path)
            ) from error
        if not isinstance(read, dict) or read.get("of") != label or "rows" not in read:
            raise StudyError(
                f"{self._path} holds numbers of another run.",
                where=str(self._path),
                hint="Give another folder, or delete the file.",
            )
        self._found = read["rows"]

    def rows(self, key: str, make: Callable[[], Iterable[Any]]) -> list[Any]:
        """Rows that are kept, or are made now."""
        if key not in self._found:
            self._found[key] = list(map(to_json, make()))
            self._write()
        return list(map(from_json, self._found[key]))

    def _write(self) -> None:
        if self._path is None:
            return
        beside = self._path.with_suffix(".part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps({"of": self._label, "rows": self._found})
            beside.write_text(text, encoding="utf-8")
            beside.replace(self._path)
        except OSError as error:
            raise StudyError(f"{self._path} cannot be written: {error}.") from error
