"""Experiment files: networks that are trained beside each other -> one ``Setting`` for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError

from tpcalc.errors import EvaluationError, TpcalcError
from tpcalc.experiments.trained import Plan
from tpcalc.results import Setting
from tpcalc.results.experiment import SHOWN
from tpcalc.study.schema import (
    ActivationWord,
    Count,
    GroupsPart,
    ParameterizationWord,
    Part,
    Positive,
    ScheduleWords,
    known,
)
from tpcalc.study.sections import BRANCH, Flag, problems_of, read_sections, refusal
from tpcalc.training.optimizer import TWO
from tpcalc.training.optimizers import lookup
from tpcalc.training.setting import run_of

_ONE, _EACH = f"{BRANCH}one", f"{BRANCH}each"


def _numbers(value: object) -> str:
    """Whether there is one number, or one for each kind of data."""
    return _EACH if isinstance(value, Mapping) else _ONE


_Steps = Annotated[
    Annotated[Count, Tag(_ONE)] | Annotated[dict[str, Count], Tag(_EACH)], Discriminator(_numbers)
]
_UNCAPPED = 1e12  # growth with the width is hidden where rates reach a cap
_Counts = Annotated[tuple[Count, ...], Field(strict=False)]
# Narrower networks are too far from a power law.
_Widths = Annotated[tuple[Annotated[int, Field(ge=16)], ...], Field(strict=False)]


class TrainingPart(Part):
    """``[training]``: what all networks have in common.

    Args:
        depth: Number of hidden layers L.
        width: Neurons of a hidden layer.
        lr: Base learning rate.
        optimizer: A catalogue name, with settings as in ``adamw(decay=0.1)``, or a file ``*.opt``.
        schedule: Factors of the learning rate step by step: ``"warmup:2,cosine"``, or a list.
        groups: Settings of some parameters by pattern: a role, a label or a glob.
        batch: Samples in a step.
        steps: Number of updates, or one number for each kind of data.
        trials: Independent networks behind each curve.
        cap: The largest calibrated base rate.
        rank_samples: Training images whose ranks are taken.
        widths: Where calibrated base rates are compared; none if empty.
    """

    depth: Count = 6
    width: Count = 1024
    lr: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.01
    optimizer: Annotated[str, known(lambda name: lookup(name).path(TWO))] = "sgd"
    schedule: ScheduleWords | None = None
    groups: GroupsPart = Field(default_factory=dict)
    batch: Count = 512
    steps: _Steps = 600
    trials: Count = 5
    cap: Positive = 500.0
    rank_samples: Count = 5000
    widths: _Widths = ()


class StandInPart(TrainingPart):
    """``[stand-in]``: numbers that replace those of ``[training]`` where data stand in for others.

    Args:
        data: Which kinds of data stand in.
    """

    data: Annotated[tuple[str, ...], Field(strict=False)] = ("digits", "mixture")


class NetworkPart(Part):
    """An entry of ``[[networks]]``: one parameterization, with several activations.

    Args:
        param: As the catalogue reads it.
        bias: Which layers have biases.
        calibrated: Whether the base rates of the first step are calibrated.
        act: The activations.
    """

    param: ParameterizationWord
    bias: Literal["none", "first", "hidden", "all"] = "first"
    calibrated: bool = False
    act: Annotated[tuple[ActivationWord, ...], Field(strict=False, min_length=1)]


class ReportedPart(Part):
    """An entry of ``[[reported]]``: published accuracies.

    Args:
        table: Where they stand.
        data: The kind of data.
        param: The parameterization.
        accuracy: Activation -> accuracy.
    """

    table: str
    data: str
    param: ParameterizationWord
    accuracy: dict[ActivationWord, Annotated[float, Field(ge=0, le=1)]]


class ExperimentFile(Part):
    """A whole experiment.

    Args:
        name: Its name.
        title: What it is about.
        source: Where it was published.
        shows: What is shown of it.
        training: What all networks have in common.
        stand_in: Smaller numbers for data that stand in for others.
        std: Activation -> standard deviation of the initial weights of the hidden layers.
        networks: The networks.
        reported: Published accuracies.
        classes: Kind of data -> test images of each class, of published data.
    """

    name: Annotated[str, Field(min_length=1)]
    title: str
    source: str = ""
    shows: Annotated[
        tuple[Literal["losses", "outputs", "accuracies", "ranks", "rates"], ...],
        Field(strict=False, min_length=1),
    ] = ("losses", "outputs", "accuracies", "rates")
    training: TrainingPart = TrainingPart()
    stand_in: Annotated[StandInPart, Field(alias="stand-in")] = StandInPart()
    std: dict[ActivationWord, Positive] = Field(default_factory=dict)
    networks: Annotated[tuple[NetworkPart, ...], Field(strict=False, min_length=1)]
    reported: Annotated[tuple[ReportedPart, ...], Field(strict=False)] = ()
    classes: dict[str, _Counts] = Field(default_factory=dict)


def load_experiment(path: str | Path, data: str, flags: Sequence[Flag] = ()) -> Plan:
    """Read an experiment file."""
    path = Path(path)
    return experiment_of(read_sections(path), data, flags, where=str(path))


def experiment_of(
    sections: Mapping[str, Any], data: str, flags: Sequence[Flag] = (), *, where: str | None = None
) -> Plan:
    """An experiment from nested mappings, as a TOML file gives them.

    Example:
        >>> networks = [{"param": "mup", "act": ["relu", "tanh"]}]
        >>> written = {"name": "mine", "title": "", "networks": networks}
        >>> plan = experiment_of(written, "digits", [Flag("--width", "training.width", 64)])
        >>> [(setting.text, setting.width) for setting in plan.settings]
        [('mup, relu', 64), ('mup, tanh', 64)]
    """
    merged = dict(sections)
    training = merged.get("training", {})
    if isinstance(training, Mapping):
        merged["training"] = training = {**training, **_smaller(merged, data)}
        training.update({flag.key.partition(".")[2]: flag.value for flag in flags})
    try:
        found = ExperimentFile.model_validate(merged)
    except ValidationError as error:
        problems = problems_of(error, ExperimentFile)
    else:
        problems = _contradictions(found, data)
        if not problems:
            plan = _plan(found, data)
            problems = _untrainable(plan.settings)
            if not problems:
                return plan
    raise refusal(problems, flags, where)


def _smaller(sections: Mapping[str, Any], data: str) -> Mapping[str, Any]:
    """What stands in for numbers that only the published data are large enough for."""
    part = sections.get("stand-in", {})
    try:
        if data not in StandInPart.model_validate(part).data:
            return {}
    except ValidationError:  # it is told where it stands
        return {}
    return {key: value for key, value in part.items() if key in TrainingPart.model_fields}


def _contradictions(file: ExperimentFile, data: str) -> list[tuple[str, str]]:
    problems = []
    steps = file.training.steps
    if isinstance(steps, dict) and data not in steps:
        listed = ", ".join(steps) or "none"
        problems.append(("training.steps", f"there is no number for {data}, only for {listed}."))
    if file.training.widths and not any(part.calibrated for part in file.networks):
        problems.append(("training.widths", "rates by width need a calibrated network."))
    texts = [text for part in file.networks for text in _texts(part)]
    for text in sorted({text for text in texts if texts.count(text) > 1}):
        problems.append(("networks", f"{text} is there twice."))
    return problems


def _untrainable(settings: Sequence[Setting]) -> list[tuple[str, str]]:
    """Networks that the optimizer, the schedule and the groups do not fit."""
    problems = []
    for setting in settings:
        try:
            run_of(setting)
        except EvaluationError:
            raise
        except TpcalcError as error:
            problems.append(("training", error.told))
    return list(dict.fromkeys(problems))


def _texts(part: NetworkPart) -> list[str]:
    return [f"{part.param}, {act}" for act in part.act]


def _plan(file: ExperimentFile, data: str) -> Plan:
    training = file.training
    networks = [(part, act) for part in file.networks for act in part.act]
    settings = tuple(_setting(file, part, act, data) for part, act in networks)
    return Plan(
        **file.model_dump(include={"name", "title", "source"}),
        shows=tuple(word for word in SHOWN if word in file.shows),
        settings=settings,
        by_width=tuple(
            replace(setting, width=width, cap=_UNCAPPED)
            for setting in settings
            if setting.calibrated
            for width in training.widths
        ),
        trials=training.trials,
        rank_samples=training.rank_samples if "ranks" in file.shows else 0,
        reported=tuple(
            (part.table, f"{part.param}, {act}", part.data, value)
            for part in file.reported
            for act, value in part.accuracy.items()
        ),
        shares=tuple(
            (kind, tuple(count / sum(counts) for count in counts))
            for kind, counts in file.classes.items()
        ),
    )


def _setting(file: ExperimentFile, part: NetworkPart, act: str, data: str) -> Setting:
    training, steps = file.training, file.training.steps
    return Setting(
        act=act,
        parameterization=part.param,
        bias=part.bias,
        std=file.std.get(act, 1.0),
        calibrated=part.calibrated,
        steps=steps[data] if isinstance(steps, dict) else steps,
        schedule=training.schedule if isinstance(training.schedule, str) else "",
        factors=tuple(training.schedule) if isinstance(training.schedule, list) else (),
        **training.model_dump(include={"depth", "width", "lr", "cap", "batch", "optimizer"}),
        groups=tuple(
            (pattern, tuple((name, str(value)) for name, value in settings.items()))
            for pattern, settings in training.groups.items()
        ),
    )
