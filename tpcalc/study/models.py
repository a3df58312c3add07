"""The MODEL of a command: a study file, a program in a Python or JSON file, catalogue words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tpcalc.doors.numbers import count
from tpcalc.errors import UnknownName, UsageError, short
from tpcalc.networks.files import load as load_json
from tpcalc.program.nodes import Kind
from tpcalc.program.program import Program
from tpcalc.study.build import build, network_of
from tpcalc.study.load import Flag, located, study_of
from tpcalc.study.model import Model, Network
from tpcalc.study.program_file import architecture_names, load_named, split_model
from tpcalc.study.schema import Study
from tpcalc.study.sections import read_sections

_FORMS = (
    "MODEL is a study file (study.toml), a program or a network in a file (file.py:name, or "
    "file.json written by tp.save), a module of PyTorch (file.py:make with --input), or one of"
)


def open_model(word: str, flags: Sequence[Flag] = (), watch: Sequence[str] = ()) -> Model:
    """Find out what a MODEL is, and make its program.

    Example:
        >>> open_model("mlp", [Flag("--steps", "training.steps", 0)]).title
        'relu network of 3 hidden layers, mup, at initialization'
    """
    in_python = split_model(word)
    if in_python is not None and not _is_module(flags):
        name, found = load_named(*in_python)
        if isinstance(found, Program):
            return _model(name, found, in_python[0], _settings(in_python[0], flags))
    if word.lower().endswith(".json"):
        settings = _settings(word, flags)
        return _model(Path(word).stem, load_json(word), word, settings)
    return build(study_at(word, flags), watch)


def _is_module(flags: Sequence[Flag]) -> bool:
    """Whether a file holds modules of PyTorch: their inputs are given."""
    return any(flag.key == "module.input" for flag in flags)


def is_program(word: str, flags: Sequence[Flag] = ()) -> bool:
    """Whether a MODEL is a program that is complete, and no network.

    Example:
        >>> is_program("mlp"), is_program("saved.json")
        (False, True)
    """
    in_python = split_model(word)
    if _is_module(flags):
        return False
    if in_python is None:
        return word.lower().endswith(".json")
    return isinstance(load_named(*in_python)[1], Program)


def open_network(word: str, flags: Sequence[Flag] = ()) -> Network:
    """The network of a MODEL, for questions that train it themselves.

    Example:
        >>> open_network("mlp", [Flag("--depth", "model.depth", 2)]).architecture.depth
        2
    """
    if is_program(word, flags):
        raise UsageError(
            f"{word!r} is a program; this question is about a network and its training.",
            hint="Give an architecture, a network in a file (@tp.network) or a study file; "
            "tpcalc orders takes programs.",
        )
    return network_of(study_at(word, flags))


def study_at(word: str, flags: Sequence[Flag] = ()) -> Study:
    """The study of a MODEL that is no program."""
    where = word if word.lower().endswith(".toml") else None
    return study_of(sections_at(word, flags), flags, where=where)


def sections_at(word: str, flags: Sequence[Flag] = ()) -> dict[str, Any]:
    """The sections of a study file, or those that a word stands for."""
    if word.lower().endswith(".toml"):
        return located(read_sections(Path(word)), Path(word).parent)
    names = architecture_names()
    if word not in names and split_model(word) is None:
        if Path(word).exists() or any(sign in word for sign in "/\\."):
            raise UsageError(f"{word!r} is no model.", hint=f"{_FORMS} {', '.join(names)}.")
        raise UnknownName("architecture", word, names, where="MODEL")
    if split_model(word) is not None and _is_module(flags):
        return {"module": {"make": word}}
    return {"model": {"architecture": word}}


def _settings(path: str, flags: Sequence[Flag]) -> Study:
    strange = sorted({flag.name for flag in flags if flag.key.startswith(("model.", "training."))})
    if strange:
        raise UsageError(
            f"{', '.join(strange)}: a program in a file is complete; such flags describe a network "
            "of the catalogue.",
            hint=f"Leave them out, or change {path}.",
        )
    return study_of({}, flags)


def _model(name: str, program: Program, path: str, settings: Study) -> Model:
    return Model(
        program=program,
        study=settings,
        title=f"the program {name} of {Path(path).name}",
        facts={"Program": f"{name} in {path}", **_contents(program)},
        words=(),
        formulas=(),
        input_names=(),
        description={"file": path, "name": name},
    )


def _contents(program: Program) -> dict[str, str]:
    scalars = sum(program.types[ref].kind is Kind.SCALAR for _, ref in program.outputs)
    return {
        "Drawn": short(", ".join(program.families), 80),
        "Outputs": f"{count(scalars, 'scalar')}, {count(len(program.outputs) - scalars, 'vector')}",
    }
