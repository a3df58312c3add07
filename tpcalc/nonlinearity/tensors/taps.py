"""Networks that show their layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.nonlinearity.tensors.batch_moments import batch_moments
from tpcalc.shown import Shown

Tensor = Any


class HasLayers(Protocol):
    """A network that gives all of its layers on a batch, the batch itself first."""

    def layers(self, x: Tensor) -> Sequence[Tensor]:
        """All layers on a batch, each with a row for each input.

        Args:
            x: The batch.
        """


@dataclass(frozen=True)
class Tapped(Shown):
    """A function that gives its layers, as a network.

    Args:
        function: Takes a batch and gives its layers; the batch itself is put before them.
        module: What holds its batch norms, if there are any.

    Example:
        >>> torch = load_torch()
        >>> [len(layer) for layer in Tapped(lambda x: [x + 1, 2 * x]).layers(torch.ones(3, 2))]
        [3, 3, 3]
    """

    function: Callable[[Tensor], Sequence[Tensor]]
    module: Any = None

    def layers(self, x: Tensor) -> Sequence[Tensor]:
        """All layers on a batch.

        Args:
            x: The batch.
        """
        # A layer of its own, so that derivatives by the input see what all paths contribute.
        start = x.clone()
        return [start, *self.function(start)]


def tapped(module: Any) -> Tapped:
    """A ``torch.nn.Sequential`` with the output of each of its parts as a layer.

    Args:
        module: The module.

    Returns:
        A function of batches, with ``layers``.

    Raises:
        UsageError: It is no Sequential.

    Example:
        >>> nn = load_torch().nn
        >>> net = tapped(nn.Sequential(nn.Linear(2, 5), nn.ReLU()))
        >>> [tuple(layer.shape) for layer in net.layers(load_torch().ones(3, 2))]
        [(3, 2), (3, 5), (3, 5)]
    """
    if not isinstance(module, load_torch().nn.Sequential):
        raise UsageError(
            f"a {type(module).__name__} does not list its layers.",
            hint="Write Tapped(function) with a function that gives a batch's layers.",
        )

    def run(x: Tensor) -> list[Tensor]:
        found = [x]
        for part in module:
            found.append(part(found[-1].clone()))  # the part may change its input in place
        return found[1:]

    return Tapped(run, module)


@contextmanager
def measuring(network: Any) -> Iterator[None]:
    """Batch norms of a network on the moments of the batch at hand."""
    with batch_moments(getattr(network, "module", network)):
        yield
