"""A trial under way in a file: written whole or not at all, read without pickles."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array
from tpcalc.doors.arrays import arrays
from tpcalc.errors import StudyError, short
from tpcalc.results.kernel_file import write_whole

_PREFIX = "at/"  # of arrays that a network goes on from


@dataclass
class Trial:
    """What is known of one trial."""

    losses: Array  # mean loss of each step so far; nan after divergence
    outputs: Array  # mean absolute output of each step
    rates: tuple[float, ...] = ()  # base rates of step 0
    # Ranks of preactivations after the first update; empty if not asked for
    ranks_h: tuple[int, ...] = ()
    ranks_x: tuple[int, ...] = ()  # those of activations
    accuracy: float = float("nan")  # of the test images at the end
    diverged: int | None = None  # the step at which outputs were no longer finite; None if none
    step: int = 0  # updates done
    seconds: float = 0.0  # time it took

    @property
    def finished(self) -> bool:
        """Whether no step is left."""
        return self.diverged is not None or self.step == len(self.losses)


@dataclass(frozen=True)
class Checkpoint:
    """Where a trial under way is kept; nowhere, if there is no path."""

    path: Path | None  # the file, or None
    key: str  # what the trial is; a file of anything else is refused

    def load(self, steps: int) -> tuple[Trial, dict[str, NDArray[Any]]]:
        """A trial with arrays that its network goes on from; without a file one that begins.

        Raises:
            StudyError: The file is damaged, no checkpoint, or one of something else.
        """
        if self.path is None or not self.path.exists():
            return Trial(np.full(steps, np.nan), np.full(steps, np.nan)), {}
        try:
            entries = arrays(self.path, "checkpoint")
            whole = str(entries.pop("digest")[()]) == _digest(entries)
            key, (step, seconds) = str(entries["key"][()]), entries["numbers"]
            trial = Trial(
                losses=np.array(entries["losses"], dtype=np.float64),
                outputs=np.array(entries["outputs"], dtype=np.float64),
                rates=tuple(map(float, entries["rates"])),
                ranks_h=tuple(map(int, entries["ranks_h"])),
                ranks_x=tuple(map(int, entries["ranks_x"])),
                step=int(step),
                seconds=float(seconds),
            )
        except StudyError as error:
            raise self.refused(f"damaged ({error.message})") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self.refused(f"damaged ({short(str(error))})") from None
        if not whole:
            raise self.refused("one whose arrays were changed")
        if key != self.key or trial.losses.shape != (steps,) or not 0 < trial.step < steps:
            raise self.refused(f"of another trial ({short(key)})")
        size = len(_PREFIX)
        at = {name[size:]: own for name, own in entries.items() if name.startswith(_PREFIX)}
        return trial, at

    def save(self, trial: Trial, at: Mapping[str, Any]) -> None:
        """Write a trial with the tensors of its network, where this process can write."""
        if self.path is None:
            return
        entries = {
            "key": np.array(self.key),
            "losses": trial.losses,
            "outputs": trial.outputs,
            "rates": np.array(trial.rates, dtype=np.float64),
            "ranks_h": np.array(trial.ranks_h, dtype=np.int64),
            "ranks_x": np.array(trial.ranks_x, dtype=np.int64),
            "numbers": np.array([trial.step, trial.seconds]),
            **{f"{_PREFIX}{name}": tensor.cpu().numpy() for name, tensor in at.items()},
        }
        entries["digest"] = np.array(_digest(entries))
        with suppress(StudyError):  # a worker may not see the folder: it goes on without
            write_whole(self.path, entries, "checkpoint")

    def refused(self, why: str) -> StudyError:
        """The error for a file that is not as it has to be."""
        return StudyError(
            f"this is no checkpoint of this trial, or it is {why}.",
            where=str(self.path),
            hint="Delete the file to start the trial anew.",
        )


def _digest(entries: Mapping[str, NDArray[Any]]) -> str:
    found = blake2b(digest_size=16)
    for name, own in sorted(entries.items()):
        found.update(f"{name} {own.dtype} {own.shape};".encode())
        found.update(np.ascontiguousarray(own).tobytes())
    return found.hexdigest()
