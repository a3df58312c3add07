"""What every test shares: fixed randomness, and the tests that this machine cannot run."""

from __future__ import annotations

import gc
import importlib.util
import os
from typing import Any

import pytest
from hypothesis import settings

# Parallel workers share the cores: threads of theirs would only wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples in every run: a red test can be run again.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=50, database=None)
settings.load_profile("fixed")


def pytest_configure() -> None:
    """Stop where ``TPCALC_REQUIRE=torch,gpu`` names something that is not here.

    Continuous integration sets it, so that no test it should run is skipped in silence.
    """
    for name in filter(None, os.environ.get("TPCALC_REQUIRE", "").split(",")):
        reason = REASONS[name]()
        if reason:
            raise pytest.UsageError(f"TPCALC_REQUIRE names {name}, but {reason}.")


def pytest_collection_finish() -> None:
    """Let the garbage collector walk only over what tests make, and less often.

    Ten thousand tests and the modules of all stay to the end; walking over them takes a tenth of
    the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``-n 2`` each file stays with one worker: its tests share what they compute once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log) if config.getoption("dist") == "load" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests whose marker names something that is not here, and say what."""
    for marker, reason_of in REASONS.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        reason = reason_of() if marked else ""
        if reason:
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


def _no_torch() -> str:
    return "" if importlib.util.find_spec("torch") else "torch is not installed"


def _no_gpu() -> str:
    if _no_torch():
        return _no_torch()
    import torch

    return "" if torch.cuda.is_available() else "no CUDA device"


collect_ignore = ["modules"] if _no_torch() else []  # every file there imports it
REASONS = {"torch": _no_torch, "gpu": _no_gpu}
