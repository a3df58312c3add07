"""Random matrices on directions: the limit and the finite law, against dense references."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tpcalc.engine.directions import FiniteMatrix, LimitMatrix, SampleSpace, Store, materialise
from tpcalc.engine.draws import PlainDraws, SobolDraws
from tpcalc.errors import EvaluationError, Exploded, UnknownName, UsageError

Z = 5


class Recorded:
    """Draws that remember what they gave: numbers of single precision, as those of limits are."""

    def __init__(self, size, seed):
        self.plain = PlainDraws(size, seed)
        self.size = size
        self.given = []

    def fill(self, row, scale=1.0, replicate=None):
        work = np.zeros(row.shape)
        self.plain.fill(work, scale)
        row[:] = work = work.astype(np.float32)
        self.given.append(work.reshape(-1)[: self.size].astype(float))

    def scalar(self):
        return self.plain.scalar()


def padded(space, values):
    """A vector of padded length."""
    vector = space.zeros()
    vector[: space.size] = values
    return vector


def form(matrix, product, transpose, j=0):
    """The product with input j as a vector."""
    side, other = matrix.side(transpose), matrix.side(not transpose)
    out = side.output.zeros()
    terms = [(side.e, product.coords[:, j])]
    if product.echo.shape[2]:
        terms.append((other.q, product.echo[:, j]))
    materialise(out, terms)
    return out


class DenseLimit:
    """The rules of the limit in plain numpy: modified Gram-Schmidt on whole arrays, twice."""

    def __init__(self, rows, cols, draws_rows, draws_cols, adjoint):
        self.adjoint = adjoint
        self.space = {False: cols, True: rows}
        self.draws = {False: iter(draws_rows), True: iter(draws_cols)}
        self.q = {False: [], True: []}
        self.e = {False: [], True: []}

    def multiply(self, x, transpose):
        space, output = self.space[transpose], self.space[not transpose]
        x = x[: space.size]
        left = x.copy()
        for q in self.q[transpose] * 2:
            left = left - q * (q @ left) / space.size
        length = np.sqrt(left @ left / space.size)
        if length > 1e-5 * np.sqrt(x @ x / space.size):
            self.q[transpose].append(left / length)
            image = next(self.draws[transpose]).copy()
            for q in self.q[not transpose] * 2 * self.adjoint:
                image -= q * (q @ image) / output.size
            self.e[transpose].append(image)
        out = np.zeros(output.size)
        for q, e in zip(self.q[transpose], self.e[transpose], strict=True):
            out += e * (q @ x) / space.size
        for q, e in zip(self.q[not transpose], self.e[not transpose], strict=True):
            out += q * (e @ x) / space.size * space.ratio / output.ratio
        return out


def limit_matrix(rows, cols, seed=0, capacity=40, **options):
    draws = Recorded(rows.size, seed), Recorded(cols.size, seed + 1000)
    return LimitMatrix((rows, cols), (capacity, capacity), draws, **options), draws


def finite_matrix(n, ratios, seed, capacity=12, **options):
    rows, cols = (SampleSpace(round(ratio * n), ratio) for ratio in ratios)
    draws = PlainDraws(rows.size, [seed, 0]), PlainDraws(cols.size, [seed, 1])
    return FiniteMatrix((rows, cols), (capacity, capacity), draws, **options)


PROGRAM = [False, True, False, True, True, False, False, True, False]


@pytest.mark.parametrize("ratios", [(1.0, 1.0), (2.0, 0.5), (0.25, 1.0)])
@pytest.mark.parametrize("sizes", [(1024, 1024), (700, 1300)])
@pytest.mark.parametrize("adjoint", [False, True])
def test_limit_agrees_with_the_dense_reference_on_the_same_draws(adjoint, sizes, ratios):
    rows, cols = (SampleSpace(*pair) for pair in zip(sizes, ratios, strict=True))
    matrix, (draws_rows, draws_cols) = limit_matrix(rows, cols, seed=3, adjoint=adjoint)
    rng = np.random.default_rng(0)
    last = {False: padded(cols, rng.standard_normal(cols.size)), True: rows.zeros()}
    last[True][: rows.size] = rng.standard_normal(rows.size) + 0.3
    steps = []
    for transpose in PROGRAM:
        x = last[transpose]
        out = form(matrix, matrix.multiply([x], transpose), transpose)
        steps.append((transpose, x.copy(), out.copy()))
        # a function of everything the product gave, so that corrections matter
        target = not transpose
        last[target] = np.tanh(out) + 0.5 * last[target]
    dense = DenseLimit(rows, cols, draws_rows.given, draws_cols.given, adjoint)
    echo = 0.0
    for transpose, x, out in steps:
        want = dense.multiply(x, transpose)
        np.testing.assert_allclose(out[: len(want)], want, rtol=0, atol=1e-12)
        assert not np.any(out[len(want) :])
        side = dense.e[not transpose]
        echo = max(echo, max((abs(e @ x[: len(e)]) / len(e) for e in side), default=0.0))
    assert echo > 0.1  # the correction was there


@pytest.mark.parametrize("kind", ["limit", "finite"])
@pytest.mark.parametrize("storage", ["float64", "float32"])
def test_a_batch_is_the_same_as_one_by_one(kind, storage):
    def make():
        if kind == "limit":
            space = SampleSpace(900)
            return limit_matrix(space, space, seed=5, storage=storage)[0]
        return finite_matrix(900, (1.0, 1.0), seed=5, storage=storage)

    batch, single = make(), make()
    rng = np.random.default_rng(1)
    space = batch.forward.space
    tolerance = 1e-12 if storage == "float64" else 1e-5
    for transpose in (False, True, False, True):
        x = [padded(space, rng.standard_normal(900)) for _ in range(3)]
        x += [0.3 * x[0] + x[2], x[1].copy(), space.zeros(), x[0] + 0.2 * x[1]]
        x += [padded(space, rng.standard_normal(900))]
        together = batch.multiply(x, transpose)
        assert together.coords.shape == (1, 8, batch.side(transpose).q.rows)
        for j, vector in enumerate(x):
            alone = single.multiply([vector], transpose)
            width = alone.coords.shape[2]
            np.testing.assert_allclose(
                together.coords[0, j, :width], alone.coords[0, 0], atol=tolerance
            )
            assert not np.any(together.coords[0, j, width:])
            a, b = form(batch, together, transpose, j), form(single, alone, transpose)
            np.testing.assert_allclose(a, b, atol=20 * tolerance)
    assert batch.side(False).q.rows == single.side(False).q.rows == 8


# ------------------------------------------------------------------------- the law at finite size


@pytest.mark.parametrize("ratios", [(1.0, 1.0), (0.5, 1.0), (2.0, 1.0), (1.0, 2.0)])
@pytest.mark.parametrize("n", [6, 300, 512])
def test_finite_images_are_images_of_one_matrix(n, ratios):
    capacity = 9
    matrix = finite_matrix(n, ratios, seed=7, capacity=capacity)
    rng = np.random.default_rng(3)
    pairs = {False: [], True: []}
    for transpose in PROGRAM * 2:
        side = matrix.side(transpose)
        x = padded(side.space, rng.standard_normal(side.space.size))
        if pairs[not transpose]:  # depend on what came before
            x += pairs[not transpose][-1][1]
        x = x / np.sqrt(x @ x / side.space.size)
        batch = [x, padded(side.space, rng.standard_normal(side.space.size))]
        if side.q.rows + 2 > min(capacity, side.space.size):
            batch = [0.5 * pairs[transpose][0][0] - pairs[transpose][1][0]]
        product = matrix.multiply(batch, transpose)
        assert product.echo.shape == (1, len(batch), 0)
        for j, vector in enumerate(batch):
            pairs[transpose].append((vector, form(matrix, product, transpose, j)))
    for (x, image), (y, back) in itertools.product(pairs[False], pairs[True]):
        assert y @ image == pytest.approx(back @ x, abs=1e-10 * max(x @ x, y @ y, 1))


# --------------------------------------------------------------------------------- housekeeping


@pytest.mark.parametrize("kind", ["limit", "finite"])
def test_reset_forgets_everything_but_the_memory(kind):
    space = SampleSpace(800)
    if kind == "limit":
        matrix, draws = limit_matrix(space, space, seed=1)[0], Recorded
    else:
        matrix, draws = finite_matrix(800, (1.0, 1.0), seed=1), PlainDraws
    x = padded(space, np.random.default_rng(4).standard_normal(800))

    def run(seed):
        assert matrix.reset(draws(800, seed), draws(800, seed + 1)) is None
        assert matrix.min_ratios.min() == 1.0
        y = form(matrix, matrix.multiply([x, x + 1e-3 * x**2 * (x > 0)], True), True)
        return form(matrix, matrix.multiply([np.tanh(y), y], False), False, 1)

    first = run(3)
    assert matrix.min_ratios.min() < 0.01
    data = matrix.forward.q.data
    assert not np.allclose(run(5), first)
    np.testing.assert_array_equal(run(3), first)
    assert matrix.forward.q.data is data


@pytest.mark.parametrize("ratios", [(1.0, 1.0), (2.0, 0.5)])
def test_projected_draws_make_the_transpose_one_on_samples(ratios):
    """y·(W x) = (W^T y)·x for whatever was multiplied, not in the limit alone."""
    rows, cols = (SampleSpace(512, ratio) for ratio in ratios)
    rng, gaps = np.random.default_rng(0), {}
    for adjoint in (True, False):
        matrix, _ = limit_matrix(rows, cols, seed=3, adjoint=adjoint)
        ins: dict[bool, list] = {True: [], False: []}
        outs: dict[bool, list] = {True: [], False: []}
        for transpose in PROGRAM:
            space = matrix.side(transpose).space
            seen = [vector[: space.size] for vector in outs[not transpose][-1:]]
            own = [padded(space, np.tanh(v) + rng.standard_normal(space.size)) for v in seen or [0]]
            ins[transpose] += own
            product = matrix.multiply(own, transpose)
            outs[transpose] += [form(matrix, product, transpose, j) for j in range(len(own))]
        left = np.array([[y @ wx for wx in outs[False]] for y in ins[True]]) * ratios[0]
        right = np.array([[wy @ x for x in ins[False]] for wy in outs[True]]) * ratios[1]
        gaps[adjoint] = np.abs(left - right).max() / 512
    assert gaps[True] < 1e-12 < 1e-2 < gaps[False]


def test_zero_inputs_have_zero_products():
    matrix = finite_matrix(20, (1.0, 1.0), seed=0)
    space = matrix.forward.space
    product = matrix.multiply([space.zeros(), space.zeros()])
    assert product.coords.shape == (1, 2, 0)
    limit, _ = limit_matrix(space, space)
    limit.multiply([padded(space, np.ones(20))], True)
    product = limit.multiply([space.zeros()])
    assert not np.any(form(limit, product, False))


def test_misuse_is_an_error_and_not_a_number():
    space = SampleSpace(20)
    matrix, _ = limit_matrix(space, space, capacity=1)
    bad = space.zeros()
    for value in (np.inf, np.nan):
        bad[3] = value
        with pytest.raises(Exploded, match="infinities or NaN"):
            matrix.multiply([bad])
    matrix.multiply([padded(space, np.ones(20))])
    with pytest.raises(EvaluationError, match="full"):
        matrix.multiply([padded(space, np.arange(20))])
    with pytest.raises(EvaluationError, match="does not fit"):
        matrix.multiply([np.zeros(20)])
    with pytest.raises(UnknownName, match="no storage called 'float16'"):
        limit_matrix(space, space, storage="float16")
    with pytest.raises(EvaluationError, match="blocks of different sizes"):
        limit_matrix(space, SampleSpace(20, block=256))
    draws = PlainDraws(20, 0), PlainDraws(30, 0)
    with pytest.raises(EvaluationError, match="belong to the widths 20 and 30"):
        FiniteMatrix((space, SampleSpace(30, 1.0)), (1, 1), draws)


def test_misuse_of_stores_and_combinations():
    space, store = SampleSpace(20), Store(20, 2)
    store.append(padded(space, np.ones(20)))
    out = space.zeros()
    materialise(out, [(store, np.array([2.0, 0.0]))])  # a zero for a row to come is fine
    assert out.sum() == 40
    with pytest.raises(EvaluationError, match="coefficients for 2 rows"):
        materialise(out, [(store, np.array([2.0, 1.0]))])
    with pytest.raises(EvaluationError, match="sets of coefficients"):
        materialise([out], [(store, np.ones((2, 1)))])
    with pytest.raises(EvaluationError, match="power of two"):
        Store(20, 2, block=100)
    with pytest.raises(UsageError, match="at least 1"):
        SampleSpace(0)
    with pytest.raises(UsageError, match="ratio"):
        SampleSpace(5, -1.0)


def test_what_another_run_left_is_not_read_where_replicates_differ():
    space = SampleSpace(1024, replicates=2)

    def draws(seed):
        return [SobolDraws(9, 10, (seed, side, 0), (seed, side, 1)) for side in (0, 1)]

    def run(matrix, same):
        outs, x = [], space.zeros()
        x[:] = np.random.default_rng(4).standard_normal(len(x))
        for transpose in PROGRAM:
            if same:  # the second replicate needs no more directions
                x[1024:] = 1.0
            out = form(matrix, matrix.multiply([x], transpose), transpose)
            outs.append(out.copy())
            x = np.tanh(out) + 0.3 * x
        return np.array(outs)

    fresh, used = (LimitMatrix((space, space), (9, 9), draws(0), adjoint=True) for _ in range(2))
    run(used, False)
    used.reset(*draws(1))
    fresh.reset(*draws(1))
    np.testing.assert_array_equal(run(used, True), run(fresh, True))
