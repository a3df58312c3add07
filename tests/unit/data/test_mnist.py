"""MNIST from four files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from image_files import MNIST_FILES, idx, mnist_arrays, mnist_folder

from tpcalc.data import mnist
from tpcalc.errors import StudyError, UsageError
from tpcalc.results.images import class_shares


def test_pixels_and_labels_stay_together_and_in_order(tmp_path: Path) -> None:
    arrays = mnist_arrays()
    found = mnist(mnist_folder(tmp_path, arrays), standardise=False)
    assert found.train.shape == (12, 784)
    assert found.train.dtype == np.float32
    assert found.test.shape == (6, 784)
    assert found.classes == 10
    assert np.array_equal(found.train * 255, arrays[0].reshape(12, -1).astype(np.float32))
    assert np.array_equal(found.test_labels, arrays[3])
    assert found.origin.endswith("pixels from 0 to 1")


def test_standardised_by_the_training_images(tmp_path: Path) -> None:
    arrays = mnist_arrays()
    found = mnist(mnist_folder(tmp_path, arrays))
    unit = arrays[0] / 255
    expected = (arrays[2].reshape(6, -1) / 255 - unit.mean()) / unit.std()
    assert np.abs(found.test - expected).max() < 1e-6
    assert found.train.mean(dtype=np.float64) == pytest.approx(0, abs=1e-7)
    assert found.train.std(dtype=np.float64) == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("place", [".", "raw", "MNIST/raw"])
@pytest.mark.parametrize("dot", ["-", "."])
@pytest.mark.parametrize("packed", [False, True])
def test_spellings_and_places(tmp_path: Path, place: str, dot: str, packed: bool) -> None:
    arrays = mnist_arrays()
    plain = mnist(mnist_folder(tmp_path / "plain", arrays))
    mnist_folder(
        tmp_path / "other" / place,
        arrays,
        lambda name: name.replace("-idx", f"{dot}idx") + (".gz" if packed else ""),
        packed=packed,
    )
    assert mnist(tmp_path / "other").digest == plain.digest


def test_limits_keep_the_scale_and_few_are_the_first_of_more(tmp_path: Path) -> None:
    folder = mnist_folder(tmp_path, mnist_arrays())
    every = mnist(folder)
    more, few = mnist(folder, train=8, seed=1), mnist(folder, train=5, test=2, seed=1)
    assert np.array_equal(more.train[:5], few.train)
    assert np.array_equal(more.train_labels[:5], few.train_labels)
    rows = [np.flatnonzero((every.train == row).all(axis=1)) for row in more.train]
    assert sorted(len(found) for found in rows) == [1] * 8
    assert len({int(found[0]) for found in rows}) == 8
    assert len(few.test) == 2
    assert not np.array_equal(more.train, mnist(folder, train=8, seed=2).train)
    assert more.origin.endswith("chosen by seed 1")


def test_shares_of_the_classes_of_its_test_set(tmp_path: Path) -> None:
    """Case 43: what constant predictors reach, on labels as frequent as those of MNIST are."""
    counts = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)
    arrays = mnist_arrays(2)
    arrays[2] = np.zeros((10_000, 28, 28), dtype=np.uint8)
    arrays[3] = np.repeat(np.arange(10), counts).astype(np.uint8)
    shares = class_shares(mnist(mnist_folder(tmp_path, arrays)))
    assert shares[:2] == (0.098, 0.1135)
    assert sum(shares) == pytest.approx(1)


def test_missing_files_are_named(tmp_path: Path) -> None:
    folder = mnist_folder(tmp_path, mnist_arrays())
    (folder / MNIST_FILES[1]).unlink()
    with pytest.raises(StudyError, match="train-labels-idx1-ubyte is missing"):
        mnist(folder)
    (folder / MNIST_FILES[2]).unlink()
    with pytest.raises(StudyError, match=r"train-labels.*, t10k-images.* are missing"):
        mnist(folder)
    with pytest.raises(StudyError, match="no folder that exists"):
        mnist(tmp_path / "nowhere")
    with pytest.raises(StudyError, match="a file, not a folder"):
        mnist(folder / MNIST_FILES[0])
    with pytest.raises(UsageError, match="folder is 3"):
        mnist(3)  # type: ignore[arg-type]


def replaced(number: int, array: np.ndarray) -> list[np.ndarray]:
    arrays = mnist_arrays()
    arrays[number] = array
    return arrays


BAD = {
    "labels short": (replaced(1, np.zeros(11)), 1, "11 labels; train-images-idx3-ubyte has 12"),
    "test labels long": (replaced(3, np.zeros(7)), 3, "7 labels; t10k-images-idx3-ubyte has 6"),
    "label 12": (replaced(3, np.array([0, 1, 2, 12, 4, 5])), 3, "byte 11: the label of image 3 is"),
    "small images": (replaced(0, np.zeros((12, 20, 28))), 0, "bytes 8 to 15: images of 20 x 28"),
    "exchanged": (replaced(1, np.zeros((2, 2, 2))), 1, "byte 3: 3 dimensions, expected 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_files_that_do_not_fit(tmp_path: Path, name: str) -> None:
    arrays, number, message = BAD[name]
    folder = mnist_folder(tmp_path, arrays)
    with pytest.raises(StudyError, match=message) as caught:
        mnist(folder)
    assert caught.value.where == str(folder / MNIST_FILES[number])


def test_images_that_are_all_equal_have_no_scale(tmp_path: Path) -> None:
    folder = mnist_folder(tmp_path, replaced(0, np.full((12, 28, 28), 7)))
    with pytest.raises(StudyError, match="all training pixels are equal"):
        mnist(folder)
    assert set(mnist(folder, standardise=False).train.ravel()) == {np.float32(7 / 255)}


@pytest.mark.parametrize("packed", [False, True])
def test_each_file_cut_off_is_refused(tmp_path: Path, packed: bool) -> None:
    folder = mnist_folder(tmp_path, mnist_arrays(2, 2), packed=packed)
    for name in MNIST_FILES:
        whole = (folder / name).read_bytes()
        ends = range(0, len(whole), max(1, len(whole) // 15))
        for end in ends:
            (folder / name).write_bytes(whole[:end])
            with pytest.raises(StudyError) as caught:
                mnist(folder)
            assert caught.value.where == str(folder / name)
        (folder / name).write_bytes(whole)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"train": 13}, "train is 13; it must be at most 12"),
        ({"test": 7}, "test is 7; it must be at most 6"),
        ({"train": 0}, "train is 0; it must be at least 1"),
        ({"test": 1.5}, "test is 1.5; it must be a whole number"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_limits_that_cannot_be_kept(tmp_path: Path, limits: dict[str, int], message: str) -> None:
    folder = mnist_folder(tmp_path, mnist_arrays())
    with pytest.raises(StudyError, match=message):
        mnist(folder, **limits)


def test_a_plain_file_goes_before_a_packed_one(tmp_path: Path) -> None:
    arrays = mnist_arrays()
    folder = mnist_folder(tmp_path, arrays)
    (folder / f"{MNIST_FILES[0]}.gz").write_bytes(gzip.compress(idx(arrays[0] // 2)))
    assert mnist(folder).digest == mnist(mnist_folder(tmp_path / "plain", arrays)).digest
