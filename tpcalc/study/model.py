"""``Model``: a program with the words and settings that came with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tpcalc.program.program import Program
from tpcalc.results import Formula
from tpcalc.study.schema import Study

__all__ = ["Model"]


@dataclass(frozen=True)
class Model:
    """What a command works on.

    Args:
        program: The program.
        study: The study it was made from; of a program in a file only ``limit`` and ``simulate``
            mean anything.
        title: One line.
        facts: What it is, as pairs of words.
        words: What it computes, a sentence for each part.
        formulas: The same in formulas, by name.
        input_names: What the inputs 0, 1, ... of a step are.
        description: The same for JSON.
    """

    program: Program
    study: Study
    title: str
    facts: Mapping[str, str]
    words: tuple[str, ...]
    formulas: tuple[tuple[str, Formula], ...]
    input_names: tuple[str, ...]
    description: Mapping[str, Any]
