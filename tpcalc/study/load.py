"""Study files and command-line flags -> ``Study``, with every problem told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tpcalc.errors import EvaluationError, StudyError, TpcalcError
from tpcalc.networks.network import Architecture
from tpcalc.study.program_file import find_architecture, split_model
from tpcalc.study.schema import ModelPart, Study
from tpcalc.study.sections import Flag as Flag
from tpcalc.study.sections import problems_of, read_sections, refusal
from tpcalc.training.optimizers import FILES
from tpcalc.training.optimizers import lookup as find_optimizer
from tpcalc.training.parameterizations import Parameterization, lookup

# Keys of a network that are not its architecture's.
_OF_ALL = ("architecture", "param", "p", "parameters")
# What an architecture must be given, and a study need not say.
_COUNTS = ("depth", "length")


def load(path: str | Path, flags: Sequence[Flag] = ()) -> Study:
    """Read a study file.

    Args:
        path: A TOML file with the sections of ``Study``. Other files are looked for beside it.
        flags: Values that replace those of the file.

    Returns:
        The study.

    Raises:
        StudyError: The file cannot be read or is not TOML, or the study has problems; all of them
            are listed, with their keys.
        UsageError: As above, but the flags alone are to blame.
    """
    path = Path(path)
    return study_of(located(read_sections(path), path.parent), flags, where=str(path))


def located(sections: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The sections of a file, with the files that they name looked for beside it."""
    training, model, module = (sections.get(part) for part in ("training", "model", "module"))
    if isinstance(module, dict) and isinstance(module.get("make"), str):
        module["make"] = str(folder / module["make"])
    if isinstance(model, dict):
        own = model.get("architecture")
        if isinstance(own, str) and split_model(own) is not None:
            model["architecture"] = str(folder / own)
    if isinstance(training, dict):
        for key in ("data", "query"):
            value = training.get(key)
            if isinstance(value, str) and not (key == "data" and value == "digits"):
                training[key] = str(folder / value)
        groups = training.get("groups")
        for own in (training, *(groups.values() if isinstance(groups, dict) else ())):
            chosen = own.get("optimizer") if isinstance(own, dict) else None
            if isinstance(chosen, str) and (chosen.strip().endswith(FILES) or split_model(chosen)):
                own["optimizer"] = str(folder / chosen.strip())
    return sections


def merged_with(sections: Mapping[str, Any], flags: Sequence[Flag]) -> dict[str, Any]:
    """Nested mappings with the values of flags in place of theirs."""
    merged = {key: dict(v) if isinstance(v, Mapping) else v for key, v in sections.items()}
    for flag in flags:
        section, key = flag.key.split(".", 1)
        part = merged.setdefault(section, {})
        if isinstance(part, dict):
            part[key] = flag.value
    return merged


def study_of(
    sections: Mapping[str, Any], flags: Sequence[Flag] = (), *, where: str | None = None
) -> Study:
    """A study from nested mappings, as a TOML file gives them.

    Example:
        >>> study_of({"model": {"depth": 2}}, [Flag("--act", "model.act", "tanh")]).model.act
        'tanh'
    """
    merged = merged_with(sections, flags)
    _prefer_given_data(merged, flags)
    try:
        study = Study.model_validate(merged)
    except ValidationError as error:
        problems = problems_of(error, Study)
    else:
        problems = _contradictions(study)
        if not problems:
            return study
    raise refusal(problems, flags, where)


def _prefer_given_data(merged: dict[str, Any], flags: Sequence[Flag]) -> None:
    # A flag --data replaces the inline numbers of a file, as it replaces its file name.
    training = merged.get("training")
    given = any(flag.key == "training.data" for flag in flags)
    if given and isinstance(training, dict):
        training.pop("inputs", None)
        training.pop("targets", None)


def parameterization(model: ModelPart) -> Parameterization:
    """The parameterization of a study, with its parameter p where one is given."""
    if model.p is None:
        return lookup(model.param)
    return lookup(model.param, p=int(model.p) if model.p.is_integer() else model.p)


def architecture(model: ModelPart) -> Architecture:
    """The network of a study."""
    family = find_architecture(model.architecture)
    given = {
        name: getattr(model, name)
        for name in family.parameters
        if name in model.model_fields_set or (name in _COUNTS and family.own is None)
    }
    return family.make(**given, **model.parameters)


def _contradictions(study: Study) -> list[tuple[str, str]]:
    training = study.training
    problems = []
    if (training.inputs is None) != (training.targets is None):
        lacking = "targets" if training.targets is None else "inputs"
        problems.append(
            (f"training.{lacking}", "inputs and targets belong together; this one is missing.")
        )
    if training.inputs is not None and training.data is not None:
        problems.append(("training.data", "data and inputs exclude each other; keep one."))
    problems += _beside_module(study) if study.module.make else _without_module(study)
    try:
        parameterization(study.model)
    except TpcalcError as error:
        problems.append(("model.p", error.told))
    if not (problems and split_model(study.model.architecture)):
        problems += _of_architecture(study, bool(problems))
    return problems


def _of_architecture(study: Study, wrong: bool) -> list[tuple[str, str]]:
    """What is wrong with the network; a Python file of its own runs here."""
    model = study.model
    try:
        problems = _strange(model)
        if not (wrong or problems or study.module.make):
            architecture(model)
    except EvaluationError:  # too large for this machine: none of the file's faults
        raise
    except TpcalcError as error:
        if split_model(model.architecture) is None:
            return [("model", error.told)]
        return [("model.architecture", f"{error.where}: {error.told}")]
    return problems


def _beside_module(study: Study) -> list[tuple[str, str]]:
    """What a module has itself, and was given."""
    own = study.module.make
    strange = [f"model.{name}" for name in sorted(study.model.model_fields_set)]
    given = study.training.model_fields_set
    function = split_model(study.training.optimizer) is not None
    strange += [f"training.{key}" for key in ("groups", "lr_depth") if key in given]
    strange += ["training.lr"] if function and "lr" in given else []
    problems = [(key, f"{own} and its optimizer say it themselves.") for key in strange]
    if not study.module.input:
        problems.append(("module.input", f"what {own} reads is not said: NAME:SHAPE, as x:4x8."))
    return problems


def _without_module(study: Study) -> list[tuple[str, str]]:
    """What belongs to modules of PyTorch, and was given without one."""
    name = study.model.architecture
    problems = [
        (f"module.{key}", f"this belongs to modules of PyTorch, and {name} is none.")
        for key in sorted(study.module.model_fields_set)
    ]
    text = "functions of files train modules of PyTorch; this takes a text, or a file *.opt."
    try:
        if split_model(study.training.optimizer) is None:
            text = ""
            find_optimizer(study.training.optimizer)
    except TpcalcError as error:
        if study.training.optimizer.strip().endswith(FILES):  # what a file says is no wrong usage
            where = error.where or study.training.optimizer
            raise StudyError(error.message, where=where, hint=error.hint) from error
        text = error.told
    return [*problems, ("training.optimizer", text)] if text else problems


def _strange(model: ModelPart) -> list[tuple[str, str]]:
    """What was given and is no parameter of the architecture."""
    family = find_architecture(model.architecture)
    takes = [name for name in type(model).model_fields if name in family.parameters]
    own = ["parameters"] if family.own is not None else []
    listed = ", ".join([*takes, *own])
    strange = sorted(model.model_fields_set - {*_OF_ALL, *takes, *own})
    if family.own is None and model.parameters:
        strange.append("parameters")
    return [
        (f"model.{name}", f"{family.name} has no {name}; it takes {listed}.") for name in strange
    ]
