"""First steps of modules as torch code writes them, beside exponents that were derived by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from modules.case import Case, clip
from modules.cases import CASES

import tpcalc as tp

pytestmark = pytest.mark.torch
LIMIT = 0.05  # of the norm, in the cases that are clipped
UNSTABLE = ("unstable", "output grows", "unstable at the start")
# What each case is called; the rest learns features.
WORDS: Mapping[str, tuple[str, ...]] = {
    "1": ("unstable",), "2": ("kernel",), "5": ("kernel",), "6": ("trivial",), "7": ("unstable",),
    "8": ("output grows",), "9": ("output grows",), "13": ("unstable",), "14": ("output grows",),
    "15": ("output grows",), "16": ("trivial",), "21": ("output grows",), "25": ("unstable",),
    "27": ("unstable",), "28": ("unstable",), "29": ("unstable",), "30": UNSTABLE[2:],
    "31": ("output grows",), "33": UNSTABLE[2:], "34": UNSTABLE[2:], "37": UNSTABLE,
    "43": UNSTABLE, "50": ("trivial",), "53 match_rms": ("unstable",), "O19": UNSTABLE,
    "O20": ("kernel",), "O27": ("trivial",), "O33": UNSTABLE, "O34": UNSTABLE, "O35": UNSTABLE,
    "A2": UNSTABLE, "A4": UNSTABLE,
}  # fmt: skip
# Sizes that bounds do not reach: coefficients below 1e-3 of queries and keys under a tied head.
ABOVE = {case: ("q.weight", "k.weight") for case in ("32", "34")}
SOME = ("1", "5", "10", "17", "19", "22", "25", "44 adam", "50", "54", "A2")
WHOLE = ("7", "13", "14", "21", "O20")


@cache
def run_of(case: str) -> tp.Training:
    """The training run of a case."""
    own: Case = CASES[case]
    given: dict[str, Any] = {"rule": own.text} if own.text else {}
    if own.before_step is clip:
        given["clip"] = LIMIT
    elif own.before_step is not None:
        raise AssertionError(f"case {case} does something before its steps")
    return tp.torch.training(own.make, own.inputs, optimizer=own.optimizer, **given)


def check_powers(case: str) -> None:
    """Compare what each parameter's step adds to the output with what was derived."""
    found = tp.first_order(run_of(case), verify=False)
    powers: dict[str, float] = {}
    for row in found.rows:
        name = row.name.partition(":")[0]
        own = -math.inf if row.output.is_zero else float(row.output.constant or 0)
        powers[name] = max(own, powers.get(name, -math.inf))
    above = ABOVE.get(case, ())
    for name, expected in CASES[case].output.items():
        low, high = expected if isinstance(expected, tuple) else (expected, expected)
        if name in above:
            assert powers[name] >= low, (name, powers[name], expected)
        else:
            assert low <= powers[name] <= high, (name, powers[name], expected)


@pytest.mark.parametrize("case", SOME)
def test_steps_add_what_was_derived(case: str) -> None:
    check_powers(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case not in SOME])
def test_steps_of_every_case_add_what_was_derived(case: str) -> None:
    check_powers(case)


def check_word(case: str) -> None:
    """Compare the verdict with the words of the table."""
    found = tp.first_order(run_of(case))
    assert found.word in WORDS.get(case, ("feature learning",))


@pytest.mark.parametrize("case", WHOLE)
def test_the_verdict_is_that_of_the_table(case: str) -> None:
    check_word(case)


# Whether the largest bounds are attained is left open, and the answer says "may be unstable".
UNSETTLED = pytest.mark.xfail(strict=True, reason="the bound that decides is not settled")
# Of 26, whose heads of 32 coordinates are many cells, networks take minutes.
TOLD = [
    pytest.param(case, marks=UNSETTLED) if case in ("37", "A2", "A4") else case
    for case in CASES
    if case not in (*WHOLE, "26")
]


@pytest.mark.slow
@pytest.mark.parametrize("case", TOLD)
def test_the_verdict_of_every_case_is_that_of_the_table(case: str) -> None:
    check_word(case)


@pytest.mark.parametrize(("one", "other"), [("3", "4"), ("10", "11"), ("10", "12")])
def test_recipes_in_other_gauges_do_the_same(one: str, other: str) -> None:
    sizes = [
        [(row.name, row.output, row.later, row.inside, row.word) for row in found.rows]
        for found in (tp.first_order(run_of(case), verify=False) for case in (one, other))
    ]
    assert sizes[0] == sizes[1]
