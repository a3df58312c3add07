"""What a task has of the machine: its share of cores and memory, one thread of torch."""

from __future__ import annotations

import pytest

from tpcalc.doors import machine
from tpcalc.engine.device.devices import load_torch
from tpcalc.tasks.alone import alone


def test_processes_share_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_system_free", lambda: 2**20)
    monkeypatch.setattr(machine, "_container_free", lambda: None)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: range(6), raising=False)
    own = machine.available_cores(), machine.available_memory()
    with alone(4), alone():  # a task within a task has no more than that
        assert (machine.available_cores(), machine.available_memory()) == (1, 2**18)
    with alone(2):
        assert machine.available_cores() == 3
    assert own == (machine.available_cores(), machine.available_memory()) == (6, 2**20)


@pytest.mark.torch
def test_torch_has_one_thread_in_a_task() -> None:
    torch = load_torch()
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        with alone():
            assert torch.get_num_threads() == 1
            torch.set_num_threads(2)  # as it is where torch is loaded here for the first time
            assert load_torch().get_num_threads() == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
