"""Runs of many samples that cannot be: each error says what, where and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tests.agreements.test_blocks import Transformer
from tpcalc.errors import (
    MissingBackend,
    OutOfMemory,
    ProgramError,
    StudyError,
    TraceError,
    UsageError,
)

RNG = np.random.default_rng(0)
DATA = tp.Samples(RNG.normal(size=(96, 3)), RNG.normal(size=96))


def long(**settings: Any) -> tp.Training:
    return tp.Training(tp.MLP(2, "tanh"), "mup", DATA, **{"steps": 5, "batch": 16, **settings})


def short() -> tp.Training:
    return long(steps=1, batch=2, watch=[])


def data_of(shape: object) -> None:
    @tp.program
    def net(t: Any) -> None:
        t.output("y", t.data("x", shape, ["b"]) * t.gaussian("g", axes={"b": 2}))

    tp.orders(net)


def ragged_data() -> None:
    @tp.program
    def net(t: Any) -> None:
        t.output("y", t.data("x", [[1, 2], [3]], ["b", "c"]) * t.gaussian("g", axes={"b": 2}))

    tp.orders(net)


def tokens(features: int) -> None:
    data = tp.Samples(RNG.normal(size=(4, features)), RNG.normal(size=4))
    network = tp.network(Transformer, heads=1, causal=True)
    assert tp.Training(network, "mup", data, batch=2).unrolled


REFUSED: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "sizes": (lambda: data_of((1, 2, 3)), ProgramError, r"'b' has 3 cells .* and 2 .*another name"),
    "ragged data": (ragged_data, TraceError, r"'x' are no array .*\[1, 2\] cells"),
    "ragged batch": (
        lambda: tp.Samples([[1.0, 2.0], [1.0]], [1.0, 2.0]),
        StudyError,
        "input row 1 has 1 numbers, row 0 has 2",
    ),
    "targets": (lambda: tp.Samples([[1.0]] * 3, [1.0] * 2), StudyError, "3 inputs and 2 targets"),
    "ragged tokens": (lambda: tokens(7), StudyError, "7 numbers, which 3 tokens cannot share"),
    "queries": (lambda: long(queries=[(1.0,)]), StudyError, "query row 0 has 1 numbers"),
    "no samples": (lambda: long(batch=0), UsageError, "batch is 0; it must be at least 1"),
    "no such device": (
        lambda: tp.limit(long().unrolled.blocks, device="cuda:99"),
        MissingBackend,
        "device 'cuda:99' was asked for.*Use",
    ),
    "memory": (
        lambda: tp.limit(short().unrolled.blocks, memory_limit=1000),
        OutOfMemory,
        "one replicate of .* samples needs .*fewer samples, fewer steps",
    ),
    "memory of a device": (
        lambda: tp.limit(short().unrolled.blocks, memory_limit=1000, device="cpu"),
        OutOfMemory,
        "available on cpu.*fewer samples",
    ),
    "cells": (
        lambda: tp.initial_weights(long(steps=40, batch=64).unrolled.blocks),
        ProgramError,
        r"a program of \d+ nodes: .* cells, .* one by one .*fewer samples or steps",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_to_do(name: str) -> None:
    if "device" in name:
        pytest.importorskip("torch")
    make, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        make()


def test_a_device_is_replaced_only_where_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    run = short()
    few: dict[str, Any] = {"samples": 64, "replicates": 2}
    with pytest.raises(MissingBackend, match="'cuda'"):
        tp.limit(run.unrolled.blocks, device="cuda", **few)
    found = tp.limit(run.unrolled.blocks, device="auto", **few)
    assert dict(found.table.provenance.settings)["device"] == "cpu"
