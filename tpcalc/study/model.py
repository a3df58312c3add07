"""``Model``: a program with the words and settings that came with it; ``Network``: before that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tpcalc.catalog.parameterizations import Parameterization
from tpcalc.errors import UsageError
from tpcalc.networks.network import Architecture
from tpcalc.program.program import Program
from tpcalc.results import Formula, Samples
from tpcalc.study.schema import Study

__all__ = ["Model", "Network"]


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
        network: What is trained; None of a program in a file.
    """

    program: Program
    study: Study
    title: str
    facts: Mapping[str, str]
    words: tuple[str, ...]
    formulas: tuple[tuple[str, Formula], ...]
    input_names: tuple[str, ...]
    description: Mapping[str, Any]
    network: Network | None = None


@dataclass(frozen=True)
class Network:
    """What a question about training itself is asked of, before any program is made.

    Args:
        architecture: The network.
        parameterization: The powers of its width.
        data: The data, or None where none were given and the question chooses its own.
        study: The study it was made from.
        title: One line.
        description: The same for JSON.
    """

    architecture: Architecture
    parameterization: Parameterization
    data: Samples | None
    study: Study
    title: str
    description: Mapping[str, Any]

    def settings(self, *names: str) -> dict[str, Any]:
        """The keys of ``[training]`` that were given, as arguments of a function that takes them.

        Args:
            names: The keys that the function takes; it has its own defaults for them.

        Raises:
            UsageError: A key that it does not take was given, and would change the answer.
        """
        training = self.study.training
        # A factor of the learning rate changes no power of n, so it may stand anywhere.
        for name in ("optimizer", "loss", "batch"):
            if name in names or name not in training.model_fields_set:
                continue
            if getattr(training, name) != type(training).model_fields[name].default:
                raise UsageError(
                    f"training.{name} has no part in this question.", hint="Leave it out."
                )
        return {
            name: getattr(training, name) for name in names if name in training.model_fields_set
        }
