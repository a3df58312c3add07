"""Passes over rows against the same sums in numpy."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from tpcalc.engine import crew, kernels, kernels_compile
from tpcalc.errors import EvaluationError

BLOCKS, BLOCK, CAPACITY = 3, 256, 37
LENGTH = BLOCKS * BLOCK
TYPES = [np.float64, np.float32]
ROWS = [0, 1, 2, 5, 35]


def flat(data, rows):
    """The first rows of a store as a (rows, samples) array."""
    return data[:, :rows].transpose(1, 0, 2).reshape(rows, LENGTH).astype(np.float64)


def dots(data, rows, vectors, gram=False):
    """The inner products of one replicate."""
    (out,), square = kernels.dots([(data, np.array([rows]))], vectors, gram)
    return out[0], square[0]


def make(seed, rows, columns, dtype=np.float64):
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((BLOCKS, CAPACITY, BLOCK)).astype(dtype)
    vectors = [rng.standard_normal(LENGTH) for _ in range(columns)]
    return rng, data, vectors


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("columns", [1, 2, 9, 20])
@pytest.mark.parametrize("rows", ROWS)
def test_dots(rows, columns, dtype):
    _, data, vectors = make(1, rows, columns, dtype)
    out, gram = dots(data, rows, vectors, gram=True)
    x = np.array(vectors)
    np.testing.assert_allclose(out, flat(data, rows) @ x.T, atol=1e-11)
    np.testing.assert_allclose(gram, x @ x.T, atol=1e-11)


@pytest.mark.parametrize("columns", [1, 3])
def test_two_stores_in_one_pass_have_the_bits_of_each_alone(columns):
    _, one, vectors = make(2, 5, columns)
    two = make(3, 2, columns)[1]
    pair = [(one, np.array([5])), (two, np.array([2]))]
    sums, gram = kernels.dots(pair, vectors, True)
    for own, found in zip(pair, sums, strict=True):
        (alone,), square = kernels.dots([own], vectors, True)
        np.testing.assert_array_equal(found, alone)
        np.testing.assert_array_equal(gram, square)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("columns", [1, 3])
def test_sums_over_stretches_have_the_same_bits_on_any_number_of_threads(columns, dtype):
    rng, rows, block, replicates = np.random.default_rng(13), 7, 512, 3
    length = replicates * 4 * crew.STRETCH * block  # worth sharing
    data = rng.standard_normal((length // block, rows + 2, block)).astype(dtype)
    vectors, table = rng.standard_normal((columns, length)), rng.standard_normal((3, columns, rows))
    runs = []
    for threads in (1, 2, 5):
        outs = [np.empty(length) for _ in range(columns)]
        with crew.at_work(threads):
            (sums,), _ = kernels.dots([(data, np.full(replicates, rows))], list(vectors))
            kernels.combine(outs, [kernels.Term(data, table)])
        runs.append((sums, np.array(outs)))
    for sums, outs in runs[1:]:
        np.testing.assert_array_equal(sums, runs[0][0])
        np.testing.assert_array_equal(outs, runs[0][1])
    lines = data[:, :rows].transpose(1, 0, 2).reshape(rows, replicates, -1).astype(np.float64)
    own = vectors.reshape(columns, replicates, -1)
    np.testing.assert_allclose(runs[0][0], np.einsum("irt,jrt->rij", lines, own), atol=1e-9)
    want = np.einsum("rji,irt->jrt", table, lines).reshape(columns, -1)
    np.testing.assert_allclose(runs[0][1], want, atol=1e-12)


@pytest.mark.parametrize("block", [16, 32, 128])
def test_tiles_of_short_blocks(block):
    rng = np.random.default_rng(14)
    data, vectors = rng.standard_normal((6, 20, block)), rng.standard_normal((9, 6 * block))
    lines = data.transpose(1, 0, 2).reshape(20, -1)
    (out,), gram = kernels.dots([(data, np.array([20]))], list(vectors), True)
    np.testing.assert_allclose(out[0], lines @ vectors.T, atol=1e-11)
    np.testing.assert_allclose(gram[0], vectors @ vectors.T, atol=1e-11)
    table, outs = rng.standard_normal((9, 20)), [np.empty(6 * block) for _ in range(9)]
    kernels.combine(outs, [kernels.Term(data, table[None])])
    np.testing.assert_allclose(outs, table @ lines, atol=1e-12)


@pytest.mark.parametrize("dtype", TYPES)
def test_residual(dtype):
    rows = 9
    rng, data, (vector,) = make(3, rows, 1, dtype)
    coefficients = rng.standard_normal(rows)
    want = vector - coefficients @ flat(data, rows)
    out = np.zeros(LENGTH)
    overlaps, square = kernels.residual(data, rows, vector, coefficients, out)
    np.testing.assert_allclose(out, want, atol=1e-12)
    np.testing.assert_allclose(overlaps, flat(data, rows) @ want, atol=1e-10)
    assert square == pytest.approx(want @ want, rel=1e-13)
    # in place
    again, _ = kernels.residual(data, rows, vector, coefficients, vector)
    np.testing.assert_allclose(vector, want, atol=1e-12)
    np.testing.assert_allclose(again, overlaps, atol=1e-10)


@pytest.mark.parametrize("columns", [1, 2, 18])
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("types", [(np.float64, np.float64), (np.float32, np.float64)])
def test_combine_several_stores(types, add, columns):
    rng, first, outs = make(4, 0, columns, types[0])
    stores = [first, make(5, 0, 0, types[1])[1], make(6, 0, 0)[1]]
    tables = [rng.standard_normal((columns, rows)) for rows in (35, 4, 1)]
    tables[1][:, 2] = 0.0
    want = sum(
        table @ flat(data, table.shape[1]) for data, table in zip(stores, tables, strict=True)
    )
    if add:
        want = want + np.array(outs)
    kernels.combine(
        outs, [kernels.Term(d, c[None]) for d, c in zip(stores, tables, strict=True)], add
    )
    np.testing.assert_allclose(outs, want, atol=1e-12)


@pytest.mark.parametrize("columns", [1, 3])
def test_rows_without_coefficients_are_not_read(columns):
    _, data, outs = make(7, 0, columns)
    data[:, 1] = np.nan
    table = np.zeros((columns, 3))
    table[:, 0] = 1.0
    kernels.combine(outs, [kernels.Term(data, table[None])])
    np.testing.assert_array_equal(outs, [flat(data, 1)[0]] * columns)


def test_nothing_to_combine_writes_zeros_and_adds_nothing():
    _, data, outs = make(8, 0, 2)
    before = np.array(outs)
    kernels.combine(outs, [kernels.Term(data, np.zeros((1, 2, 3)))], add=True)
    np.testing.assert_array_equal(outs, before)
    kernels.combine(outs, [])
    assert not np.any(outs)


def test_infinities_and_nan_are_passed_on():
    _, data, vectors = make(9, 0, 2)
    vectors[0][5], vectors[1][6] = np.inf, np.nan
    out, gram = dots(data, 3, vectors, gram=True)
    assert np.isinf(out[:, 0]).all()
    assert np.isnan(out[:, 1]).all()
    assert np.isinf(gram[0, 0])
    assert np.isnan(gram[1, 1])
    assert kernels.total(vectors[0])[0] == np.inf
    assert np.isnan(kernels.dot(vectors[1], vectors[1])[0])


def test_sums_of_flat_vectors():
    _, _, (x, y) = make(10, 0, 2)
    assert kernels.dot(x, y)[0] == pytest.approx(float(np.dot(x, y)), rel=1e-12)
    assert kernels.total(x)[0] == pytest.approx(float(np.sum(x)), rel=1e-12)
    want = y - 2.5 * x
    kernels.axpy(y, np.array([-2.5]), x)
    np.testing.assert_allclose(y, want, atol=1e-15)


@pytest.mark.parametrize("columns", [1, 4])
def test_same_bits_every_time_and_for_any_place_in_memory(columns):
    _, data, vectors = make(11, 0, columns)
    out = [dots(data, 35, vectors)[0]]
    moved = np.empty((2, *data.shape))[1]
    moved[:] = data
    out.append(dots(moved, 35, [x.copy() for x in vectors])[0])
    np.testing.assert_array_equal(*out)


@pytest.mark.parametrize(
    "vector",
    [np.zeros(LENGTH + 1), np.zeros(LENGTH, np.float32), np.zeros(2 * LENGTH)[::2]],
    ids=["length", "type", "stride"],
)
def test_vectors_that_do_not_fit_are_refused(vector):
    _, data, (good,) = make(12, 0, 1)
    with pytest.raises(EvaluationError, match="does not fit"):
        dots(data, 2, [good, vector])
    with pytest.raises(EvaluationError, match="does not fit"):
        kernels.combine([vector], [kernels.Term(data, np.ones((1, 1, 2)))])


def test_functions_compile_where_nothing_can_be_kept_on_disk(monkeypatch):
    def no_place(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(kernels_compile, "njit", no_place)
    assert kernels_compile.loose(lambda x: x + 1)(2) == 3
    assert kernels_compile.exact(lambda x: 1.0 / x)(0.0) == np.inf
