"""A fixed list of random cases: networks contradict nothing that tpcalc says of them.

Run it with ``python -m pytest -m fuzz``; ``python -m tests.fuzz`` runs others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import tpcalc as tp
from tests.fuzz import blocks
from tests.fuzz.cases import FAMILIES, WRITTEN, examine
from tests.fuzz.judge import Claim, Number, Size, Zero, doubt
from tests.fuzz.networks import SMALL, Data, Values
from tests.fuzz.programs import ASSUMED
from tests.fuzz.written import Power
from tpcalc.results import Estimate, Exponent, Method

CHUNK = 3


# Kinds that were wrong once, and some that never were.
KEPT = {
    "blocks": (203, 210, 213, 215, 216, 218, 220, 222, 233, 240, 260, 262, 7090, 9061),
    "own": (1, 3, 4, 5, 6, 9),
}


def seeds(family: str) -> tuple[int, ...]:
    return KEPT.get(family, tuple(range(6 if family in ASSUMED else 3)))


CHUNKS = [
    pytest.param(
        family,
        seeds(family)[first : first + CHUNK],
        id=f"{family}-{first}",
        marks=[pytest.mark.torch] * (family in WRITTEN),
    )
    for family in FAMILIES
    for first in range(0, len(seeds(family)), CHUNK)
]


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.parametrize(("family", "chunk"), CHUNKS)
def test_no_network_contradicts(family: str, chunk: tuple[int, ...]) -> None:
    cases = [examine(family, seed) for seed in chunk]
    wrong = [
        f"{family} {case.seed} {one['output']}: {one['said']}: {one['found']}"
        for case in cases
        for one in case.contradictions
    ]
    assert not wrong, "\n".join(wrong)
    crashed = [f"{family} {case.seed}: {case.note}" for case in cases if case.status == "crash"]
    assert not crashed, "\n".join(crashed)


# ------------------------------------------------------------------------------------ the judge


def data(of: Callable[[float, Values], Values]) -> list[Data]:
    """What 64 networks of two widths give, from the width and one standard Gaussian for each."""
    widths, rng = (2**9, 2**13), np.random.default_rng(1)
    values = [of(width, rng.standard_normal(64)) for width in widths]
    return [Data(n, value, value**2) for n, value in zip(widths, values, strict=True)]


def number(value: float, std: float | None = None) -> Number:
    return Number(0, Estimate(value, 1e-3, Method.PARTICLES, std=std))


SHRINKING = data(lambda n, g: n**-0.5 * g)
BIASED = data(lambda n, g: 1 + n**-0.5 * (2 + g))
RANDOM = data(lambda n, g: 1 + (1 + n**-0.5) * g)


@pytest.mark.parametrize(
    ("networks", "right", "wrong"),
    [
        (SHRINKING, Size(-0.5, False), Size(0, False)),
        (SHRINKING, Size(-0.5, False), Size(-1, False)),
        (SHRINKING, Size(0, True), Size(-1, True)),
        (SHRINKING, Size(-1, False, lower=True), Size(0, False, lower=True)),
        (SHRINKING, number(0), Zero()),
        (BIASED, number(1), number(1.1)),
        (BIASED, number(1), number(1, std=1)),
        (RANDOM, number(1, std=1), number(2, std=1)),
        (RANDOM, number(1, std=1), number(1)),
        (RANDOM, number(1, std=1), number(1, std=2.5)),
        ([Data(d.width, 0 * d.first, 0 * d.second) for d in RANDOM], Zero(), Size(0, False)),
    ],
)
def test_the_judge_doubts_what_is_wrong(networks: list[Data], right: Claim, wrong: Claim) -> None:
    assert doubt(right, *networks, 5) is None
    assert doubt(wrong, *networks, 5)


def test_a_slope_that_gets_nearer_is_no_contradiction() -> None:
    def bend(of: float) -> list[Data]:
        """What is n^(1/2) at small widths and of order one at large ones, or goes on to grow."""
        return [
            Data(n, value, value**2)
            for n in (2**6, 2**9, 2**12, 2**15)
            for value in [np.full(64, 1 / (n**-0.5 + of))]
        ]

    bound = Size(0, True)
    near, far = bend(0.03), bend(0.0)
    assert doubt(bound, near[0], near[1], 5)
    assert doubt(bound, near[1], near[2], 5)
    assert doubt(bound, near[1], near[2], 5, (near[0], near[1])) is None
    assert doubt(bound, far[2], far[3], 5, (far[0], far[1]))


# ------------------------------------------------------------------------------ blocks, L of them


def plain(**changes: object) -> blocks.Block:
    """``h + L^(-1/2) w(tanh(layer_norm(h)))``."""
    made = blocks.Block(
        skip=Power(),
        pull=(Power(Fraction(0)), "identity"),
        front=Power(L=Fraction(-1, 2)),
        acts=("tanh", "identity"),
        norms=("layer", "none"),
        zeros=(False,),
        bias="",
        named=False,
        optimizer="sgd",
        steps=0,
        gamma=None,
    )
    return replace(made, **changes)


@pytest.mark.torch
def test_streams_are_those_of_a_recursion() -> None:
    from tests.fuzz.explicit import ladder

    linear = plain(acts=("identity", "identity"), norms=("none", "none"))
    for depth in (1, 16):
        found = ladder(linear, depth, 0, count=64, width=768)
        for name in ("x", "dx"):  # h' = h + L^(-1/2) w h: squares grow by 1 + 1/L
            error = found[name].std() / 8
            assert abs(found[name].mean() - (1 + 1 / depth) ** depth) < 5 * error


@pytest.mark.torch
def test_wrong_powers_of_L_are_doubted() -> None:
    own = plain()
    found = tp.check(own.run)
    rows = tuple(
        replace(row, L=Exponent.number((row.L.constant or 0) + Fraction(1, 2)))
        for row in found.rows
    )
    wrong = replace(found, rows=rows)
    names = {name for name, *_ in blocks.said(wrong, own)}
    data = blocks.numbers(own, found, names, SMALL, 0)
    for verdict, is_right in ((found, True), (wrong, False)):
        told = [(name, claim) for name, _, claim in blocks.said(verdict, own) if name[0] == "D"]
        assert told
        for name, claim in told:
            assert (doubt(claim, *data[name], 5) is None) == is_right
