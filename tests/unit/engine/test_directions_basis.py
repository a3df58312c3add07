"""Orthonormal directions, also of vectors that nearly depend on each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpcalc.engine.directions import Basis, SampleSpace, accumulate, materialise
from tpcalc.errors import Exploded

SIZE = 700
SPACE = SampleSpace(SIZE)


def padded(values):
    vector = SPACE.zeros()
    vector[:SIZE] = values
    return vector


def directions(basis):
    """The directions themselves, shape (rows, samples)."""
    rows = [SPACE.zeros() for _ in range(basis.rows)]
    materialise(rows, [(basis, np.eye(basis.rows))])
    return np.array(rows).reshape(basis.rows, SPACE.padded)


def deviation(basis):
    """Largest deviation of the inner products of the directions from the identity."""
    rows = directions(basis)
    assert not np.any(rows[:, SIZE:])
    gram = rows @ rows.T / SIZE
    return np.max(np.abs(gram - np.eye(basis.rows)), initial=0.0)


def walks(kind, count, rng):
    """Sequences of vectors as training makes them, from easy to nearly dependent."""
    x = rng.standard_normal(SIZE)
    common = rng.standard_normal(SIZE)
    for t in range(count):
        if kind == "fresh":
            yield padded(common + rng.standard_normal(SIZE))
        elif kind == "walk":
            x = x + 0.15 * rng.standard_normal(SIZE)
            yield padded(x)
        elif kind == "slow walk":
            x = x + 1e-3 * rng.standard_normal(SIZE)
            yield padded(x)
        elif kind == "smooth":
            yield padded(np.tanh(x + 0.02 * t * common))
        else:
            yield padded(common + 1e-4 * rng.standard_normal(SIZE))


KINDS = ["fresh", "walk", "slow walk", "smooth", "bundle"]


@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("tolerance", [1e-5, 1e-10])
@pytest.mark.parametrize("kind", KINDS)
def test_directions_stay_orthonormal(kind, tolerance, batch):
    basis = Basis(SIZE, 60, tolerance=tolerance)
    vectors = list(walks(kind, 60, np.random.default_rng(0)))
    coords = np.zeros((60, 60))
    for start in range(0, 60, batch):
        push = basis.push(vectors[start : start + batch])
        coords[start : start + batch, : push.coords.shape[2]] = push.coords[0]
    assert deviation(basis) < 1e-10
    if kind in ("fresh", "walk"):
        assert basis.rows == 60
    x = np.array(vectors)
    norms = np.sqrt(np.mean(x[:, :SIZE] ** 2, axis=1))
    scale = np.outer(norms, norms)
    np.testing.assert_allclose(
        coords @ coords.T / scale, x @ x.T / SIZE / scale, rtol=0, atol=2 * tolerance
    )
    back = [SPACE.zeros() for _ in vectors]
    materialise(back, [(basis, coords)])
    error = np.sqrt(np.mean((np.array(back) - x)[:, :SIZE] ** 2, axis=1)) / norms
    assert np.max(error) < 1.01 * tolerance + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_directions_are_as_orthonormal_as_they_can_be(kind):
    basis = Basis(SIZE, 60, np.float32)
    for x in walks(kind, 60, np.random.default_rng(1)):
        basis.push([x])
    assert deviation(basis) < 1e-5


@pytest.mark.parametrize("batch", [1, 4])
def test_combinations_and_sums_are_those_of_the_directions(batch):
    basis = Basis(SIZE, 12)
    rng = np.random.default_rng(2)
    for _ in range(3):
        basis.push([padded(1 + rng.standard_normal(SIZE)) for _ in range(batch)])
    before, rows = basis.data.copy(), directions(basis)
    coefficients = rng.standard_normal(basis.rows)
    shorter = coefficients[:-1]
    whole, part = SPACE.zeros(), SPACE.zeros()
    materialise(whole, [(basis, coefficients)])
    np.testing.assert_allclose(whole, coefficients @ rows, atol=1e-12)
    materialise(part, [(basis, shorter)])
    np.testing.assert_allclose(part, shorter @ rows[:-1], atol=1e-12)
    np.testing.assert_allclose(basis.dots([whole])[0, :, 0], SIZE * coefficients, atol=1e-10)
    accumulate(part, [(basis, -shorter)])
    assert np.max(np.abs(part)) < 1e-12
    np.testing.assert_array_equal(basis.data, before)  # reading changes nothing


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["new", "repeat", "mix", "zero", "near"]), st.integers(0, 9),
            st.integers(-3, 3),
        ),
        min_size=1, max_size=12,
    ),
    st.integers(1, 5),
)  # fmt: skip
def test_coordinates_reproduce_inner_products(recipe, batch):
    """Any mixture of new, repeated, dependent, zero and nearly dependent vectors."""
    rng = np.random.default_rng(3)
    vectors = []
    for kind, pick, power in recipe:
        fresh = padded(rng.standard_normal(SIZE) * 10.0**power)
        older = vectors[pick % len(vectors)] if vectors else fresh
        vectors.append({
            "new": fresh, "repeat": older, "mix": 2 * older - vectors[-1] if vectors else fresh,
            "zero": SPACE.zeros(), "near": older + 1e-3 * 10.0**-power * fresh,
        }[kind])  # fmt: skip
    basis = Basis(SIZE, len(vectors))
    coords = np.zeros((len(vectors), len(vectors)))
    for start in range(0, len(vectors), batch):
        push = basis.push(vectors[start : start + batch])
        coords[start : start + batch, : push.coords.shape[2]] = push.coords[0]
        assert push.coords.shape[2] == basis.rows
    x = np.array(vectors)
    norms = np.sqrt(np.mean(x[:, :SIZE] ** 2, axis=1))
    norms[norms == 0] = 1.0
    gap = (coords @ coords.T - x @ x.T / SIZE) / np.outer(norms, norms)
    # what is left out of a vector is smaller than the tolerance times its length
    assert np.max(np.abs(gap)) < 1e-5
    assert deviation(basis) < 1e-10


def test_repeats_and_zeros_add_nothing():
    basis = Basis(SIZE, 2)
    rng = np.random.default_rng(4)
    x, y = padded(rng.standard_normal(SIZE)), padded(rng.standard_normal(SIZE))
    push = basis.push([SPACE.zeros(), x, x, -2 * x, y, x + y, SPACE.zeros()])
    assert basis.rows == 2
    assert push.columns[0, : push.new[0]].tolist() == [1, 4]
    coords = push.coords[0]
    assert not np.any(coords[[0, 6]])
    np.testing.assert_allclose(coords[3], -2 * coords[1], atol=1e-14)
    np.testing.assert_allclose(coords[5], coords[1] + coords[4], atol=1e-14)
    assert not np.any(basis.push([y - 3 * x]).new)
    assert basis.min_ratios.min() > 0.9


@pytest.mark.parametrize("tolerance", [1e-5, 1e-10])
def test_tolerance_decides_what_is_a_direction(tolerance):
    rng = np.random.default_rng(5)
    x, y = padded(rng.standard_normal(SIZE)), padded(rng.standard_normal(SIZE))
    for part, rows in ((0.3, 1), (3.0, 2)):
        basis = Basis(SIZE, 2, tolerance=tolerance)
        basis.push([x])
        push = basis.push([x + part * tolerance * y])
        assert basis.rows == rows
        if rows == 2:
            assert basis.min_ratios.min() == pytest.approx(part * tolerance, rel=0.1)
            assert push.coords[0, 0, 1] == pytest.approx(basis.min_ratios.min(), rel=0.1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("power", [-300, -170, -50, 50, 170, 300])
def test_very_small_and_very_large_vectors(power, dtype):
    rng = np.random.default_rng(6)
    x, y = padded(rng.standard_normal(SIZE)), padded(rng.standard_normal(SIZE))
    scale = 10.0**power
    plain, scaled = Basis(SIZE, 2, dtype), Basis(SIZE, 2, dtype)
    want = plain.push([x, x + y]).coords
    found = scaled.push([scale * x, scale * (x + y)]).coords
    np.testing.assert_allclose(found / scale, want, atol=1e-12)
    np.testing.assert_allclose(scaled.dots([x]), plain.dots([x]), atol=1e-3)


def test_what_is_not_finite_is_refused():
    basis = Basis(SIZE, 2)
    for value in (np.inf, -np.inf, np.nan):
        x = padded(np.ones(SIZE))
        x[7] = value
        with pytest.raises(Exploded, match="vector 1"):
            basis.push([padded(np.ones(SIZE)), x])
    assert basis.rows == 0


def test_a_full_space_takes_no_more_directions():
    basis = Basis(5, 9, tolerance=1e-10)
    rng = np.random.default_rng(7)
    for _ in range(9):
        x = np.zeros(512)
        x[:5] = rng.standard_normal(5)
        coords = basis.push([x]).coords[0]
        assert coords[0] @ coords[0] == pytest.approx(x @ x / 5, rel=1e-12)
    assert basis.rows == 5
