"""``Model``: a program with the words and settings that came with it; ``Network``: before that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tpcalc.networks.network import Architecture
from tpcalc.program.program import Program
from tpcalc.results import Formula
from tpcalc.study.schema import Study
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.training import Training


@dataclass(frozen=True)
class Model:
    """What a command works on."""

    program: Program
    # the study it was made from; of a program in a file only limit and simulate mean anything
    study: Study
    title: str  # one line
    facts: Mapping[str, str]  # what it is, as pairs of words
    words: tuple[str, ...]  # what it computes, a sentence for each part
    formulas: tuple[tuple[str, Formula], ...]  # the same in formulas, by name
    input_names: tuple[str, ...]  # what the inputs 0, 1, ... of a step are.
    description: Mapping[str, Any]  # the same for JSON
    network: Network | None = None  # what is trained; None of a program in a file


@dataclass(frozen=True)
class Network:
    """What a question about training itself is asked of, before any program is made.

    Args:
        training: The run; without data where none were given and the question chooses its own.
        study: The study it was made from.
        title: One line.
        description: The same for JSON.
    """

    training: Training
    study: Study
    title: str
    description: Mapping[str, Any]

    @property
    def architecture(self) -> Architecture:
        """The network itself."""
        return self.training.network

    @property
    def parameterization(self) -> Parameterization:
        """The powers of its width."""
        return self.training.parameterization

    def run(self, steps: int) -> Training:
        """The run; of so many steps where the study does not say it."""
        given = "steps" in self.study.training.model_fields_set
        return self.training if given else self.training.replace(steps=steps)
