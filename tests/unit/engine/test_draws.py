"""Normal draws: the Sobol points are scipy's, the quantiles are right, streams are independent."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import qmc

from tpcalc.engine.draws import (
    BITS,
    LAST_DIMENSION,
    PlainDraws,
    SobolDraws,
    _child,
    normal_quantiles,
    scrambled,
    sobol_normals,
)
from tpcalc.errors import EvaluationError, UsageError

BLOCK = 512


def rows(source, count, size, scale=1.0, dtype=np.float64, block=BLOCK):
    """Several rows of draws, written as rows of a store with one row more."""
    data = np.full((-(-size // block), count + 1, block), 7.0, dtype)
    for row in range(count):
        source.fill(data[:, row, :], scale)
    assert np.all(data[:, count] == 7.0)
    return data[:, :count].transpose(1, 0, 2).reshape(count, -1)


def as_set(points):
    """Points, one in each row, in a fixed order."""
    return points[np.lexsort(points.T)]


@pytest.mark.parametrize(("dimensions", "log2"), [(1, 5), (5, 4), (7, 9), (12, 12), (300, 6)])
def test_points_are_those_of_scipy(dimensions, log2):
    # The same scramble: scipy's digits are private, its points are not.
    digits, shift = scrambled(dimensions, np.random.SeedSequence(3))
    keyword = "rng" if "rng" in inspect.signature(qmc.Sobol).parameters else "seed"
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(3)))
    source = qmc.Sobol(dimensions, scramble=True, bits=BITS, **{keyword: rng})
    public = source.random_base2(log2)
    size = 1 << log2
    ours = np.zeros((dimensions, max(1, size // BLOCK), BLOCK))
    for d in range(dimensions):
        sobol_normals(digits[d], shift[d], size, 1.0, ours[d], 0)
    normals = ours.reshape(dimensions, -1)[:, :size].T
    want = ndtri(public + 2.0**-31)
    # as points in all dimensions at once: every dimension is permuted alike
    np.testing.assert_allclose(as_set(normals), as_set(want), rtol=6e-8, atol=1e-8)
    assert (normals == normals.astype(np.float32)).all()


def test_fill_takes_the_dimensions_in_order():
    source = SobolDraws(3, 10, 5)
    got = rows(source, 3, 1024, scale=2.0)
    digits, shift = scrambled(3, _child(5, 0))
    for d in range(3):
        want = np.zeros((2, BLOCK))
        sobol_normals(digits[d], shift[d], 1024, 1.0, want, 0)
        np.testing.assert_array_equal(got[d], 2 * want.reshape(-1))


def test_quantiles():
    ends = [0, 1, 2, 2**29 - 1, 2**29, 2**30 - 1]
    points = np.random.default_rng(0).integers(0, 2**30, 20000)
    edge = int(0.075 * 2**30)
    near = np.arange(edge - 50, edge + 50)  # where the two branches meet
    points = np.concatenate([ends, near, 2**30 - 1 - near, points]).astype(np.uint32)
    out = np.empty(len(points))
    odd = 2 * points.astype(np.float64) + 1
    normal_quantiles(odd.copy(), np.empty(len(points), np.int64), out)
    tail = np.minimum(odd, 2.0**31 - odd) * 2.0**-31
    want = np.where(odd < 2.0**30, 1, -1) * ndtri(tail)
    np.testing.assert_allclose(out, want, rtol=1e-14)


@pytest.mark.parametrize("log2", [0, 3, 9, 11])
def test_small_rows_leave_the_padding_alone(log2):
    size = 1 << log2
    normals = rows(SobolDraws(2, log2, 2), 2, size)
    assert np.all(normals[:, size:] == 7.0)
    assert np.all(np.abs(normals[:, :size]) < 6.3)
    assert not np.array_equal(normals[0, :size], normals[1, :size])


@pytest.mark.parametrize("make", [lambda s: SobolDraws(3, 10, s), lambda s: PlainDraws(1000, s)])
def test_seeds(make):
    sequence = np.random.SeedSequence([4, 5])
    first, again = rows(make(sequence), 5, 1000), rows(make(sequence), 5, 1000)
    np.testing.assert_array_equal(first, again)  # using a seed does not change it
    for seed in (4, np.random.SeedSequence([4, 6]), sequence.spawn(1)[0]):
        assert not np.any(first[:, :1000] == rows(make(seed), 5, 1000)[:, :1000])
    assert make(sequence).scalar() == make(sequence).scalar() != make(4).scalar()


@pytest.mark.parametrize("make", [lambda: SobolDraws(1, 10, 0), lambda: PlainDraws(1024, 0)])
def test_scalars_are_a_stream_of_their_own(make):
    plain, mixed = make(), make()
    want = rows(plain, 3, 1024)
    scalars = [mixed.scalar() for _ in range(4)]
    np.testing.assert_array_equal(rows(mixed, 3, 1024), want)
    assert [plain.scalar() for _ in range(4)] == scalars
    assert not set(scalars) & set(want.reshape(-1).tolist())


def test_plain_law():
    source = PlainDraws(5000, 3)
    normals = rows(source, 4, 5000, scale=3.0)[:, :5000] / 3
    sigma = 5 / np.sqrt(normals.size)
    assert abs(normals.mean()) < sigma
    assert abs((normals**2).mean() - 1) < np.sqrt(2) * sigma
    assert abs((normals**4).mean() - 3) < np.sqrt(96) * sigma
    scalars = np.array([source.scalar() for _ in range(4000)])
    assert abs(scalars.mean()) < 5 / np.sqrt(4000)
    assert abs(scalars.var() - 1) < 5 * np.sqrt(2 / 4000)


def test_rows_beyond_the_last_dimension_are_plain():
    source, row = SobolDraws(LAST_DIMENSION + 2, 12, 6), np.empty((8, BLOCK))
    for _ in range(LAST_DIMENSION - 2):
        source.fill(row)
    normals = rows(source, 4, 4096)
    spread = np.sort(normals, axis=1) - ndtri((np.arange(4096) + 0.5) / 4096)
    middle = np.abs(spread[:, 400:-400]).max(axis=1)
    assert np.all(middle[:2] < 1e-3)  # one point in every cell
    assert np.all(middle[2:] > 5e-3)


@pytest.mark.parametrize("make", [lambda: SobolDraws(2, 10, 0), lambda: PlainDraws(1024, 0)])
def test_single_precision_rows_are_rounded_draws(make):
    exact, rounded = rows(make(), 2, 1024, 1.5), rows(make(), 2, 1024, 1.5, np.float32)
    np.testing.assert_array_equal(exact.astype(np.float32), rounded)


def test_misuse():
    with pytest.raises(UsageError, match="it must be at most 30"):
        SobolDraws(1, 31, 0)
    with pytest.raises(UsageError, match="at least 1"):
        PlainDraws(0, 0)
    with pytest.raises(EvaluationError, match="does not hold"):
        PlainDraws(1000, 0).fill(np.zeros((1, 512)))
    with pytest.raises(EvaluationError, match="does not hold"):
        SobolDraws(1, 9, 0).fill(np.zeros((2, 512)))
    with pytest.raises(EvaluationError, match="blocks of"):
        SobolDraws(1, 9, 0).fill(np.zeros((2, 300)))
