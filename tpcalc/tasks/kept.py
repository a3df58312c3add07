"""``Kept``: values of tasks in a file, written as they come, from which the next run goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from tpcalc import checks
from tpcalc.doors.files import content
from tpcalc.doors.write import allowed
from tpcalc.errors import StudyError

FORMAT = "tpcalc tasks 2"


class Kept(AbstractContextManager["Kept"]):
    """Values by key, in memory and in a file of lines; used within ``with``.

    A line is written for each value as soon as it is there, with a digest: one that was changed is
    refused. What a run that was killed left of its last line is cut off.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Kept(folder, "squares", "of numbers") as kept:
        ...         kept["3"] = 9
        ...     with Kept(folder, "squares", "of numbers") as kept:
        ...         "3" in kept, kept["3"]
        (True, 9)
    """

    def __init__(self, work: str | Path | None, name: str, label: str | Mapping[str, str]) -> None:
        self._values: dict[str, Any] = {}
        self._file: Any = None
        self._folder = None if work is None else made_folder(work)
        self._name, self._label = name, label
        self._lock: Any = None
        if self._folder is not None:
            self._path = self._folder / f"{name}.jsonl"
            self._lock = _locked(self._folder / f".{name}.lock", self._folder)
            for left in self._folder.glob(f".{name}-*.npz.*"):  # a process was killed as it wrote
                left.unlink(missing_ok=True)
            try:
                self._open()
            except BaseException:
                self.close()
                raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let other runs write there."""
        if self._file is not None:
            with suppress(OSError):  # of what could not be written, which was told
                self._file.close()
        if self._lock is not None:
            self._lock.release()

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __setitem__(self, key: str, value: Any) -> None:
        """Keep a value that JSON can hold; what its task had reached is needed no more."""
        if self._file is not None:
            self._write({"key": key, "value": value})
        self._values[key] = value
        reached = self.state(key)
        if reached is not None:
            with suppress(OSError):
                reached.unlink()

    def state(self, key: str) -> Path | None:
        """A file for what a task of a key has reached, while it is under way."""
        if self._folder is None:
            return None
        own = hashlib.sha256(key.encode()).hexdigest()[:16]
        return (self._folder / f"{self._name}-{own}.npz").absolute()  # for other processes as well

    def _open(self) -> None:
        whole = 0
        with allowed(self._path, "what is kept here cannot be used"):
            data = content(self._path, "file of values", 1 << 34) if self._path.exists() else b""
            for number, line in enumerate(data.splitlines(keepends=True), 1):
                if not line.endswith(b"\n"):
                    break  # the run was killed while it wrote
                self._read(number, line)
                whole += len(line)
            self._file = self._path.open("r+b" if data else "w+b")
            self._file.truncate(whole)
            self._file.seek(whole)
        if not whole:
            self._write({"file": FORMAT, "of": self._label})

    def _read(self, number: int, line: bytes) -> None:
        try:
            entry = json.loads(line)
            if number == 1 and (entry["file"], entry["of"]) != (FORMAT, self._label):
                raise self.refused(f"holds values of something else{self._other(entry['of'])}")
            if entry.pop("digest") != _digest(entry):
                raise self.refused(f"was changed in line {number}")
            if number > 1:
                self._values[entry["key"]] = entry["value"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self.refused(f"is damaged in line {number}") from error

    def _other(self, of: Any) -> str:
        """Which settings differ."""
        own = self._label
        if not isinstance(of, dict) or isinstance(own, str):
            return ""
        names = [name for name in {**of, **own} if of.get(name) != own.get(name)]
        return f": other {', '.join(names)}" if names else ""

    def _write(self, entry: dict[str, Any]) -> None:
        with allowed(self._path, "what is kept here cannot be written"):
            written = json.dumps({**entry, "digest": _digest(entry)})
            self._file.write(written.encode() + b"\n")
            self._file.flush()

    def refused(self, why: str) -> StudyError:
        """The error for a file that is not as it has to be."""
        return StudyError(
            f"what is kept here {why}.",
            where=str(self._path),
            hint="Give another folder, or delete the file to start anew.",
        )


def _digest(entry: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(entry).encode()).hexdigest()[:16]


def made_folder(work: str | Path) -> Path:
    """A folder for what is kept, which is there afterwards."""
    found = checks.file(work, "work")
    with allowed(found, "the folder cannot be made"):
        found.mkdir(parents=True, exist_ok=True)
    return found


def _locked(path: Path, folder: Path) -> Any:
    """The right to write; the system takes it back from a process that ends."""
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    with allowed(folder, "the folder cannot be written to"):
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise StudyError(
                "another run writes into this folder.",
                where=str(folder),
                hint="Wait until it ends, or give another folder.",
            ) from None
    return lock
