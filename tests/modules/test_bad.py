"""Most of what cannot be read runs in torch all the same."""

from __future__ import annotations

import pytest

from modules.bad import BAD, Bad

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_runs_forward_and_backward(bad: Bad) -> None:
    if bad.runs is None:
        return
    module = bad.make(bad.runs)
    bad.run(module, bad.runs).square().sum().backward()
    if bad.optimizer is not None:
        bad.optimizer(module, bad.runs)
