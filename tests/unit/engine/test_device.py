"""The engine on torch tensors: matrices of replicates that differ, memory, errors, records."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.engine.test_replicates import COUNT, SIZE, STEPS, inputs, make, products, root, trained

import tpcalc as tp
from tpcalc.engine.directions import SampleSpace
from tpcalc.engine.draws import PlainDraws, SobolDraws
from tpcalc.errors import Exploded, MissingBackend, OutOfMemory, UnknownName, UsageError

pytestmark = pytest.mark.torch
SMALL = {"samples": 2**9, "replicates": 5, "method": "particles"}


def made(kind, law, storage="float64"):
    """A matrix of several replicates on tensors, with the draws of ``make``."""
    import torch

    from tpcalc.engine.device.matrices import TOLERANCE, Finite, Haar, Limit
    from tpcalc.engine.device.rows import Place

    place = Place(torch, torch.device("cpu"), getattr(torch, storage))
    spaces = tuple(SampleSpace(SIZE, 1.0, 128, COUNT) for _ in range(2))
    if law == "limit":
        draws = tuple(SobolDraws(12, 8, *((r, side) for r in range(COUNT))) for side in (0, 1))
    else:
        draws = tuple(PlainDraws(SIZE, *((r, side) for r in range(COUNT))) for side in (0, 1))
    if kind == "orthogonal":
        return Haar(law, spaces, 40, draws, TOLERANCE[law], place), place
    cls = Limit if law == "limit" else Finite
    return cls(spaces, (40, 40), draws, TOLERANCE[law], place), place


def products_of(matrix, place, vectors, transpose):
    """The products with vectors, given as (vector, replicate, sample)."""
    from tpcalc.engine.device.rows import combine

    tensors = [place.torch.tensor(own.reshape(-1, 128)).to(place.dtype) for own in vectors]
    product = matrix.multiply(tensors, transpose)
    side, other = matrix.side(transpose), matrix.side(not transpose)
    terms = [(other.q.data, product.echo)] if product.echo.shape[2] else []
    if side.e.capacity:
        terms.append((side.e.data, product.coords))
    if not terms:  # nothing was multiplied but zeros
        return np.zeros((len(vectors), COUNT, SIZE))
    return combine(terms).transpose(0, 1).numpy().reshape(len(vectors), COUNT, SIZE)


@settings(max_examples=60)
@given(
    st.sampled_from(["gaussian", "orthogonal"]),
    st.sampled_from(["finite", "limit"]),
    STEPS,
)
def test_products_of_replicates_that_differ(kind, law, steps):
    """New, repeated, zero, nearly dependent and very large vectors, not alike in replicates."""
    rngs = [np.random.default_rng(r) for r in range(COUNT)]
    olds = [{True: [], False: []} for _ in range(COUNT)]
    compiled, (matrix, place) = make(kind, law, range(COUNT), "float64"), made(kind, law)
    for transpose, recipes in steps:
        own = [
            inputs(recipe, rng, old[transpose])
            for recipe, rng, old in zip(recipes, rngs, olds, strict=True)
        ]
        vectors = np.array(own).transpose(1, 0, 2)
        want = products(compiled, vectors, transpose)
        found = products_of(matrix, place, vectors, transpose)
        size = np.abs(vectors).max(axis=2, keepdims=True)
        np.testing.assert_allclose(found / (size + 1), want / (size + 1), atol=1e-8)
    np.testing.assert_allclose(matrix.min_ratios, compiled.min_ratios, rtol=1e-6)


def draws(**options):
    table = tp.limit(trained, device="cpu", seed=3, **SMALL, **options).table
    return np.array([row.estimate.draws for row in table.scalars])


def test_a_seed_gives_the_same_bits_and_in_bundles_of_any_size_the_same_but_for_rounding():
    found = draws()
    np.testing.assert_array_equal(draws(), found)
    np.testing.assert_allclose(draws(memory_limit=500_000), found, rtol=0, atol=1e-13)


def test_bundles_are_sized_by_memory_and_halved_where_the_device_refuses(monkeypatch):
    from tpcalc.engine.device import execute as device

    sizes, expected = [], draws()

    class Refusing(device.Workspace):
        def __init__(self, plan, setting, replicates, place):
            sizes.append(replicates)
            if replicates > most:
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
            super().__init__(plan, setting, replicates, place)

    monkeypatch.setattr(device, "Workspace", Refusing)
    most = 2
    np.testing.assert_allclose(draws(), expected, rtol=0, atol=1e-13)
    assert sizes == [5, 2, 2, 1]
    most = 0
    with pytest.raises(OutOfMemory, match=r"512 samples needs .* on cpu, which refused it.*fewer"):
        draws()


def test_other_errors_of_the_library_are_not_taken_for_memory(monkeypatch):
    from tpcalc.engine.device import execute as device

    def failing(*_):
        raise RuntimeError("something else")

    monkeypatch.setattr(device, "Workspace", failing)
    with pytest.raises(RuntimeError, match="something else"):
        draws()


def test_what_does_not_fit_is_said_before_it_runs():
    with pytest.raises(OutOfMemory, match=r"one replicate of 512 samples needs .* on cpu.*float32"):
        draws(memory_limit=1000)
    with pytest.raises(OutOfMemory, match=r"one network of width 60 needs .* on cpu.*smaller"):
        tp.simulate(trained, widths=[60], device="cpu", memory_limit=1000)


@pytest.mark.parametrize(
    "run",
    [
        lambda device: tp.limit(trained, device=device, **SMALL).table,
        lambda device: tp.simulate(trained, widths=[60], seeds=2, device=device),
    ],
)
def test_a_device_that_is_not_there_is_an_error_not_another_engine(run, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(MissingBackend, match=r"'cuda:3'.*device='cpu'"):
        run("cuda:3")
    with pytest.raises(UnknownName, match="no device called 'tpu'"):
        run("tpu")
    with pytest.raises(UsageError, match="device is 3; it must be a text"):
        run(3)
    assert dict(run("auto").provenance.settings)["device"] == "cpu"
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingBackend, match=r"not installed.*pip install 'tpcalc\[torch\]'"):
        run("cpu")
    assert "device" not in dict(run(None).provenance.settings)


def test_the_record_says_where_and_in_which_precision():
    table = tp.limit(trained, device="cpu", storage="float32", **SMALL).table
    found = dict(table.provenance.settings)
    assert (found["device"], found["storage"]) == ("cpu", "float32")
    found = tp.simulate(trained, widths=[60], seeds=2, device="cpu", dtype="float32")
    assert dict(found.provenance.settings)["device"] == "cpu"
    assert dict(found.provenance.settings)["dtype"] == "float32"
    with pytest.raises(UnknownName, match="bfloat16"):
        tp.simulate(trained, widths=[60], device="cpu", dtype="bfloat16")


def test_numbers_outside_the_range_are_said_as_by_the_compiled_engine():
    @tp.program
    def product(t):
        v = t.gaussian("v")
        t.output("sum", t.mean(t.matrix("W") @ tp.exp(1e3 * v**2)))

    for program in (root, product):
        with pytest.raises(Exploded) as compiled:
            tp.simulate(program, widths=[50], seeds=12)
        with pytest.raises(Exploded) as found:
            tp.simulate(program, widths=[50], seeds=12, device="cpu")
        assert str(found.value) == str(compiled.value)


def test_outputs_before_the_explosion_are_kept():
    @tp.program
    def program(t):
        v = t.gaussian("v")
        t.output("square", t.inner(v, v))
        t.output("huge", t.mean(tp.exp(1e3 * v**2)))

    table = tp.simulate(program, widths=[50], seeds=3, device="cpu")
    assert [row.name for row in table.rows] == ["square"]
    assert "floating-point range at huge" in table.notes[0]


def test_a_run_can_be_stopped():
    def stop(fraction, text):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        draws(progress=stop)


def test_samples_of_a_vector_come_from_the_device():
    @tp.program
    def program(t):
        t.output("x", tp.tanh(t.matrix("W") @ t.gaussian("v") * tp.n**-0.5))

    found, want = (tp.limit(program, device=d, **SMALL)["x"].sample(600) for d in ("cpu", None))
    np.testing.assert_allclose(found, want, atol=1e-12)


def test_products_of_float32_are_whole_and_the_setting_of_others_is_kept():
    import torch

    torch.set_float32_matmul_precision("medium")
    try:
        draws(storage="float32")
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
