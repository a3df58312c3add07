"""What trained networks of finite width did: curves of training, accuracies, ranks, rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tpcalc.results.tables import Provenance, SlopeRow
from tpcalc.shown import Shown

SHOWN = ("losses", "outputs", "accuracies", "ranks", "rates")
"""What an experiment can be about, in the order in which it is shown."""

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """One kind of network and how it is trained: one curve of a figure.

    Args:
        act: Activation, a catalogue name.
        parameterization: As the catalogue reads it: ``"ip-llr"``, ``"ip-non-centered:1"``.
        depth: Number of hidden layers L.
        width: Neurons n of each hidden layer.
        bias: Layers with biases: ``"none"``, ``"first"``, ``"hidden"`` or ``"all"``.
        std: Standard deviation of the initial weights of the layers 1..L; the last layer has 1.
        lr: Base learning rate eta.
        calibrated: Whether the base rates of step 0 are calibrated layer by layer.
        cap: The largest calibrated base rate.
        steps: Number of updates.
        batch: Samples in a step.
        optimizer: A catalogue name, with settings as in ``"adamw(decay=0.1)"``, a text or a file.
        schedule: Of the learning rate: ``"warmup:2,cosine"``; empty: it is constant.
        factors: Factors of the learning rate step by step, in place of a schedule.
        groups: Patterns of parameters with settings: ``(("bias", (("lr", "0"),)),)``.

    Example:
        >>> Setting("tanh", "mup", 6, 1024).text
        'mup, tanh'
    """

    act: str
    parameterization: str
    depth: int
    width: int
    bias: str = "first"
    std: float = 1.0
    lr: float = 0.01
    calibrated: bool = False
    cap: float = 500.0
    steps: int = 600
    batch: int = 512
    optimizer: str = "sgd"
    schedule: str = ""
    factors: tuple[float, ...] = ()
    groups: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()

    @property
    def text(self) -> str:
        """Parameterization and activation."""
        return f"{self.parameterization}, {self.act}"

    @property
    def rule(self) -> str:
        """Optimizer, schedule and groups in words; empty for SGD at the same rate at every step."""
        parts = [] if self.optimizer == "sgd" else [self.optimizer.strip().partition("\n")[0]]
        words = self.schedule or ", ".join(f"{factor:g}" for factor in self.factors)
        parts += [f"schedule {words}"] if words else []
        for pattern, settings in self.groups:
            parts.append(f"{pattern}: {' '.join('='.join(pair) for pair in settings)}")
        return "; ".join(parts)

    @property
    def facts(self) -> dict[str, Any]:
        """Its fields by name, optimizer, schedule and groups only where it has others than SGD."""
        plain = {"optimizer": "sgd", "schedule": "", "factors": (), "groups": ()}
        return {name: own for name, own in asdict(self).items() if own != plain.get(name)}


@dataclass(frozen=True, slots=True)
class Run:
    """What one setting gave, over independent trials.

    Args:
        setting: What was trained.
        losses: For each trial the mean loss of the batch of each step.
        outputs: For each trial the mean absolute output over the batch of each step, before its
            update.
        accuracies: For each trial the share of test images that are classified right at the end;
            empty where there are none. Ties go to the class of the smallest number.
        ranks_h: For each trial the rank of the preactivations h^l_1 over images, l = 1..L, after
            the first update; empty where they were not asked for.
        ranks_x: The same of the activations x^l_1.
        rates: For each trial the base rates of step 0, for the layers 1..L+1.
        diverged: For each trial the step at which an output was no longer finite; None if none.
        seconds: Time it took.

    Example:
        >>> run = Run(Setting("tanh", "mup", 2, 8), ((2.3, 2.2),), ((0.0, 0.1),), (0.5,))
        >>> run.trials
        1
    """

    setting: Setting
    losses: Rows
    outputs: Rows
    accuracies: tuple[float, ...] = ()
    ranks_h: tuple[tuple[int, ...], ...] = ()
    ranks_x: tuple[tuple[int, ...], ...] = ()
    rates: Rows = ()
    diverged: tuple[int | None, ...] = ()
    seconds: float = 0.0

    @property
    def trials(self) -> int:
        """How many trials there are."""
        return len(self.losses)


@dataclass(frozen=True, slots=True)
class Experiment(Shown):
    """All runs of an experiment, with what was reported elsewhere and what the limit says.

    Args:
        name: Its name: ``"E2"``.
        title: What it is about.
        data: The data, in words.
        runs: One for each setting.
        reported: Numbers that were published: (table, setting as ``Setting.text``, data, value).
        predicted: What the limit says of a setting: (setting as ``Setting.text``, sentence).
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
        source: Where it was published.
        shows: What it is about, of ``SHOWN``.
        shares: The share of each class among the test images: (data, shares); ``""`` stands for
            the data of the runs, other names for those of ``reported``.
        by_width: Calibrated settings at several widths, of which only the rates were found.
        slopes: The power of n in those rates, as measured: (setting as ``Setting.text``, one for
            each of the layers 1..L+1).
        growth: How the calibrated rates of a setting grow with the width n: (setting as
            ``Setting.text``, a word for each of the layers 1..L+1); ``"n^(1/2)"``, or
            ``">= n^(1/2)"`` where it is only a bound.
        theorems: What numbered theorems say of the same network with one output, trained on one
            sample in a step: (setting as ``Setting.text``, words).
        vanishing: Settings (as ``Setting.text``) whose outputs tend to 0 at every step.
        ranked: Over how many of the first training images ranks were taken.

    Example:
        >>> Experiment("E0", "nothing", "none", (), (), (), Provenance("0", "ab")).runs
        ()
    """

    name: str
    title: str
    data: str
    runs: tuple[Run, ...]
    reported: tuple[tuple[str, str, str, float], ...]
    predicted: tuple[tuple[str, str], ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()
    source: str = ""
    shows: tuple[str, ...] = SHOWN
    shares: tuple[tuple[str, tuple[float, ...]], ...] = ()
    by_width: tuple[Run, ...] = ()
    slopes: tuple[tuple[str, tuple[SlopeRow, ...]], ...] = ()
    growth: tuple[tuple[str, tuple[str, ...]], ...] = ()
    theorems: tuple[tuple[str, str], ...] = ()
    vanishing: tuple[str, ...] = ()
    ranked: int = 0


def constant_class(
    accuracy: float, shares: Sequence[float], rounding: float = 0.0
) -> tuple[int, ...]:
    """The classes whose share of the test images is the accuracy.

    A network that gives the same answer for every image has such an accuracy.

    Example:
        >>> constant_class(0.098, (0.098, 0.1135, 0.1032), 0.0005)
        (0,)
        >>> constant_class(0.9, (0.5, 0.5))
        ()
    """
    return tuple(
        label for label, share in enumerate(shares) if abs(share - accuracy) <= rounding + 1e-9
    )
