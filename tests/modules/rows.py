"""A module of the tests: a factory of a family, and what it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

EXPORTS = "exports"
BRANCHES = "branches on data"
Inputs = tuple[Any, ...] | dict[str, Any]


def floats(*sizes: int, seed: int = 0) -> Tensor:
    """Numbers of order one, the same in every run."""
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def tokens(*sizes: int, vocab: int = 32, seed: int = 0) -> Tensor:
    """Token ids, the same in every run."""
    return torch.randint(vocab, sizes, generator=torch.Generator().manual_seed(seed))


@dataclass(frozen=True)
class Row:
    """A family of modules.

    Args:
        name: What it is.
        make: The module at a width; what grows is proportional to the width.
        reads: Positional inputs, or those by keyword; or either as a function of the width.
        kind: ``EXPORTS``, or why ``torch.export`` refuses it.
    """

    name: str
    make: Callable[[int], nn.Module]
    reads: Inputs | Callable[[int], Inputs]
    kind: str = EXPORTS

    def inputs(self, width: int) -> Inputs:
        return self.reads(width) if callable(self.reads) else self.reads

    def run(self, module: nn.Module, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """The first tensor that the module gives, its inputs as numbers of a type."""
        inputs: Any = tree_map(
            lambda x: x.to(dtype) if x.is_floating_point() else x, self.inputs(width)
        )
        found = module(**inputs) if isinstance(inputs, Mapping) else module(*inputs)
        while not isinstance(found, Tensor):
            found = next(iter(found.values() if isinstance(found, Mapping) else found))
        return found
