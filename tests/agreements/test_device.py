"""The engine on torch tensors and the compiled one: the same draws, the same answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, get_args

import numpy as np
import pytest
from agreements.programs import PROGRAMS
from agreements.test_haar import mixed

import tpcalc as tp
from tests.agree import agree
from tpcalc.engine.executor import METHODS, Executor
from tpcalc.engine.instructions import Instruction, Multiply
from tpcalc.engine.schedule import plan
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.results import Estimate, Method

pytestmark = pytest.mark.torch

QUICK = (
    "mup-tanh-8-steps",
    "ntk-all-biases",
    "two-ratios",
    "outer",
    "random-scalar",
    "attention",
    "haar-1",
    "adam",
    "blocks",
)


def samples(rows: int, kinds: int = 0) -> tp.Samples:
    """Samples in three dimensions, of which so many are different."""
    rng = np.random.default_rng(3)
    xs, ys = rng.standard_normal((rows, 3)), rng.choice([-1.0, 1.0], (rows, 1))
    own = [row % (kinds or rows) for row in range(rows)]
    return tp.Samples(xs[own].tolist(), ys[own].tolist())


def blocks() -> tp.Program:
    """11 steps of 16 samples: read as blocks, with panels and matrices of inner products."""
    net = tp.MLP(2, "tanh")
    return tp.train(net, "mup", samples(16), steps=11, lr=0.3, batch=16, watch=())


def adam() -> tp.Program:
    run = tp.Training(
        tp.MLP(2, "tanh"), "mup", samples(5), steps=3, optimizer="adam", lr=0.3, watch=()
    )
    return run.program


def repeated(lr: float) -> tp.Program:
    """One sample again and again: directions that nearly depend on each other."""
    return tp.train(tp.MLP(3, "tanh"), "mup", samples(9, 1), steps=8, lr=lr, watch=())


CASES: dict[str, Callable[[], tp.Program]] = {
    **PROGRAMS,
    **{f"haar-{seed}": lambda seed=seed: mixed(seed) for seed in (1, 3, 5)},
    "adam": adam,
    "blocks": blocks,
}
CHOSEN = [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in CASES]


@cache
def made(name: str) -> tp.Program:
    """The program of a case, with what has been derived from it."""
    return CASES[name]()


@cache
def in_place(kind: str, name: str) -> dict[str, Estimate]:
    """What the compiled engine says of a case, in double precision."""
    return READ[kind](made(name))


def limits(program: tp.Program, **options: Any) -> dict[str, Estimate]:
    """The estimates of all outputs by name; of vectors of their two moments."""
    table = tp.limit(program, samples=2**10, replicates=4, method="particles", **options).table
    found = {row.name: row.estimate for row in table.scalars}
    for row in table.vectors:
        found[f"{row.name} mean"], found[f"{row.name} square"] = row.mean, row.second_moment
    return found


def networks(program: tp.Program, **options: Any) -> dict[str, Estimate]:
    table = tp.simulate(program, widths=[100], seeds=5, seed=2, **options)
    return {f"{row.name} {row.statistic}": estimate(row.values) for row in table.rows}


def estimate(values: tuple[float, ...]) -> Estimate:
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Estimate(
        float(np.mean(values)), spread, Method.FINITE, replicates=len(values), draws=values
    )


# How far single precision may be off. Of many steps with few samples for each direction rounding
# grows; slopes 1 - tanh^2 are 0 from 9 on, and updates by their signs know of them no more.
SINGLE = {"blocks": 2e-4, "adam": 1e-2}
READ = {"limit": limits, "lazy": networks}


def gap(left: dict[str, Estimate], right: dict[str, Estimate]) -> float:
    """The largest difference of two draws with the same seed, of sizes above 1 relative to it."""
    assert left.keys() == right.keys() and len(left) >= 2
    draws = [(np.array(left[k].draws), np.array(right[k].draws)) for k in left]
    assert all(a.shape == b.shape for a, b in draws) and sum(len(a) for a, _ in draws) >= 4
    return max(float(np.max(abs(a - b) / np.maximum(abs(a), 1), initial=0)) for a, b in draws)


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize("kind", READ)
def test_every_draw_agrees(kind: str, name: str) -> None:
    assert gap(READ[kind](made(name), device="cpu"), in_place(kind, name)) < 1e-10


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize(("kind", "word"), [("limit", "storage"), ("lazy", "dtype")])
def test_single_precision(kind: str, word: str, name: str) -> None:
    single = READ[kind](made(name), device="cpu", **{word: "float32"})
    double = in_place(kind, name)
    assert 0 < gap(single, double) < SINGLE.get(name, 1e-5)
    for key, found in single.items():
        agree(found, double[key])


@pytest.mark.gpu
@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize("kind", READ)
def test_a_gpu_has_the_draws_of_the_cpu(kind: str, name: str) -> None:
    assert gap(READ[kind](made(name), device="cuda"), in_place(kind, name)) < 1e-9


@pytest.mark.parametrize("name", ["adam", pytest.param("blocks", marks=pytest.mark.slow), "haar-1"])
@pytest.mark.parametrize(("kind", "word"), [("limit", "storage"), ("lazy", "dtype")])
@pytest.mark.parametrize("format_", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_no_tensor_is_on_another_device(
    kind: str, word: str, format_: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run on tensors without numbers, which refuse those of the CPU.

    What the host asks of the device is what it asked in a run before.
    """
    import torch

    from tpcalc.engine.device import execute as device
    from tpcalc.engine.device.rows import Place

    program, read, known = made(name), READ[kind], []
    host, filled = Place.host, Place.filled

    def kept(place: Place, tensor: Any) -> np.ndarray:
        known.append(host(place, tensor))
        return known[-1]

    def again(place: Place, tensor: Any) -> np.ndarray:
        assert tensor.device.type == "meta"
        found = known.pop(0)
        assert found.shape == tuple(tensor.shape)
        return found

    def drawn(place: Place, shape: Any, fill: Any) -> Any:
        return filled(Place(torch, torch.device("cpu"), place.dtype), shape, fill).to("meta")

    monkeypatch.setattr(Place, "host", kept)
    want = read(program, device="cpu", **{word: format_})
    monkeypatch.setattr(Place, "host", again)
    monkeypatch.setattr(Place, "filled", drawn)
    monkeypatch.setattr(device, "resolve_device", lambda _: torch.device("meta"))
    assert gap(read(program, device="cpu", **{word: format_}), want) == 0
    assert not known


def test_the_host_waits_once_for_each_product(monkeypatch: pytest.MonkeyPatch) -> None:
    from tpcalc.engine.device import execute as device
    from tpcalc.engine.device.rows import Place

    host, times = Place.host, {"host": 0, "products": 0}
    multiply = device.Workspace._multiply

    def counted(place: Place, tensor: Any) -> np.ndarray:
        times["host"] += 1
        return host(place, tensor)

    def product(space: Any, step: Multiply) -> None:
        times["products"] += 1
        multiply(space, step)

    monkeypatch.setattr(Place, "host", counted)
    monkeypatch.setattr(device.Workspace, "_multiply", product)
    limits(made("mup-tanh-8-steps"), device="cpu")
    assert times["products"] == 34
    assert times["host"] == 34 + 2  # whether scalars are finite, and the results


def test_every_instruction_has_a_method() -> None:
    assert set(METHODS) == set(get_args(Instruction))
    assert all(callable(getattr(Executor, name)) for name in METHODS.values())


def test_every_instruction_stands_in_a_script_that_is_compared() -> None:
    seen: set[type] = set()
    for name in ("ntk-all-biases", "outer", "blocks"):
        assert name in QUICK
        graph = tp.limit(made(name), samples=2**10, replicates=4, method="particles").graph
        seen |= {type(step) for step in plan(compile_graph(graph).script).script.instructions}
    assert seen == set(get_args(Instruction))


@pytest.mark.parametrize("lr", [1.0, 1e-3, 1e-5])
def test_directions_that_nearly_depend_on_each_other_in_single_precision(lr: float) -> None:
    """The compiled engine turns to float64 there, and says so; a device need not."""
    program = repeated(lr)
    run = tp.limit(program, samples=2**12, replicates=2, method="particles", storage="float32")
    assert dict(run.table.provenance.settings)["storage"] == "float64"
    single = tp.limit(
        program, samples=2**12, replicates=2, method="particles", storage="float32", device="cpu"
    )
    assert dict(single.table.provenance.settings)["storage"] == "float32"
    for row, other in zip(single.table.scalars, run.table.scalars, strict=True):
        np.testing.assert_allclose(row.estimate.draws, other.estimate.draws, atol=1e-6)
