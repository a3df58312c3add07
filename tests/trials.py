"""Trials of one setting trained one after the other, beside what tasks do with them."""

from __future__ import annotations

from typing import Any

from tpcalc.finite.training.checkpoint import Checkpoint
from tpcalc.finite.training.loop import Common, first_rates, joined, train_trial
from tpcalc.progress import Progress
from tpcalc.results import Run, Setting
from tpcalc.results.images import Images

NOWHERE = Checkpoint(None, "")


def silent(fraction: float, text: str) -> None:
    """Nobody is told."""


class Stop(BaseException):
    """What interrupts a trial."""


def stopping(after: int) -> Progress:
    """What is told how far a trial is, and interrupts it the so-many-th time."""
    calls = iter(range(1, after + 1))

    def progress(fraction: float, text: str) -> None:
        if next(calls) == after:
            raise Stop

    return progress


def train_setting(setting: Setting, images: Images, *, trials: int = 1, **common: Any) -> Run:
    """Some trials of a setting."""
    shared = Common(images, **common)
    made = (train_trial(shared, setting, number, NOWHERE, silent) for number in range(trials))
    return joined(setting, [run for (run,) in made])


def initial_rates(setting: Setting, images: Images, *, trials: int = 1) -> Any:
    """Their calibrated base rates."""
    made = (first_rates(Common(images), setting, number, silent) for number in range(trials))
    return joined(setting, [run for (run,) in made]).rates
