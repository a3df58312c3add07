"""Derivations against networks, path by path: what a program computes with some draws is what its
limit graph computes with the same draws, up to what vanishes with the width."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest

from tests import graph_run, numpy_run
from tests.corpus.runs import FAMILIES
from tests.graph_text import from_text, to_text
from tpcalc.activations.entries import atom
from tpcalc.evaluate import settle
from tpcalc.limit.derive import cover
from tpcalc.limit.graph import LimitGraph
from tpcalc.program.program import Program

NARROW, WIDE, SEEDS = 64, 1024, 2
FALLS, SMALL = 0.75, 0.2
# Terms that fall like n^(-1/4), or squares of squares whose few largest coordinates decide.
SLOW = {"flat-1", "squared-relu"}
RUNS = {
    f"{family}-{name}": run.program
    for family, runs in FAMILIES.items()
    for name, run in runs.items()
    if run.program is not None and not run.limit.get("values") and name not in SLOW
}


def distances(program: Program, graph: LimitGraph, width: int) -> Mapping[str, float]:
    """For each output its distance from the graph over its size, both in the mean square."""
    powers = {name: float(target.power) for name, target in graph.targets if target.node}
    apart: dict[str, float] = defaultdict(float)
    whole: dict[str, float] = defaultdict(float)
    for seed in range(SEEDS):
        inputs = numpy_run.draw(program, width, np.random.default_rng(seed))
        network = numpy_run.run(program, width, inputs)
        limit = graph_run.run(graph, width, inputs)
        for name, power in powers.items():
            apart[name] += np.mean((network[name] / float(width) ** power - limit[name]) ** 2)
            whole[name] += np.mean(np.square(limit[name]))
    return {name: (apart[name] / (whole[name] + 1e-18)) ** 0.5 for name in powers}


@pytest.mark.parametrize("name", RUNS)
def test_graph_is_what_the_network_converges_to(name: str) -> None:
    program = RUNS[name]()
    if program.symbols:
        pytest.skip("its powers are symbols")
    found = cover(program, None, [name for name, _ in program.outputs], settle.Witness(0).claims)
    text = to_text(found.graph)
    assert from_text(text, atom) == found.graph and to_text(from_text(text, atom)) == text
    # Haar matrices are drawn by their factors, which takes the cube of the width.
    wider = WIDE // 4 if any(one.law != "gaussian" for one in program.families.values()) else WIDE
    narrow, wide = (distances(program, found.graph, width) for width in (NARROW, wider))
    assert narrow or not found.graph.targets
    far = {
        output: (narrow[output], wide[output])
        for output in wide
        if wide[output] > max(SMALL, FALLS * narrow[output])
    }
    assert not far


def test_a_graph_of_something_else_is_seen() -> None:
    """Twice a number, or another power, is not what networks converge to."""
    program = RUNS["regimes-mup-tanh-2-steps"]()
    graph = cover(program, None, (), settle.Witness(0).claims).graph
    half = Fraction(1, 2)
    moved = [
        (n, t if t.node is None else type(t)(t.power + half, t.node)) for n, t in graph.targets
    ]
    broken = type(graph)(graph.nodes, tuple(moved), graph.vector_dim, graph.dims, graph.groups,
                         graph.matrices)  # fmt: skip
    assert min(distances(program, broken, 64).values()) > SMALL
