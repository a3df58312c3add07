"""Images by name, and the stand-ins that need no file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from image_files import batch, cifar_arrays, cifar_folder, mnist_arrays, mnist_folder

from tpcalc.data import cifar10, digits, digits_images, images, mixture_images, mnist
from tpcalc.data.image_sets import image_set
from tpcalc.errors import StudyError, UnknownName, UsageError
from tpcalc.results.images import Images, class_shares


def test_each_name_is_its_function(tmp_path: Path) -> None:
    digit_files = mnist_folder(tmp_path / "one: folder", mnist_arrays())
    colour = cifar_folder(tmp_path / "cifar", [batch(*part) for part in cifar_arrays()])
    assert images("digits", seed=2).digest == digits_images(seed=2).digest
    assert images("mixture", train=50).digest == mixture_images(train=50).digest
    assert images(f"mnist:{digit_files}", test=3).digest == mnist(digit_files, test=3).digest
    assert images(f"cifar10:{colour}").digest == cifar10(colour).digest


def test_a_set_is_named_before_it_is_read() -> None:
    assert image_set("mnist:/nowhere/at all") == "mnist"
    assert image_set("digits") == "digits"


def test_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    mnist_folder(tmp_path / "data", mnist_arrays())
    assert images("mnist:~/data").dimension == 784


@pytest.mark.parametrize("text", ["", "mnits:data", "imagenet", ":data", "MNIST:data"])
def test_unknown_names(text: str) -> None:
    with pytest.raises(UnknownName, match="there is no set of images called") as caught:
        images(text)
    assert "digits" in str(caught.value) or "mnist:FOLDER" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mnist", "mnist needs the folder.*Write mnist:FOLDER"),
        ("cifar10: ", "cifar10 needs the folder"),
        ("digits:data", "digits reads no folder, and 'digits:data' names one"),
        ("mixture:", "mixture reads no folder"),
        (3, "images is 3; it must be a text"),
    ],
)
def test_names_with_and_without_folders(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        images(text)


# ------------------------------------------------------------------------------------- digits


def test_digits_are_split_by_class_without_overlap() -> None:
    found = digits_images()
    counts = [np.bincount(labels) for labels in (found.train_labels, found.test_labels)]
    total = counts[0] + counts[1]
    assert total.sum() == 1797
    assert np.array_equal(counts[1], -(-total // 5))  # every fifth of a class, from the first on
    every = np.concatenate([found.train, found.test])
    assert len(np.unique(every, axis=0)) == 1797


def test_digits_are_standardised_by_the_training_part() -> None:
    found = digits_images(seed=3)
    assert found.train.mean(dtype=np.float64) == pytest.approx(0, abs=1e-7)
    assert found.train.std(dtype=np.float64) == pytest.approx(1, abs=1e-7)
    raw = digits_images(seed=3, standardise=False)
    assert {float(value) for value in np.unique(raw.train)} == {k / 16 for k in range(17)}
    slope = found.test[raw.test == 1].max() - found.test[raw.test == 0].max()
    assert slope == pytest.approx(1 / raw.train.std(dtype=np.float64), rel=1e-6)


def test_digits_images_have_the_labels_of_the_digits() -> None:
    raw = digits_images(standardise=False)
    known = digits(tuple(range(10)), standardise=False)
    label_of = {
        row: target.index(1.0) for row, target in zip(known.inputs, known.targets, strict=True)
    }
    for row, label in zip(raw.test, raw.test_labels, strict=True):
        assert label_of[tuple(float(value) * 16 for value in row)] == label


def test_digits_by_seed_and_by_limits() -> None:
    assert digits_images(seed=1).digest == digits_images(seed=1).digest
    assert digits_images(seed=1).digest != digits_images(seed=2).digest
    few, more = digits_images(train=10, test=5), digits_images(train=20)
    assert np.array_equal(few.train, more.train[:10])
    with pytest.raises(StudyError, match="train is 1434; it must be at most 1433"):
        digits_images(train=1434)


# ------------------------------------------------------------------------------------ mixture


def nearest_centre(found: Images) -> float:
    centres = np.stack([found.train[found.train_labels == k].mean(axis=0) for k in range(10)])
    distances = ((found.test[:, None] - centres) ** 2).sum(axis=2)
    return float((distances.argmin(axis=1) == found.test_labels).mean())


def test_the_mixture_can_be_told_apart_mostly() -> None:
    assert 0.9 < nearest_centre(mixture_images()) < 0.98
    assert nearest_centre(mixture_images(separation=20)) == 1
    assert nearest_centre(mixture_images(separation=0)) < 0.15


def test_the_mixture_is_standardised_and_balanced() -> None:
    found = mixture_images(train=1005, test=200, dimension=7)
    assert found.train.shape == (1005, 7)
    assert found.train.mean(dtype=np.float64) == pytest.approx(0, abs=1e-6)
    assert found.train.std(dtype=np.float64) == pytest.approx(1, abs=1e-6)
    assert sorted(np.bincount(found.train_labels)) == [100] * 5 + [101] * 5
    assert class_shares(found) == (0.1,) * 10


def test_distance_of_centres() -> None:
    found = mixture_images(separation=40, dimension=400, train=2000)
    centres = np.stack([found.train[found.train_labels == k].mean(axis=0) for k in range(10)])
    spread = found.train[found.train_labels == 0].std(axis=0).mean()
    squared = ((centres[:, None] - centres) ** 2).sum(axis=2)[np.triu_indices(10, 1)] / spread**2
    assert squared.mean() == pytest.approx(1600, rel=0.1)


def test_the_mixture_by_seed() -> None:
    assert mixture_images(seed=1).digest == mixture_images(seed=1).digest
    assert mixture_images(seed=1).digest != mixture_images(seed=2).digest
    assert np.array_equal(
        mixture_images(test=50).train_labels, mixture_images(test=1000).train_labels
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dimension": 0}, "dimension is 0"),
        ({"train": 0}, "train is 0"),
        ({"test": 2.5}, "test is 2.5"),
        ({"separation": -1}, "separation is -1; it must be at least 0"),
        ({"separation": float("nan")}, "separation is nan"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_mixtures_that_cannot_be(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        mixture_images(**arguments)
