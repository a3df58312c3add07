"""``Kept``: numbers that were computed, in a file, so that a run goes on where it was stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tpcalc.errors import StudyError

__all__ = ["Kept"]


class Kept:
    """Numbers by key; each is written as soon as it is there.

    Args:
        path: The file; None: nothing is kept.
        label: What the numbers belong to; a file of something else is refused.

    Raises:
        StudyError: The file cannot be read or written, or is of something else.
    """

    def __init__(self, path: Path | None, label: str) -> None:
        self._path, self._label = path, label
        self._found: dict[str, Any] = {}
        if path is None or not path.exists():
            return
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StudyError(f"{path} cannot be read: {error}.", where=str(path)) from error
        if not isinstance(read, dict) or read.get("of") != label:
            raise StudyError(
                f"{path} holds numbers of another run.",
                where=str(path),
                hint="Give another folder, or delete the file.",
            )
        self._found = read["numbers"]

    def __contains__(self, key: str) -> bool:
        return key in self._found

    def __getitem__(self, key: str) -> Any:
        return self._found[key]

    def put(self, key: str, value: Any) -> Any:
        """Keep a number, or what JSON can hold.

        Args:
            key: Its key.
            value: The number.
        """
        self._found[key] = value
        if self._path is not None:
            beside = self._path.with_suffix(".part")
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                text = json.dumps({"of": self._label, "numbers": self._found})
                beside.write_text(text, encoding="utf-8")
                beside.replace(self._path)
            except OSError as error:
                raise StudyError(f"{self._path} cannot be written: {error}.") from error
        return value
