"""The bundled digits."""

from __future__ import annotations

import pytest

from tpcalc.data import digits
from tpcalc.errors import StudyError, UnknownName


def test_scale_is_one_on_average_over_all_images() -> None:
    data = digits(tuple(range(10)))
    assert len(data) == 1797
    norms = [sum(value * value for value in row) for row in data.inputs]
    assert sum(norms) / len(norms) == pytest.approx(1.0, abs=1e-12)
    for column in range(data.dimension):
        assert sum(row[column] for row in data.inputs) == pytest.approx(0.0, abs=1e-9)


def test_varying_pixels_have_equal_variance_and_constant_ones_are_zero() -> None:
    data = digits(tuple(range(10)))
    variances = [
        sum(row[column] ** 2 for row in data.inputs) / len(data) for column in range(data.dimension)
    ]
    moving = [value for value in variances if value > 0]
    assert len(moving) == 61
    assert moving == pytest.approx([1 / 61] * 61)


def test_two_classes_have_a_sign_and_alternate() -> None:
    data = digits((3, 8), samples=6, seed=5)
    assert data.targets == ((-1.0,), (1.0,)) * 3
    assert data.origin == "digits 3,8, 6 samples, seed 5"


def test_more_classes_have_one_output_each() -> None:
    data = digits((4, 1, 7), samples=3)
    assert data.targets == ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def test_two_classes_can_be_one_hot() -> None:
    assert digits((0, 1), samples=2, encoding="onehot").targets == ((1.0, 0.0), (0.0, 1.0))


def test_few_samples_are_the_first_of_more_and_the_seed_chooses() -> None:
    assert digits(samples=8, seed=1).inputs[:4] == digits(samples=4, seed=1).inputs
    assert digits(samples=4, seed=1).inputs != digits(samples=4, seed=2).inputs


def test_all_samples_come_once() -> None:
    data = digits((0, 1), standardise=False)
    assert len(data) == 178 + 182
    assert len(set(data.inputs)) == 360
    assert sum(target == (1.0,) for target in data.targets) == 182


def test_a_sample_does_not_depend_on_the_other_class() -> None:
    zeros = {
        x for x, y in zip(digits((0, 1)).inputs, digits((0, 1)).targets, strict=True) if y < (0,)
    }
    again = {
        x for x, y in zip(digits((0, 9)).inputs, digits((0, 9)).targets, strict=True) if y < (0,)
    }
    assert zeros == again


def test_raw_pixels() -> None:
    data = digits(samples=2, standardise=False)
    assert all(value in range(17) for row in data.inputs for value in row)
    assert "raw pixels" in data.origin


@pytest.mark.parametrize("classes", [(), (1,), (1, 1), (0, 10), (-1, 2)])
def test_bad_classes(classes: tuple[int, ...]) -> None:
    with pytest.raises(StudyError, match="two or more different digits from 0 to 9"):
        digits(classes)


@pytest.mark.parametrize("samples", [0, -3, 361])
def test_bad_sample_counts(samples: int) -> None:
    with pytest.raises(StudyError, match="These classes have 360"):
        digits((0, 1), samples=samples)


def test_bad_encodings() -> None:
    with pytest.raises(UnknownName, match="no encoding of targets called 'binary'"):
        digits(encoding="binary")
    with pytest.raises(StudyError, match="tells two classes apart, not 3"):
        digits((0, 1, 2), encoding="sign")
