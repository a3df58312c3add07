"""``quiet``: torch without graphs of its own, on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tpcalc.engine.device.devices import load_torch


@contextmanager
def quiet() -> Iterator[None]:
    """Without graphs that torch keeps for derivatives unless asked, and on one thread, as in tasks.

    The last digits of products depend on the number of threads, and small products lose more by
    waiting for other threads than they gain.
    """
    torch = load_torch()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(threads)
