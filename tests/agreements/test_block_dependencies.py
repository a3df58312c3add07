"""Dependency sets, corrections and initial weights: of blocks as they are written, and of cells."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

import tpcalc as tp
from tests.agree import agree
from tests.agreements.test_block_zeros import DATA, NETWORKS, run_on
from tests.agreements.test_blocks import RUNS, run_of
from tpcalc.errors import LimitError
from tpcalc.questions.dependencies import corrections, dependencies
from tpcalc.questions.initial_weights import initial_weights

FAST = ("biases, mup",)
SLOW = (
    "relu, ntk",
    "relu, mup",
    "gelu, ntk",
    "tanh, naive-ip",
    "resnet, mup",
    "momentum",
    "signsgd",
)
OPENED = ("momentum", "signsgd")
ROWS = ("W1[0]", "W1[1]", "W1[2]")
CASES = [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
# Products of the resnet multiply vectors without names, and sums of its stream are opened in cells.
NAMED = [one for one in CASES if "resnet, mup" not in str(one)]


def short(name: str) -> tp.Training:
    network, parameterization, *optimizer = RUNS[name]
    return run_of(network, parameterization, *optimizer, steps=1)


def expanded(names: Iterable[str]) -> set[str]:
    """Names of blocks as those of their cells."""
    found = set()
    for name in names:
        block = re.search(r"(\d+):(\d+)", name)
        cells = range(int(block[1]), int(block[2])) if block else ()
        found |= {name.replace(block[0], str(cell)) for cell in cells} if block else {name}
    return {re.sub(r"\bv\d+(\[[\d,]+\])?", "v", one) for one in found}  # nodes without names


def opened(names: Iterable[str]) -> set[str]:
    """The same with the rows of the first matrix in place of their sums."""
    sums = ("h[1,", "start of h[1,")
    return {part for name in names for part in (ROWS if name.startswith(sums) else (name,))}


def assert_no_less(cells: Any, blocks: Any, name: str) -> None:
    """Blocks are tested on samples with smaller errors: they may know a size that cells do not."""
    assert blocks.n == cells.n, name
    assert (cells.status, blocks.status) != ("exact", "upper"), name


@pytest.mark.parametrize("name", CASES)
def test_blocks_depend_on_what_their_cells_depend_on(name: str) -> None:
    run = short(name)
    cells = dependencies(run.unrolled.cells)
    blocks = dependencies(run.unrolled.blocks, reading="blocks")
    assert sorted(blocks) == sorted(cells)
    for output in cells:
        one, two = cells[output], blocks[output]
        assert_no_less(one, two, output)
        named, wanted = expanded(two.on), expanded(one.on)
        if name in OPENED:  # cell by cell the parameter is a node, and its start stands alone
            assert opened(named) == opened(wanted), output
        else:
            assert named == wanted, output
        assert expanded(two.doubtful) <= expanded(one.doubtful), output
        assert (one.vector, one.note) == (two.vector, two.note)
        # Of random numbers a block is not opened into the terms that are linear in them.
        assert two.degree == one.degree or (two.degree is None and not one.vector)
    names = list(cells)
    for first, second in zip(names, names[3:], strict=False):
        assert blocks.independent(first, second).proved == cells.independent(first, second).proved
    laws = {row.name: row.law for row in cells.table.gaussians}
    found = {row.name: row.law for row in blocks.table.gaussians if row.name in laws}
    assert {one: laws[one] for one in found} == found


@pytest.mark.parametrize("name", NAMED)
def test_corrections_of_blocks_are_those_of_their_cells(name: str) -> None:
    run = short(name)
    cells = {row.name: row for row in corrections(run.unrolled.cells).rows}
    blocks = {row.name: row for row in corrections(run.unrolled.blocks, reading="blocks").rows}
    assert blocks.keys() == cells.keys()
    for product, row in cells.items():
        terms = {term.vector: term for term in blocks[product].terms}
        assert (row.matrix, row.transpose, row.step, row.note) == (
            blocks[product].matrix,
            blocks[product].transpose,
            blocks[product].step,
            blocks[product].note,
        )
        assert terms.keys() == {term.vector for term in row.terms}
        for one in row.terms:
            two = terms[one.vector]
            assert one.zero == two.zero
            if one.coefficient is not None and two.coefficient is not None:
                agree(one.coefficient, two.coefficient)
            else:
                assert one.coefficient is two.coefficient is None


@pytest.mark.parametrize("name", NAMED)
def test_initial_weights_in_blocks_are_those_in_their_cells(name: str) -> None:
    run = short(name)
    cells = {(row.name, row.part_of): row for row in initial_weights(run.unrolled.cells).rows}
    read = initial_weights(run.unrolled.blocks, reading="blocks")
    blocks = {(row.name, row.part_of): row for row in read.rows}
    assert blocks.keys() == cells.keys()
    for key, row in cells.items():
        assert_no_less(row, blocks[key], row.name)
        assert replace(blocks[key], status=row.status, vanishes=row.vanishes, reason="") == replace(
            row, reason=""
        )
        assert row.vanishes is None or row.vanishes == blocks[key].vanishes


@pytest.mark.slow
@pytest.mark.parametrize("data", ["one-hot", "zero rows", "disjoint supports", "zero targets"])
def test_zeros_of_data_leave_the_same_out(data: str) -> None:
    run = run_on(DATA[data], *NETWORKS["tanh, mup"], steps=1)
    cells = dependencies(run.unrolled.cells)
    blocks = dependencies(run.unrolled.blocks, reading="blocks")
    for output in cells:
        assert_no_less(cells[output], blocks[output], output)
        assert expanded(blocks[output].on) == expanded(cells[output].on), output


@pytest.mark.slow
def test_too_many_corrections_are_refused_with_what_to_do() -> None:
    @tp.program
    def there_and_back(t: tp.Tracer) -> None:
        matrix, x = t.matrix("W"), t.gaussian("x", axes={"b": 64})
        for _ in range(3):  # each of six products has 64 cells, all but the first a correction
            x = tp.n**-1 * (matrix.T @ tp.relu(matrix @ x))
        t.output("x", x)

    with pytest.raises(LimitError, match="corrections of") as caught:
        corrections(there_and_back, reading="blocks")
    assert "verify=False" in str(caught.value)
    listed = corrections(there_and_back, reading="blocks", verify=False)
    assert any(
        term.doubtful and term.coefficient is None for row in listed.rows for term in row.terms
    )
    found = dependencies(there_and_back, reading="blocks")
    assert any("not estimated" in note for note in found.table.notes)
