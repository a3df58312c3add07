"""Closed forms and quadrature agree with particles and with wide networks, program by program."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from agree import agree
from agreements.passes import first_pass
from agreements.programs import PROGRAMS

import tpcalc as tp
from tpcalc.results import Estimate, Method

# Refused: a function that jumps reads a normalised vector, or the leading order is 0.
REFUSED = {4, 20, 24, 26, 28}
SEEDS = [seed for seed in range(35) if seed not in REFUSED]


def answers(found: tp.Limit) -> Iterator[tuple[str, Estimate]]:
    for row in found.table.scalars:
        yield row.name, row.estimate
    for vector in found.table.vectors:
        yield f"mean of {vector.name}", vector.mean
        yield f"square of {vector.name}", vector.second_moment


def spread(found: Estimate) -> Estimate:
    """The standard deviation of a random scalar as an estimate of its own."""
    assert found.std is not None
    error = found.std / math.sqrt(2 * (found.replicates - 1)) if found.replicates else 0.0
    return Estimate(found.std, error, found.method)


def compare(program: tp.Program) -> dict[str, Method]:
    """Every answer of the chain against particles; what the chain used for each."""
    chain = tp.limit(program, samples=2**12, replicates=16, seed=1)
    particles = tp.limit(program, samples=2**12, replicates=16, seed=2, method="particles")
    methods, sampled = {}, dict(answers(particles))
    reasons = [row.text for row in chain.table.uncovered]  # e^(z^3) may have no mean, say
    assert all("may be infinite" in text or "0 if it exists" in text for text in reasons)
    for name, own in answers(chain):
        other = sampled[name]
        assert own.random == other.random
        agree(own, other)
        if own.random:
            agree(spread(own), spread(other))
        if own.method in (Method.EXACT, Method.QUADRATURE):
            assert own.stderr <= 1e-6 * max(1.0, abs(own.value))
        methods[name] = own.method
    return methods


@pytest.mark.parametrize("seed", SEEDS)
def test_first_passes(seed: int) -> None:
    """Random networks at the start: correlated starts, shared weights, normalisation, pooling."""
    methods = compare(first_pass(seed))
    assert methods["pooled[0]"] is not Method.PARTICLES


def test_first_passes_use_every_method() -> None:
    """The random networks are no easy selection."""
    used = {
        found.method
        for seed in (2, 3, 10)
        for _, found in answers(tp.limit(first_pass(seed), samples=2**7, replicates=2))
    }
    assert used == {Method.EXACT, Method.QUADRATURE, Method.PARTICLES}


# A batch of eight asks for hundreds of integrals; two outputs have them of the same kinds.
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "batch-of-8"])
def test_programs(name: str) -> None:
    compare(PROGRAMS[name]())


@pytest.mark.parametrize(
    "name",
    [
        "rnn",
        "two-ratios",
        "singular-covariance",
        "iterated",
        "fluctuations",
        "attention",
        "ratios-17",
    ],
)
def test_chain_agrees_with_wide_networks(name: str) -> None:
    """At a width of 2048, with a slack of 4/n of the size for corrections of order 1/n."""
    program = first_pass(17) if name == "ratios-17" else PROGRAMS[name]()
    chain = dict(answers(tp.limit(program, seed=4)))
    wide = tp.simulate(program, widths=[2048], seeds=24, seed=5)
    statistics = {"value": "{}", "mean": "mean of {}", "second_moment": "square of {}"}
    compared = 0
    for row in wide.rows:
        own = chain[statistics[row.statistic].format(row.name)]
        values = np.array(row.values)
        error = float(values.std(ddof=1) / math.sqrt(len(values)))
        if own.random:
            agree(spread(own), spread(_sample(values)))
            own = Estimate(own.value, 0.0, own.method)
        slack = 4 / 2048 * max(1.0, abs(own.value))
        agree(own, Estimate(float(values.mean()), error, Method.FINITE), rounding=slack)
        compared += 1
    assert compared == len(chain)


def _sample(values: np.ndarray) -> Estimate:
    std = float(values.std(ddof=1))
    return Estimate(0.0, 0.0, Method.FINITE, replicates=len(values), std=std)
