"""The MODEL of a command: a study file, a program in a Python file, or catalogue words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tpcalc.errors import UnknownName, UsageError
from tpcalc.program.nodes import Kind
from tpcalc.program.program import Program
from tpcalc.study.build import build
from tpcalc.study.load import Flag, load, study_of
from tpcalc.study.model import Model
from tpcalc.study.names import architecture_names
from tpcalc.study.program_file import load_program, split_model
from tpcalc.study.schema import Study

__all__ = ["open_model"]

_FORMS = "MODEL is a study file (study.toml), a program in a Python file (file.py:name), or one of"


def open_model(word: str, flags: Sequence[Flag] = ()) -> Model:
    """Find out what a MODEL is, and make its program.

    Args:
        word: ``study.toml``, ``file.py:name``, or the name of an architecture.
        flags: The flags that were given; they come before what a study file says.

    Raises:
        StudyError: A file that cannot be used.
        UsageError: Flags that do not fit each other or the model.
        UnknownName: It is none of the three.

    Example:
        >>> open_model("mlp", [Flag("--steps", "training.steps", 0)]).title
        'relu network of 3 hidden layers, mup, at initialization'
    """
    in_python = split_model(word)
    if in_python is not None:
        return _of_file(*in_python, flags)
    if word.lower().endswith(".toml"):
        return build(load(word, flags))
    names = architecture_names()
    if word not in names:
        if Path(word).exists() or any(sign in word for sign in "/\\."):
            raise UsageError(f"{word!r} is no model.", hint=f"{_FORMS} {', '.join(names)}.")
        raise UnknownName("architecture", word, names, where="MODEL")
    return build(study_of({"model": {"architecture": word}}, flags))


def _of_file(path: str, name: str | None, flags: Sequence[Flag]) -> Model:
    strange = sorted({flag.name for flag in flags if flag.key.startswith(("model.", "training."))})
    if strange:
        raise UsageError(
            f"{', '.join(strange)}: a program in a Python file is complete; such flags describe "
            "a network of the catalogue.",
            hint=f"Leave them out, or change {path}.",
        )
    found, program = load_program(path, name)
    settings: Study = study_of({}, flags)
    return Model(
        program=program,
        study=settings,
        title=f"{found} of {Path(path).name}",
        facts={"Program": f"{found} in {path}", **_contents(program)},
        words=(),
        input_names=(),
        description={"file": path, "name": found},
    )


def _contents(program: Program) -> dict[str, str]:
    kinds = Counter(type(node).__name__ for node in program.nodes)
    scalars = sum(program.types[ref].kind is Kind.SCALAR for _, ref in program.outputs)
    return {
        "Nodes": ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())),
        "Outputs": f"{scalars} scalars, {len(program.outputs) - scalars} vectors",
    }
