"""Every module of the rows is what it says: it runs, and it exports or does not."""

from __future__ import annotations

import pytest
import torch

from modules import BRANCHES, EXPORTS, ROWS, Row

pytestmark = pytest.mark.torch
each = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


@each
def test_runs_forward_and_backward(row: Row) -> None:
    torch.manual_seed(0)
    module = row.make(64)
    output = row.run(module, 64)
    assert output.isfinite().all()
    output.square().sum().backward()
    found = [w.grad for w in module.parameters() if w.grad is not None]
    assert found and all(grad.isfinite().all() for grad in found)


@each
@pytest.mark.slow
def test_exports_or_says_that_it_branches(row: Row) -> None:
    inputs = row.inputs(64)
    positional, named = ((), inputs) if isinstance(inputs, dict) else (inputs, None)
    if row.kind == EXPORTS:
        torch.export.export(row.make(64), positional, named, strict=False)
        return
    assert row.kind == BRANCHES
    with pytest.raises(torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode):
        torch.export.export(row.make(64), positional, named, strict=False)
