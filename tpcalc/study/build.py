"""``Study`` -> the program of its training run, or its network alone, with words about it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.data import csv, digits, inline, queries
from tpcalc.errors import StudyError
from tpcalc.networks.network import Architecture
from tpcalc.results import Samples
from tpcalc.study.formulas import network_formulas
from tpcalc.study.load import architecture, parameterization
from tpcalc.study.model import Model, Network
from tpcalc.study.modules import module_run, own_data
from tpcalc.study.names import find_architecture
from tpcalc.study.schema import Study, TrainingPart
from tpcalc.study.words import facts, heading, program_words, title
from tpcalc.training.generic import FEATURES, generic
from tpcalc.training.losses import lookup as find_loss
from tpcalc.training.training import Routine, Training

# Settings of a network that are told where a study leaves them open, too.
_SHOWN = {"depth", "length", "act", "bias"}
# A few images show training at work; hundreds would make a long program.
_DIGITS = 4
PIXELS = 64  # of a digit


def build(study: Study, watch: Sequence[str] = ()) -> Model:
    """The program of a study.

    Example:
        >>> from tpcalc.study.load import study_of
        >>> model = build(study_of({"model": {"depth": 1}, "training": {"steps": 1}}))
        >>> [name for name, _ in model.program.outputs if name.startswith("f")]
        ['f[0,0]', 'f[1,0]']
    """
    part = study.training
    run = _training(study, data_of(study))
    data = run.data or own_data(study.module, run)
    run = run.replace(
        data=data,
        queries=queries(part.query, data.dimension) if part.query is not None else (),
        watch=watch if watch and "watch" not in part.model_fields_set else part.watch,
    )
    formulas = network_formulas(run.network, run.parameterization, run.steps)
    named, described = title(run), _description(study, run.network, data)
    return Model(
        program=run.blocks,
        study=study,
        title=named,
        facts=facts(run, data, part.query),
        words=program_words(run, formulas, data.outputs),
        formulas=formulas,
        input_names=_input_names(run),
        description=described,
        network=Network(run, study, named, described),
    )


def network_of(study: Study) -> Network:
    """The network of a study, for questions that train it themselves.

    Args:
        study: A checked study.

    Returns:
        The network; with data only where the study names some.

    Raises:
        StudyError: The data cannot be read, or do not fit the loss.

    Example:
        >>> from tpcalc.study.load import study_of
        >>> found = network_of(study_of({"model": {"depth": 2}, "training": {"steps": 5}}))
        >>> found.title, found.training.data, found.training.steps
        ('relu network of 2 hidden layers, mup', None, 5)
    """
    data = None
    if study.training.model_fields_set & {"data", "inputs", "samples", "classes", "seed"}:
        data = data_of(study)
    run = _training(study, data)
    return Network(run, study, heading(run), _description(study, run.network, data))


def data_of(study: Study) -> Samples | None:
    """The data of a study; where it has none a few digits, or numbers of the network's shape.

    None of a module without data: its own inputs are known when it is read.
    """
    part = study.training
    if part.data is None and part.inputs is None:
        if study.module.make is not None:
            return None
        network = architecture(study.model)
        if PIXELS % network.tokens:
            return _shaped(part, network)
    return _data(part)


def _shaped(part: TrainingPart, network: Architecture) -> Samples:
    """Numbers that are nobody's data, for a network whose tokens cannot share a digit's pixels."""
    tokens, count = network.tokens, part.samples or _DIGITS
    drawn = np.random.default_rng(part.seed).normal(size=(count, tokens * FEATURES)) / FEATURES**0.5
    return Samples(
        drawn.round(6),
        generic(part.loss, count, tokens, network.targets(FEATURES)).targets,
        f"random numbers for {tokens} tokens, seed {part.seed} (your own: --data FILE.csv "
        f"with {tokens} times d columns before the targets)",
    )


def _training(study: Study, data: Samples | None) -> Training:
    """The training run of a study; what the study leaves open is as everywhere."""
    part = study.training
    given = part.model_fields_set & Routine.__annotations__.keys()
    settings = {name: getattr(part, name) for name in given | {"steps"}}
    if study.module.make is not None:
        return module_run(study.module, data, settings)
    return Training(architecture(study.model), parameterization(study.model), data, **settings)


def _data(part: TrainingPart) -> Samples:
    # A file or numbers of one's own are all there is: nothing is chosen from them by class.
    strange = part.model_fields_set & {"classes", "seed"}
    if strange and (part.inputs is not None or part.data not in (None, "digits")):
        given = "the numbers given" if part.data is None else f"those of {part.data}"
        raise StudyError(
            f"training.{min(strange)} chooses among the digits; the data are {given}.",
            hint="Leave it out (on the command line --classes, --data-seed).",
        )
    if part.inputs is not None and part.targets is not None:
        return _first(inline(part.inputs, part.targets), part.samples)
    if part.data is None or part.data == "digits":
        # Cross-entropy wants one output for each class, also where there are two.
        onehot = find_loss(part.loss).name == "xent"
        count = _DIGITS if part.samples is None else part.samples
        encoding = "onehot" if onehot else None
        return digits(part.classes, count, part.seed, encoding=encoding)
    if Path(part.data).suffix.lower() != ".csv" and not Path(part.data).exists():
        raise StudyError(
            f"there is no data set called {part.data!r}.",
            hint="It is digits, or the path of a CSV file.",
        )
    return _first(csv(part.data), part.samples)


def _first(data: Samples, count: int | None) -> Samples:
    if count is None or count == len(data):
        return data
    checks.whole(count, "samples", most=len(data), hint=f"{data.origin} has no more.")
    return Samples(data.inputs[:count], data.targets[:count], f"{data.origin}, first {count}")


def _input_names(run: Training) -> tuple[str, ...]:
    batch = ["sample of the step"]
    if run.batch > 1:
        batch = [f"sample {index + 1} of the batch" for index in range(run.batch)]
    return (*batch, *(f"query {index + 1}" for index in range(len(run.queries))))


def _description(study: Study, network: Architecture, data: Samples | None) -> dict[str, Any]:
    part = study.model
    if study.module.make is not None:
        model = study.module.model_dump(mode="json", exclude_unset=True)
        return model | _trained(study, data)
    given = {"architecture", "param", "p", *part.model_fields_set}
    model = part.model_dump(mode="json", exclude_none=True, include=given)
    own = _SHOWN.intersection(find_architecture(part.architecture).parameters)
    model |= {name: getattr(network, name) for name in own if hasattr(network, name)}
    model = {name: model[name] for name in type(part).model_fields if name in model}
    return model | _trained(study, data)


def _trained(study: Study, data: Samples | None) -> dict[str, Any]:
    """How it is trained, and on what."""
    training = study.training.model_dump(
        mode="json",
        exclude_none=True,
        exclude={"inputs", "targets", "data", "classes", "seed"}
        | ({"groups"} if not study.training.groups else set()),
        exclude_unset=data is None,
    )
    if data is None:
        return {**training, "data": None}
    shape: dict[str, Sequence[int] | int | str] = {
        "origin": data.origin,
        "samples": len(data),
        "dimension": data.dimension,
        "outputs": data.outputs,
    }
    return {**training, "data": shape}
