"""A recipe: a family, its optimizer, and what must come out of the first steps.

Exponents s mean "of size n^s", of first order in the rate; a pair is a hull, -oo is exactly 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn
from torch.optim import Adam, Optimizer

from modules.rows import Row

Power = float | tuple[float, float]
Optimizers = Optimizer | list[Optimizer]
NEVER = -math.inf
LR = 1e-3


@dataclass(frozen=True)
class Case(Row):
    """A family, its optimizer, and what is expected of its first steps.

    Args:
        optimizer: The optimizers of a module at a width.
        verdict: In words.
        update: By parameter the term ΔW x of the first step, before its multiplier.
        output: By parameter the change of a linear function of the outputs when it alone takes
            the first step.
        later: Those changes that differ after the first step.
        also: Of f, df, scores, gradients, where they are part of the verdict.
        before_step: What is done between the gradients and the step.
        text: The optimizer as a text, where none of torch is it.
    """

    optimizer: Callable[[Any, int], Optimizers] = Adam
    verdict: str = ""
    update: Mapping[str, Power] = field(default_factory=dict)
    output: Mapping[str, Power] = field(default_factory=dict)
    later: Mapping[str, Power] = field(default_factory=dict)
    also: Mapping[str, Power] = field(default_factory=dict)
    before_step: Callable[[nn.Module, int], None] | None = None
    text: str = ""

    def step(self, module: nn.Module, width: int) -> None:
        """Take a step, the gradients being there."""
        if self.before_step is not None:
            self.before_step(module, width)
        made = self.optimizer(module, width)
        for one in made if isinstance(made, list) else [made]:
            one.step()


def rates(parameters: Iterable[nn.Parameter], n: int, c: Sequence[float]) -> list[dict[str, Any]]:
    """One group for each parameter, with the rate n^-c of its own."""
    pairs = zip(parameters, c, strict=True)
    return [{"params": [w], "lr": LR * n**-power} for w, power in pairs]


def clip(module: nn.Module, width: int) -> None:
    nn.utils.clip_grad_norm_(module.parameters(), 0.05)
