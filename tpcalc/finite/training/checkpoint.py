"""Trials under way in one file: written whole or not at all, read without pickles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array
from tpcalc.errors import StudyError
from tpcalc.results.kernel_file import BROKEN, write_whole

_LABEL = "label"


@dataclass
class Trial:
    """What is known of one trial.

    Args:
        losses: Mean loss of each step so far; nan after divergence.
        outputs: Mean absolute output of each step.
        rates: Base rates of step 0.
        ranks_h: Ranks of preactivations after the first update; empty if not asked for.
        ranks_x: Those of activations.
        accuracy: Of the test images at the end.
        diverged: The step at which outputs were no longer finite; -1 if none.
        step: Updates done.
        finished: Whether there is nothing more to do.
        weights: Weights and biases by name, while it is under way.
        states: The parts of the states of their optimizers (``"W1/m"``), while it is under way.
        seconds: Time it took.
    """

    losses: Array
    outputs: Array
    rates: tuple[float, ...] = ()
    ranks_h: tuple[int, ...] = ()
    ranks_x: tuple[int, ...] = ()
    accuracy: float = float("nan")
    diverged: int = -1
    step: int = 0
    finished: bool = False
    weights: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    states: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    seconds: float = 0.0

    @classmethod
    def fresh(cls, steps: int) -> Trial:
        """A trial that has not begun."""
        return cls(np.full(steps, np.nan), np.full(steps, np.nan))


@dataclass(frozen=True)
class Store:
    """Where trials are kept; nowhere, if there is no path.

    Args:
        path: The file, or None.
        label: What the trials are of, in words; a file of anything else is refused.
    """

    path: Path | None
    label: Mapping[str, str]

    def load(self) -> list[Trial]:
        """The trials of the file; none where there is no file yet.

        Raises:
            StudyError: The file is damaged, no checkpoint, or one of something else.
        """
        if self.path is None or not self.path.exists():
            return []
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as found:
                entries = {name: found[name] for name in found.files}
            label = json.loads(str(entries.pop(_LABEL)[()]))
            trials = _unpacked(entries)
        except (*BROKEN, TypeError, AttributeError) as error:
            raise StudyError(
                "this is no checkpoint of a training, or it is damaged "
                f"({' '.join(str(error).split())[:120]}).",
                where=str(self.path),
                hint="Give another path, or delete the file to start anew.",
            ) from None
        self._check(label)
        return trials

    def save(self, trials: list[Trial]) -> None:
        """Write all trials; the file appears whole or stays as it was.

        Args:
            trials: Those that have begun, in order.

        Raises:
            StudyError: The place cannot be written.
        """
        if self.path is None:
            return
        entries: dict[str, Any] = {_LABEL: np.array(json.dumps(dict(self.label)))}
        for number, trial in enumerate(trials):
            entries |= {f"{number}/{name}": value for name, value in _packed(trial).items()}
        write_whole(self.path, entries, "checkpoint")

    def _check(self, label: Any) -> None:
        if not isinstance(label, dict):
            label = {}
        other = [name for name, value in self.label.items() if label.get(name) != value]
        if other:
            name = other[0]
            raise StudyError(
                f"this checkpoint is of another {', '.join(other)}: it has {label.get(name)}, "
                f"and {self.label[name]} is asked for.",
                where=str(self.path),
                hint="Give another path, or delete the file to start anew.",
            )


def _packed(trial: Trial) -> dict[str, Any]:
    return {
        "losses": trial.losses,
        "outputs": trial.outputs,
        "rates": np.array(trial.rates, dtype=np.float64),
        "ranks_h": np.array(trial.ranks_h, dtype=np.int64),
        "ranks_x": np.array(trial.ranks_x, dtype=np.int64),
        "numbers": np.array([trial.accuracy, trial.seconds]),
        "state": np.array([trial.diverged, trial.step, trial.finished], dtype=np.int64),
        **{f"weights/{name}": value for name, value in trial.weights.items()},
        **{f"states/{name}": value for name, value in trial.states.items()},
    }


def _unpacked(entries: Mapping[str, NDArray[Any]]) -> list[Trial]:
    trials: list[Trial] = []
    while f"{len(trials)}/state" in entries:
        own = f"{len(trials)}/"
        part = {name[len(own) :]: array for name, array in entries.items() if name.startswith(own)}
        diverged, step, finished = (int(number) for number in part["state"])
        accuracy, seconds = (float(number) for number in part["numbers"])
        trials.append(
            Trial(
                losses=np.array(part["losses"], dtype=np.float64),
                outputs=np.array(part["outputs"], dtype=np.float64),
                rates=tuple(map(float, part["rates"])),
                ranks_h=tuple(map(int, part["ranks_h"])),
                ranks_x=tuple(map(int, part["ranks_x"])),
                accuracy=accuracy,
                diverged=diverged,
                step=step,
                finished=bool(finished),
                weights=_below("weights/", part),
                states=_below("states/", part),
                seconds=seconds,
            )
        )
    return trials


def _below(folder: str, part: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    found = part.items()
    return {name[len(folder) :]: array for name, array in found if name.startswith(folder)}
