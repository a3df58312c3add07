"""The inputs that a network is measured on: in a random order, in batches of one size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from math import inf
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Index
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import StudyError, UsageError

Tensor = Any
Places = Index
_BATCH = 250


@dataclass(frozen=True)
class Shard:
    """Inputs in random order, as whole batches.

    Batches have one size because a function with batch norm is another function for another size.

    Args:
        rows: The inputs, a tensor whose first dimension counts them.
        order: Their places before.
        batch: Inputs of a batch.
        seed: The seed.
        left_out: How many inputs filled no batch.
    """

    rows: Tensor
    order: Tensor
    batch: int
    seed: int
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def mean(self) -> Tensor:
        """The mean input."""
        return self.rows.mean(0)

    @property
    def spread(self) -> float:
        """Tr Cov of the inputs."""
        return float(((self.rows - self.mean) ** 2).sum()) / (len(self) - 1)

    @property
    def features(self) -> int:
        """Entries of an input."""
        return int(self.rows[0].numel())

    @property
    def correction(self) -> float:
        """What a mean square of deviations from the mean of n inputs lacks: n / (n - 1)."""
        return len(self) / (len(self) - 1)

    def batches(self) -> Iterator[Tensor]:
        """All inputs, batch by batch; the same batches every time."""
        yield from self.rows.split(self.batch)

    def drawn(self, what: str, draw: int) -> Tensor:
        """A random batch of different inputs."""
        return self.at(self.places(what, draw))

    def independent(self, what: str, draw: int) -> Tensor:
        """A random batch of inputs that are drawn one by one, so that some may be the same."""
        return self.at(self.repeatable_places(what, draw))

    def places(self, what: str, draw: int) -> Places:
        """Where the inputs of ``drawn`` are."""
        return self.stream(what, draw).choice(len(self), self.batch, replace=False)

    def repeatable_places(self, what: str, draw: int) -> Places:
        """Where the inputs of ``independent`` are."""
        return self.stream(what, draw).integers(len(self), size=self.batch)

    def noise(self, like: Tensor, what: str, draw: int) -> Tensor:
        """Independent N(0, 1) entries."""
        entries = self.stream(what, draw).standard_normal(tuple(like.shape))
        return load_torch().from_numpy(entries).to(like.device, like.dtype)

    def stream(self, what: str, draw: int) -> np.random.Generator:
        """The random numbers of one draw; drawn on the host, so the same on every device."""
        digest = blake2b(what.encode(), digest_size=8).digest()
        words = [self.seed, int.from_bytes(digest, "little"), draw]
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence(words)))

    def at(self, places: Places) -> Tensor:
        """The inputs at some places."""
        torch = load_torch()
        return self.rows.index_select(0, torch.from_numpy(places).to(self.rows.device))


def shard_of(x: Any, batch: int | None = None, seed: int = 0) -> Shard:
    """Inputs, brought into a random order and cut into batches.

    Example:
        >>> shard = shard_of([[0.0], [1.0], [2.0]], batch=2)
        >>> len(shard), shard.left_out
        (2, 1)
    """
    torch = load_torch()
    rows = x.detach() if isinstance(x, torch.Tensor) else torch.tensor(checks.inputs(x, "x"))
    if rows.ndim < 2 or len(rows) < 2 or not rows.is_floating_point():
        raise UsageError(
            f"x has shape {tuple(rows.shape)} and holds {str(rows.dtype).removeprefix('torch.')}.",
            hint="It has a row of real features for each input, and two inputs or more.",
        )
    if not bool(torch.isfinite(rows).all()):
        raise StudyError("an entry is not finite.", where="x", hint="Drop or repair that input.")
    seed = checks.seed(seed)
    size = min(_BATCH, len(rows)) if batch is None else checks.whole(batch, "batch", least=1)
    kept = len(rows) // size * size
    if kept < 2:
        raise UsageError(
            f"a batch has {size} inputs, and there are {len(rows)}.",
            hint=f"Take batch = {len(rows)} or less, and two inputs or more.",
        )
    words = [seed, len(rows)]
    order = np.random.Generator(np.random.SFC64(np.random.SeedSequence(words)))
    chosen = torch.from_numpy(order.permutation(len(rows))[:kept]).to(rows.device)
    found = Shard(rows.index_select(0, chosen), chosen, size, seed, len(rows) - kept)
    if bool((found.rows == found.rows[0]).all()):
        raise UsageError("all inputs are equal.", hint="A nonlinearity needs inputs that differ.")
    if not 0 < found.spread < inf:
        raise UsageError(
            f"squares of inputs leave the range of {str(rows.dtype).removeprefix('torch.')}.",
            where="x",
            hint="Give inputs in another unit: the coefficient of x -> f(s x) under x / s is that "
            "of f under x.",
        )
    return found


def numbers(tensor: Any) -> Any:
    """The entries of a tensor as an array."""
    return tensor.detach().double().cpu().numpy()
