"""The recorded runs: each is answered as it was."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import tpcalc as tp
from tests.corpus.compare import differences
from tests.corpus.record import Record, answered, load
from tests.corpus.runs import FAMILIES, SEED

RUNS = [(family, name) for family, runs in FAMILIES.items() for name in runs]
kept = cache(load)


@pytest.mark.parametrize(("family", "name"), RUNS, ids=map("-".join, RUNS))
def test_it_is_answered_as_recorded(family: str, name: str) -> None:
    lines = differences(kept(family)[name], answered(FAMILIES[family][name]))
    assert not lines, "\n".join([*lines, "where this is right: python -m tests.corpus"])


@pytest.mark.parametrize("family", FAMILIES)
def test_all_runs_are_recorded(family: str) -> None:
    assert kept(family).keys() == FAMILIES[family].keys()


@pytest.mark.slow
@pytest.mark.parametrize(("family", "name"), RUNS[::2], ids=map("-".join, RUNS[::2]))
def test_other_draws_are_within_the_errors(family: str, name: str) -> None:
    """So that a change of what is drawn first is none of an answer."""
    new = answered(FAMILIES[family][name], SEED + 1)
    assert not differences(kept(family)[name], new)


def test_texts_that_are_kept_can_be_read() -> None:
    lines = [
        (record["text"]["lines"], record["nodes"])
        for family in FAMILIES
        for record in kept(family).values()
        if "lines" in record.get("text", {})
    ]
    assert len(lines) > 20
    for text, nodes in lines:
        whole = "\n".join(text) + "\n"
        assert str(tp.parse(whole)) == whole and len(tp.parse(whole).nodes) == nodes


# ----------------------------------------------------------------- the check can fail

Change = Callable[[Record], None]


def put(value: Any, *path: str) -> Change:
    def change(record: Record) -> None:
        at(record, *path[:-1])[path[-1]] = value

    return change


def scale(factor: float, *path: str) -> Change:
    return lambda record: put(at(record, *path) * factor, *path)(record)


def shift(errors: float, *path: str, error: str = "error") -> Change:
    """Move a number by so many of the errors of two independent samples."""

    def change(record: Record) -> None:
        one = at(record, *path[:-1])
        one[path[-1]] += errors * math.sqrt(2) * one[error]

    return change


def drop(*path: str) -> Change:
    return lambda record: at(record, *path[:-1]).pop(path[-1])


def at(record: Any, *path: str) -> Any:
    for key in path:
        record = record[key]
    return record


LIMITS, ORDERS = ("limits", "outputs"), ("orders", "outputs")
EXACT = ("rules", "there-and-back")
RANDOM = ("refused", "divides")
KERNEL = ("kernels", "mlp-tanh")
SQUARE = (*LIMITS, "h", "second moment")
BOUNDED = (*LIMITS, "bounded", "value")

TOLD: dict[str, tuple[tuple[str, str], Change, str]] = {
    "nodes": (EXACT, put(16, "nodes"), "nodes"),
    "text": (EXACT, put("0", "text", "sha256"), "text / sha256"),
    "power": (EXACT, put("1/2", *ORDERS, "h", "power"), "h / power"),
    "status": (EXACT, put("upper", *ORDERS, "h", "status"), "h / status"),
    "reason": (EXACT, put("parity", *ORDERS, "h", "reason"), "h / reason"),
    "strict": (EXACT, put(True, *ORDERS, "h", "strict"), "h / strict"),
    "no order": (EXACT, drop(*ORDERS, "h"), "h: missing"),
    "no limit": (EXACT, drop(*LIMITS, "overlap"), "overlap: missing"),
    "formula": (EXACT, put("Z[h] = v", *LIMITS, "h", "formula"), "h / formula"),
    "closed form": (EXACT, put("1/3", *LIMITS, "exact", "value as a formula"), "exact / value as"),
    "power taken out": (EXACT, put("-1", *LIMITS, "h", "n_power"), "h / n_power"),
    "note": (EXACT, put("", *LIMITS, "other", "note"), "other / note"),
    "exact value": (EXACT, scale(1 + 3e-13, *SQUARE, "value"), "second moment / value"),
    "bound": (EXACT, put(1e-6, *SQUARE, "error"), "second moment / error"),
    "method": (EXACT, put("quadrature", *SQUARE, "method"), "second moment / method"),
    "status of a number": (EXACT, put("RARE", *SQUARE, "status"), "second moment / status"),
    "sampled value": (RANDOM, shift(9, *BOUNDED, "value"), "standard errors apart"),
    "spread": (RANDOM, shift(9, *BOUNDED, "std", error="std error"), "standard errors apart"),
    "not random": (RANDOM, drop(*BOUNDED, "std"), "std: missing"),
    "covered": (RANDOM, drop(*LIMITS, "ratio", "not covered"), "not covered: missing"),
    "code": (RANDOM, put("TPC400", *LIMITS, "ratio", "code"), "ratio / code"),
    "not a number": (EXACT, put(math.nan, *SQUARE, "value"), "second moment / value"),
    "kernel": (KERNEL, scale(1 + 3e-13, "kernel", "ntk", "0,0"), "ntk / 0,0"),
    "kernel error": (KERNEL, put(1e-3, "kernel", "error"), "kernel / error"),
    "independence": (KERNEL, put(False, "kernel", "independent"), "independent"),
}
PASSED: dict[str, tuple[tuple[str, str], Change]] = {
    "nothing": (EXACT, lambda record: None),
    "last digits": (EXACT, scale(1 + 1e-15, *SQUARE, "value")),
    "bound of the same size": (EXACT, scale(2.0, *SQUARE, "error")),
    "rare samples in other draws": (RANDOM, put("RARE", *BOUNDED, "status")),
    "other draws": (RANDOM, shift(2, *BOUNDED, "value")),
    "last digits of a kernel": (KERNEL, scale(1 + 1e-15, "kernel", "ntk", "0,0")),
}


@pytest.mark.parametrize("name", TOLD)
@pytest.mark.parametrize("backwards", [False, True])
def test_a_change_is_told(name: str, backwards: bool) -> None:
    (family, run), change, says = TOLD[name]
    record = kept(family)[run]
    new = copy.deepcopy(record)
    change(new)
    pair = (new, record) if backwards else (record, new)
    (line,) = differences(*pair)
    assert says in line or (backwards and says.replace("missing", "new") in line)


@pytest.mark.parametrize("name", PASSED)
def test_what_is_within_errors_is_not_told(name: str) -> None:
    (family, run), change = PASSED[name]
    new = copy.deepcopy(kept(family)[run])
    change(new)
    assert not differences(kept(family)[run], new)
