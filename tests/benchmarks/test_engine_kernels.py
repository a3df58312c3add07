"""Speed of the compiled passes, as a share of what the machine allows in the same run.

    python -m tests.benchmarks tests/benchmarks/test_engine_kernels.py

Every figure is the best of several rounds, with one thread. The bounds that are asserted are half
of the targets: a busy machine passes, a pass that lost its vector instructions does not.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tests.benchmarks.figures import fastest, figure
from tpcalc.engine import kernels
from tpcalc.engine.directions import LimitMatrix, SampleSpace, materialise
from tpcalc.engine.draws import PlainDraws, SobolDraws

BLOCK = 512
SHAPES = [(32, 1 << 15), (64, 1 << 17)]
STORAGE = [np.float64, np.float32]
best = partial(fastest, rounds=15)


@pytest.fixture(scope="module")
def read_rate():
    """Bytes per second of a sum over 256 MB."""
    vector = np.random.default_rng(0).random(1 << 25)
    return vector.nbytes / best(lambda: kernels.total(vector), 7)


@pytest.fixture(scope="module")
def product_rate():
    """Floating-point operations per second of a matrix product of numpy, one thread."""
    matrix = np.random.default_rng(0).random((1024, 1024))
    with threadpool_limits(1, user_api="blas"):
        return 2 * 1024**3 / best(lambda: matrix @ matrix, 5)


def make(rows, samples, dtype, columns):
    rng, block = np.random.default_rng(1), BLOCK if columns == 1 else 256
    data = rng.random((samples // block, rows, block)).astype(dtype)
    vectors = [rng.random(samples) for _ in range(columns)]
    return data, vectors, rng.random((columns, rows))


def run_dots(data, vectors, _):
    return lambda: kernels.dots([(data, np.array([data.shape[1]]))], vectors)


def run_combine(data, vectors, table):
    return lambda: kernels.combine(vectors, [kernels.Term(data, table[None])])


PASSES = {"dots": run_dots, "combine": run_combine}


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("shape", SHAPES)
def test_passes_for_one_vector(benchmark, read_rate, name, shape, dtype):
    data, vectors, table = make(*shape, dtype, 1)
    run = PASSES[name](data, vectors, table)
    seconds = best(run)
    benchmark.pedantic(run, rounds=10, warmup_rounds=1)
    share = (data.nbytes + vectors[0].nbytes) / seconds / read_rate
    benchmark.extra_info["share of read rate"] = share
    print(
        f"\n{name:14} k={shape[0]} N={shape[1]} {dtype.__name__}: {1e3 * seconds:.3f} ms, "
        f"{share * read_rate / 1e9:.1f} GB/s = {share:.2f} of {read_rate / 1e9:.1f}"
    )
    assert share > 0.3


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("shape", SHAPES)
def test_passes_for_eight_vectors(benchmark, product_rate, name, shape, dtype):
    data, vectors, table = make(*shape, dtype, 8)
    run = PASSES[name](data, vectors, table)
    seconds = best(run)
    benchmark.pedantic(run, rounds=10, warmup_rounds=1)
    share = 16 * shape[0] * shape[1] / seconds / product_rate
    benchmark.extra_info["share of product rate"] = share
    print(
        f"\n{name:14} k={shape[0]} N={shape[1]} B=8 {dtype.__name__}: {1e3 * seconds:.3f} ms, "
        f"{share * product_rate / 1e9:.1f} GF/s = {share:.2f} of {product_rate / 1e9:.1f}"
    )
    single = [
        best(PASSES[name](data, vectors[:1], table[:1]), 5),
        best(PASSES[name](data, vectors[:1], table[:1]), 5),
    ]
    assert seconds < 8 * min(single)  # worth batching


@pytest.mark.parametrize("samples", [1 << 15, 1 << 17])
@pytest.mark.parametrize("storage", ["float64", "float32"])
def test_products(benchmark, read_rate, samples, storage):
    """Products of a matrix and its transpose in turn, by the four-read model."""
    steps = 32
    space = SampleSpace(samples)
    draws = [PlainDraws(samples, seed) for seed in (0, 1)]
    matrix = LimitMatrix((space, space), (steps, steps), draws, storage=storage)
    rng = np.random.default_rng(2)
    inputs = [rng.standard_normal(samples) for _ in range(2 * steps)]
    rows = {False: rng.standard_normal(samples), True: rng.standard_normal(samples)}

    class Ready:
        """Draws that cost next to nothing, so that the passes alone are measured."""

        def __init__(self, row):
            self.row = row.reshape(-1, BLOCK)

        def fill(self, row, scale=1.0, replicate=None):
            row[:] = self.row

        def scalar(self, replicate=0):
            return 0.0

    out = space.zeros()

    def run():
        matrix.reset(Ready(rows[False]), Ready(rows[True]))
        for index, x in enumerate(inputs):
            transpose = bool(index % 2)
            product = matrix.multiply([x], transpose)
            side, other = matrix.side(transpose), matrix.side(not transpose)
            materialise(out, [(side.e, product.coords[:, 0]), (other.q, product.echo[:, 0])])

    seconds = best(run, 5)
    benchmark.pedantic(run, rounds=3)
    entry = matrix.forward.e.data.itemsize
    read = sum(4 * (index // 2 + 1) for index in range(2 * steps)) * samples * entry
    share = read / seconds / read_rate
    benchmark.extra_info["share of read rate"] = share
    print(
        f"\n{2 * steps} products N={samples} {storage}: {1e3 * seconds:.1f} ms, "
        f"{read / seconds / 1e9:.1f} GB/s (four reads) = {share:.2f} of {read_rate / 1e9:.1f}"
    )
    assert share > 0.25


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("kind", ["sobol", "plain"])
def test_normals(benchmark, kind, dtype):
    data = np.zeros(((1 << 20) // BLOCK, 2, BLOCK), dtype)
    source = SobolDraws(200, 20, 0) if kind == "sobol" else PlainDraws(1 << 20, 0)

    def run():
        source.fill(data[:, 1, :])

    seconds = best(run, 20)
    benchmark.pedantic(run, rounds=10)
    cost = 1e3 * seconds / (1 << 20) * 1e6
    benchmark.extra_info["ms per 10^6"] = cost
    print(f"\n{kind} normals {dtype.__name__}: {cost:.2f} ms per 10^6")
    figure("engine", f"10^6 {kind} normals, {dtype.__name__}", 1e-3 * cost)
    assert cost < (8 if kind == "sobol" else 30)
