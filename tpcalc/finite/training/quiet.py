"""``quiet``: torch without graphs of its own, small networks on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tpcalc.engine.device.devices import load_torch

# Multiplications of a product up to which it stays on one thread.
_ALONE = 2**25


@contextmanager
def quiet(cost: int) -> Iterator[None]:
    """Without graphs that torch keeps for derivatives unless asked, small networks on one thread.

    Products too small to be shared lose more by waiting for other threads than they gain, many
    times over where the cores have other work.
    """
    torch = load_torch()
    threads = torch.get_num_threads()
    if cost <= _ALONE:
        torch.set_num_threads(1)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(threads)
